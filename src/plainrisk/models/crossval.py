"""Cross validation: rows are read and checked once, and the model is fitted again without each fold."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from plainrisk._types import Array, Floats, Index, Outcome
from plainrisk.checks import FUNCTION, LIST, NOTHING, SEED, Allowed, check_parameters, whole
from plainrisk.data.columns import floats_or_none, is_missing, unmasked
from plainrisk.data.frame import Origin, column_of, frame_like, native_rows, refuse_other_order
from plainrisk.errors import DataError
from plainrisk.fit.training import Training, read_training, with_class_weight
from plainrisk.models.base import CLASSIFIER, RiskClassifier
from plainrisk.models.experts import is_ours

__all__ = [
    "METRICS",
    "SPLITS",
    "CrossValidation",
    "Fold",
    "Split",
    "cross_validate",
    "inner_splits",
    "require_weights",
    "splits_of",
    "stratified_folds",
]

METRICS = ("auc", "log_loss", "brier", "ece")


@dataclass(frozen=True, eq=False)
class Fold:
    """A model, and the rows it was not fitted to.

    Attributes
    ----------
    test : (k,) positions of the held-out rows
    risk : (k,) what the model says of them
    model : fitted to the other rows
    seconds : what the fit took
    """

    test: Index
    risk: Floats
    model: Any
    seconds: float

    def __repr__(self) -> str:
        return f"Fold({len(self.test):,} held-out rows, {type(self.model).__name__})"


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What models say of rows that they were not fitted to.

    Attributes
    ----------
    folds : tuple of Fold
    target : (n,) the outcome of every row, 0/1
    weight : (n,) what every row weighs, or None
    origin : where the rows came from
    """

    folds: tuple[Fold, ...]
    target: Outcome
    weight: Floats | None
    origin: Origin | None = None

    def __repr__(self) -> str:
        held_out, rows = int((~np.isnan(self.risk)).sum()), len(self.target)
        head = f"CrossValidation: {len(self.folds)} folds, {rows:,} rows"
        head += f", {held_out:,} of them held out" if held_out < rows else ""
        return f"{head}\n{self.summary()}"

    @property
    def models(self) -> tuple[Any, ...]:
        """The model of every fold."""
        return tuple(fold.model for fold in self.folds)

    @cached_property
    def risk(self) -> Floats:
        """The held-out risk of every row, (n,): the mean where several folds hold it out, NaN where none does."""
        total, count = np.zeros(len(self.target)), np.zeros(len(self.target))
        for fold in self.folds:
            total[fold.test] += fold.risk
            count[fold.test] += 1
        with np.errstate(invalid="ignore"):
            return total / np.where(count > 0, count, np.nan)

    @cached_property
    def scores(self) -> Mapping[str, Floats]:
        """AUC, log loss, Brier score and ECE on the held-out rows of each fold, (folds,) each."""
        each = [self._scores(fold.test, fold.risk) for fold in self.folds]
        return {name: np.array([one[name] for one in each]) for name in each[0]}

    @cached_property
    def pooled(self) -> Mapping[str, float]:
        """The same figures over all held-out rows together."""
        held_out = np.flatnonzero(~np.isnan(self.risk))
        return self._scores(held_out, self.risk[held_out])

    def _scores(self, rows: Index, risk: Floats) -> dict[str, float]:
        from plainrisk.measure.metrics import summary

        found = summary(self.target[rows], risk, None if self.weight is None else self.weight[rows])
        return {name: found[name] for name in METRICS}

    @property
    def mean(self) -> dict[str, float]:
        """The mean of every score over the folds."""
        return {name: float(np.mean(values)) for name, values in self.scores.items()}

    @property
    def sd(self) -> dict[str, float]:
        """The standard deviation of every score over the folds, n - 1 below the line; NaN for one fold."""
        return {
            name: statistics.stdev(values.tolist()) if len(values) > 1 and np.isfinite(values).all() else float("nan")
            for name, values in self.scores.items()
        }

    def summary(self) -> str:
        """Return mean and standard deviation of every score over the folds, and the pooled figure, a line each."""
        sd, pooled = self.sd, self.pooled
        lines = [
            f"{name:<9}{mean:.4f} ± {sd[name]:.4f}, pooled {pooled[name]:.4f}"
            if not np.isinf(mean)
            else f"{name:<9}infinite: {self.certain_and_wrong}"
            for name, mean in self.mean.items()
        ]
        return "\n".join(lines)

    @property
    def certain_and_wrong(self) -> str:
        """Why a log loss is infinite, in words: how many rows got a probability of 0 or 1 that was wrong."""
        never, always = (
            sum(int(((fold.risk == end) & (self.target[fold.test] != end)).sum()) for fold in self.folds)
            for end in (0, 1)
        )
        return (
            f"{never:,} rows of the positive outcome got probability 0, and {always:,} of the other outcome "
            "probability 1"
        )

    def to_frame(self, like: Any = None, *, rows: bool = False) -> Any:
        """Return a data frame with a line per fold, in the library that `like` came from.

        With rows=True there is a line per row (target, risk), in its order and in pandas with its index; the library
        is that of the rows unless `like` says another.
        """
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

    Bins and categories are found without the fold, too: every model is what `fit` on the other rows gives.

    Parameters
    ----------
    model : classifier
        One of ours, or any with fit and predict_proba.
    X, y : as in `fit`
    cv : int, scikit-learn splitter, or iterable of (train, test), default=10
        A number makes shuffled folds, stratified by the outcome: scikit-learn's StratifiedKFold.
    seed : int, default=0
        Shuffles the rows of numbered folds.
    groups : (n,), optional
        Rows of one group are never on both sides of a split.
    time : (n,), optional
        When each row happened: numbers, dates, or text such as 2024-03. The distinct times are cut into cv + 1 runs,
        and each run but the first is held out from a model fitted to all earlier ones (forward chaining). So rows of
        the first run, the longest, are never held out.
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
    require_weights("cross_validate", sample_weight)
    allowed = {"model": CLASSIFIER, "progress": NOTHING | FUNCTION}
    check_parameters("cross_validate", {"model": model, "progress": progress}, allowed)
    if isinstance(model, RiskClassifier):
        model._check_parameters()
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
    """Refuse weights of 0: folds are dealt by position, and such rows are no rows."""
    if sample_weight is not None and not np.all(sample_weight):
        raise DataError(f"{who}: some sample_weight is 0. Drop those rows first.")


