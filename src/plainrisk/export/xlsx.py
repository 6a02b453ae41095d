"""A workbook with live formulas: type an applicant, see the risk, where it comes from, and the reasons.

The sheet Rows holds the model, a step per column: the applicant in its first row, the self-test below. Only functions
that every Excel and LibreOffice has are used. Spreadsheets compare numbers to 15 digits, so a cut that is the
last number before a round one is written as that one (see `side_of`).
"""

from __future__ import annotations

import datetime
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from plainrisk.errors import DataError, missing_extra
from plainrisk.export.code import side_of
from plainrisk.export.expression import (
    Cells,
    Expr,
    Labels,
    Name,
    Number,
    Program,
    Step,
    refuse_characters,
    walk,
)
from plainrisk.export.self_test import SelfTest
from plainrisk.export.spreadsheet import Constants, FormulaPrinter, column_name

__all__ = ["FIRST_ROW", "ROWS_SHEET", "read_facts", "write_xlsx"]

ROWS_SHEET = 2  # counted from 1
FIRST_ROW = 3  # of the applicant, counted from 1: titles and names stand above; the self-test follows
LONGEST = 8000  # characters of a formula; Excel takes 8,192
LONGEST_TEXT = 32_767  # characters of a cell


class _Workbook:
    """Where everything stands in the sheet Rows: a column per input, step, reason and answer."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.constants = Constants()
        self.names: list[str] = []
        self.titles: list[str] = []
        self.formulas: list[str] = []
        self.cell: dict[str, str] = {}
        self.blocks: dict[tuple[Expr, ...], str] = {}
        self.printer = FormulaPrinter(self.cell, self.constants, self._block)
        for i in program.inputs:
            self._add(i.id, i.feature, "")
        self._problem()
        for step in program.steps:
            self._step(step)
        self._answers()

    def _add(self, name: str, title: str, formula: str) -> None:
        if len(formula) > LONGEST:
            raise DataError(
                f"export: a workbook cannot hold {title!r}: its formula has {len(formula):,} characters, and Excel "
                f"takes {LONGEST:,}. Export sql, python or javascript instead."
            )
        self.cell[name] = column_name(len(self.names))
        self.names.append(name)
        self.titles.append(title)
        self.formulas.append(formula)

    def _step(self, step: Step) -> None:
        self._add(step.id, step.note, "=" + self.printer.show(step.value))

    def _problem(self) -> None:
        """The messages of all problems, joined; infinity cannot stand in a cell."""
        found = []
        for i in self.program.inputs:
            if not i.is_text:
                x = self.printer.show(Name(i.id))
                found.append((f'AND({x}<>"",NOT(ISNUMBER({x})))', f"feature {i.feature!r} must be a number"))
        unseen = [c for c in self.program.checks if any(isinstance(e, Cells | Labels) for e in walk(c.condition))]
        found += [(self.printer.show(check.condition), check.message) for check in unseen]
        texts = self.constants.range([*(message for _, message in found), ""])
        pieces = [f'IF({condition},INDEX({texts},{n})&". ","")' for n, (condition, _) in enumerate(found, 1)]
        joined = []
        for n in range(0, len(pieces), 20):
            self._add(f"problem{n}", "problems", "=" + "&".join(pieces[n : n + 20]))
            joined.append(self.printer.show(Name(f"problem{n}")))
        self._add("problem", "problem", "=" + ("&".join(joined) or '""'))

    def _block(self, values: tuple[Expr, ...]) -> str:
        """The range of values that stand side by side; others are copied to where they do."""
        if values not in self.blocks:
            names = self.names
            start = names.index(values[0].id) if isinstance(values[0], Name) and values[0].id in names else -1
            if start < 0 or values != tuple(map(Name, names[start : start + len(values)])):
                start = len(names)
                for n, value in enumerate(values):
                    self._add(f"block{len(self.blocks)}_{n}", "", "=" + self.printer.show(value))
            self.blocks[values] = f"${column_name(start)}#:${column_name(start + len(values) - 1)}#"
        return self.blocks[values]

    def _answers(self) -> None:
        good = f'{self.printer.show(Name("problem"))}=""'
        for o in self.program.outputs:
            value = self.printer.show(Name(o.step))
            value = f"INDEX({self.constants.range(o.words)},{value}+1)" if o.words else value
            there = f"AND({good},{self.printer.show(Name(o.there))}>=0)" if o.there else good
            # The names of answers may be those of steps, whose cells are then no longer needed.
            self._add(o.name, o.title, f'=IF({there},{value},"")')

    def answer(self, name: str, row: int = FIRST_ROW) -> str:
        """Return the reference of an answer in the sheet Rows."""
        return f"Rows!${self.cell[name]}${row}"


def write_xlsx(path: Path, program: Program, test: SelfTest) -> None:
    """Write the workbook."""
    try:
        import xlsxwriter
    except ImportError:
        raise missing_extra("xlsxwriter", "export") from None
    refuse_characters(program, r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "a workbook")
    if any(len(text) > LONGEST_TEXT for text in program.texts):
        raise DataError(
            f"export: a cell of a workbook holds {LONGEST_TEXT:,} characters, and a name or label has more."
        )
    layout = _Workbook(program)
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(str(path), options) as book:
        # No date, so that the same model gives the same bytes.
        book.set_properties({"comments": program.head, "created": datetime.datetime(2000, 1, 1)})
        styles = {
            "bold": book.add_format({"bold": True}),
            "input": book.add_format({"bg_color": "#FFF6D6", "border": 1}),
            "percent": book.add_format({"num_format": "0.0%"}),
            "signed": book.add_format({"num_format": "+0.0%;-0.0%;0.0%"}),
            "wrap": book.add_format({"text_wrap": True, "valign": "top"}),
        }
        sheets = {
            name: book.add_worksheet(name) for name in ("Applicant", "Rows", "Scorecard", "Certificate", "Tables")
        }
        _applicant(book, sheets["Applicant"], layout, styles)
        _rows(sheets["Rows"], layout, test)
        _scorecard(sheets["Scorecard"], program, styles)
        _certificate(sheets["Certificate"], program, styles, layout, len(test.rows))
        for j, column in enumerate(layout.constants.columns):
            for n, value in enumerate(column):
                _write(sheets["Tables"], n, j, value)


def _write(sheet: Any, row: int, column: int, value: Any, style: Any = None) -> None:
    """Write a constant; a text is never a formula, and an empty one is written, too."""
    if isinstance(value, str):
        sheet.write_string(row, column, value, style)
    elif value is not None:
        sheet.write_number(row, column, value, style)


def _applicant(book: Any, sheet: Any, layout: _Workbook, styles: dict[str, Any]) -> None:
    """Inputs on the left, the answer on the right, and the waterfall."""
    program = layout.program
    sheet.set_column(0, 0, 36)
    sheet.set_column(3, 3, 44)
    for column, title in ((0, "Feature"), (1, "Value (empty: missing)"), (3, "Answer"), (4, "")):
        sheet.write_string(0, column, title, styles["bold"])
    for n, i in enumerate(program.inputs, 1):
        _write(sheet, n, 0, i.feature)
        sheet.write_blank(n, 1, None, styles["input"])
    lines = [("Risk", "risk", "percent"), ("Problem", "problem", "wrap")]
    lines += [(f"Reason {r}", f"reason_{r}", "wrap") for r in range(1, program.reasons + 1)]
    for n, (title, name, style) in enumerate(lines, 1):
        _write(sheet, n, 3, title, styles["bold"])
        sheet.write_formula(n, 4, f"={layout.answer(name)}", styles[style])
    top = len(lines) + 3
    for column, title in enumerate(("From the typical applicant to the risk", "contribution", "from", "up", "down")):
        sheet.write_string(top - 1, 3 + column, title, styles["bold"])
    _write(sheet, top, 3, "typical applicant")
    sheet.write_formula(top, 4, f"={layout.answer('typical_risk')}", styles["percent"])
    parts = [o for o in program.outputs if o.name.startswith("part_")]
    for n, o in enumerate(parts, top + 2):
        _write(sheet, n - 1, 3, o.title)
        sheet.write_formula(n - 1, 4, f"={layout.answer(o.name)}", styles["signed"])
        # The bar of a piece starts where the pieces before it end, at its lower end.
        sheet.write_formula(n - 1, 5, f"=SUM(E${top + 1}:E{n - 1})+MIN(E{n},0)", styles["percent"])
        sheet.write_formula(n - 1, 6, f"=MAX(E{n},0)", styles["percent"])
        sheet.write_formula(n - 1, 7, f"=MAX(-E{n},0)", styles["percent"])
    last = top + len(parts)
    chart = book.add_chart({"type": "bar", "subtype": "stacked"})
    names = ["Applicant", top + 1, 3, last, 3]
    for column, colour in ((5, None), (6, "#D55E00"), (7, "#0072B2")):
        fill = {"none": True} if colour is None else {"color": colour}
        values = ["Applicant", top + 1, column, last, column]
        chart.add_series({"categories": names, "values": values, "fill": fill, "gap": 40})
    chart.set_legend({"none": True})
    chart.set_y_axis({"reverse": True})
    chart.set_title({"name": "From the typical applicant to the risk"})
    chart.set_size({"width": 640, "height": 80 + 24 * len(parts)})
    sheet.insert_chart(1, 9, chart)


def _rows(sheet: Any, layout: _Workbook, test: SelfTest) -> None:
    """Names and titles, the applicant's row, then the self-test with its expected answers behind."""
    inputs = len(layout.program.inputs)
    for column, (name, title) in enumerate(zip(layout.names, layout.titles, strict=True)):
        _write(sheet, 0, column, title)
        _write(sheet, 1, column, name)
    width = len(layout.names)
    _write(sheet, 1, width, "agrees")
    for n, row in enumerate([None, *test.rows]):
        at = FIRST_ROW + n
        for column in range(inputs):
            if row is None:
                cell = f"Applicant!$B${column + 2}"
                sheet.write_formula(at - 1, column, f'=IF({cell}="","",{cell})')
            else:
                _write(sheet, at - 1, column, row[column])
        for column, formula in enumerate(layout.formulas[inputs:], inputs):
            sheet.write_formula(at - 1, column, formula.replace("#", str(at)))
        if row is not None:
            _expected(sheet, layout, test, n - 1, at, width)


