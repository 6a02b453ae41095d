"""The arguments of `fit`, read and checked once: the rows, the schema, the target as 0/1, the weights.

All rows follow one protocol, `TrainingRows`, wherever they are: apply a function to every batch and add up the
results, or keep the results where the rows are. `Training` holds rows in memory, which are one batch; a `Stream`
(`plainrisk.fit.stream`) uses rows in files or on other machines. The functions follow the protocol of
`plainrisk.totals`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np

from plainrisk._types import Array, Floats, Index, Outcome
from plainrisk.bins import Limits
from plainrisk.data.columns import is_missing, unmasked
from plainrisk.data.frame import Frame, as_frame, checked_by_sklearn, refuse_other_order
from plainrisk.data.spool import Arrays, Kept, Spool
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError, SchemaError, did_you_mean, nameless
from plainrisk.fit.splits import inner_splits
from plainrisk.fit.weights import class_factors_of, read_weight
from plainrisk.schema import Feature, Schema, label_of
from plainrisk.schema.outcomes import check_two_labels, position_of
from plainrisk.threads import parallel_map
from plainrisk.totals import identity, once

__all__ = [
    "Training",
    "TrainingRows",
    "read_more",
    "read_outcomes",
    "read_training",
    "resolve_schema",
    "with_class_weight",
]


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class TrainingRows(ABC):
    """The rows to learn from, wherever they are; every batch of them is a `Training`.

    Attributes
    ----------
    schema : what is known of the features: given, or inferred from the columns' types
    classes : the two labels, the positive one last
    base_rate : the share of the positive outcome before class weights
    factors : (2,) what class weights multiply the weight of a row by, or None
    named : whether the columns came with names
    ranges : the smallest and the largest measurement of the features that `learn_levels` has read; None without any
    """

    schema: Schema
    classes: Array
    base_rate: float
    factors: Floats | None = None
    named: bool = True
    ranges: dict[str, Limits | None] = field(default_factory=dict)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The columns a model reads."""

    @property
    @abstractmethod
    def totals(self) -> tuple[int, float, float]:
        """How many rows have a weight, the sum of all weights, and that of the positive outcome."""

    @property
    def n_rows(self) -> int:
        """The number of rows with a weight."""
        return self.totals[0]

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return self.totals[1]

    @property
    @abstractmethod
    def in_memory(self) -> Training:
        """All rows at once, or an error where they are read in batches."""

    def sum(self, function: Callable[[Training], Any], names: Sequence[str] = (), task: str = "reading rows") -> Any:
        """Apply a function to all rows, read with these features, and add up the results."""
        return self.sums([function], names, task)[0]

    @abstractmethod
    def sums(
        self,
        functions: Sequence[Callable[[Training], Any]],
        names: Sequence[str] | None = None,
        task: str = "reading rows",
        finish: Callable[[Any], Any] = identity,
    ) -> list[Any]:
        """Apply each function to all rows in one pass, add up and finish the results; for all features, or some."""

    @abstractmethod
    def keep(
        self,
        function: Callable[[Training], Arrays],
        names: Sequence[str] | None = None,
        task: str = "",
        groups: int = 0,
    ) -> Kept:
        """Keep arrays of every batch where the rows are, or of distinct rows in groups; see `StoredRows.keep`."""

    @abstractmethod
    def together(self, works: Sequence[Callable[[TrainingRows], T]]) -> list[T]:
        """Run several tasks on the rows; if rows are read in passes, the tasks share them."""

    @abstractmethod
    def gathered(self, function: Callable[[Training], Any], names: Sequence[str] | None = None) -> list[Any]:
        """Return a function's result for every batch, for methods that are not sums; refused for too many rows."""

    @abstractmethod
    def free(self) -> None:
        """Release the kept data about the rows; the rows themselves stay."""

    @abstractmethod
    def first(self) -> Frame:
        """Return some of the rows, to look at their types."""

    @abstractmethod
    def splits(self, cv: Any, kept: Index | None) -> list[tuple[TrainingRows, TrainingRows]]:
        """Return the rows to fit and those held out, by fold; see `inner_splits`."""

    def with_schema(self, schema: Schema) -> Self:
        """Return the same rows for a model with this schema."""
        return replace(self, schema=schema)


