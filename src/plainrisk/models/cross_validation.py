"""Cross validation for about the price of one fit: every training fold is all rows less the fold."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from plainrisk._native import fold_order, shuffle
from plainrisk.data.frame import as_frame, frame_like
from plainrisk.errors import DataError, PlainriskWarning, StoppedEarly
from plainrisk.model import RiskModel
from plainrisk.models.base import RiskClassifier, warn_of_clipping
from plainrisk.models.fold_models import FoldModels, subtractable
from plainrisk.models.fold_tables import Folds
from plainrisk.models.training import Training, read_training
from plainrisk.solve.threads import one_thread
from plainrisk.threads import side_by_side

__all__ = ["CrossValidation", "cross_validate", "deal_folds"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
FoldOf = npt.NDArray[np.uint8 | np.uint16]

# Folds times rows, up to which the tables of a feature with all values distinct take 1 GB at worst.
_MOST = 1 << 27
_MOST_FOLDS = 1 << 16
METRICS = ("auc", "log_loss", "brier", "ece")


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What models say of rows that they were not fitted to.

    Attributes
    ----------
    risk : (n,) the held-out risk of every row
    fold_of : (n,) the fold of every row, from 0
    models : per fold, the model fitted to the rows outside it; a `RiskModel`, or a fitted estimator that has no form
    target : (n,) the outcome of every row, 0/1
    weight : (n,) what every row weighs, or None
    scores : auc, log_loss, brier and ece, each (folds,), on the held-out rows; found when they are asked for
    how : "subtraction" if the folds were fitted from tables of all rows, "refits" if each on its rows
    refitted : the folds that were fitted on their rows
    seconds : what it took
    """

    risk: Floats
    fold_of: FoldOf
    models: tuple[Any, ...]
    target: npt.NDArray[Any]
    weight: Floats | None
    how: str
    refitted: tuple[int, ...]
    seconds: float

    @cached_property
    def scores(self) -> Mapping[str, Floats]:
        """Every score on the held-out rows of each fold."""
        from plainrisk.evaluate.metrics import main_scores

        def score(inside: Index) -> dict[str, float]:
            weight = None if self.weight is None else self.weight[inside]
            return main_scores(self.target[inside], self.risk[inside], weight)

        order, ends = fold_order(self.fold_of, len(self.models))
        with one_thread():
            each = list(side_by_side(score, np.split(order, ends[:-1]), len(self.risk)))
        return {name: np.array([one[name] for one in each]) for name in METRICS}

    @property
    def mean(self) -> dict[str, float]:
        """The mean of every score over the folds."""
        return {name: float(np.mean(values)) for name, values in self.scores.items()}

    @property
    def sd(self) -> dict[str, float]:
        """The standard deviation of every score over the folds, n - 1 below the line."""
        return {name: _sd(values.tolist()) for name, values in self.scores.items()}

    def summary(self) -> str:
        """Return mean and standard deviation of every score, a line each."""
        sd = self.sd
        return "\n".join(f"{name:<9}{mean:.4f} ± {sd[name]:.4f}" for name, mean in self.mean.items())

    def to_frame(self, like: Any = None) -> Any:
        """Return a data frame with a row per fold, in the library that `like` came from."""
        return frame_like({"fold": np.arange(len(self.models)), **self.scores}, like)


