/** What every subscale and feature contributes, so that the parts add up: as explain/contributions.py. */

import { meanRate, valueOf } from "./links";
import { pairwiseSum } from "./numbers";
import { lastLink, pairLevels, poolScore, refuseForbidden, riskOf } from "./score";
import type { Explanation, Formula, Model, PairTable, ReadyPart, Reference, Row } from "./types";

const NO_SUBSCALE = "(no subscale)";
const ACROSS = "(across subscales)";
const MOST = 100; // a piece of a probability; sums of larger ones lose the digits that count

/** One column of an explanation: a feature or a pair of a subscale, or a whole subscale of trees. */
export interface Key {
  subscale: string;
  feature: string | null;
}

/** The columns of an explanation; with `featuresOnly` pairs are shared between their features. */
export function keysOf(model: Model, featuresOnly = false): Key[] {
  const homes = model.form.pool.kind === "alone" ? subscales(model) : null;
  return model.parts.flatMap((part): Key[] => {
    if (part.part.kind === "trees") return [{ subscale: part.name, feature: null }];
    const names = featuresOnly ? part.features : part.terms.map((term) => term.name);
    return names.map((feature) => ({ subscale: homes ? homes.get(feature)! : part.name, feature }));
  });
}

/** The subscale each term is shown under: the first that lists the feature; of a pair, that of both features. */
function subscales(model: Model): Map<string, string> {
  const homes = new Map(model.info.order.features.map((name) => [name, NO_SUBSCALE]));
  for (const subscale of [...model.info.order.subscales].reverse()) {
    for (const name of model.schema.subscales![subscale]) homes.set(name, subscale);
  }
  for (const { name, features } of model.parts.flatMap((part) => part.terms)) {
    if (features.length < 2) continue;
    const [u, v] = features.map((feature) => homes.get(feature)!);
    homes.set(name, u === v ? u : ACROSS);
  }
  return homes;
}

/** A row as what others are compared with. */
export function rowReference(model: Model, row: Row): Reference {
  refuseForbidden(model, row);
  return {
    name: "row",
    points: model.parts.map((part) => ({
      score: part.score(row),
      terms: named(part.terms.map((term) => [term.name, term.value(row)])),
      shares: named(part.pairs.map((pair, j) => [part.terms[part.terms.length - part.pairs.length + j].name, at(pair, row)])),
    })),
  };
}

function named<T>(entries: [string, T][]): Record<string, T> {
  const found = Object.create(null) as Record<string, T>;
  for (const [name, value] of entries) found[name] = value;
  return found;
}

function at(pair: PairTable, row: Row): [number[], number[]] {
  const codes = pairLevels(pair, row);
  const share = (axis: 0 | 1, n: number) => Array.from({ length: n }, (_, k) => (k === codes[axis] ? 1 : 0));
  return [share(0, pair.scores.length), share(1, pair.scores[0].length)];
}

/** What the page compares with by default: the typical applicant, or where nobody knows it, the row to start from. */
export function defaultReference(model: Model, name: "typical" | "best"): Reference {
  const { references } = model.info;
  return references[name] ?? references.typical ?? rowReference(model, model.typical);
}

export interface Pieces {
  keys: Key[];
  pieces: number[];
  risk: number;
  referenceRisk: number;
}

/** Returns the pieces of the risk, one per column, that lead from the reference to the row. */
export function split(model: Model, row: Row, reference: Reference, featuresOnly = false): Pieces {
  refuseForbidden(model, row);
  const link = lastLink(model.form);
  const pooled = model.form.pool.kind !== "alone";
  const scores: number[] = [];
  let pieces: number[] = [];
  model.parts.forEach((part, k) => {
    const score = part.score(row);
    const own = differences(part, reference.points[k], row, score, featuresOnly);
    if (pooled) {
      followLink(part.part.link, reference.points[k].score, score, own);
      for (let j = 0; j < own.length; j++) own[j] *= part.weight;
    }
    scores.push(score);
    pieces = [...pieces, ...own];
  });
  const starts = reference.points.map((point) => point.score);
  const score = poolScore(model, scores);
  if (link !== null) followLink(link, poolScore(model, starts), score, pieces);
  const risk = link === null ? score : valueOf(link, score);
  return { keys: keysOf(model, featuresOnly), pieces, risk, referenceRisk: riskOf(model, starts) };
}

function differences(
  part: ReadyPart,
  point: Reference["points"][number],
  row: Row,
  score: number,
  featuresOnly: boolean,
): number[] {
  if (part.part.kind === "trees") return [score - point.score];
  const terms = part.terms.map((term) => term.value(row) - point.terms[term.name]);
  return featuresOnly && part.pairs.length ? sharePairs(part, point, row, terms) : terms;
}

