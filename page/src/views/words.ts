/** Names of levels, features and views as a person reads them. */

import { type Explanation, type Input, labelOf, type Model, type Payload, type Row, type Shape, type Term, type Value } from "../engine";
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

const PROTECTED = "Protected attributes";

/** An explanation in people's words, the most important first; protected features stand together, as one sum. */
export function forPeople(model: Model, explanation: Explanation, row: Row): Explanation {
  const [rank, left] = [importanceRank(model), leftOf(model)];
  const guarded = new Set(model.info.inputs.filter((i) => i.protected).map((i) => i.feature));
  const together = { name: PROTECTED, total: 0, terms: [] as Term[] };
  const parts = explanation.parts.flatMap((part) => {
    if (!part.terms.length) return [part];
    const open = part.terms.filter((t) => !t.features.some((f) => guarded.has(f)));
    const hidden = part.terms.filter((t) => !open.includes(t)).reduce((sum, t) => sum + t.value, 0);
    together.total += hidden;
    const terms = open
      .filter((t) => !left.has(t.name))
      .sort((a, b) => rank(a.name) - rank(b.name))
      .map((t) => ({
        ...t,
        name: titleOf(model, t.name, t.features),
        text: t.features.map((f) => say(model, f, row[f])).join(", "),
      }));
    return terms.length ? [{ ...part, total: part.total - hidden, terms }] : [];
  });
  return { ...explanation, parts: guarded.size ? [...parts, together] : parts };
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

/** A subscale's name; features without one have a mark of Python's instead. */
export const subscaleText = (name: string) =>
  name === "(no subscale)" ? "All features" : name === "(across subscales)" ? "Features together" : name;

/** The features in use, in the order in which they are asked for: by subscale. */
export function bySubscale(inputs: readonly Input[]): [string, Input[]][] {
  const groups = new Map<string, Input[]>();
  for (const input of inputs) {
    if (input.left) continue;
    const group = groups.get(input.subscale);
    if (group) group.push(input);
    else groups.set(input.subscale, [input]);
  }
  return [...groups];
}

/** The features that have left a model. */
export const leftOf = (model: Model): ReadonlySet<string> =>
  new Set(model.info.inputs.filter((i) => i.left).map((i) => i.feature));

/** The rank of every term by importance; what is not ranked comes last. */
export function importanceRank(model: Model): (name: string) => number {
  const rank = new Map(model.info.importance.map((i, k) => [i.feature ?? i.subscale, k]));
  return (name) => rank.get(name) ?? rank.size;
}