def _fold(model: Any, training: Training, split: Split, k: int, n_folds: int) -> Fold:
    train, test = split
    fitted, rows, held_out = clone(model), training.subset(train), training.subset(test)
    if rows.target.min(initial=1) == rows.target.max(initial=0):
        raise DataError(f"Fold {k + 1} of {n_folds}: the rows to fit have one outcome only.")
    start, asked = perf_counter(), held_out.frame
    if is_ours(fitted):
        fitted._fit_whole(with_class_weight(rows, fitted._class_weight))
    else:
        weights = {} if rows.weight is None else {"sample_weight": rows.weight}
        fitted.fit(native_rows(rows.frame, rows.names), rows.classes[rows.target], **weights)
        asked = native_rows(held_out.frame, held_out.names)
    seconds = perf_counter() - start
    try:
        risk = fitted.predict_proba(asked)
    except DataError as error:
        raise DataError(f"Fold {k + 1} of {n_folds}: {error}") from None
    return Fold(test, np.asarray(risk)[:, list(fitted.classes_).index(rows.classes[1])], fitted, seconds)


SPLITS = Allowed(
    ("a scikit-learn splitter", "a list of (train, test)"),
    lambda cv: (hasattr(cv, "split") and not isinstance(cv, str | type)) or LIST.accepts(cv),
)
Split = tuple[Index, Index]  # positions of the training rows, and of the held-out ones


def stratified_folds(target: Array, n_folds: int, seed: int = 0) -> Index:
    """Return the fold of every row: shuffled, each outcome spread evenly; fewer folds where an outcome has few rows.

    >>> folds = stratified_folds(np.array([0, 0, 0, 0, 1, 1]), n_folds=2)
    >>> np.bincount(folds).tolist(), np.bincount(folds[4:]).tolist()
    ([3, 3], [1, 1])
    """
    fewest = int(np.bincount(np.asarray(target, dtype=np.intp), minlength=2).min())
    if fewest < 2:
        raise DataError(f"Data: cross validation needs two rows of each outcome; of one there is {fewest}.")
    fold_of = np.empty(len(target), np.intp)
    for k, (_, test) in enumerate(splits_of(target, min(n_folds, fewest), seed)):
        fold_of[test] = k
    return fold_of


def inner_splits(target: Array, cv: Any, kept: Index | None = None) -> list[Split]:
    """Return the splits inside a fit: as `splits_of`, but with fewer folds where an outcome has few rows.

    Parameters
    ----------
    kept : which rows `target` is of, if a list of splits names more
    """
    if not isinstance(cv, Integral):
        if kept is None or hasattr(cv, "split"):
            return splits_of(target, cv)
        n = int(kept[-1]) + 1
        every = [[np.isin(kept, _positions(rows, n)) for rows in split] for split in cv]
        return splits_of(target, every)
    folds = stratified_folds(target, int(cv))
    return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in np.unique(folds)]


