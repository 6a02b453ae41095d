"""Bounded least squares from counts of pairs of levels.

    minimise  1/W sum_i (y_i - b0 - x_i' beta)^2 w_i + ridge ||beta||^2     subject to  lower <= beta <= upper

Every column of x is a 0/1 combination of levels, so all that is needed of the rows is how often each pair of
levels occurs together, and how often with the positive outcome: one pass, exact integers where rows have no
weights. Counts of disjoint rows add up; those of a fold subtract.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk._native import level_sums
from plainrisk.solve.blocks import Block, Layout
from plainrisk.solve.box import BoxedQuadratic
from plainrisk.solve.certificate import Solution, kkt_residual
from plainrisk.solve.threads import one_thread

__all__ = ["PairCounts", "count_pairs", "minimise_squares"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PairCounts:
    """How often levels, or 0/1 columns made of them, occur together.

    Attributes
    ----------
    pairs : (L, L), symmetric; int64 without weights, else float64. The diagonal holds the levels' own counts
    positives : (L,), the same for the positive outcome
    total, positive_total : over all rows
    """

    pairs: npt.NDArray[np.generic]
    positives: npt.NDArray[np.generic]
    total: float
    positive_total: float

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(
            self.pairs + other.pairs,  # type: ignore[operator]
            self.positives + other.positives,  # type: ignore[operator]
            self.total + other.total,
            self.positive_total + other.positive_total,
        )

    def __sub__(self, other: PairCounts) -> PairCounts:
        return PairCounts(
            self.pairs - other.pairs,  # type: ignore[operator]
            self.positives - other.positives,  # type: ignore[operator]
            self.total - other.total,
            self.positive_total - other.positive_total,
        )


def count_pairs(blocks: Sequence[Block], layout: Layout) -> PairCounts:
    """Count in blocks of rows how often two columns of a layout occur together: levels, or what is made of them."""
    p = layout.n_coefficients
    pairs, positives, total = np.zeros((p, p)), np.zeros(p), 0.0
    positive_total = 0.0
    for block in blocks:
        gram = layout.gram(block.weight, block)
        pairs += gram[1:, 1:]
        total += float(gram[0, 0])
        by_code = level_sums(block.positive.astype(np.float64), block.packs, layout.levels.sizes)
        positives += layout.levels.by_column(by_code)
        positive_total += float(block.positive.sum(dtype=np.float64))
    if all(b.weight is None for b in blocks):
        # Sums of ones below 2^53 are exact in float64.
        return PairCounts(pairs.astype(np.int64), positives.astype(np.int64), total, positive_total)
    return PairCounts(pairs, positives, total, positive_total)


def minimise_squares(
    gram: Floats,
    moment: Floats,
    total: float,
    *,
    ridge: float | Floats = 0.0,
    lower: Floats | None = None,
    upper: Floats | None = None,
    start: Floats | None = None,
) -> Solution:
    """Return the bounded least-squares line through a 0/1 outcome, with its certificate.

    Parameters
    ----------
    gram : (1 + p, 1 + p), sums of ``w x_j x_k`` with x_0 = 1
    moment : (1 + p,), sums of ``w y x_j``; moment[0] is the weight of the positive outcome
    total : the sum of all weights
    start : (1 + p,), optional; the solution of a nearby problem, whose bounds are tried first
    """
    p = len(moment) - 1
    penalty = np.concatenate([[0.0], np.broadcast_to(ridge, p)])
    low = np.concatenate([[-np.inf], np.full(p, -np.inf) if lower is None else lower])
    high = np.concatenate([[np.inf], np.full(p, np.inf) if upper is None else upper])
    H = 2.0 * (gram / total + np.diag(penalty))
    g0 = -2.0 * moment / total
    point = np.concatenate([[moment[0] / total], np.zeros(p)]) if start is None else np.clip(start, low, high)
    quadratic, step, iterations = BoxedQuadratic(H.copy()), np.inf, 0
    with one_thread():
        # One solve is exact but for rounding and the box solver's jitter; a few more remove what they left.
        while iterations < 10:
            iterations += 1
            d = quadratic.minimise(g0 + H @ point, low - point, high - point)
            point = np.clip(point + d, low, high)
            last, step = step, float(np.abs(d).max(initial=0.0))
            if step <= 1e-13 or step > 0.5 * last:
                break
    kkt = kkt_residual(point, g0 + H @ point, low, high)
    solved = kkt <= 1e-9 * max(1.0, float(np.abs(g0).max()))
    # sum w (y - f)^2 = sum w y - 2 moment'f + f' gram f, since y^2 = y.
    loss = float(moment[0] - 2.0 * moment @ point + point @ gram @ point) / total
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
