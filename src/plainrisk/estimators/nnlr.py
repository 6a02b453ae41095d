"""Nonnegative logistic regression on the features as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.encode import Columns, feature_columns, line_levels
from plainrisk.estimators.base import CV_FOLDS, RiskClassifier, resolve_ridge
from plainrisk.estimators.fitting import center, encode_with, logistic_path
from plainrisk.estimators.training import Training
from plainrisk.form import Alone, Bins, Line, Logistic, Part, Shape, Table
from plainrisk.schema import Schema
from plainrisk.solve import BOX, Block, Layout, LogisticLoss, RidgePath, Solution, minimise

__all__ = ["NonnegativeLogisticRegression"]

Floats = npt.NDArray[np.float64]


class NonnegativeLogisticRegression(RiskClassifier):
    r"""Logistic regression whose coefficients have the signs the schema states (NNLR).

    .. math:: \min_\beta \frac1M \sum_j L(\sigma(\beta_0 + \beta^T x_j), y_j) + \text{ridge} \sum_i \beta_i^2
              \quad\text{s.t. } \beta_i \ge 0 \text{ if increasing},\ \beta_i \le 0 \text{ if decreasing}

    Features enter unbinned. They are scaled inside, so that the solver converges whatever the units, and the
    coefficients and the ridge are in the user's units. What the schema calls special, values below its bound,
    missing values and categories get an effect each.

    Parameters
    ----------
    schema : Schema, optional
    ridge : float, "auto" or "cv", default=0.0
        "auto" is 1/(2M); "cv" chooses it by cross validation inside fit.
    class_weight : None, "balanced" or dict, default=None

    Attributes
    ----------
    coef_ : (1, number of continuous features), per unit of the feature
    intercept_ : (1,), the log odds where every continuous feature is 0 (and no other level applies)
    form_, solution_, fit_record_, classes_ : as in AdditiveRiskModel
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        ridge: float | Literal["auto", "cv"] = 0.0,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
    ) -> None:
        self.schema = schema
        self.ridge = ridge
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NonnegativeLogisticRegression:
        """Fit the model to rows X and outcomes y (default: the schema's target column of X)."""
        training = self._read(X, y, sample_weight, self.class_weight)
        rows = _LineRows.of(training)
        if self.ridge == "cv":
            self.ridge_path_ = rows.path(CV_FOLDS)
        self.ridge_ = self.ridge_path_.best if self.ridge == "cv" else resolve_ridge(self.ridge, training.total)
        self.solution_ = rows.solve(self.ridge_)
        part = rows.part(self.solution_)
        lines = [shape for shape in part.shapes.values() if isinstance(shape, Line)]
        self.coef_ = np.array([[line.slope for line in lines]])
        self.intercept_ = np.array([part.intercept - sum(line.slope * line.center for line in lines)])
        self._keep(training, [part], Alone(), [self.solution_])
        return self


