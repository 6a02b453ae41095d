"""Questions to ask of finished rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.adapters import METHODS
from benchmarks.plan import REAL, SHAPES

Row = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """The rows of a run."""

    rows: Sequence[Row]

    def at_first(self) -> Results:
        """Return the same with the best of the first runs alone."""
        return Results(
            [r | {"seconds": min(r["seconds_at_first"])} if "seconds_at_first" in r else r for r in self.rows]
        )

    def row(self, part: str, at: str, method: str) -> Row:
        """Return one row, or an empty one."""
        return next((r for r in self.rows if (r["part"], r["at"], r["method"]) == (part, at, method)), {})

    def value(self, part: str, at: str, method: str, field: str = "seconds") -> float | None:
        """Return one measurement, or None."""
        found = self.row(part, at, method).get(field)
        return None if found is None else float(found)

    def part(self, part: str) -> list[Row]:
        """Return the rows of one part."""
        return [r for r in self.rows if r["part"] == part]

    def shapes(self, part: str = "fit") -> list[str]:
        """Return the shapes that were run, synthetic ones first."""
        ran = {r["at"] for r in self.part(part)}
        return [s for s in (*SHAPES, *REAL) if s in ran]

    def methods(self, part: str) -> list[str]:
        """Return the methods of a part, in the order of the table."""
        ran = {r["method"] for r in self.part(part)}
        return [m for m in METHODS if m in ran]

    def at_least(self, part: str, at: str, method: str) -> tuple[float | None, bool]:
        """Return the seconds, or the time limit that was passed, and whether it is only that."""
        row = self.row(part, at, method)
        if "seconds" in row:
            return float(row["seconds"]), False
        return (float(row["over"]), True) if row.get("over") else (None, False)
