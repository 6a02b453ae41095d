"""The published way to fit, for experiments: SLSQP at its own tolerance, on features as they are.

These classifiers exist to explain where published figures come from. They are slow, and stop where SLSQP stops.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.encode import line_levels
from plainrisk.errors import PlainriskWarning
from plainrisk.estimators.arm import AdditiveRiskModel
from plainrisk.estimators.classifiers import PAPER_CLIP
from plainrisk.estimators.fitting import Design
from plainrisk.estimators.linearised import Linearised
from plainrisk.estimators.mixture import SubscaleMixture
from plainrisk.estimators.training import Training, read_training
from plainrisk.estimators.two_layer import TwoLayerRiskModel
from plainrisk.form import Bins
from plainrisk.frames import Frame, as_frame
from plainrisk.schema import Schema
from plainrisk.solve import Solution
from plainrisk.solve.reference import minimise_slsqp

__all__ = ["arm1", "arm2", "mixture", "nnlr"]

Floats = npt.NDArray[np.float64]


def arm1(schema: Schema, *, linearised: bool = False, tolerance: float = 1e-6) -> Any:
    """Return ARM1 (or LinARM1) without a ridge, balanced, fitted by SLSQP."""
    model = SlsqpRiskModel(schema, ridge=0.0, class_weight="balanced", tolerance=tolerance)
    return Linearised(model) if linearised else model


def arm2(schema: Schema) -> Any:
    """Return ARM2 without a ridge, balanced, its subscales fitted by SLSQP."""
    return TwoLayerRiskModel(SlsqpRiskModel(ridge=0.0), schema, ridge=0.0, class_weight="balanced")


def mixture(schema: Schema) -> Any:
    """Return MixLinARM1 without a ridge, balanced, its experts fitted by SLSQP."""
    experts = Linearised(SlsqpRiskModel(ridge=0.0))
    return SubscaleMixture(experts, schema, clip=PAPER_CLIP, class_weight="balanced")


def nnlr(schema: Schema, *, scaled: bool = False) -> Any:
    """Return NNLR without a ridge, balanced, fitted by SLSQP on the features as they are, or scaled first."""
    return SlsqpLines(schema, scaled=scaled)


class SlsqpRiskModel(AdditiveRiskModel):
    """An additive risk model whose coefficients are where SLSQP stops."""

    def __init__(
        self, schema: Schema | None = None, *, ridge: float = 0.0, class_weight: Any = None, tolerance: float = 1e-6
    ) -> None:
        super().__init__(schema, ridge=ridge, class_weight=class_weight)
        self.tolerance = tolerance

    def _solve(self, design: Design, training: Training) -> Solution:
        self.ridge_ = float(self.ridge)
        positive = training.positive.astype(np.float64)
        return minimise_slsqp(
            _indicators(design), positive, training.weight, ridge=self.ridge_, lower=design.lower,
            tolerance=self.tolerance,
        )  # fmt: skip


def _indicators(design: Design) -> Floats:
    """Return the dense matrix of indicators, one column per coefficient."""
    n = len(design.rows.positive)
    members = [p.members + design.offsets[list(p.features)] for p in design.packs]
    out = np.zeros((n, design.map.shape[1]))
    for pack, level in zip(design.rows.packs, members, strict=True):
        out += design.map[level].sum(axis=1)[pack]
    return out


class SlsqpLines:
    """NNLR by SLSQP: a slope per number, an effect per category and per special value."""

    def __init__(self, schema: Schema, *, scaled: bool = False) -> None:
        self.schema = schema
        self.scaled = scaled

    def fit(self, X: Any, y: Any) -> SlsqpLines:
        """Fit to rows and outcomes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            training = read_training(X, y, self.schema, None, "balanced")
        features = training.schema.features
        self.levels_ = {n: line_levels(training.frame, n, f) for n, f in features.items()}
        matrix, signs = self._matrix(training.frame)
        self.scale_ = np.where(matrix.std(axis=0) > 0, matrix.std(axis=0), 1.0) if self.scaled else 1.0
        lower, upper = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
        positive = training.positive.astype(np.float64)
        with np.errstate(all="ignore"):
            self.solution_ = minimise_slsqp(matrix / self.scale_, positive, training.weight, lower=lower, upper=upper)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both outcomes."""
        matrix, _ = self._matrix(as_frame(X))
        score = self.solution_.intercept + (matrix / self.scale_) @ self.solution_.coefficients
        risk = 1.0 / (1.0 + np.exp(-np.clip(np.nan_to_num(score), -700, 700)))
        return np.column_stack([1.0 - risk, risk])

    def _matrix(self, frame: Frame) -> tuple[Floats, Floats]:
        """Return the columns and the sign each is bound to."""
        columns, signs = [], []
        for name, levels in self.levels_.items():
            codes = levels.codes(frame, name)
            first = 0
            if isinstance(levels, Bins):
                first = levels.n_ordered
                columns.append(np.where(codes < first, frame.numbers(name), 0.0))
                signs.append(self.schema.features[name].sign)
            for code in range(first, len(levels)):
                columns.append((codes == code).astype(np.float64))
                signs.append(0)
        return np.column_stack(columns), np.array(signs)
