"""The mean logistic loss, its gradient and its Hessian, as sums over rows.

With score s_i, total weight w_i and positive weight t_i of row i, and W the sum of all w_i:

    loss     = 1/W sum_i  w_i log(1 + exp(s_i)) - t_i s_i
    gradient = 1/W sum_i (w_i p_i - t_i) x_i                p_i = 1 / (1 + exp(-s_i))
    Hessian  = 1/W sum_i  w_i p_i (1 - p_i) x_i x_i'
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plainrisk._native import LogisticPass, level_sums, logistic_pass
from plainrisk._types import Floats
from plainrisk.solve.curvature import Curvature, LowRank
from plainrisk.solve.rows import Block, Layout, Rows
from plainrisk.threads import parallel_map
from plainrisk.totals import once

__all__ = ["LogisticLoss"]

# The number of additions, one per row and pair of joint codes, up to which a Hessian uses all rows and not a sample.
_HESSIAN_BUDGET = 1.5e7
# With fewer rows per coefficient a sample is too far from the Hessian, and steps gain little.
_ROWS_PER_COEFFICIENT = 60
# In the sample, a level with fewer rows than this keeps all of them: losing a rare level loses its curvature.
_RARE = 100


@dataclass(frozen=True)
class LogisticLoss:
    """Mean logistic loss of a layout over rows; the point is (intercept, coefficients)."""

    layout: Layout
    rows: Rows

    @once
    def start(self) -> Floats:
        """The best constant model: the log odds of the base rate, no coefficients."""
        _, total, positive = self.rows.totals
        point = np.zeros(1 + self.layout.n_coefficients)
        point[0] = math.log(positive / (total - positive))
        return point

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]:
        """Return the mean loss and its gradient."""
        loss, residual, by_code, by_dense = self.rows.sum(_Slopes(*self._parameters(point)))
        total = self.rows.totals[1]
        gradient = self.layout.gather(by_code, by_dense if self.layout.n_dense else None)
        return loss / total, np.concatenate([[residual], gradient]) / total

    def hessian(self, point: Floats, *, exact: bool = False) -> Curvature:
        """Return the Hessian of all rows or, unless `exact` is set, of a sample if all rows would be expensive.

        With more coefficients than rows it is of low rank.
        """
        curvature = _Curvature(*self._parameters(point))
        if self._columns is not None:
            (by_row,) = self.rows.sum(_OfRows(curvature), whole_blocks=True)
            weight = np.concatenate(by_row) / self.rows.totals[1]
            return LowRank(np.sqrt(weight)[:, None] * self._columns, np.zeros(len(point)))
        (H,) = (self.rows if exact else self._sample).sum(_Gram(self.layout, curvature), whole_blocks=True)
        H /= self.rows.totals[1]
        return np.asarray(H)

    @once
    def _columns(self) -> Floats | None:
        """The columns of all rows, if there are more columns than rows."""
        if self.rows.totals[0] > self.layout.n_coefficients:
            return None
        (columns,) = self.rows.sum(_OfRows(self.layout.matrix), whole_blocks=True)
        return np.vstack(columns)

    def _parameters(self, point: Floats) -> tuple[float, list[Floats], Floats]:
        return float(point[0]), self.layout.tables(point[1:]), self.layout.dense_part(point[1:])

    @property
    def is_sampled(self) -> bool:
        """Whether Hessians use a sample of the rows unless they must be exact."""
        return self._sample is not self.rows

    @once
    def _sample(self) -> Rows:
        """The sample of rows for a Hessian, weighted to represent all: it affects the path, not the optimum."""
        n_rows, p = self.rows.totals[0], self.layout.n_coefficients
        n_columns = len(self.layout.matrices) + self.layout.n_dense
        sample_rows = max(_HESSIAN_BUDGET / max(1, n_columns * (n_columns + 1) // 2), _ROWS_PER_COEFFICIENT * p)
        if n_rows <= 1.5 * sample_rows:  # a sample of nearly all rows takes longer than they do
            return self.rows
        return _sampled(self.rows, self.layout, sample_rows / n_rows)


@dataclass(frozen=True)
class _Pass:
    """A pass over some rows, given the scores of their codes and the slopes of numeric columns."""

    intercept: float
    tables: list[Floats]
    slopes: Floats

    def over(self, block: Block, *, residual: bool = False, curvature: bool = False) -> LogisticPass:
        offset = None if block.dense is None else block.dense @ self.slopes
        rows = (block.codes, self.tables, block.positive, block.weight, offset)
        return logistic_pass(self.intercept, *rows, residual=residual, curvature=curvature)


class _Slopes(_Pass):
    """Sums of the loss and of its gradient; residuals are kept if numeric columns need them."""

    def __call__(self, block: Block) -> tuple[float, float, list[Floats], Floats]:
        passed = self.over(block, residual=block.dense is not None)
        by_dense = np.zeros(0)
        if block.dense is not None and passed.residual is not None:
            by_dense = passed.residual @ block.dense
        return passed.loss, passed.residual_sum, passed.by_code, by_dense


class _Curvature(_Pass):
    """The curvature of the loss at every row."""

    def __call__(self, block: Block) -> Floats:
        pieces = parallel_map(self._piece, block.pieces(), len(block))
        return np.concatenate([np.zeros(0), *pieces])

    def _piece(self, block: Block) -> Floats:
        curvature = self.over(block, residual=block.dense is not None, curvature=True).curvature
        return np.zeros(0) if curvature is None else curvature


@dataclass(frozen=True)
class _Gram:
    """Sums of products of columns, weighted by the curvature."""

    layout: Layout
    curvature: _Curvature

    def __call__(self, block: Block) -> tuple[Floats]:
        return (self.layout.gram(self.curvature(block), block),)


@dataclass(frozen=True)
class _OfRows:
    """A function's result for every row, collected in one place: for few rows."""

    function: Callable[[Block], Floats]

    def __call__(self, block: Block) -> tuple[tuple[Floats]]:
        return ((self.function(block),),)


