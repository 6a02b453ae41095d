"""Training rows that are read in batches, for data larger than memory; see `plainrisk.fit.training`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from plainrisk._types import Array, Bools, Floats, Index, Outcome
from plainrisk.data.folds import Folds, dealt
from plainrisk.data.frame import Frame
from plainrisk.data.lockstep import rows_in_step
from plainrisk.data.rows import ONE_BY_ONE, StoredRows
from plainrisk.data.spool import Arrays, Kept
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError, did_you_mean
from plainrisk.fit.splits import inner_splits
from plainrisk.fit.training import Training, TrainingRows, read_outcomes, resolve_schema
from plainrisk.fit.weights import class_factors_of, read_weight
from plainrisk.schema import Schema
from plainrisk.schema.check import refuse_forbidden
from plainrisk.schema.outcomes import check_two_labels, position_of
from plainrisk.totals import Then, identity, once

__all__ = ["Stream", "read_stream"]

T = TypeVar("T")


@dataclass(frozen=True)
class _Reader:
    """From a batch of a table to training rows; it is sent to where the rows are.

    Attributes
    ----------
    target, weight : names of columns; weight may be None
    keep : (rows of the source,), the rows that count, or None for all
    """

    schema: Schema
    target: str
    weight: str | None
    classes: Array
    base_rate: float
    factors: Floats | None
    keep: Bools | None = None

    def __call__(self, frame: Frame) -> Training | None:
        """Read outcome and weight; rows that do not count are left out, None if that leaves none."""
        frame = read_texts(frame, self.schema.readings)
        refuse_forbidden(self.schema, frame)
        target = (_labels(frame, self.target) == self.classes[1]).astype(np.uint8)
        weight = None if self.weight is None else _weights(frame, self.weight)
        if self.factors is not None:
            factor = self.factors[target]
            weight = factor if weight is None else weight * factor
        batch = Training(
            frame,
            target,
            weight,
            schema=self.schema,
            classes=self.classes,
            base_rate=self.base_rate,
            factors=self.factors,
        )
        counts = np.ones(frame.n_rows, bool) if weight is None else weight > 0
        if self.keep is not None:
            counts &= self.keep[frame.first : frame.first + frame.n_rows]
        if counts.all():
            return batch
        return batch.subset(np.flatnonzero(counts)) if counts.any() else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of outcome and weight."""
        return (self.target,) if self.weight is None else (self.target, self.weight)

    def counting(self, frame: Frame) -> Bools:
        """Return which rows of a batch count."""
        counts = np.ones(frame.n_rows, bool) if self.weight is None else _weights(frame, self.weight) > 0
        return counts if self.keep is None else counts & self.keep[frame.first : frame.first + frame.n_rows]


