"""Rows as small integers, and how coefficients become row scores.

The score of row i is

    intercept + sum over packs k of (matrix_k @ beta_k)[pack_k[i]] + dense[i] @ beta_dense

A *pack* holds the codes of one or several features in one small integer. Everything a solver needs of the
rows is a sum over them, so it is a sum over blocks of rows, wherever the blocks come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import COMPILED, LevelMap, Numbers, add_pair_sums, level_sums, table_room
from plainrisk.solve.threads import spread_rows
from plainrisk.threads import side_by_side

__all__ = ["BLOCK_ROWS", "Block", "Layout", "piece_rows", "split_rows"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]

# Columns of a block that fit the processor's second-level cache together.
BLOCK_ROWS = 1 << 15
_WIDE_CODES = 1 << 18
# Arrays of 128 KB and more may be fresh memory of the system each time, which takes longer than the sums.
_PIECE_ROWS = 15 << 10
_PIECES, _MOST_ROWS, _MOST_NUMBERS = 4, 1 << 16, 1 << 18
# Packs below which there are few pairs, and rows from which halves are worth a task.
_FEW_PACKS, _HALVED_ROWS = 8, 1 << 16
# Rows written out as a matrix at a time.
_DENSE_ROWS = 1 << 12
# Packs of which all pairs are summed over in little time, and their columns.
_FEW_PAIRED, _FEW_COLUMNS = 4, 512
# Numeric columns up to which a Hessian of them is made tile by tile.
_FEW_NUMBERS = 16
_DENSE_SHARES = 8


@dataclass(frozen=True)
class Block:
    """Some rows.

    Attributes
    ----------
    packs : arrays (n,) of small integers, each below the size of its pack, which nothing checks again
    positive : (n,) weight of the positive outcome
    weight : (n,) total weight, or None where every row weighs 1
    dense : (n, q) numeric columns, or None; where they are all there is, and few, they may have codes
    """

    packs: tuple[Codes, ...]
    positive: npt.NDArray[np.generic]
    weight: Floats | None = None
    dense: Floats | Numbers | None = None

    def __len__(self) -> int:
        return len(self.positive)

    @property
    def matrix(self) -> Floats | None:
        """The numeric columns, written out."""
        return None if self.dense is None else np.asarray(self.dense)

    def take(self, rows: slice | npt.NDArray[np.intp]) -> Block:
        """Return some of the rows."""
        return Block(
            tuple(p[rows] for p in self.packs),
            self.positive[rows],
            None if self.weight is None else self.weight[rows],
            None if self.dense is None else self.dense[rows],
        )


@dataclass(frozen=True)
class Layout:
    """How the p coefficients become row scores.

    Attributes
    ----------
    features : matrices (levels, columns) of 0 and 1 from a feature's coefficients to the scores of its levels
    n_dense : number of dense columns; they come last
    members : per pack, (size, features in it): the level of each feature that a code stands for. Packs hold
        neighbouring features, in their order. By default every feature is a pack of its own
    """

    features: tuple[Floats, ...]
    n_dense: int = 0
    members: tuple[npt.NDArray[np.intp], ...] | None = None

    @cached_property
    def levels(self) -> LevelMap:
        """What the packs' codes stand for."""
        alone = (np.arange(len(m))[:, None] for m in self.features)
        return LevelMap(self.features, tuple(alone) if self.members is None else self.members)

    @cached_property
    def n_coefficients(self) -> int:
        """The number of coefficients, the intercept not counted."""
        return self.levels.n_columns + self.n_dense

    def gram(self, values: Floats | None, block: Block, by_code: Sequence[Floats] | None = None) -> Floats:
        """Return the sum of ``values[i] * column_j[i] * column_k[i]`` over the rows, for all j and k; column 0 is 1.

        Without values every row counts 1. `by_code` are the sums of the values by the codes of every pack, if known.
        """
        G = np.empty((1 + self.n_coefficients, 1 + self.n_coefficients))
        G.fill(0.0)  # here and now: threads that meet fresh memory side by side wait for each other
        G[0, 0] = len(block) if values is None else values.sum()
        by_code = level_sums(values, block.packs, self.levels.sizes) if by_code is None else by_code
        dense = block.matrix
        if dense is None:
            self._add_pair_sums(values, block, by_code, G[1:, 1:])
            first = G.diagonal()[1:]  # columns are 0 or 1, and so their own squares
        else:
            by_dense = dense.sum(axis=0) if values is None else values @ dense
            first = np.concatenate([self.levels.by_column(by_code), by_dense])
            G[1:, 1:] = self._dense_gram(values, block)
        G[0, 1:] = G[1:, 0] = first
        return G

    def _add_pair_sums(self, values: Floats | None, block: Block, by_code: Sequence[Floats], out: Floats) -> None:
        """Add the sums of products of the packs' columns."""
        n_packs = len(block.packs)
        # A task is one pack with those after it. Few packs are few tasks, so then rows are halved, too.
        parts = 2 if n_packs < _FEW_PACKS and len(block) >= _HALVED_ROWS else 1
        size = -(-len(block) // parts)
        outs = [out, *(np.zeros_like(out) for _ in range(1, parts))]

        def add(tasks: Iterable[int]) -> None:
            """Every entry of a part belongs to one pack, so the order can not matter."""
            room = table_room(self.levels)
            for task in tasks:
                k, part = divmod(task, parts)
                rows = slice(part * size, (part + 1) * size)
                own = by_code[k] if part == 0 else np.zeros(len(by_code[k]))
                packs = [pack[rows] for pack in block.packs]
                add_pair_sums(None if values is None else values[rows], packs, self.levels, k, own, outs[part], room)

        spread_rows(add, range(n_packs * parts), len(block) * n_packs**2 // 16)
        for more in outs[1:]:
            out += more

    @property
    def has_few_packs(self) -> bool:
        """Whether pairs of packs and of columns are so few that summing by them takes no longer than two passes."""
        few = len(self.levels.members) <= _FEW_PAIRED and self.n_coefficients <= _FEW_COLUMNS
        return COMPILED and not self.n_dense and few

    @property
    def is_few_numbers(self) -> bool:
        """Whether rows are a few numbers each, so that a Hessian takes no longer than two passes."""
        return COMPILED and not self.features and 0 < self.n_dense <= _FEW_NUMBERS

    def _dense_gram(self, values: Floats | None, block: Block) -> Floats:
        """The sums of products by matrix products: with dense columns cheaper than sums over each column's levels."""

        def part(start: int) -> Floats:
            G = np.zeros((self.n_coefficients, self.n_coefficients))
            for first in range(start, min(start + share, len(block)), _DENSE_ROWS):
                rows = slice(first, min(first + _DENSE_ROWS, start + share))
                piece = block.take(rows)
                codes = zip(self.levels.matrices, piece.packs, strict=True)
                dense = piece.matrix
                X = np.hstack([*(matrix[pack] for matrix, pack in codes), *([] if dense is None else [dense])])
                G += X.T @ (X if values is None else values[rows, None] * X)
            return G

        # A few large shares, since each has a matrix of its own.
        share = max(_DENSE_ROWS, -(-len(block) // _DENSE_SHARES))
        G = np.zeros((self.n_coefficients, self.n_coefficients))
        for more in side_by_side(part, range(0, len(block), share), len(block)):
            G += more
        return G


def piece_rows(block: Block, n_rows: int | None = None) -> int:
    """Return how many rows of a block to work on at a time; it may be one of several, with so many rows in all."""
    if COMPILED:  # the loops have tiles of their own: a few pieces for every thread
        rows = len(block) if n_rows is None else n_rows
        return min(max(rows // _PIECES, _PIECE_ROWS), _MOST_ROWS if block.packs else _MOST_NUMBERS)
    # numpy needs room for the packs as wide integers.
    return min(max(_WIDE_CODES // max(1, len(block.packs)), 1 << 12), _PIECE_ROWS)


def split_rows(block: Block, size: int = BLOCK_ROWS) -> list[Block]:
    """Cut a block into blocks of at most `size` rows, without copying."""
    return [block] if len(block) <= size else list(_pieces(block, size))


def _pieces(block: Block, size: int) -> Iterator[Block]:
    for start in range(0, len(block), size):
        yield block.take(slice(start, start + size))
