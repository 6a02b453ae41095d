"""The Additive Risk Model: one monotone step function per feature, added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from plainrisk.errors import DataError, did_you_mean
from plainrisk.estimators.base import RiskClassifier, resolve_ridge
from plainrisk.estimators.fitting import Design, encode_rows, fit_line, fit_logistic, table_part
from plainrisk.form import Alone, Linear, Logistic
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
    ridge : float or "auto", default="auto"
        "auto" is 1/(2M), M the total weight; 0 is allowed.
    class_weight : None, "balanced" or dict, default=None
        Anything but None makes the printed probability wrong; see `at_base_rate`.
    criterion : {"gini", "entropy"}, default="gini"
        What the bins' tree splits on.
    min_bin_rows : int, default=1
        Least number of training rows in a bin.

    Attributes
    ----------
    form_ : RiskForm
    solution_ : Solution
        Coefficients, objective, KKT residual, iterations and why the solver stopped.
    ridge_ : float
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
    [0.01, 0.99]
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        link: Literal["logistic", "linear"] = "logistic",
        max_bins: int = 5,
        ridge: float | Literal["auto"] = "auto",
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        criterion: Literal["gini", "entropy"] = "gini",
        min_bin_rows: int = 1,
    ) -> None:
        self.schema = schema
        self.link = link
        self.max_bins = max_bins
        self.ridge = ridge
        self.class_weight = class_weight
        self.criterion = criterion
        self.min_bin_rows = min_bin_rows

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdditiveRiskModel:
        """Fit the model to rows X and outcomes y (default: the schema's target column of X)."""
        check_link(self.link)
        training = self._read(X, y, sample_weight, self.class_weight)
        encoded = encode_rows(training, max_bins=self.max_bins, criterion=self.criterion, min_rows=self.min_bin_rows)
        design = Design.of(encoded, training)
        self.ridge_ = resolve_ridge(self.ridge, training.total)
        if self.link == "logistic":
            self.solution_ = fit_logistic(design, self.ridge_)
        else:
            self.solution_ = fit_line(design, design.pair_counts(), self.ridge_)
        link = Logistic() if self.link == "logistic" else Linear()
        part = table_part("all", encoded, design, self.solution_, link, training.schema)
        self._keep(training, [part], Alone(), [self.solution_])
        return self


def check_link(link: str) -> None:
    """Raise unless the link is one that can be fitted."""
    if link not in ("logistic", "linear"):
        raise DataError(
            f"link must be 'logistic' or 'linear', not {link!r}.{did_you_mean(link, ('logistic', 'linear'))}"
        )
