/** Atoms, the finest levels that nothing in a form divides, and moves between them: as explain/atoms.py. */

import { binOf, codeOf, groupOf, orderedCount } from "./levels";
import { nextAbove } from "./numbers";
import { axisWeights, featureOf } from "./score";
import type { Bins, Categories, Feature, Levels, Model, Row, Shape, TreePart, Value, WhatIfOptions } from "./types";

export interface Atoms {
  feature: string;
  levels: Levels;
  /** A value per atom; null where there is none. */
  values: Value[];
  /** Those that training rows had, missing left out. */
  seen: boolean[];
  /** Whether a line or a curve reads the feature, so that values inside an atom differ. */
  straight: boolean;
}

/** The atoms of every feature the form reads. */
export function atomsOf(model: Model): Map<string, Atoms> {
  return new Map(model.features.map((name) => [name, makeAtoms(model, name)]));
}

function makeAtoms(model: Model, name: string): Atoms {
  const shapes: Shape[] = [];
  const counts: { levels: Levels; weights: number[] }[] = [];
  const trees: TreePart[] = [];
  for (const { part, features, terms } of model.parts) {
    if (part.kind === "trees") {
      if (features.includes(name)) trees.push(part);
      continue;
    }
    const own = terms.find((term) => term.name === name && term.shape.kind !== "pair");
    if (own) shapes.push(own.shape as Shape);
  }
  for (const shape of shapes) counts.push({ levels: shape.levels, weights: shape.weights });
  for (const { pairs } of model.parts) {
    for (const pair of pairs) {
      const axis = pair.features.indexOf(name);
      if (axis >= 0) counts.push({ levels: pair.levels[axis], weights: axisWeights(pair, axis) });
    }
  }
  const known = counts.map((entry) => entry.levels);
  const declared = featureOf(model, name);
  const categorical =
    known.some((levels) => levels.kind === "categories") || (!known.length && declared.kind === "categorical");
  const levels = categorical ? joinedCategories(known, trees, name) : joinedBins(known, trees, declared, name);
  const values = [...atomValues(levels)];
  const seen = values.map((value) => value !== null);
  for (const { levels: own, weights } of counts) {
    if (!(sum(weights) > 0)) continue;
    values.forEach((value, k) => (seen[k] &&= weights[codeOf(own, name, value)] > 0));
  }
  return { feature: name, levels, values, seen, straight: shapes.some((shape) => shape.kind !== "table") };
}

const sum = (list: number[]) => list.reduce((total, x) => total + x, 0);

function joinedBins(known: Levels[], trees: TreePart[], feature: Feature, name: string): Bins {
  const bins = known.filter((levels) => levels.kind === "bins");
  const edges = new Set(bins.flatMap((levels) => levels.edges));
  const special = bins.flatMap((levels) => levels.special_values);
  const bounds = bins.map((levels) => levels.lower_bound);
  for (const part of trees) {
    part.inputs.forEach((input, j) => {
      if (input.feature !== name) return;
      if (input.missing !== null) special.push(input.missing);
      for (const tree of part.trees) tree.inputs.forEach((i, node) => i === j && edges.add(tree.edges[node]));
    });
  }
  if (trees.length) {
    // Trees split codes like measurements; the tree's input and the schema say which are which.
    special.push(...(feature.special_values ?? []).map(Number));
    bounds.push(feature.lower_bound ?? null);
  }
  const low = bounds.reduce((most, bound) => (bound === null || (most !== null && most >= bound) ? most : bound), null);
  return {
    kind: "bins",
    edges: [...edges].sort((a, b) => a - b),
    special_values: [...new Set(special)],
    lower_bound: low,
  };
}

function joinedCategories(known: Levels[], trees: TreePart[], name: string): Categories {
  const lists = known.filter((levels) => levels.kind === "categories");
  const asked = trees.flatMap((part) => part.inputs.filter((input) => input.feature === name && input.category !== null));
  const ordered = new Set(
    lists.flatMap((levels) =>
      levels.categories.slice(0, levels.n_ordered).flatMap((category) => [category, ...groupOf(levels, category)]),
    ),
  );
  for (const input of asked) ordered.add(input.category!);
  const special = new Set(lists.flatMap((levels) => levels.categories).filter((category) => !ordered.has(category)));
  // Categories that no part tells apart are one atom, under the name of the first.
  const atoms = new Map<string, string[]>();
  for (const category of [...ordered, ...special]) {
    const key = JSON.stringify([asked.length ? category : null, ...lists.map((lv) => codeOf(lv, name, category))]);
    atoms.set(key, [...(atoms.get(key) ?? []), category]);
  }
  const names = [...atoms.values()].map(([first]) => first);
  const groups = Object.create(null) as Record<string, string[]>;
  for (const [first, ...others] of atoms.values()) if (others.length) groups[first] = others;
  const n_ordered = names.filter((category) => !special.has(category)).length;
  return { kind: "categories", categories: names, n_ordered, groups };
}

function* atomValues(levels: Levels): Generator<Value> {
  if (levels.kind === "categories") {
    yield* levels.categories;
    yield* [null, null]; // missing, and unseen: there is no telling what it would be
    return;
  }
  const ends = endsOf(levels);
  for (let code = 0; code < orderedCount(levels); code++) yield inside(levels, code, ends[code], ends[code + 1]);
  yield* levels.special_values;
  if (levels.lower_bound !== null) {
    const below = [1, 0.5, 0.25, 0.125].map((step) => levels.lower_bound! - step);
    yield below.find((value) => !levels.special_values.includes(value)) ?? null;
  }
  yield null;
}

const endsOf = (levels: Bins) => [-Infinity, ...levels.edges, Infinity];

