"""A JavaScript module (ES module) without dependencies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plainrisk.export.code import CodePrinter, digits
from plainrisk.export.expression import Program, Text
from plainrisk.export.self_test import SelfTest

__all__ = ["javascript_module"]

_HELPERS = """
// An absent key is an error; a missing value is null.
function read(row, name) {
  if (row[name] === undefined) throw new Error(`feature '${name}' is not in the row; a missing value is null`);
  return row[name];
}

// Read a number; missing is NaN.
function number(row, name) {
  const value = read(row, name);
  if (value === null) return NaN;
  if (typeof value !== "number" && typeof value !== "boolean") throw new Error(`${name} must be a number`);
  return Number(value);
}

// Read a category; missing is null, and the number 2 is the category "2".
function text(row, name) {
  const value = read(row, name);
  if (value === null || value !== value) return null;
  return value === true ? "True" : value === false ? "False" : String(value);
}

function clip(x, low, high) {
  return Math.min(Math.max(x, low), high);
}

// Look up a number in cells that are closed on the right; the last value is for missing.
function cell(x, cuts, values) {
  if (x !== x) return values[values.length - 1];
  let low = 0, high = cuts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cuts[middle] < x) low = middle + 1;
    else high = middle;
  }
  return values[low];
}

function label(x, values, missing, unseen) {
  return x === null ? missing : values.has(x) ? values.get(x) : unseen;
}

// The index of the first value that is x, or of the last.
function position(x, values) {
  const index = values.indexOf(x);
  return index < 0 ? values.length - 1 : index;
}
"""

_TAIL = """
// Score all rows of the test; return the largest difference from what the model said.
export function selfTest() {
  let largest = 0;
  ROWS.forEach((values, n) => {
    const answer = score(Object.fromEntries(FEATURES.map((name, j) => [name, values[j]])));
    Object.entries(answer).forEach(([name, value], j) => {
      const expected = EXPECTED[n][j];
      if (value === expected) return;
      const numbers = typeof value === "number" && typeof expected === "number";
      const difference = numbers ? Math.abs(value - expected) : Infinity;
      if (!(difference <= 1e-12)) throw new Error(`row ${n}: ${name} is ${value}, not ${expected}`);
      largest = Math.max(largest, difference);
    });
  });
  return largest;
}
"""


def _js(value: Any) -> str:
    """Return plain data as JavaScript; JSON of ASCII characters is."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


class _Printer(CodePrinter):
    """Prints JavaScript."""

    IF, ELIF, ELSE, END = "if ({}) {{", "}} else if ({}) {{", "} else {", "}"
    ASSIGN, FIRST, COMMENT = "{} = {};", "const {} = {};", "// "
    FUNCTIONS: Mapping[str, str] = {name: f"Math.{name}" for name in ("abs", "exp", "max")}
    LIST, CHOICE, NONE = "[{}]", "({condition} ? {then} : {other})", "null"
    SYMBOLS: Mapping[str, str] = {"==": "===", "and": "&&", "or": "||"}

    def text(self, e: Text) -> str:
        return _js(e.value)

    def is_missing(self, x: str) -> str:
        return f"{x} !== {x}"

    def array(self, values: Sequence[float]) -> str:
        return self.constant(f"[{', '.join(map(digits, values))}]", "const {} = {};")

    def dictionary(self, values: Mapping[str, float]) -> str:
        inside = ", ".join(f"[{_js(label)}, {digits(v)}]" for label, v in values.items())
        return self.constant(f"new Map([{inside}])", "const {} = {};")

    def words(self, values: Sequence[str]) -> str:
        return self.constant(_js(values), "const {} = {};")

    def _declared(self, id: str, note: str) -> Iterator[str]:
        yield f"let {id};{note}"

    def _entry(self, array: str, at: str) -> str:
        return f"{array}[{at}]"


def javascript_module(program: Program, test: SelfTest) -> str:
    """Return the module's text."""
    printer = _Printer()
    body = list(printer.statements(program))
    checks = [f"if ({printer.show(c.condition)}) throw new Error({_js(c.message)});" for c in program.checks]
    reads = [f"const {i.id} = {'text' if i.is_text else 'number'}(row, {_js(i.feature)});" for i in program.inputs]
    answer = [f"    {o.name}: {printer.answer(o)}," for o in program.outputs]  # before the constants are read
    lines = [
        "// A risk model as plain JavaScript: score(row) returns the risk, its contributions, decision and reasons.",
        "// selfTest() scores ROWS, which must give the answers in EXPECTED.",
        f"// {program.head}",
        f"export const FACTS = {_js(dict(program.facts))};",
        f"export const FEATURES = {_js([i.feature for i in program.inputs])};",
        *printer.constants,
        _HELPERS,
        "// The risk of one row (an object by feature), contributions in probability, decision and reasons.",
        "export function score(row) {",
        *(f"  {line}" for line in (*reads, *checks, *body)),
        "  return {",
        *answer,
        "  };",
        "}",
        "",
        _rows("ROWS", test.rows),
        _rows("EXPECTED", test.answers),
        _TAIL.rstrip("\n"),
    ]
    return "\n".join(lines) + "\n"


def _rows(name: str, rows: Sequence[Any]) -> str:
    return "\n".join([f"const {name} = [", *(f"  {_js(row)}," for row in rows), "];"])
