"""The mean logistic loss, its gradient and its Hessian, as sums over blocks of rows.

With score s_i, total weight w_i and positive weight t_i of row i, and W the sum of all w_i:

    loss     = 1/W sum_i  w_i log(1 + exp(s_i)) - t_i s_i
    gradient = 1/W sum_i (w_i p_i - t_i) x_i                p_i = 1 / (1 + exp(-s_i))
    Hessian  = 1/W sum_i  w_i p_i (1 - p_i) x_i x_i'
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.kernels import LogisticSums, curvature, level_sums, logistic_sums
from plainrisk.solve.blocks import Block, Layout, piece_rows, split_rows
from plainrisk.solve.bounded import minimise
from plainrisk.solve.certificate import Solution
from plainrisk.solve.threads import over_rows

__all__ = ["LogisticLoss", "fit_rows"]

Floats = npt.NDArray[np.float64]

# Row-pair visits a Hessian may cost before it is taken from a sample of the rows.
_HESSIAN_BUDGET = 2.5e7
_DENSE_ROWS = 1 << 17
_FEW_ROWS = 1 << 15
# Rows times pairs of packs below which a Hessian takes no time to speak of.
_CHEAP = 1 << 15
# A sample of fewer rows than this per coefficient is too far from the Hessian: steps then gain little each.
_ROWS_PER_COEFFICIENT = 100
# A search begins on one row of so many, if that leaves enough rows for each coefficient, and enough are left out.
_THINNEST, _LEAST_STEP = 16, 8
_ROWS_TO_BEGIN = 500
_MANY_ROWS = 1 << 16
_ROUGHLY = 1e-4
# In the sample, a level with fewer rows than this keeps them all: losing a rare level loses its curvature.
_RARE = 100


@dataclass(frozen=True)
class LogisticLoss:
    """Mean logistic loss of a layout over blocks of rows; parameters are (intercept, coefficients)."""

    layout: Layout
    blocks: Sequence[Block]
    total: float = field(init=False)
    total_positive: float = field(init=False)

    def __post_init__(self) -> None:
        total = math.fsum(len(b) if b.weight is None else float(b.weight.sum()) for b in self.blocks)
        positive = math.fsum(float(b.positive.sum(dtype=np.float64)) for b in self.blocks)
        object.__setattr__(self, "total", total)
        object.__setattr__(self, "total_positive", positive)

    @property
    def start(self) -> Floats:
        """The best constant model: the log odds of the base rate, no coefficients."""
        rate = self.total_positive / self.total
        point = np.zeros(1 + self.layout.n_coefficients)
        point[0] = math.log(rate / (1.0 - rate))
        return point

    def thinned(self, step: int) -> LogisticLoss:
        """Return the loss of one row in so many."""
        return LogisticLoss(self.layout, [_every(block, step) for block in self.blocks])

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]:
        """Return the mean loss and its gradient."""

        def sums(piece: Block) -> LogisticSums:
            return logistic_sums(point, piece.packs, levels, piece.positive, piece.weight, piece.dense)

        levels = self.layout.levels
        found = LogisticSums(0.0, np.zeros(len(point)))
        for block in self.blocks:
            found = functools.reduce(
                operator.add, over_rows(sums, split_rows(block, piece_rows(block)), len(block)), found
            )
        return found.loss / self.total, found.gradient / self.total

    def hessian(self, point: Floats) -> Floats:
        """Return the Hessian, or an estimate of it from a sample where the exact one would cost much."""
        H = np.zeros((len(point), len(point)))
        layout, tables = self.layout, self.layout.levels.tables(point[1:])

        def bends(piece: Block) -> Floats:
            return curvature(layout.look_up(point, tables, piece))

        for block, inverse_chance in self._hessian_rows:
            pieces = split_rows(block, piece_rows(block))
            bend = np.concatenate(list(over_rows(bends, pieces, len(block))))
            if block.weight is not None:
                bend *= block.weight
            bend *= inverse_chance
            H += layout.gram(bend, block)
        return H / self.total

    @cached_property
    def cheap(self) -> bool:
        """Whether a Hessian takes hardly longer than a gradient, since rows and packs are few."""
        return sum(map(len, self.blocks)) * (len(self.layout.levels.members) + self.layout.n_dense) ** 2 <= _CHEAP

    @cached_property
    def _hessian_rows(self) -> list[tuple[Block, Floats | float]]:
        """The rows a Hessian is taken of, and how many each of them stands for."""
        n_columns = len(self.layout.levels.members) + self.layout.n_dense
        n_rows = sum(map(len, self.blocks))
        wanted = _HESSIAN_BUDGET / max(1, n_columns * (n_columns + 1) // 2)
        if self.layout.n_dense:
            wanted = max(wanted / 10, _DENSE_ROWS)  # products of numbers take longer than sums by level
        wanted = max(wanted, _ROWS_PER_COEFFICIENT * self.layout.n_coefficients)
        if not self.layout.features:  # no level could be lost: any rows will do
            step = int(n_rows / min(wanted, max(_FEW_ROWS, _ROWS_TO_BEGIN * n_columns)))
            return [(_every(block, max(1, step)), float(max(1, step))) for block in self.blocks]
        if n_rows <= wanted:
            return [(block, 1.0) for block in self.blocks]
        rng = np.random.default_rng(0)  # the sample shapes the path to the optimum, not the optimum
        share = wanted / n_rows
        floors = self._chances_by_level(share)
        return [_sample(block, share, floors, rng) for block in self.blocks]

    def _chances_by_level(self, share: float) -> list[Floats]:
        """The chance a row must at least have to be in the sample, by the level it has in each pack."""
        counts = [np.zeros(size) for size in self.layout.levels.sizes]
        for block in self.blocks:
            for count, more in zip(counts, level_sums(None, block.packs, self.layout.levels.sizes), strict=True):
                count += more
        # What is rare is a column (a level of one feature), not a pack code (a combination of levels).
        chances = []
        for count, matrix in zip(counts, self.layout.levels.matrices, strict=True):
            inside = matrix != 0
            rows = count @ inside
            # The smaller side of a column is what a sample could lose.
            side = inside == (2 * rows <= count.sum())
            rare = np.where(side, _RARE / np.maximum(np.minimum(rows, count.sum() - rows), 1.0), 0.0)
            chances.append(np.clip(rare.max(axis=1, initial=0.0), share, 1.0))
        return chances


def fit_rows(loss: LogisticLoss, **problem: Any) -> Solution:
    """Minimise the loss as `minimise` does; where rows are many, from where some of them have their minimum.

    The first steps are long and need no more rows than that; the last ones, and so the optimum, are of all rows.
    """
    n_rows, p = sum(map(len, loss.blocks)), loss.layout.n_coefficients
    step = min(_THINNEST, n_rows // (_ROWS_TO_BEGIN * (1 + p)))
    if step < _LEAST_STEP or n_rows < _MANY_ROWS:
        return minimise(loss, **problem)
    few = loss.thinned(step)
    if not 0 < few.total_positive < few.total:
        return minimise(loss, **problem)
    near = minimise(few, **problem, tolerance=_ROUGHLY, polish=False)
    return minimise(loss, **problem, start=np.concatenate([[near.intercept], near.coefficients]))


def _every(block: Block, step: int) -> Block:
    taken = block.take(slice(None, None, step))
    columns = (taken.positive, taken.weight, taken.dense)
    positive, weight, dense = (None if c is None else np.ascontiguousarray(c) for c in columns)
    packs = tuple(np.ascontiguousarray(pack) for pack in taken.packs)
    return Block(packs, positive, weight, dense)  # type: ignore[arg-type]


def _sample(block: Block, share: float, floors: list[Floats], rng: np.random.Generator) -> tuple[Block, Floats | float]:
    chance = np.full(len(block), share)
    for floor, pack in zip(floors, block.packs, strict=True):
        if floor.max(initial=0.0) > share:
            np.maximum(chance, floor[pack], out=chance)
    rows = np.flatnonzero(rng.random(len(block)) < chance)
    return block.take(rows), 1.0 / chance[rows]
