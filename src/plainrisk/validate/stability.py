"""Stability: how much of a model depends on the rows, and the order of the rows, that it happened to be fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from msgspec.structs import replace

from plainrisk._types import Array, Floats, Index
from plainrisk.checks import SEED, check_parameters, whole
from plainrisk.data.frame import Frame, as_frame, native_rows, refuse_other_order
from plainrisk.decision import refused
from plainrisk.errors import quiet
from plainrisk.explain import explain, reasons
from plainrisk.form import Bins, PairTable, Part, RiskForm, Table
from plainrisk.tables import TableResult
from plainrisk.validate.refitting import unfitted
from plainrisk.validate.scored import cutoff_of, target_of

__all__ = ["Stability", "StableFeature", "StableRefits", "stability"]

OPTIONS = {"n": whole(2, 10_000), "seed": SEED}
ORDERS = 2  # refits to rows in another order
MOST_ROWS = 2000  # that are decided and explained, spread over all


@dataclass(frozen=True)
class StableRefits:
    """Differences between the model and refits of one kind; shares of rows.

    Attributes
    ----------
    kind : "resampled rows" or "rows in another order"
    refits : how many
    risk : mean absolute difference of the probability
    decisions, decisions_most : decisions that flip, on average and in the worst refit; NaN without a cut-off
    reasons, reasons_most : rows whose first reason changes, of those that the model refuses (without a cut-off, of all)
    """

    kind: str
    refits: int
    risk: float
    decisions: float
    decisions_most: float
    reasons: float
    reasons_most: float


@dataclass(frozen=True)
class StableFeature:
    """One term of the model.

    Attributes
    ----------
    feature : or pair
    size : its mean absolute contribution, against the typical applicant
    spread : the standard deviation of its contribution over refits to resampled rows, averaged over the rows
    kept : share of these refits that use it
    up, down : share of decisions that flip if every value were one bin higher, or lower; NaN without bins or a cut-off
    """

    feature: str
    size: float
    spread: float
    kept: float
    up: float
    down: float


@dataclass(frozen=True, repr=False)
class Stability(TableResult):
    """How much refits differ from a model.

    Attributes
    ----------
    rows : the number of rows that were decided and explained
    cutoff : who is approved; None without one
    unit : of contributions
    refits : of both kinds
    unsteady : share of rows whose decision flips in more than 10% of the refits to resampled rows
    features : the largest first
    """

    _lines: ClassVar = ("features", StableFeature)
    rows: int
    cutoff: float | None
    unit: str
    refits: tuple[StableRefits, ...]
    unsteady: float
    features: tuple[StableFeature, ...]

    def _headline(self) -> str:
        kinds = [f"{r.refits} refits to {r.kind}: {r.decisions:.1%} of decisions flip" for r in self.refits]
        return "; ".join(kinds) + f"; first reasons change in {self.refits[0].reasons:.1%}"


def stability(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    new: Any = None,
    n: int = 20,
    seed: int = 0,
    cutoff: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Stability:
    """Fit a model again from scratch, to resampled rows and to rows in another order, and measure what changes.

    Bins, smoothness, pairs and bands are all chosen again; `pr.bootstrap` keeps them fixed and is faster.

    Parameters
    ----------
    model : a fitted model of ours
        One from a file is rebuilt from its fit record, if the record is complete.
    X : rows
        Those that the model was fitted to.
    y : (n,), default=None
        Their outcomes; None takes the target column of the model's schema from the rows.
    new : rows, default=None
        Rows to decide and explain; None takes X. At most 2,000 of them are used, evenly spread.
    n : int, default=20
        The number of refits to resampled rows.
    seed : int, default=0
    cutoff : float, default=None
        Who is approved; None takes the cut-off of the model's policy, if it has one.
    progress : function of (done, total), default=None

    Returns
    -------
    Stability

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(800, seed=2)
    >>> model = pr.make_classifier("ARM1", credit.schema).fit(credit.frame, credit.target)
    >>> found = pr.stability(model, credit.frame, credit.target, n=3, cutoff=0.2)
    >>> [(r.kind, r.refits, r.decisions > 0) for r in found.refits]
    [('resampled rows', 3, True), ('rows in another order', 2, False)]
    """
    check_parameters("stability", {"n": n, "seed": seed}, OPTIONS)
    refuse_other_order(X, y=y)
    estimator, decided = unfitted(model), cutoff_of(model) if cutoff is None else cutoff
    frame, outcomes = as_frame(X), target_of("stability", model, X) if y is None else y
    asked = _Asked(model.form_, as_frame(X if new is None else new), decided)
    resampled: list[_Answers] = []
    reordered: list[_Answers] = []
    for k in range(n + ORDERS):
        rng = np.random.default_rng((seed, k))
        rows = rng.integers(frame.n_rows, size=frame.n_rows) if k < n else rng.permutation(frame.n_rows)
        (resampled if k < n else reordered).append(
            asked.answers(_refitted(estimator, model.form_, frame, outcomes, rows))
        )
        if progress is not None:
            progress(k + 1, n + ORDERS)
    refits = asked.compared("resampled rows", resampled), asked.compared("rows in another order", reordered)
    flips = np.mean([asked.first.refused != refit.refused for refit in resampled], axis=0)
    unsteady = float((flips > 0.1).mean()) if decided is not None else float("nan")
    return Stability(
        len(asked.first.risk), decided, asked.first.unit, refits, unsteady, tuple(asked.features(resampled))
    )


def _refitted(estimator: Any, form: RiskForm, frame: Frame, y: Any, rows: Index) -> RiskForm:
    """Fit an estimator to some rows, and return the new form with the policy of the old one."""
    from sklearn.base import clone

    outcomes = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    training_rows = native_rows(frame.rows(rows), [name for name in form.columns if name in frame.columns])
    with quiet():  # the first fit gave these warnings
        new: RiskForm = clone(estimator).fit(training_rows, outcomes[rows]).form_
    return replace(new, schema=new.schema.replace(policy=form.schema.policy))


class _Answers(NamedTuple):
    """The answers of a form for some rows."""

    risk: Floats
    refused: Array
    reasons: Array
    contributions: Mapping[str, Floats]
    unit: str


class _Asked:
    """Rows that all forms are asked about, and the answers of the first form."""

    def __init__(self, form: RiskForm, frame: Frame, cutoff: float | None) -> None:
        few = np.unique(np.linspace(0, frame.n_rows - 1, min(frame.n_rows, MOST_ROWS)).astype(np.intp))
        self.form, self.rows, self.cutoff = form, form.align(frame.rows(few)), cutoff
        self.first = self.answers(form)

    def _refused(self, risk: Floats) -> Array:
        return np.ones(len(risk), bool) if self.cutoff is None else refused(risk, self.cutoff, self.form.schema.adverse)

    def answers(self, form: RiskForm) -> _Answers:
        """Ask a form for probabilities, decisions, first reasons and contributions."""
        risk, ranked = form.risk(self.rows), reasons(form, self.rows)
        names = np.array([*ranked.candidates, ""], dtype=object)  # code -1: no reason
        explained = explain(form, self.rows, reference="typical")
        contributions = {
            name: explained.contributions[:, [other == name for other in explained.names]].sum(axis=1)
            for name in dict.fromkeys(explained.names)
        }
        return _Answers(risk, self._refused(risk), names[ranked.codes[:, 0]], contributions, explained.unit)

    def compared(self, kind: str, refits: list[_Answers]) -> StableRefits:
        """Compare refits with the model."""
        first, nan = self.first, float("nan")
        explained = first.refused if first.refused.any() else np.ones(len(first.risk), bool)
        flips = [float((r.refused != first.refused).mean()) if self.cutoff is not None else nan for r in refits]
        changed = [float((r.reasons != first.reasons)[explained].mean()) for r in refits]
        moved = float(np.mean([np.abs(r.risk - first.risk).mean() for r in refits]))
        means = [float(summarize(values)) for values in (flips, changed) for summarize in (np.mean, np.max)]
        return StableRefits(kind, len(refits), moved, *means)

    def features(self, refits: list[_Answers]) -> Iterator[StableFeature]:
        """Yield how much the contribution of every term varies, the largest first."""
        size = {name: float(np.abs(values).mean()) for name, values in self.first.contributions.items()}
        unused = np.zeros(len(self.first.risk))
        for name in sorted(size, key=lambda term: -size[term]):
            contributions = np.stack([refit.contributions.get(name, unused) for refit in refits])
            kept = float(contributions.any(axis=1).mean())
            spread = float(contributions.std(axis=0, ddof=1).mean())
            yield StableFeature(name, size[name], spread, kept, self._flips(name, 1), self._flips(name, -1))

    def _flips(self, name: str, step: int) -> float:
        """Return the share of decisions that flip if every value of a feature were in the next bin."""
        moved = _bins_moved(self.form, name, step)
        if moved is None or self.cutoff is None:
            return float("nan")
        return float((self._refused(moved.risk(self.rows)) != self.first.refused).mean())


def _bins_moved(form: RiskForm, name: str, step: int) -> RiskForm | None:
    """Return a form in which every bin of a feature has the scores of the next; None where it has no bins."""
    parts, has_moved = [], False
    for part in form.parts:
        shape = part.shapes.get(name) if isinstance(part, Part) else None
        if isinstance(part, Part) and isinstance(shape, Table) and isinstance(shape.levels, Bins):
            has_moved = True
            scores = tuple(np.asarray(shape.scores)[_next(shape.levels, step)].tolist())
            pairs = tuple(_pair_moved(pair, name, step) for pair in part.pairs)
            part = replace(part, shapes={**part.shapes, name: replace(shape, scores=scores)}, pairs=pairs)
        parts.append(part)
    return replace(form, parts=tuple(parts)) if has_moved else None


def _next(levels: Bins, step: int) -> Index:
    """Return the level whose scores every level gets; missing and special values keep theirs."""
    index = np.arange(len(levels))
    index[: levels.n_ordered] = np.clip(index[: levels.n_ordered] + step, 0, levels.n_ordered - 1)
    return index


def _pair_moved(pair: PairTable, name: str, step: int) -> PairTable:
    if name not in pair.features:
        return pair
    axis = pair.features.index(name)
    levels = pair.levels[axis]
    assert isinstance(levels, Bins), "a feature with bins has them in pairs, too"
    scores = np.take(np.asarray(pair.scores), _next(levels, step), axis=axis)
    return replace(pair, scores=tuple(map(tuple, scores.tolist())))