def cross_validate(
    estimator: Any, X: Any, y: Any = None, *, folds: Any = 10, seed: int = 0, sample_weight: Any = None
) -> CrossValidation:
    """Fit an estimator without each fold in turn, and score the fold.

    The models are those that `fit` on the rows outside the fold gives: bins and categories are found without it, too.
    But additive models, mixtures and two-layer models of them see rows through counts only, and a training fold's
    counts are those of all rows less the fold's. So the rows are sorted, coded and counted once for all folds.

    Parameters
    ----------
    estimator : classifier
        One of ours, or any with fit and predict_proba. Chosen ridges (``ridge="cv"``), weights, class weights,
        stacking, bands, trees and others' models are fitted again on the rows of every fold.
    X, y : as in `fit`
    folds : int or (n,) of labels, default=10
        How many, stratified by the outcome and shuffled; or the fold of every row.
    seed : int, default=0
        Shuffles the rows before they are dealt.
    sample_weight : (n,), optional
        For the fits and the scores.

    Examples
    --------
    >>> from plainrisk import AdditiveRiskModel, datasets
    >>> credit = datasets.make_credit(2000, seed=1)
    >>> found = cross_validate(AdditiveRiskModel(credit.schema), credit.frame, credit.target, folds=5)
    >>> found.how, len(found.models), bool(found.mean["auc"] > 0.7)
    ('subtraction', 5, True)
    """
    began = time.perf_counter()
    rows = _Rows.of(estimator, X, y, sample_weight)
    fold_of = _fold_of(rows.target, folds, seed)
    n_folds = int(fold_of.max()) + 1
    order, ends = fold_order(fold_of, n_folds)
    fit = _refit(estimator, rows, fold_of)
    refitted = list(range(n_folds))
    small = n_folds * len(fold_of) <= _MOST
    if rows.training is not None and sample_weight is None and small and subtractable(estimator, rows.training):
        fit, refitted = _subtract(estimator, Folds(rows.training, fold_of, n_folds, order, ends), fit), []
    risk = np.empty(len(rows.target))
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)  # what the user should know is said once, below
        for k in range(n_folds):
            model, held_out = fit(k, refitted)
            models.append(model)
            risk[order[ends[k - 1] if k else 0 : ends[k]]] = held_out
    _warn_once(estimator, models)
    how = "refits" if len(refitted) == n_folds else "subtraction"
    seconds = time.perf_counter() - began
    return CrossValidation(risk, fold_of, tuple(models), rows.target, rows.weight, how, tuple(refitted), seconds)


