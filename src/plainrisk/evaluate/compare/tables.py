"""The output of every comparison: one small table, as a data frame, as Markdown, as LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from plainrisk.data.frame import frame_like

__all__ = ["Cell", "Table", "Tabular", "escape_latex", "show_decimals", "show_p"]

Cell = str | float

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_ESCAPE_LATEX = str.maketrans(_LATEX)
_ESCAPE_MARKDOWN = str.maketrans({c: "\\" + c for c in "\\`*|<"})


def show_decimals(digits: int) -> Callable[[float], str]:
    """Return a function that writes a number with so many decimals, never as -0.000."""
    return lambda value: f"{value:z.{digits}f}"


def show_p(p: float) -> str:
    """Write a p-value.

    >>> show_p(0.03217), show_p(3e-9)
    ('0.0322', '<0.0001')
    """
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


_FOUR_DECIMALS = show_decimals(4)


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header; a float is a number (NaN an empty cell), text is a name.

    Attributes
    ----------
    header : names of the columns
    rows : the cells
    bold : the (row, column) places that are significant
    note : a sentence to stand below the table
    show : how numbers are written in Markdown and LaTeX; a frame holds them in full
    """

    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    bold: frozenset[tuple[int, int]] = frozenset()
    note: str = ""
    show: Callable[[float], str] = _FOUR_DECIMALS

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers, which are set flush right."""
        return all(not isinstance(row[column], str) for row in self.rows)


class Tabular:
    """A result that can be written as a table."""

    def _table(self) -> Table:
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Return a data frame: pandas if it is installed, else polars."""
        table = self._table()
        columns = zip(*table.rows, strict=True)
        return frame_like({name: list(cells) for name, cells in zip(table.header, columns, strict=True)})

    def to_markdown(self) -> str:
        """Return a Markdown table; significant cells are bold."""
        table = self._table()
        rule = ["---:" if table.is_number(j) else "---" for j in range(len(table.header))]
        body = _written(table, _markdown, "**{}**")
        lines = [[_markdown(name) for name in table.header], rule, *body]
        text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
        return f"{text}\n{_markdown(table.note)}\n" if table.note else text

    def to_latex(self) -> str:
        r"""Return a LaTeX tabular with booktabs rules; significant cells are bold."""
        table = self._table()
        width = len(table.header)
        columns = "".join("r" if table.is_number(j) else "l" for j in range(width))
        lines = [" & ".join(map(escape_latex, table.header)) + r" \\", r"\midrule"]
        lines += [" & ".join(cells) + r" \\" for cells in _written(table, escape_latex, r"\textbf{{{}}}")]
        note = rf"\multicolumn{{{width}}}{{l}}{{\footnotesize {escape_latex(table.note)}}}" + r" \\"
        tail = [r"\bottomrule", *([note] if table.note else []), r"\end{tabular}", ""]
        return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *lines, *tail])


def escape_latex(text: str) -> str:
    """Escape what LaTeX would read as a command.

    >>> print(escape_latex("LC_12 & 5%"))
    LC\\_12 \\& 5\\%
    """
    return " ".join(text.translate(_ESCAPE_LATEX).split())


def _markdown(text: str) -> str:
    return " ".join(text.translate(_ESCAPE_MARKDOWN).split())


def _written(table: Table, escape: Callable[[str], str], bold: str) -> list[list[str]]:
    def write(place: tuple[int, int], cell: Cell) -> str:
        if isinstance(cell, str):
            return escape(cell)
        if math.isnan(cell):
            return ""
        text = escape(table.show(cell))
        # LaTeX would set a leading hyphen as a hyphen, not as a minus.
        text = "$-$" + text[1:] if escape is escape_latex and text.startswith("-") else text
        return bold.format(text) if place in table.bold else text

    return [[write((i, j), cell) for j, cell in enumerate(row)] for i, row in enumerate(table.rows)]
