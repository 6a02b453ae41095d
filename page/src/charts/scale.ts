/** A linear scale and round ticks: all the arithmetic that our charts need. */

export type Scale = (value: number) => number;

export function linear(from: readonly [number, number], to: readonly [number, number]): Scale {
  const rate = from[1] === from[0] ? 0 : (to[1] - to[0]) / (from[1] - from[0]);
  return (value) => to[0] + (value - from[0]) * rate;
}

/** About `count` round numbers that cover a range, without its ends unless they are round. Adding 0 makes 0 of -0. */
export function ticks(low: number, high: number, count = 5): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = rough / power;
  const step = (unit > 5 ? 10 : unit > 2 ? 5 : unit > 1 ? 2 : 1) * power;
  const found: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step + 0);
  return found;
}

/** The range of some numbers, those that are none left out, widened by a share on both sides. */
export function extent(values: Iterable<number | null | undefined>, pad = 0): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value == null || !Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  const margin = (high - low) * pad;
  return [low - margin, high + margin];
}

/** At most `most` of the positions 0 to n - 1, evenly spread. */
export function thin(n: number, most: number): number[] {
  const step = Math.max(1, Math.ceil(n / Math.max(1, most)));
  return Array.from({ length: Math.ceil(n / step) }, (_, i) => i * step);
}
