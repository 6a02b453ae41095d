"""Nonnegative logistic regression on the features as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.bins import Columns, feature_columns, line_levels
from plainrisk.data.frame import Frame
from plainrisk.data.spool import Spool
from plainrisk.form import Alone, Bins, Levels, Line, Logistic, Part, Shape, Table
from plainrisk.models.base import CV_FOLDS, RiskClassifier, resolve_ridge
from plainrisk.models.fitting import Encoded, center, encode_with, logistic_path
from plainrisk.models.stream_fit import AnyRows, Blocks, Chosen, learn_stream
from plainrisk.models.streams import Stream
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

    training: AnyRows
    encoded: Encoded
    columns: list[Columns]
    lines: list[int]
    scaling: _Scaling
    stored: Spool

    @classmethod
    def of(cls, training: AnyRows) -> _LineRows:
        features = training.schema.features
        names = tuple(features)
        if isinstance(training, Stream):
            levels = [finder.levels() for finder in learn_stream(training, lines=True)]
        else:
            levels = [line_levels(training.frame, n, f) for n, f in features.items()]
        lines = [j for j, lv in enumerate(levels) if isinstance(lv, Bins)]
        scaling = _Scaling.of(training, [names[j] for j in lines], [levels[j] for j in lines])
        stored = Spool()
        weights, positives = ([np.zeros(len(lv)) for lv in levels] for _ in range(2))
        for batch in training.batches(task="coding rows"):
            part = encode_with(batch, names, levels)
            for total, more in zip((*weights, *positives), (*part.weights, *part.positives), strict=True):
                total += more
            own = () if batch.weight is None else (batch.weight,)
            dense = scaling.columns(batch.frame, [part.codes[j] == 0 for j in lines])
            stored.append((*part.codes, batch.positive, *own, dense))
        encoded = Encoded(names, tuple(levels), (), tuple(weights), tuple(positives))
        columns = [
            _outside_columns(weights[j], lv.n_ordered)
            if j in lines
            else feature_columns(weights[j], lv.n_ordered, features[names[j]].sign)
            for j, lv in enumerate(levels)
        ]
        return cls(training, encoded, columns, lines, scaling, stored)

    @cached_property
    def problem(self) -> tuple[Layout, Sequence[Block], dict[str, Any]]:
        """The layout, the rows, and per coefficient: bounds, box and what multiplies the ridge."""
        used = [j for j, c in enumerate(self.columns) if c.matrix.shape[1]]
        layout = Layout(tuple(self.columns[j].matrix for j in used), len(self.lines))
        blocks = Blocks(self.stored, len(self.columns), chosen=used, dense=True)
        features = self.training.schema.features
        signs = np.array([features[self.encoded.names[j]].sign for j in self.lines])
        free = np.concatenate([np.zeros(0), *(self.columns[j].lower for j in used)])
        settings = {
            "lower": np.concatenate([free, np.where(signs > 0, 0.0, -np.inf)]),
            "upper": np.concatenate([np.full(len(free), np.inf), np.where(signs < 0, 0.0, np.inf)]),
            "box": np.concatenate([np.full(len(free), BOX), np.full(len(signs), np.inf)]),
            # In scaled units the coefficient is scale times larger, so its penalty is smaller by scale squared.
            "scale": np.concatenate([np.ones(len(free)), _inverse_square(self.scaling.scales)]),
        }
        return layout, blocks, settings

    def solve(self, ridge: float) -> Solution:
        layout, blocks, settings = self.problem
        bounds = {k: v for k, v in settings.items() if k != "scale"}
        return minimise(LogisticLoss(layout, blocks), ridge=ridge * settings["scale"], **bounds)

    def path(self, n_folds: int) -> RidgePath:
        layout, blocks, settings = self.problem
        return logistic_path(
            layout,
            lambda mask: Chosen(blocks, mask),
            self.training.outcomes(),
            self.training.total,
            n_folds,
            **settings,
        )

    def part(self, solution: Solution) -> Part:
        n_lines = len(self.lines)
        beta, scaled = np.split(solution.coefficients, [len(solution.coefficients) - n_lines])
        slopes = dict(zip(self.lines, scaled / self.scaling.scales, strict=True))
        centers = dict(zip(self.lines, self.scaling.centers, strict=True))
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
        if slope is None or not isinstance(levels, Bins):
            ordered = self.training.schema.features[name].sign != 0
            centred, mean = center(scores, weights, levels.n_ordered if ordered else 0)
            return Table(levels=levels, scores=tuple(centred), **counts), mean
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


@dataclass(frozen=True)
class _Scaling:
    """How numeric columns are centred and scaled over their measured rows.

    Each is divided by its largest number first, since sums and squares of very large numbers overflow.
    """

    names: Sequence[str]
    largest: Floats
    middles: Floats
    spreads: Floats

    @classmethod
    def of(cls, training: AnyRows, names: Sequence[str], levels: Sequence[Levels]) -> _Scaling:
        n = len(names)
        largest, weights, sums, squares, reach = (np.zeros(n) for _ in range(5))
        for j, x, _ in _measured(training, names, levels):
            largest[j] = max(largest[j], float(np.abs(x).max()))
        largest = np.where(largest < 1e-290, 0.0, largest)  # a slope per such a unit would be no number
        for j, x, w in _measured(training, names, levels):
            if largest[j]:
                weights[j] += len(x) if w is None else w.sum()
                sums[j] += (x / largest[j]).sum() if w is None else w @ (x / largest[j])
        middles = sums / np.where(weights > 0, weights, 1.0)
        for j, x, w in _measured(training, names, levels):
            if largest[j]:
                moved = x / largest[j] - middles[j]
                reach[j] = max(reach[j], float(np.abs(moved).max()))
                squares[j] += moved @ moved if w is None else w @ moved**2
        varies = reach > 1e-12
        spreads = np.sqrt(np.where(varies, squares, 0.0) / np.where(varies, weights, 1.0))
        return cls(names, largest, middles, spreads)

    @property
    def centers(self) -> Floats:
        """Where each line is 0."""
        return self.middles * self.largest

    @property
    def scales(self) -> Floats:
        """The unit of each line's coefficient; 1 where the column does not vary and is left out."""
        return np.where(self.spreads > 0, self.spreads * self.largest, 1.0)

    def columns(self, frame: Frame, measured: Sequence[npt.NDArray[np.bool_]]) -> Floats:
        """Return the scaled columns, 0 where there is no measurement: (rows, lines)."""
        out = np.zeros((frame.n_rows, len(self.names)))
        for j, (name, inside) in enumerate(zip(self.names, measured, strict=True)):
            if self.spreads[j] > 0:
                moved = frame.numbers(name)[inside] / self.largest[j] - self.middles[j]
                out[inside, j] = moved / self.spreads[j]
        return out


def _measured(
    training: AnyRows, names: Sequence[str], levels: Sequence[Levels]
) -> Iterator[tuple[int, Floats, Floats | None]]:
    """Yield, batch by batch, the measured numbers of each column and their weights."""
    for batch in training.batches(names, "measuring columns"):
        for j, (name, lv) in enumerate(zip(names, levels, strict=True)):
            inside = lv.codes(batch.frame, name) == 0
            if inside.any():
                yield j, batch.frame.numbers(name)[inside], None if batch.weight is None else batch.weight[inside]
