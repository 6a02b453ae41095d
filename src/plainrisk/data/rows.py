"""Rows that come in batches, for data larger than memory: Parquet and CSV files, or anything that can be read again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plainrisk.checks import FUNCTION, LIST, check_parameters, whole
from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.reader import Files, Kind, Table, open_table
from plainrisk.data.spool import Arrays, Kept, Spool
from plainrisk.errors import DataError, did_you_mean
from plainrisk.threads import parallel_map
from plainrisk.totals import added, identity

__all__ = [
    "BATCH_ROWS",
    "ONE_BY_ONE",
    "Batches",
    "StoredRows",
    "as_batches",
    "csv",
    "is_stored",
    "parquet",
    "spark",
]

# Thirty columns of this many numbers are 60 MB.
BATCH_ROWS = 1 << 18

Progress = Callable[[str, int, int], None]

ONE_BY_ONE = (
    "Data: this needs rows one by one, by their number, or all of them at once (boosted trees, splits that name rows), "
    "which neither a Spark table nor a fold of rows that are not in memory gives: their rows have no numbers, and may "
    "be too many for one machine. Take another classifier, a number of folds, or a sample in memory, of Spark by "
    "df.sample(...).toArrow()."
)


class StoredRows:
    """Rows that are not in memory, and what a fit needs from them; functions follow `plainrisk.totals`."""

    names: tuple[str, ...]
    weight: str | None = None
    group: str | None = None  # the column whose rows stay together in folds
    numbered: bool = False  # whether rows have numbers, by which folds inside a fit are dealt as in memory
    depth: int = 0  # how many times these rows were dealt into folds

    def count(self) -> int:
        """Return the number of rows."""
        raise NotImplementedError

    def first(self, columns: Sequence[str]) -> Frame | None:
        """Return some of the rows to determine their types, or None if there are none."""
        raise NotImplementedError

    def totals(
        self,
        functions: Sequence[Callable[[Any], Any]],
        columns: Sequence[str],
        task: str,
        finish: Callable[[Any], Any] = identity,
        read: Callable[[Frame], Any] = identity,
    ) -> list[Any]:
        """Apply each function to all rows in one pass, add up the results and finish every sum.

        Parameters
        ----------
        read : what makes of a batch that which the functions are given; a batch of which it makes None is left out
        """
        raise NotImplementedError

    def keep(
        self, function: Callable[[Frame], Arrays | None], columns: Sequence[str], task: str, groups: int = 0
    ) -> Kept:
        """Keep arrays of every batch where the rows are.

        Parameters
        ----------
        groups : if given, the distinct rows are kept, by a key that is the last array, in so many groups that do not
            depend on the batches; one more array says how often each row occurs
        """
        raise NotImplementedError

    def gathered(self, function: Callable[[Frame], Any], columns: Sequence[str], task: str) -> list[Any]:
        """Return a function's result for every batch, as much data as all rows, for methods that are not sums."""
        raise NotImplementedError

    def read_as(self, kinds: Mapping[str, Kind] | None) -> StoredRows:
        """Return the same rows, the columns of CSV files read by what they mean; see `plainrisk.data.reader`."""
        return self

    def free(self) -> None:
        """Release the data that a fit kept about the rows."""


def is_stored(X: Any) -> bool:
    """Whether rows are not in memory."""
    return isinstance(X, StoredRows)


