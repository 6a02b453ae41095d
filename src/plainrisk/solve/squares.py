"""Bounded least squares from sums of products.

    minimize  1/W sum_i w_i (y_i - b0 - x_i' beta)^2 + ridge ||beta||^2     subject to  lower <= beta <= upper

All that is needed of the rows is how often each pair of columns occurs together, and each with the positive outcome:
one pass. The sums of disjoint rows add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._native import level_sums
from plainrisk._types import Floats
from plainrisk.solve.box import BoxedQuadratic
from plainrisk.solve.curvature import Curvature, LowRank, add_diagonal
from plainrisk.solve.newton import Solution, kkt_residual
from plainrisk.solve.rows import Block, Layout, Rows
from plainrisk.threads import one_blas_thread

__all__ = ["Moments", "minimize_squares"]

_MOST_REFINEMENTS = 10


@dataclass(frozen=True)
class Moments:
    """Sums over rows; column 0 is the constant 1.

    Attributes
    ----------
    gram : (1 + p, 1 + p), sums of ``w x_j x_k``, the first of which is the total weight
    moment : (1 + p,), sums of ``w y x_j``; moment[0] is the weight of the positive outcome
    """

    gram: Curvature
    moment: Floats

    @classmethod
    def of(cls, layout: Layout, rows: Rows) -> Moments:
        """Add up the products of the columns of a layout over rows."""

        if rows.totals[0] <= layout.n_coefficients:
            roots, moment = rows.sum(_Products(layout, by_row=True), whole_blocks=True)
            root = np.vstack(roots)
            return cls(LowRank(root, np.zeros(root.shape[1])), moment)
        return cls(*rows.sum(_Products(layout), whole_blocks=True))

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.gram.diagonal()[0])

    def mean_squared_error(self, point: Floats) -> float:
        """Return the mean squared error of a line; y is 0 or 1, so y^2 = y."""
        return float(self.moment[0] - 2.0 * self.moment @ point + point @ (self.gram @ point)) / self.total


@dataclass(frozen=True)
class _Products:
    """Sums of products of columns with each other and with the outcome, or the rows' roots if there are few rows."""

    layout: Layout
    by_row: bool = False

    def __call__(self, block: Block) -> tuple[Any, Floats]:
        outcome = block.positive.astype(np.float64)
        by_dense = None if block.dense is None else outcome @ block.dense
        by_column = self.layout.gather(level_sums(outcome, block.codes, self.layout.sizes), by_dense)
        moment = np.concatenate([[outcome.sum()], by_column])
        if not self.by_row:
            return self.layout.gram(block.weight, block), moment
        root = self.layout.matrix(block)
        return ((root if block.weight is None else root * np.sqrt(block.weight)[:, None],), moment)


def minimize_squares(
    moments: Moments,
    *,
    ridge: float | Floats = 0.0,
    lower: Floats | None = None,
    upper: Floats | None = None,
    start: Floats | None = None,
) -> Solution:
    """Return the bounded least-squares line through a 0/1 outcome, with its certificate.

    Parameters
    ----------
    moments : Moments
    ridge : float or (p,)
    lower, upper : (p,), optional; default unbounded
    start : (1 + p,), optional; the solution of a nearby problem, whose bounds are tried first
    """
    gram, moment, total = moments.gram, moments.moment, moments.total
    p = len(moment) - 1
    penalty = np.concatenate([[0.0], np.broadcast_to(ridge, p)])
    low = np.concatenate([[-np.inf], np.full(p, -np.inf) if lower is None else lower])
    high = np.concatenate([[np.inf], np.full(p, np.inf) if upper is None else upper])
    H = add_diagonal(gram, 2.0 * penalty, 2.0 / total)
    g0 = -2.0 * moment / total
    point = np.concatenate([[moment[0] / total], np.zeros(p)]) if start is None else np.clip(start, low, high)
    quadratic, step, iterations = BoxedQuadratic(H), np.inf, 0
    with one_blas_thread():
        # One solve is exact except for rounding; a few more remove the remaining error.
        while iterations < _MOST_REFINEMENTS:
            iterations += 1
            d = quadratic.minimize(g0 + H @ point, low - point, high - point)
            point = np.clip(point + d, low, high)
            last, step = step, float(np.abs(d).max(initial=0.0))
            if step <= 1e-13 or step > 0.5 * last:
                break
    kkt = kkt_residual(point, g0 + H @ point, low, high)
    solved = kkt <= 1e-9 * max(1.0, float(np.abs(g0).max()))
    loss = moments.mean_squared_error(point)
    return Solution(
        intercept=float(point[0]),
        coefficients=point[1:],
        objective=loss + math.fsum(penalty * point**2),
        loss=loss,
        kkt=kkt,
        iterations=iterations,
        converged=solved,
        reason="optimum: the bounded quadratic problem was solved exactly"
        if solved
        else "rounding: the bounded quadratic problem is too ill-conditioned to be solved exactly",
        at_box=np.zeros(p, dtype=bool),
    )
