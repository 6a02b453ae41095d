"""Results as they come, one JSON object per line, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def kept(path: Path) -> dict[str, Row]:
    """Return the finished rows by key, the last of each; a broken last line is ignored."""
    found: dict[str, Row] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            found[row["key"]] = row
    return found


def add(path: Path, row: Row) -> None:
    """Append one row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def is_final(row: Row) -> bool:
    """Whether a row need not be run again: all but errors that may have been mended since."""
    fault = row.get("error") or row.get("note") or ""
    return fault == "" or bool(row.get("over")) or fault.startswith(("not run", "not done"))
