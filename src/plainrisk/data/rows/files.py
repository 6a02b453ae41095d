"""Parquet and CSV files as batches of rows."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plainrisk.data.rows.batches import BATCH_ROWS, Batches, Progress
from plainrisk.errors import DataError, missing_extra

if TYPE_CHECKING:
    import polars as pl

__all__ = ["csv", "parquet"]

Files = str | Path | Sequence[str | Path]


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
