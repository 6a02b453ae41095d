"""Results with a table: how they print, and how they become data frames, Markdown and plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, ClassVar

import numpy as np

from plainrisk._types import Array
from plainrisk.data.frame import Origin, frame_like
from plainrisk.text import one_line, plain_number, visible

__all__ = ["TableResult", "cell_text", "is_figure", "markdown_table", "text_table"]


def text_table(head: str, columns: Mapping[str, Sequence[Any] | Array], *, rows: int = 8, width: int = 110) -> str:
    """Return a heading and the first rows and columns of a table as text that fits a screen.

    >>> print(text_table("Two features", {"feature": ["age", "job"], "psi": [0.01, 0.25]}))
    Two features
      feature   psi
      age      0.01
      job      0.25
    """
    total = len(next(iter(columns.values())))
    lines = [""] * (1 + min(rows, total))
    shown = 0
    for name, column in columns.items():
        cells = [_cell(name), *(_cell(value) for value in column[:rows])]
        size = max(map(len, cells))
        if len(lines[0]) + 2 + size > width:
            break
        side = "<" if any(isinstance(value, str) for value in column[:rows]) else ">"
        lines = [f"{line}  {cell:{side}{size}}" for line, cell in zip(lines, cells, strict=True)]
        shown += 1
    left_out = {"rows": total - rows, "columns": len(columns) - shown}
    more = ", ".join(f"{n:,} more {what}" for what, n in left_out.items() if n > 0)
    return "\n".join([visible(head), *(line.rstrip() for line in lines), *([f"  ... {more}"] if more else [])])


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    text = plain_number(float(value), 4) if isinstance(value, float | np.floating) else one_line(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


class TableResult:
    """A result with a table: it prints the first lines, and becomes a data frame or plain data.

    A class names the field with the lines of its table, and their class, or defines `columns` itself.
    """

    _lines: ClassVar[tuple[str, Any]]

    def _headline(self) -> str:
        raise NotImplementedError

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name; the ends of an interval are separate columns, _low and _high.

        Fields with several values are left out.
        """
        name, kind = self._lines
        lines, columns = getattr(self, name), {}
        for field in fields(kind):
            if field.type == "Range":
                for end, suffix in (("estimate", ""), ("low", "_low"), ("high", "_high")):
                    columns[field.name + suffix] = [getattr(getattr(line, field.name), end) for line in lines]
            elif not str(field.type).startswith(("tuple", "Mapping")):
                columns[field.name] = [getattr(line, field.name) for line in lines]
        return columns

    @property
    def origin(self) -> Origin | None:
        """The origin of the rows, for tables with a line per row."""
        return None

    def __repr__(self) -> str:
        return text_table(self._headline(), self.columns())

    def to_frame(self, like: Any = None) -> Any:
        """Return the table as a data frame of the library `like` came from.

        Without `like` it is that of the rows; pandas, else polars, if they came from none. Lines are in the order of
        the rows, and in pandas they have the index of the rows.
        """
        return frame_like(self.columns(), like, self.origin)

    def to_dict(self) -> Any:
        """Return everything as plain data."""
        return asdict(self)  # type: ignore[call-overload]

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        columns = self.columns()
        return markdown_table([list(columns), *zip(*columns.values(), strict=True)])


def markdown_table(lines: Sequence[Sequence[Any]]) -> str:
    """Return lines of cells, the header first, as a table in Markdown."""
    rule = ["---:" if is_figure(cell) else "---" for cell in (lines[1] if len(lines) > 1 else lines[0])]
    texts = [[cell_text(cell).replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in (texts[0], rule, *texts[1:]))


def cell_text(cell: Any) -> str:
    """Write a cell for people; None and NaN are empty.

    >>> cell_text(1200), cell_text(0.1234567), cell_text(True), cell_text(None)
    ('1,200', '0.123457', 'yes', '')
    """
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return plain_number(cell)
    return f"{cell:,}" if isinstance(cell, int | np.integer) else one_line(cell)


def is_figure(cell: Any) -> bool:
    """Whether a cell is a number."""
    return isinstance(cell, int | float | np.number) and not isinstance(cell, bool)
