/** Numbers in the reader's locale. */

const formats = new Map<string, Intl.NumberFormat>();

function format(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = JSON.stringify(options);
  let found = formats.get(key);
  if (!found) formats.set(key, (found = new Intl.NumberFormat(undefined, options)));
  return found;
}

const MINUS = "\u2212";
const typographic = (text: string) => text.replace(/^-/, MINUS);
const known = (value: number | null | undefined): value is number => value != null && Number.isFinite(value);
const NONE = "\u2013";

/** A probability or share: 12.3%. */
export function percent(value: number | null | undefined, digits = 1): string {
  if (!known(value)) return NONE;
  const options = { style: "percent", signDisplay: "negative", minimumFractionDigits: digits, maximumFractionDigits: digits } as const;
  return typographic(format(options).format(value));
}

/** A probability with as many digits as tell it from a limit: 29.97%. */
export function beside(value: number, limit: number | null): string {
  const digits = [1, 2, 3, 4, 5].find((n) => limit === null || percent(value, n) !== percent(limit, n));
  return percent(value, digits);
}

/** A limit as it was set: 30%, 12.5%. */
export const limit = (value: number): string => format({ style: "percent", maximumFractionDigits: 3 }).format(value);

/** What something costs: 8.7 points. */
export const cost = (value: number): string => `${points(value).replace("+", "")} points`;

/** A difference of probabilities in percentage points, with its sign: +4.2. */
export function points(value: number | null | undefined, digits = 1): string {
  if (!known(value)) return NONE;
  const options = {
    signDisplay: "exceptZero",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  } as const;
  return typographic(format(options).format(value * 100));
}

export function count(value: number | null | undefined): string {
  return known(value) ? typographic(format({ maximumFractionDigits: 0 }).format(value)) : NONE;
}

/** A number as it would be written by hand: at most six significant digits. */
export function number(value: number | null | undefined, digits = 6): string {
  if (!known(value)) return NONE;
  if (value !== 0 && (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-6)) return typographic(value.toExponential(3));
  return typographic(format({ maximumSignificantDigits: digits }).format(value));
}

export function fixed(value: number | null | undefined, digits = 3): string {
  if (!known(value)) return NONE;
  return typographic(format({ signDisplay: "negative", minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value));
}

/** Formats of one argument and a fixed number of digits, for columns of tables. */
export const share = (value: number | null | undefined) => percent(value);
export const decimals = (digits: number) => (value: number | null | undefined) => fixed(value, digits);
export const digits = (most: number) => (value: number | null | undefined) => number(value, most);
export const difference = (value: number | null | undefined) => points(value, 2);

/** A range between two numbers that are written already. */
export const between = (low: string, high: string) => `${low} to ${high}`;

/** A number in plain ASCII, as a computer reads it. */
export const plain = (value: unknown): string => (value == null ? "" : String(value));
