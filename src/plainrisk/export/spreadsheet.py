"""Expressions as spreadsheet formulas, with functions that every Excel and LibreOffice has, and their cells."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from plainrisk.errors import DataError
from plainrisk.export import expression as ex
from plainrisk.export.code import digits, side_of
from plainrisk.export.python import python_module
from plainrisk.export.self_test import Row

__all__ = ["Constants", "Layout", "column_name", "write_constant"]

LONGEST = 8000  # characters of a formula; Excel takes 8,192
MOST_COLUMNS = 16_384  # of a sheet
PROTECTED = "Protected attributes"


class Constants:
    """The columns of the sheet Tables: constants that formulas refer to."""

    def __init__(self) -> None:
        self.columns: list[tuple[Any, ...]] = []
        self._ranges: dict[tuple[Any, ...], str] = {}

    def range(self, values: Sequence[float | str]) -> str:
        """Return the reference of constants that are below each other."""
        key = tuple(values)
        if key not in self._ranges:
            column = column_name(len(self.columns))
            self.columns.append(key)
            self._ranges[key] = f"Tables!${column}$1:${column}${len(key)}"
        return self._ranges[key]


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


def write_constant(sheet: Any, row: int, column: int, value: float | str | None, style: Any = None) -> None:
    """Write a constant; a text is never a formula, and an empty text is written as such."""
    if isinstance(value, str):
        sheet.write_string(row, column, value, style)
    elif value is not None:
        sheet.write_number(row, column, value, style)


class _Printer(ex.Printer):
    """Prints expressions as formulas; names are cells of one row."""

    SYMBOLS = {"==": "="}  # noqa: RUF012

    def __init__(self, cell: dict[str, str], constants: Constants, block: Callable[[tuple[ex.Expr, ...]], str]) -> None:
        self.cell, self.constants, self.block = cell, constants, block

    def name(self, e: ex.Name) -> str:
        """A cell of the row, whose number stands for #."""
        return f"${self.cell[e.id]}#"

    def number(self, e: ex.Number) -> str:
        return digits(e.value) if e.value >= 0 else f"({digits(e.value)})"

    def clip(self, e: ex.Clip) -> str:
        x = self.show(e.x)
        x = x if math.isinf(e.low) else f"MAX({x},{digits(e.low)})"
        return f"MIN({x},{digits(e.high)})"

    def op(self, e: ex.Op) -> str:
        if e.symbol in ("and", "or"):
            return f"{e.symbol.upper()}({self.show(e.a)},{self.show(e.b)})"
        return super().op(e)

    def if_(self, e: ex.If) -> str:
        return f"IF({self.show(e.condition)},{self.show(e.then)},{self.show(e.other)})"

    def position(self, e: ex.Position) -> str:
        return f"IFERROR(MATCH({self.show(e.x)},{self.block(e.values)},0)-1,{len(e.values) - 1})"

    def cells(self, e: ex.Cells) -> str:
        """The cells of a number: by counting the cuts below it, or by halving."""
        x = self.show(e.x)
        numbers = [v.value for v in e.values if isinstance(v, ex.Number)]
        if len(numbers) < len(e.values):
            formula = self._halve(e, x, 0, len(e.cuts))
        elif not e.cuts:
            formula = digits(numbers[0])
        else:
            formula = f"INDEX({self.constants.range(numbers)},1+{self._count(e, x)})"
        return formula if e.missing is None else f'IF({x}="",{self.show(e.missing)},{formula})'

    def _count(self, e: ex.Cells, x: str) -> str:
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

    def _halve(self, e: ex.Cells, x: str, low: int, high: int) -> str:
        if low == high:
            return self.show(e.values[low])
        middle = (low + high) // 2
        closed, value = side_of(e.cuts[middle], e.open)
        condition = f"{x}{'<=' if closed else '<'}{self.show(ex.Number(value))}"
        return f"IF({condition},{self._halve(e, x, low, middle)},{self._halve(e, x, middle + 1, high)})"

    def labels(self, e: ex.Labels) -> str:
        """The labels of a text; EXACT distinguishes capital letters."""
        if "" in e.values:
            raise DataError(
                "export: a category is '', which a workbook cannot tell from missing. Rename the category, or export "
                "another target (sql, python, javascript, c)."
            )
        x = self.show(e.x)
        formula = self.show(e.unseen)
        if e.values:
            labels = self.constants.range(list(e.values))
            values = self.constants.range([v.value for v in e.values.values()])
            same = f"EXACT({labels},{x})"
            formula = f"IF(SUMPRODUCT(--{same})=0,{formula},SUMPRODUCT(--{same},{values}))"
        return f'IF({x}="",{self.show(e.missing)},{formula})'

    def table(self, e: ex.Table) -> str:
        """A table by index: of constants, of tables of constants, or of cells."""
        index = self.show(e.index)
        constants, width, second = e.flat
        if not constants:
            return f"INDEX({self.block(e.values)},1,{index}+1)"
        at = index if second is None else f"{index}*{width}+{self.show(second)}"
        return f"INDEX({self.constants.range(constants)},{at}+1)"


