"""Training rows that are read in batches, for data larger than memory; see `plainrisk.fit.training`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plainrisk._types import Array, Bools, Floats, Index, Outcome
from plainrisk.data.frame import Frame
from plainrisk.data.rows import Batches
from plainrisk.data.spool import Spool
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError, did_you_mean
from plainrisk.fit.training import (
    Training,
    check_two_labels,
    class_factors_of,
    position_of,
    read_outcomes,
    read_weight,
    resolve_schema,
)
from plainrisk.schema import Schema
from plainrisk.schema.check import refuse_forbidden

__all__ = ["Stream", "read_stream"]


@dataclass(frozen=True)
class Stream:
    """Rows that are read in batches; see `TrainingRows`.

    Attributes
    ----------
    source : where the rows are
    target, weight : names of columns; weight may be None
    n_rows, total, positive_total : over all rows with a weight
    keep : (rows of the source,), the rows that count, or None for all
    """

    source: Batches
    schema: Schema
    target: str
    weight: str | None
    classes: Array
    base_rate: float
    factors: Floats | None
    n_rows: int
    total: float
    positive_total: float
    keep: Bools | None = None
    named: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The columns a model reads: all but outcome and weight."""
        return tuple(n for n in self.source.names if n not in (self.target, self.weight))

    @property
    def in_memory(self) -> Training:
        """Rows that a method must hold all at once."""
        raise DataError(
            "Data: this needs all rows in memory, and they come in batches. Read them into a data frame first, "
            "a sample if they are too many."
        )

    def with_schema(self, schema: Schema | None) -> Stream:
        """Return the same rows for a model with this schema."""
        return self if schema is None else replace(self, schema=schema)

    def batches(self, names: Sequence[str] | None = None, task: str = "reading rows") -> Iterator[Training]:
        """Read all rows once: some features or all."""
        features = self.schema.features if names is None else names
        own = [self.target] if self.weight is None else [self.target, self.weight]
        for frame in self.source.batches([*features, *own], task):
            frame = read_texts(frame, self.schema.readings)
            refuse_forbidden(self.schema, frame)
            batch = self._batch(frame)
            if batch is not None:
                yield batch

    def _batch(self, frame: Frame) -> Training | None:
        """Read outcome and weight; rows that do not count are left out, None if that leaves none."""
        target = (_labels(frame, self.target) == self.classes[1]).astype(np.uint8)
        weight = None if self.weight is None else _weights(frame, self.weight)
        if self.factors is not None:
            own = self.factors[target]
            weight = own if weight is None else weight * own
        batch = Training(frame, self.schema, target, weight, self.classes, self.base_rate, self.factors)
        counts = np.ones(frame.n_rows, bool) if weight is None else weight > 0
        if self.keep is not None:
            counts &= self.keep[frame.first : frame.first + frame.n_rows]
        if counts.all():
            return batch
        return batch.subset(np.flatnonzero(counts)) if counts.any() else None

    def outcomes(self) -> Outcome:
        """Return the outcome of every row that counts: one byte a row."""
        return np.concatenate([batch.target for batch in self.batches((), "reading outcomes")])

    def subset(self, index: Index) -> Stream:
        """Return some of the rows that count, by their positions in ascending order."""
        kept = np.concatenate([self._counting(frame) for frame in self._own_columns()])
        chosen = np.zeros(len(kept), bool)
        chosen[np.flatnonzero(kept)[index]] = True
        part = replace(self, keep=chosen)
        n_rows, sums = 0, np.zeros(2)
        for batch in part.batches((), "counting rows"):
            n_rows += batch.n_rows
            sums += np.bincount(batch.target, batch.weight, minlength=2)
        return replace(part, n_rows=n_rows, total=float(sums.sum()), positive_total=float(sums[1]))

    def spool(self) -> Spool:
        """Return an empty list for what is kept of each batch, which moves to disk when it grows."""
        return Spool()

    def _own_columns(self) -> Iterator[Frame]:
        own = [self.target] if self.weight is None else [self.target, self.weight]
        return self.source.batches(own, "counting rows")

    def _counting(self, frame: Frame) -> Bools:
        counts = np.ones(frame.n_rows, bool)
        if self.weight is not None:
            counts = _weights(frame, self.weight) > 0
        return counts if self.keep is None else counts & self.keep[frame.first : frame.first + frame.n_rows]


