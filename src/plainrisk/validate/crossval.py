"""Cross validation: rows are read and checked once, and the model is fitted again without each fold."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from plainrisk._types import Counts, Floats, Index, Outcome
from plainrisk.checks import FUNCTION, NOTHING, SEED, check_parameters, whole
from plainrisk.data.frame import Origin, frame_like, native_rows, refuse_other_order
from plainrisk.data.rows import StoredRows, is_stored
from plainrisk.errors import DataError
from plainrisk.fit.splits import Split, splits_of
from plainrisk.fit.stream import Stream, read_stream
from plainrisk.fit.training import Training, read_training, with_class_weight
from plainrisk.models.base import CLASSIFIER, RiskClassifier
from plainrisk.models.experts import is_ours
from plainrisk.validate.counted import counted_risks

__all__ = [
    "METRICS",
    "CrossValidation",
    "Fold",
    "cross_validate",
    "require_weights",
]

METRICS = ("auc", "log_loss", "brier", "ece")


@dataclass(frozen=True, eq=False)
class Fold:
    """A model, and the rows it was not fitted to.

    Attributes
    ----------
    test : (k,) positions of the held-out rows
    risk : (k,) the model's predictions for them
    model : fitted to the other rows
    seconds : the time of the fit
    n_rows : the number of held-out rows, if they were counted where they are; see `CrossValidation`
    """

    test: Index
    risk: Floats
    model: Any
    seconds: float
    n_rows: int | None = None

    def __repr__(self) -> str:
        n_rows = len(self.test) if self.n_rows is None else self.n_rows
        return f"Fold({n_rows:,} held-out rows, {type(self.model).__name__})"


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Predictions of models for rows that they were not fitted to.

    For rows that are not in memory, an entry is all rows of a fold with the same probability and outcome.

    Attributes
    ----------
    folds : tuple of Fold
    target : (n,) the outcome of every row, 0/1
    weight : (n,) the weight of every row, or None
    origin : where the rows came from
    rows : (n,) the number of rows in every entry, or None if each is one row
    """

    folds: tuple[Fold, ...]
    target: Outcome
    weight: Floats | None
    origin: Origin | None = None
    rows: Counts | None = None

    def __repr__(self) -> str:
        held_out, rows = int(self._counts[~np.isnan(self.risk)].sum()), int(self._counts.sum())
        head = f"CrossValidation: {len(self.folds)} folds, {rows:,} rows"
        head += f", {held_out:,} of them held out" if held_out < rows else ""
        return f"{head}\n{self.summary()}"

    @property
    def _counts(self) -> Counts:
        return np.ones(len(self.target), np.int64) if self.rows is None else self.rows

    @property
    def models(self) -> tuple[Any, ...]:
        """The model of every fold."""
        return tuple(fold.model for fold in self.folds)

    @cached_property
    def risk(self) -> Floats:
        """The held-out risk of every row, (n,): the mean if several folds hold it out, NaN if none does."""
        total, count = np.zeros(len(self.target)), np.zeros(len(self.target))
        for fold in self.folds:
            total[fold.test] += fold.risk
            count[fold.test] += 1
        with np.errstate(invalid="ignore"):
            return total / np.where(count > 0, count, np.nan)

    @cached_property
    def scores(self) -> Mapping[str, Floats]:
        """AUC, log loss, Brier score and ECE on the held-out rows of each fold, (folds,) each."""
        scores = [self._scores(fold.test, fold.risk) for fold in self.folds]
        return {name: np.array([of_fold[name] for of_fold in scores]) for name in METRICS}

    @cached_property
    def pooled(self) -> Mapping[str, float]:
        """The same figures over all held-out rows together."""
        held_out = np.flatnonzero(~np.isnan(self.risk))
        return self._scores(held_out, self.risk[held_out])

    def _scores(self, rows: Index, risk: Floats) -> dict[str, float]:
        from plainrisk.measure.metrics import summary

        scores = summary(self.target[rows], risk, None if self.weight is None else self.weight[rows])
        return {name: scores[name] for name in METRICS}

    @property
    def mean(self) -> dict[str, float]:
        """The mean of every score over the folds."""
        return {name: float(np.mean(values)) for name, values in self.scores.items()}

    @property
    def sd(self) -> dict[str, float]:
        """The standard deviation of every score over the folds, with n - 1; NaN for one fold."""
        return {
            name: statistics.stdev(values.tolist()) if len(values) > 1 and np.isfinite(values).all() else float("nan")
            for name, values in self.scores.items()
        }

    def summary(self) -> str:
        """Return mean and standard deviation of every score over the folds, and the pooled figure, a line each."""
        texts = {
            name: f"{m:.4f} ± {self.sd[name]:.4f}, pooled {self.pooled[name]:.4f}" for name, m in self.mean.items()
        }
        if np.isinf(self.mean["log_loss"]):
            texts["log_loss"] = f"infinite: {self.certain_and_wrong}"
        return "\n".join(f"{name:<9}{text}" for name, text in texts.items())

    @property
    def certain_and_wrong(self) -> str:
        """Why a log loss is infinite, in words: how many rows got a probability of 0 or 1 that was wrong."""
        wrong = [(end, f.test[(f.risk == end) & (self.target[f.test] != end)]) for f in self.folds for end in (0, 1)]
        never, always = (sum(int(self._counts[rows].sum()) for end, rows in wrong if end == side) for side in (0, 1))
        return (
            f"{never:,} rows of the positive outcome got probability 0, and {always:,} of the other outcome "
            "probability 1"
        )

    def to_frame(self, like: Any = None, *, rows: bool = False) -> Any:
        """Return a data frame with a line per fold, in the library that `like` came from.

        With rows=True there is a line per row (target, risk), in the order of the rows, in pandas with their index; the
        library is that of the rows unless `like` is given.
        """
        if rows and self.rows is not None:
            raise DataError(
                "to_frame(rows=True): rows that are not in memory were counted where they are, so there is no risk for "
                "each of them. Score them with the models of the folds, or cross validate a sample in memory."
            )
        if rows:
            return frame_like({"target": self.target, "risk": self.risk}, like, self.origin)
        return frame_like({"fold": np.arange(len(self.folds)), **self.scores}, like)