def deal_folds(target: npt.NDArray[Any], n_folds: int, seed: int = 0) -> FoldOf:
    """Return the fold of every row: stratified by the outcome, shuffled.

    >>> folds = deal_folds(np.array([0, 1, 0, 1, 0, 1]), 3)
    >>> sorted(folds[[0, 2, 4]].tolist()), sorted(folds[[1, 3, 5]].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    n_bad = int(np.count_nonzero(target))
    sizes = len(target) - n_bad, n_bad
    rarer = min(sizes)
    if not 2 <= n_folds <= min(rarer, _MOST_FOLDS):
        why = "the rows of the rarer outcome" if rarer <= _MOST_FOLDS else "the most there can be"
        raise DataError(f"cross_validate: folds must be from 2 to {min(rarer, _MOST_FOLDS):,}, {why}, not {n_folds!r}.")
    # The folds of scikit-learn's StratifiedKFold, which takes several times as long: sorted by outcome, the one of
    # the first row first, rows are dealt round; then the cards of each outcome are shuffled.
    first = int(target[0])
    fold_of: FoldOf = np.empty(len(target), dtype=np.uint8 if n_folds <= 256 else np.uint16)
    rng = np.random.RandomState(seed)
    dealt = 0
    for outcome in (first, 1 - first):
        # Every fold gets the same, and those next in turn one card more.
        cards = np.full(n_folds, sizes[outcome] // n_folds)
        cards[(dealt + np.arange(sizes[outcome] % n_folds)) % n_folds] += 1
        dealt += sizes[outcome]
        hand = np.repeat(np.arange(n_folds, dtype=fold_of.dtype), cards)
        shuffle(hand, rng)
        fold_of[np.flatnonzero(target == outcome)] = hand
    return fold_of


@dataclass(frozen=True)
class _Rows:
    """What came in; `training` where the estimator is one of ours."""

    X: Any
    classes: npt.NDArray[Any]
    target: npt.NDArray[Any]
    weight: Floats | None
    training: Training | None

    @cached_property
    def labels(self) -> npt.NDArray[Any]:
        """The outcomes as they came."""
        return np.asarray(self.classes[self.target])

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> _Rows:
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if isinstance(estimator, RiskClassifier):
            frame = as_frame(X)
            training = read_training(frame, y, estimator.schema, None, None)
            return cls(X, training.classes, training.target, weight, training)
        if y is None:
            raise DataError(f"cross_validate: {type(estimator).__name__} has no schema that names the target. Pass y.")
        labels = np.asarray(y).ravel()
        classes, target = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            raise DataError(f"cross_validate: the target must have two classes, not {len(classes)}.")
        return cls(X, classes, target, weight, None)


def _fold_of(target: npt.NDArray[Any], folds: Any, seed: int) -> FoldOf:
    if isinstance(folds, int | np.integer):
        return deal_folds(target, int(folds), seed)
    names, fold_of = np.unique(np.asarray(folds), return_inverse=True)
    if np.shape(folds) != target.shape or not 2 <= len(names) <= 2**16:
        raise DataError(
            f"cross_validate: folds must be a number, or the fold of each of the {len(target):,} rows, two or more; "
            f"got shape {np.shape(folds)} with {len(names)} distinct."
        )
    for name, k in zip(names, range(len(names)), strict=True):
        if len(np.unique(target[fold_of != k])) < 2:
            raise DataError(f"cross_validate: without fold {name!s} there is one outcome only.")
    return fold_of.astype(np.uint8 if len(names) <= 256 else np.uint16)


# From a fold to its model and held-out risk; folds fitted on their rows are noted in the list.
_Fit = Callable[[int, list[int]], tuple[Any, Floats]]


def _refit(estimator: Any, rows: _Rows, fold_of: FoldOf) -> _Fit:
    def fit(k: int, refitted: list[int]) -> tuple[Any, Floats]:
        outside, inside = np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)
        weights = {} if rows.weight is None else {"sample_weight": rows.weight[outside]}
        model = clone(estimator).fit(_take(rows.X, outside), rows.labels[outside], **weights)
        try:
            risk = np.asarray(model.predict_proba(_take(rows.X, inside))[:, 1], dtype=np.float64)
        except DataError as error:
            raise DataError(f"Fold {k + 1}: {error}") from None
        form = getattr(model, "form_", None)
        return model if form is None else RiskModel(form, getattr(model, "fit_record_", None)), risk

    return fit


def _subtract(estimator: Any, folds: Folds, refit: _Fit) -> _Fit:
    models = FoldModels(estimator, folds)

    def fit(k: int, refitted: list[int]) -> tuple[Any, Floats]:
        with one_thread():
            found = models.fit(k)
        if found.settled and not models.refuses(k):
            return found.model, found.risk
        # Where there is no finite optimum a model depends on the solver's path, and an unseen level may be an error.
        refitted.append(k)
        return refit(k, refitted)

    return fit


def _take(X: Any, index: npt.NDArray[np.intp]) -> Any:
    """Return some rows, in the library they came from."""
    import narwhals as nw

    native = nw.from_native(X, pass_through=True, eager_only=True)
    if isinstance(native, nw.DataFrame):
        return native[index].to_native()
    return X[index] if isinstance(X, np.ndarray) else as_frame(X).rows(index)


def _warn_once(estimator: Any, models: list[Any]) -> None:
    """Say once what the fits would have said for every fold."""
    kept = [m for m in models if isinstance(m, RiskModel) and m.fit_record_ is not None]
    records = [m.fit_record_ for m in kept if m.fit_record_ is not None]
    name = type(estimator).__name__
    # A solver that converged inside its safety box says so in its reason.
    stopped = [r for r in records if not r.converged or "no finite optimum" in r.reason]
    if stopped:
        warnings.warn(
            f"{name}: without {len(stopped)} of the {len(models)} folds the solver stopped before the optimum "
            f"({stopped[0].reason}). The models are usable; ridge='auto' gives a finite optimum.",
            StoppedEarly,
            stacklevel=3,
        )
    if records:
        warn_of_clipping(name, max(r.clipped for r in records), kept[0].form_.last_link)


def _sd(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else math.nan
