"""Rows as small integers, and how coefficients become row scores.

The score of row i is

    intercept + sum over packs k of (maps[k] @ beta[columns[k]])[pack_k[i]] + dense[i] @ beta[dense columns]

A *pack* holds the codes of one or several features in one small integer. Everything a solver needs of the
rows is a sum over them, so it is a sum over blocks of rows, wherever the blocks come from.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.kernels import COMPILED, level_sums, look_up, pair_sums
from plainrisk.solve.threads import over_rows
from plainrisk.threads import side_by_side

__all__ = ["BLOCK_ROWS", "Block", "Layout", "piece_rows", "split_rows"]

Floats = npt.NDArray[np.float64]

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

    packs: tuple[npt.NDArray[np.unsignedinteger[Any]], ...]
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
    maps : matrices (size of pack k, number of its columns)
    n_dense : number of dense columns; they come last
    """

    maps: tuple[Floats, ...]
    n_dense: int = 0
    columns: tuple[slice, ...] = field(init=False)
    sizes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        ends = np.cumsum([0, *(m.shape[1] for m in self.maps)])
        slices = tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))
        object.__setattr__(self, "columns", slices)
        object.__setattr__(self, "sizes", tuple(map(len, self.maps)))

    @property
    def n_coefficients(self) -> int:
        """The number of coefficients, the intercept not counted."""
        return sum(int(m.shape[1]) for m in self.maps) + self.n_dense

    @property
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

    def gram(self, values: Floats | None, block: Block, by_level: Sequence[Floats] | None = None) -> Floats:
        """Return the sum of ``values[i] * column_j[i] * column_k[i]`` over the rows, for all j and k.

        `by_level` are the sums of the values over the rows with each code of every pack, if they are known.
        """
        if block.dense is not None and self.n_dense:
            return self._dense_gram(values, block)
        G = np.zeros((self.n_coefficients, self.n_coefficients))
        own = level_sums(values, block.packs, self.sizes) if by_level is None else by_level

        def fill(k: int) -> None:
            """Pack k with itself and those after it. Every entry is written once."""
            map_k, columns_k = self.maps[k], self.columns[k]
            G[columns_k, columns_k] = map_k.T @ (own[k][:, None] * map_k)
            later = slice(k + 1, None)
            sums = pair_sums(values, block.packs[k], len(map_k), block.packs[later], self.sizes[later])
            for map_l, columns_l, by_pair in zip(self.maps[later], self.columns[later], sums, strict=True):
                cross = map_k.T @ by_pair @ map_l
                G[columns_k, columns_l] = cross
                G[columns_l, columns_k] = cross.T

        for _ in over_rows(fill, range(len(self.maps)), len(block) * len(self.maps) // 8):
            pass
        return G

    def _dense_gram(self, values: Floats | None, block: Block) -> Floats:
        """The same by matrix products: with dense columns, these are cheaper than sums over each column's levels."""

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
