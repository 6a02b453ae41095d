"""SubscaleMixture: one expert per subscale, pooled with weights that sum to 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError, PlainriskError, did_you_mean
from plainrisk.estimators.arm import AdditiveRiskModel
from plainrisk.estimators.base import RiskClassifier
from plainrisk.estimators.subscales import Expert, fit_experts
from plainrisk.estimators.training import Training, read_more
from plainrisk.form import Bands, Linear, Link, Mixture
from plainrisk.frames import as_frame
from plainrisk.model import RiskModel
from plainrisk.schema import Schema
from plainrisk.solve import minimise_squares, stratified_folds
from plainrisk.solve.hedge import hedge_weights, learning_rate, row_losses, summed_losses

if TYPE_CHECKING:
    from plainrisk.explain import Explanation

__all__ = ["SubscaleMixture"]

Floats = npt.NDArray[np.float64]


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
        expert's link can express: see `loss_clip`.
    weights : {"hedge", "stacking"}, default="hedge"
        "stacking" takes nonnegative least squares, scaled to sum 1, for comparison.
    cv : int or None, default=None
        Judge the experts on held-out folds, since those judged on the rows they were trained on flatter themselves.
    class_weight : None, "balanced" or dict, default=None

    Attributes
    ----------
    weights_ : dict of subscale to weight
    losses_ : (subscales,) summed losses behind the weights; `partial_fit` adds to them
    learning_rate_ : float
    experts_ : dict of subscale to Expert
    form_ : RiskForm, where every expert has one
    """

    def __init__(
        self,
        estimator: Any = None,
        schema: Schema | None = None,
        learning_rate: float | Literal["paper", "hedge"] = "paper",
        *,
        loss: Literal["log", "brier"] = "log",
        clip: float | Literal["auto"] = "auto",
        weights: Literal["hedge", "stacking"] = "hedge",
        cv: int | None = None,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
    ) -> None:
        self.estimator = estimator
        self.schema = schema
        self.learning_rate = learning_rate
        self.loss = loss
        self.clip = clip
        self.weights = weights
        self.cv = cv
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SubscaleMixture:
        """Fit the experts, then weigh them."""
        _check_weights(self.weights)
        training = self._read(X, y, sample_weight, self.class_weight)
        estimator = AdditiveRiskModel() if self.estimator is None else self.estimator
        self.schema_ = training.schema
        self.experts_ = fit_experts(estimator, training)
        self.clips_ = np.array([self._clip_of(e) for e in self.experts_.values()])
        risks = self._judged_risks(estimator, training)
        self.total_ = training.total
        self.losses_ = summed_losses(risks, training.target, training.weight, self.loss, self.clips_)
        stacking = self.weights == "stacking"
        self._keep_weights(training, stacked_weights(risks, training) if stacking else self._hedge())
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SubscaleMixture:
        """Move the weights on with new rows; the experts stay as they are."""
        self._require_experts()
        if self.weights == "stacking":
            raise DataError("partial_fit moves Hedge weights; with weights='stacking' fit again.")
        rows = read_more(X, y, self.schema_, self.classes_, sample_weight)
        self.losses_ = self.losses_ + summed_losses(
            self._risks(rows.frame), rows.target, rows.weight, self.loss, self.clips_
        )
        self.total_ += rows.total
        self._set_weights(self._hedge())
        return self

    def weight_path(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Return the weights before the first and after each row of X: (n + 1, subscales)."""
        self._require_experts()
        rows = read_more(X, y, self.schema_, self.classes_, sample_weight)
        losses = row_losses(self._risks(rows.frame), rows.target, self.loss, self.clips_)
        if rows.weight is not None:
            losses = losses * rows.weight[:, None]
        sums = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)])
        return hedge_weights(sums, learning_rate(self.learning_rate, len(self.experts_), rows.total))

    def plot_weights(self, X: Any, y: Any, ax: Any = None) -> Any:
        """Draw the weight path over the rows of X; returns the axes."""
        from plainrisk.estimators.mixture_plot import draw_weight_path

        return draw_weight_path(self.weight_path(X, y), tuple(self.experts_), ax)

    def without(self, *subscales: str) -> RiskModel:
        """Return the pool without some experts, the others' weights scaled to sum 1 again: still exact."""
        self._require_form()
        for name in subscales:
            if name not in self.weights_:
                raise DataError(f"There is no subscale {name!r}.{did_you_mean(name, self.weights_)}")
        kept = {name: w for name, w in self.weights_.items() if name not in subscales}
        total = sum(kept.values())
        if total <= 0:
            raise DataError("No weight is left without these subscales.")
        parts = tuple(part for part in self.form_.parts if part.name in kept)
        weights = tuple(w / total for w in kept.values())
        return RiskModel(msgspec.structs.replace(self.form_, parts=parts, pool=Mixture(weights)), self.fit_record_)

    # ---- with experts that have no risk form

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the two outcomes, the positive one last: (rows, 2)."""
        if hasattr(self, "form_"):
            return super().predict_proba(X)
        self._require_experts()
        risk = self._pooled(self._risks(as_frame(X)))
        return np.column_stack([1.0 - risk, risk])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the likelier outcome of every row."""
        return np.asarray(self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(np.intp)])

    def explain(self, X: Any) -> Explanation:
        """Return what every subscale contributes, and its features where the experts speak in probability."""
        if hasattr(self, "form_"):
            return super().explain(X)
        from plainrisk.explain import Explanation

        self._require_experts()
        risks = self._risks(as_frame(X))
        weights = np.array(list(self.weights_.values()))
        n = len(risks)
        return Explanation(
            unit="probability",
            risk=self._pooled(risks),
            constant=np.zeros(n),
            contributions=risks * weights,
            subscales=tuple(self.weights_),
            features=(None,) * len(self.weights_),
            clipping=np.zeros(n),
        )

    # ---- inside

    def _require_form(self) -> None:
        self._require_experts()
        if not hasattr(self, "form_"):
            opaque = [e.name for e in self.experts_.values() if e.form is None]
            kind = type(self.experts_[opaque[0]].model).__name__
            raise PlainriskError(
                f"The expert of {opaque[0]!r} is a {kind}, which has no risk form: the pool scores and explains by "
                "subscale, but can not be saved or certified."
            )

    def _require_experts(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "experts_")

    def _clip_of(self, expert: Expert) -> float:
        if self.clip != "auto":
            return float(self.clip)
        return loss_clip(None if expert.form is None else expert.form.parts[0].link)

    def _risks(self, frame: Any) -> Floats:
        frame = frame if frame.named else frame.renamed(tuple(self.schema_.features))
        return np.column_stack([e.risk(frame) for e in self.experts_.values()])

    def _pooled(self, risks: Floats) -> Floats:
        return np.asarray(np.clip(risks @ np.array(list(self.weights_.values())), 0.0, 1.0))

    def _judged_risks(self, estimator: Any, training: Training) -> Floats:
        """The experts' risks on the training rows, from held-out folds if asked."""
        if self.cv is None:
            return self._risks(training.frame)
        folds = stratified_folds(training.target, self.cv)
        risks = np.empty((len(training.target), len(self.experts_)))
        for fold in range(self.cv):
            held_out = np.flatnonzero(folds == fold)
            experts = fit_experts(estimator, training.rows(np.flatnonzero(folds != fold)))
            rows = training.rows(held_out)
            risks[held_out] = np.column_stack([e.risk(rows.frame) for e in experts.values()])
        return risks

    def _hedge(self) -> Floats:
        self.learning_rate_ = learning_rate(self.learning_rate, len(self.experts_), self.total_)
        return hedge_weights(self.losses_, self.learning_rate_)

    def _set_weights(self, weights: Floats) -> None:
        self.weights_ = dict(zip(self.experts_, weights.tolist(), strict=True))
        if hasattr(self, "form_"):
            self.form_ = msgspec.structs.replace(self.form_, pool=Mixture(tuple(self.weights_.values())))

    def _keep_weights(self, training: Training, weights: Floats) -> None:
        if hasattr(self, "form_"):
            del self.form_
        self._set_weights(weights)
        if all(e.form is not None for e in self.experts_.values()):
            solutions = [e.model.solution_ for e in self.experts_.values() if hasattr(e.model, "solution_")]
            pool = Mixture(tuple(self.weights_.values()))
            self._keep(training, [e.part for e in self.experts_.values()], pool, solutions)