def _expected(sheet: Any, layout: _Workbook, test: SelfTest, n: int, at: int, column: int) -> None:
    """Write what the model said of a row, and whether the formulas say the same."""
    program = layout.program
    for j, value in enumerate(test.answers[n], column + 1):
        _write(sheet, at - 1, j, "" if value is None else value)
    tests = []
    for j, o in enumerate(program.outputs, column + 1):
        mine, yours = f"{layout.cell[o.name]}{at}", f"{column_name(j)}{at}"
        # Texts and empty cells are compared as texts, numbers to 9 digits.
        near = f"ABS({mine}-{yours})<1E-9"
        tests.append(f"EXACT({mine},{yours})" if o.words else f'IF({yours}="",{mine}="",{near})' if o.there else near)
    first = column + 1 + len(tests)
    for j in range(0, len(tests), 50):
        formula = f"=AND({','.join(tests[j : j + 50])})"
        sheet.write_formula(at - 1, first + j // 50, formula)
    last = first + (len(tests) - 1) // 50
    sheet.write_formula(at - 1, column, f"=AND({column_name(first)}{at}:{column_name(last)}{at})")


def _scorecard(sheet: Any, program: Program, styles: dict[str, Any]) -> None:
    """What every level adds to the score."""
    sheet.set_column(0, 1, 44)
    for column, title in enumerate(("Feature", "Level", "Score")):
        sheet.write_string(0, column, title, styles["bold"])
    row = 1
    for step in program.steps:
        if re.fullmatch(r"t\d+_\d+", step.id):
            for level, value in _levels(step.value):
                _write(sheet, row, 0, step.note)
                _write(sheet, row, 1, level)
                _write(sheet, row, 2, value)
                row += 1


def _levels(e: Expr) -> Iterator[tuple[str, float | str]]:
    def score(value: Expr | None) -> float | str:
        return value.value if isinstance(value, Number) else "a line or a curve"

    if isinstance(e, Cells):
        start = ""
        for cut, value in zip(e.cuts, e.values, strict=False):
            closed, end = side_of(cut, e.open)
            yield f"{start}{'up to' if closed else 'below'} {end:g}", score(value)
            start = f"{'above' if closed else 'from'} {end:g}, "
        yield start.rstrip(", ") or "any value", score(e.values[-1])
        yield "missing", score(e.missing)
    elif isinstance(e, Labels):
        yield from ((label, score(value)) for label, value in e.values.items())
        yield from (("missing", score(e.missing)), ("unseen", score(e.unseen)))
    else:
        yield "a pair of features: see the sheet Tables", ""


def _certificate(sheet: Any, program: Program, styles: dict[str, Any], layout: _Workbook, tested: int) -> None:
    sheet.set_column(0, 0, 34)
    sheet.set_column(2, 2, 80)
    lines: list[tuple[Any, ...]] = [(name, str(value)) for name, value in program.facts.items()]
    column = column_name(len(layout.names))
    for n, line in enumerate(lines):
        for j, text in enumerate(line):
            _write(sheet, n, j, text, styles["bold"] if j == 0 else None)
    at = len(lines)
    _write(sheet, at, 0, "self-test: rows that agree", styles["bold"])
    agrees = f"Rows!{column}{FIRST_ROW + 1}:{column}{FIRST_ROW + tested}"
    sheet.write_formula(at, 1, f"=SUMPRODUCT(--({agrees}=TRUE))")
    _write(sheet, at, 2, f"of {tested}")
    for n, (name, holds, detail) in enumerate(program.certificate, at + 2):
        for j, text in enumerate((name, "holds" if holds else "BROKEN", detail)):
            _write(sheet, n, j, text[:LONGEST_TEXT])


def read_facts(path: str | Path) -> Any:
    """Return what a workbook says of itself."""
    try:
        with zipfile.ZipFile(path) as file:
            core = ElementTree.fromstring(file.read("docProps/core.xml"))
        text = core.findtext("{http://purl.org/dc/elements/1.1/}description") or ""
        return json.loads(text.removeprefix("plainrisk export ") or "{}")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise DataError(f"{path} cannot be read as a workbook: {error}") from None
