"""A small expression tree: what a risk form computes, as named steps that every target prints in its own language.

A `Program` reads inputs, checks them, computes steps in order (each from inputs and earlier steps) and gives outputs.
How reasons are ranked is such steps, too (`export.ranking`): printers know nothing of it. A missing number is NULL or
NaN, a missing text NULL. Sums are in Python's order, so that forms of lines have the same bits everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from plainrisk.errors import DataError

__all__ = [
    "Abs",
    "All",
    "Cells",
    "Check",
    "Clip",
    "Compare",
    "Either",
    "Exp",
    "Expr",
    "FieldWords",
    "If",
    "Input",
    "Labels",
    "Largest",
    "Name",
    "Number",
    "Op",
    "Output",
    "PieceWords",
    "Position",
    "Printer",
    "Program",
    "Step",
    "Table",
    "Text",
    "Words",
    "refuse_characters",
    "slugs",
    "walk",
]


# ---- expressions


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Text:
    """A constant text."""

    value: str


@dataclass(frozen=True)
class Name:
    """An input or an earlier step."""

    id: str


@dataclass(frozen=True)
class Op:
    """A sum, difference, product or quotient."""

    symbol: Literal["+", "-", "*", "/"]
    a: Expr
    b: Expr


@dataclass(frozen=True)
class Exp:
    """The exponential; its argument is never beyond 700, so no engine overflows."""

    x: Expr


@dataclass(frozen=True)
class Abs:
    """The absolute value."""

    x: Expr


@dataclass(frozen=True)
class Clip:
    """A value held between two numbers."""

    x: Expr
    low: float
    high: float


@dataclass(frozen=True)
class Compare:
    """A comparison of two numbers; with a missing one it does not hold."""

    symbol: Literal["<", "<=", ">", ">=", "=="]
    a: Expr
    b: Expr


@dataclass(frozen=True)
class All:
    """Every condition holds."""

    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class Either:
    """Some condition holds."""

    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class If:
    """One of two values."""

    condition: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True)
class Cells:
    """The value of the cell that a number lies in; cells end at the cuts.

    Attributes
    ----------
    x : the number
    cuts : ascending
    values : one more than cuts
    missing : the value if the number is missing; None if it never is
    open : whether a cut belongs to the cell on its right (x < cut), not to that on its left (x <= cut)
    """

    x: Name
    cuts: tuple[float, ...]
    values: tuple[Expr, ...]
    missing: Expr | None
    open: bool = False


@dataclass(frozen=True)
class Labels:
    """The value of a text."""

    x: Name
    values: Mapping[str, Expr]
    missing: Expr
    unseen: Expr


@dataclass(frozen=True)
class Table:
    """The value at an index, counted from 0; values are constants, or tables of constants, or names."""

    index: Expr
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Largest:
    """The largest of some values; there are few, since engines limit the arguments of a function."""

    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Position:
    """The index of the first of some names that has this value, counted from 0; of the last if none has it."""

    x: Name
    values: tuple[Name, ...]


Expr = (
    Number | Text | Name | Op | Exp | Abs | Clip | Compare | All | Either | If | Cells | Labels | Table
    | Largest | Position
)  # fmt: skip


def walk(e: Expr) -> Iterator[Expr]:
    """Yield an expression and all inside it."""
    yield e
    for f in fields(e):
        inside = getattr(e, f.name)
        if isinstance(inside, Mapping):
            inside = tuple(inside.values())
        for part in inside if isinstance(inside, tuple) else (inside,):
            if isinstance(part, Expr):
                yield from walk(part)


# ---- programs


@dataclass(frozen=True)
class Input:
    """A feature: its name in the data, its name in the program, and whether it is a number or a text."""

    feature: str
    id: str
    is_text: bool


@dataclass(frozen=True)
class Step:
    """A named value, with a note of whose it is."""

    id: str
    value: Expr
    note: str = ""


@dataclass(frozen=True)
class Check:
    """Rows for which the condition holds are refused, because of this feature, with this message."""

    feature: str
    condition: Expr
    message: str


@dataclass(frozen=True)
class Output:
    """One column of the answer.

    Attributes
    ----------
    name, title : its name there, and what it is
    step : the step with the number, or with the number of the text
    words : the texts, counted from 0; empty if the answer is a number
    there : the step that is below 0 where there is no answer; empty if there always is one
    """

    name: str
    step: str
    title: str
    words: tuple[str, ...] = ()
    there: str = ""


@dataclass(frozen=True)
class FieldWords:
    """The words that people see for an input.

    Attributes
    ----------
    title : its label, with the unit
    choices : the (label, code) of every category, or of numbers that are codes
    example : a common value
    hint : what its codes mean; empty if it has none
    """

    title: str
    choices: tuple[tuple[str, float | str], ...]
    example: float | str | None
    hint: str


@dataclass(frozen=True)
class PieceWords:
    """The words that people see for a contribution: its source, and whether that is protected."""

    title: str
    protected: bool


@dataclass(frozen=True)
class Words:
    """How people speak of the answer.

    Attributes
    ----------
    outcome : after "probability that": "the applicant does not repay"
    fields : the inputs, in order
    pieces : the outputs part_..., in order
    """

    outcome: str
    fields: tuple[FieldWords, ...]
    pieces: tuple[PieceWords, ...]


@dataclass(frozen=True)
class Program:
    """What a form computes.

    Attributes
    ----------
    inputs, checks, steps, outputs, words : see there
    facts : what the file states about itself: the form's hash, the certificate's verdict, the options
    certificate : (name, whether it holds, evidence) of every check
    """

    inputs: tuple[Input, ...]
    checks: tuple[Check, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    words: Words
    facts: Mapping[str, Any]
    certificate: Sequence[tuple[str, bool, str]]

    @property
    def head(self) -> str:
        """The facts in one line, by which an export is known."""
        return f"plainrisk export {json.dumps(dict(self.facts), ensure_ascii=True)}"

    @property
    def texts(self) -> Iterator[str]:
        """All text from outside: names, labels, words, messages."""
        yield from (i.feature for i in self.inputs)
        yield from (check.message for check in self.checks)
        yield self.words.outcome
        for field in self.words.fields:
            yield from (field.title, field.hint, *(label for label, _ in field.choices))
        yield from (piece.title for piece in self.words.pieces)
        for words in {o.words for o in self.outputs}:
            yield from words
        for step in self.steps:
            yield step.note
            for e in walk(step.value):
                yield from e.values if isinstance(e, Labels) else ()

    @property
    def answer_names(self) -> tuple[str, ...]:
        """The names of all that is answered."""
        return (*(o.name for o in self.outputs), "problem")

    @property
    def reasons(self) -> int:
        """How many reasons there may be."""
        return sum(o.name.startswith("cost_") for o in self.outputs)

    def outputs_of(self, prefix: str) -> list[Output]:
        """Return the outputs of one kind: subscale_, part_ ..."""
        return [o for o in self.outputs if o.name.startswith(prefix)]


# ---- printing


class Printer:
    """Prints expressions; languages differ in a few methods."""

    SYMBOLS: Mapping[str, str] = {}
    AND, OR = "and", "or"
    ABS, EXP = "ABS", "EXP"

    def show(self, e: Expr) -> str:
        """Return an expression as text."""
        return str(self.if_(e) if isinstance(e, If) else getattr(self, type(e).__name__.lower())(e))

    def if_(self, e: If) -> str:
        """One of two values."""
        raise NotImplementedError

    def name(self, e: Name) -> str:
        """A step or an input."""
        return e.id

    def op(self, e: Op) -> str:
        """Arithmetic; a sum of sums, added from the left, needs no brackets."""
        a = self.show(e.a)
        if isinstance(e.a, Op) and e.symbol in "+-" and e.a.symbol in "+-":
            a = a[1:-1]
        return f"({a} {e.symbol} {self.show(e.b)})"

    def exp(self, e: Exp) -> str:
        """The exponential."""
        return f"{self.EXP}({self.show(e.x)})"

    def abs(self, e: Abs) -> str:
        """The absolute value."""
        return f"{self.ABS}({self.show(e.x)})"

    def compare(self, e: Compare) -> str:
        """A comparison."""
        return f"{self.show(e.a)} {self.SYMBOLS.get(e.symbol, e.symbol)} {self.show(e.b)}"

    def all(self, e: All) -> str:
        """Conditions joined by and."""
        return f" {self.AND} ".join(map(self._inside, e.conditions))

    def either(self, e: Either) -> str:
        """Conditions joined by or."""
        return f" {self.OR} ".join(map(self._inside, e.conditions))

    def _inside(self, e: Expr) -> str:
        return f"({self.show(e)})" if isinstance(e, All | Either) else self.show(e)


# ---- names


def slugs(titles: Iterable[str], prefix: str, taken: set[str]) -> list[str]:
    """Return a plain, unique name of letters, digits and _ for each title; at most 60 characters.

    >>> slugs(["Credit amount", "credit amount", "'); DROP TABLE"], "part_", set())
    ['part_credit_amount', 'part_credit_amount_2', 'part_drop_table']
    """
    names = []
    for title in titles:
        plain = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[: 50 - len(prefix)] or "x"
        name, n = prefix + plain, 1
        while name in taken:
            n += 1
            name = f"{prefix}{plain}_{n}"
        taken.add(name)
        names.append(name)
    return names


def refuse_characters(program: Program, pattern: str, target: str) -> None:
    """Refuse names and labels with characters that a target cannot hold."""
    for text in program.texts:
        if re.search(pattern, text):
            raise DataError(
                f"export: {target} cannot hold a control character, and a name or label of the schema has one: "
                f"{text[:40]!r}. Remove it there, or export another target (python, javascript)."
            )