/** Differences of scores by feature: of its shape, and its share of its pairs by Shapley's rule. */
function sharePairs(part: ReadyPart, point: Reference["points"][number], row: Row, terms: number[]): number[] {
  const shapes = part.terms.length - part.pairs.length;
  const column = new Map(part.features.map((name, j) => [name, j]));
  const pieces = part.features.map((_, j) => (j < shapes ? terms[j] : 0));
  part.pairs.forEach((pair, p) => {
    const whole = terms[shapes + p];
    const [u, v] = pairLevels(pair, row);
    const [atU, atV] = point.shares[part.terms[shapes + p].name];
    let first = 0;
    let second = 0;
    atV.forEach((share, j) => (first += pair.scores[u][j] * share));
    atU.forEach((share, i) => (second += share * pair.scores[i][v]));
    const lead = first - second;
    pieces[column.get(pair.features[0])!] += (whole + lead) / 2;
    pieces[column.get(pair.features[1])!] += (whole - lead) / 2;
  });
  return pieces;
}

/** Turns differences of scores into pieces of the probability, in place. */
function followLink(link: Parameters<typeof valueOf>[0], start: number, score: number, pieces: number[]): void {
  const rate = meanRate(link, start, score);
  for (let j = 0; j < pieces.length; j++) pieces[j] *= rate;
  addUp(pieces, valueOf(link, score) - valueOf(link, start));
}

/** Lets the pieces add up to the whole in floating point, too. */
function addUp(pieces: number[], whole: number): void {
  const sizes = pieces.map(Math.abs);
  const size = Math.max(0, ...sizes);
  if (size > MOST) for (let j = 0; j < pieces.length; j++) pieces[j] *= MOST / size;
  const gap = whole - pairwiseSum(pieces);
  if (Math.abs(gap) > 1e-13) {
    const now = pieces.map(Math.abs);
    pieces[now.indexOf(Math.max(...now))] += gap;
  }
}

/** Returns the terms of the formula; null where the risk is no sum of terms. As reference="zero" in Python. */
export function formula(model: Model, row: Row): Formula | null {
  const link = lastLink(model.form);
  const { pool } = model.form;
  if (pool.kind !== "mixture" && link?.kind !== "linear") return null;
  refuseForbidden(model, row);
  const scores = model.parts.map((part) => part.score(row));
  let start = pool.kind === "layer" ? pool.intercept : 0;
  let terms: Formula["terms"];
  if (pool.kind === "alone") {
    const { part, terms: own } = model.parts[0];
    const zeros = own.map((term) => {
      const shape = part.kind === "trees" ? undefined : part.shapes[term.name];
      return shape?.kind === "line" ? -shape.slope * shape.center : 0;
    });
    start = zeros.reduce((sum, zero) => sum + zero, part.intercept);
    terms =
      part.kind === "trees"
        ? [{ name: part.name, features: [], own: null, value: scores[0] - start }]
        : own.map((term, j) => ({ name: term.name, features: term.features, own: null, value: term.value(row) - zeros[j] }));
  } else {
    terms = model.parts.map((part, k) => {
      const own = valueOf(part.part.link, scores[k]);
      return { name: part.name, features: [], own, value: part.weight * own };
    });
  }
  if (link?.kind === "linear") {
    for (const term of terms) term.value *= link.slope;
    start = link.offset + link.slope * start;
  } else if (link !== null) {
    const rate = meanRate(link, start, poolScore(model, scores));
    for (const term of terms) term.value *= rate;
    start = valueOf(link, start);
  }
  return { start, terms, total: start + pairwiseSum(terms.map((term) => term.value)) };
}

/** Returns what every subscale and feature contributes to a row's risk, against the typical applicant or a row. */
export function explain(model: Model, row: Row, reference?: Row | "typical" | "best"): Explanation {
  const against =
    typeof reference === "object" ? rowReference(model, reference) : defaultReference(model, reference ?? "typical");
  const found = split(model, row, against);
  const groups = new Map<string, Explanation["parts"][number]>();
  const pairs = new Map(model.parts.flatMap((part) => part.terms.map((term) => [term.name, term.features])));
  found.keys.forEach(({ subscale, feature }, j) => {
    const group = groups.get(subscale) ?? { name: subscale, total: 0, terms: [] };
    groups.set(subscale, group);
    group.total += found.pieces[j];
    if (feature !== null) group.terms.push({ name: feature, features: pairs.get(feature)!, value: found.pieces[j] });
  });
  return { risk: found.risk, referenceRisk: found.referenceRisk, reference: against.name, parts: [...groups.values()] };
}
