"""SubscaleMixture: one expert per subscale, pooled with weights that sum to 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, PlainriskError, did_you_mean
from plainrisk.explain.options import ExplainOptions, takes
from plainrisk.form import Mixture
from plainrisk.model import RiskModel
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.base import RiskClassifier
from plainrisk.models.mixture_weights import RiskSums, check_settings, held_out_risks, loss_clip, own_log_loss
from plainrisk.models.stream_fit import AnyRows
from plainrisk.models.subscales import Expert, fit_experts, takes_missing
from plainrisk.models.training import Training, read_more
from plainrisk.schema import Schema
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
        expert's link can express: see `plainrisk.models.mixture_weights.loss_clip`.
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
        check_settings(self.weights, self.loss, self.clip, self.cv)
        training = self._read(X, y, sample_weight, self.class_weight)
        estimator = AdditiveRiskModel() if self.estimator is None else self.estimator
        self.schema_ = training.schema
        self.experts_ = fit_experts(estimator, training)
        self.clips_ = np.array([self._clip_of(e) for e in self.experts_.values()])
        self.class_factors_ = np.ones(2) if training.factors is None else training.factors
        self.total_ = training.total
        known = self._known_losses(training)
        self.losses_ = np.zeros(len(self.experts_)) if known is None else known
        sums = RiskSums(len(self.experts_))
        for rows, risks in self._judged(estimator, training) if known is None else ():
            self.losses_ += summed_losses(risks, rows.target, rows.weight, self.loss, self.clips_)
            if self.weights == "stacking":
                sums.add(risks, rows)
        self._keep_weights(training, sums.stacked_weights() if self.weights == "stacking" else self._hedge())
        return self

    def _known_losses(self, training: AnyRows) -> Floats | None:
        """Return the losses that the experts' own solvers found on these rows, if all are charged just these."""
        if self.cv is not None or self.weights == "stacking" or self.loss != "log":
            return None
        charged = zip(self.experts_.values(), self.clips_, strict=True)
        losses = [own_log_loss(expert, clip) for expert, clip in charged]
        return None if None in losses else training.total * np.array(losses, dtype=np.float64)

    def _judged(self, estimator: Any, training: AnyRows) -> Iterator[tuple[Training, Floats]]:
        """Yield rows and the risks by which the experts are judged, batch by batch."""
        if self.cv is not None:
            yield from held_out_risks(estimator, training, self.cv)
            return
        for rows in training.batches(task="weighing experts"):
            yield rows, self._risks(rows.frame)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> SubscaleMixture:
        """Move the weights on with new rows; the experts stay as they are. The first call fits them.

        Parameters
        ----------
        classes : ignored; the outcomes are those that `fit` saw
        """
        if not hasattr(self, "experts_"):
            return self.fit(X, y, sample_weight)
        if self.weights == "stacking":
            raise DataError("partial_fit moves Hedge weights; with weights='stacking' fit again.")
        rows = self._more(X, y, sample_weight)
        self.losses_ = self.losses_ + summed_losses(
            self._risks(rows.frame), rows.target, rows.weight, self.loss, self.clips_
        )
        self.total_ += rows.total
        self._set_weights(self._hedge())
        return self

    def weight_path(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Return the weights before the first and after each row of X: (n + 1, subscales)."""
        self._require_experts()
        rows = self._more(X, y, sample_weight)
        losses = row_losses(self._risks(rows.frame), rows.target, self.loss, self.clips_)
        if rows.weight is not None:
            losses = losses * rows.weight[:, None]
        sums = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)])
        return hedge_weights(sums, learning_rate(self.learning_rate, len(self.experts_), rows.total))

    def plot_weights(self, X: Any, y: Any, ax: Any = None) -> Any:
        """Draw the weight path over the rows of X; returns the axes."""
        from plainrisk.explain.plots import draw_weight_path

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
        risk = self._pooled(self._risks(X))
        return np.column_stack([1.0 - risk, risk])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the likelier outcome of every row."""
        risk = self.predict_proba(X)[:, 1]
        return np.asarray(self.classes_[(risk > 0.5).astype(np.intp)])

    @takes(ExplainOptions)
    def explain(self, X: Any, **options: Any) -> Explanation:
        """Return what every subscale contributes, and its features where the experts speak in probability.

        A mixture with an expert that has no risk form takes no options.

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
        if options:
            self._require_form()  # says which expert has none
        from plainrisk.explain import Explanation

        self._require_experts()
        risks = self._risks(X)
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
                "part: the pool scores and explains by subscale, but can not be saved or certified."
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
        rows = read_more(self._named(X), y, self.schema_, self.classes_, sample_weight)
        if self.class_weight is None:
            return rows
        weight = self.class_factors_[rows.target]
        return replace(rows, weight=weight if rows.weight is None else weight * rows.weight)

    def _named(self, X: Any) -> Frame:
        """Read rows under the schema's names."""
        frame, wanted = as_frame(X), tuple(self.schema_.features)
        if not frame.named and len(frame.names) != len(wanted):
            raise DataError(
                f"Data: X has {len(frame.names)} features, but SubscaleMixture is expecting {len(wanted)} features "
                "as input."
            )
        return frame if frame.named else frame.renamed(wanted)

    def _risks(self, X: Any) -> Floats:
        frame = self._named(X)
        return np.column_stack([e.risk(frame) for e in self.experts_.values()])

    def _pooled(self, risks: Floats) -> Floats:
        return np.asarray(np.clip(risks @ np.array(list(self.weights_.values())), 0.0, 1.0))

    def _hedge(self) -> Floats:
        self.learning_rate_ = learning_rate(self.learning_rate, len(self.experts_), self.total_)
        return hedge_weights(self.losses_, self.learning_rate_)

    def _set_weights(self, weights: Floats) -> None:
        self.weights_ = dict(zip(self.experts_, weights.tolist(), strict=True))
        if hasattr(self, "form_"):
            self.form_ = msgspec.structs.replace(self.form_, pool=Mixture(tuple(self.weights_.values())))

    def _keep_weights(self, training: AnyRows, weights: Floats) -> None:
        if hasattr(self, "form_"):
            del self.form_
        self._set_weights(weights)
        if all(e.has_part for e in self.experts_.values()):
            solutions = [e.model.solution_ for e in self.experts_.values() if hasattr(e.model, "solution_")]
            pool = Mixture(tuple(self.weights_.values()))
            self._keep(training, [e.part for e in self.experts_.values()], pool, solutions)
