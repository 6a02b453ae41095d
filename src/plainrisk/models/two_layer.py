"""The two-layer risk model: one additive model per subscale, and a second one that weights them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, get_args

import numpy as np

from plainrisk.checks import parameter, words
from plainrisk.data.spool import Arrays
from plainrisk.fit.coding import CodedBlock, KeptRows
from plainrisk.fit.layer import resolve_ridge
from plainrisk.fit.parameters import LayerParameters, LinkName
from plainrisk.fit.scored import PartScores
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import Layer, Linear, Logistic
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.base import RiskClassifier
from plainrisk.models.experts import ESTIMATORS, ExpertRisks, evidence_of, fit_experts, warn_of_unassigned
from plainrisk.schema import Schema
from plainrisk.solve import Layout, LogisticLoss, Moments, Rows, Solution, minimize, minimize_squares

__all__ = ["TwoLayerRiskModel", "second_layer"]


@dataclass(eq=False, repr=False)
class TwoLayerRiskModel(LayerParameters, RiskClassifier):
    r"""Two-layer additive risk model (ARM2): a risk per subscale, then nonnegative weights on the risks.

    .. math:: r(x) = g\Big(\gamma_0 + \sum_S \gamma_S\, r_S(x)\Big), \quad \gamma_S \ge 0

    Each :math:`r_S` is a one-layer model of the subscale's features, fitted separately to the outcome. The link g is
    the sigmoid or, with link "linear", the clipped line: then the risks and the weights are both fitted by bounded
    least squares, and all contributions are parts of the probability.

    Parameters
    ----------
    estimator : estimator, optional
        The one-layer model per subscale, one for all or a dict by subscale; default AdditiveRiskModel with this
        model's settings.
    schema : Schema, optional
        Names the subscales. Without subscales every feature is one of its own.
    link : {"logistic", "linear"}, default="logistic"
    shapes, max_bins, ridge, pairs, class_weight, criterion, min_bin_rows, tolerance, rules : as in AdditiveRiskModel

    Attributes
    ----------
    form_ : RiskForm
    estimators_ : dict of subscale to fitted one-layer model
    solution_ : Solution of the second layer
    weights_ : dict of subscale to its weight

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(1000, seed=1)
    >>> model = TwoLayerRiskModel(schema=credit.schema).fit(credit.frame, credit.target)
    >>> sorted(model.weights_), min(model.weights_.values()) >= 0
    (['Bureau', 'Capacity', 'Profile', 'Stability'], True)
    """

    estimator: Any = parameter(None, ESTIMATORS)
    schema: Schema | None = None
    _: KW_ONLY
    link: LinkName = parameter("logistic", words(*get_args(LinkName)))

    def _fit(self, training: TrainingRows) -> PartScores:
        warn_of_unassigned(type(self).__name__, training.schema)
        experts = fit_experts(self._one_layer(), training)
        self.estimators_ = {name: expert.model for name, expert in experts.items()}
        parts = [expert.part for expert in experts.values()]
        self.ridge_ = resolve_ridge(self.ridge, training.total)
        kept = training.keep(_RiskColumns(ExpertRisks.of(experts)), task="weighing experts")
        self.solution_ = second_layer(self.link, KeptRows(kept, CodedBlock(0, dense=True)), len(parts), self.ridge_)
        self.weights_ = dict(zip(self.estimators_, self.solution_.coefficients.tolist(), strict=True))
        pool = Layer(
            intercept=self.solution_.intercept,
            weights=tuple(self.weights_.values()),
            link=Logistic() if self.link == "logistic" else Linear(),
        )
        firsts = [m.solution_ for m in self.estimators_.values() if hasattr(m, "solution_")]
        solutions = [*firsts, self.solution_]
        return self._keep(training, parts, pool, solutions, evidence=evidence_of(self.estimators_))

    def _one_layer(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        # Class weights are among the weights of the rows already.
        names = [parameter.name for parameter in fields(LayerParameters) if parameter.name != "class_weight"]
        return AdditiveRiskModel(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class _RiskColumns:
    """The risks that experts see in rows, as numeric columns; see `CodedBlock`."""

    risks: ExpertRisks

    def __call__(self, batch: Training) -> Arrays:
        weight = () if batch.weight is None else (batch.weight,)
        return (batch.positive, *weight, self.risks(batch.frame))


def second_layer(link: LinkName, risks: Rows, n_experts: int, ridge: float) -> Solution:
    """Fit nonnegative weights to the experts' risks, the numeric columns of the rows."""
    layout, lower = Layout((), n_experts), np.zeros(n_experts)
    if link == "linear":
        return minimize_squares(Moments.of(layout, risks), ridge=ridge, lower=lower)
    return minimize(LogisticLoss(layout, risks), ridge=ridge, lower=lower, box=np.inf)
