"""The sheet for decision makers: the applicant on the left, the answer on the right, in the lender's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from plainrisk.export.expression import FieldWords
from plainrisk.export.spreadsheet import Layout, write_constant
from plainrisk.text import one_line

__all__ = ["FIRST_ROW", "read_formula", "write_applicant"]

FIRST_ROW = 3  # of the applicant in the sheet Rows, counted from 1: titles and names stand above; the self-test follows
WATERFALL = "From the typical applicant to this one"
# Numbers of 1,000 and more have thousands separators; whole numbers have no decimal point.
NUMBERS = (("=", "#,##0"), ("<>", "#,##0.0#########"))

Cell = tuple[str, Any]  # a formula, and its value


def write_applicant(book: Any, sheet: Any, layout: Layout, values: Sequence[Any]) -> None:
    """Write the sheet with an example applicant, whose values in the sheet Rows are given."""
    _Sheet(book, sheet, layout, values).write()


def read_formula(layout: Layout, column: int) -> str:
    """Return the formula that reads an input from the sheet, and turns a label into its code."""
    cell = f"Applicant!$B${column + 2}"
    choices = layout.program.words.fields[column].choices
    formula = cell
    if any(label != code for label, code in choices):
        labels, codes = (layout.constants.range(texts) for texts in zip(*choices, strict=True))
        at = f"SUMPRODUCT(--EXACT({labels},{cell}),ROW({labels}))"
        formula = f"IF({at}=0,{cell},INDEX({codes},{at}))"
    return f'=IF({cell}="","",{formula})'


class _Sheet:
    def __init__(self, book: Any, sheet: Any, layout: Layout, values: Sequence[Any]) -> None:
        self.book, self.sheet, self.layout, self.values = book, sheet, layout, values
        self.bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        self.wrap = book.add_format({"text_wrap": True, "valign": "top", "align": "left"})
        self.percent = book.add_format({"num_format": "0.0%", "align": "left"})
        self.signed = book.add_format({"num_format": "+0.0%;-0.0%;0.0%", "align": "left"})

    def write(self) -> None:
        for columns, width in (("A:A", 40), ("B:B", 28), ("D:D", 50), ("E:E", 60)):
            self.sheet.set_column(columns, width)
        self.sheet.set_landscape()
        self.sheet.fit_to_pages(1, 0)
        self._inputs()
        lines = list(self._answers())
        for n, (title, cell, style) in enumerate(lines):
            write_constant(self.sheet, n, 3, title, self.bold)
            self._formula(n, 4, cell, style)
        self._waterfall(len(lines) + 1)

    def _formula(self, row: int, column: int, cell: Cell, style: Any) -> None:
        self.sheet.write_formula(row, column, cell[0], style, cell[1])

    def _answer(self, name: str) -> Cell:
        """The cell of an answer, and its value."""
        return f"Rows!${self.layout.cell[name]}${FIRST_ROW}", self.layout.value(name, self.values)

    # ---- inputs

    def _inputs(self) -> None:
        look = {"bg_color": "#FFF6D6", "border": 1, "align": "left"}
        number, text = self.book.add_format(look), self.book.add_format({**look, "num_format": "@"})
        for column, title in enumerate(("Applicant", "Value (empty: not known)")):
            write_constant(self.sheet, 0, column, title, self.bold)
        inputs = self.layout.program.inputs
        for n, (i, field) in enumerate(zip(inputs, self.layout.program.words.fields, strict=True), 1):
            value = self.values[n - 1]
            shown = {code: label for label, code in field.choices}.get(value, value)
            style = text if i.is_text else number
            write_constant(self.sheet, n, 0, field.title, self.wrap)
            if shown == "":
                self.sheet.write_blank(n, 1, None, style)
            else:
                write_constant(self.sheet, n, 1, shown, style)
            if field.choices or not i.is_text:
                self.sheet.data_validation(n, 1, n, 1, self._validation(field))
        for sign, form in NUMBERS:
            criteria = f"=AND(ISNUMBER(B2),ABS(N(B2))>=1000,INT(N(B2)){sign}N(B2))"
            rule = {"type": "formula", "criteria": criteria, "format": self.book.add_format({"num_format": form})}
            self.sheet.conditional_format(1, 1, len(inputs), 1, rule)

    def _validation(self, field: FieldWords) -> dict[str, Any]:
        """The allowed input; Excel limits the lengths of the texts."""
        title, name = _short(field.title, 32), _short(field.title, 100)
        if field.choices:
            labels = self.layout.constants.range([label for label, _ in field.choices])
            return {
                "validate": "list",
                "source": f"={labels}",
                "error_type": "warning",
                "error_title": title,
                "error_message": f"{name}: this is not in the list. Choose from the list, or leave the cell empty.",
            }
        rule = {
            "validate": "decimal",
            "criteria": "between",
            "minimum": "=-1E+300",
            "maximum": "=1E+300",
            "error_title": title,
            "error_message": f"{name} must be a number. Leave the cell empty if it is not known.",
        }
        return rule | ({"input_title": title, "input_message": _short(field.hint, 255)} if field.hint else {})

    # ---- answers

    def _answers(self) -> Iterator[tuple[str, Cell, Any]]:
        """Yield the title, the cell and the style of every line."""
        program = self.layout.program

        def plain(name: str) -> Cell:
            cell, value = self._answer(name)
            return f"={cell}", value

        yield f"Probability that {program.words.outcome}", plain("risk"), self.percent
        decided = bool(program.outputs_of("decision"))
        if decided:
            yield "Decision", plain("decision"), self.bold
        yield "Please check", plain("problem"), self.wrap
        title = "Reasons for the refusal" if decided else "What counted most"
        for r in range(1, program.reasons + 1):
            yield title if r == 1 else "", self._if_refused(*self._answer(f"reason_{r}")), self.wrap
        if any(piece.protected for piece in program.words.pieces):
            yield "", self._if_refused(*self._withheld()), self.wrap

    def _if_refused(self, formula: str, value: Any) -> Cell:
        """A cell that is empty if the applicant is approved."""
        if not self.layout.program.outputs_of("decision"):
            return f"={formula}", value
        cell, decision = self._answer("decision")
        return f'=IF({cell}="refused",{formula},"")', value if decision == "refused" else ""

    def _withheld(self) -> Cell:
        cell, count = self._answer("withheld")
        one, more = "1 protected feature is not named", " protected features are not named"
        formula = f'IF(N({cell})=0,"",IF({cell}=1,"{one}",{cell}&"{more}"))'
        return formula, one if count == 1 else f"{count:.0f}{more}" if count else ""

    # ---- the waterfall

    def _waterfall(self, top: int) -> None:
        """Write what every feature adds, and the bars of the chart in hidden columns."""
        write_constant(self.sheet, top, 3, WATERFALL, self.bold)
        cell, total = self._answer("typical_risk")
        write_constant(self.sheet, top + 1, 3, "Typical applicant", self.wrap)
        self._formula(top + 1, 4, (f"={cell}", total), self.percent)
        first = top + 2
        for n, (title, name) in enumerate(self.layout.pieces, first):
            cell, piece = self._answer(name)
            write_constant(self.sheet, n, 3, title, self.wrap)
            self._formula(n, 4, (f"={cell}", piece), self.signed)
            # A bar starts where the one before it ended, or ends there if it points down.
            size = piece or 0.0
            start = (total or 0.0) + min(size, 0.0)
            self._formula(n, 5, (f"=SUM(E${first}:E{n})+MIN(E{n + 1},0)", start), None)
            self._formula(n, 6, (f"=MAX(E{n + 1},0)", max(size, 0.0)), None)
            self._formula(n, 7, (f"=-MIN(E{n + 1},0)", -min(size, 0.0)), None)
            total = (total or 0.0) + size
        last = first + len(self.layout.pieces)
        write_constant(self.sheet, last, 3, "This applicant", self.bold)
        problem, _ = self._answer("problem")
        self._formula(last, 4, (f'=IF({problem}="",SUM(E${first}:E{last}),"")', total), self.percent)
        self._chart(first, last - 1)

    def _chart(self, first: int, last: int) -> None:
        self.sheet.set_column("F:H", None, None, {"hidden": True})
        worse, better = ("#D55E00", "#0072B2")
        up, down = (worse, better) if self.layout.program.facts["adverse"] == "positive" else (better, worse)
        chart = self.book.add_chart({"type": "bar", "subtype": "stacked"})
        names = ["Applicant", first, 3, last, 3]
        for column, fill in ((5, {"none": True}), (6, {"color": up}), (7, {"color": down})):
            values = ["Applicant", first, column, last, column]
            chart.add_series({"categories": names, "values": values, "fill": fill, "gap": 40})
        chart.show_hidden_data()
        chart.set_legend({"none": True})
        chart.set_x_axis({"num_format": "0%"})
        chart.set_y_axis({"reverse": True, "label_position": "low", "interval_unit": 1})
        chart.set_title({"name": WATERFALL})
        chart.set_size({"width": 640, "height": 120 + 24 * len(self.layout.pieces)})
        self.sheet.insert_chart("J2", chart)


def _short(text: str, most: int) -> str:
    """Return a text of one line with at most this length."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"
