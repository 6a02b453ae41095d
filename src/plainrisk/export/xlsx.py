"""A workbook with live formulas: type an applicant, and see the risk, where it comes from, and the reasons.

The sheet Applicant is for decision makers, the others are for modelers. The sheet Rows holds the model, a step per
column: the applicant in its first row, the self-test below. It uses only functions that every Excel and LibreOffice
has, and every cell also stores the value of its formula, which previews show. Spreadsheets compare numbers to 15
digits, so a cut that is the last number before a round one is written as the round one (see `side_of`).
"""

from __future__ import annotations

import datetime
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from plainrisk.errors import DataError, missing_extra
from plainrisk.export.applicant import FIRST_ROW, read_formula, write_applicant
from plainrisk.export.code import side_of
from plainrisk.export.expression import Cells, Expr, Labels, Number, Program, refuse_characters
from plainrisk.export.self_test import SelfTest
from plainrisk.export.spreadsheet import Layout, column_name, write_constant

__all__ = ["ROWS_SHEET", "read_facts", "write_xlsx"]

ROWS_SHEET = 2  # counted from 1
LONGEST_TEXT = 32_767  # characters of a cell


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
    layout = Layout(program)
    example = tuple(field.example for field in program.words.fields)
    values = layout.values([example, *test.rows])
    if values[0][-1] == "":  # the example is refused: the last column always has a number
        values[0] = next(iter(values[1:]), values[0])
    # In memory: temporary files would be left behind after a signal or on a full disk.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "in_memory": True}
    with xlsxwriter.Workbook(str(path), options) as book:
        # No date, so that the same model gives the same bytes.
        book.set_properties({"comments": program.head, "created": datetime.datetime(2000, 1, 1)})
        bold = book.add_format({"bold": True})
        sheets = {
            name: book.add_worksheet(name) for name in ("Applicant", "Rows", "Scorecard", "Certificate", "Tables")
        }
        write_applicant(book, sheets["Applicant"], layout, values[0])
        agreeing = _rows(sheets["Rows"], layout, test, values)
        _scorecard(sheets["Scorecard"], program, bold)
        _certificate(sheets["Certificate"], layout, bold, len(test.rows), agreeing)
        for j, column in enumerate(layout.constants.columns):
            for n, value in enumerate(column):
                write_constant(sheets["Tables"], n, j, value)


def _rows(sheet: Any, layout: Layout, test: SelfTest, values: Sequence[Sequence[Any]]) -> int:
    """Write names and titles, the applicant, then the self-test and its expected answers; return how many agree."""
    inputs = len(layout.program.inputs)
    for column, (name, title) in enumerate(zip(layout.names, layout.titles, strict=True)):
        write_constant(sheet, 0, column, title)
        write_constant(sheet, 1, column, name)
    write_constant(sheet, 1, len(layout.names), "agrees")
    for column in range(inputs):
        sheet.write_formula(FIRST_ROW - 1, column, read_formula(layout, column), None, values[0][column])
    for n, row in enumerate(test.rows, FIRST_ROW):
        for column, value in enumerate(row):
            write_constant(sheet, n, column, value)
    for at, of_row in enumerate(values, FIRST_ROW):
        for column, formula in enumerate(layout.formulas[inputs:], inputs):
            sheet.write_formula(at - 1, column, formula.replace("#", str(at)), None, of_row[column])
    return sum(
        _expected(sheet, layout, values[n + 1], answer, FIRST_ROW + 1 + n) for n, answer in enumerate(test.answers)
    )


def _expected(sheet: Any, layout: Layout, values: Sequence[Any], answer: Sequence[Any], at: int) -> bool:
    """Write the model's answer for a row, check whether the formulas agree, and return the result."""
    column = len(layout.names)
    tests, holds = [], []
    for j, (o, expected) in enumerate(zip(layout.program.outputs, answer, strict=True), column + 1):
        correct = "" if expected is None else expected
        write_constant(sheet, at - 1, j, correct)
        a, b = f"{layout.cell[o.name]}{at}", f"{column_name(j)}{at}"
        # Texts and empty cells are compared as texts, numbers to 9 digits.
        near = f"ABS({a}-{b})<1E-9"
        tests.append(f"EXACT({a},{b})" if o.words else f'IF({b}="",{a}="",{near})' if o.there else near)
        computed = layout.value(o.name, values)
        is_text = isinstance(computed, str) or isinstance(correct, str)
        holds.append(computed == correct if is_text else abs(computed - correct) < 1e-9)
    first = column + 1 + len(tests)
    for j in range(0, len(tests), 50):
        formula = f"=AND({','.join(tests[j : j + 50])})"
        sheet.write_formula(at - 1, first + j // 50, formula, None, all(holds[j : j + 50]))
    last = first + (len(tests) - 1) // 50
    formula = f"=AND({column_name(first)}{at}:{column_name(last)}{at})"
    sheet.write_formula(at - 1, column, formula, None, all(holds))
    return all(holds)


def _scorecard(sheet: Any, program: Program, bold: Any) -> None:
    """The effect of every level on the score."""
    sheet.set_column(0, 1, 44)
    for column, title in enumerate(("Feature", "Level", "Score")):
        sheet.write_string(0, column, title, bold)
    row = 1
    for step in program.steps:
        if re.fullmatch(r"t\d+_\d+", step.id):
            for level, value in _levels(step.value):
                write_constant(sheet, row, 0, step.note)
                write_constant(sheet, row, 1, level)
                write_constant(sheet, row, 2, value)
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


def _certificate(sheet: Any, layout: Layout, bold: Any, tested: int, agreeing: int) -> None:
    program = layout.program
    sheet.set_column(0, 0, 34)
    sheet.set_column(2, 2, 80)
    lines: list[tuple[Any, ...]] = [(name, str(value)) for name, value in program.facts.items()]
    column = column_name(len(layout.names))
    for n, line in enumerate(lines):
        for j, text in enumerate(line):
            write_constant(sheet, n, j, text, bold if j == 0 else None)
    at = len(lines)
    write_constant(sheet, at, 0, "self-test: rows that agree", bold)
    agrees = f"Rows!{column}{FIRST_ROW + 1}:{column}{FIRST_ROW + tested}"
    sheet.write_formula(at, 1, f"=SUMPRODUCT(--({agrees}=TRUE))", None, agreeing)
    write_constant(sheet, at, 2, f"of {tested}")
    for n, (name, holds, detail) in enumerate(program.certificate, at + 2):
        for j, text in enumerate((name, "holds" if holds else "BROKEN", detail)):
            write_constant(sheet, n, j, text[:LONGEST_TEXT])


def read_facts(path: str | Path) -> Any:
    """Return the facts that a workbook states about itself."""
    try:
        with zipfile.ZipFile(path) as file:
            core = ElementTree.fromstring(file.read("docProps/core.xml"))
        text = core.findtext("{http://purl.org/dc/elements/1.1/}description") or ""
        return json.loads(text.removeprefix("plainrisk export ") or "{}")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise DataError(f"{path} cannot be read as a workbook: {error}") from None
