"""The printer that Python, JavaScript and C share: statements, and constants with names of their own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from plainrisk.export import expression as ex
from plainrisk.text import one_line

__all__ = ["CodePrinter", "digits", "side_of"]


def digits(value: float) -> str:
    """Return the shortest text that is read back as the same number."""
    return repr(float(value))


def side_of(cut: float, is_open: bool) -> tuple[bool, float]:
    """Return whether a cut belongs to the cell on its left, and the cut, as a reader would write them.

    A cut that is the last float below a round number (a special value, a bound) is written as that number, to the
    right.

    >>> side_of(10.0, False), side_of(math.nextafter(-9.0, -math.inf), False)
    ((True, 10.0), (False, -9.0))
    """
    after = math.nextafter(cut, math.inf) + 0.0
    if not is_open and len(digits(after)) + 2 < len(digits(cut)):
        return False, after
    return not is_open, cut


class CodePrinter(ex.Printer):
    """Prints steps as statements; large constants get names and come first."""

    IF, ELIF, ELSE, END = "if {}:", "elif {}:", "else:", ""
    ASSIGN, FIRST, COMMENT = "{} = {}", "{} = {}", "# "
    FUNCTIONS: Mapping[str, str] = {"exp": "exp", "abs": "abs", "max": "max"}
    LIST, CHOICE, NONE = "({})", "({then} if {condition} else {other})", "None"

    def __init__(self) -> None:
        self.constants: list[str] = []
        self._names: dict[str, str] = {}

    # ---- what differs between languages

    def array(self, values: Sequence[float]) -> str:
        """Return the name of a constant array of numbers."""
        raise NotImplementedError

    def dictionary(self, values: Mapping[str, float]) -> str:
        """Return the constants that map texts to numbers, as arguments of the function `label`."""
        raise NotImplementedError

    def is_missing(self, x: str) -> str:
        """Return the condition that a number is missing."""
        return f"{x} != {x}"

    def constant(self, text: str, declaration: str) -> str:
        """Return the name of a constant; equal constants share one."""
        if text not in self._names:
            self._names[text] = f"C{len(self._names)}"
            self.constants.append(declaration.format(self._names[text], text))
        return self._names[text]

    # ---- statements

    def statements(self, program: ex.Program) -> Iterator[str]:
        """Yield the lines of all steps."""
        for step in program.steps:
            note = f"  {self.COMMENT}{one_line(step.note)[:80]}" if step.note else ""
            # In C, a backslash at the end of a comment, which may be written ??/, joins the next line to it.
            note = re.sub(r"[^ -~]|[\\?]", "_", note)
            if self._is_plain(step.value):
                yield self.FIRST.format(step.id, self.show(step.value)) + note
            else:
                yield from self._declared(step.id, note)
                yield from self._assign(step.id, step.value)

    def _declared(self, id: str, note: str) -> Iterator[str]:
        if note:
            yield note.strip()

    def _is_plain(self, e: ex.Expr) -> bool:
        return not isinstance(e, ex.If) and not (isinstance(e, ex.Cells) and not _is_table(e))

    def _assign(self, id: str, e: ex.Expr, indent: str = "") -> Iterator[str]:
        if self._is_plain(e):
            yield indent + self.ASSIGN.format(id, self.show(e))
            return
        branches, last = self._branches(e)
        for n, (condition, value) in enumerate(branches):
            yield indent + (self.ELIF if n else self.IF).format(condition)
            yield from self._assign(id, value, indent + "    ")
        yield indent + self.ELSE
        yield from self._assign(id, last, indent + "    ")
        if self.END:
            yield indent + self.END

    def _branches(self, e: ex.Expr) -> tuple[list[tuple[str, ex.Expr]], ex.Expr]:
        if isinstance(e, ex.If):
            branches, last = self._branches(e.other) if isinstance(e.other, ex.If) else ([], e.other)
            return [(self.show(e.condition), e.then), *branches], last
        assert isinstance(e, ex.Cells)
        branches = [] if e.missing is None else [(self.is_missing(e.x.id), e.missing)]
        for cut, value in zip(e.cuts, e.values, strict=False):
            closed, end = side_of(cut, e.open)
            branches.append((f"{e.x.id} {'<=' if closed else '<'} {digits(end)}", value))
        if not branches:
            branches = [("0 == 0", e.values[-1])]
        return branches, e.values[-1]

    # ---- expressions

    def number(self, e: ex.Number) -> str:
        """A number; negative ones in brackets."""
        return digits(e.value) if e.value >= 0 else f"({digits(e.value)})"

    def clip(self, e: ex.Clip) -> str:
        """A value between two numbers."""
        low = "-1e308" if e.low == float("-inf") else digits(e.low)
        return f"clip({self.show(e.x)}, {low}, {digits(e.high)})"

    def cells(self, e: ex.Cells) -> str:
        """A table of cells: the function `cell` finds the number."""
        values = [v.value for v in (*e.values, e.missing) if isinstance(v, ex.Number)]
        size = "" if self.END == "" else f", {len(e.cuts)}"
        return f"cell({e.x.id}, {self.array(e.cuts)}, {self.array(values)}{size})"

    def labels(self, e: ex.Labels) -> str:
        """A table of texts: the function `label` finds the text."""
        values = {label: v.value for label, v in e.values.items()}
        return f"label({e.x.id}, {self.dictionary(values)}, {self.show(e.missing)}, {self.show(e.unseen)})"

    def table(self, e: ex.Table) -> str:
        """A table by index, of one or two dimensions."""
        at = self.show(e.index)
        constants, width, second = e.flat
        if not constants:
            return self._entry(self.list(e.values), at)
        return self._entry(self.array(constants), at if second is None else f"{at} * {width} + {self.show(second)}")

    def _entry(self, array: str, at: str) -> str:
        raise NotImplementedError

    def if_(self, e: ex.If) -> str:
        """One of two values, inside an expression."""
        parts = {"condition": e.condition, "then": e.then, "other": e.other}
        return self.CHOICE.format(**{name: self.show(part) for name, part in parts.items()})

    def list(self, values: Sequence[ex.Expr]) -> str:
        """Values side by side."""
        inside = ", ".join(map(self.show, values))
        return self.LIST.format(f"{inside}," if len(values) == 1 else inside)

    def _length(self, values: Sequence[ex.Expr]) -> str:
        """The number of values as a further argument, in C."""
        return ""

    def position(self, e: ex.Position) -> str:
        """The function `position` finds the first that is equal."""
        return f"position({self.show(e.x)}, {self.list(e.values)}{self._length(e.values)})"

    def words(self, values: Sequence[str]) -> str:
        """Return the name of a constant array of texts."""
        raise NotImplementedError

    def answer(self, o: ex.Output) -> str:
        """Return an output's value: a number or a text, or None."""
        value = self._entry(self.words(o.words), o.step) if o.words else o.step
        if not o.there:
            return value
        return self.CHOICE.format(condition=f"{o.there} < 0", then=self.NONE, other=value)


def _is_table(e: ex.Cells) -> bool:
    return e.missing is not None and all(isinstance(v, ex.Number) for v in (*e.values, e.missing))
