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
    "Call",
    "Cells",
    "Check",
    "Clip",
    "Expr",
    "FieldWords",
    "If",
    "Input",
    "Labels",
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
    "as_expr",
    "numbers",
    "refuse_characters",
    "slugs",
    "walk",
]


# ---- expressions


class Expr:
    """Something with a value; sums, products and comparisons of expressions and numbers are expressions."""

    def __add__(self, other: Expr | float) -> Op:
        return Op("+", self, as_expr(other))

    def __sub__(self, other: Expr | float) -> Op:
        return Op("-", self, as_expr(other))

    def __rsub__(self, other: float) -> Op:
        return Op("-", as_expr(other), self)

    def __mul__(self, other: Expr | float) -> Op:
        return Op("*", self, as_expr(other))

    def __truediv__(self, other: Expr) -> Op:
        return Op("/", self, other)

    def __lt__(self, other: Expr | float) -> Op:
        return Op("<", self, as_expr(other))

    def __le__(self, other: Expr) -> Op:
        return Op("<=", self, other)

    def __gt__(self, other: Expr | float) -> Op:
        return Op(">", self, as_expr(other))

    def __ge__(self, other: float) -> Op:
        return Op(">=", self, as_expr(other))

    def __and__(self, other: Expr) -> Op:
        return Op("and", self, other)

    def __or__(self, other: Expr) -> Op:
        return Op("or", self, other)

    def equals(self, other: Expr | float) -> Op:
        """Return the condition that two numbers are equal; `==` compares expressions."""
        return Op("==", self, as_expr(other))


def as_expr(value: Expr | float) -> Expr:
    """Return a number as an expression, and an expression as it is."""
    return value if isinstance(value, Expr) else Number(float(value))


@dataclass(frozen=True)
class Number(Expr):
    """A constant."""

    value: float


@dataclass(frozen=True)
class Text(Expr):
    """A constant text."""

    value: str


@dataclass(frozen=True)
class Name(Expr):
    """An input or an earlier step."""

    id: str


@dataclass(frozen=True)
class Op(Expr):
    """Arithmetic, or a condition: a comparison, which does not hold with a missing number, or two joined by and, or."""

    symbol: Literal["+", "-", "*", "/", "<", "<=", ">", ">=", "==", "and", "or"]
    a: Expr
    b: Expr


@dataclass(frozen=True)
class Call(Expr):
    """A function: the exponential (of at most 700, so no engine overflows), the absolute value, the largest of few."""

    function: Literal["exp", "abs", "max"]
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Clip(Expr):
    """A value kept between two numbers."""

    x: Expr
    low: float
    high: float


@dataclass(frozen=True)
class If(Expr):
    """One of two values."""

    condition: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True)
class Cells(Expr):
    """The value of the cell that contains a number; cells end at the cuts.

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
class Labels(Expr):
    """The value of a text."""

    x: Name
    values: Mapping[str, Number]
    missing: Number
    unseen: Number


@dataclass(frozen=True)
class Table(Expr):
    """The value at an index, counted from 0; values are constants, or tables of constants, or names."""

    index: Expr
    values: tuple[Expr, ...]

    @property
    def flat(self) -> tuple[list[float], int, Expr | None]:
        """All constants, row by row; of a table of tables, also the length of a row and the index in it."""
        first = self.values[0]
        rows = [t.values for t in self.values if isinstance(t, Table)] or [self.values]
        constants = [v.value for row in rows for v in row if isinstance(v, Number)]
        return constants, len(rows[0]), first.index if isinstance(first, Table) else None


@dataclass(frozen=True)
class Position(Expr):
    """The index of the first of some names that has this value, counted from 0; of the last if none has it."""

    x: Name
    values: tuple[Name, ...]


def numbers(values: Iterable[float]) -> tuple[Number, ...]:
    """Return constants."""
    return tuple(Number(float(value)) for value in values)


def walk(e: Expr) -> Iterator[Expr]:
    """Yield an expression and all inside it."""
    yield e
    for f in fields(e):  # type: ignore[arg-type]  # every expression is a dataclass
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
    """Rows for which the condition is true are refused because of this feature, with this message."""

    feature: str
    condition: Expr
    message: str


@dataclass(frozen=True)
class Output:
    """One column of the answer.

    Attributes
    ----------
    name, title : its name there, and what it is
    step : the step that holds the number, or the index of the text
    words : the texts, counted from 0; empty if the answer is a number
    there : the step that is negative where there is no answer; empty if there always is one
    """

    name: str
    step: str
    title: str
    words: tuple[str, ...] = ()
    there: str = ""


@dataclass(frozen=True)
class FieldWords:
    """What people read about an input.

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
    """What people read about a contribution: its source, and whether that is protected."""

    title: str
    protected: bool


@dataclass(frozen=True)
class Words:
    """The words for the answer.

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
    inputs, checks, steps, outputs, words : as described above
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
        """The facts in one line that identify an export."""
        return f"plainrisk export {json.dumps(dict(self.facts), ensure_ascii=True)}"

    @property
    def texts(self) -> Iterator[str]:
        """All texts from the schema and the form: names, labels, words, messages."""
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
        """The largest number of reasons."""
        return sum(o.name.startswith("cost_") for o in self.outputs)

    def outputs_of(self, prefix: str) -> list[Output]:
        """Return the outputs of one kind: subscale_, part_ ..."""
        return [o for o in self.outputs if o.name.startswith(prefix)]


# ---- printing


class Printer:
    """Prints expressions; languages differ in a few methods."""

    SYMBOLS: Mapping[str, str] = {}
    FUNCTIONS: Mapping[str, str] = {"exp": "EXP", "abs": "ABS", "max": "MAX"}

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
        """Two values joined by a symbol; those joined from the left by one of a kind need no brackets."""
        a, b, symbol = self.show(e.a), self.show(e.b), self.SYMBOLS.get(e.symbol, e.symbol)
        if e.symbol in ("and", "or"):
            b = f"({b})" if isinstance(e.b, Op) and e.b.symbol in ("and", "or") else b
            a = f"({a})" if isinstance(e.a, Op) and e.a.symbol in {"and", "or"} - {e.symbol} else a
        elif e.symbol in ("+", "-", "*", "/"):
            a = a[1:-1] if isinstance(e.a, Op) and e.symbol in "+-" and e.a.symbol in "+-" else a
            return f"({a} {symbol} {b})"
        return f"{a} {symbol} {b}"

    def call(self, e: Call) -> str:
        """A function of some values."""
        if len(e.values) == 1 and e.function == "max":
            return self.show(e.values[0])
        return f"{self.FUNCTIONS[e.function]}({', '.join(map(self.show, e.values))})"


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
    """Refuse names and labels with characters that a target cannot represent."""
    for text in program.texts:
        if re.search(pattern, text):
            raise DataError(
                f"export: {target} cannot hold a control character, and a name or label of the schema has one: "
                f"{text[:40]!r}. Remove it there, or export another target (python, javascript)."
            )