@dataclass(frozen=True)
class Stream(TrainingRows):
    """Rows that are not in memory.

    Attributes
    ----------
    source : where the rows are
    target, weight : names of columns; weight may be None
    counts : the `totals` of the rows
    kept : (rows of the source,) the rows that count, or None for all
    """

    source: StoredRows
    target: str
    weight: str | None
    counts: tuple[int, float, float]
    kept: Bools | None = None

    @property
    def totals(self) -> tuple[int, float, float]:
        """How many rows have a weight, the sum of all weights, and that of the positive outcome."""
        return self.counts

    @once
    def reader(self) -> _Reader:
        """From a batch of the rows to training rows."""
        return _Reader(self.schema, self.target, self.weight, self.classes, self.base_rate, self.factors, self.kept)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns a model reads: all but outcome and weight."""
        return tuple(n for n in self.source.names if n not in self.reader.columns)

    @property
    def in_memory(self) -> Training:
        """Rows that a method needs all at once."""
        raise DataError(
            "Data: this needs all rows in memory, and they come in batches. Read them into a data frame first, "
            "a sample if they are too many."
        )

    def _columns(self, names: Sequence[str] | None) -> tuple[str, ...]:
        return (*(self.schema.features if names is None else names), *self.reader.columns)

    def sums(
        self,
        functions: Sequence[Callable[[Training], Any]],
        names: Sequence[str] | None = None,
        task: str = "reading rows",
        finish: Callable[[Any], Any] = identity,
    ) -> list[Any]:
        """Apply each function to all rows in one pass and add up the results."""
        return self.source.totals(functions, self._columns(names), task, finish, self.reader)

    def keep(
        self,
        function: Callable[[Training], Arrays],
        names: Sequence[str] | None = None,
        task: str = "",
        groups: int = 0,
    ) -> Kept:
        """Keep arrays of every batch where the rows are."""
        return self.source.keep(Then(self.reader, function), self._columns(names), task, groups)

    def together(self, works: Sequence[Callable[[TrainingRows], T]]) -> list[T]:
        """Do several pieces of work in the same passes over the rows."""
        return rows_in_step(self.source, [_OnRows(self, work) for work in works])

    def gathered(self, function: Callable[[Training], Any], names: Sequence[str] | None = None) -> list[Any]:
        """Return a function's result for every batch."""
        return self.source.gathered(Then(self.reader, function), self._columns(names), "gathering rows")

    def free(self) -> None:
        """Release what was kept of the rows."""
        self.source.free()

    def first(self) -> Frame:
        """Return some of the rows, to look at their types."""
        frame = self.source.first(tuple(self.schema.features))
        assert frame is not None, "there are rows"
        return frame

    def splits(self, cv: Any, kept: Index | None) -> list[tuple[TrainingRows, TrainingRows]]:
        """Return the rows to fit and those held out, by fold."""
        if not self.source.numbered:
            if not isinstance(cv, Integral):
                raise DataError(ONE_BY_ONE)
            return [(self._part(source=seen), self._part(source=new)) for seen, new in self.dealt(int(cv))]
        outcomes = np.concatenate(self.gathered(_target, ()))
        counts = np.concatenate(self.source.gathered(self.reader.counting, self.reader.columns, "counting rows"))
        splits = inner_splits(outcomes, cv, kept)
        return [(self._subset(seen, counts), self._subset(new, counts)) for seen, new in splits]

    def dealt(self, n_folds: int, seed: int = 0, group: Any = None) -> list[tuple[StoredRows, StoredRows]]:
        """Return all rows but those of a fold, and those, for every fold: dealt by what rows hold, or by a group."""
        group = self.source.group if group is None else _column(self.source, group, "groups", None)
        if group is not None:
            return dealt(self.source, Folds(n_folds, texts=(group,), seed=(seed,)))
        numeric = {name for name, feature in self.schema.features.items() if feature.kind == "continuous"}
        columns = (*self.schema.features, self.reader.target)
        numbers, texts = (tuple(n for n in columns if (n in numeric) == are) for are in (True, False))
        return dealt(self.source, Folds(n_folds, numbers, texts, self.schema.readings, (seed,)))

    def _subset(self, index: Index, counts: Bools) -> Stream:
        """Return some of the rows that count, by their positions in ascending order."""
        chosen = np.zeros(len(counts), bool)
        chosen[np.flatnonzero(counts)[index]] = True
        return self._part(kept=chosen)

    def _part(self, **fewer: Any) -> Stream:
        """Return some of the rows, counted."""
        part = replace(self, ranges={}, **fewer)
        counts = part.sum(_class_sums, (), "counting rows")
        if counts is None:
            raise DataError("Data: a fold of the cross validation has no rows. Take fewer folds.")
        n_rows, sums = counts
        return replace(part, counts=(n_rows, float(sums.sum()), float(sums[1])))


@dataclass(frozen=True)
class _OnRows:
    """Work on training rows, given where the rows are."""

    stream: Stream
    work: Callable[[TrainingRows], Any]

    def __call__(self, source: StoredRows) -> Any:
        return self.work(replace(self.stream, source=source))


def _target(batch: Training) -> Outcome:
    return batch.target


def _class_sums(batch: Training) -> tuple[int, Floats]:
    return batch.n_rows, np.bincount(batch.target, batch.weight, minlength=2).astype(np.float64)


