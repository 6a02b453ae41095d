"""Expressions as formulas of a spreadsheet, of functions that every Excel and LibreOffice has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from plainrisk.errors import DataError
from plainrisk.export.code import digits, side_of
from plainrisk.export.expression import (
    Abs,
    All,
    Cells,
    Clip,
    Either,
    Exp,
    Expr,
    If,
    Labels,
    Largest,
    Name,
    Number,
    Position,
    Printer,
    Table,
)

__all__ = ["Constants", "FormulaPrinter", "column_name"]


class Constants:
    """The columns of the sheet Tables: constants that formulas refer to."""

    def __init__(self) -> None:
        self.columns: list[tuple[Any, ...]] = []
        self._known: dict[tuple[Any, ...], str] = {}

    def range(self, values: Sequence[float | str]) -> str:
        """Return the reference of constants, below each other."""
        key = tuple(values)
        if key not in self._known:
            column = column_name(len(self.columns))
            self.columns.append(key)
            self._known[key] = f"Tables!${column}$1:${column}${len(key)}"
        return self._known[key]


def column_name(n: int) -> str:
    """Return the letters of a column, counted from 0.

    >>> column_name(0), column_name(25), column_name(26), column_name(701), column_name(702)
    ('A', 'Z', 'AA', 'ZZ', 'AAA')
    """
    letters = ""
    n += 1
    while n:
        n, rest = divmod(n - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


class FormulaPrinter(Printer):
    """Prints expressions as formulas; names are cells of one row."""

    SYMBOLS = {"==": "="}  # noqa: RUF012

    def __init__(self, cell: dict[str, str], constants: Constants, block: Callable[[tuple[Expr, ...]], str]) -> None:
        self.cell, self.constants, self.block = cell, constants, block

    def name(self, e: Name) -> str:
        """A cell of the row, whose number stands for #."""
        return f"${self.cell[e.id]}#"

    def number(self, e: Number) -> str:
        """A number."""
        return digits(e.value) if e.value >= 0 else f"({digits(e.value)})"

    def exp(self, e: Exp) -> str:
        """The exponential."""
        return f"EXP({self.show(e.x)})"

    def abs(self, e: Abs) -> str:
        """The absolute value."""
        return f"ABS({self.show(e.x)})"

    def clip(self, e: Clip) -> str:
        """A value between two numbers."""
        x = self.show(e.x)
        x = x if math.isinf(e.low) else f"MAX({x},{digits(e.low)})"
        return f"MIN({x},{digits(e.high)})"

    def all(self, e: All) -> str:
        """Every condition."""
        return f"AND({','.join(map(self.show, e.conditions))})"

    def either(self, e: Either) -> str:
        """Some condition."""
        return f"OR({','.join(map(self.show, e.conditions))})"

    def if_(self, e: If) -> str:
        """One of two values."""
        return f"IF({self.show(e.condition)},{self.show(e.then)},{self.show(e.other)})"

    def largest(self, e: Largest) -> str:
        """The largest value."""
        return f"MAX({','.join(map(self.show, e.values))})"

    def position(self, e: Position) -> str:
        """The first that is equal."""
        return f"IFERROR(MATCH({self.show(e.x)},{self.block(e.values)},0)-1,{len(e.values) - 1})"

    def cells(self, e: Cells) -> str:
        """The cells of a number: by counting the cuts below it, or by halving."""
        x = self.show(e.x)
        numbers = [v.value for v in e.values if isinstance(v, Number)]
        if len(numbers) < len(e.values):
            found = self._halve(e, x, 0, len(e.cuts))
        elif not e.cuts:
            found = digits(numbers[0])
        else:
            found = f"INDEX({self.constants.range(numbers)},1+{self._count(e, x)})"
        return found if e.missing is None else f'IF({x}="",{self.show(e.missing)},{found})'

    def _count(self, e: Cells, x: str) -> str:
        above: list[float] = []
        at_least: list[float] = []
        for cut in e.cuts:
            closed, value = side_of(cut, e.open)
            (above if closed else at_least).append(value)
        counts = []
        if above:
            counts.append(f"SUMPRODUCT(--({self.constants.range(above)}<{x}))")
        if at_least:
            counts.append(f"SUMPRODUCT(--({self.constants.range(at_least)}<={x}))")
        return "+".join(counts)

    def _halve(self, e: Cells, x: str, low: int, high: int) -> str:
        if low == high:
            return self.show(e.values[low])
        middle = (low + high) // 2
        closed, value = side_of(e.cuts[middle], e.open)
        condition = f"{x}{'<=' if closed else '<'}{self.show(Number(value))}"
        return f"IF({condition},{self._halve(e, x, low, middle)},{self._halve(e, x, middle + 1, high)})"

    def labels(self, e: Labels) -> str:
        """The labels of a text; EXACT tells capital letters apart."""
        if "" in e.values:
            raise DataError(
                "export: a category is '', which a workbook cannot tell from missing. Rename the category, or export "
                "another target (sql, python, javascript, c)."
            )
        x = self.show(e.x)
        found = self.show(e.unseen)
        if e.values:
            labels = self.constants.range(list(e.values))
            values = self.constants.range([v.value for v in e.values.values()])  # type: ignore[union-attr]
            same = f"EXACT({labels},{x})"
            found = f"IF(SUMPRODUCT(--{same})=0,{found},SUMPRODUCT(--{same},{values}))"
        return f'IF({x}="",{self.show(e.missing)},{found})'

    def table(self, e: Table) -> str:
        """A table by index: of constants, of tables of constants, or of cells."""
        first, index = e.values[0], self.show(e.index)
        if isinstance(first, Table):
            flat = [v.value for row in e.values for v in row.values]  # type: ignore[union-attr]
            at = f"{index}*{len(first.values)}+{self.show(first.index)}+1"
            return f"INDEX({self.constants.range(flat)},{at})"
        if all(isinstance(v, Number) for v in e.values):
            return f"INDEX({self.constants.range([v.value for v in e.values])},{index}+1)"  # type: ignore[union-attr]
        return f"INDEX({self.block(e.values)},1,{index}+1)"
