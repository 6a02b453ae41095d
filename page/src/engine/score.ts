/** Scores and risks, added up in the order in which Python adds them: as form/shapes.py, trees.py, score.py, form.py. */

import { codeOf, isMissing, levelCount, numberOf, RowError } from "./levels";
import { valueOf } from "./links";
import { bisectRight, clip, labelOf } from "./numbers";
import type {
  Curve,
  Feature,
  Form,
  Link,
  Model,
  ModelPayload,
  PairTable,
  Part,
  Payload,
  ReadyPart,
  ReadyTerm,
  Row,
  Rule,
  Schema,
  Shape,
  Tree,
  TreeInput,
  TreePart,
} from "./types";

/** What one feature may add to a score. */
const LARGEST = 1e100;

/** Prepares one of the payload's models for evaluation. */
export function prepare(payload: Payload, index = 0): Model {
  const info = payload.models[index];
  const form = info.form;
  const parts = form.parts.map((part, k) => readyPart(form, info, part, k));
  const features = [...new Set(parts.flatMap((part) => part.features))];
  return { payload, info, form, schema: form.schema, features, typical: info.typical, parts };
}

/** Returns the probability of the positive outcome. */
export function risk(model: Model, row: Row): number {
  refuseForbidden(model, row);
  return riskOf(
    model,
    model.parts.map((part) => part.score(row)),
  );
}

/** The risk, from the score of every part. */
export function riskOf(model: Model, scores: number[]): number {
  const score = poolScore(model, scores);
  const link = lastLink(model.form);
  return link === null ? score : valueOf(link, score);
}

/** The score before the last link, from the score of every part. */
export function poolScore(model: Model, scores: number[]): number {
  const { pool } = model.form;
  if (pool.kind === "alone") return scores[0];
  let score = pool.kind === "layer" ? pool.intercept : 0;
  model.parts.forEach((part, k) => (score += part.weight * valueOf(part.part.link, scores[k])));
  return pool.kind === "mixture" ? Math.min(score, 1) : score;
}

/** The link that gives the output; null for a mixture that is not calibrated. */
export function lastLink(form: Form): Link | null {
  if (form.pool.kind === "alone") return form.parts[0].link;
  return form.pool.link ?? null;
}

const isStrict = (schema: Schema, name: string) => schema.features?.[name]?.unseen === "error";

function readyPart(form: Form, info: ModelPayload, part: Part | TreePart, k: number): ReadyPart {
  const weight = form.pool.kind === "alone" ? 1 : form.pool.weights[k];
  if (part.kind === "trees") {
    const features = [...new Set(part.inputs.map((input) => input.feature))];
    const score = (row: Row) => treeScore(part, form.schema, row);
    return { part, name: part.name, weight, features, terms: [], pairs: [], score };
  }
  const pairs = part.pairs ?? [];
  const terms = [
    ...info.order.shapes[k].map((name) => shapeTerm(name, part.shapes[name], isStrict(form.schema, name))),
    ...pairs.map((pair) => pairTerm(pair, form.schema)),
  ];
  const score = (row: Row) => {
    let sum = part.intercept;
    for (const term of terms) sum += term.value(row);
    return sum;
  };
  const features = [...new Set(terms.flatMap((term) => term.features))];
  return { part, name: part.name, weight, features, terms, pairs, score };
}

/** Throws if a field is empty or special where the schema says "error": as schema/check.py. */
export function refuseForbidden(model: Model, row: Row): void {
  for (const name of model.features) {
    const { kind, missing, below_bound, lower_bound, special_rules = {}, special_values = [] } = featureOf(model, name);
    if (missing === "error" && isMissing(row[name])) throw new RowError(name, " must not be empty.");
    const codes = special_values.filter((code) => isForbidden(special_rules, labelOf(code)));
    if (isMissing(row[name]) || (!codes.length && below_bound !== "error")) continue;
    const label = labelOf(kind === "categorical" ? row[name]! : numberOf(name, row[name]));
    if (codes.some((code) => labelOf(code) === label)) throw new RowError(name, ": this code is not allowed.");
    if (kind === "categorical" || below_bound !== "error" || lower_bound == null) continue;
    const x = numberOf(name, row[name]);
    if (x < lower_bound && !special_values.some((code) => code === x)) {
      throw new RowError(name, ` must not be below ${lower_bound}.`);
    }
  }
}

