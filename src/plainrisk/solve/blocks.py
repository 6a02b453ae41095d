"""Rows as small integers, and how coefficients become row scores.

The score of row i is

    intercept + sum over packs k of (maps[k] @ beta[columns[k]])[pack_k[i]] + dense[i] @ beta[dense columns]

A *pack* holds the codes of one or several features in one small integer. Everything a solver needs of the
rows is a sum over them, so it is a sum over blocks of rows, wherever the blocks come from.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from plainrisk.kernels import COMPILED, add_pair_sums, level_sums, look_up
from plainrisk.solve.threads import over_rows
from plainrisk.threads import side_by_side

__all__ = ["BLOCK_ROWS", "Block", "Layout", "piece_rows", "split_rows"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]

# Columns of a block that fit the processor's second-level cache together.
BLOCK_ROWS = 1 << 15
_WIDE_CODES = 1 << 18
# Arrays of 128 KB and more may be fresh memory of the system each time, which takes longer than the sums.
_PIECE_ROWS = 15 << 10
# Rows written out as a matrix at a time.
_DENSE_ROWS = 1 << 12
_DENSE_SHARES = 8


@dataclass(frozen=True)
class Block:
    """Some rows.

    Attributes
    ----------
    packs : arrays (n,) of small integers, each below the size of its pack, which nothing checks again
    positive : (n,) weight of the positive outcome
    weight : (n,) total weight, or None where every row weighs 1
    dense : (n, q) numeric columns, or None
    """

    packs: tuple[Codes, ...]
    positive: npt.NDArray[np.generic]
    weight: Floats | None = None
    dense: Floats | None = None

    def __len__(self) -> int:
        return len(self.positive)

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
    def maps(self) -> tuple[Floats, ...]:
        """Matrices (size of a pack, number of its columns) from coefficients to the scores of its codes."""
        if self.members is None:
            return self.features
        left = iter(self.features)
        return tuple(np.hstack([next(left)[level] for level in pack.T]) for pack in self.members)

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """Where the columns of every pack stand."""
        return _slices(m.shape[1] for m in self.maps)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many codes every pack has."""
        return tuple(map(len, self.features if self.members is None else self.members))

    @cached_property
    def n_coefficients(self) -> int:
        """The number of coefficients, the intercept not counted."""
        return sum(int(m.shape[1]) for m in self.maps) + self.n_dense

    @cached_property
    def dense_columns(self) -> slice:
        """Where the dense columns' coefficients stand."""
        return slice(self.n_coefficients - self.n_dense, self.n_coefficients)

    def tables(self, beta: Floats) -> list[Floats]:
        """Return the score of every code of every pack."""
        return [matrix @ beta[columns] for matrix, columns in zip(self.maps, self.columns, strict=True)]

    def look_up(self, intercept: float, tables: Sequence[Floats], beta: Floats, block: Block) -> Floats:
        """Return the score of every row of a block, from the tables of the same coefficients."""
        score = look_up(intercept, block.packs, tables, len(block))
        if block.dense is not None:
            score += block.dense @ beta[self.dense_columns]
        return score

    def columns_from(self, by_level: Sequence[Floats], by_dense: Floats | None) -> Floats:
        """Return the sum of ``values[i] * column_j[i]`` over the rows, for every column j.

        Parameters
        ----------
        by_level : per pack, the sums of the values over the rows with each of its codes
        by_dense : those of the values times each dense column, or None where there are none
        """
        out = np.empty(self.n_coefficients)
        for matrix, columns, sums in zip(self.maps, self.columns, by_level, strict=True):
            out[columns] = sums @ matrix
        if by_dense is not None:
            out[self.dense_columns] = by_dense
        return out

    def gram(self, values: Floats | None, block: Block) -> Floats:
        """Return the sum of ``values[i] * column_j[i] * column_k[i]`` over the rows, for all j and k; column 0 is 1.

        Without values every row counts 1.
        """
        p = self.n_coefficients
        G = np.empty((1 + p, 1 + p))
        G[0, 0] = len(block) if values is None else values.sum()
        by_level = level_sums(values, block.packs, self.sizes)
        by_dense = None
        if block.dense is not None:
            by_dense = block.dense.sum(axis=0) if values is None else values @ block.dense
        G[0, 1:] = G[1:, 0] = self.columns_from(by_level, by_dense)
        G[1:, 1:] = self._pair_sums(values, block) if by_dense is None else self._dense_gram(values, block)
        return G

    def _pair_sums(self, values: Floats | None, block: Block) -> Floats:
        """The sums of products of the packs' columns."""
        out = np.zeros((self.n_coefficients, self.n_coefficients))
        members, maps = self._pack_levels

        def add(k: int) -> None:
            """Pack k with itself and those after it. Every entry belongs to one k, so the order can not matter."""
            add_pair_sums(values, block.packs, members, maps, k, out)

        for _ in over_rows(add, range(len(maps)), len(block) * len(maps) // 8):
            pass
        return out

    @cached_property
    def _pack_levels(self) -> tuple[list[npt.NDArray[np.int32]], list[Floats]]:
        """Per pack, which of its levels a code stands for, and what its levels add to its columns."""
        if self.members is None:
            alone = [np.arange(len(m), dtype=np.int32)[:, None] for m in self.features]
            return alone, [np.ascontiguousarray(m) for m in self.features]
        left = iter(self.features)
        members, maps = [], []
        for pack in self.members:
            own = list(itertools.islice(left, pack.shape[1]))
            members.append((pack + [s.start for s in _slices(map(len, own))]).astype(np.int32, order="C"))
            maps.append(block_diag(*own))
        return members, maps

    def _dense_gram(self, values: Floats | None, block: Block) -> Floats:
        """The sums of products by matrix products: with dense columns cheaper than sums over each column's levels."""

        def part(start: int) -> Floats:
            G = np.zeros((self.n_coefficients, self.n_coefficients))
            for first in range(start, min(start + share, len(block)), _DENSE_ROWS):
                rows = slice(first, min(first + _DENSE_ROWS, start + share))
                piece = block.take(rows)
                codes = zip(self.maps, piece.packs, strict=True)
                dense = [] if piece.dense is None else [piece.dense]
                X = np.hstack([*(matrix[pack] for matrix, pack in codes), *dense])
                G += X.T @ (X if values is None else values[rows, None] * X)
            return G

        # A few large shares, since each has a matrix of its own.
        share = max(_DENSE_ROWS, -(-len(block) // _DENSE_SHARES))
        G = np.zeros((self.n_coefficients, self.n_coefficients))
        for more in side_by_side(part, range(0, len(block), share), len(block)):
            G += more
        return G


def _slices(widths: Iterable[int]) -> tuple[slice, ...]:
    """Stretches of such widths, one after the other."""
    return tuple(slice(a, b) for a, b in itertools.pairwise(itertools.accumulate(widths, initial=0)))


def piece_rows(block: Block) -> int:
    """Return how many rows of a block to work on at a time."""
    # The compiled loops have tiles of their own; numpy needs room for the packs as wide integers.
    wide = _PIECE_ROWS if COMPILED else _WIDE_CODES // max(1, len(block.packs))
    return int(np.clip(wide, 1 << 12, _PIECE_ROWS))


def split_rows(block: Block, size: int = BLOCK_ROWS) -> Sequence[Block]:
    """Cut a block into blocks of at most `size` rows, without copying."""
    return list(_pieces(block, size))


def _pieces(block: Block, size: int) -> Iterator[Block]:
    for start in range(0, len(block), size):
        yield block.take(slice(start, start + size))
