/** Reasons and decisions: computed from the resolved ranking of the payload, as form/ranking.py says. */

import { defaultReference, split } from "./contributions";
import { codeOf } from "./levels";
import type { Found, Model, Row } from "./types";

const LEAST = 1e-12; // a cost up to this is rounding, not a reason

/** Whether a cut-off refuses a risk: at or above it; where the positive outcome is the good one, below it. */
export const refused = (model: Model, risk: number, cutoff: number): boolean =>
  model.info.ranking.sign > 0 ? risk >= cutoff : risk < cutoff;

/** Returns the reasons against an applicant, and how many protected features were withheld. */
export function reasons(model: Model, row: Row): Found {
  const { ranking } = model.info;
  const { candidates, subscales, inquiries, k } = ranking;
  const { cost, totals } = costsOf(model, row);
  const words = candidates.map((name, j) => {
    const own = ranking.by_level[j];
    return own ? own.texts[codeOf(own.levels, name, row[name])] : ranking.base[j];
  });
  merge(cost, words, ranking.protected);
  const guarded = cost.filter((_, j) => ranking.protected[j]);
  ranking.protected.forEach((never, j) => never && (cost[j] = 0));
  const chosen = largest(cost).slice(0, k);
  const least = chosen.length === k ? cost[chosen[k - 1]] : LEAST;
  const withheld = guarded.filter((amount) => amount > least).length;
  const total = (j: number) => totals.get(subscales[j])!;
  if (ranking.by_subscale) {
    // Stable, so costs stay in order inside a subscale.
    chosen.sort((a, b) => total(b) - total(a) || subscales.indexOf(subscales[a]) - subscales.indexOf(subscales[b]));
  }
  if (!chosen.some((j) => inquiries[j])) chosen.push(...largest(cost).filter((j) => inquiries[j]).slice(0, 1));
  const said = chosen.map((j) => ({
    feature: candidates[j],
    subscale: subscales[j],
    text: ranking.words[words[j]],
    cost: cost[j],
    subscaleCost: total(j),
  }));
  return { reasons: said, withheld };
}

/** What every candidate costs, and what may be named of every subscale. */
function costsOf(model: Model, row: Row): { cost: number[]; totals: Map<string, number> } {
  const { candidates, reference, sign, protected: never } = model.info.ranking;
  const column = new Map(candidates.map((name, j) => [name, j]));
  const cost = candidates.map(() => 0);
  const totals = new Map<string, number>();
  const found = split(model, row, defaultReference(model, reference), true);
  found.keys.forEach(({ subscale, feature }, j) => {
    const candidate = column.get(feature ?? subscale)!;
    cost[candidate] += sign * found.pieces[j];
    if (!never[candidate]) totals.set(subscale, (totals.get(subscale) ?? 0) + sign * found.pieces[j]);
  });
  return { cost, totals };
}

/** Adds the costs that have the same words to the first of them, but for those that are protected. */
function merge(cost: number[], words: number[], never: boolean[]): void {
  const first = new Map<number, number>();
  cost.forEach((amount, j) => {
    if (!(amount > 0) || never[j]) return;
    const before = first.get(words[j]);
    if (before === undefined) first.set(words[j], j);
    else {
      cost[before] += amount;
      cost[j] = 0;
    }
  });
}

/** The candidates that cost something, the largest first; of equal ones the first comes first. */
const largest = (cost: number[]): number[] =>
  cost
    .map((_, j) => j)
    .filter((j) => cost[j] > LEAST)
    .sort((a, b) => cost[b] - cost[a] || a - b);
