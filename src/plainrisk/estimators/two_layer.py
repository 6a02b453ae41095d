"""The two-layer risk model: one additive model per subscale, and one that weighs them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.estimators.arm import AdditiveRiskModel, check_link
from plainrisk.estimators.base import RiskClassifier, resolve_ridge
from plainrisk.estimators.training import Training
from plainrisk.form import Layer, Linear, Logistic, Part
from plainrisk.schema import Schema
from plainrisk.solve import Block, Layout, LogisticLoss, Solution, minimise, minimise_squares

__all__ = ["TwoLayerRiskModel"]

Floats = npt.NDArray[np.float64]


class TwoLayerRiskModel(RiskClassifier):
    r"""Two-layer additive risk model (ARM2): a risk per subscale, then nonnegative weights on the risks.

    .. math:: r(x) = g\Big(\gamma_0 + \sum_S \gamma_S\, r_S(x)\Big), \quad \gamma_S \ge 0

    Each :math:`r_S` is a one-layer model of the subscale's features, fitted by itself on the outcome. The link g
    is the sigmoid, or with link "linear" the clipped line: then the risks and the weights are both fitted by
    bounded least squares, and all contributions are pieces of the probability.

    Parameters
    ----------
    estimator : estimator, optional
        The one-layer model per subscale; default AdditiveRiskModel with this model's settings.
    schema : Schema, optional
        Names the subscales. Without subscales every feature is one of its own.
    link : {"logistic", "linear"}, default="logistic"
    max_bins, ridge, class_weight, criterion, min_bin_rows : as in AdditiveRiskModel

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
        ridge: float | Literal["auto"] = "auto",
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        criterion: Literal["gini", "entropy"] = "gini",
        min_bin_rows: int = 1,
    ) -> None:
        self.estimator = estimator
        self.schema = schema
        self.link = link
        self.max_bins = max_bins
        self.ridge = ridge
        self.class_weight = class_weight
        self.criterion = criterion
        self.min_bin_rows = min_bin_rows

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TwoLayerRiskModel:
        """Fit the subscale models, then their weights."""
        check_link(self.link)
        training = self._read(X, y, sample_weight, self.class_weight)
        self.estimators_ = fit_subscales(self._one_layer(), training)
        parts = [subscale_part(name, model) for name, model in self.estimators_.items()]
        risks = np.column_stack([m.form_.risk(training.frame) for m in self.estimators_.values()])
        self.ridge_ = resolve_ridge(self.ridge, training.total)
        self.solution_ = fit_second_layer(risks, training, self.link, self.ridge_)
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
            criterion=self.criterion,
            min_bin_rows=self.min_bin_rows,
        )


def subscales_of(schema: Schema) -> dict[str, tuple[str, ...]]:
    """Return the subscales, or one per feature where the schema names none."""
    return dict(schema.subscales) or {name: (name,) for name in schema.features}


def fit_subscales(estimator: Any, training: Training) -> dict[str, Any]:
    """Fit a clone of a risk-form estimator on each subscale's features."""
    if "schema" not in estimator.get_params():
        raise DataError(
            f"{type(estimator).__name__} has no schema, so it can not be a subscale model here. Use one of plainrisk's "
            "one-layer models."
        )
    fitted = {}
    for name, members in subscales_of(training.schema).items():
        schema = msgspec.structs.replace(
            training.schema.select(members), target=None, positive=None, subscales={}
        )
        model = clone(estimator).set_params(schema=schema)
        with warnings.catch_warnings():
            # What the user should know is said once, by the whole model.
            warnings.simplefilter("ignore", PlainriskWarning)
            fitted[name] = model.fit(training.frame, training.target, sample_weight=training.weight)
    return fitted


def subscale_part(name: str, model: Any) -> Part:
    """Return the one part of a fitted one-layer model under the subscale's name."""
    if len(model.form_.parts) != 1:
        raise DataError(f"{type(model).__name__} has several layers; a subscale model has one.")
    part: Part = model.form_.parts[0]
    return msgspec.structs.replace(part, name=name)


def fit_second_layer(risks: Floats, training: Training, link: str, ridge: float) -> Solution:
    """Fit nonnegative weights on the subscale risks."""
    n, q = risks.shape
    lower = np.zeros(q)
    if link == "logistic":
        block = Block((), training.positive, training.weight, risks)
        return minimise(LogisticLoss(Layout((), q), [block]), ridge=ridge, lower=lower, box=np.inf)
    design = np.column_stack([np.ones(n), risks])
    weighted = design if training.weight is None else design * training.weight[:, None]
    return minimise_squares(
        weighted.T @ design, training.positive @ design, training.total, ridge=ridge, lower=lower
    )
