"""The work of the executors on the rows of a Spark table: sums of partitions, kept arrays, and merges.

A task gets Arrow batches and answers with records of Arrow: who made it, for which function (or which batch it is), and
the pickled result.
"""

from __future__ import annotations

import functools
import gc
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.spool import Arrays, distinct_rows, rows_of_group
from plainrisk.errors import PlainriskError
from plainrisk.threads import alone
from plainrisk.totals import added

__all__ = [
    "PART",
    "RECORD",
    "Counted",
    "Deal",
    "Distinct",
    "Keep",
    "KeptSums",
    "Merge",
    "Refused",
    "Sums",
    "arrow_function",
    "both",
    "pack_name",
    "records_of",
]

# The rows of a partition that are read and kept at a time: one or two megabytes of codes.
_BATCH_ROWS = 1 << 16
# What comes back: who made it, for which function (or which batch it is), and the pickled result.
RECORD = "part int, item int, blob binary"
PART = "__plainrisk_part"
# Groups of columns, each of which is sent as one array column.
Packs = tuple[tuple[str, ...], ...]


def pack_name(k: int) -> str:
    """Return the name of the column in which a group of columns travels."""
    return f"__plainrisk_pack_{k}"


def arrow_function(job: Any) -> Callable[..., Any]:
    """Return a plain function, as Spark wants it."""

    def run(rows: Any) -> Any:
        if "pyspark.worker" in sys.modules:
            _spare_modules(len(sys.modules))
        return job(rows)

    return run


@functools.cache
def _spare_modules(n_modules: int) -> None:
    """Hide imported objects from the garbage collector; repeat if there are more of them.

    A worker of Spark collects garbage after every task. Going through our modules each time takes 40 to 50 ms of the
    60 that a task takes in Python.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Refused:
    """An error of ours in a partition, returned as a result so that Spark neither repeats nor hides it."""

    error: PlainriskError

    def __add__(self, other: Any) -> Refused:
        return self


def both(total: Any, part: Any) -> Any:
    """Add two partial results, of which either may be an error."""
    for one in (total, part):
        if isinstance(one, Refused):
            return one
    try:
        return added(total, part)
    except PlainriskError as error:
        return Refused(error)


def _refused(error: PlainriskError, part: int) -> Refused:
    text = str(error)
    counted = f" (Rows are counted within a batch of partition {part}.)" if "row " in text else ""
    return Refused(type(error)(text + counted))


@dataclass(frozen=True)
class Counted:
    """The last of several partitions, and the rows of all of them."""

    last: int
    rows: int

    def __add__(self, other: Counted) -> Counted:
        return Counted(max(self.last, other.last), self.rows + other.rows)


@dataclass(frozen=True)
class Sums:
    """Results of functions for the rows of a partition: one record each, and one with the row count if needed."""

    functions: tuple[Callable[[Any], Any], ...]
    read: Callable[[Frame], Any]
    counting: bool = False
    packs: Packs = ()

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the records of a partition."""
        totals: list[Any] = [None] * len(self.functions)
        part, n_rows = 0, 0
        with alone():
            for part, frame in _frames(batches, self.packs):
                n_rows += frame.n_rows
                try:
                    rows = self.read(frame)
                    if rows is not None:
                        totals = [both(t, f(rows)) for t, f in zip(totals, self.functions, strict=True)]
                except PlainriskError as error:
                    totals = [_refused(error, part)] * len(totals)
                    break
        if self.counting and n_rows:
            totals.append(Counted(part, n_rows))
        for item, total in enumerate(totals):
            if total is not None:
                yield _record(part, item, total)


@dataclass(frozen=True)
class Keep:
    """Arrays of the rows of a partition: one record for each batch."""

    function: Callable[[Frame], Arrays | None]
    packs: Packs = ()

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the records of a partition."""
        for number, (part, frame) in enumerate(_frames(batches, self.packs)):
            with alone():
                try:
                    arrays: Any = self.function(frame)
                except PlainriskError as error:
                    arrays = _refused(error, part)
            if arrays is not None:
                yield _record(part, number, arrays)


@dataclass(frozen=True)
class KeptSums:
    """The result of a function for the arrays of a partition."""

    function: Callable[[int, Arrays], Any]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the records of a partition."""
        total, last = None, 0
        with alone():
            for part, number, blob in records_of(batches):
                arrays, last = pickle.loads(blob), part
                if isinstance(arrays, Refused):
                    total = arrays
                    break
                total = both(total, self.function((part << 20) + number, arrays))
        if total is not None:
            yield _record(last, 0, total)


