"""A Python module without dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plainrisk.export.code import CodePrinter, digits
from plainrisk.export.expression import Program, Text
from plainrisk.export.self_test import SelfTest

__all__ = ["python_module"]

_HEAD = '''"""A risk model as plain Python: score(row) returns risk, contributions, decision and reasons.

Run this file to test it: every row of ROWS must give the answers in EXPECTED.
"""

from bisect import bisect_left
from math import exp

# {head}
FACTS = {facts}
'''

_HELPERS = '''

def number(row, name):
    """Read a number; missing is NaN."""
    value = row[name]
    if value is None:
        return float("nan")
    if isinstance(value, (str, bytes)):
        raise ValueError(f"feature {name!r} must be a number")
    return float(value)


def text(row, name):
    """Read a category; missing is None, and 2, 2.0 and "2" are the same."""
    value = row[name]
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value)


def clip(x, low, high):
    """Limit a number to the range between two others."""
    return min(max(x, low), high)


def cell(x, cuts, values):
    """Look up a number in cells that are closed on the right; the last value is for missing."""
    return values[-1] if x != x else values[bisect_left(cuts, x)]


def label(x, values, missing, unseen):
    """Look up a category."""
    return missing if x is None else values.get(x, unseen)


def position(x, values):
    """Return the index of the first value that is x, or of the last."""
    return values.index(x) if x in values else len(values) - 1

'''

_FIND_PROBLEM = '''
def find_problem(row):
    """Return the number of the first problem with a row, or None."""
'''

_SCORE = '''

def score(row):
    """Return the risk of one row (a dict by feature), contributions in probability, and reasons."""
    problem = find_problem(row)
    if problem is not None:
        raise ValueError(PROBLEMS[problem])
'''

_TAIL = '''

def self_test():
    """Score all rows of the test; return the largest difference from what the model said."""
    largest = 0.0
    for row, expected in zip(ROWS, EXPECTED):
        answer = score(dict(zip(FEATURES, row)))
        for (name, value), correct in zip(answer.items(), expected):
            if isinstance(correct, float) and value is not None:
                largest = max(largest, abs(value - correct))
            elif value != correct:
                raise AssertionError(f"{name} is {value!r}, not {correct!r}")
    if not largest <= 1e-12:
        raise AssertionError(f"numbers differ by up to {largest}")
    return largest


if __name__ == "__main__":
    print(f"{len(ROWS)} rows agree; the largest difference is {self_test()}")
'''


class _Printer(CodePrinter):
    """Prints Python."""

    def text(self, e: Text) -> str:
        return ascii(e.value)

    def array(self, values: Sequence[float]) -> str:
        return self.constant(_tuple(map(digits, values)), "{} = {}")

    def dictionary(self, values: Mapping[str, float]) -> str:
        inside = ", ".join(f"{label!a}: {digits(v)}" for label, v in values.items())
        return self.constant(f"{{{inside}}}", "{} = {}")

    def words(self, values: Sequence[str]) -> str:
        return self.constant(_tuple(map(ascii, values)), "{} = {}")

    def _entry(self, array: str, at: str) -> str:
        return f"{array}[int({at})]"


def _tuple(items: Iterator[str] | map[str]) -> str:
    texts = list(items)
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def python_module(program: Program, test: SelfTest | None = None) -> str:
    """Return the module's text."""
    printer = _Printer()
    functions = list(_functions(program, printer))  # first: they collect the printer's constants
    lines = [
        _HEAD.format(head=program.head, facts=ascii(dict(program.facts))),
        *_constants(program),
        *printer.constants,
        _HELPERS,
        *functions,
        *(() if test is None else _test(test)),
    ]
    return "\n".join(lines) + "\n"


def _constants(program: Program) -> Iterator[str]:
    yield f"FEATURES = {_tuple(ascii(i.feature) for i in program.inputs)}"
    yield f"PROBLEMS = {_tuple(ascii(c.message) for c in program.checks)}"


def _functions(program: Program, printer: _Printer) -> Iterator[str]:
    body = list(printer.statements(program))
    checks = [f"if {printer.show(c.condition)}:\n        return {n}" for n, c in enumerate(program.checks)]
    reads = [f"{i.id} = {'text' if i.is_text else 'number'}(row, {i.feature!a})" for i in program.inputs]
    yield _FIND_PROBLEM.strip("\n")
    yield from (f"    {line}" for line in (*reads, *checks, "return None"))
    yield _SCORE.rstrip("\n")
    yield from (f"    {line}" for line in (*reads, *body))
    yield "    return {"
    yield from (f"        {o.name!a}: {printer.answer(o)}," for o in program.outputs)
    yield "    }"


def _test(test: SelfTest) -> Iterator[str]:
    yield "\n\nROWS = ["
    yield from (f"    {list(row)!a}," for row in test.rows)
    yield "]\nEXPECTED = ["
    yield from (f"    {answer!a}," for answer in test.answers)
    yield "]"
    yield _TAIL.rstrip("\n")