class Layout:
    """The layout of the sheet Rows: a column per input, step, reason and answer.

    Attributes
    ----------
    names, titles, formulas : of every column; # stands for the number of the row
    cell : the column of every name
    pieces : the (title, answer) of each bar of the waterfall; protected features share one
    """

    def __init__(self, program: ex.Program) -> None:
        self.program = program
        self.constants = Constants()
        self.names: list[str] = []
        self.titles: list[str] = []
        self.formulas: list[str] = []
        self.cell: dict[str, str] = {}
        self.pieces: list[tuple[str, str]] = []
        self._columns: dict[str, int] = {}
        self._steps: list[ex.Step] = []
        self._sources: dict[int, ex.Output] = {}  # by column, whose value it shows
        self._blocks: dict[tuple[ex.Expr, ...], str] = {}
        self._printer = _Printer(self.cell, self.constants, self._block)
        for i in program.inputs:
            self._add(i.id, i.feature, "")
        self._problem()
        for step in program.steps:
            self._step(step)
        self._answers([*program.outputs, *self._waterfall()])
        # The self-test follows: whether a row agrees, the expected answers, and comparisons of 50 each.
        width = len(self.names) + 2 + len(program.outputs) + len(program.outputs) // 50
        if width > MOST_COLUMNS:
            raise DataError(
                f"export: the model takes {width:,} columns, and a sheet has {MOST_COLUMNS:,}. Ask for fewer "
                "reasons (k), or export sql, python or javascript instead."
            )

    def _add(self, name: str, title: str, formula: str) -> None:
        if len(formula) > LONGEST:
            raise DataError(
                f"export: a workbook cannot hold {title!r}: its formula has {len(formula):,} characters, and Excel "
                f"takes {LONGEST:,}. Export sql, python or javascript instead."
            )
        self._columns[name] = len(self.names)
        self.cell[name] = column_name(len(self.names))
        self.names.append(name)
        self.titles.append(title)
        self.formulas.append(formula)

    def _step(self, step: ex.Step) -> None:
        formula = "=" + self._printer.show(step.value)
        self._steps.append(step)
        self._sources[len(self.names)] = ex.Output("", step.id, "")
        self._add(step.id, step.note, formula)

    def _problem(self) -> None:
        """The messages of all problems, joined; a cell cannot hold infinity."""
        problems = []
        for i, field in zip(self.program.inputs, self.program.words.fields, strict=True):
            if not i.is_text:
                x = self._printer.show(ex.Name(i.id))
                problems.append((f'AND({x}<>"",NOT(ISNUMBER({x})))', f"{field.title} must be a number"))
        unseen = [
            c for c in self.program.checks if any(isinstance(e, ex.Cells | ex.Labels) for e in ex.walk(c.condition))
        ]
        problems += [(self._printer.show(check.condition), check.message) for check in unseen]
        texts = self.constants.range([*(message for _, message in problems), ""])
        pieces = [f'IF({condition},INDEX({texts},{n})&". ","")' for n, (condition, _) in enumerate(problems, 1)]
        joined = []
        for n in range(0, len(pieces), 20):
            self._add(f"problem{n}", "problems", "=" + "&".join(pieces[n : n + 20]))
            joined.append(self._printer.show(ex.Name(f"problem{n}")))
        self._add("problem", "problem", "=" + ("&".join(joined) or '""'))

    def _block(self, values: tuple[ex.Expr, ...]) -> str:
        """The range of adjacent values; other values are copied to adjacent cells."""
        if values not in self._blocks:
            names = self.names
            start = names.index(values[0].id) if isinstance(values[0], ex.Name) and values[0].id in names else -1
            if start < 0 or values != tuple(map(ex.Name, names[start : start + len(values)])):
                start = len(names)
                for n, value in enumerate(values):
                    self._step(ex.Step(f"block{len(self._blocks)}_{n}", value))
            self._blocks[values] = f"${column_name(start)}#:${column_name(start + len(values) - 1)}#"
        return self._blocks[values]

    def _waterfall(self) -> Iterator[ex.Output]:
        """The total of the protected features, which replaces them; one step per 100, since formulas are short."""
        parts = list(zip(self.program.outputs_of("part_"), self.program.words.pieces, strict=True))
        self.pieces = [(words.title, o.name) for o, words in parts if not words.protected]
        hidden: list[ex.Expr] = [ex.Name(o.step) for o, words in parts if words.protected]
        total: ex.Expr = ex.Number(0.0)
        for n in range(0, len(hidden), 100):
            whole = functools.reduce(operator.add, hidden[n : n + 100], total)
            self._step(ex.Step(f"protected{n}", whole, PROTECTED))
            total = ex.Name(f"protected{n}")
        if isinstance(total, ex.Name):
            self.pieces.append((PROTECTED, "protected"))
            yield ex.Output("protected", total.id, PROTECTED)

    def _answers(self, outputs: Sequence[ex.Output]) -> None:
        good = f'{self._printer.show(ex.Name("problem"))}=""'
        for o in outputs:
            value = self._printer.show(ex.Name(o.step))
            value = f"INDEX({self.constants.range(o.words)},{value}+1)" if o.words else value
            there = f"AND({good},{self._printer.show(ex.Name(o.there))}>=0)" if o.there else good
            self._sources[len(self.names)] = o
            # An answer may have the name of a step, whose cell is then no longer needed.
            self._add(o.name, o.title, f'=IF({there},{value},"")')

    # ---- values

    def value(self, name: str, values: Sequence[Any]) -> Any:
        """Return the value for a name among the values of a row."""
        return values[self._columns[name]]

    def values(self, rows: Sequence[Row]) -> list[list[Any]]:
        """Return the value of each column as Python computes it; a row with a problem has no answers."""
        outputs = tuple(replace(o, name=str(column)) for column, o in self._sources.items())
        program = replace(self.program, steps=tuple(self._steps), outputs=outputs)
        module: dict[str, Any] = {"__name__": "export"}
        exec(compile(python_module(program), "export", "exec"), module)
        names = [i.feature for i in program.inputs]
        rows_of_values = []
        for row in rows:
            try:
                computed = module["score"](dict(zip(names, row, strict=True)))
            except ValueError:
                computed = {}
            given = dict(enumerate(row)) | {int(column): value for column, value in computed.items()}
            rows_of_values.append(["" if given.get(n) is None else given[n] for n in range(len(self.names))])
        return rows_of_values
