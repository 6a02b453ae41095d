"""SubscaleMixture: one expert per subscale, pooled with weights that sum to 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
import numpy as np

from plainrisk._types import Array, Floats
from plainrisk.checks import FLAG, NOTHING, number, parameter, whole, words
from plainrisk.data.frame import Frame, as_frame, position_names
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError, PlainriskError, did_you_mean, nameless
from plainrisk.explain.options import ExplainOptions, takes
from plainrisk.fit.bands import ScoreSums, calibrating_bands, log_odds
from plainrisk.fit.parameters import CLASS_WEIGHT, ClassWeight
from plainrisk.fit.scored import PartScores
from plainrisk.fit.splits import SPLITS
from plainrisk.fit.training import Training, TrainingRows, read_more
from plainrisk.form import Bands, Linear, Link, Mixture
from plainrisk.form.file import Regret
from plainrisk.model import RiskModel
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.base import RiskClassifier
from plainrisk.models.experts import (
    ESTIMATORS,
    Expert,
    ExpertRisks,
    evidence_of,
    fit_experts,
    takes_missing,
    warn_of_unassigned,
)
from plainrisk.schema import Schema
from plainrisk.solve import Moments, minimize_squares
from plainrisk.solve.hedge import LossName, hedge_weights, learning_rate, loss_sums, regret_range, row_losses
from plainrisk.totals import total_of

if TYPE_CHECKING:
    from plainrisk.explain import Explanation

__all__ = ["SubscaleMixture", "loss_clip", "risk_products", "stacked_weights"]

# Experts, and the rows that they are judged on.
Judged = Sequence[tuple[Mapping[str, Expert], TrainingRows]]

# The least risk that a line fitted directly is charged for.
DIRECT_CLIP = 1e-3


@dataclass(eq=False, repr=False)
class SubscaleMixture(RiskClassifier):
    r"""A linear opinion pool of subscale experts (SSPM, "MixX"), weighted by SubscaleHedge.

    .. math:: r(x) = \sum_S w_S\, r_S(x), \qquad w = \operatorname{softmax}\Big(-\eta \sum_j L(r_S(x_j), y_j)\Big)

    **Monotone.** If no expert moves the wrong way in a feature, the pool does not either: let x' be x with the
    feature raised in its risky direction. Every :math:`r_S(x') \ge r_S(x)` (experts that do not read the feature are
    equal) and :math:`w_S \ge 0`, so :math:`r(x') - r(x) = \sum_S w_S (r_S(x') - r_S(x)) \ge 0`.

    Parameters
    ----------
    estimator : classifier, or dict of subscale to classifier, optional
        Anything with predict_proba; default AdditiveRiskModel.
    schema : Schema, optional
        Names the subscales. Without subscales every feature is one of its own.
    learning_rate : {"paper", "hedge"} or float, default="paper"
        "paper" is 8 ln|S| / M, "hedge" sqrt(8 ln|S| / M).
    loss : {"log", "brier"}, default="log"
    clip : float or "auto", default="auto"
        An expert is charged as if its risk lay in [clip, 1 - clip]. "auto" charges no more certainty than the
        expert's link can express: see `plainrisk.models.mixture.loss_clip`.
    weights : {"hedge", "stacking"}, default="hedge"
        "stacking" takes nonnegative least squares, scaled to sum 1, for comparison.
    cv : int, scikit-learn splitter or iterable of (train, test), optional
        Judge the experts on held-out folds, since experts look better than they are on the rows they were fitted to.
    class_weight : None, "balanced" or dict, default=None
    calibrate : bool, default=False
        A pool is too close to the mean, since each expert sees one subscale alone and the pool averages them. True puts
        a rising line of a few pieces ("bands") on the pool, fitted to the outcomes. The order of applicants and the
        monotone directions stay.

    Attributes
    ----------
    weights_ : dict of subscale to weight
    link_ : Bands from the pooled risk to the calibrated one; None without `calibrate`
    losses_ : (subscales,) summed losses behind the weights; `partial_fit` adds to them
    regret_ : Regret of Hedge's weights against the best expert, with its bound; None with weights="stacking"
    learning_rate_ : float
    experts_ : dict of subscale to Expert
    form_ : RiskForm, where every expert has one

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> mixture = pr.SubscaleMixture(pr.AdditiveRiskModel(), german.schema).fit(german.frame, german.target)
    >>> list(mixture.weights_)
    ['Credit and loan', 'Personal']
    """

    estimator: Any = parameter(None, ESTIMATORS)
    schema: Schema | None = None
    learning_rate: float | Literal["paper", "hedge"] = parameter("paper", words("paper", "hedge") | number(at_least=0))
    _: KW_ONLY
    loss: LossName = parameter("log", words(*get_args(LossName)))
    clip: float | Literal["auto"] = parameter("auto", words("auto") | number(above=0, below=0.5))
    weights: Literal["hedge", "stacking"] = parameter("hedge", words("hedge", "stacking"))
    cv: Any = parameter(None, NOTHING | whole(2) | SPLITS)
    class_weight: ClassWeight = parameter(None, CLASS_WEIGHT)
    calibrate: bool = parameter(False, FLAG)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        # Rows of weight 0 are left out, and splits name rows by their place before that.
        weight = None if isinstance(sample_weight, str | None) else np.asarray(sample_weight)
        self._kept = None if weight is None or weight.ndim != 1 or weight.all() else np.flatnonzero(weight)
        return super()._read(X, y, sample_weight)

    def _fit(self, training: TrainingRows) -> PartScores | None:
        estimator = AdditiveRiskModel() if self.estimator is None else self.estimator
        self.schema_ = training.schema
        warn_of_unassigned(type(self).__name__, training.schema)
        self.experts_ = fit_experts(estimator, training)
        self.clips_ = np.array([self._clip_of(e) for e in self.experts_.values()])
        self.class_factors_ = np.ones(2) if training.factors is None else training.factors
        self.total_ = training.total
        judged = self._judged(estimator, training)
        judge = _Judge(self.loss, self.clips_)
        totals, gram, moment = _summed(judged, judge)
        self.losses_, self.spread_ = totals[:-1], float(totals[-1])
        self.regret_: Regret | None = None
        weights = stacked_weights(gram, moment) if self.weights == "stacking" else self._hedge()
        self.link_ = self._fitted_link(weights, judged) if self.calibrate else None
        return self._keep_weights(training, weights)

    def _judged(self, estimator: Any, training: TrainingRows) -> Judged:
        """Return the experts with the rows that they are judged on; with `cv`, rows that they have not seen."""
        if self.cv is None:
            return [(self.experts_, training)]
        splits = training.splits(self.cv, getattr(self, "_kept", None))
        return [(fit_experts(estimator, seen), new) for seen, new in splits]

    def _fitted_link(self, weights: Floats, judged: Judged) -> Bands:
        """Return the line that calibrates the pool, from sums over rows."""
        (sums,) = _summed(judged, _PoolSums(weights))
        degrees = 0.0
        if self.cv is None:  # else the rows were held out
            degrees = math.fsum(w * e.degrees for w, e in zip(weights, self.experts_.values(), strict=True))
        return calibrating_bands(sums, degrees)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> SubscaleMixture:
        """Update the weights with new rows; the experts stay as they are. The first call fits them.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        classes : ignored; the outcomes are those that `fit` saw

        Returns
        -------
        self

        Examples
        --------
        >>> moved = mixture.partial_fit(german.frame[:200], german.target[:200])
        >>> round(sum(moved.weights_.values()), 9)
        1.0
        """
        if not hasattr(self, "experts_"):
            return self.fit(X, y, sample_weight)
        if self.weights == "stacking":
            raise DataError("partial_fit moves Hedge weights; with weights='stacking' fit again.")
        rows = self._more(X, y, sample_weight)
        more = loss_sums(self._risks(rows.frame), rows.target, rows.weight, self.loss, self.clips_)
        self.losses_, self.spread_ = self.losses_ + more[:-1], self.spread_ + float(more[-1])
        self.total_ += rows.total
        self._set_weights(self._hedge())
        return self

    def weight_path(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Return how Hedge would have moved equal weights through rows.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Returns
        -------
        (n + 1, subscales), the weights before the first and after each row

        Examples
        --------
        >>> mixture.weight_path(german.frame[:50], german.target[:50]).shape
        (51, 2)
        """
        self._require_experts()
        rows = self._more(X, y, sample_weight)
        losses = row_losses(self._risks(rows.frame), rows.target, self.loss, self.clips_)
        if rows.weight is not None:
            losses = losses * rows.weight[:, None]
        sums = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)])
        return hedge_weights(sums, learning_rate(self.learning_rate, len(self.experts_), rows.total))

    def plot_weights(self, X: Any, y: Any, ax: Any = None) -> Any:
        """Draw the weight path over the rows of X; parameters as in `weight_path`. Returns matplotlib's axes."""
        from plainrisk.explain.plots import draw_weight_path

        return draw_weight_path(self.weight_path(X, y), tuple(self.experts_), ax)

    def without(self, *subscales: str) -> RiskModel:
        """Return the pool without some experts, the others' weights scaled to sum 1 again: still exact.

        Parameters
        ----------
        *subscales : names of subscales

        Returns
        -------
        RiskModel

        Examples
        --------
        >>> mixture.without("Personal").form_.pool.weights
        (1.0,)
        """
        self._require_form()
        for name in subscales:
            if not isinstance(name, str) or name not in self.weights_:
                raise DataError(f"There is no subscale {name!r}.{did_you_mean(name, self.weights_)}")
        kept = {name: w for name, w in self.weights_.items() if name not in subscales}
        total = sum(kept.values())
        if total <= 0:
            raise DataError("No weight is left without these subscales.")
        parts = tuple(part for part in self.form_.parts if part.name in kept)
        weights = tuple(w / total for w in kept.values())
        pool = Mixture(weights, self.link_)
        record = self.fit_record_ and msgspec.structs.replace(self.fit_record_, risks=None)  # of all subscales
        return RiskModel(msgspec.structs.replace(self.form_, parts=parts, pool=pool), record)

    # ---- with experts that have no risk form

    def predict_proba(self, X: Any, *, columns: Sequence[str] | None = None) -> Floats:
        """Return the probabilities of the two outcomes, in the order of `classes_`: (rows, 2)."""
        if hasattr(self, "form_"):
            return super().predict_proba(X, columns=columns)
        self._require_experts()
        risk = self._calibrated(self._pooled(self._risks(X if columns is None else as_frame(X, columns))))
        return self._by_class(np.column_stack([1.0 - risk, risk]))

    @takes(ExplainOptions)
    def explain(self, X: Any, **options: Any) -> Explanation:
        """Return what every subscale contributes, and inside it every feature of an additive expert.

        A mixture with an expert that has no risk form is explained from zero: weight times risk of every subscale.

        Parameters
        ----------
        X : rows
        {options}

        Returns
        -------
        Explanation
        """
        if hasattr(self, "form_"):
            return super().explain(X, **options)
        columns, reference = options.pop("columns", None), options.pop("reference", "zero")
        if options or not isinstance(reference, str) or reference != "zero":
            self._require_form()  # says which expert has none
        from plainrisk.explain import Explanation
        from plainrisk.explain.contributions import follow_link

        self._require_experts()
        risks = self._risks(X if columns is None else as_frame(X, columns))
        pieces, pooled, start = risks * np.array(list(self.weights_.values())), self._pooled(risks), 0.0
        if self.link_ is not None:
            follow_link(self.link_, 0.0, pooled, pieces)
            start = float(self.link_.value(np.zeros(1))[0])
        return Explanation(
            unit="probability",
            risk=self._calibrated(pooled),
            constant=np.full(len(risks), start),
            contributions=pieces,
            subscales=tuple(self.weights_),
            features=(None,) * len(self.weights_),
            reference="zero",
            part_risks=risks,
        )

    # ---- inside

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        experts = self.estimator.values() if isinstance(self.estimator, Mapping) else [self.estimator]
        tags.input_tags.allow_nan = all(takes_missing(e) for e in experts if e is not None)
        return tags

    def _require_form(self) -> None:
        self._require_experts()
        if not hasattr(self, "form_"):
            opaque = next(e for e in self.experts_.values() if not e.has_part)
            raise PlainriskError(
                f"The expert of {opaque.name!r} is a {type(opaque.model).__name__}, which has no risk form of one "
                "part: the pool scores and explains by subscale, but cannot be saved or certified."
            )

    def _require_experts(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "experts_")

    def _clip_of(self, expert: Expert) -> float:
        if self.clip != "auto":
            return float(self.clip)
        return loss_clip(None if expert.form is None else expert.form.last_link)

    def _more(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Read further rows, under the class weights of the fit."""
        rows = read_more(self._named(X), y, self.schema_, self._outcomes, sample_weight)
        if self.class_weight is None:
            return rows
        weight = self.class_factors_[rows.target]
        return replace(rows, weight=weight if rows.weight is None else weight * rows.weight)

    def _named(self, X: Any) -> Frame:
        """Read rows under the schema's names."""
        frame, names = as_frame(X), tuple(self.schema_.features)
        if not frame.named and names != position_names(len(names)):
            raise nameless("the model")
        if not frame.named and len(frame.names) != len(names):
            raise DataError(
                f"Data: X has {len(frame.names)} features, but SubscaleMixture is expecting {len(names)} features "
                "as input."
            )
        return read_texts(frame, self.schema_.readings) if frame.named else frame.renamed(names)

    def _risks(self, X: Any) -> Floats:
        frame = self._named(X)
        return np.column_stack([e.risk(frame) for e in self.experts_.values()])

    def _pooled(self, risks: Floats) -> Floats:
        return np.asarray(np.clip(risks @ np.array(list(self.weights_.values())), 0.0, 1.0))

    def _calibrated(self, pooled: Floats) -> Floats:
        return pooled if self.link_ is None else self.link_.value(pooled)

    def _hedge(self) -> Floats:
        self.learning_rate_ = learning_rate(self.learning_rate, len(self.experts_), self.total_)
        if self.learning_rate_ > 0:
            best = list(self.experts_)[int(self.losses_.argmin())]
            self.regret_ = Regret(best, *regret_range(self.losses_, self.spread_, self.learning_rate_))
        return hedge_weights(self.losses_, self.learning_rate_)

    def _set_weights(self, weights: Floats) -> None:
        self.weights_ = dict(zip(self.experts_, weights.tolist(), strict=True))
        if hasattr(self, "form_"):
            self.form_ = msgspec.structs.replace(self.form_, pool=self._pool)
            self._note_regret()

    @property
    def _pool(self) -> Mixture:
        return Mixture(tuple(self.weights_.values()), self.link_)

    def _keep_weights(self, training: TrainingRows, weights: Floats) -> PartScores | None:
        if hasattr(self, "form_"):
            del self.form_
        self._set_weights(weights)
        if not all(e.has_part for e in self.experts_.values()):
            return None
        solutions = [e.model.solution_ for e in self.experts_.values() if hasattr(e.model, "solution_")]
        parts = [e.part for e in self.experts_.values()]
        evidence = evidence_of({name: e.model for name, e in self.experts_.items()})
        scores = self._keep(training, parts, self._pool, solutions, evidence=evidence)
        self._note_regret()
        return scores

    def _note_regret(self) -> None:
        if self.fit_record_ is not None:
            self.fit_record_ = msgspec.structs.replace(self.fit_record_, regret=self.regret_)


def loss_clip(link: Link | None) -> float:
    """Return the certainty an expert's link can express, as the least risk it may be charged for.

    A line stands in for the sigmoid only between -alpha and alpha; beyond, it says 0 or 1 without meaning it. So a
    linearised expert is charged no more certainty than the sigmoid has at the line's ends, sigmoid(-alpha). A line
    fitted directly, bands and curved links are charged what they say, but for a floor that keeps the loss finite.
    """
    if isinstance(link, Linear):
        is_identity = (link.slope, link.offset) == (1.0, 0.0)  # fitted directly: the score is the probability
        return DIRECT_CLIP if is_identity else float(1.0 / (1.0 + np.exp(0.5 / link.slope)))
    if isinstance(link, Bands):
        return max(1e-15, min(link.values[0], 1.0 - link.values[-1]))
    return 1e-15


def _summed(judged: Judged, function: Callable[[Floats, Training], Any]) -> Any:
    """Apply a function to all rows and the experts' risks for them, and add up the results."""
    return total_of(
        rows.sum(
            _OfRisks(ExpertRisks.of(experts), function),
            [name for expert in experts.values() for name in expert.features],
            "weighing experts",
        )
        for experts, rows in judged
    )


@dataclass(frozen=True)
class _OfRisks:
    """A function of rows and of the risks that experts see in them."""

    risks: ExpertRisks
    function: Callable[[Floats, Training], Any]

    def __call__(self, rows: Training) -> Any:
        return self.function(self.risks(rows.frame), rows)


@dataclass(frozen=True)
class _Judge:
    """The losses of experts in some rows, and the products of their risks."""

    loss: LossName
    clips: Floats

    def __call__(self, risks: Floats, rows: Training) -> tuple[Floats, Floats, Floats]:
        losses = loss_sums(risks, rows.target, rows.weight, self.loss, self.clips)
        return losses, *risk_products(risks, rows.target, rows.weight)


@dataclass(frozen=True)
class _PoolSums:
    """Sums by the log odds of the pool."""

    weights: Floats

    def __call__(self, risks: Floats, rows: Training) -> tuple[ScoreSums]:
        return (ScoreSums.of(log_odds(risks @ self.weights), rows.weight, rows.positive),)


def risk_products(risks: Floats, target: Array, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the products of the experts' risks, (rows, experts), with each other and with the outcome."""
    weighted = risks if weight is None else risks * weight[:, None]
    gram, moment = np.zeros((risks.shape[1] + 1,) * 2), np.zeros(risks.shape[1] + 1)
    gram[0, 0] = (
        len(risks) if weight is None else weight.sum()
    )  # the intercept stands alone and plays no part in the weights
    gram[1:, 1:] = weighted.T @ risks
    moment[1:] = weighted.T @ target.astype(np.float64)
    return gram, moment


def stacked_weights(gram: Floats, moment: Floats) -> Floats:
    """Return nonnegative least-squares weights of the risks, without constant, scaled to sum 1."""
    n_experts = len(moment) - 1
    weights = minimize_squares(Moments(gram, moment), lower=np.zeros(n_experts)).coefficients
    return weights / weights.sum() if weights.sum() > 0 else np.full(n_experts, 1.0 / n_experts)