def read_stream(
    source: StoredRows,
    y: Any,
    schema: Schema | None,
    sample_weight: Any,
    class_weight: str | Mapping[Any, float] | None,
) -> Stream:
    """Check rows in batches and their outcomes in one pass over the outcome's column."""
    target = _column(source, y, "y", None if schema is None else schema.target)
    weight = source.weight if sample_weight is None else _column(source, sample_weight, "sample_weight", None)
    source = source.read_as(None if schema is None else schema.kinds)
    full_schema = _first_look(source, schema, target, weight)
    columns = [target] if weight is None else [target, weight]
    (counts,) = source.totals([_Outcomes(target, weight)], columns, "reading outcomes")
    sums, n_rows = counts.sums, counts.n_rows
    classes = np.array(sorted(sums))
    check_two_labels(classes)
    if len(classes) == 2 and position_of(classes, full_schema) == 0:
        classes = classes[::-1]
    by_class = np.array([sums[c] for c in classes.tolist()])
    if len(classes) < 2 or not by_class.all():
        raise DataError(f"Data: the target must have two classes; there is only one class in {target!r}.")
    factors = None if class_weight is None else class_factors_of(by_class, class_weight, classes, n_rows)
    trained = by_class if factors is None else by_class * factors
    base_rate = float(by_class[1] / by_class.sum())
    totals = n_rows, float(trained.sum()), float(trained[1])
    return Stream(
        source, target, weight, totals, schema=full_schema, classes=classes, base_rate=base_rate, factors=factors
    )


@dataclass(frozen=True)
class _Outcomes:
    """The weight of every outcome and the number of rows with one; a call with a batch counts its rows."""

    target: str
    weight: str | None
    sums: dict[Any, float] = field(default_factory=dict)
    n_rows: int = 0
    first: int = 0

    def __call__(self, frame: Frame) -> _Outcomes:
        labels, code = np.unique(_labels(frame, self.target), return_inverse=True)
        row_weight = np.ones(frame.n_rows) if self.weight is None else _weights(frame, self.weight)
        sums = np.bincount(code, row_weight, minlength=len(labels)).tolist()
        check_two_labels(labels)
        weight_of = dict(zip(labels.tolist(), sums, strict=True))
        return replace(self, sums=weight_of, n_rows=int(np.count_nonzero(row_weight)), first=frame.first)

    def __add__(self, other: _Outcomes) -> _Outcomes:
        if {isinstance(label, str) for label in (*self.sums, *other.sums)} == {True, False}:
            raise DataError(
                f"Data: the target {self.target!r} changes between numbers and text; the batch from row "
                f"{other.first:,} on differs from those before. Read it in one type."
            )
        sums = {label: self.sums.get(label, 0.0) + other.sums.get(label, 0.0) for label in {**self.sums, **other.sums}}
        return replace(self, sums=sums, n_rows=self.n_rows + other.n_rows)


def _column(source: StoredRows, given: Any, what: str, default: str | None) -> str:
    if given is None and default is not None:
        given = default
    if not isinstance(given, str):
        came = "nothing" if given is None else type(given).__name__
        raise DataError(f"{what} must be the name of a column when rows come in batches, not {came}.")
    if given not in source.names:
        raise DataError(f"Data: {what} names no column: {given!r}.{did_you_mean(given, source.names)}")
    return given


def _first_look(source: StoredRows, schema: Schema | None, target: str, weight: str | None) -> Schema:
    """Return the schema, checked against the first batch; later batches are checked as they are read."""
    features = [n for n in source.names if n not in (target, weight)]
    if schema is not None:
        for name in schema.features:
            if name not in features:
                raise DataError(f"Data: there is no column {name!r}.{did_you_mean(name, features)}")
        features = list(schema.features)
    frame = source.first(features)
    if frame is None:
        raise DataError("Data: 0 sample(s), a minimum of 1 is required. There are no rows to fit.")
    return resolve_schema(schema, frame)


def _labels(frame: Frame, name: str) -> Array:
    """Return the outcomes of a batch; none may be missing."""
    missing = frame.labels(name).codes < 0
    if missing.any():
        row = frame.first + int(missing.argmax())
        raise DataError(f"Data: the target {name!r} is missing in row {row:,}. Drop such rows.")
    column = frame.column(name)
    return read_outcomes(column if isinstance(column, np.ndarray) else column.to_numpy(), repr(name), frame.first)


def _weights(frame: Frame, name: str) -> Floats:
    try:
        weight = frame.numbers(name)
        weights = read_weight(weight, frame.n_rows) if weight.any() else weight
    except DataError as error:
        raise DataError(f"{error} (Rows are counted from row {frame.first:,}.)") from None
    return np.ones(frame.n_rows) if weights is None else weights
