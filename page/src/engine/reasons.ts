/** Reasons against an applicant, ranked, in the schema's words: as explain/reasons.py. */

import { atomsOf, defaultTexts } from "./atoms";
import { defaultReference, keysOf, rowReference, split } from "./contributions";
import { codeOf, labels } from "./levels";
import { featureOf } from "./score";
import type { Levels, Model, Reason, Row, Shape } from "./types";

const NOTHING = 1e-12; // a loss up to this is rounding, not a reason

/** +1 where a high risk hurts the applicant. */
export const signOf = (model: Model): number => (model.payload.adverse === "negative" ? -1 : 1);

/** Returns the k largest losses against the best levels there are, told subscale by subscale. */
export function reasons(model: Model, row: Row, k = 4, reference?: Row | "typical" | "best"): Reason[] {
  const against =
    typeof reference === "object" ? rowReference(model, reference) : defaultReference(model, reference ?? "best");
  const { candidates, homes } = candidatesOf(model);
  const found = split(model, row, against, true);
  const sign = signOf(model);
  const loss = new Map(candidates.map((name) => [name, 0]));
  const totals = new Map<string, number>();
  found.keys.forEach(({ subscale, feature }, j) => {
    const name = feature ?? subscale;
    loss.set(name, loss.get(name)! + sign * found.pieces[j]);
    totals.set(subscale, (totals.get(subscale) ?? 0) + sign * found.pieces[j]);
  });
  const words = candidates.map((name) => textFor(model, name, row));
  const losses = candidates.map((name) => loss.get(name)!);
  merge(losses, words);
  const chosen = top(losses, Math.max(1, Math.min(k, candidates.length)));
  const number = new Map([...new Set(homes)].map((name, i) => [name, i]));
  const total = (j: number) => totals.get(homes[j])!;
  // Stable, so losses stay in order inside a subscale.
  chosen.sort((a, b) => total(b) - total(a) || number.get(homes[a])! - number.get(homes[b])!);
  return chosen.map((j) => ({ feature: candidates[j], subscale: homes[j], text: words[j], cost: losses[j] }));
}

/** What can be named, in the schema's order, and the first subscale of each. */
function candidatesOf(model: Model): { candidates: string[]; homes: string[] } {
  const subscales = new Map<string, string>();
  for (const { subscale, feature } of keysOf(model, true)) {
    const name = feature ?? subscale;
    if (!subscales.has(name)) subscales.set(name, subscale);
  }
  const order = model.info.order.features;
  const position = new Map(order.map((name, i) => [name, i]));
  const candidates = [...subscales.keys()].sort(
    (a, b) => (position.get(a) ?? order.length) - (position.get(b) ?? order.length),
  );
  return { candidates, homes: candidates.map((name) => subscales.get(name)!) };
}

/** Adds the losses that have the same words to the first of them in the schema's order. */
function merge(losses: number[], words: string[]): void {
  const first = new Map<string, number>();
  losses.forEach((loss, j) => {
    if (!(loss > 0)) return;
    const before = first.get(words[j]);
    if (before === undefined) first.set(words[j], j);
    else {
      losses[before] += loss;
      losses[j] = 0;
    }
  });
}

/** The candidates with the k largest positive losses; of equal ones the first comes first. */
function top(losses: number[], k: number): number[] {
  const order = losses.map((_, j) => j).filter((j) => losses[j] > NOTHING);
  return order.sort((a, b) => losses[b] - losses[a] || a - b).slice(0, k);
}

// ---- words

const levelsKnown = new WeakMap<Model, Map<string, Levels>>();

/** The levels of every feature: of its first shape, or of its atoms where trees or pairs alone read it. */
function levelsOf(model: Model): Map<string, Levels> {
  let found = levelsKnown.get(model);
  if (found) return found;
  found = new Map();
  for (const { terms } of [...model.parts].reverse()) {
    for (const term of terms) if (term.shape.kind !== "pair") found.set(term.name, (term.shape as Shape).levels);
  }
  if (found.size < model.features.length) {
    for (const [name, atoms] of atomsOf(model)) if (!found.has(name)) found.set(name, atoms.levels);
  }
  levelsKnown.set(model, found);
  return found;
}

/** The words for one candidate, a feature at the applicant's level or a whole subscale. */
function textFor(model: Model, name: string, row: Row): string {
  const feature = model.info.order.features.includes(name) ? featureOf(model, name) : null;
  const text = feature?.reason ?? name;
  const levels = feature && levelsOf(model).get(name);
  if (!feature || !levels) return text;
  const code = codeOf(levels, name, row[name]);
  const label = labels(levels)[code];
  const own = Object.entries(feature.reasons ?? {}).findLast(([key]) => keyLabel(levels, key) === label);
  return own?.[1] || (defaultTexts(name, levels).get(code) ?? text);
}

function keyLabel(levels: Levels, key: string): string {
  return levels.kind === "bins" && labels(levels).includes(`= ${key}`) ? `= ${key}` : key;
}
