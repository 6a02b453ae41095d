"""Rows through a model in batches: read, compute, write, in memory that does not grow with the file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plainrisk.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import polars as pl

    from plainrisk.form import RiskForm

__all__ = ["Batches", "needed_columns", "one_row"]

ROW = "row of the data"


@dataclass
class Batches:
    """Rows of a file or a data set, the columns a form needs and those to copy.

    Attributes
    ----------
    keep : columns to copy beside the results
    rows : how many were computed so far; polars runs several batches at a time
    """

    lazy: pl.LazyFrame
    keep: tuple[str, ...]
    rows: int = 0
    advance: Callable[[int], None] = lambda n: None
    error: BaseException | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    adding: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, data: str, form: RiskForm, missing: Sequence[str] | None, keep: Sequence[str] = ()) -> Batches:
        """Open rows, or say which column is missing or holds text."""
        from plainrisk.cli.source import scan_source

        lazy = scan_source(data, missing, ROW)
        return cls(needed_columns(lazy, form, keep, data), tuple(dict.fromkeys(keep)))

    def write(self, output: Path, types: Mapping[str, Any], work: Callable[[pl.DataFrame], Mapping[str, Any]]) -> None:
        """Compute the columns `types` names for every row, and write them beside those to copy.

        `work` returns one column per name; with the column `ROW` among them, only the rows it lists are written.
        """
        import polars as pl

        from plainrisk.cli.tables import write_lazy

        clash = [name for name in self.keep if name in types]
        if clash:
            raise DataError(f"--keep {clash[0]}: a new column has this name. Rename the old one first.")
        known = self.lazy.collect_schema()

        def one(batch: pl.DataFrame) -> pl.DataFrame:
            found = dict(self._watched(work, batch))
            kept = found.pop(ROW, None)
            copied = batch if kept is None else batch[kept]
            return pl.DataFrame(
                [*(copied[name] for name in self.keep), *(as_series(n, found[n], types[n]) for n in types)]
            )

        schema = {**{name: known[name] for name in self.keep}, **types}
        self._run(lambda: write_lazy(self.lazy.map_batches(one, schema=schema, streamable=True), output))

    def each(self, work: Callable[[pl.DataFrame], None]) -> None:
        """Hand every batch to `work`, one at a time."""
        import polars as pl

        def add(batch: pl.DataFrame) -> Mapping[str, Any]:
            with self.adding:
                work(batch)
            return {}

        def one(batch: pl.DataFrame) -> pl.DataFrame:
            self._watched(add, batch)
            return pl.DataFrame({"n": [batch.height]})

        counted = self.lazy.map_batches(one, schema={"n": pl.Int64()}, streamable=True)
        self._run(lambda: counted.collect(engine="streaming"))

    def _watched(self, work: Callable[[pl.DataFrame], Mapping[str, Any]], batch: pl.DataFrame) -> Mapping[str, Any]:
        try:
            found = work(batch)
        except BaseException as error:
            self.error = _located(error, batch)
            raise
        with self.lock:
            self.rows += batch.height
        self.advance(batch.height)
        return found

    def _run(self, query: Callable[[], Any]) -> None:
        try:
            query()
        except BaseException:
            # polars may have wrapped what a batch raised in an error of its own.
            if self.error is not None:
                raise self.error from None
            raise


def as_series(name: str, values: Any, kind: Any) -> pl.Series:
    """Return a column of the promised type; (words, codes) is text by code, -1 missing."""
    import polars as pl

    if isinstance(values, tuple):
        words, codes = values
        at = pl.Series(codes).cast(pl.Int64)
        return pl.Series(name, words, dtype=pl.String).gather(at.set(at < 0, None)).alias(name)
    return pl.Series(name, values, dtype=kind)


def needed_columns(lazy: pl.LazyFrame, form: RiskForm, keep: Sequence[str], data: str) -> pl.LazyFrame:
    """Take the columns that are needed, or say which is missing."""
    from plainrisk.cli.tables import check_text

    names = lazy.collect_schema().names()
    features = {name: form.schema.features[name] for part in form.parts for name in part.features}
    for name, who in [*((n, "feature") for n in features), *((n, "--keep") for n in keep)]:
        if name not in names:
            raise DataError(f"{data}: {who} {name!r} is not in the data.{did_you_mean(name, names)}")
    check_text(lazy, data, [name for name, feature in features.items() if feature.kind == "continuous"])
    return lazy.select(list(dict.fromkeys([ROW, *keep, *features])))


def one_row(batches: Batches, row: int, data: str) -> pl.DataFrame:
    """Return one row of the data, counted from 0."""
    found = batches.lazy.slice(row, 1).collect() if row >= 0 else batches.lazy.head(0).collect()
    if not len(found):
        raise DataError(f"{data}: there is no row {row}. The first is 0.")
    return found


def _located(error: BaseException, batch: pl.DataFrame) -> BaseException:
    """Say where a batch starts, since a message of the model counts rows from there."""
    if not isinstance(error, DataError):
        return error
    return DataError(f"{error} (Rows are counted from row {batch[ROW][0]:,} of the data.)")
