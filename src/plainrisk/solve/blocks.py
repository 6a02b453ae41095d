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

__all__ = ["Block", "Layout", "split_rows", "wide_rows"]

Floats = npt.NDArray[np.float64]

# Columns of a block that fit the processor's second-level cache together.
BLOCK_ROWS = 1 << 15
_WIDE_CODES = 1 << 18
# Arrays of 128 KB and more may be fresh memory of the system each time, which takes longer than the sums.
_HEAP_ROWS = 15 << 10
# Rows written out as a matrix at a time.
_DENSE_ROWS = 1 << 12


@dataclass(frozen=True)
class Block:
    """Some rows.

    Attributes
    ----------
    packs : arrays (n,) of small integers
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

    def widened(self) -> Block:
        """Return the rows with packs in the integers that look-ups and sums work with, for a piece that uses both."""
        wide: Any = tuple(p.astype(np.intp) for p in self.packs)
        return Block(wide, self.positive, self.weight, self.dense)

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

    def __post_init__(self) -> None:
        ends = np.cumsum([0, *(m.shape[1] for m in self.maps)])
        slices = tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))
        object.__setattr__(self, "columns", slices)

    @property
    def n_coefficients(self) -> int:
        """The number of coefficients, the intercept not counted."""
        return sum(int(m.shape[1]) for m in self.maps) + self.n_dense

    @property
    def dense_columns(self) -> slice:
        """Where the dense columns' coefficients stand."""
        return slice(self.n_coefficients - self.n_dense, self.n_coefficients)

    def scores(self, intercept: float, beta: Floats, block: Block) -> Floats:
        """Return the score of every row of a block."""
        return self.look_up(intercept, self.tables(beta), beta, block)

    def tables(self, beta: Floats) -> list[Floats]:
        """Return the score of every code of every pack."""
        return [matrix @ beta[columns] for matrix, columns in zip(self.maps, self.columns, strict=True)]

    def look_up(self, intercept: float, tables: Sequence[Floats], beta: Floats, block: Block) -> Floats:
        """Return the score of every row of a block, from the tables of the same coefficients."""
        score = np.full(len(block), intercept)
        for table, pack in zip(tables, block.packs, strict=True):
            # No code is beyond the table, and not having to look is quicker; but small integers would be copied first.
            score += table.take(pack, mode="clip") if pack.dtype == np.intp else table[pack]
        if block.dense is not None:
            score += block.dense @ beta[self.dense_columns]
        return score

    def column_sums(self, values: Floats, block: Block) -> Floats:
        """Return the sum of ``values[i] * column_j[i]`` over the rows, for every column j."""
        out = np.empty(self.n_coefficients)
        for matrix, columns, pack in zip(self.maps, self.columns, block.packs, strict=True):
            out[columns] = np.bincount(pack, values, minlength=len(matrix)) @ matrix
        if block.dense is not None:
            out[self.dense_columns] = values @ block.dense
        return out

    def gram(self, values: Floats | None, block: Block) -> Floats:
        """Return the sum of ``values[i] * column_j[i] * column_k[i]`` over the rows, for all j and k."""
        if block.dense is not None and self.n_dense:
            return self._dense_gram(values, block)
        G = np.zeros((self.n_coefficients, self.n_coefficients))

        def fill(k: int) -> None:
            """Pack k with itself and those after it. Every entry is written once."""
            map_k, columns_k, pack_k = self.maps[k], self.columns[k], block.packs[k]
            level_sums = np.bincount(pack_k, values, minlength=len(map_k))
            G[columns_k, columns_k] = map_k.T @ (level_sums[:, None] * map_k)
            wide = pack_k.astype(np.uint32)
            others = zip(self.maps[k + 1 :], self.columns[k + 1 :], block.packs[k + 1 :], strict=True)
            for map_l, columns_l, pack_l in others:
                cross = map_k.T @ pair_sums(wide, pack_l, len(map_k), len(map_l), values) @ map_l
                G[columns_k, columns_l] = cross
                G[columns_l, columns_k] = cross.T

        # One after the other: counting holds the interpreter, so threads would only wait for each other.
        for k in range(len(self.maps)):
            fill(k)
        return G

    def _dense_gram(self, values: Floats | None, block: Block) -> Floats:
        """The same by matrix products: with dense columns, these are cheaper than sums over each column's levels."""
        G = np.zeros((self.n_coefficients, self.n_coefficients))
        for start in range(0, len(block), _DENSE_ROWS):
            rows = slice(start, start + _DENSE_ROWS)
            piece = block.take(rows)
            codes = zip(self.maps, piece.packs, strict=True)
            X = np.hstack([*(matrix[pack] for matrix, pack in codes), *([] if piece.dense is None else [piece.dense])])
            G += X.T @ (X if values is None else values[rows, None] * X)
        return G


def pair_sums(
    wide: npt.NDArray[np.uint32],
    pack: npt.NDArray[np.unsignedinteger[Any]],
    n_wide: int,
    n_pack: int,
    values: Floats | None,
) -> Floats:
    """Return the sum of values over the rows for every pair of codes of two packs."""
    index = wide * np.uint32(n_pack)
    index += pack
    sums = np.bincount(index, values, minlength=n_wide * n_pack)
    return sums.reshape(n_wide, n_pack).astype(np.float64, copy=False)


def wide_rows(block: Block) -> int:
    """Return how many rows fit the cache when their packs are widened."""
    return int(np.clip(_WIDE_CODES // max(1, len(block.packs)), 1 << 12, _HEAP_ROWS))


def split_rows(block: Block, size: int = BLOCK_ROWS) -> Sequence[Block]:
    """Cut a block into blocks of at most `size` rows, without copying."""
    return list(_pieces(block, size))


def _pieces(block: Block, size: int) -> Iterator[Block]:
    for start in range(0, len(block), size):
        yield block.take(slice(start, start + size))
