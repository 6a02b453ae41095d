"""Rows that come in batches and may be read again, column by column if need be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, did_you_mean

__all__ = ["BATCH_ROWS", "Batches", "Progress"]

# Thirty columns of so many numbers are 60 MB.
BATCH_ROWS = 1 << 18

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Batches:
    """Rows in batches, to pass as X to `fit`; y and sample_weight are then names of columns.

    Attributes
    ----------
    names : the columns
    n_rows : how many rows there are
    read : from names of columns to an iterator over data frames with these columns, the same rows every time
    progress : called with the task, the rows read and the rows in all, after each batch

    Examples
    --------
    Anything that can be read again will do, such as a query:

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german", backend="pandas")
    >>> table = german.frame.assign(bad=german.target)
    >>> def read(columns):
    ...     return (table[list(columns)][start : start + 300] for start in range(0, 1000, 300))
    >>> rows = pr.rows.Batches(tuple(table.columns), len(table), read)
    >>> streamed = pr.AdditiveRiskModel(german.schema).fit(rows, y="bad")
    >>> whole = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    >>> bool(abs(streamed.predict_proba(table) - whole.predict_proba(table)).max() < 1e-9)
    True
    """

    names: tuple[str, ...]
    n_rows: int
    read: Callable[[tuple[str, ...]], Iterator[Any]]
    progress: Progress | None = None

    def __len__(self) -> int:
        return self.n_rows

    def batches(self, columns: Sequence[str] | None = None, task: str = "reading rows") -> Iterator[Frame]:
        """Read all rows once, some of the columns or all."""
        wanted = self.names if columns is None else tuple(dict.fromkeys(columns))
        for name in wanted:
            if name not in self.names:
                raise DataError(f"Data: there is no column {name!r}.{did_you_mean(name, self.names)}")
        done = 0
        for native in self.read(wanted):
            frame = as_frame(native)
            yield replace(frame, first=done)
            done += frame.n_rows
            if self.progress is not None:
                self.progress(task, done, self.n_rows)
        if done != self.n_rows:
            raise DataError(f"Data: {done:,} rows were read where there were {self.n_rows:,}. Did the files change?")
