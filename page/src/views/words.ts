/** Names of levels, features and views as a person reads them. */

import { type Explanation, type Input, labelOf, type Model, type Payload, type Row, type Shape, type Value } from "../engine";
import { number } from "./format";

/** The text at every boundary between bins. */
export const edgeTexts = (edges: readonly number[]) => edges.map((e) => number(e, 4));

const inputOf = (model: Model, feature: string) => model.info.inputs.find((i) => i.feature === feature);

/** What people call a feature, or a pair of features. */
export function titleOf(model: Model, name: string, features: readonly string[] = [name]): string {
  return features.map((feature) => inputOf(model, feature)?.label ?? name).join(" with ");
}

/** A value of a feature as people say it. */
export function say(model: Model, feature: string, value: Value | undefined): string {
  const input = inputOf(model, feature)!;
  if (value === null || value === undefined || value === "") return input.missing_name;
  const label = labelOf(value);
  if (Object.hasOwn(input.labels, label)) return input.labels[label];
  if (typeof value !== "number" || input.kind === "categorical") return label;
  if (input.special_values.includes(value)) return input.special_names[input.special_values.indexOf(value)];
  return number(value, 12) + (input.unit === null ? "" : input.unit === "%" ? "%" : ` ${input.unit}`);
}

/** Whether a feature, or one of a pair, is protected. */
export const isProtected = (model: Model, features: readonly string[]) =>
  features.some((feature) => inputOf(model, feature)?.protected);

/** One bar: a feature or a pair, and what the applicant has there. */
export interface Piece {
  name: string;
  text: string;
  value: number;
}

/** An explanation in people's words. */
export interface Told {
  risk: number;
  referenceRisk: number;
  parts: { name: string; total: number; terms: Piece[] }[];
}

/**
 * An explanation in people's words, the most important first; protected features stand together, as one sum.
 * Compared with another row, only what differs is shown.
 */
export function forPeople(model: Model, explanation: Explanation, row: Row, other?: Row): Told {
  const [rank, left, ranking] = [importanceRank(model), leftOf(model), model.info.ranking];
  const together: Told["parts"][number] = { name: "Protected attributes", total: 0, terms: [] };
  const differs = (feature: string) => !other || other[feature] !== row[feature];
  const text = (feature: string) => {
    const now = say(model, feature, row[feature]);
    return other && differs(feature) ? `${say(model, feature, other[feature])} → ${now}` : now;
  };
  const parts = explanation.parts.flatMap((part): Told["parts"] => {
    const name = subscaleText(model, part.name);
    if (!part.terms.length) {
      if (!ranking.protected[ranking.candidates.indexOf(part.name)]) return [{ name, total: part.total, terms: [] }];
      together.total += part.total;
      return [];
    }
    const open = part.terms.filter((t) => !isProtected(model, t.features));
    const hidden = part.terms.filter((t) => !open.includes(t)).reduce((sum, t) => sum + t.value, 0);
    together.total += hidden;
    const terms = open
      .filter((t) => !left.has(t.name) && t.features.some(differs))
      .sort((a, b) => rank(a.name) - rank(b.name))
      .map((t) => ({ name: titleOf(model, t.name, t.features), text: t.features.map(text).join(", "), value: t.value }));
    return terms.length ? [{ name, total: part.total - hidden, terms }] : [];
  });
  parts.sort((a, b) => +(a.name === OTHER) - +(b.name === OTHER));
  if (model.info.inputs.some((i) => i.protected && differs(i.feature))) parts.push(together);
  return { risk: explanation.risk, referenceRisk: explanation.referenceRisk, parts };
}

/** The words for a payload's outcome, which is bad for the applicant, or good. */
export function vocabulary(payload: Payload) {
  const bad = payload.adverse === "positive";
  return { chance: bad ? "risk" : "probability", kind: bad ? "bad" : "good" };
}

export const DIRECTIONS = {
  increasing: { mark: "↗", text: "the probability may only rise with it" },
  decreasing: { mark: "↘", text: "the probability may only fall with it" },
  none: { mark: "", text: "no direction" },
} as const;

/** The shape of a feature in a part. */
export function shapeOf(model: Model, part: string, feature: string): Shape | undefined {
  const found = model.form.parts.find((p) => p.name === part);
  return found?.kind === "additive" ? found.shapes[feature] : undefined;
}

/** The level that holds a label together with others; null where the label is a level itself, or unknown. */
export function groupOf(model: Model, feature: string, label: string): string | null {
  for (const part of model.form.parts) {
    const levels = part.kind === "additive" ? part.shapes[feature]?.levels : undefined;
    if (levels?.kind !== "categories") continue;
    const found = Object.entries(levels.groups ?? {}).find(([, labels]) => labels.includes(label));
    if (found) return found[0];
  }
  return null;
}

const OTHER = "Other features";

/** A subscale's name; features without one have a mark of Python's instead. */
export function subscaleText(model: Model, name: string): string {
  if (name === "(across subscales)") return "Combinations";
  return name === "(no subscale)" ? (model.info.order.subscales.length ? OTHER : "All features") : name;
}

/** The features in use, in the order in which they are asked for: by subscale, those without one last. */
export function bySubscale(model: Model): [string, Input[]][] {
  const groups = new Map<string, Input[]>();
  for (const input of model.info.inputs) {
    if (input.left) continue;
    const name = subscaleText(model, input.subscale);
    const group = groups.get(name);
    if (group) group.push(input);
    else groups.set(name, [input]);
  }
  return [...groups].sort(([a], [b]) => +(a === OTHER) - +(b === OTHER));
}

/** The features that have left a model. */
export const leftOf = (model: Model): ReadonlySet<string> =>
  new Set(model.info.inputs.filter((i) => i.left).map((i) => i.feature));

/** The rank of every term by importance; what is not ranked comes last. */
export function importanceRank(model: Model): (name: string) => number {
  const rank = new Map(model.info.importance.map((i, k) => [i.feature ?? i.subscale, k]));
  return (name) => rank.get(name) ?? rank.size;
}