def read_stream(
    source: Batches,
    y: Any,
    schema: Schema | None,
    sample_weight: Any,
    class_weight: str | Mapping[Any, float] | None,
) -> Stream:
    """Check rows in batches and their outcomes in one pass over the outcome's column."""
    target = _column(source, y, "y", None if schema is None else schema.target)
    weight = None if sample_weight is None else _column(source, sample_weight, "sample_weight", None)
    source = source.read_as(None if schema is None else schema.kinds)
    known = _first_look(source, schema, target, weight)
    sums: dict[Any, float] = {}
    n_rows = 0
    own = [target] if weight is None else [target, weight]
    for frame in source.batches(own, "reading outcomes"):
        labels, code = np.unique(_labels(frame, target), return_inverse=True)
        row_weight = np.ones(frame.n_rows) if weight is None else _weights(frame, weight)
        n_rows += int(np.count_nonzero(row_weight))
        if sums and {isinstance(label, str) for label in (*sums, *labels.tolist())} == {True, False}:
            raise DataError(
                f"Data: the target {target!r} changes between numbers and text; the batch from row {frame.first:,} on "
                "differs from those before. Read it in one type."
            )
        for label, total in zip(labels.tolist(), np.bincount(code, row_weight).tolist(), strict=True):
            sums[label] = sums.get(label, 0.0) + total
    classes = np.array(sorted(sums))
    check_two_labels(classes)
    if len(classes) == 2 and position_of(classes, known) == 0:
        classes = classes[::-1]
    by_class = np.array([sums[c] for c in classes.tolist()])
    if len(classes) < 2 or not by_class.all():
        raise DataError(f"Data: the target must have two classes; there is only one class in {target!r}.")
    factors = None if class_weight is None else class_factors_of(by_class, class_weight, classes, n_rows)
    trained = by_class if factors is None else by_class * factors
    return Stream(
        source=source,
        schema=known,
        target=target,
        weight=weight,
        classes=classes,
        base_rate=float(by_class[1] / by_class.sum()),
        factors=factors,
        n_rows=n_rows,
        total=float(trained.sum()),
        positive_total=float(trained[1]),
    )


def _column(source: Batches, given: Any, what: str, default: str | None) -> str:
    if given is None and default is not None:
        given = default
    if not isinstance(given, str):
        came = "nothing" if given is None else type(given).__name__
        raise DataError(f"{what} must be the name of a column when rows come in batches, not {came}.")
    if given not in source.names:
        raise DataError(f"Data: {what} names no column: {given!r}.{did_you_mean(given, source.names)}")
    return given


def _first_look(source: Batches, schema: Schema | None, target: str, weight: str | None) -> Schema:
    """Return the schema, checked against the first batch; later batches are checked as they are read."""
    if source.n_rows == 0:
        raise DataError("Data: 0 sample(s), a minimum of 1 is required. There are no rows to fit.")
    features = [n for n in source.names if n not in (target, weight)]
    if schema is not None:
        for name in schema.features:
            if name not in features:
                raise DataError(f"Data: there is no column {name!r}.{did_you_mean(name, features)}")
        features = list(schema.features)
    return resolve_schema(schema, next(source.batches(features, "looking at the first rows")))


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
        found = read_weight(weight, frame.n_rows) if weight.any() else weight
    except DataError as error:
        raise DataError(f"{error} (Rows are counted from row {frame.first:,}.)") from None
    return np.ones(frame.n_rows) if found is None else found