/** A value of a bin: its upper end where it has one, else a number near by. */
function inside(levels: Bins, code: number, low: number, high: number): number | null {
  const fromLow = Number.isFinite(low);
  const toHigh = Number.isFinite(high);
  const wide = Math.max(1, fromLow ? Math.abs(low) : toHigh ? Math.abs(high) : 1);
  const near = [toHigh ? high : fromLow ? low + wide : 0];
  if (fromLow && toHigh) near.push(...[0.5, 0.25, 0.75].map((share) => low + (high - low) * share));
  else if (fromLow) near.push(...[0.5, 2, 0.25].map((share) => low + wide * share));
  else near.push(...[0.5, 1, 0.25].map((share) => near[0] - wide * share));
  if (levels.lower_bound !== null) near.push(levels.lower_bound);
  if (fromLow) near.push(nextAbove(low));
  return near.find((value) => binOf(levels, value) === code) ?? null;
}

/** The value of a bin nearest to `start`, with no more decimals than `start` has if the bin holds such one. */
export function nearestValue(levels: Bins, code: number, start: number): number {
  const ends = endsOf(levels);
  const [low, high] = [ends[code], ends[code + 1]];
  const rising = Number.isNaN(start) ? Number.isFinite(low) : !(start > high);
  const edge = rising ? low : high;
  if (Number.isFinite(edge)) {
    for (let decimals = decimalsOf(start); decimals < 18; decimals++) {
      const value = rounded(edge, decimals, rising);
      if (binOf(levels, value) === code) return value;
    }
  }
  return inside(levels, code, low, high) ?? edge;
}

/** A finite number as written in the shortest way: its digits, and the power of ten of the last one. */
function decimal(value: number): { digits: bigint; power: number } {
  const [mantissa, exponent] = value.toExponential().split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), power: Number(exponent) - fraction.length };
}

function decimalsOf(value: number): number {
  if (!Number.isFinite(value) || value === 0) return 0;
  return Math.min(6, Math.max(0, -decimal(value).power));
}

/** Rounds a value up to the next number with this many decimals, or down (where it may stay as it is). */
function rounded(value: number, decimals: number, above: boolean): number {
  const { digits, power } = decimal(value);
  const shift = power + decimals;
  let floor: bigint;
  if (shift >= 0) floor = digits * 10n ** BigInt(shift);
  else {
    const unit = 10n ** BigInt(-shift);
    floor = digits / unit - (digits < 0n && digits % unit !== 0n ? 1n : 0n);
  }
  return Number(`${floor + (above ? 1n : 0n)}e${-decimals}`);
}

// ---- moves

export interface Moves {
  target: number[];
  price: number[];
}

/** Where the values of one feature can be moved to. */
export interface FeatureMoves {
  atoms: Atoms;
  declared: Feature;
  values: Value[];
  codes: number[];
  /** By part, what each target adds to the part's score by itself. */
  scores: Map<number, number[]>;
  /** By part and number of a pair ("0,1"), the level of each target in the pair. */
  pairLevels: Map<string, number[]>;
}

/** The moves of an applicant who is in an atom. */
export function movesFrom(feature: FeatureMoves, atom: number): Moves {
  const { declared, atoms, codes } = feature;
  const measured = atom < orderedCount(atoms.levels);
  const actionable = declared.actionable ?? "free";
  const unordered = declared.kind === "categorical" && (declared.direction ?? "none") === "none";
  const found: Moves = { target: [], price: [] };
  codes.forEach((code, t) => {
    if (code === atom) return;
    const direction = unordered ? null : code > atom ? "up" : "down";
    if (actionable !== "free" && !(measured && direction === actionable)) return; // up from no measurement means nothing
    const steps = measured && direction !== null ? Math.abs(code - atom) : 1;
    found.target.push(t);
    found.price.push((declared.step_cost ?? 1) * steps);
  });
  return found;
}

/** A value to reach: the nearest inside the target's bin, from the applicant's own. */
export function concrete({ atoms, codes, values }: FeatureMoves, target: number, value: number, atom: number): Value {
  if (atoms.levels.kind !== "bins") return values[target];
  return nearestValue(atoms.levels, codes[target], atom < orderedCount(atoms.levels) ? value : NaN);
}

/** The moves of every feature that can move: to bins and categories that training rows had. */
export function featureMoves(model: Model, { frozen = [] }: WhatIfOptions): Map<string, FeatureMoves> {
  const found = new Map<string, FeatureMoves>();
  for (const [name, atoms] of atomsOf(model)) {
    const declared = featureOf(model, name);
    if (frozen.includes(name) || declared.actionable === "fixed" || atoms.straight) continue;
    const codes = [...Array(orderedCount(atoms.levels)).keys()].filter((code) => atoms.seen[code]);
    if (codes.length) found.set(name, targets(model, atoms, declared, codes));
  }
  return found;
}

function targets(model: Model, atoms: Atoms, declared: Feature, codes: number[]): FeatureMoves {
  const name = atoms.feature;
  const values = codes.map((code) => atoms.values[code]);
  const scores = new Map<number, number[]>();
  const pairLevels = new Map<string, number[]>();
  model.parts.forEach(({ part, terms, pairs }, k) => {
    if (part.kind === "trees") return;
    const own = terms.find((term) => term.name === name && term.shape.kind !== "pair");
    scores.set(
      k,
      values.map((value) => (own ? own.value(lone(name, value)) : 0)),
    );
    pairs.forEach((pair, j) => {
      const axis = pair.features.indexOf(name);
      if (axis >= 0) pairLevels.set(`${k},${j}`, values.map((value) => codeOf(pair.levels[axis], name, value)));
    });
  });
  return { atoms, declared, values, codes, scores, pairLevels };
}

function lone(name: string, value: Value): Row {
  const row = Object.create(null) as Row;
  row[name] = value;
  return row;
}
