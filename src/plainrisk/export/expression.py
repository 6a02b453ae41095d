"""A small expression tree: what a risk form computes, as named steps that every target prints in its own language.

A `Program` reads inputs, checks them, computes steps in order (each from inputs and earlier steps) and gives outputs
and ranked reasons. A missing number is NULL or NaN, a missing text NULL. Sums are in Python's order, so that forms of
lines have the same bits everywhere.
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
    "If",
    "Input",
    "Labels",
    "Name",
    "Number",
    "Op",
    "Output",
    "Printer",
    "Program",
    "Rank",
    "Step",
    "Table",
    "Text",
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


Expr = Number | Text | Name | Op | Exp | Abs | Clip | Compare | All | Either | If | Cells | Labels | Table


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
    """A number in the answer: its name there, the step, and its title."""

    name: str
    step: str
    title: str


@dataclass(frozen=True)
class Rank:
    """The reasons: the k candidates with the largest losses above `least`, of equal ones the first.

    With `totals` they are told subscale by subscale, that with the largest total first; of equal ones the first.

    Attributes
    ----------
    k : how many reasons at most
    least : smaller losses are no reasons
    features : the name of each candidate
    losses : the steps with their losses
    words : the steps with the number of the text of each
    texts : all texts
    totals : the steps with the total of each candidate's subscale; empty if losses alone decide
    groups : the number of each candidate's subscale
    pieces : of every feature, also those never named: its name, the steps of its own loss and of its text's number,
        and which numbers there are
    """

    k: int
    least: float
    features: tuple[str, ...]
    losses: tuple[str, ...]
    words: tuple[str, ...]
    texts: tuple[str, ...]
    totals: tuple[str, ...]
    groups: tuple[int, ...]
    pieces: tuple[tuple[str, str, str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Program:
    """What a form computes.

    Attributes
    ----------
    inputs, checks, steps, outputs, rank : see there
    best_risk : the risk of the applicant that losses compare with
    facts : what the file says of itself: the form's hash, the certificate's verdict, the options
    certificate : (name, whether it holds, evidence) of every check
    """

    inputs: tuple[Input, ...]
    checks: tuple[Check, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    rank: Rank
    best_risk: float
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
        yield from (*self.rank.features, *self.rank.texts)
        for step in self.steps:
            yield step.note
            for e in walk(step.value):
                yield from e.values if isinstance(e, Labels) else ()

    @property
    def answer_names(self) -> tuple[str, ...]:
        """The names of all that is answered."""
        reasons = [f"{what}_{r}" for r in range(1, self.rank.k + 1) for what in ("reason", "reason_feature", "lost")]
        return (*(o.name for o in self.outputs), *reasons, "problem")

    def ranked(self) -> tuple[tuple[Step, ...], tuple[tuple[str, str, str], ...]]:
        """Return the ranking as plain steps, and the steps (candidate, word, loss) of every reason; see `told`."""
        told, found = self.told()
        return (*_choosing(self.rank), *told), found

    def told(self) -> tuple[tuple[Step, ...], tuple[tuple[str, str, str], ...]]:
        """Return the steps from the chosen i1, i2, ... and their losses a1, a2, ... to the reasons in order.

        Beside them stand the steps (candidate, word, loss) of every reason; a candidate of -1 is none.
        """
        return _telling(self.rank)


def _choosing(rank: Rank) -> Iterator[Step]:
    left = rank.losses
    for r in range(1, rank.k + 1):
        yield Step(f"i{r}", _first_largest(left))
        yield Step(f"a{r}", Table(Name(f"i{r}"), tuple(map(Name, left))))
        masked = [If(Compare("==", Name(f"i{r}"), Number(float(j))), Number(-1.0), Name(x)) for j, x in enumerate(left)]
        left = tuple(f"m{r}_{j}" for j in range(len(left)))
        if r < rank.k:
            yield from map(Step, left, masked)


def _telling(rank: Rank) -> tuple[tuple[Step, ...], tuple[tuple[str, str, str], ...]]:
    minus = Number(-1.0)
    slots = range(1, rank.k + 1)
    steps = [Step(f"f{r}", If(Compare(">", Name(f"a{r}"), Number(rank.least)), Name(f"i{r}"), minus)) for r in slots]
    found = [(f"f{r}", f"w{r}", f"a{r}") for r in slots]
    if rank.totals and rank.k > 1:
        steps += _regroup(rank)
        found = [(f"of{r}", f"w{r}", f"oa{r}") for r in slots]
    words = tuple(map(Name, rank.words))
    steps += [Step(w, If(Compare("<", Name(f), Number(0.0)), minus, Table(Name(f), words))) for f, w, _ in found]
    return tuple(steps), tuple(found)


def _first_largest(values: Sequence[str]) -> Expr:
    """The index of the first largest: one that is not below any later one, where none before it is such."""
    found: Expr = Number(float(len(values) - 1))
    for j in range(len(values) - 2, -1, -1):
        beats = All(tuple(Compare(">=", Name(values[j]), Name(other)) for other in values[j + 1 :]))
        found = If(beats, Number(float(j)), found)
    return found


def _regroup(rank: Rank) -> Iterator[Step]:
    """Put the chosen in order of their subscales' totals; slots without a reason stay last."""
    slots = range(1, rank.k + 1)
    totals, groups = tuple(map(Name, rank.totals)), tuple(Number(float(g)) for g in rank.groups)
    for r in slots:
        empty = Compare("<", Name(f"f{r}"), Number(0.0))
        yield Step(f"t{r}", If(empty, Number(-1e300), Table(Name(f"f{r}"), totals)))
        yield Step(f"g{r}", If(empty, Number(0.0), Table(Name(f"f{r}"), groups)))
    for r in slots:
        before = [_precedes(s, r) for s in slots if s != r]
        place: Expr = Number(0.0)
        for condition in before:
            place = Op("+", place, If(condition, Number(1.0), Number(0.0)))
        yield Step(f"p{r}", place)
    for r in slots:
        for new, old in (("of", "f"), ("oa", "a")):
            pick: Expr = Name(f"{old}{rank.k}")
            for s in range(rank.k - 1, 0, -1):
                pick = If(Compare("==", Name(f"p{s}"), Number(float(r - 1))), Name(f"{old}{s}"), pick)
            yield Step(f"{new}{r}", pick)