@dataclass(frozen=True)
class _LineRows:
    """Rows with scaled numeric columns, and levels for what is not a measurement.

    The coefficients of the levels come first, feature by feature; those of the lines, in scaled units, last.
    """

    training: Training
    encoded: Any
    columns: list[Columns]
    lines: list[int]
    centers: Floats
    scales: Floats
    dense: Floats

    @classmethod
    def of(cls, training: Training) -> _LineRows:
        names = tuple(training.schema.features)
        levels = [line_levels(training.frame, n, f) for n, f in training.schema.features.items()]
        encoded = encode_with(training, names, levels)
        lines = [j for j, lv in enumerate(levels) if isinstance(lv, Bins)]
        columns = [
            _outside_columns(encoded.weights[j], lv.n_ordered)
            if j in lines
            else feature_columns(encoded.weights[j], lv.n_ordered, training.schema.features[names[j]].sign)
            for j, lv in enumerate(levels)
        ]
        moments = [_scaled(training, names[j], encoded.codes[j] == 0) for j in lines]
        centers, scales = (np.array([m[k] for m in moments]) for k in (1, 2))
        dense = np.column_stack([m[0] for m in moments]) if moments else np.zeros((len(training.target), 0))
        return cls(training, encoded, columns, lines, centers, scales, dense)

    @cached_property
    def problem(self) -> tuple[Layout, Block, dict[str, Any]]:
        """The layout, the rows, and per coefficient: bounds, box and what multiplies the ridge."""
        used = [j for j, c in enumerate(self.columns) if c.matrix.shape[1]]
        layout = Layout(tuple(self.columns[j].matrix for j in used), self.dense.shape[1])
        packs = tuple(self.encoded.codes[j] for j in used)
        block = Block(packs, self.training.positive, self.training.weight, self.dense)
        features = self.training.schema.features
        signs = np.array([features[self.encoded.names[j]].sign for j in self.lines])
        free = np.concatenate([np.zeros(0), *(self.columns[j].lower for j in used)])
        settings = {
            "lower": np.concatenate([free, np.where(signs > 0, 0.0, -np.inf)]),
            "upper": np.concatenate([np.full(len(free), np.inf), np.where(signs < 0, 0.0, np.inf)]),
            "box": np.concatenate([np.full(len(free), BOX), np.full(len(signs), np.inf)]),
            # In scaled units the coefficient is scale times larger, so its penalty is smaller by scale squared.
            "scale": np.concatenate([np.ones(len(free)), _inverse_square(self.scales)]),
        }
        return layout, block, settings

    def solve(self, ridge: float) -> Solution:
        layout, block, settings = self.problem
        bounds = {k: v for k, v in settings.items() if k != "scale"}
        return minimise(LogisticLoss(layout, [block]), ridge=ridge * settings["scale"], **bounds)

    def path(self, n_folds: int) -> RidgePath:
        layout, block, settings = self.problem
        return logistic_path(layout, block, self.training.target, self.training.total, n_folds, **settings)

    def part(self, solution: Solution) -> Part:
        n_lines = len(self.lines)
        beta, scaled = np.split(solution.coefficients, [len(solution.coefficients) - n_lines])
        slopes = dict(zip(self.lines, scaled / self.scales, strict=True))
        centers = dict(zip(self.lines, self.centers, strict=True))
        intercept, shapes, at = solution.intercept, {}, 0
        for j, name in enumerate(self.encoded.names):
            n_columns = self.columns[j].matrix.shape[1]
            scores = self.columns[j].matrix @ beta[at : at + n_columns]
            at += n_columns
            shapes[name], mean = self._shape(j, name, scores, slopes.get(j), centers.get(j))
            intercept += mean
        return Part(name="all", intercept=float(intercept), shapes=shapes, link=Logistic())

    def _shape(
        self, j: int, name: str, scores: Floats, slope: float | None, middle: float | None
    ) -> tuple[Shape, float]:
        weights, levels = self.encoded.weights[j], self.encoded.levels[j]
        counts = {"weights": tuple(weights.tolist()), "positives": tuple(self.encoded.positives[j].tolist())}
        if slope is None:
            ordered = self.training.schema.features[name].sign != 0
            centred, mean = center(scores, weights, levels.n_ordered if ordered else 0)
            return Table(levels=levels, scores=tuple(centred.tolist()), **counts), mean
        # The line is 0 at its center, so levels never seen (score 0) are neutral already.
        line = Line(
            slope=float(slope),
            center=float(middle or 0.0),
            levels=levels,
            scores=tuple(scores.tolist()),
            **counts,
        )
        return line, 0.0


def _inverse_square(scales: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.minimum(1.0 / scales / scales, 1e100)


def _outside_columns(weights: Floats, n_line: int) -> Columns:
    """The columns of a line's levels: one for each that is outside the order and was seen."""
    outside = [k for k in np.flatnonzero(weights > 0) if k >= n_line]
    return Columns(np.eye(len(weights))[:, outside], np.full(len(outside), -np.inf))


def _scaled(training: Training, name: str, measured: npt.NDArray[np.bool_]) -> tuple[Floats, float, float]:
    """Return a feature centred and scaled over its measured rows, 0 elsewhere, with center and scale."""
    x = training.frame.numbers(name)
    weight = training.weight
    weight = measured.astype(np.float64) if weight is None else weight * measured
    if weight.sum() == 0:
        return np.zeros(len(x)), 0.0, 1.0
    largest = float(np.abs(x[weight > 0]).max())
    if largest < 1e-290:  # a slope per such a unit would be no number
        return np.zeros(len(x)), 0.0, 1.0
    # Divide first: sums and squares of very large numbers overflow.
    parts = np.where(measured, x / largest, 0.0)
    middle = float(np.average(parts, weights=weight))
    moved = np.where(measured, parts - middle, 0.0)
    if np.abs(moved[weight > 0]).max() <= 1e-12:
        return np.zeros(len(x)), middle * largest, 1.0
    scale = float(np.sqrt(np.average(moved**2, weights=weight)))
    return moved / scale, middle * largest, scale * largest
