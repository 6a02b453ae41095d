/** Values that training never saw: as form/beyond.py. */

import { binOf, codeOf, isMissing, levelCount } from "./levels";
import { featureOf } from "./score";
import type { Model, Row, Shape } from "./types";

/** The features whose value is beyond the range of training, or a category of its own. */
export const beyond = (model: Model, row: Row): string[] => model.features.filter((name) => isBeyond(model, name, row));

function isBeyond(model: Model, name: string, row: Row): boolean {
  const range = model.info.inputs.find((input) => input.feature === name)?.range;
  const value = row[name];
  if (range) {
    const { special_values = [], lower_bound = null } = featureOf(model, name);
    const bins = { kind: "bins" as const, edges: [], special_values: special_values.map(Number), lower_bound };
    return typeof value === "number" && binOf(bins, value) === 0 && (value < range[0] || value > range[1]);
  }
  const term = model.parts.flatMap((part) => part.terms).find((t) => t.name === name && t.shape.kind !== "pair");
  const levels = (term?.shape as Shape | undefined)?.levels;
  return levels?.kind === "categories" && !isMissing(value) && codeOf(levels, name, value) === levelCount(levels) - 1;
}