@dataclass(frozen=True)
class Training(TrainingRows):
    """Rows in memory.

    Attributes
    ----------
    frame : the rows, under the schema's names
    target : (n,) 1 where the outcome is the positive one
    weight : (n,) or None where every row weighs 1; class weights included
    """

    frame: Frame
    target: Outcome
    weight: Floats | None

    @property
    def positive(self) -> Array:
        """The weight of the positive outcome, row by row."""
        return self.target if self.weight is None else self.weight * self.target

    @property
    def sample_weight(self) -> Floats | None:
        """The weight of every row without class weights, or None if it is 1."""
        if self.weight is None or self.factors is None:
            return self.weight
        return self.weight / self.factors[self.target]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the rows."""
        return self.frame.names

    @once
    def totals(self) -> tuple[int, float, float]:
        """The number of rows, the sum of all weights, and that of the positive outcome."""
        n = len(self.target)
        if self.weight is None:
            return n, float(n), float(np.count_nonzero(self.target))
        return n, float(self.weight.sum()), float(self.positive.sum(dtype=np.float64))

    @property
    def in_memory(self) -> Training:
        """These rows."""
        return self

    def sums(
        self,
        functions: Sequence[Callable[[Training], Any]],
        names: Sequence[str] | None = None,
        task: str = "",
        finish: Callable[[Any], Any] = identity,
    ) -> list[Any]:
        """Return each function's result for the rows; each is finished before the next, which frees its memory."""
        return list(parallel_map(lambda function: finish(function(self)), functions, self.n_rows))

    def keep(
        self,
        function: Callable[[Training], Arrays],
        names: Sequence[str] | None = None,
        task: str = "",
        groups: int = 0,
    ) -> Kept:
        """Keep the arrays that a function returns; rows that are in memory stay there."""
        spool = Spool(limit=np.inf)
        spool.append(function(self))
        return spool.distinct(groups) if groups else spool

    def together(self, works: Sequence[Callable[[TrainingRows], T]]) -> list[T]:
        """Run the tasks one after the other."""
        return [work(self) for work in works]

    def gathered(self, function: Callable[[Training], Any], names: Sequence[str] | None = None) -> list[Any]:
        """Return a function's result for the rows, which are a single batch."""
        return [function(self)]

    def free(self) -> None:
        """Do nothing: arrays in memory are freed with their last reference."""

    def first(self) -> Frame:
        """Return the rows."""
        return self.frame

    def splits(self, cv: Any, kept: Index | None) -> list[tuple[TrainingRows, TrainingRows]]:
        """Return the rows to fit and those held out, by fold."""
        return [(self.subset(seen), self.subset(new)) for seen, new in inner_splits(self.target, cv, kept)]

    def subset(self, index: Index) -> Training:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[index]
        return replace(self, frame=self.frame.rows(index), target=self.target[index], weight=weight, ranges={})


def read_training(
    X: Any, y: Any, schema: Schema | None, sample_weight: Any, class_weight: str | Mapping[Any, float] | None
) -> Training:
    """Read and check what `fit` was given; every problem is an error that names it."""
    frame, full_schema = _read_frame(X, schema)
    if y is None:
        y = _target_in_frame(frame, full_schema)
    refuse_other_order(frame, y=y, sample_weight=sample_weight)
    target, classes = _read_target(y, full_schema, frame.n_rows)
    weight = read_weight(sample_weight, frame.n_rows)
    _check_classes(target, weight, classes)
    training = Training(
        frame, target, weight, schema=full_schema, classes=classes, base_rate=np.nan, named=_has_text_names(X)
    )
    if weight is not None and not weight.all():
        # A row of weight 0 does not count as a row: not even its categories and values are seen.
        training = training.subset(np.flatnonzero(weight))
    return with_class_weight(training, class_weight)


def _read_frame(X: Any, schema: Schema | None) -> tuple[Frame, Schema]:
    """Return rows under the schema's names, and the schema, checked against them."""
    frame = as_frame(X)
    full_schema = resolve_schema(schema, frame)
    frame = read_texts(frame, full_schema.readings)
    return (frame if frame.named else frame.renamed(tuple(full_schema.features))), full_schema


def with_class_weight(training: Training, class_weight: str | Mapping[Any, float] | None) -> Training:
    """Return rows that have no class weights yet with them, and with their base rate."""
    target, weight = training.target, training.weight
    sums = np.bincount(target, weight, minlength=2)
    training = replace(training, base_rate=float(sums[1] / sums.sum()))
    if class_weight is None:
        return training
    factors = class_factors_of(sums, class_weight, training.classes, training.n_rows)
    return replace(training, weight=factors[target] if weight is None else weight * factors[target], factors=factors)


def _has_text_names(X: Any) -> bool:
    """Whether all column names are text, as scikit-learn requires for feature names."""
    if isinstance(X, Frame):
        return X.named
    columns = getattr(X, "columns", getattr(X, "column_names", None))
    return columns is not None and all(isinstance(c, str) for c in columns)


def read_more(X: Any, y: Any, schema: Schema, classes: Array, sample_weight: Any) -> Training:
    """Read further rows for a fitted model, whose outcomes they must have; a batch may hold only one of the two."""
    frame, full_schema = _read_frame(X, schema)
    refuse_other_order(frame, y=y, sample_weight=sample_weight)
    labels, position = np.unique(read_outcomes(y).ravel(), return_inverse=True)
    codes = {label_of(c): k for k, c in enumerate(classes)}
    strange = [label_of(label) for label in labels if label_of(label) not in codes]
    if strange:
        raise DataError(f"Data: the model does not know the outcome {strange[0]!r}.{did_you_mean(strange[0], codes)}")
    if len(position) != frame.n_rows:
        raise DataError(f"Data: X has {frame.n_rows} rows, y {len(position)}.")
    target = np.array([codes[label_of(label)] for label in labels], dtype=np.uint8)[position]
    weight = read_weight(sample_weight, frame.n_rows)
    base_rate = float(np.average(target, weights=weight))
    return Training(frame, target, weight, schema=full_schema, classes=classes, base_rate=base_rate)


