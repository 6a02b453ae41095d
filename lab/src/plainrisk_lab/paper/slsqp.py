"""The paper's way of fitting: scipy's SLSQP, at its own tolerance and limit of steps, on a dense matrix.

These classifiers exist to explain where the published figures come from. They are slow, and stop where SLSQP does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.optimize import Bounds, minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight

import plainrisk as pr
from plainrisk._types import Array, Bools, Floats
from plainrisk.data.frame import Frame, as_frame
from plainrisk.form import Linear, Logistic, Table

__all__ = ["SlsqpLines", "SlsqpRiskModel", "SlsqpSolution", "arm1", "arm2", "minimize_slsqp", "mixture", "nnlr"]


@dataclass(frozen=True)
class SlsqpSolution:
    """Where SLSQP stopped: the point, its objective, the number of steps, and whether it says it converged."""

    intercept: float
    coefficients: Floats
    objective: float
    iterations: int
    converged: bool
    reason: str


def minimize_slsqp(
    X: Floats,
    positive: Floats,
    weight: Floats | None = None,
    *,
    ridge: float = 0.0,
    lower: Floats | None = None,
    upper: Floats | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> SlsqpSolution:
    """Minimize mean log loss + ridge ||beta||^2 under bounds with scipy's SLSQP; the defaults are scipy's."""
    n, p = X.shape
    w = np.ones(n) if weight is None else weight
    A = np.column_stack([np.ones(n), X])
    penalty = np.concatenate([[0.0], np.full(p, ridge)])
    low = np.concatenate([[-np.inf], np.full(p, -np.inf) if lower is None else lower])
    high = np.concatenate([[np.inf], np.full(p, np.inf) if upper is None else upper])

    def objective(point: Floats) -> tuple[float, Floats]:
        score = A @ point
        probability = 1.0 / (1.0 + np.exp(-np.clip(score, -700, 700)))
        loss = (w @ np.logaddexp(0.0, score) - positive @ score) / w.sum()
        gradient = A.T @ (w * probability - positive) / w.sum()
        return float(loss + penalty @ point**2), gradient + 2.0 * penalty * point

    result = minimize(
        objective,
        np.zeros(p + 1),
        jac=True,
        method="SLSQP",
        bounds=Bounds(low, high),
        options={"ftol": tolerance, "maxiter": max_iterations},
    )
    value = objective(result.x)[0]
    return SlsqpSolution(
        float(result.x[0]), result.x[1:], value, int(result.nit), bool(result.success), str(result.message)
    )


# ---- the classifiers of the plans


def arm1(schema: pr.Schema, *, linearised: bool = False, steps: int = 100) -> Any:
    """Return ARM1 (or LinARM1) without a ridge, balanced, fitted by SLSQP."""
    model = SlsqpRiskModel(schema, class_weight="balanced", steps=steps)
    return pr.Linearised(model) if linearised else model


def arm2(schema: pr.Schema, *, linearised: bool = False, steps: int = 100) -> Any:
    """Return ARM2 (or LinARM2) without a ridge, balanced, its subscales fitted by SLSQP."""
    model = pr.make_classifier("ARM2", schema, paper=True).set_params(estimator=SlsqpRiskModel(steps=steps))
    return pr.Linearised(model) if linearised else model


def mixture(schema: pr.Schema, *, linearised: bool = False, steps: int = 100) -> Any:
    """Return MixARM1 (or MixLinARM1) without a ridge, balanced, its experts fitted by SLSQP."""
    expert = SlsqpRiskModel(steps=steps)
    experts = pr.Linearised(expert) if linearised else expert
    return pr.make_classifier("MixARM1", schema, paper=True).set_params(estimator=experts)


def nnlr(schema: pr.Schema, *, scaled: bool = False, linearised: bool = False, steps: int = 100) -> Any:
    """Return NNLR (or LinNNLR) without a ridge, balanced, by SLSQP on the features as they are, or scaled first."""
    return SlsqpLines(schema, scaled=scaled, linearised=linearised, steps=steps)


class SlsqpRiskModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An additive risk model: the bins of ours, and the coefficients where SLSQP stops.

    Parameters
    ----------
    schema : Schema
    ridge : float, default=0.0
    class_weight : None or "balanced", default=None
    steps : int, default=100
    """

    def __init__(
        self, schema: pr.Schema | None = None, *, ridge: float = 0.0, class_weight: Any = None, steps: int = 100
    ) -> None:
        self.schema = schema
        self.ridge = ridge
        self.class_weight = class_weight
        self.steps = steps

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SlsqpRiskModel:
        """Fit to rows and outcomes."""
        # Our optimum is of no use here, but its form has the bins, and the training weight of every level.
        ours = pr.AdditiveRiskModel(self.schema, class_weight=self.class_weight, min_bin_rows=1).fit(
            X, y, sample_weight
        )
        self.classes_ = ours.classes_
        part: Any = ours.form_.parts[0]
        columns = {name: _level_columns(table, ours.form_.schema.features[name]) for name, table in part.shapes.items()}
        frame = as_frame(X)
        rows = [c.matrix[part.shapes[name].levels.codes(frame, name)] for name, c in columns.items()]
        weight = _row_weight(y, sample_weight, self.class_weight)
        self.result_ = minimize_slsqp(
            np.column_stack(rows),
            weight * (np.asarray(y) == self.classes_[1]),
            weight,
            ridge=self.ridge,
            lower=np.concatenate([c.lower for c in columns.values()]),
            max_iterations=self.steps,
        )
        self.form_ = msgspec.structs.replace(ours.form_, parts=(self._part(part, columns),))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both outcomes."""
        risk = self.form_.risk(X)
        return np.column_stack([1.0 - risk, risk])

    def _part(self, part: Any, columns: dict[str, _Columns]) -> Any:
        """Return the part with SLSQP's scores, each shape centered on its training mean."""
        intercept, start, shapes = self.result_.intercept, 0, {}
        for name, c in columns.items():
            scores = c.matrix @ self.result_.coefficients[start : start + len(c.lower)]
            start += len(c.lower)
            weights = np.array(part.shapes[name].weights)
            mean = float(weights @ scores / weights.sum())
            intercept += mean
            shapes[name] = msgspec.structs.replace(
                part.shapes[name], scores=tuple(np.where(c.known, scores - mean, 0.0).tolist())
            )
        return msgspec.structs.replace(part, intercept=float(intercept), shapes=shapes)


