"""Lending Club's loans: blocks of the full file, and the years 2007 to 2011.

The full file has some 2.3 million rows of 151 columns and is read row by row, twice: once for the order of
the resolved loans, once for the rows of one block. Only that block is ever in memory.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import compress, islice
from operator import itemgetter
from pathlib import Path

import numpy as np

from plainrisk._types import Array, Counts, Outcome
from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.reader import read_file
from plainrisk.datasets.tables import Table, numbers, open_text, tidy
from plainrisk.errors import DataError
from plainrisk.schema import Schema
from plainrisk.threads import PIECE_ROWS

__all__ = ["BLOCK", "Resolved", "read_block", "read_years", "resolved_loans"]

BLOCK = 100_000
_RESOLVED = {"Fully Paid": 0, "Charged Off": 1}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Resolved:
    """The loans of a file that ended, in order of issue.

    Attributes
    ----------
    rows : their row numbers in the file
    charged_off : 1 charged off, 0 fully paid
    """

    rows: Counts
    charged_off: Outcome

    def block(self, k: int, size: int = BLOCK) -> Resolved:
        """Return the k-th block of loans; the last may be smaller."""
        part = slice(k * size, (k + 1) * size)
        return Resolved(self.rows[part], self.charged_off[part])


def resolved_loans(path: Path) -> Resolved:
    """Find the fully paid and charged off loans of a file, and order them by month of issue.

    Loans of one month keep the order of the file. The result is cached until the file changes.
    """
    state = path.stat()
    return _resolved_loans(path, (state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=2)
def _resolved_loans(path: Path, _state: tuple[int, int]) -> Resolved:
    rows, months, outcomes = array("q"), array("q"), array("b")
    with open_text(path) as stream:
        reader = csv.reader(stream)
        header = next(reader, [])
        status, issued = _positions(path, header, ("loan_status", "issue_d"))
        for i, row in enumerate(reader):
            # Totals and notes appear between the loans; they have no status.
            outcome = _RESOLVED.get(row[status]) if len(row) == len(header) else None
            if outcome is not None:
                rows.append(i)
                months.append(_month(row[issued]))
                outcomes.append(outcome)
    order = np.argsort(np.asarray(months, dtype=np.int64), kind="stable")
    return Resolved(np.asarray(rows, dtype=np.int64)[order], np.asarray(outcomes, dtype=np.uint8)[order])


def read_block(path: Path, schema: Schema, k: int, *, size: int = BLOCK) -> Table:
    """Read the k-th block of the resolved loans of a file."""
    loans = resolved_loans(path)
    block = loans.block(k, size)
    if not len(block.rows):
        raise DataError(f"Datasets: {path} has {len(loans.rows):,} resolved loans, so there is no block {k}.")
    columns = _read_rows(path, schema, np.sort(block.rows))
    back = np.argsort(np.argsort(block.rows, kind="stable"), kind="stable")
    return Table({name: column[back] for name, column in columns.items()}, block.charged_off)


def _read_rows(path: Path, schema: Schema, rows: Counts) -> dict[str, Array]:
    """Read some rows of a file, given in rising order, a few thousand at a time."""
    wanted = np.zeros(rows[-1] + 1, dtype=bool)
    wanted[rows] = True
    parts: dict[str, list[Array]] = {name: [] for name in schema.features}
    with open_text(path) as stream:
        reader = csv.reader(stream)
        pick = itemgetter(*_positions(path, next(reader), tuple(schema.features)))
        picked = map(pick, compress(reader, wanted.tolist()))
        while chunk := list(islice(picked, PIECE_ROWS)):
            for name, texts in zip(parts, zip(*chunk, strict=True), strict=True):
                parts[name].append(_convert(name, texts, schema, path))
    return {name: tidy(np.concatenate(chunks)) for name, chunks in parts.items()}


def _positions(path: Path, header: Sequence[str], names: tuple[str, ...]) -> list[int]:
    absent = [name for name in names if name not in header]
    if absent:
        raise DataError(f"Datasets: {path} is not Lending Club's file of accepted loans: no column {absent[0]!r}.")
    return [header.index(name) for name in names]


# ---- cells to values


def _convert(name: str, texts: Sequence[str], schema: Schema, path: Path) -> Array:
    if schema.features[name].kind == "categorical":
        return np.array([_word(text) for text in texts], dtype=object)
    special: dict[str, Callable[[str], float]] = {"issue_d": _month, "sub_grade": _sub_grade}
    if name in special:
        return np.array([special[name](text) for text in texts], dtype=float)
    return numbers([text.rstrip("% ") for text in texts], f"{path}: column {name!r}").astype(float)


@cache
def _word(text: str) -> str | None:
    text = text.strip()
    return None if text in ("", "n/a") else text


@cache
def _month(text: str) -> int:
    """Return the months since January 2007 of 'Dec-2015' or '2015-12-01'."""
    try:
        first, second = text.strip().split("-")[:2]
        year, month = (int(second), _MONTHS.index(first)) if first in _MONTHS else (int(first), int(second) - 1)
        if not (1900 <= year <= 2100 and 0 <= month < 12):
            raise ValueError("out of range")
    except ValueError:
        raise DataError(f"Datasets: {text!r} is not a month as in 'Dec-2015' or '2015-12-01'.") from None
    return 12 * (year - 2007) + month


@cache
def _sub_grade(text: str) -> float:
    """Return A1 as 1, A2 as 2 and so on to G5 as 35."""
    text = text.strip()
    if len(text) != 2 or text[0] not in "ABCDEFG" or text[1] not in "12345":
        raise DataError(f"Datasets: {text!r} is not a sub-grade from A1 to G5.")
    return 5.0 * "ABCDEFG".index(text[0]) + int(text[1])


# ---- 2007 to 2011


def read_years(path: Path, schema: Schema, drop: tuple[str, ...] = ()) -> Table:
    """Read the loans of 2007 to 2011 from Parquet: the features of the schema that these years have.

    Interest rates and utilization, fractions in that copy, become per cent as in the full file.
    """
    frame = as_frame(read_file(path, {}))
    texts = frame.labels("loan_status")
    outcome = np.array([int(label.endswith("Charged Off")) for label in texts.labels], dtype=np.uint8)
    kept = [name for name in schema.features if name in frame.names and name not in drop]
    columns = {name: _year_column(frame, name, schema, path) for name in kept}
    present = {name: tidy(column) for name, column in columns.items() if not _all_missing(column)}
    return Table(present, outcome[texts.codes])


def _year_column(frame: Frame, name: str, schema: Schema, path: Path) -> Array:
    if schema.features[name].kind == "continuous" and name not in ("issue_d", "sub_grade"):
        values = frame.numbers(name)
        return np.round(100 * values, 6) if name in ("int_rate", "revol_util") else values
    labels = frame.labels(name)
    words = [f"{label} months" if name == "term" else label for label in labels.labels]
    if (labels.codes < 0).any():
        words.append("")  # missing has code -1, the last position
    return _convert(name, words, schema, path)[labels.codes]


def _all_missing(column: Array) -> bool:
    return all(v is None for v in column) if column.dtype == object else bool(np.isnan(column).all())