def resolve_schema(schema: Schema | None, frame: Frame) -> Schema:
    """Return the schema, checked against rows; without one, kinds follow the columns' types."""
    if frame.n_rows == 0:
        raise DataError("Data: 0 sample(s), a minimum of 1 is required. There are no rows to fit.")
    if not frame.names:
        raise DataError("Data: 0 feature(s), a minimum of 1 is required. There are no columns to fit.")
    if schema is None:
        kinds = {n: Feature(kind="continuous" if frame.is_numeric(n) else "categorical") for n in frame.names}
        return Schema(features=kinds)
    if not isinstance(schema, Schema):
        raise SchemaError(
            f"Schema: expected plainrisk.Schema, got {type(schema).__name__}. Use Schema.load(path) or Schema(...)."
        )
    if not schema.features:
        raise SchemaError("Schema: it lists no features. Add them, or draft a schema with Schema.infer(frame).")
    if not frame.named:
        raise nameless("the schema")
    from plainrisk.schema.check import require_valid

    require_valid(schema, frame)
    return schema


def _target_in_frame(frame: Frame, schema: Schema) -> Any:
    if schema.target is not None and schema.target in frame.columns:
        column = frame.column(schema.target)
        return column if isinstance(column, np.ndarray) else column.to_numpy()
    raise DataError(
        "Data: fitting requires y to be passed, but the target y is None, and the data have no target column "
        "named by the schema."
    )


def _read_target(y: Any, schema: Schema, n_rows: int) -> tuple[Outcome, Array]:
    from sklearn.utils import column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    labels = read_outcomes(y)
    if labels.ndim != 1:
        with checked_by_sklearn():
            labels = column_or_1d(labels, warn=True)
    if len(labels) != n_rows:
        raise DataError(
            f"Data: Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y {len(labels)}."
        )
    classes = _two_numbers(labels)
    if classes is None:
        with checked_by_sklearn():
            check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
    else:
        codes = (labels == classes[1]).astype(np.uint8)
    check_two_labels(classes)
    if position_of(classes, schema) == 0 and len(classes) == 2:
        classes, codes = classes[::-1], 1 - codes
    return codes.astype(np.uint8), classes


def read_outcomes(y: Any, name: str = "y", first: int = 0) -> Array:
    """Return outcomes as an array of one type, none missing; a row in a message is counted from `first`."""
    from sklearn.utils import assert_all_finite

    labels = np.asarray(unmasked(y))
    if labels.dtype.kind in "mM":
        raise DataError(f"Data: {name} holds dates or durations. Outcomes are numbers, truth values or text.")
    if labels.dtype.kind == "f":
        with checked_by_sklearn():
            assert_all_finite(labels, input_name=name)
    if labels.dtype.kind in "US" and not isinstance(y, np.ndarray):
        labels = np.asarray(y, dtype=object)  # numpy makes text of the 0 in [0, "1"]
    if labels.dtype != object:
        return labels
    flat = labels.ravel()
    missing = np.array([is_missing(v) for v in flat], np.bool_)
    if missing.any():
        row = first + int(missing.argmax())
        raise DataError(f"Data: Input {name} contains missing values, first in row {row:,}. Drop those rows.")
    is_text = np.array([isinstance(v, str | bytes) for v in flat], np.bool_)
    if is_text.any() and not is_text.all():
        row = first + int((is_text != is_text[0]).argmax())
        raise DataError(
            f"Data: {name} mixes numbers and text: row {row:,} is not of the type of row {first:,}. Use one type."
        )
    if all(isinstance(v, int | np.integer) and type(v) is not bool and abs(int(v)) < 2**63 for v in flat):
        return labels.astype(np.int64)  # whole numbers that a table kept as objects
    return labels


def _two_numbers(labels: Array) -> Array | None:
    """Return the two labels of whole numbers that are neighbors, such as 0 and 1, without sorting them; else None."""
    if labels.dtype.kind not in "iu" or not len(labels):
        return None
    low, high = labels.min(), labels.max()
    return np.array([low, high]) if low + 1 == high else None


def _check_classes(target: Outcome, weight: Floats | None, classes: Array) -> None:
    seen = target if weight is None else target[weight > 0]
    if not len(seen) or seen.min() == seen.max():
        kept = "" if weight is None else " among the rows with a weight"
        only = label_of(classes[seen[0]]) if len(seen) else "none"
        raise DataError(f"Data: the target must have two classes; there is only one class{kept}: {only}.")