@dataclass(frozen=True)
class _Sample:
    """Some rows of a block; see `_sampled`."""

    chances: list[Floats]
    share: float

    def __call__(self, block: Block) -> tuple[tuple[Block]]:
        chance = np.full(len(block), self.share)
        for code, least in zip(block.codes, self.chances, strict=True):
            np.maximum(chance, least[code], out=chance)
        index = np.flatnonzero(np.random.default_rng(block.number).random(len(block)) < chance)
        some = block.take(index)
        weight = 1.0 / chance[index] if some.weight is None else some.weight / chance[index]
        return ((replace(some, weight=weight),),)


@dataclass(frozen=True)
class _CodeCounts:
    """The number of rows with each code."""

    sizes: tuple[int, ...]

    def __call__(self, block: Block) -> tuple[list[Floats]]:
        return (level_sums(None, block.codes, self.sizes),)


def _sampled(rows: Rows, layout: Layout, share: float) -> Rows:
    """Return a random share of the rows, rows of rare levels more often, with weights that make up for it."""
    return Rows(rows.sum(_Sample(_chances(rows, layout, share), share), whole_blocks=True)[0])


def _chances(rows: Rows, layout: Layout, share: float) -> list[Floats]:
    """Return, per joint code, the chance that a row with each code has at least to be in the sample."""
    total = rows.totals[0]
    (by_code,) = rows.sum(_CodeCounts(layout.sizes))
    chances = []
    for counts, matrix in zip(by_code, layout.matrices, strict=True):
        # Columns have two values, centered or not; the side with fewer rows is what a sample could lose.
        above = matrix > 0.5 * (matrix.min(axis=0) + matrix.max(axis=0))
        inside = counts @ above
        rare = _RARE / np.maximum(np.minimum(inside, total - inside), 1.0)
        smaller = above == (2 * inside <= total)
        chances.append(np.clip(np.where(smaller, rare, 0.0).max(axis=1, initial=0.0), share, 1.0))
    return chances
