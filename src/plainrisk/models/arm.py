"""The Additive Risk Model: one monotone step function per feature, added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk._native import COMPILED
from plainrisk.bins import Criterion
from plainrisk.errors import DataError, did_you_mean
from plainrisk.form import Alone, Linear, Logistic
from plainrisk.models.base import CV_FOLDS, LINE_CV_FOLDS, RiskClassifier, resolve_ridge
from plainrisk.models.fitting import (
    Design,
    Encoded,
    Penalty,
    RisksOf,
    encode_rows,
    fit_line,
    fit_logistic,
    line_path,
    logistic_path,
    table_part,
    training_risks,
)
from plainrisk.models.stream_fit import AnyRows, lay_out
from plainrisk.models.training import Training
from plainrisk.schema import Schema
from plainrisk.solve import Solution

__all__ = ["AdditiveRiskModel"]

Floats = npt.NDArray[np.float64]


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
        link: Literal["logistic", "linear"] = "logistic",
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdditiveRiskModel:
        """Fit the model to rows X and outcomes y (default: the schema's target column of X)."""
        self.fit_rows(self._read(X, y, sample_weight, self.class_weight))
        return self

    def encode(self, training: Training) -> Encoded:
        """Find the levels of every feature as a fit does, and code the rows."""
        return encode_rows(training, max_bins=self.max_bins, criterion=self.criterion, min_rows=self.min_bin_rows)

    def lay_out(self, training: AnyRows, encoded: Encoded | None = None) -> tuple[Encoded, Design]:
        """Lay out rows for the solver; `encoded` is what `encode` returns for them, if it is known."""
        return lay_out(
            training,
            max_bins=self.max_bins,
            criterion=self.criterion,
            min_rows=self.min_bin_rows,
            penalty=self.penalty,
            encoded=encoded,
        )

    def fit_rows(
        self,
        training: AnyRows,
        laid_out: tuple[Encoded, Design] | None = None,
        solution: Solution | None = None,
    ) -> Callable[[], RisksOf]:
        """Fit the model to rows that were read already; return what makes what gives their risks.

        Parameters
        ----------
        training : the rows
        laid_out, solution : what `lay_out` and `solve` return for them, if it is known
        """
        check_link(self.link)
        encoded, design = self.lay_out(training) if laid_out is None else laid_out
        self.solution_ = self.solve(design, training) if solution is None else solution
        link = Logistic() if self.link == "logistic" else Linear()
        part = table_part("all", encoded, design, self.solution_, link, training.schema)
        self._keep(training, [part], Alone(), [self.solution_])
        return partial(training_risks, design, self.solution_, link)

    def prepare(self, design: Design) -> None:
        """Have ready what `solve` asks for."""
        if self.link == "logistic" and COMPILED:
            _ = design.block, design.layout.levels.compiled

    def solve(self, design: Design, training: AnyRows) -> Solution:
        """Choose the ridge if asked, then solve."""
        counts = None
        if self.ridge == "cv" and self.link == "linear":
            self.ridge_path_, counts = line_path(design, training.outcomes(), LINE_CV_FOLDS)
        elif self.ridge == "cv":
            self.ridge_path_ = logistic_path(
                design.layout, design.cells_where, training.outcomes(), training.total, CV_FOLDS, lower=design.lower
            )
        self.ridge_ = self.ridge_path_.best if self.ridge == "cv" else resolve_ridge(self.ridge, training.total)
        if self.link == "logistic":
            return fit_logistic(design, self.ridge_)
        return fit_line(design, design.pair_counts() if counts is None else counts, self.ridge_)


def check_link(link: str) -> None:
    """Raise unless the link is one that can be fitted."""
    if link not in ("logistic", "linear"):
        raise DataError(
            f"link must be 'logistic' or 'linear', not {link!r}.{did_you_mean(link, ('logistic', 'linear'))}"
        )
