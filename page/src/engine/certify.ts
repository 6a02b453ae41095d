/** The claims of the certificate, decided once more from the form in this page; docs/model-file.md states them. */

import { type Atoms, atomsOf } from "./atoms";
import { explain } from "./contributions";
import { codeOf, groupOf, levelCount, missingLevel, orderedCount, RowError } from "./levels";
import { exactSum, labelOf } from "./numbers";
import { featureOf, risk } from "./score";
import type { Curve, Feature, Form, Levels, Link, Model, PairTable, Part, ReadyPart, Row, Rule, TreePart } from "./types";

export interface Claim {
  name: string;
  holds: boolean;
}

const BOUNDS: (Rule | null | undefined)[] = ["not_better", "worst", "neutral"];
const ROWS = 256;

/** Decides every claim. */
export function certify(model: Model): Claim[] {
  const { form, schema } = model;
  const atoms = atomsOf(model);
  const names = Object.keys(schema.features ?? {});
  const claims: Claim[] = [];
  for (const name of names) {
    const sign = signOf(featureOf(model, name));
    if (sign === 0) continue;
    const users = usersOf(model, name);
    const holds =
      keepsOrder(model, name) && users.every((user) => user.weight >= 0 && isOrdered(user, atoms.get(name)!, sign));
    claims.push({ name: `monotone in ${name}`, holds });
  }
  const ruled = model.features.map((name) => rulesKept(model, atoms.get(name)!)).filter((kept) => kept !== null);
  if (ruled.length) claims.push({ name: "empty fields and codes", holds: ruled.every(Boolean) });
  const guarded = names.filter((name) => featureOf(model, name).protected);
  if (guarded.length) {
    const asked = schema.policy?.inquiries ?? [];
    const holds = guarded.every((name) => featureOf(model, name).actionable === "fixed" && !asked.includes(name));
    claims.push({ name: "protected features", holds });
  }
  claims.push({ name: "risk inside [0, 1]", holds: linksOf(form).every(staysInside) });
  claims.push(weightsClaim(form));
  claims.push({ name: "contributions add up", holds: largestGap(model, atoms) <= 1e-9 });
  return claims;
}

const signOf = (feature: Feature) => ({ increasing: 1, decreasing: -1, none: 0 })[feature.direction ?? "none"];

const usersOf = (model: Model, name: string) => model.parts.filter((part) => part.features.includes(name));

const pairwise = <T>(list: readonly T[]): [T, T][] => list.slice(1).map((next, k) => [list[k], next]);

const rises = (list: readonly number[]) => pairwise(list).every(([a, b]) => a < b);

/** The pairs of a feature, each with the feature's axis in it. */
function pairsOf(part: ReadyPart, name: string): { levels: Levels; axis: number; pair: PairTable }[] {
  const found = part.pairs.map((pair) => ({ pair, axis: pair.features.indexOf(name) })).filter((p) => p.axis >= 0);
  return found.map(({ pair, axis }) => ({ pair, axis, levels: pair.levels[axis] }));
}

/** The levels of a feature in every shape and pair. */
function listsOf(model: Model, name: string): Levels[] {
  return usersOf(model, name).flatMap((user) => {
    const shape = user.part.kind === "additive" && Object.hasOwn(user.part.shapes, name) ? user.part.shapes[name] : null;
    return [...(shape ? [shape.levels] : []), ...pairsOf(user, name).map((found) => found.levels)];
  });
}

/** Whether levels take no value out of the order that the schema does not, and have its order of categories. */
function keepsOrder(model: Model, name: string): boolean {
  const feature = featureOf(model, name);
  const special = (feature.special_values ?? []).map(labelOf);
  const place = new Map((feature.categories ?? []).map((label, k) => [labelOf(label), k]));
  return listsOf(model, name).every((levels) => {
    if (levels.kind === "bins") {
      const bound = levels.lower_bound === null || levels.lower_bound === (feature.lower_bound ?? null);
      return bound && levels.special_values.every((value) => special.includes(labelOf(value)));
    }
    const places = levels.categories.slice(0, levels.n_ordered).flatMap((first) => {
      const known = [first, ...groupOf(levels, first)].map((label) => place.get(label)).filter((k) => k !== undefined);
      return known.sort((a, b) => a - b);
    });
    return rises(places);
  });
}

// ---- directions

