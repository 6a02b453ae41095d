"""Results of tests as tables, with significant cells: text, data frame, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from plainrisk._types import Array
from plainrisk.data.frame import frame_like
from plainrisk.text import one_line, visible

__all__ = ["Cell", "Table", "Tabular", "escape_latex", "locked", "show_decimals"]

Cell = str | float

_LATEX_NAMES = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater", "|": "bar"}
_ESCAPE_LATEX = str.maketrans(
    {c: rf"\text{name}{{}}" for c, name in _LATEX_NAMES.items()} | {c: "\\" + c for c in "{}&%$#_"}
)
_ESCAPE_MARKDOWN = str.maketrans({c: "\\" + c for c in "\\`*|<"})


# ---- results as tables


def show_decimals(digits: int) -> Callable[[float], str]:
    """Return a function that writes a number with this many decimals, never as -0.000."""
    return lambda value: f"{value:z.{digits}f}"


_four_decimals = show_decimals(4)


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header; a number that is NaN is an empty cell, text is a name.

    Attributes
    ----------
    header : names of the columns
    rows : the cells
    bold : the (row, column) positions that are significant
    note : a sentence to print below the table
    show : how fractions are written as text; a frame holds them in full
    """

    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    bold: frozenset[tuple[int, int]] = frozenset()
    note: str = ""
    show: Callable[[float], str] = _four_decimals

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers, which are set flush right."""
        return all(not isinstance(row[column], str) for row in self.rows)

    def written(self, escape: Callable[[str], str], bold: str) -> list[list[str]]:
        """Return the cells as text, significant ones in the pattern `bold`."""

        def write(position: tuple[int, int], cell: Cell) -> str:
            if isinstance(cell, str):
                return escape(cell)
            if math.isnan(cell):
                return ""
            text = escape(str(cell) if isinstance(cell, int) else self.show(cell))
            # LaTeX would set a leading hyphen as a hyphen, not as a minus.
            text = "$-$" + text[1:] if escape is escape_latex and text.startswith("-") else text
            return bold.format(text) if position in self.bold else text

        return [[write((i, j), cell) for j, cell in enumerate(row)] for i, row in enumerate(self.rows)]

    def to_text(self) -> str:
        """Return the first 12 rows and columns in aligned text; a star marks significant cells."""
        lines = [[one_line(name) for name in self.header], *self.written(one_line, "{}*")]
        shown = [line[:12] for line in lines[:13]]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        align = [str.rjust if self.is_number(j) else str.ljust for j in range(len(widths))]
        text = ["  ".join(a(c, w) for a, c, w in zip(align, line, widths, strict=True)).rstrip() for line in shown]
        if (len(lines), len(lines[0])) != (len(shown), len(shown[0])):
            text.append(f"... {len(self.rows)} rows x {len(self.header)} columns, all of them in to_frame()")
        note = visible(self.note.replace("bold:", "starred:"))
        return "\n".join([*text, note] if note else text)


class Tabular:
    """A result that prints as a short table and can be written as one."""

    def _table(self) -> Table:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._table().to_text()

    def to_frame(self) -> Any:
        """Return a data frame: pandas if it is installed, else polars."""
        table = self._table()
        columns = zip(*table.rows, strict=True)
        return frame_like({name: list(cells) for name, cells in zip(table.header, columns, strict=True)})

    def to_markdown(self) -> str:
        """Return a Markdown table; significant cells are bold."""
        table = self._table()
        rule = ["---:" if table.is_number(j) else "---" for j in range(len(table.header))]
        lines = [[_markdown(name) for name in table.header], rule, *table.written(_markdown, "**{}**")]
        text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
        return f"{text}\n{_markdown(table.note)}\n" if table.note else text

    def to_latex(self) -> str:
        r"""Return a LaTeX tabular with booktabs rules; significant cells are bold."""
        table = self._table()
        width = len(table.header)
        columns = "".join("r" if table.is_number(j) else "l" for j in range(width))
        lines = [" & ".join(map(escape_latex, table.header)) + r" \\", r"\midrule"]
        lines += [" & ".join(cells) + r" \\" for cells in table.written(escape_latex, r"\textbf{{{}}}")]
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


def locked(array: Array) -> Array:
    """Make an array read-only, so that a frozen result is frozen."""
    array.flags.writeable = False
    return array
