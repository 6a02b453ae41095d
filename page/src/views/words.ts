/** Names of levels, features and views as a person reads them. */

import type { Input, Levels, Model, Payload, Shape, Value } from "../engine";
import { number } from "./format";

/** Whether edges stand half way between whole numbers, as they do for counts. */
const halves = (edges: readonly number[]) =>
  edges.length > 0 && edges.every((e) => Number.isInteger(e * 2)) && edges.some((e) => !Number.isInteger(e));

/** A name per level, in the order of the form: ordered levels first, then those outside the order. */
export function levelNames(levels: Levels): string[] {
  if (levels.kind === "categories") {
    const others = (name: string) => levels.groups?.[name] ?? [];
    const named = levels.categories.map((c) => (others(c).length ? `${c} (with ${others(c).join(", ")})` : c));
    return [...named, "missing", "unseen"];
  }
  const { edges } = levels;
  const last = edges.length - 1;
  let bins = ["any value"];
  if (edges.length && halves(edges)) {
    const [up, down] = [edges.map((e) => number(Math.floor(e))), edges.map((e) => number(Math.floor(e) + 1))];
    const inner = edges.slice(1).map((_, j) => (down[j] === up[j + 1] ? up[j + 1]! : `${down[j]} to ${up[j + 1]}`));
    bins = [`≤ ${up[0]}`, ...inner, `≥ ${down[last]}`];
  } else if (edges.length) {
    const text = edges.map((e) => number(e));
    bins = [`≤ ${text[0]}`, ...edges.slice(1).map((_, j) => `> ${text[j]} to ${text[j + 1]}`), `> ${text[last]}`];
  }
  const special = levels.special_values.map((v) => `= ${number(v)}`);
  const below = levels.lower_bound === null ? [] : [`< ${number(levels.lower_bound)}`];
  return [...bins, ...special, ...below, "missing"];
}

/** The text at every boundary between bins. */
export const edgeTexts = (edges: readonly number[]) => edges.map((e) => number(e, 4));

export function valueText(value: Value | undefined): string {
  if (value === null || value === undefined || value === "") return "missing";
  return typeof value === "number" ? number(value) : value;
}

/** The words for a payload's outcome, which is bad for the applicant, or good. */
export function vocabulary(payload: Payload) {
  const bad = payload.adverse === "positive";
  return { chance: bad ? "risk" : "probability", Chance: bad ? "Risk" : "Probability", kind: bad ? "bad" : "good" };
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
  name === "(no subscale)" ? "Other features" : name === "(across subscales)" ? "Across subscales" : name;

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
