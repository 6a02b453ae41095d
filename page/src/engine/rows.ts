/** One pasted row, as CSV with a header or as JSON. */

import { atomsOf } from "./atoms";
import { codeOf, isMissing, levelCount, numberOf, RowError } from "./levels";
import { labelOf } from "./numbers";
import { risk } from "./score";
import type { Model, Row, Value } from "./types";

const MISSING = new Set(["", "na", "n/a", "nan", "null", "none", "missing"]);

/** Reads one applicant; features that are not given keep the values of the row to start from. */
export function parseRow(model: Model, text: string): { row: Row; problems: string[]; notes: string[] } {
  const row: Row = Object.assign(Object.create(null), model.typical);
  const problems: string[] = [];
  const notes: string[] = [];
  let given: [string, unknown][];
  try {
    given = text.trim().startsWith("{") || text.trim().startsWith("[") ? readJson(text) : readCsv(text);
  } catch (error) {
    return { row, problems: [(error as Error).message], notes };
  }
  const names = new Map(given);
  for (const name of model.features) {
    if (!names.has(name)) continue;
    try {
      row[name] = readValue(model, name, names.get(name));
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  const absent = model.features.filter((name) => !names.has(name));
  if (absent.length === model.features.length) {
    problems.push(`None of these names belongs to the model. It reads ${list(model.features)}.`);
  } else if (absent.length) {
    notes.push(`Not given, so the most frequent value is taken: ${list(absent)}.`);
  }
  if (!problems.length) {
    try {
      risk(model, row);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  return { row, problems, notes };
}

function list(names: string[]): string {
  return names.length > 6 ? `${names.slice(0, 5).join(", ")} and ${names.length - 5} more` : names.join(", ");
}

function readJson(text: string): [string, unknown][] {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw new RowError("", 'This is not JSON. Write {"feature": value, ...}, or a line of names and a line of values.');
  }
  if (Array.isArray(found)) {
    if (found.length !== 1) throw new RowError("", `One applicant is needed, not ${found.length}.`);
    found = found[0];
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) {
    throw new RowError("", 'An object of features is needed: {"feature": value, ...}.');
  }
  return Object.entries(found);
}

function readCsv(text: string): [string, unknown][] {
  // A name in quotes may hold any mark; a table copied from a spreadsheet has tabs.
  const first = text.replace(/"(""|[^"])*"/g, "name").trim().split("\n", 1)[0];
  const separator = ["\t", ";", ","].find((mark) => first.includes(mark)) ?? ",";
  const lines = csvLines(text, separator);
  if (lines.length !== 2) {
    throw new RowError("", `Two lines are needed, the names and one applicant's values; there are ${lines.length}.`);
  }
  const [names, values] = lines;
  if (names.length !== values.length) {
    throw new RowError("", `There are ${names.length} names, but ${values.length} values.`);
  }
  return names.map((name, k) => [name.trim(), values[k]]);
}

/** Cuts text into lines of cells; a cell in quotes may hold separators and line ends. */
function csvLines(text: string, separator: string): string[][] {
  const lines: string[][] = [[]];
  let cell = "";
  let quoted = false;
  const endCell = () => {
    lines[lines.length - 1].push(cell);
    cell = "";
  };
  for (let i = 0; i < text.length; i++) {
    const mark = text[i];
    if (quoted) {
      if (mark !== '"') cell += mark;
      else if (text[i + 1] === '"') cell += text[++i];
      else quoted = false;
    } else if (mark === '"' && cell.trim() === "") [quoted, cell] = [true, ""];
    else if (mark === separator) endCell();
    else if (mark === "\n") {
      endCell();
      lines.push([]);
    } else if (mark !== "\r") cell += mark;
  }
  endCell();
  return lines.filter((line) => line.some((found) => found.trim() !== ""));
}

function readValue(model: Model, name: string, value: unknown): Value {
  const continuous = model.schema.features![name].kind !== "categorical";
  if (value === null || value === undefined) return null;
  if (typeof value === "boolean") return continuous ? Number(value) : labelOf(value);
  if (typeof value === "object") throw new RowError(name, " must be a number or text.");
  if (typeof value === "number") return isMissing(value) ? null : continuous ? numberOf(name, value) : value;
  const text = String(value).trim();
  if (!continuous) return text === "" ? null : labelFrom(model, name, String(value));
  if (MISSING.has(text.toLowerCase())) return null;
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text)) {
    // 1,234 may be a thousand or little more than one: nobody but the sender knows.
    const remedy = /\d,\d/.test(text) ? ", with a point before decimals and no comma" : "";
    throw new RowError(name, ` must be a number${remedy}.`);
  }
  return numberOf(name, Number(text));
}

/** A label of text: as it is if the model knows it, else as the number it writes, since 2.0 and 2 are one category. */
function labelFrom(model: Model, name: string, text: string): Value {
  const { levels } = atomsOf(model).get(name)!;
  const known = (label: string) => codeOf(levels, name, label) < levelCount(levels) - 1;
  const trimmed = text.trim();
  const number = trimmed === "" ? NaN : Number(trimmed);
  const found = [text, trimmed, labelOf(number)].find(known);
  return found ?? (MISSING.has(trimmed.toLowerCase()) ? null : trimmed);
}