function isOrdered(user: ReadyPart, atoms: Atoms, sign: number): boolean {
  const { part } = user;
  if (part.kind === "trees") return splitsOrdered(part, atoms.feature, sign);
  const shape = Object.hasOwn(part.shapes, atoms.feature) ? part.shapes[atoms.feature] : null;
  if (shape?.kind === "line" && sign * shape.slope < 0) return false;
  if (shape?.kind === "curve" && !curveOrdered(shape, sign)) return false;
  const pairs = pairsOf(user, atoms.feature);
  if (!pairs.length) {
    if (shape?.kind !== "table") return true;
    return pairwise(shape.scores.slice(0, orderedCount(shape.levels))).every(([a, b]) => sign * (b - a) >= 0);
  }
  const levels = [...(shape?.kind === "table" ? [shape.levels] : []), ...pairs.map((pair) => pair.levels), atoms.levels];
  const bounds = new Set(levels.map((own) => (own.kind === "bins" ? own.lower_bound : null)));
  const reached = [...Array(orderedCount(atoms.levels)).keys()].filter((k) => atoms.values[k] !== null);
  return bounds.size === 1 && pairwise(reached).every(([a, b]) => least(user, part, atoms, b, a, sign) >= 0);
}

/** The level of an atom among coarser levels. */
function levelAt(levels: Levels, atoms: Atoms, atom: number): number {
  const last = levels.kind === "categories" && atom === levelCount(atoms.levels) - 1;
  return last ? levelCount(levels) - 1 : codeOf(levels, atoms.feature, atoms.values[atom]);
}

/** What an atom adds to the score of a part by itself; of a line, the mean measurement counts. */
function alone(part: Part, atoms: Atoms, atom: number): number {
  const shape = Object.hasOwn(part.shapes, atoms.feature) ? part.shapes[atoms.feature] : null;
  return shape ? shape.scores[levelAt(shape.levels, atoms, atom)] : 0;
}

/** What an atom adds in every pair, for every level of the other feature. */
function rowsAt(user: ReadyPart, atoms: Atoms, atom: number): number[][] {
  return pairsOf(user, atoms.feature).map(({ pair, axis, levels }) => {
    const k = levelAt(levels, atoms, atom);
    return axis === 0 ? pair.scores[k] : pair.scores.map((row) => row[k]);
  });
}

/** By how much one atom is above another at least, whatever the other features are; its sign is exact. */
function least(user: ReadyPart, part: Part, atoms: Atoms, after: number, before: number, sign: number): number {
  const down = rowsAt(user, atoms, before);
  const steps = rowsAt(user, atoms, after).map((row, n) =>
    row
      .map((score, c) => [sign * score, -sign * down[n][c]])
      .reduce((worst, step) => (exactSum([...step, -worst[0], -worst[1]]) < 0 ? step : worst)),
  );
  return exactSum([sign * alone(part, atoms, after), -sign * alone(part, atoms, before), ...steps.flat()]);
}

/** Whether every leaf above a split on the feature is on the right side of every leaf below it. */
function splitsOrdered(part: TreePart, name: string, sign: number): boolean {
  return part.trees.every((tree) => {
    const ends: [number, number][] = []; // by node, the least and the greatest leaf under it
    for (let k = tree.inputs.length - 1; k >= 0; k--) {
      if (tree.inputs[k] < 0) {
        ends[k] = [sign * tree.values[k], sign * tree.values[k]];
        continue;
      }
      const [below, above] = [ends[tree.left[k]], ends[tree.right[k]]];
      ends[k] = [Math.min(below[0], above[0]), Math.max(below[1], above[1])];
      const input = part.inputs[tree.inputs[k]];
      if (input.feature === name && (input.category !== null || above[0] < below[1])) return false;
    }
    return true;
  });
}

/** Whether a curve of degree 3 at most never moves against a sign; where pieces meet, but for rounding. */
function curveOrdered(curve: Curve, sign: number): boolean {
  const last = curve.coefficients.length - 1;
  let end: number | null = null;
  for (const [k, piece] of curve.coefficients.entries()) {
    if (piece.length > 4) return false;
    const width = curve.breaks[k + 1] - curve.breaks[k];
    const [a, b, c, d] = [0, 1, 2, 3].map((power) => sign * (piece[power] ?? 0));
    const far = (side: number) => side * (d !== 0 ? d * side : c) >= 0;
    if ((k === 0 && !far(-1)) || (k === last && !far(1))) return false;
    const turn = d !== 0 ? [-c / (3 * d)] : [];
    const at = [0, width, ...turn].filter((t) => (k === 0 || t >= 0) && (k === last || t <= width));
    if (at.some((t) => b + 2 * c * t + 3 * d * t * t < 0)) return false;
    if (end !== null && a - end < -1e-9 * (1 + Math.abs(end))) return false;
    end = ((d * width + c) * width + b) * width + a;
  }
  return true;
}