class _Columns(NamedTuple):
    """The coefficients of a feature: level scores are ``matrix @ beta``; a level that is not known is neutral."""

    matrix: Floats
    lower: Floats
    known: Bools


def _level_columns(table: Table, feature: pr.Feature) -> _Columns:
    """Return the coefficients of a feature.

    A feature with a direction has a nonnegative step between each two neighboring ordered levels, and a free
    coefficient for all of them together if special levels occur; any other level has a free one.
    """
    estimable = np.array(table.weights) > 0
    seen, ordered = np.flatnonzero(estimable), table.levels.n_ordered if feature.sign else 0
    inside, outside = seen[seen < ordered], seen[seen >= ordered]
    cuts = range(inside[0] + 1, inside[-1] + 1) if len(inside) else ()
    steps = [(0, cut) if feature.sign < 0 else (cut, ordered) for cut in cuts]
    free = [(0, ordered)] if len(inside) and len(outside) else []
    free += [(level, level + 1) for level in outside]
    matrix = np.zeros((len(table.weights), len(steps) + len(free)))
    for column, (start, stop) in enumerate([*steps, *free]):
        matrix[start:stop, column] = 1.0
    estimable[:ordered] |= len(inside) > 0
    return _Columns(matrix, np.array([0.0] * len(steps) + [-np.inf] * len(free)), estimable)


class SlsqpLines(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """NNLR by SLSQP: a slope per number, codes for missing values among the numbers, an effect per category.

    Parameters
    ----------
    schema : Schema
    scaled : bool, default=False
        Divide every column by its standard deviation first.
    linearised : bool, default=False
    steps : int, default=100
    """

    def __init__(self, schema: pr.Schema, *, scaled: bool = False, linearised: bool = False, steps: int = 100) -> None:
        self.schema = schema
        self.scaled = scaled
        self.linearised = linearised
        self.steps = steps

    def fit(self, X: Any, y: Any) -> SlsqpLines:
        """Fit to rows and outcomes."""
        frame, target = as_frame(X), np.asarray(y)
        self.classes_ = np.unique(target)
        features = self.schema.features.items()
        self.categories_ = {name: frame.labels(name).labels for name, f in features if f.kind == "categorical"}
        matrix, signs = self._matrix(frame)
        spread = matrix.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1.0) if self.scaled else np.ones(matrix.shape[1])
        lower, upper = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
        weight = _row_weight(target, None, "balanced")
        with np.errstate(all="ignore"):
            self.result_ = minimize_slsqp(
                matrix / self.scale_,
                weight * (target == self.classes_[1]),
                weight,
                lower=lower,
                upper=upper,
                max_iterations=self.steps,
            )
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both outcomes."""
        matrix, _ = self._matrix(as_frame(X))
        score = self.result_.intercept + (matrix / self.scale_) @ self.result_.coefficients
        link = Linear.from_alpha(pr.ALPHA_STAR) if self.linearised else Logistic()
        risk = link.value(np.clip(np.nan_to_num(score), -700, 700))
        return np.column_stack([1.0 - risk, risk])

    def _matrix(self, frame: Frame) -> tuple[Floats, Array]:
        """Return the columns and the sign each is bound to."""
        columns, signs = [], []
        for name, feature in self.schema.features.items():
            if name in self.categories_:
                column = frame.labels(name)
                text = np.array([*column.labels, None], dtype=object)[column.codes]
                columns += [(text == label).astype(np.float64) for label in self.categories_[name]]
                signs += [0] * len(self.categories_[name])
            else:
                codes = [*(v for v in feature.special_values if isinstance(v, int | float)), feature.lower_bound or 0.0]
                numbers = frame.numbers(name)
                columns.append(np.where(np.isnan(numbers), codes[0], numbers))
                signs.append(feature.sign)
        return np.column_stack(columns), np.array(signs)


def _row_weight(y: Any, sample_weight: Any, class_weight: Any) -> Floats:
    if sample_weight is not None:
        return np.asarray(sample_weight, dtype=np.float64)
    return np.asarray(compute_sample_weight(class_weight, np.asarray(y)), dtype=np.float64)
