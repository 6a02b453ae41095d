"""Whether what was read is the data set: rows, outcomes and a hash of the parsed columns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plainrisk.datasets.registry import Info, Partial
from plainrisk.datasets.tables import Column, Table
from plainrisk.errors import DataError

__all__ = ["content_sha256", "verify"]


def content_sha256(columns: Mapping[str, Column], target: npt.NDArray[np.uint8]) -> str:
    """Return the SHA-256 of columns and target, the same for every file format they may come in.

    Numbers count as little-endian float64 with one NaN and one zero, words as UTF-8. Names, and the order of
    columns and rows, count too.
    """
    digest = hashlib.sha256()
    for name, column in columns.items():
        digest.update(f"{name}\0".encode())
        digest.update(_words(column) if column.dtype == object else _numbers(column))
    digest.update(np.ascontiguousarray(target, dtype=np.uint8).tobytes())
    return digest.hexdigest()


def verify(entry: Info, table: Table, path: Path, expected: Info | Partial) -> None:
    """Raise DataError unless the table holds what is expected of it."""
    rows, positives = len(table.target), int(table.target.sum())
    end = f"Get the file anew (see plainrisk.datasets.info({entry.name!r}).source), or load with verify=False."
    if expected.rows is not None and rows != expected.rows:
        raise DataError(f"Datasets: {path} is not {entry.name}: {rows:,} rows, not {expected.rows:,}. {end}")
    if expected.positives is not None and positives != expected.positives:
        raise DataError(
            f"Datasets: {path} is not {entry.name}: {positives:,} rows are {entry.outcome!r}, "
            f"not {expected.positives:,}. {end}"
        )
    wanted = expected.content_sha256
    if wanted is not None and content_sha256(table.columns, table.target) != wanted:
        raise DataError(f"Datasets: {path} is not {entry.name}: its values or their order differ. {end}")


def _numbers(column: Column) -> bytes:
    values = column.astype("<f8")
    values[np.isnan(values)] = np.nan
    values += 0.0  # -0.0 becomes 0.0
    return b"n" + values.tobytes()


def _words(column: Column) -> bytes:
    return b"w" + "".join("\x1e" if text is None else f"\x1f{text}" for text in column).encode()
