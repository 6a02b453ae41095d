"""Rows of a Spark table: sums are made where the rows are, and small partial results come back.

All that is asked of Spark is its DataFrame interface and Arrow (`mapInArrow`, `applyInArrow`), so it may be classic
Spark, Spark Connect or serverless. Every partition answers with one pickled partial result per function; the results
of neighbouring partitions are merged on the executors, in the order of the partitions. So the same rows in the same
partitions give the same bytes, and in other partitions the same sums but for rounding.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.rows import Progress, StoredRows
from plainrisk.data.spark_errors import raised_by_spark
from plainrisk.data.spool import Arrays, Kept
from plainrisk.errors import DataError, PlainriskError, did_you_mean, missing_extra, warn
from plainrisk.threads import alone
from plainrisk.totals import added, identity

__all__ = ["SparkRows", "spark_rows"]

# Rows of a partition that are looked at, and kept, at a time: a megabyte or two of codes.
_BATCH_ROWS = 1 << 16
# Partial results that one task merges. Thirty histograms of 8 MB each are merged feature by feature.
_MERGED = 32
# Rows whose codes one task adds up. A pass over so many takes 0.01 to 0.09 s, and a task of Spark 0.13 s, so ten times
# fewer would be spent on tasks, and ten times more would leave cores idle.
_TASK_ROWS = 1 << 18
# Rows that are looked at for their types.
_FIRST_ROWS = 1_000
# What comes back: who made it, for which function (or which batch it is), and the pickled result.
_RECORD = "part int, item int, blob binary"
_PART = "__plainrisk_part"


@dataclass(frozen=True)
class SparkRows(StoredRows):
    """The rows of a Spark DataFrame, to pass as X to `fit`; y and sample_weight are then names of columns.

    Attributes
    ----------
    df : pyspark.sql.DataFrame, classic or Connect
    names : its columns
    weight : the column of weights, unless `fit` is given another
    progress : called with the task, and twice with the number of the pass, after each pass over the rows
    """

    df: Any
    names: tuple[str, ...]
    weight: str | None = None
    progress: Progress | None = None
    _state: _State = field(default_factory=lambda: _State(), repr=False)

    @property
    def passes(self) -> int:
        """How many passes over the rows there were."""
        return self._state.passes

    @property
    def received(self) -> int:
        """How many bytes of partial results came back."""
        return self._state.received

    def count(self) -> int:
        """Return how many rows there are; the first pass counts them."""
        if self._state.rows is None:
            self.totals([], (), "counting rows")
        return self._state.rows or 0

    def first(self, columns: Sequence[str]) -> Frame | None:
        """Return some of the rows, to look at their types."""
        with raised_by_spark("looking at the first rows"):
            table = self.df.selectExpr(*_quoted(columns)).limit(_FIRST_ROWS).toArrow()
        return as_frame(table) if table.num_rows else None

    def totals(
        self,
        functions: Sequence[Callable[[Any], Any]],
        columns: Sequence[str],
        task: str,
        finish: Callable[[Any], Any] = identity,
        read: Callable[[Frame], Any] = identity,
    ) -> list[Any]:
        """Add up what each function says of all rows, in one pass, and finish every sum on the executors."""
        if self._state.rows is not None:
            return self.merged(self._mapped(_Sums(tuple(functions), read), columns), len(functions), task, finish)
        # The first pass counts the partitions and their rows, and its results are few, so they are merged here.
        partials = self._mapped(_Sums(tuple(functions), read, counting=True), columns)
        *totals, counted = self.merged(partials, len(functions) + 1, task, results=1)
        self._state.parts, self._state.rows = (0, 0) if counted is None else (1 + counted.last, counted.rows)
        return list(map(finish, totals))

    def keep(self, function: Callable[[Frame], Arrays | None], columns: Sequence[str], task: str) -> Kept:
        """Keep arrays of every batch in Spark's cache, until `free`; those of small partitions come together."""
        kept = self._mapped(_Keep(function), columns)
        tasks = min(-(-self.count() // _TASK_ROWS), self._state.parts)
        if tasks < self._state.parts:
            kept = kept.repartition(tasks, "part").sortWithinPartitions("part", "item")
        return _KeptOnSpark(self, self._cached(kept), tasks)

    def gathered(self, function: Callable[[Frame], Any], columns: Sequence[str], task: str) -> list[Any]:
        """Refuse: what is no sum would bring all rows to one machine."""
        raise DataError(
            "Data: this needs rows one by one, by their number, or all of them at once (boosted trees, "
            "SubscaleMixture(cv=...)), which a Spark table does not give: its rows have no numbers, and are too many "
            "for one machine. Take another classifier, or a sample in memory: df.sample(...).toArrow()."
        )

    def free(self) -> None:
        """Take what was kept out of Spark's cache."""
        while self._state.cached:
            with contextlib.suppress(Exception):  # a session that ended has no cache
                self._state.cached.pop().unpersist()

    def merged(
        self,
        found: Any,
        n_items: int,
        task: str,
        finish: Callable[[Any], Any] = identity,
        results: int | None = None,
    ) -> list[Any]:
        """Bring partial results together, item by item, in the order of their partitions.

        Parameters
        ----------
        results : how many there are of each item, if not one of every partition
        """
        parts = self._state.parts
        with raised_by_spark(task):
            there = (parts if results is None else results) > _MERGED or finish is not identity
            while there:
                parts = -(-max(parts, 1) // _MERGED)
                there = parts > _MERGED or (parts > 1 and finish is not identity)
                merge = _Merge(finish if parts == 1 else identity)
                # Spark may cut a query anew for every pass, so the last round takes whatever there is.
                group = "0" if parts == 1 else f"part div {_MERGED}"
                grouped = found.selectExpr("item", f"{group} as part", "part as place", "blob")
                found = grouped.groupBy("item", "part").applyInArrow(_arrow_function(merge), _RECORD)
            records = sorted(_records(found.toArrow().to_batches()), key=lambda record: record[:2])
        self._state.passes += 1
        self._state.received += sum(len(blob) for _, _, blob in records)
        if self.progress is not None:
            self.progress(task, self._state.passes, self._state.passes)
        totals: list[Any] = [None] * n_items
        for _, item, blob in records:
            totals[item] = _both(totals[item], pickle.loads(blob))
        for total in totals:
            if isinstance(total, _Refused):
                raise total.error
        return totals

    def _mapped(self, job: Callable[[Iterable[Any]], Iterator[Any]], columns: Sequence[str]) -> Any:
        for name in columns:
            if name not in self.names:
                raise DataError(f"Data: there is no column {name!r}.{did_you_mean(name, self.names)}")
        with raised_by_spark("planning a pass"):
            numbered = self.df.selectExpr(*_quoted(columns), f"spark_partition_id() as {_PART}")
            return numbered.mapInArrow(_arrow_function(job), _RECORD)

    def _cached(self, df: Any) -> Any:
        try:
            self._state.cached.append(df.persist())
        except Exception as error:
            if "SERVERLESS" not in str(error).upper():
                raise
            warn("Spark: this compute has no cache, so that every pass codes the rows of the table again.")
        return df


@dataclass
class _State:
    """What passes have found: partitions and rows, passes, the bytes that came back, and what is cached."""

    parts: int = 0
    rows: int | None = None
    passes: int = 0
    received: int = 0
    cached: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class _KeptOnSpark:
    """Groups of arrays in Spark's cache; see `Kept`."""

    rows: SparkRows
    df: Any
    tasks: int
    only: None = None

    def total(self, function: Callable[[int, Arrays], Any]) -> Any:
        """Add up what a function says of the number and the arrays of every group."""
        with raised_by_spark("planning a pass"):
            partials = self.df.mapInArrow(_arrow_function(_KeptSums(function)), _RECORD)
        return self.rows.merged(partials, 1, "adding up codes", results=self.tasks)[0]


def spark_rows(df: Any, weight: str | None, progress: Progress | None) -> SparkRows:
    """Return the rows of a Spark DataFrame; see `plainrisk.data.rows.spark`."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise missing_extra("pyspark", "spark") from None
    if not all(hasattr(df, name) for name in ("mapInArrow", "columns", "toArrow")):
        raise DataError(f"pr.rows.spark takes a DataFrame of Spark 4, not {type(df).__name__}.")
    names = tuple(df.columns)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"Data: column {repeated[0]!r} appears {names.count(repeated[0])} times. Rename one of them.")
    if weight is not None and weight not in names:
        raise DataError(f"Data: sample_weight names no column: {weight!r}.")
    return SparkRows(df, names, weight, progress)


def _quoted(columns: Sequence[str]) -> list[str]:
    """Return names as Spark reads them: a point in one is no field of a struct."""
    return [f"`{name.replace('`', '``')}`" for name in dict.fromkeys(columns)]


# ---- on the executors


def _arrow_function(job: Any) -> Callable[..., Any]:
    """Return a plain function, as Spark wants it."""

    def run(rows: Any) -> Any:
        if "pyspark.worker" in sys.modules:
            _spare_modules(len(sys.modules))
        return job(rows)

    return run


@functools.cache
def _spare_modules(n_modules: int) -> None:
    """Take what is imported out of the garbage collector's sight; done again when there is more of it.

    A worker of Spark collects garbage after every task. Going through our modules each time takes 40 to 50 ms of the 60 that a
    task takes in Python.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class _Refused:
    """An error of ours in a partition: it comes back as a result, so that Spark neither repeats nor hides it."""

    error: PlainriskError

    def __add__(self, other: Any) -> _Refused:
        return self


def _both(total: Any, part: Any) -> Any:
    """Add two partial results, of which either may be an error."""
    for one in (total, part):
        if isinstance(one, _Refused):
            return one
    try:
        return added(total, part)
    except PlainriskError as error:
        return _Refused(error)


def _refused(error: PlainriskError, part: int) -> _Refused:
    text = str(error)
    counted = f" (Rows are counted within a batch of partition {part}.)" if "row " in text else ""
    return _Refused(type(error)(text + counted))


@dataclass(frozen=True)
class _Counted:
    """The last of some partitions, and the rows of all of them."""

    last: int
    rows: int

    def __add__(self, other: _Counted) -> _Counted:
        return _Counted(max(self.last, other.last), self.rows + other.rows)


@dataclass(frozen=True)
class _Sums:
    """What functions say of the rows of a partition: one record for each, and one of the rows if they are counted."""

    functions: tuple[Callable[[Any], Any], ...]
    read: Callable[[Frame], Any]
    counting: bool = False

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        totals: list[Any] = [None] * len(self.functions)
        part, n_rows = 0, 0
        with alone():
            for part, frame in _frames(batches):
                n_rows += frame.n_rows
                try:
                    rows = self.read(frame)
                    if rows is not None:
                        totals = [_both(t, f(rows)) for t, f in zip(totals, self.functions, strict=True)]
                except PlainriskError as error:
                    totals = [_refused(error, part)] * len(totals)
                    break
        if self.counting and n_rows:
            totals.append(_Counted(part, n_rows))
        for item, total in enumerate(totals):
            if total is not None:
                yield _record(part, item, total)


@dataclass(frozen=True)
class _Keep:
    """Arrays of the rows of a partition: one record for each batch."""

    function: Callable[[Frame], Arrays | None]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for number, (part, frame) in enumerate(_frames(batches)):
            with alone():
                try:
                    arrays: Any = self.function(frame)
                except PlainriskError as error:
                    arrays = _refused(error, part)
            if arrays is not None:
                yield _record(part, number, arrays)


@dataclass(frozen=True)
class _KeptSums:
    """What a function says of the arrays of a partition."""

    function: Callable[[int, Arrays], Any]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        total, last = None, 0
        with alone():
            for part, number, blob in _records(batches):
                arrays, last = pickle.loads(blob), part
                if isinstance(arrays, _Refused):
                    total = arrays
                    break
                total = _both(total, self.function((part << 20) + number, arrays))
        if total is not None:
            yield _record(last, 0, total)


@dataclass(frozen=True)
class _Merge:
    """The partial results of some partitions, merged in their order."""

    finish: Callable[[Any], Any]

    def __call__(self, table: Any) -> Any:
        import pyarrow

        item, part = table.column("item")[0].as_py(), table.column("part")[0].as_py()
        places, blobs = table.column("place").to_pylist(), table.column("blob").to_pylist()
        with alone():
            order = sorted(range(len(places)), key=places.__getitem__)
            total = functools.reduce(_both, (pickle.loads(blobs[k]) for k in order))
            if not isinstance(total, _Refused):
                try:
                    total = self.finish(total)
                except PlainriskError as error:
                    total = _Refused(error)
        return pyarrow.Table.from_batches([_record(part, item, total)])


def _frames(batches: Iterable[Any]) -> Iterator[tuple[int, Frame]]:
    """Yield the rows of a partition in frames that are worth a call, with the number of the partition."""
    import pyarrow

    held: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(one.num_rows for one in held) >= _BATCH_ROWS:
            yield _frame(pyarrow.Table.from_batches(held))
            held = []
    if held:
        yield _frame(pyarrow.Table.from_batches(held))


def _frame(table: Any) -> tuple[int, Frame]:
    part, n_rows = table.column(_PART)[0].as_py(), table.num_rows
    rows = table.drop_columns([_PART]).combine_chunks()
    return part, as_frame(rows) if rows.num_columns else Frame((), {}, n_rows)


def _record(part: int, item: int, value: Any) -> Any:
    import pyarrow

    columns = (pyarrow.array([part], pyarrow.int32()), pyarrow.array([item], pyarrow.int32()))
    blob = pyarrow.array([pickle.dumps(value, protocol=5)], pyarrow.binary())
    return pyarrow.RecordBatch.from_arrays([*columns, blob], names=["part", "item", "blob"])


def _records(batches: Iterable[Any]) -> Iterator[tuple[int, int, Any]]:
    for batch in batches:
        part, item, blob = (batch.column(name) for name in ("part", "item", "blob"))
        for k in range(batch.num_rows):
            yield part[k].as_py(), item[k].as_py(), blob[k].as_buffer()
