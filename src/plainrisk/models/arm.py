"""The Additive Risk Model: one monotone step function per feature, added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from plainrisk.bins import Criterion
from plainrisk.form import Alone
from plainrisk.models.base import PartScores, RiskClassifier
from plainrisk.models.layer import LayerSettings, LinkName, Penalty, fit_layer
from plainrisk.models.training import TrainingRows
from plainrisk.schema import Schema

__all__ = ["AdditiveRiskModel"]


class AdditiveRiskModel(RiskClassifier):
    r"""One-layer additive risk model (ARM1) under the schema's monotone directions.

    Every feature becomes a few levels: bins, categories, special values. With link "logistic" the model is

    .. math:: P(y=1 \mid x) = \sigma\Big(\beta_0 + \sum_u f_u(x_u)\Big)

    and the level scores minimise the mean log loss + ridge * ||beta||^2 subject to the directions. With link
    "linear" the same sum is the probability itself, clipped to [0, 1], and minimises the mean squared error.

    Parameters
    ----------
    schema : Schema, optional
        What is known of the features; without it kinds follow the columns' types and nothing is constrained.
    link : {"logistic", "linear"}, default="logistic"
    max_bins : int, default=5
        Bins per continuous feature where the schema does not say.
    ridge : float, "auto" or "cv", default="auto"
        "auto" is 1/(2M), M the total weight; 0 is allowed; "cv" chooses it by cross validation inside fit.
    penalty : {"levels", "steps"}, default="levels"
        What the ridge shrinks in features without a direction: each level's effect, or the steps between
        neighbouring bins, which smooths many bins.
    class_weight : None, "balanced" or dict, default=None
        Anything but None makes the printed probability wrong; see `at_base_rate`.
    criterion : {"gini", "entropy", "quantile"}, default="gini"
        How bins are found: by a tree on the outcome, or holding equal shares of the rows.
    min_bin_rows : int, default=1
        Least number of training rows in a bin.

    Attributes
    ----------
    form_ : RiskForm
    solution_ : Solution
        Coefficients, objective, KKT residual, iterations and why the solver stopped.
    ridge_ : float
    ridge_path_ : RidgePath, with ridge="cv": the ridges tried and their held-out losses
    fit_record_ : FitRecord
    classes_ : (2,), the positive outcome last
    n_features_in_, feature_names_in_, n_iter_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from plainrisk import AdditiveRiskModel
    >>> X, y = np.arange(100.0)[:, None], (np.arange(100) > 60).astype(int)
    >>> model = AdditiveRiskModel(link="linear").fit(X, y)
    >>> model.predict_proba([[10.0], [90.0]])[:, 1].round(2).tolist()
    [0.0, 0.99]
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        link: LinkName = "logistic",
        max_bins: int = 5,
        ridge: float | Literal["auto", "cv"] = "auto",
        penalty: Penalty = "levels",
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        criterion: Criterion = "gini",
        min_bin_rows: int = 1,
    ) -> None:
        self.schema = schema
        self.link = link
        self.max_bins = max_bins
        self.ridge = ridge
        self.penalty = penalty
        self.class_weight = class_weight
        self.criterion = criterion
        self.min_bin_rows = min_bin_rows

    def _fit(self, training: TrainingRows) -> PartScores:
        fitted = fit_layer(training, self._settings)
        self.solution_, self.ridge_ = fitted.solution, fitted.ridge
        if fitted.ridge_path is not None:
            self.ridge_path_ = fitted.ridge_path

        def scores() -> Any:
            return (score[:, None] for score in fitted.design.scores(fitted.solution))

        self._keep(training, [fitted.part], Alone(), [fitted.solution], scores)
        return scores

    @property
    def _settings(self) -> LayerSettings:
        return LayerSettings(self.link, self.max_bins, self.ridge, self.penalty, self.criterion, self.min_bin_rows)
