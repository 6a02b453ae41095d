"""Rows that come in batches, for data larger than memory: Parquet and CSV files, or anything that can be read again."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, did_you_mean, missing_extra

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BATCH_ROWS", "Batches", "Rows", "csv", "parquet"]

# Thirty columns of this many numbers are 60 MB.
BATCH_ROWS = 1 << 18

Progress = Callable[[str, int, int], None]
Files = str | Path | Sequence[str | Path]


class Rows(Protocol):
    """Rows wherever they lie: a `Frame` in memory is one batch, files are many."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    def batches(self, columns: Sequence[str] | None = None, task: str = ...) -> Iterator[Frame]:
        """Read all rows once, some of the columns or all; the same rows every time."""


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


def parquet(files: Files, *, batch_rows: int = BATCH_ROWS, progress: Progress | None = None) -> Batches:
    """Return the rows of Parquet files, to be read in batches.

    Parameters
    ----------
    files : a file, a pattern such as "loans/*.parquet", or a list of them; rows come in the order of the names
    batch_rows : rows held at a time, whatever the row groups
    progress : called with the task, the rows read and the rows in all, after each batch

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(1_000, 0)
    >>> credit.frame.with_columns(bad=credit.target).write_parquet("loans.parquet")
    >>> model = pr.AdditiveRiskModel(credit.schema).fit(pr.rows.parquet("loans.parquet"), y="bad")
    >>> model.fit_record_.rows
    1000
    """
    paths = _paths(files)
    pl = _polars()
    return _batches(lambda: pl.scan_parquet(paths, glob=False), paths, batch_rows, progress)


def csv(
    files: Files, *, missing: Sequence[str] = (), batch_rows: int = BATCH_ROWS, progress: Progress | None = None
) -> Batches:
    """Return the rows of CSV files (or .csv.gz), to be read in batches.

    The type of a column is that of its first 10,000 rows; a cell that does not fit is an error that names it.

    Parameters
    ----------
    files, batch_rows, progress : as for `parquet`
    missing : texts that stand for a missing value, beside the empty one
    """
    paths = _paths(files)
    pl = _polars()

    def scan() -> Any:
        return pl.scan_csv(paths, glob=False, null_values=["", *missing], infer_schema_length=10_000)

    return _batches(scan, paths, batch_rows, progress)


def _batches(scan: Callable[[], pl.LazyFrame], paths: list[Path], rows: int, progress: Progress | None) -> Batches:
    pl = _polars()
    if rows < 1:
        raise DataError(f"batch_rows must be 1 or more, not {rows}.")

    def read(columns: tuple[str, ...]) -> Iterator[Any]:
        try:
            # In order, so that every pass sees the same batches.
            yield from scan().select(columns).collect_batches(chunk_size=rows, maintain_order=True)
        except pl.exceptions.PolarsError as error:
            raise _unreadable(paths, error) from None

    try:
        names = tuple(scan().collect_schema().names())
        n_rows = int(scan().select(pl.len()).collect(engine="streaming").item())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(paths, error) from None
    return Batches(names, n_rows, read, progress)


def _paths(files: Files) -> list[Path]:
    """Return the files that are meant, or say that there are none."""
    given = [files] if isinstance(files, str | Path) else list(files)
    found: list[Path] = []
    for one in given:
        path = Path(one)
        matches = [path] if path.is_file() else sorted(map(Path, glob.glob(str(one), recursive=True)))
        matches = [m for m in matches if m.is_file()]
        if not matches:
            raise DataError(f"Data: no file matches {str(one)!r}. A folder's files are {str(path / '*.parquet')!r}.")
        found += matches
    if not found:
        raise DataError("Data: the list of files is empty.")
    return found


def _unreadable(paths: list[Path], error: Exception) -> DataError:
    which = str(paths[0]) if len(paths) == 1 else f"one of {len(paths)} files, the first {paths[0]}"
    return DataError(f"Data: {which} can not be read: {' '.join(str(error).split())[:300]}")


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise missing_extra("polars", "cli") from None
    return polars