const isForbidden = (rules: Record<string, Rule>, label: string) =>
  Object.hasOwn(rules, label) && rules[label] === "error";

/** What the schema says of a feature. */
export const featureOf = (model: Model, name: string): Feature => model.schema.features![name];

// ---- shapes

function shapeTerm(name: string, shape: Shape, strict: boolean): ReadyTerm {
  const refused = shape.weights.map((weight) => strict && weight === 0);
  const value = (row: Row) => {
    const level = codeOf(shape.levels, name, row[name]);
    if (refused[level]) throw unseen(name);
    if (shape.kind === "table" || level !== 0) return shape.scores[level];
    const x = numberOf(name, row[name]);
    if (shape.kind === "curve") return curveAt(shape, x);
    return clip(shape.slope * distance(x, shape.center), -LARGEST, LARGEST);
  };
  return { name, features: [name], shape, value };
}

/** The level weights of one axis of a pair. */
export function axisWeights(pair: PairTable, axis: number): number[] {
  const [n, m] = pair.levels.map(levelCount);
  const sums = new Array<number>(axis === 0 ? n : m).fill(0);
  pair.weights.forEach((line, i) => line.forEach((weight, j) => (sums[axis === 0 ? i : j] += weight)));
  return sums;
}

function pairTerm(pair: PairTable, schema: Schema): ReadyTerm {
  const [u, v] = pair.features;
  const refused = [0, 1].map((axis) =>
    axisWeights(pair, axis).map((weight) => isStrict(schema, pair.features[axis]) && weight === 0),
  );
  const value = (row: Row) => {
    const codes = pairLevels(pair, row);
    for (const axis of [0, 1]) {
      if (refused[axis][codes[axis]]) throw unseen(pair.features[axis]);
    }
    return pair.scores[codes[0]][codes[1]];
  };
  return { name: `${u} × ${v}`, features: [u, v], shape: pair, value };
}

/** The levels of a row in a pair. */
export function pairLevels(pair: PairTable, row: Row): [number, number] {
  const [u, v] = pair.features;
  return [codeOf(pair.levels[0], u, row[u]), codeOf(pair.levels[1], v, row[v])];
}

const unseen = (name: string) => new RowError(name, ": this value was not in the training data, and is not allowed.");

const distance = (x: number, origin: number) => clip(x - origin, -Number.MAX_VALUE, Number.MAX_VALUE);

function curveAt(curve: Curve, x: number): number {
  const piece = bisectRight(curve.breaks.slice(1, -1), x);
  const t = distance(x, curve.breaks[piece]);
  const own = curve.coefficients[piece];
  let value = 0;
  for (let power = own.length - 1; power >= 0; power--) value = value * t + own[power];
  return clip(value, -LARGEST, LARGEST);
}

// ---- trees

function treeScore(part: TreePart, schema: Schema, row: Row): number {
  refuseUnseen(part, schema, row);
  const inputs = part.inputs.map((input) => treeInput(input, row));
  let score = part.intercept;
  for (const tree of part.trees) score += leafValue(tree, inputs);
  return score;
}

function refuseUnseen(part: TreePart, schema: Schema, row: Row): void {
  const known = new Map<string, Set<string>>();
  for (const { feature, category, order } of part.inputs) {
    if (category === null && order === null) continue;
    const own = known.get(feature) ?? new Set();
    for (const label of category === null ? order! : [category]) own.add(label);
    known.set(feature, own);
  }
  for (const [name, own] of known) {
    const value = row[name];
    if (isStrict(schema, name) && own.size && !isMissing(value) && !own.has(labelOf(value!))) {
      throw unseen(name);
    }
  }
}

export function treeInput({ feature, category, order, missing }: TreeInput, row: Row): number {
  const value = row[feature];
  if (category === null && order === null) {
    const x = numberOf(feature, value);
    return x === missing ? NaN : x;
  }
  const label = isMissing(value) ? null : labelOf(value!);
  if (order === null) return label === category ? 1 : 0;
  const at = label === null ? -1 : order.indexOf(label);
  return at < 0 ? NaN : at;
}

export function leafValue(tree: Tree, inputs: number[]): number {
  let node = 0;
  while (tree.inputs[node] !== -1) {
    const x = inputs[tree.inputs[node]];
    const left = x <= tree.edges[node] || (tree.missing_left[node] && Number.isNaN(x));
    node = left ? tree.left[node] : tree.right[node];
  }
  return tree.values[node];
}