// ---- rules

/** Whether all rules of a feature are kept; null where it has none. */
function rulesKept(model: Model, atoms: Atoms): boolean | null {
  const { levels, feature: name } = atoms;
  const feature = featureOf(model, name);
  const rules = new Map<number, Rule>();
  const labels = levels.kind === "bins" ? levels.special_values.map(labelOf) : levels.categories;
  const first = levels.kind === "bins" ? orderedCount(levels) : 0;
  for (const [label, rule] of Object.entries(feature.special_rules ?? {})) {
    if (!BOUNDS.includes(rule)) continue;
    if (!labels.includes(label)) return false;
    rules.set(first + labels.indexOf(label), rule);
  }
  if (BOUNDS.includes(feature.below_bound)) {
    if (levels.kind !== "bins" || levels.lower_bound === null) return false;
    if (atoms.values[missingLevel(levels) - 1] !== null) rules.set(missingLevel(levels) - 1, feature.below_bound!);
  }
  if (BOUNDS.includes(feature.missing)) rules.set(missingLevel(levels), feature.missing!);
  if (!rules.size) return null;
  const special = (feature.special_values ?? []).map(labelOf);
  const among = levels.kind === "bins" ? [...Array(orderedCount(levels)).keys()] : [...levels.categories.keys()];
  const reached = among.filter(
    (k) => atoms.values[k] !== null && !(levels.kind === "categories" && special.includes(levels.categories[k])),
  );
  const seen = reached.filter((k) => atoms.seen[k]);
  const measured = seen.length ? seen : reached;
  const sign = model.schema.adverse === "negative" ? -1 : 1;
  return usersOf(model, name).every(
    (user) => user.weight >= 0 && [...rules].every(([level, rule]) => keeps(user, atoms, level, rule, measured, sign)),
  );
}

function keeps(user: ReadyPart, atoms: Atoms, level: number, rule: Rule, measured: number[], sign: number): boolean {
  const { part } = user;
  if (part.kind === "trees") return false;
  if (rule === "neutral") return [alone(part, atoms, level), ...rowsAt(user, atoms, level).flat()].every((s) => s === 0);
  const above = measured.map((other) => least(user, part, atoms, level, other, sign) >= 0);
  return !above.length || (rule === "not_better" ? above.some(Boolean) : above.every(Boolean));
}

// ---- links, weights, sums

const linksOf = (form: Form): Link[] => [
  ...form.parts.map((part) => part.link),
  ...(form.pool.kind !== "alone" && form.pool.link ? [form.pool.link] : []),
];

function staysInside(link: Link): boolean {
  if (link.kind === "logistic") return true;
  if (link.kind === "linear") return link.slope > 0 && link.low >= 0 && link.low < link.high && link.high <= 1;
  const inside = link.values.slice(1, -1).every((value) => value >= 0 && value <= 1);
  return inside && rises(link.knots) && rises(link.values) && link.knots.length === link.values.length;
}

function weightsClaim(form: Form): Claim {
  if (form.pool.kind === "alone") return { name: "weights", holds: true };
  const { weights, kind } = form.pool;
  const positive = weights.every((weight) => weight >= 0);
  if (kind === "layer") return { name: "subscale weights not negative", holds: positive };
  return { name: "weights are a distribution", holds: positive && Math.abs(exactSum(weights) - 1) < 1e-9 };
}

/** How far contributions of sampled rows are from the difference of two risks. */
function largestGap(model: Model, atoms: Map<string, Atoms>): number {
  let state = 1;
  const draw = (n: number) => ((state = (state * 48271) % 2147483647), state % n);
  let first: Row | null = null;
  let gap = 0;
  for (let n = 0; n < ROWS; n++) {
    const row: Row = {};
    for (const [name, { values, seen }] of atoms) {
      const usable = values.filter((_, k) => seen[k]);
      row[name] = usable.length ? usable[draw(usable.length)] : null;
    }
    try {
      first ??= (risk(model, row), row);
      const found = explain(model, row, first);
      const terms = found.parts.flatMap((part) => (part.terms.length ? part.terms.map((term) => term.value) : [part.total]));
      const size = 1 + terms.reduce((total, value) => total + Math.abs(value), 0);
      gap = Math.max(gap, Math.abs(found.referenceRisk + exactSum(terms) - risk(model, row)) / size);
    } catch (error) {
      if (!(error instanceof RowError)) throw error; // a level that the schema refuses
    }
  }
  return gap;
}
