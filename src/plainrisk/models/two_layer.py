"""The two-layer risk model: one additive model per subscale, and one that weighs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk._native import Numbers
from plainrisk.bins import Criterion
from plainrisk.form import Layer, Linear, Logistic
from plainrisk.models.arm import AdditiveRiskModel, check_link
from plainrisk.models.base import CV_FOLDS, RiskClassifier, resolve_ridge
from plainrisk.models.fitting import Penalty, logistic_path, squared_error
from plainrisk.models.stream_fit import AnyRows, Chosen, dense_blocks
from plainrisk.models.subscales import Expert, fit_experts
from plainrisk.models.training import Training
from plainrisk.schema import Schema
from plainrisk.solve import (
    Block,
    Layout,
    LogisticLoss,
    RidgePath,
    Solution,
    choose_ridge,
    fit_rows,
    minimise_squares,
    stratified_folds,
)
from plainrisk.threads import side_by_side

__all__ = ["TwoLayerRiskModel"]

Floats = npt.NDArray[np.float64]

# Rows of a block of risks: a few MB, so that memory is used again and need not be cleared first.
_ROWS = 1 << 16


class TwoLayerRiskModel(RiskClassifier):
    r"""Two-layer additive risk model (ARM2): a risk per subscale, then nonnegative weights on the risks.

    .. math:: r(x) = g\Big(\gamma_0 + \sum_S \gamma_S\, r_S(x)\Big), \quad \gamma_S \ge 0

    Each :math:`r_S` is a one-layer model of the subscale's features, fitted by itself on the outcome. The link g
    is the sigmoid, or with link "linear" the clipped line: then the risks and the weights are both fitted by
    bounded least squares, and all contributions are pieces of the probability.

    Parameters
    ----------
    estimator : estimator, optional
        The one-layer model per subscale, one for all or a dict by subscale; default AdditiveRiskModel with this
        model's settings.
    schema : Schema, optional
        Names the subscales. Without subscales every feature is one of its own.
    link : {"logistic", "linear"}, default="logistic"
    max_bins, ridge, penalty, class_weight, criterion, min_bin_rows : as in AdditiveRiskModel

    Attributes
    ----------
    form_ : RiskForm
    estimators_ : dict of subscale to fitted one-layer model
    solution_ : Solution of the second layer
    weights_ : dict of subscale to its weight
    """

    def __init__(
        self,
        estimator: Any = None,
        schema: Schema | None = None,
        *,
        link: Literal["logistic", "linear"] = "logistic",
        max_bins: int = 5,
        ridge: float | Literal["auto", "cv"] = "auto",
        penalty: Penalty = "levels",
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        criterion: Criterion = "gini",
        min_bin_rows: int = 1,
    ) -> None:
        self.estimator = estimator
        self.schema = schema
        self.link = link
        self.max_bins = max_bins
        self.ridge = ridge
        self.penalty = penalty
        self.class_weight = class_weight
        self.criterion = criterion
        self.min_bin_rows = min_bin_rows

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TwoLayerRiskModel:
        """Fit the subscale models, then their weights."""
        check_link(self.link)
        training = self._read(X, y, sample_weight, self.class_weight)
        experts = fit_experts(self._one_layer(), training, keep_rows=True)
        self.estimators_ = {name: expert.model for name, expert in experts.items()}
        parts = [expert.part for expert in experts.values()]
        risks = _risk_blocks(training, list(experts.values()))
        if self.ridge == "cv":
            self.ridge_path_ = second_layer_path(risks, training, self.link)
        self.ridge_ = self.ridge_path_.best if self.ridge == "cv" else resolve_ridge(self.ridge, training.total)
        self.solution_ = fit_second_layer(risks, len(experts), self.link, self.ridge_)
        self.weights_ = dict(zip(self.estimators_, self.solution_.coefficients.tolist(), strict=True))
        pool = Layer(
            intercept=self.solution_.intercept,
            weights=tuple(self.weights_.values()),
            link=Logistic() if self.link == "logistic" else Linear(),
        )
        firsts = [m.solution_ for m in self.estimators_.values() if hasattr(m, "solution_")]
        self._keep(training, parts, pool, [*firsts, self.solution_])
        return self

    def _one_layer(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        return AdditiveRiskModel(
            link=self.link,
            max_bins=self.max_bins,
            ridge=self.ridge,
            penalty=self.penalty,
            criterion=self.criterion,
            min_bin_rows=self.min_bin_rows,
        )


def _risk_blocks(rows: AnyRows, experts: Sequence[Expert]) -> Sequence[Block]:
    """Return the risks the experts see in the rows they were fitted on, as numeric columns."""
    makers = [expert.training_risks for expert in experts if expert.training_risks is not None]
    if not isinstance(rows, Training) or len(makers) < len(experts):
        return dense_blocks(rows, lambda some: np.stack([expert.risk(some.frame) for expert in experts]).T)

    def block(start: int) -> Block:
        some = slice(start, min(start + _ROWS, rows.n_rows))
        risks = Numbers(tuple(risks_of(some) for risks_of in each))
        return Block((), positive[some], None if weight is None else weight[some], risks if few else np.asarray(risks))

    positive, weight, each = rows.positive, rows.weight, [make() for make in makers]
    few = Layout((), len(experts)).is_few_numbers
    return list(side_by_side(block, range(0, rows.n_rows, _ROWS), rows.n_rows))


def fit_second_layer(risks: Sequence[Block], n_experts: int, link: str, ridge: float) -> Solution:
    """Fit nonnegative weights on the subscale risks, the dense columns of blocks of rows."""
    lower = np.zeros(n_experts)
    if link == "logistic":
        return fit_rows(LogisticLoss(Layout((), n_experts), risks), ridge=ridge, lower=lower, box=np.inf)
    gram, moment = _moments(risks)
    return minimise_squares(gram, moment, float(gram[0, 0]), ridge=ridge, lower=lower)


def second_layer_path(risks: Sequence[Block], training: AnyRows, link: str) -> RidgePath:
    """Choose the second layer's ridge by cross validation."""
    n_experts = risks[0].dense.shape[1]  # type: ignore[union-attr]
    lower = np.zeros(n_experts)
    target = training.outcomes()
    if link == "logistic":
        box = np.full(n_experts, np.inf)
        return logistic_path(
            Layout((), n_experts),
            lambda mask: _chosen(risks, mask),
            target,
            training.total,
            CV_FOLDS,
            lower=lower,
            box=box,
        )
    folds = stratified_folds(target, CV_FOLDS)

    def judge(k: int) -> Callable[[float], float]:
        gram, moment = _moments(_chosen(risks, folds != k))
        held_gram, held_moment = _moments(_chosen(risks, folds == k))

        def held_out(ridge: float) -> float:
            found = minimise_squares(gram, moment, float(gram[0, 0]), ridge=ridge, lower=lower)
            return squared_error(found, held_gram, held_moment) / float(held_gram[0, 0])

        return held_out

    return choose_ridge([judge(int(k)) for k in np.unique(folds)], training.total)


def _chosen(risks: Sequence[Block], mask: npt.NDArray[np.bool_]) -> Sequence[Block]:
    """Return some of the rows; where they are in memory, cut out once and for all."""
    some = Chosen(risks, mask)
    return list(some) if isinstance(risks, list) else some


def _moments(risks: Sequence[Block]) -> tuple[Floats, Floats]:
    """Return the sums of products of (1, risks), and those with the outcome; the first is the total weight."""
    gram: Floats | float = 0.0
    moment: Floats | float = 0.0
    for block in risks:
        design = np.column_stack([np.ones(len(block)), np.asarray(block.dense)])
        weighted = design if block.weight is None else design * block.weight[:, None]
        gram = gram + weighted.T @ design
        moment = moment + block.positive.astype(np.float64) @ design
    return np.asarray(gram), np.asarray(moment)