def cross_validate(
    model: Any,
    X: Any,
    y: Any = None,
    cv: Any = 10,
    seed: int = 0,
    groups: Any = None,
    *,
    time: Any = None,
    sample_weight: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> CrossValidation:
    """Fit a model without each fold in turn, and score the fold.

    Bins and categories are also found without the fold: every model is the one that `fit` gives on the other rows.

    Parameters
    ----------
    model : classifier
        One of ours, or any with fit and predict_proba.
    X, y : as in `fit`
        Rows that are not in memory (`pr.rows`) are fitted and counted where they are, by a model of ours; y, groups and
        sample_weight are then names of columns, and cv a number. A hash of features and outcome, or of the group,
        assigns rows to folds, so that the same rows are in the same folds wherever they are, and equal rows together.
    cv : int, scikit-learn splitter, or iterable of (train, test), default=10
        A number makes shuffled folds, stratified by the outcome: scikit-learn's StratifiedKFold.
    seed : int, default=0
        Shuffles the rows, if cv is a number.
    groups : (n,), optional
        Rows of one group are never on both sides of a split.
    time : (n,), optional
        When each row happened: numbers, dates, or text such as 2024-03. The distinct times are cut into cv + 1 runs,
        and each run but the first is held out from a model fitted to all earlier ones (forward chaining). Rows of the
        first run, the longest, are never held out.
    sample_weight : (n,), optional
        For the fits and the scores.
    progress : callable, optional
        Called with the number of folds done and the number of folds, after each.

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(2000, seed=1)
    >>> found = pr.cross_validate(pr.AdditiveRiskModel(credit.schema), credit.frame, credit.target, cv=5)
    >>> len(found.models), bool(found.mean["auc"] > 0.7)
    (5, True)
    """
    allowed = {"model": CLASSIFIER, "progress": NOTHING | FUNCTION}
    check_parameters("cross_validate", {"model": model, "progress": progress}, allowed)
    if isinstance(model, RiskClassifier):
        model._check_parameters()
    if is_stored(X):
        if time is not None:
            raise DataError("cross_validate: time needs rows in memory. Give groups, or hold out later rows by hand.")
        return _validate_where_rows_are(model, X, y, cv, seed, groups, sample_weight, progress)
    require_weights("cross_validate", sample_weight)
    training = read_training(X, y, getattr(model, "schema", None), sample_weight, None)
    refuse_other_order(training.frame, groups=groups, time=time)
    splits = splits_of(training.target, cv, seed, groups, time)
    folds = []
    for k, split in enumerate(splits):
        folds.append(_fold(model, training, split, k, len(splits)))
        if progress is not None:
            progress(k + 1, len(splits))
    return CrossValidation(tuple(folds), training.target, training.weight, training.frame.origin)


def require_weights(who: str, sample_weight: Any) -> None:
    """Refuse weights of 0: rows without weight would take places in the folds."""
    if sample_weight is not None and not np.all(sample_weight):
        raise DataError(f"{who}: some sample_weight is 0. Drop those rows first.")


def _fold(model: Any, training: Training, split: Split, k: int, n_folds: int) -> Fold:
    train, test = split
    fitted, rows, held_out = clone(model), training.subset(train), training.subset(test)
    if rows.target.min(initial=1) == rows.target.max(initial=0):
        raise DataError(f"Fold {k + 1} of {n_folds}: the rows to fit have one outcome only.")
    start, frame = perf_counter(), held_out.frame
    if is_ours(fitted):
        fitted._fit_whole(with_class_weight(rows, fitted._class_weight))
    else:
        weights = {} if rows.weight is None else {"sample_weight": rows.weight}
        fitted.fit(native_rows(rows.frame, rows.names), rows.classes[rows.target], **weights)
        frame = native_rows(held_out.frame, held_out.names)
    seconds = perf_counter() - start
    try:
        risk = fitted.predict_proba(frame)
    except DataError as error:
        raise DataError(f"Fold {k + 1} of {n_folds}: {error}") from None
    return Fold(test, np.asarray(risk)[:, list(fitted.classes_).index(rows.classes[1])], fitted, seconds)


def _validate_where_rows_are(
    model: Any,
    rows: StoredRows,
    y: Any,
    cv: Any,
    seed: int,
    group: Any,
    weight: Any,
    progress: Callable[[int, int], None] | None,
) -> CrossValidation:
    """Cross validate on rows that are not in memory: a fold is a filter of them."""
    if not is_ours(model):
        raise DataError("cross_validate: rows that are not in memory are fitted where they are, by a model of ours.")
    allowed = {"cv": whole(2), "seed": SEED}
    check_parameters("cross_validate of rows that are not in memory", {"cv": cv, "seed": seed}, allowed)
    training = read_stream(rows, y, model.schema, weight, None)
    if model.schema is None and (group is not None or rows.group is not None):
        raise DataError("cross_validate: without a schema the group would be a feature. Give the model a schema.")
    folds, counted, n = [], [], 0
    for k, (train, test) in enumerate(training.dealt(int(cv), int(seed), group)):
        try:
            fitted, seconds = _fit_where_rows_are(model, train, training)
            sums, _ = counted_risks("cross_validate", fitted, test, training.reader.target, training.reader.weight)
        except DataError as error:
            raise DataError(f"Fold {k + 1} of {cv}: {error}") from None
        folds.append(Fold(np.arange(n, n + len(sums.bad)), sums.risk, fitted, seconds, int(sums.rows.sum())))
        counted.append((sums.bad.astype(np.uint8), sums.weight, sums.rows))
        n += len(sums.bad)
        if progress is not None:
            progress(k + 1, int(cv))
    target, weights, counts = map(np.concatenate, zip(*counted, strict=True))
    return CrossValidation(tuple(folds), target, weights, rows=counts)


def _fit_where_rows_are(model: Any, rows: StoredRows, training: Stream) -> tuple[Any, float]:
    """Fit a model to rows without the warnings of `fit`; return it and the seconds."""
    start, fitted = perf_counter(), clone(model)
    read = fitted._read(rows, training.reader.target, training.reader.weight)
    try:
        fitted._fit_whole(read)
    finally:
        read.free()
    return fitted, perf_counter() - start