@dataclass(frozen=True)
class Deal:
    """Rows of kept arrays, grouped by their keys: one record for each nonempty group."""

    n_groups: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the records of a partition."""
        for part, _, blob in records_of(batches):
            arrays = pickle.loads(blob)
            for group in range(self.n_groups):
                # Every group gets the error, so that any group that is used raises it.
                some = arrays if isinstance(arrays, Refused) else rows_of_group(arrays, group, self.n_groups)
                if isinstance(some, Refused) or len(some[-1]):
                    yield _record(part, group, some)


class Distinct:
    """The distinct rows of a group and how often each occurs, as the one record of a partition with its number."""

    def __call__(self, table: Any) -> Any:
        """Return the record of a group."""
        import pyarrow

        dealt = [pickle.loads(blob) for blob in table.column("blob").to_pylist()]
        refused = [one for one in dealt if isinstance(one, Refused)]
        found = refused[0] if refused else distinct_rows(dealt)
        return pyarrow.Table.from_batches([_record(table.column("item")[0].as_py(), 0, found)])


@dataclass(frozen=True)
class Merge:
    """The partial results of some partitions, merged in their order."""

    finish: Callable[[Any], Any]

    def __call__(self, table: Any) -> Any:
        """Return the one record of a group."""
        import pyarrow

        item, part = table.column("item")[0].as_py(), table.column("part")[0].as_py()
        places, blobs = table.column("place").to_pylist(), table.column("blob").to_pylist()
        with alone():
            order = sorted(range(len(places)), key=places.__getitem__)
            total = functools.reduce(both, (pickle.loads(blobs[k]) for k in order))
            if not isinstance(total, Refused):
                try:
                    total = self.finish(total)
                except PlainriskError as error:
                    total = Refused(error)
        return pyarrow.Table.from_batches([_record(part, item, total)])


def _frames(batches: Iterable[Any], packs: Packs) -> Iterator[tuple[int, Frame]]:
    """Yield the rows of a partition in frames that are worth a call, with the number of the partition."""
    import pyarrow

    held: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(one.num_rows for one in held) >= _BATCH_ROWS:
            yield _frame(pyarrow.Table.from_batches(held), packs)
            held = []
    if held:
        yield _frame(pyarrow.Table.from_batches(held), packs)


def _frame(table: Any, packs: Packs) -> tuple[int, Frame]:
    """Return the rows, with array columns taken apart, and the number of their partition."""
    part, n_rows = table.column(PART)[0].as_py(), table.num_rows
    columns: dict[str, Any] = {}
    for k, names in enumerate(packs):
        values = table.column(pack_name(k)).combine_chunks().flatten()
        columns.update(zip(names, _unpacked(values, len(names)), strict=True))
    rows = table.drop_columns([PART, *map(pack_name, range(len(packs)))]).combine_chunks()
    if rows.num_columns:
        plain = as_frame(rows)
        columns = {name: plain.column(name) for name in plain.names} | columns
    return part, Frame(tuple(columns), columns, n_rows)


def _unpacked(values: Any, n: int) -> list[Any]:
    """Return the columns of numbers of which n come after each other, row by row."""
    import pyarrow

    if values.null_count and not pyarrow.types.is_floating(values.type):
        first = np.arange(0, len(values), n)  # numpy has whole numbers without missing ones alone
        columns = [pyarrow.chunked_array([values.take(pyarrow.array(first + k))]) for k in range(n)]
        return [nw.from_native(column, series_only=True) for column in columns]
    return list(np.ascontiguousarray(values.to_numpy(zero_copy_only=False).reshape(-1, n).T))


def _record(part: int, item: int, value: Any) -> Any:
    import pyarrow

    columns = (pyarrow.array([part], pyarrow.int32()), pyarrow.array([item], pyarrow.int32()))
    blob = pyarrow.array([pickle.dumps(value, protocol=5)], pyarrow.binary())
    return pyarrow.RecordBatch.from_arrays([*columns, blob], names=["part", "item", "blob"])


def records_of(batches: Iterable[Any]) -> Iterator[tuple[int, int, Any]]:
    """Yield the records of some batches, their results still pickled."""
    for batch in batches:
        part, item, blob = (batch.column(name) for name in ("part", "item", "blob"))
        for k in range(batch.num_rows):
            yield part[k].as_py(), item[k].as_py(), blob[k].as_buffer()