def splits_of(target: Array, cv: Any, seed: int = 0, groups: Any = None, time: Any = None) -> list[Split]:
    """Return the training and held-out rows of every split.

    Parameters
    ----------
    target : (n,)
    cv : int, scikit-learn splitter, or iterable of (train, test)
        A number makes folds stratified by the outcome; with `groups`, rows of a group stay together.
    seed : int, default=0
        Shuffles the rows of numbered folds; a splitter has a seed of its own.
    groups, time : (n,), optional
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    check_parameters("cross validation", {"seed": seed}, {"seed": SEED})
    rows = np.zeros((len(target), 1))
    if time is not None:
        cv = _forward_chains(_times(time, len(target)), cv, groups)
    if type(cv) is not bool and isinstance(cv, Integral):
        _check_number(int(cv), target)
        _check_groups(int(cv), groups, len(target))
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        cv = kind(int(cv), shuffle=True, random_state=_short_seed(int(seed)))
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise DataError(f"cv must be a number of folds, a scikit-learn splitter or pairs of rows, not {cv!r}.")
    if groups is not None and not hasattr(cv, "split"):
        raise DataError("cross validation: cv names the rows of every split, so groups have no say. Leave out one.")
    found = cv.split(rows, target, groups) if hasattr(cv, "split") else cv
    try:
        splits = [(_positions(train, len(target)), _positions(test, len(target))) for train, test in found]
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = "groups must have one label per row" if groups is not None else "each split is a pair (train, test)"
        raise DataError(f"cv makes no splits of these rows: {reason}. {error}") from None
    if not splits:
        raise DataError("cv has no splits.")
    return splits


def _check_groups(folds: int, groups: Any, rows: int) -> None:
    """Refuse more folds than there are groups, whose rows stay together."""
    if groups is None or len(groups) != rows:
        return
    held = len(set(column_of(groups).codes.tolist()))
    if held < folds:
        fewer = f", or at most {held} folds" if held > 1 else ""
        raise DataError(
            f"cross validation: {folds} folds need at least {folds} groups, since the rows of a group stay together. "
            f"There {'is' if held == 1 else 'are'} {held}. Give more groups{fewer}."
        )


def _forward_chains(times: Array, cv: Any, groups: Any) -> list[Split]:
    """Return splits that hold out a run of times from all earlier ones: scikit-learn's TimeSeriesSplit of the times."""
    from sklearn.model_selection import TimeSeriesSplit

    check_parameters("cross validation", {"cv": cv}, {"cv": whole(2)})
    if groups is not None:
        raise DataError("cross validation: groups and time cannot both be given.")
    distinct, when = np.unique(times, return_inverse=True)
    if len(distinct) <= cv:
        most = len(distinct) - 1
        raise DataError(f"cv={cv}: the rows have {len(distinct)} distinct times, which allow at most {most} folds.")
    runs = TimeSeriesSplit(int(cv)).split(distinct)
    return [(np.flatnonzero(when < test[0]), np.flatnonzero(np.isin(when, test))) for _, test in runs]


def _times(time: Any, n_rows: int) -> Array:
    """Return times that can be ordered: numbers, or dates, which may be written as 2024-03 or 2024-03-31."""
    times = np.asarray(unmasked(time))
    if times.shape != (n_rows,):
        raise DataError(f"time: must have one entry for each of the {n_rows:,} rows, not the shape {times.shape}.")
    if times.dtype.kind in "OUST":
        cells = times.astype(object)
        numbers = floats_or_none(cells)
        try:
            times = _dates(cells) if numbers is None else numbers
        except (TypeError, ValueError):
            raise DataError(
                "time: must hold numbers, dates, or text such as 2024-03, 2024-03-31 or 2024/3/31."
            ) from None
    unknown = np.isnat(times) if times.dtype.kind in "mM" else ~np.isfinite(times)
    if unknown.any():
        raise DataError(f"time: row {int(unknown.argmax()):,} (counting from 0) has none. Every row needs one.")
    return times


def _dates(cells: Array) -> Array:
    return np.array([None if is_missing(cell) else _iso(cell) for cell in cells], dtype="datetime64[us]")


def _iso(cell: Any) -> Any:
    """Write a date that begins with the year as numpy reads it.

    >>> _iso("2018/5/1"), _iso("2018-12"), _iso("5/1/2018")
    ('2018-05-01', '2018-12', '5/1/2018')
    """
    if not isinstance(cell, str) or not cell[:4].isdigit():
        return cell
    return "-".join(part.zfill(2) for part in cell.replace("/", "-").split("-", 2))


def _short_seed(seed: int) -> int:
    """Return the seed for scikit-learn, which takes 32 bits: shorter ones as they are, longer ones hashed."""
    return seed if seed < 2**32 else int(np.random.SeedSequence(seed).generate_state(1)[0])


def _check_number(n_folds: int, target: Array) -> None:
    fewest = int(np.unique(target, return_counts=True)[1].min())
    if n_folds < 2:
        raise DataError(f"cv must be 2 folds or more, not {n_folds}.")
    if n_folds > fewest:
        raise DataError(f"cv={n_folds}: the rarer outcome has only {fewest:,} rows, and every fold needs one.")


def _positions(rows: Any, n: int) -> Index:
    """Return row positions, ascending; masks are allowed."""
    index = np.asarray(rows)
    if index.ndim != 1 or not index.size or index.dtype.kind not in "biu":
        raise DataError("cv must name rows by whole numbers or a mask, and at least one on each side of a split.")
    if index.dtype == bool and len(index) != n:
        raise DataError(f"cv: a mask must have one entry for each of the {n:,} rows, not {len(index):,}.")
    index = np.flatnonzero(index) if index.dtype == bool else np.sort(index.astype(np.intp))
    if index.size and (index[0] < 0 or index[-1] >= n):
        raise DataError(f"cv names a row that is not among the {n:,} rows.")
    return index
