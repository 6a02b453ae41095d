"""The published way to fit, for experiments: SLSQP at its own tolerance, on features as they are.

These classifiers exist to explain where published figures come from. They are slow, and stop where SLSQP stops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame, as_frame
from plainrisk.form import ALPHA_STAR, Linear, Link, Logistic
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.classifiers import PAPER_CLIP
from plainrisk.models.fitting import Design
from plainrisk.models.linearised import Linearised
from plainrisk.models.mixture import SubscaleMixture
from plainrisk.models.stream_fit import AnyRows
from plainrisk.models.training import read_training
from plainrisk.models.two_layer import TwoLayerRiskModel
from plainrisk.schema import Schema
from plainrisk.solve import Solution
from plainrisk.solve.reference import minimise_slsqp

__all__ = ["arm1", "arm2", "mixture", "nnlr"]

Floats = npt.NDArray[np.float64]


def arm1(schema: Schema, *, linearised: bool = False, steps: int = 100) -> Any:
    """Return ARM1 (or LinARM1) without a ridge, balanced, fitted by SLSQP."""
    model = SlsqpRiskModel(schema, class_weight="balanced", steps=steps)
    return Linearised(model) if linearised else model


def arm2(schema: Schema, *, linearised: bool = False, steps: int = 100) -> Any:
    """Return ARM2 (or LinARM2) without a ridge, balanced, its subscales fitted by SLSQP."""
    model = TwoLayerRiskModel(SlsqpRiskModel(steps=steps), schema, ridge=0.0, class_weight="balanced")
    return Linearised(model) if linearised else model


def mixture(schema: Schema, *, linearised: bool = False, steps: int = 100) -> Any:
    """Return MixARM1 (or MixLinARM1) without a ridge, balanced, its experts fitted by SLSQP."""
    expert = SlsqpRiskModel(steps=steps)
    experts = Linearised(expert) if linearised else expert
    return SubscaleMixture(experts, schema, clip=PAPER_CLIP, class_weight="balanced")


def nnlr(schema: Schema, *, scaled: bool = False, linearised: bool = False, steps: int = 100) -> Any:
    """Return NNLR (or LinNNLR) without a ridge, balanced, by SLSQP on the features as they are, or scaled first."""
    return SlsqpLines(schema, scaled=scaled, linearised=linearised, steps=steps)


class SlsqpRiskModel(AdditiveRiskModel):
    """An additive risk model whose coefficients are where SLSQP stops."""

    def __init__(
        self, schema: Schema | None = None, *, ridge: float = 0.0, class_weight: Any = None, steps: int = 100
    ) -> None:
        super().__init__(schema, ridge=ridge, class_weight=class_weight)
        self.steps = steps

    def solve(self, design: Design, training: AnyRows) -> Solution:
        self.ridge_ = float(self.ridge)
        rows = training.in_memory
        positive = rows.positive.astype(np.float64)
        return minimise_slsqp(
            _indicators(design), positive, rows.weight, ridge=self.ridge_, lower=design.lower,
            max_iterations=self.steps,
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
    """NNLR by SLSQP: a slope per number, codes for missing values among the numbers, an effect per category."""

    def __init__(self, schema: Schema, *, scaled: bool = False, linearised: bool = False, steps: int = 100) -> None:
        self.schema = schema
        self.scaled = scaled
        self.link: Link = Linear.from_alpha(ALPHA_STAR) if linearised else Logistic()
        self.steps = steps

    def fit(self, X: Any, y: Any) -> SlsqpLines:
        """Fit to rows and outcomes."""
        training = read_training(X, y, self.schema, None, "balanced")
        self.categories_ = {
            name: training.frame.labels(name).labels
            for name, feature in self.schema.features.items()
            if feature.kind == "categorical"
        }
        matrix, signs = self._matrix(training.frame)
        spread = matrix.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1.0) if self.scaled else np.ones(matrix.shape[1])
        lower, upper = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
        positive = training.positive.astype(np.float64)
        with np.errstate(all="ignore"):
            self.solution_ = minimise_slsqp(
                matrix / self.scale_, positive, training.weight, lower=lower, upper=upper, max_iterations=self.steps
            )
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both outcomes."""
        matrix, _ = self._matrix(as_frame(X))
        score = self.solution_.intercept + (matrix / self.scale_) @ self.solution_.coefficients
        risk = self.link.value(np.clip(np.nan_to_num(score), -700, 700))
        return np.column_stack([1.0 - risk, risk])

    def _matrix(self, frame: Frame) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Return the columns and the sign each is bound to."""
        columns, signs = [], []
        for name, feature in self.schema.features.items():
            if name in self.categories_:
                found = frame.labels(name)
                text = np.array([*found.labels, None], dtype=object)[found.codes]
                columns += [(text == label).astype(np.float64) for label in self.categories_[name]]
                signs += [0] * len(self.categories_[name])
            else:
                codes = [*(v for v in feature.special_values if isinstance(v, int | float)), feature.lower_bound or 0.0]
                numbers = frame.numbers(name)
                columns.append(np.where(np.isnan(numbers), codes[0], numbers))
                signs.append(feature.sign)
        return np.column_stack(columns), np.array(signs)