def _precedes(s: int, r: int) -> Expr:
    """Whether slot s comes before slot r: larger total, then lower group, then lower slot."""
    more = Compare(">", Name(f"t{s}"), Name(f"t{r}"))
    same = Compare("==", Name(f"t{s}"), Name(f"t{r}"))
    group = Compare("<=" if s < r else "<", Name(f"g{s}"), Name(f"g{r}"))
    return Either((more, All((same, group))))


# ---- printing


class Printer:
    """Prints expressions; languages differ in a few methods."""

    SYMBOLS: Mapping[str, str] = {}
    AND, OR = "and", "or"

    def show(self, e: Expr) -> str:
        """Return an expression as text."""
        return str(getattr(self, type(e).__name__.lower())(e))

    def name(self, e: Name) -> str:
        """A step or an input."""
        return e.id

    def op(self, e: Op) -> str:
        """Arithmetic; a sum of sums, added from the left, needs no brackets."""
        a = self.show(e.a)
        if isinstance(e.a, Op) and e.symbol in "+-" and e.a.symbol in "+-":
            a = a[1:-1]
        return f"({a} {e.symbol} {self.show(e.b)})"

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
    found = []
    for title in titles:
        plain = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[: 50 - len(prefix)] or "x"
        name, n = prefix + plain, 1
        while name in taken:
            n += 1
            name = f"{prefix}{plain}_{n}"
        taken.add(name)
        found.append(name)
    return found


def refuse_characters(program: Program, pattern: str, target: str) -> None:
    """Refuse names and labels with characters that a target cannot hold."""
    for text in program.texts:
        if re.search(pattern, text):
            raise DataError(
                f"export: {target} cannot hold a control character, and a name or label of the schema has one: "
                f"{text[:40]!r}. Remove it there, or export another target (python, javascript)."
            )
