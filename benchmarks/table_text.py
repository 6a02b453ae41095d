"""What the benchmark scripts share: a table in Markdown, results in JSON, one thread per process."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def one_thread() -> None:
    """Keep every library on one thread, so that timings compare; call it before they are imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def markdown(rows: Sequence[Row], columns: Sequence[tuple[str, str, str]]) -> str:
    """Return rows as a Markdown table.

    Parameters
    ----------
    columns : (heading, key, format) each; a row that failed shows its error behind its first two cells
    """
    head = [" | ".join(heading for heading, _, _ in columns), " | ".join("---" for _ in columns)]
    body = [" | ".join(_cells(row, columns)) for row in rows]
    return "\n".join(f"| {line} |" for line in (*head, *body))


def _cells(row: Row, columns: Sequence[tuple[str, str, str]]) -> list[str]:
    if "error" in row:
        known = [str(row.get(key, "")) for _, key, _ in columns if isinstance(row.get(key), str)]
        error = row["error"].replace("|", "/").replace("\n", " ")[:120]
        return [*known, f"failed: {error}", *([""] * (len(columns) - len(known) - 1))]
    return [format(row[key], spec) if row.get(key) is not None else "" for _, key, spec in columns]


def write_json(path: str | None, rows: Sequence[Row]) -> None:
    """Write the rows to a file, if one is named."""
    if path is not None:
        Path(path).write_text(json.dumps(list(rows), indent=1) + "\n")


def describe(error: Exception) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")
