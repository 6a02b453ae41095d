"""The mean logistic loss, its gradient and its Hessian, as sums over blocks of rows.

With score s_i, total weight w_i and positive weight t_i of row i, and W the sum of all w_i:

    loss     = 1/W sum_i  w_i log(1 + exp(s_i)) - t_i s_i
    gradient = 1/W sum_i (w_i p_i - t_i) x_i                p_i = 1 / (1 + exp(-s_i))
    Hessian  = 1/W sum_i  w_i p_i (1 - p_i) x_i x_i'
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import (
    COMPILED,
    BlockHessian,
    LogisticSums,
    Problem,
    Settled,
    block_sums,
    curvatures,
    dense_newton,
    logistic_sums,
    minimise_logistic,
)
from plainrisk.solve.blocks import Block, Layout, piece_rows, split_rows
from plainrisk.solve.bounded import minimise
from plainrisk.solve.certificate import Solution
from plainrisk.solve.sampling import every, hessian_rows
from plainrisk.solve.threads import over_rows

__all__ = ["LogisticLoss", "fit_rows"]

Floats = npt.NDArray[np.float64]

# Rows times pairs of packs below which a Hessian takes no time to speak of, or compiled loops do all steps at one go.
_CHEAP, _AT_ONE_GO = 1 << 15, 1 << 18
# Packs and columns of which a row is as much work as the rest of a pass.
_FEW_COLUMNS = 8
# Pieces of rows of which each has a Hessian, and the rows of one. Arrays of 4 MB and more would be memory that the
# system has to clear first, time and again.
_PARTS, _LEAST_PART, _MOST_PART = 4, 1 << 15, 1 << 18
# A search begins on one row of so many, if that leaves enough rows for each coefficient, and enough are left out.
_THINNEST, _LEAST_STEP = 16, 8
_ROWS_TO_BEGIN = 500
_MANY_ROWS = 1 << 16
_ROUGHLY = 1e-4
# Columns of a pack beyond which a block of them is as dear as a Hessian.
_WIDE = 64


@dataclass
class _Kept:
    """What was found last.

    Attributes
    ----------
    point, all : where a loss of numbers was asked for, and its value, gradient and perhaps Hessian there
    hessian : of few packs, wherever it was
    """

    point: Floats | None = None
    all: tuple[float, Floats, Floats | None] | None = None
    hessian: Floats | None = None


@dataclass(frozen=True)
class LogisticLoss:
    """Mean logistic loss of a layout over blocks of rows; parameters are (intercept, coefficients)."""

    layout: Layout
    blocks: Sequence[Block]
    n_rows: int = field(init=False)
    total: float = field(init=False)
    total_positive: float = field(init=False)
    _kept: _Kept = field(default_factory=_Kept, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows, weights, positives = 0, [], []
        for block in self.blocks:  # which may be read from a disk
            rows += len(block)
            weights.append(len(block) if block.weight is None else float(block.weight.sum()))
            positives.append(float(block.positive.sum(dtype=np.float64)))
        object.__setattr__(self, "n_rows", rows)
        object.__setattr__(self, "total", math.fsum(weights))
        object.__setattr__(self, "total_positive", math.fsum(positives))

    @property
    def start(self) -> Floats:
        """The best constant model: the log odds of the base rate, no coefficients."""
        rate = self.total_positive / self.total
        point = np.zeros(1 + self.layout.n_coefficients)
        point[0] = math.log(rate / (1.0 - rate))
        return point

    def thinned(self, step: int) -> LogisticLoss:
        """Return the loss of one row in so many."""
        return LogisticLoss(self.layout, [every(block, step) for block in self.blocks])

    def value_and_gradient(self, point: Floats, *, bent: bool = True) -> tuple[float, Floats]:
        """Return the mean loss and its gradient; `bent` says that the Hessian will be asked for, too."""
        if self.layout.is_few_numbers:
            return self._of_numbers(point, bent)[:2]

        def sums(piece: Block) -> LogisticSums:
            return logistic_sums(point, piece.packs, levels, piece.positive, piece.weight, piece.matrix)

        levels = self.layout.levels
        found: LogisticSums | None = None
        for block in self.blocks:
            for more in over_rows(sums, split_rows(block, piece_rows(block)), len(block)):
                found = more if found is None else found + more
        return (0.0, np.zeros(len(point))) if found is None else (found.loss / self.total, found.gradient / self.total)

    def hessian(self, point: Floats, *, whole: bool = False) -> Floats:
        """Return the Hessian of all rows, or an estimate of it from a sample where that would cost much."""
        if self.layout.is_few_numbers:
            return np.array(self._of_numbers(point, bent=True)[2])
        H: Floats | None = None
        of_block = self._hessian_of_pieces if self.layout.has_few_packs else self._hessian_of
        for block in self.blocks if whole else self._hessian_rows:
            more = of_block(point, block)
            H = more if H is None else np.add(H, more, out=H)
        H = np.zeros((len(point), len(point))) if H is None else np.divide(H, self.total, out=H)
        if self.layout.has_few_packs:
            self._kept.hessian = H.copy()
        return H

    def _hessian_of(self, point: Floats, block: Block) -> Floats:
        def fill(start: int) -> list[Floats]:
            piece = block.take(slice(start, start + size))
            return curvatures(point, piece.packs, levels, bend[start : start + size], piece.weight, piece.matrix)

        levels, bend, size = self.layout.levels, np.empty(len(block)), piece_rows(block)
        work = len(block) * (len(block.packs) + self.layout.n_dense) // _FEW_COLUMNS
        found = over_rows(fill, range(0, max(1, len(block)), size), work)
        return self.layout.gram(bend, block, functools.reduce(_added, found))

    def _hessian_of_pieces(self, point: Floats, block: Block) -> Floats:
        """The same where a Hessian is small: every piece of the rows has one of its own."""

        def of_piece(piece: Block) -> Floats:
            bend = np.empty(len(piece))
            by_code = curvatures(point, piece.packs, self.layout.levels, bend, piece.weight)
            return self.layout.gram(bend, piece, by_code)

        pieces = split_rows(block, min(max(len(block) // _PARTS, _LEAST_PART), _MOST_PART))
        return functools.reduce(np.add, over_rows(of_piece, pieces, len(block)))

    def _of_numbers(self, point: Floats, bent: bool) -> tuple[float, Floats, Floats | None]:
        """Return loss, gradient and if wanted the Hessian, which is had with them; the last one is kept."""

        def of_piece(piece: Block) -> tuple[LogisticSums, Floats | None]:
            return dense_newton(point, piece.dense, piece.positive, piece.weight, bent=bent)  # type: ignore[arg-type]

        kept = self._kept
        is_there = kept.all is not None and kept.point is not None and np.array_equal(kept.point, point)
        if kept.all is None or not is_there or (bent and kept.all[2] is None):
            found, H = LogisticSums(0.0, np.zeros(len(point))), np.zeros((len(point), len(point)))
            for pieces in self._pieces:
                for sums, more in over_rows(of_piece, pieces, sum(map(len, pieces))):
                    found, H = found + sums, H if more is None else H + more
            kept.all = found.loss / self.total, found.gradient / self.total, H / self.total if bent else None
            kept.point = point.copy()
        return kept.all

    @property
    def _pieces(self) -> Iterable[list[Block]]:
        """All rows, cut up for threads: those in memory once and for all, others block by block as they are read."""
        if isinstance(self.blocks, list):
            return [self._pieces_in_memory]
        return (split_rows(block, piece_rows(block)) for block in self.blocks)

    @cached_property
    def _pieces_in_memory(self) -> list[Block]:
        return [piece for block in self.blocks for piece in split_rows(block, piece_rows(block, self.n_rows))]

    @cached_property
    def cheap(self) -> bool:
        """Whether a Hessian takes hardly longer than a gradient: since rows are few, or with it."""
        return self._size <= _CHEAP or self.layout.is_few_numbers

    @cached_property
    def moderate(self) -> bool:
        """Whether a Hessian takes about as long as two gradients, since packs are few."""
        return self.layout.has_few_packs

    @cached_property
    def _size(self) -> int:
        return self.n_rows * (len(self.layout.levels.members) + self.layout.n_dense) ** 2

    @cached_property
    def small(self) -> bool:
        """Whether compiled loops can do all steps at one go: rows are few, in memory, all levels or all numbers."""
        alike = not self.layout.n_dense or not self.layout.features
        few = self._size <= _AT_ONE_GO or (self.layout.is_few_numbers and self.n_rows < _MANY_ROWS)
        return COMPILED and few and alike and len(self.blocks) == 1

    def settle(self, start: Floats, problem: Problem) -> Settled | None:
        """Return the minimum if it can be had at one go."""
        if not self.small:
            return None
        rows = self.blocks[0]
        levels = self.layout.levels
        return minimise_logistic(start, rows.packs, levels, rows.positive, rows.weight, rows.dense, self.total, problem)

    @property
    def last_hessian(self) -> Floats | None:
        """The last Hessian, if it is small, and so kept."""
        return self._kept.hessian

    def in_blocks(self, ridge: Floats) -> BlockHessian | None:
        """Return a Hessian in blocks, one for each pack, if the whole one is dear and the rows are at hand."""
        levels = self.layout.levels
        packs_only = self.layout.n_dense == 0 and len(levels.widths) > 0
        if not packs_only or max(levels.widths) > _WIDE or self.cheap or len(self.blocks) > 1:
            return None
        rows = self.blocks[0]
        border, blocks = block_sums(rows.weight, rows.packs, levels)
        rate = self.total_positive / self.total
        bend = rate * (1.0 - rate)
        border *= bend / self.total
        blocks.entries[:] *= bend / self.total
        return BlockHessian(np.array([bend]), border, blocks, 2.0 * ridge)

    @cached_property
    def _hessian_rows(self) -> Sequence[Block]:
        return hessian_rows(self.layout, self.blocks, self.n_rows)

    @property
    def sampled(self) -> bool:
        """Whether Hessians are of some of the rows."""
        return self._hessian_rows is not self.blocks


def _added(some: list[Floats], more: list[Floats]) -> list[Floats]:
    return [a + b for a, b in zip(some, more, strict=True)]


def fit_rows(loss: LogisticLoss, **problem: Any) -> Solution:
    """Minimise the loss as `minimise` does; where rows are many, from where some of them have their minimum.

    The first steps are long and need no more rows than that; the last ones, and so the optimum, are of all rows.
    """
    n_rows, p = loss.n_rows, loss.layout.n_coefficients
    step = min(_THINNEST, n_rows // (_ROWS_TO_BEGIN * (1 + p)))
    if step < _LEAST_STEP or n_rows < _MANY_ROWS:
        return minimise(loss, **problem)
    few = loss.thinned(step)
    if not 0 < few.total_positive < few.total:
        return minimise(loss, **problem)
    near = minimise(few, **problem, tolerance=_ROUGHLY, polish=False)
    start = np.concatenate([[near.intercept], near.coefficients])
    return minimise(loss, **problem, start=start, hessian=few.last_hessian)