def _check_weights(weights: str) -> None:
    known = ("hedge", "stacking")
    if weights not in known:
        raise DataError(f"weights must be 'hedge' or 'stacking', not {weights!r}.{did_you_mean(weights, known)}")


def loss_clip(link: Link | None) -> float:
    """Return the certainty an expert's link can express, as the least risk it may be charged for.

    A line stands in for the sigmoid only between -alpha and alpha; beyond, it says 0 or 1 without meaning it. So a
    linearised expert is charged no more certainty than the sigmoid has at the line's ends, sigmoid(-alpha). A line
    fitted directly, bands and curved links are charged what they say, but for a floor that keeps the loss finite.
    """
    if isinstance(link, Linear) and link.offset == 0.5:
        return float(1.0 / (1.0 + np.exp(0.5 / link.slope)))
    if isinstance(link, Linear):
        return DIRECT_CLIP
    if isinstance(link, Bands):
        return max(1e-15, min(link.values[0], 1.0 - link.values[-1]))
    return 1e-15


DIRECT_CLIP = 1e-3


def stacked_weights(risks: Floats, training: Training) -> Floats:
    """Return nonnegative least-squares weights of the risks, without constant, scaled to sum 1."""
    weighted = risks if training.weight is None else risks * training.weight[:, None]
    n_experts = risks.shape[1]
    gram = np.zeros((n_experts + 1, n_experts + 1))
    gram[0, 0] = training.total  # the intercept stands alone and plays no part in the weights
    gram[1:, 1:] = weighted.T @ risks
    moment = np.concatenate([[0.0], weighted.T @ training.target.astype(np.float64)])
    found = minimise_squares(gram, moment, training.total, lower=np.zeros(n_experts)).coefficients
    return found / found.sum() if found.sum() > 0 else np.full(n_experts, 1.0 / n_experts)
