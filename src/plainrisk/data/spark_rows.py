"""Rows of a Spark table: sums are made where the rows are, and small partial results come back.

All that is asked of Spark is its DataFrame interface and Arrow (`mapInArrow`, `applyInArrow`), so it may be classic
Spark, Spark Connect or serverless. Every partition answers with one pickled partial result per function; the results
of neighboring partitions are merged on the executors, in the order of the partitions. So the same rows in the same
partitions give the same bytes, and in other partitions the same sums but for rounding.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.rows import ONE_BY_ONE, Progress, StoredRows
from plainrisk.data.spark_errors import raised_by_spark
from plainrisk.data.spark_tasks import (
    PART,
    RECORD,
    Deal,
    Distinct,
    Keep,
    KeptSums,
    Merge,
    Refused,
    Sums,
    arrow_function,
    both,
    pack_name,
    records_of,
)
from plainrisk.data.spool import Arrays, Kept, Spool
from plainrisk.errors import DataError, did_you_mean, missing_extra, warn
from plainrisk.totals import identity

__all__ = ["SparkRows", "spark_rows"]

# Partial results that one task merges. Thirty histograms of 8 MB each are merged feature by feature.
_MERGED = 32
# The number of rows whose codes one task sums. A pass over this many takes 0.01 to 0.09 s, and a Spark task 0.02 s:
# with ten times fewer, tasks would dominate, and with ten times more, cores would be idle.
_TASK_ROWS = 1 << 18
# Distinct rows that are brought to the driver: at some thirty bytes each, tens of megabytes.
_FEW_ROWS = 1 << 20
# Rows that are read to find the types.
_FIRST_ROWS = 1_000
# Columns of one of these types are sent as one array column, which Spark writes to Arrow in half the time.
_PACKED = ("double", "float", "bigint", "int", "smallint", "tinyint")


@dataclass(frozen=True)
class SparkRows(StoredRows):
    """The rows of a Spark DataFrame, to pass as X to `fit`; y and sample_weight are then names of columns.

    Attributes
    ----------
    df : pyspark.sql.DataFrame, classic or Connect
    names : its columns
    weight : the column of weights, unless `fit` is given another
    group : the column whose rows stay together in folds
    progress : called with the task, and twice with the number of the pass, after each pass over the rows
    kinds : Spark's type of every column
    """

    df: Any
    names: tuple[str, ...]
    weight: str | None = None
    group: str | None = None
    progress: Progress | None = None
    kinds: Mapping[str, str] = field(default_factory=dict, repr=False)
    _state: _State = field(default_factory=lambda: _State(), repr=False)
    _size: _Size = field(default_factory=lambda: _Size(), repr=False)

    @property
    def passes(self) -> int:
        """The number of passes over the rows."""
        return self._state.passes

    @property
    def received(self) -> int:
        """The number of bytes of returned partial results."""
        return self._state.received

    def count(self) -> int:
        """Return the number of rows, which the first pass counts."""
        if self._size.rows is None:
            self.totals([], (), "counting rows")
        return self._size.rows or 0

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
        """Apply each function to all rows in one pass, add up the results and finish every sum on the executors."""
        if self._size.rows is not None:
            return self.merged(self._mapped(Sums(tuple(functions), read), columns), len(functions), task, finish)
        # The first pass counts the partitions and their rows, and its results are few, so they are merged here.
        partials = self._mapped(Sums(tuple(functions), read, counting=True), columns)
        *totals, counted = self.merged(partials, len(functions) + 1, task, results=1)
        self._size.parts, self._size.rows = (0, 0) if counted is None else (1 + counted.last, counted.rows)
        return list(map(finish, totals))

    def keep(
        self, function: Callable[[Frame], Arrays | None], columns: Sequence[str], task: str, groups: int = 0
    ) -> Kept:
        """Keep arrays of every batch in Spark's cache, until `free`; those of small partitions come together."""
        partials = self._mapped(Keep(function), columns)
        tasks = min(-(-self.count() // _TASK_ROWS), self._size.parts)
        if tasks < self._size.parts:
            partials = partials.repartition(tasks, "part").sortWithinPartitions("part", "item")
        kept = _KeptOnSpark(self, self._cached(partials), tasks)
        return kept.distinct(groups) if groups else kept

    def gathered(self, function: Callable[[Frame], Any], columns: Sequence[str], task: str) -> list[Any]:
        """Refuse: a method that is not a sum would bring all rows to one machine."""
        raise DataError(ONE_BY_ONE)

    def free(self) -> None:
        """Remove kept data from Spark's cache."""
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
        parts = self._size.parts
        with raised_by_spark(task):
            there = (parts if results is None else results) > _MERGED or finish is not identity
            while there:
                parts = -(-max(parts, 1) // _MERGED)
                there = parts > _MERGED or (parts > 1 and finish is not identity)
                merge = Merge(finish if parts == 1 else identity)
                # Spark may partition a query differently in every pass, so the last round accepts all partitions.
                group = "0" if parts == 1 else f"part div {_MERGED}"
                grouped = found.selectExpr("item", f"{group} as part", "part as place", "blob")
                found = grouped.groupBy("item", "part").applyInArrow(arrow_function(merge), RECORD)
            records = sorted(records_of(found.toArrow().to_batches()), key=lambda record: record[:2])
        self._state.passes += 1
        self._state.received += sum(len(blob) for _, _, blob in records)
        if self.progress is not None:
            self.progress(task, self._state.passes, self._state.passes)
        totals: list[Any] = [None] * n_items
        for _, item, blob in records:
            totals[item] = both(totals[item], pickle.loads(blob))
        for total in totals:
            if isinstance(total, Refused):
                raise total.error
        return totals

    def _mapped(self, job: Sums | Keep, columns: Sequence[str]) -> Any:
        for name in columns:
            if name not in self.names:
                raise DataError(f"Data: there is no column {name!r}.{did_you_mean(name, self.names)}")
        with raised_by_spark("planning a pass"):
            plain, packs = _packed(columns, self.kinds)
            arrays = [f"array({', '.join(_quoted(names))}) as {pack_name(k)}" for k, names in enumerate(packs)]
            numbered = self.df.selectExpr(*_quoted(plain), *arrays, f"spark_partition_id() as {PART}")
            return numbered.mapInArrow(arrow_function(replace(job, packs=packs)), RECORD)

    def _cached(self, df: Any) -> Any:
        try:
            self._state.cached.append(df.persist())
        except Exception as error:
            if "SERVERLESS" not in str(error).upper():
                raise
            warn("Spark: this compute has no cache, so that every pass codes the rows of the table again.")
        return df


@dataclass
class _Size:
    """The result of the first pass: the number of partitions and rows."""

    parts: int = 0
    rows: int | None = None


@dataclass
class _State:
    """The number of passes, the returned bytes, and the cached data; folds share them with their rows."""

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
        """Apply a function to the number and the arrays of every group and add up the results."""
        with raised_by_spark("planning a pass"):
            partials = self.df.mapInArrow(arrow_function(KeptSums(function)), RECORD)
        return self.rows.merged(partials, 1, "adding up codes", results=self.tasks)[0]

    def distinct(self, n_groups: int) -> Kept:
        """Return the distinct rows and how often each occurs, in memory if they are few; see `Spool`."""
        with raised_by_spark("planning a pass"):
            dealt = self.df.mapInArrow(arrow_function(Deal(n_groups)), RECORD)
            groups = dealt.groupBy("item").applyInArrow(arrow_function(Distinct()), RECORD)
        found = _KeptOnSpark(self.rows, self.rows._cached(groups), n_groups)
        n_rows = found.total(_length)
        self.df.unpersist()
        if n_rows > _FEW_ROWS:
            return found
        few = Spool()
        for arrays in found.total(_listed)[0]:
            few.append(arrays)
        groups.unpersist()
        return few


def _length(number: int, arrays: Arrays) -> int:
    return len(arrays[-1])


def _listed(number: int, arrays: Arrays) -> tuple[tuple[Arrays]]:
    return ((arrays,),)


def spark_rows(df: Any, weight: str | None, group: str | None, progress: Progress | None) -> SparkRows:
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
    for what, given in (("sample_weight", weight), ("group", group)):
        if given is not None and given not in names:
            raise DataError(f"Data: {what} names no column: {given!r}.{did_you_mean(given, names)}")
    return SparkRows(df, names, weight, group, progress, dict(df.dtypes))


def _packed(columns: Sequence[str], kinds: Mapping[str, str]) -> tuple[list[str], tuple[tuple[str, ...], ...]]:
    """Return the columns that are sent separately, and those of one type that are sent together."""
    by_kind: dict[str, list[str]] = {}
    for name in dict.fromkeys(columns):
        by_kind.setdefault(kinds.get(name, ""), []).append(name)
    packs = {kind: tuple(names) for kind, names in by_kind.items() if kind in _PACKED and len(names) > 1}
    return [name for kind, names in by_kind.items() if kind not in packs for name in names], tuple(packs.values())


def _quoted(columns: Sequence[str]) -> list[str]:
    """Return names as Spark reads them, quoted so that a dot does not mean a field of a struct."""
    return [f"`{name.replace('`', '``')}`" for name in dict.fromkeys(columns)]
