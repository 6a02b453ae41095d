/** Numbers as Python writes, sorts and adds them. */

/** Returns the next double below x. */
export function nextBelow(x: number): number {
  if (x === 0) return -Number.MIN_VALUE;
  if (!Number.isFinite(x)) return x;
  return step(x, x > 0 ? -1n : 1n);
}

/** Returns the next double above x. */
export function nextAbove(x: number): number {
  return -nextBelow(-x);
}

function step(x: number, by: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  view.setBigInt64(0, view.getBigInt64(0) + by);
  return view.getFloat64(0);
}

/** Returns how many entries of a rising list are below x: Python's bisect_left. */
export function bisectLeft(list: ArrayLike<number>, x: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (list[mid] < x) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** Returns how many entries of a rising list are at most x. */
export function bisectRight(list: ArrayLike<number>, x: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (list[mid] <= x) low = mid + 1;
    else high = mid;
  }
  return low;
}

export const clip = (x: number, low: number, high: number): number => Math.min(Math.max(x, low), high);

/** Adds numbers as numpy does, so that sums have the same bits: eight sums side by side, long lists by halves. */
export function pairwiseSum(list: ArrayLike<number>, from = 0, n = list.length): number {
  if (n < 8) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += list[from + i];
    return sum;
  }
  if (n > 128) {
    let half = n >> 1;
    half -= half % 8;
    return pairwiseSum(list, from, half) + pairwiseSum(list, from + half, n - half);
  }
  const r = Array.from({ length: 8 }, (_, k) => list[from + k]);
  const whole = n - (n % 8);
  for (let i = 8; i < whole; i += 8) for (let k = 0; k < 8; k++) r[k] += list[from + i + k];
  let sum = r[0] + r[1] + (r[2] + r[3]) + (r[4] + r[5] + (r[6] + r[7]));
  for (let i = whole; i < n; i++) sum += list[from + i];
  return sum;
}

/** Adds numbers without rounding in between, as Python's math.fsum does. */
export function exactSum(list: Iterable<number>): number {
  const partials: number[] = [];
  for (let x of list) {
    let kept = 0;
    for (let y of partials) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low !== 0) partials[kept++] = low;
      x = high;
    }
    partials.length = kept;
    partials.push(x);
  }
  let n = partials.length;
  if (n === 0) return 0;
  let high = partials[--n];
  let low = 0;
  while (n > 0) {
    const x = high;
    const y = partials[--n];
    high = x + y;
    low = y - (high - x);
    if (low !== 0) break;
  }
  // Round half to even where the rest says which side.
  if (n > 0 && ((low < 0 && partials[n - 1] < 0) || (low > 0 && partials[n - 1] > 0))) {
    const y = low * 2;
    const x = high + y;
    if (y === x - high) high = x;
  }
  return high;
}

/** Writes a number as Python's repr of a float does. */
export function repr(x: number): string {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  const size = Math.abs(x);
  if (x !== 0 && (size < 1e-4 || size >= 1e16)) {
    const [mantissa, power] = x.toExponential().split("e");
    const exponent = Number(power);
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const text = String(x);
  return Object.is(x, -0) ? "-0.0" : Number.isInteger(x) ? `${text}.0` : text;
}

/** Returns the text that stands for a category, the same whatever type it was stored as: 2 and "2" are one. */
export function labelOf(value: number | string | boolean): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Number.isInteger(value) && Math.abs(value) < 1e16) return String(value + 0);
  return repr(value);
}
