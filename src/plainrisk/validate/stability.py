"""Stability: how much of a model depends on the rows, and the order of the rows, that it happened to be fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

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
    """What refits of one kind change, compared with the model; shares of rows.

    Attributes
    ----------
    kind : "resampled rows" or "rows in another order"
    refits : how many
    risk : mean absolute difference of the probability
    decisions, decisions_most : decisions that flip, on average and in the refit with most; NaN without a cut-off
    reasons, reasons_most : of the rows that the model refuses (of all rows without a cut-off), those whose first reason
        changes
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
    spread : the standard deviation of a contribution over refits to resampled rows, mean of the rows
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
    """How steady a model is.

    Attributes
    ----------
    rows : that were decided and explained
    cutoff : who is approved; None without one
    unit : of contributions
    refits : of both kinds
    unsteady : share of rows whose decision flips in more than one of ten refits to resampled rows
    features : the largest first
    """

    rows: int
    cutoff: float | None
    unit: str
    refits: tuple[StableRefits, ...]
    unsteady: float
    features: tuple[StableFeature, ...]

    def _headline(self) -> str:
        kinds = [f"{r.refits} refits to {r.kind}: {r.decisions:.1%} of decisions flip" for r in self.refits]
        return "; ".join(kinds) + f"; first reasons change in {self.refits[0].reasons:.1%}"

    def columns(self) -> dict[str, Any]:
        """Return one line per feature, as columns by name."""
        return {name: [getattr(f, name) for f in self.features] for name in StableFeature.__dataclass_fields__}


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
    """Fit a model again, from the start, to resampled rows and to rows in another order: what changes?

    Bins, smoothness, pairs and bands are all chosen again; `pr.bootstrap` keeps them, and is quicker.

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
    refitted = _Refitted(estimator, as_frame(X), target_of("stability", model, X) if y is None else y, model.form_)
    judge = _Judge(model.form_, as_frame(X if new is None else new), decided)
    resampled: list[_Seen] = []
    reordered: list[_Seen] = []
    for k in range(n + ORDERS):
        rng = np.random.default_rng((seed, k))
        rows = rng.integers(refitted.n, size=refitted.n) if k < n else rng.permutation(refitted.n)
        (resampled if k < n else reordered).append(judge.seen(refitted.fit(rows)))
        if progress is not None:
            progress(k + 1, n + ORDERS)
    kinds = {"resampled rows": resampled, "rows in another order": reordered}
    refits = tuple(judge.compared(kind, found) for kind, found in kinds.items())
    flips = np.mean([judge.first.refused != one.refused for one in resampled], axis=0)
    unsteady = float((flips > 0.1).mean()) if decided is not None else float("nan")
    return Stability(len(judge.first.risk), decided, judge.unit, refits, unsteady, tuple(judge.features(resampled)))


# ---- refits


@dataclass(frozen=True)
class _Refitted:
    estimator: Any
    frame: Frame
    y: Any
    form: RiskForm

    @property
    def n(self) -> int:
        return self.frame.n_rows

    def fit(self, rows: Index) -> RiskForm:
        """Fit the estimator again to some rows, and return the form with the policy of the first."""
        from sklearn.base import clone

        y = self.y.to_numpy() if hasattr(self.y, "to_numpy") else np.asarray(self.y)
        training_rows = native_rows(
            self.frame.rows(rows), [name for name in self.form.columns if name in self.frame.columns]
        )
        with quiet():  # the first fit said it
            form: RiskForm = clone(self.estimator).fit(training_rows, y[rows]).form_
        return msgspec.structs.replace(form, schema=form.schema.replace(policy=self.form.schema.policy))


# ---- a form's answers for the rows


@dataclass(frozen=True)
class _Seen:
    risk: Floats
    refused: Array
    reasons: Array
    contributions: Mapping[str, Floats]


class _Judge:
    """Rows that all forms are asked about."""

    def __init__(self, form: RiskForm, frame: Frame, cutoff: float | None) -> None:
        few = np.unique(np.linspace(0, frame.n_rows - 1, min(frame.n_rows, MOST_ROWS)).astype(np.intp))
        self.form, self.rows, self.cutoff = form, form.align(frame.rows(few)), cutoff
        self.adverse, self.unit = form.schema.adverse, ""
        self.first = self.seen(form)

    def _refused(self, risk: Floats) -> Array:
        return np.ones(len(risk), bool) if self.cutoff is None else refused(risk, self.cutoff, self.adverse)

    def seen(self, form: RiskForm) -> _Seen:
        """Ask a form for probabilities, decisions, first reasons and contributions."""
        risk, ranked = form.risk(self.rows), reasons(form, self.rows)
        names = np.array([*ranked.candidates, ""], dtype=object)  # code -1: no reason
        against = explain(form, self.rows, reference="typical")
        self.unit = self.unit or against.unit
        contributions = {
            name: against.contributions[:, [other == name for other in against.names]].sum(axis=1)
            for name in dict.fromkeys(against.names)
        }
        return _Seen(risk, self._refused(risk), names[ranked.codes[:, 0]], contributions)

    def compared(self, kind: str, found: list[_Seen]) -> StableRefits:
        """Compare refits with the model."""
        first, nan = self.first, float("nan")
        asked = first.refused if first.refused.any() else np.ones(len(first.risk), bool)
        decisions = [float((one.refused != first.refused).mean()) if self.cutoff is not None else nan for one in found]
        changed = [float((one.reasons != first.reasons)[asked].mean()) for one in found]
        moved = float(np.mean([np.abs(one.risk - first.risk).mean() for one in found]))
        return StableRefits(kind, len(found), moved, *_mean_and_most(decisions), *_mean_and_most(changed))

    def features(self, found: list[_Seen]) -> Iterator[StableFeature]:
        """Yield how much the contribution of every term varies, the largest first."""
        size = {name: float(np.abs(own).mean()) for name, own in self.first.contributions.items()}
        for name in sorted(size, key=lambda term: -size[term]):
            nothing = np.zeros(len(self.first.risk))
            each = np.stack([one.contributions.get(name, nothing) for one in found])
            kept = float(np.mean([bool(np.any(own)) for own in each]))
            spread = float(each.std(axis=0, ddof=1).mean())
            yield StableFeature(name, size[name], spread, kept, *(self._flips(name, step) for step in (1, -1)))

    def _flips(self, name: str, step: int) -> float:
        """Return the share of decisions that flip if every value of a feature were in the next bin."""
        moved = _bins_moved(self.form, name, step)
        if moved is None or self.cutoff is None:
            return float("nan")
        return float((self._refused(moved.risk(self.rows)) != self.first.refused).mean())


def _mean_and_most(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.max(values))


def _bins_moved(form: RiskForm, name: str, step: int) -> RiskForm | None:
    """Return a form in which every bin of a feature has the scores of the next; None where it has no bins."""
    replace, parts, has_moved = msgspec.structs.replace, [], False
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
    return msgspec.structs.replace(pair, scores=tuple(map(tuple, scores.tolist())))