@dataclass(frozen=True)
class Batches(StoredRows):
    """Rows in batches, to pass as X to `fit`; y and sample_weight are then names of columns.

    Attributes
    ----------
    names : the columns
    n_rows : how many rows there are
    read : from names of columns to an iterator over data frames with these columns, the same rows every time
    progress : called with the task, the rows read and the rows in all, after each batch
    by_kind : from kinds of columns, or None, to the same rows read by them, where the rows have no types of their own

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
    by_kind: Callable[[Mapping[str, Kind] | None], Batches] | None = None
    numbered = True

    def __post_init__(self) -> None:
        given = {"names": self.names, "n_rows": self.n_rows, "read": self.read}
        check_parameters("rows.Batches", given, {"names": LIST, "n_rows": whole(0), "read": FUNCTION})

    def __len__(self) -> int:
        return self.n_rows

    def read_as(self, kinds: Mapping[str, Kind] | None) -> Batches:
        """Return the same rows, the columns of CSV files read by what they mean; see `plainrisk.data.reader`."""
        return self if self.by_kind is None else self.by_kind(kinds)

    def count(self) -> int:
        """Return the number of rows."""
        return self.n_rows

    def first(self, columns: Sequence[str]) -> Frame | None:
        """Return the first batch."""
        return next(self.batches(columns, "looking at the first rows"), None)

    def totals(
        self,
        functions: Sequence[Callable[[Any], Any]],
        columns: Sequence[str],
        task: str,
        finish: Callable[[Any], Any] = identity,
        read: Callable[[Frame], Any] = identity,
    ) -> list[Any]:
        """Apply each function to all rows, batch by batch, add up the results and finish every sum."""
        totals: list[Any] = [None] * len(functions)
        for frame in self.batches(columns, task):
            rows = read(frame)
            if rows is not None:
                sums = parallel_map(functools.partial(_call, rows=rows), functions, frame.n_rows)
                totals = [added(total, part) for total, part in zip(totals, sums, strict=True)]
        return list(map(finish, totals))

    def keep(
        self, function: Callable[[Frame], Arrays | None], columns: Sequence[str], task: str, groups: int = 0
    ) -> Kept:
        """Keep arrays of every batch, or of distinct rows, in memory or on disk."""
        spool = Spool()
        for frame in self.batches(columns, task):
            arrays = function(frame)
            if arrays is not None:
                spool.append(arrays)
        return spool.distinct(groups) if groups else spool

    def gathered(self, function: Callable[[Frame], Any], columns: Sequence[str], task: str) -> list[Any]:
        """Return a function's result for every batch, in order."""
        return [found for frame in self.batches(columns, task) if (found := function(frame)) is not None]

    def batches(self, columns: Sequence[str] | None = None, task: str = "reading rows") -> Iterator[Frame]:
        """Read all rows once, some of the columns or all."""
        wanted = self.names if columns is None else tuple(dict.fromkeys(columns))
        for name in wanted:
            if name not in self.names:
                raise DataError(f"Data: there is no column {name!r}.{did_you_mean(name, self.names)}")
        done = 0
        for native in self.read(wanted):
            frame = as_frame(native)
            if not frame.n_rows:
                continue  # a query may have nothing to give for a part
            yield replace(frame, first=done)
            done += frame.n_rows
            if self.progress is not None:
                self.progress(task, done, self.n_rows)
        if done != self.n_rows:
            raise DataError(f"Data: {done:,} rows were read where there were {self.n_rows:,}. Did the files change?")


def _call(function: Callable[[Any], Any], rows: Any) -> Any:
    return function(rows)


def parquet(files: Files, *, batch_rows: int = BATCH_ROWS, progress: Progress | None = None) -> Batches:
    """Return the rows of Parquet files, to be read in batches.

    Parameters
    ----------
    files : a file, a pattern such as ``loans/*.parquet``, or a list of them; rows come in the order of the names
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
    return as_batches(open_table(files, kind=".parquet"), batch_rows, progress)


def csv(
    files: Files,
    *,
    missing: Sequence[str] = (),
    text: Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> Batches:
    """Return the rows of CSV files (or .csv.gz), to be read in batches.

    Every record must have the fields of the header. `fit` reads the categorical features of its schema as text, as
    they are written; where nothing is known of a column, its type comes from all rows of all files.

    Parameters
    ----------
    files, batch_rows, progress : as for `parquet`
    missing : texts that mean a missing value, in addition to the empty one
    text : columns that are text whatever they hold, such as codes that look like numbers in some of the files
    """
    return as_batches(open_table(files, missing, ".csv", text), batch_rows, progress)


def spark(
    df: Any, weight: str | None = None, *, group: str | None = None, progress: Progress | None = None
) -> StoredRows:
    """Return the rows of a Spark DataFrame, to be added up where they are.

    Parameters
    ----------
    df : pyspark.sql.DataFrame, classic (Spark 4) or Connect
        It is read several times, so it must return the same rows each time.
    weight : str, optional
        The column of weights, unless `fit` is given another.
    group : str, optional
        The column of customers, say, whose rows stay together in folds, as in `SubscaleMixture(cv=5)` and
        `cross_validate`. Without it, rows of the same features and outcome do.
    progress : called with the task, and twice with the number of the pass, after each pass over the rows

    Returns
    -------
    StoredRows
        To pass as X to `fit`, with y the name of a column. The model is that of the same rows in memory, to 1e-9.
    """
    from plainrisk.data.spark_rows import spark_rows

    return spark_rows(df, weight, group, progress)


def as_batches(table: Table, batch_rows: int = BATCH_ROWS, progress: Progress | None = None) -> Batches:
    """Return the rows of a table, to be read in batches."""
    check_parameters("rows", {"batch_rows": batch_rows}, {"batch_rows": whole(1)})

    def read(columns: tuple[str, ...]) -> Iterator[Any]:
        with table.reading():
            # In order, so that every pass sees the same batches.
            yield from table.lazy.select(columns).collect_batches(chunk_size=batch_rows, maintain_order=True)

    def by_kind(kinds: Mapping[str, Kind] | None) -> Batches:
        return as_batches(table.read_as(kinds), batch_rows, progress)

    return Batches(tuple(table.lazy.collect_schema().names()), table.n_rows, read, progress, by_kind)
