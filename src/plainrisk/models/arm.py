"""The Additive Risk Model: one monotone step function per feature, added up; and the one driver that fits it.

`fit_layer` fits a one-layer model wherever it stands: alone, as an expert, in a fold, on a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.bins import Criterion, level_contrast
from plainrisk.checks import Allowed, number, whole, words
from plainrisk.form import Alone, Levels, Linear, Logistic, Part
from plainrisk.models.base import CLASS_WEIGHT, PartScores, RiskClassifier
from plainrisk.models.crossval import stratified_folds
from plainrisk.models.design import Design, code_rows, learn_levels, table_part
from plainrisk.models.training import TrainingRows
from plainrisk.schema import Schema
from plainrisk.solve import BOX, Layout, LogisticLoss, Moments, Rows, Solution, minimise, minimise_squares

__all__ = [
    "LAYER",
    "RIDGE",
    "RIDGE_TIMES_ROWS",
    "AdditiveRiskModel",
    "LayerFit",
    "LayerSettings",
    "LinkName",
    "Penalty",
    "Problem",
    "RidgePath",
    "choose_ridge",
    "fit_layer",
    "solve_layer",
]

LinkName = Literal["logistic", "linear"]
Penalty = Literal["levels", "steps"]
Ridge = float | Literal["auto", "cv"]

# Folds that choose the ridge: of a logistic fit, which visits the rows for each; and of a line, whose folds are small
# tables that cost next to nothing.
_CV_FOLDS: Mapping[str, int] = {"logistic": 5, "linear": 10}
# The path in units of ridge times total weight; "auto" is 0.5 there.
RIDGE_TIMES_ROWS = (0.05, 0.15, 0.5, 1.5, 5.0, 15.0, 50.0, 150.0, 500.0)

RIDGE = words("auto", "cv") | number(at_least=0)
# What the parameters of a one-layer fit may be.
LAYER: Mapping[str, Allowed] = {
    "link": words(*get_args(LinkName)),
    "max_bins": whole(1),
    "ridge": RIDGE,
    "penalty": words(*get_args(Penalty)),
    "class_weight": CLASS_WEIGHT,
    "criterion": words(*get_args(Criterion)),
    "min_bin_rows": whole(1),
}

Fit = Callable[[float, Floats | None], Solution]  # from a ridge and a start
Judge = Callable[[Floats], float]  # from (intercept, coefficients) to a held-out loss


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

    allowed: ClassVar[Mapping[str, Allowed]] = LAYER

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


@dataclass(frozen=True)
class LayerSettings:
    """How a one-layer model is fitted; the parameters of `AdditiveRiskModel` of the same names."""

    link: LinkName = "logistic"
    max_bins: int = 5
    ridge: Ridge = "auto"
    penalty: Penalty = "levels"
    criterion: Criterion = "gini"
    min_bin_rows: int = 1


@dataclass(frozen=True)
class LayerFit:
    """A fitted layer.

    Attributes
    ----------
    part : the additive part
    solution, ridge, ridge_path : what the solver found; the path is None unless the ridge was chosen by folds
    design : the problem it solved
    """

    part: Part
    solution: Solution
    ridge: float
    ridge_path: RidgePath | None
    design: Design


def fit_layer(training: TrainingRows, settings: LayerSettings) -> LayerFit:
    """Find the levels, code the rows, solve, and centre the shapes."""
    levels = learn_levels(
        training, max_bins=settings.max_bins, criterion=settings.criterion, min_rows=settings.min_bin_rows
    )
    design = make_design(training, levels, settings.penalty)
    problem = Problem(settings.link, design.layout, design.coded.rows, design.cells, lower=design.lower)
    solution, ridge, path = solve_layer(problem, settings.ridge, training)
    link = Logistic() if settings.link == "logistic" else Linear()
    signs = {name: feature.sign for name, feature in training.schema.features.items()}
    return LayerFit(table_part("all", design, solution, link, signs), solution, ridge, path, design)


def make_design(training: TrainingRows, levels: Mapping[str, Levels], penalty: Penalty) -> Design:
    """Code the rows with these levels, and choose the coefficients of every feature."""
    coded = code_rows(training, levels)
    features = [training.schema.features[name] for name in coded.names]
    contrasts = tuple(
        level_contrast(w, lv.n_ordered, f.sign, steps=penalty == "steps" and f.kind == "continuous")
        for w, lv, f in zip(coded.weights, coded.levels, features, strict=True)
    )
    return Design(coded, contrasts)


@dataclass(frozen=True)
class Problem:
    """A bounded fit of a layout to rows, by logistic loss or by least squares.

    Attributes
    ----------
    link : "logistic" minimises the mean log loss, "linear" the mean squared error
    rows, cells : all rows, and the same as weighted cells if they are known
    lower, upper, box : bounds of the coefficients; see `plainrisk.solve.minimise`
    scale : what the ridge is multiplied by, for all coefficients or each
    """

    link: LinkName
    layout: Layout
    rows: Rows
    cells: Rows | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    box: float | Floats = BOX
    scale: float | Floats = 1.0

    def solve(self, ridge: float, start: Floats | None = None) -> Solution:
        """Minimise the loss plus ``ridge * scale * beta^2``."""
        rows, penalty = self.rows if self.cells is None else self.cells, ridge * self.scale
        if self.link == "linear":
            moments = Moments.of(self.layout, rows)
            return minimise_squares(moments, ridge=penalty, lower=self.lower, upper=self.upper, start=start)
        loss = LogisticLoss(self.layout, rows)
        return minimise(loss, ridge=penalty, lower=self.lower, upper=self.upper, box=self.box, start=start)

    def where(self, mask: Bools) -> Problem:
        """Return the same fit to some of the rows."""
        return replace(self, rows=self.rows.where(mask), cells=None)

    def loss(self, point: Floats) -> float:
        """Return the mean loss at a point."""
        if self.link == "linear":
            return Moments.of(self.layout, self.rows).mean_squared_error(point)
        return LogisticLoss(self.layout, self.rows).value_and_gradient(point)[0]


def solve_layer(problem: Problem, ridge: Ridge, training: TrainingRows) -> tuple[Solution, float, RidgePath | None]:
    """Choose the ridge if asked, then solve; return the solution, the ridge and the path it was chosen on."""
    path = None
    if ridge == "cv":
        path = _ridge_path(problem, training)
        number = path.best
    else:
        number = resolve_ridge(ridge, training.total)
    return problem.solve(number), number, path


def _ridge_path(problem: Problem, training: TrainingRows) -> RidgePath:
    fold_of = stratified_folds(training.outcomes(), _CV_FOLDS[problem.link])
    folds = []
    for k in range(int(fold_of.max()) + 1):
        inside, held_out = problem.where(fold_of != k), problem.where(fold_of == k)
        folds.append((inside.solve, held_out.loss))
    return choose_ridge(folds, training.total)


def resolve_ridge(ridge: float | Literal["auto"], total: float) -> float:
    """Return the ridge as a number: "auto" is 1/(2M), M the total weight."""
    return 1.0 / (2.0 * total) if ridge == "auto" else float(ridge)


@dataclass(frozen=True)
class RidgePath:
    """What cross validation saw.

    Attributes
    ----------
    ridges : (r,)
    losses : (folds, r) held-out mean loss
    best : the ridge with the least mean loss; the stronger one of equals
    """

    ridges: Floats
    losses: Floats
    best: float

    def __repr__(self) -> str:
        return f"RidgePath(best {self.best:.3g} of {len(self.ridges)}, held-out loss {self.mean.min():.6g})"

    @property
    def mean(self) -> Floats:
        """The curve: the mean held-out loss of each ridge."""
        return np.asarray(self.losses.mean(axis=0))


def choose_ridge(folds: Sequence[tuple[Fit, Judge]], total: float) -> RidgePath:
    """Return the path of held-out losses and the best ridge on it.

    Parameters
    ----------
    folds : per fold, how to fit without it and how to judge on it; a fit starts from the solution of a stronger ridge
    total : total training weight; the path's numbers are divided by it
    """
    ridges = np.asarray(RIDGE_TIMES_ROWS) / total
    losses = np.empty((len(folds), len(ridges)))
    for k, (fit, judge) in enumerate(folds):
        point: Floats | None = None
        for j in reversed(range(len(ridges))):
            point = fit(float(ridges[j]), point).point
            losses[k, j] = judge(point)
    mean = losses.mean(axis=0)
    best = len(mean) - 1 - int(np.argmin(mean[::-1]))  # the last of the least: among equals the stronger ridge
    return RidgePath(ridges, losses, float(ridges[best]))
