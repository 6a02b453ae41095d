/** The levels of a feature, and which level a value falls into: as form/levels.py. */

import { bisectLeft, labelOf } from "./numbers";
import type { Bins, Categories, Levels, Value } from "./types";

/** A value that the model refuses: of which feature, "" if of none, and why. */
export class RowError extends Error {
  override name = "RowError";

  constructor(
    readonly feature: string,
    readonly why: string,
  ) {
    super(feature + why);
  }
}

export const isMissing = (value: Value | undefined): boolean =>
  value === null || value === undefined || (typeof value === "number" && Number.isNaN(value));

export function levelCount(levels: Levels): number {
  if (levels.kind === "categories") return levels.categories.length + 2;
  return levels.edges.length + 1 + levels.special_values.length + (levels.lower_bound === null ? 0 : 1) + 1;
}

/** How many levels, from the first, are bins or categories in the order. */
export function orderedCount(levels: Levels): number {
  return levels.kind === "categories" ? levels.n_ordered : levels.edges.length + 1;
}

export function missingLevel(levels: Levels): number {
  return levels.kind === "categories" ? levels.categories.length : levelCount(levels) - 1;
}

/** The level of a number among bins. */
export function binOf(bins: Bins, x: number): number {
  if (Number.isNaN(x)) return missingLevel(bins);
  // Of a value that is listed twice, the last counts, as in Python.
  const special = bins.special_values.lastIndexOf(x);
  if (special >= 0) return bins.edges.length + 1 + special;
  if (bins.lower_bound !== null && x < bins.lower_bound) return missingLevel(bins) - 1;
  return bisectLeft(bins.edges, x);
}

const levelsByLabel = new WeakMap<Categories, Map<string, number>>();

/** Further labels of a category. */
export function groupOf(levels: Categories, category: string): string[] {
  return levels.groups && Object.hasOwn(levels.groups, category) ? levels.groups[category] : [];
}

function categoryOf(levels: Categories, label: string): number {
  let known = levelsByLabel.get(levels);
  if (!known) {
    known = new Map();
    for (const [level, category] of levels.categories.entries()) {
      for (const member of [category, ...groupOf(levels, category)]) known.set(member, level);
    }
    levelsByLabel.set(levels, known);
  }
  return known.get(label) ?? levels.categories.length + 1;
}

/** Returns a continuous feature's value as a number, NaN where it is missing; text and infinity are refused. */
export function numberOf(feature: string, value: Value | undefined): number {
  if (isMissing(value) || value === "") return NaN;
  if (typeof value !== "number") throw new RowError(feature, " must be a number.");
  if (!Number.isFinite(value)) throw new RowError(feature, " is infinite. Leave it empty where it is not known.");
  return value;
}

/** Returns the level of a value. */
export function codeOf(levels: Levels, feature: string, value: Value | undefined): number {
  if (levels.kind === "bins") return binOf(levels, numberOf(feature, value));
  return isMissing(value) ? missingLevel(levels) : categoryOf(levels, labelOf(value!));
}
