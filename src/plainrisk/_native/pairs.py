"""Sums over rows for every pair of columns that are combinations of levels: what Hessians and lines are made of.

Rows are first summed by pairs of pack codes; then the codes that stand for the same level are added up, and the levels
become columns. Both ways agree to rounding, and exactly where values and maps are whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled
from plainrisk._native.levels import LevelMap
from plainrisk._native.sums import contiguous, level_sums

__all__ = ["Blocks", "add_pair_sums", "block_sums", "table_room"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


# Numbers for which room is kept: enough for packs of 256 codes. Those that need more get it for the time being.
_MOST_ROOM = 3 << 16


def table_room(levels: LevelMap) -> Floats:
    """Return room for the tables of pairs of packs."""
    size = max(levels.sizes, default=1)
    left = iter(levels.features)
    packs = [[next(left).shape for _ in range(pack.shape[1])] for pack in levels.members]
    wide = max((max(map(sum, zip(*shapes, strict=True))) for shapes in packs), default=1)
    return np.empty(min(2 * max(size, wide) * size + wide * size + 2 * wide**2, _MOST_ROOM))


def add_pair_sums(
    values: Floats | None,
    packs: Sequence[Codes],
    levels: LevelMap,
    first: int,
    own: Floats,
    out: Floats,
    room: Floats,
) -> None:
    """Add ``value * column * column`` over the rows, for the columns of one pack with those of it and all later packs.

    Parameters
    ----------
    values : (n,), or None where every row counts 1
    packs : (n,) each
    levels : what their codes stand for
    first : which pack
    own : (size,), the sums of the values by its codes
    out : (columns, columns) of all packs, each row in one piece; entries across the diagonal are added to as well
    room : for tables, from `table_room`; the same one may serve for all packs, since fresh memory costs time

    Examples
    --------
    >>> levels = LevelMap((np.eye(2), np.eye(2)), (np.array([[0], [1]]), np.array([[0], [1]])))
    >>> packs = [np.array([0, 1, 1], np.uint8), np.array([0, 0, 1], np.uint8)]
    >>> out = np.zeros((4, 4))
    >>> add_pair_sums(None, packs, levels, 0, np.array([1.0, 2.0]), out, table_room(levels))
    >>> out
    array([[1., 0., 1., 0.],
           [0., 2., 1., 1.],
           [1., 1., 0., 0.],
           [0., 1., 0., 0.]])
    """
    if compiled is not None:
        values = None if values is None else np.ascontiguousarray(values, np.float64)
        compiled.pair_sums(values, contiguous(packs), levels.compiled, first, own, out, room)
        return
    matrix, rows = levels.matrices[first], levels.columns[first]
    out[rows, rows] += matrix.T @ (own[:, None] * matrix)
    wide = packs[first].astype(np.intp)
    for k in range(first + 1, len(packs)):
        other, columns = levels.matrices[k], levels.columns[k]
        key = wide * len(other) + packs[k]
        table = np.bincount(key, values, minlength=len(matrix) * len(other)).reshape(-1, len(other))
        both = matrix.T @ table @ other
        out[rows, columns] += both
        out[columns, rows] += both.T


@dataclass(frozen=True)
class Blocks:
    """Square matrices of neighbouring columns, one after the other.

    Attributes
    ----------
    widths : (k,) the number of columns of each
    entries : (sum of widths^2,)
    """

    widths: npt.NDArray[np.int64]
    entries: Floats

    @classmethod
    def of(cls, widths: Sequence[int]) -> Blocks:
        """Return matrices of zeros."""
        return cls(np.array(widths, np.int64), np.zeros(sum(width**2 for width in widths)))

    def __iter__(self) -> Iterator[Floats]:
        ends = np.cumsum(self.widths**2).tolist()
        for width, end in zip(self.widths.tolist(), ends, strict=True):
            yield self.entries[end - width**2 : end].reshape(width, width)


def block_sums(values: Floats | None, packs: Sequence[Codes], levels: LevelMap) -> tuple[Floats, Blocks]:
    """Return the sums of ``value * column``, and of ``value * column * column`` for the columns of the same pack.

    Parameters are those of `add_pair_sums`.

    Examples
    --------
    >>> levels = LevelMap((np.eye(2), np.tri(2)), (np.array([[0], [1]]), np.array([[0], [1]])))
    >>> packs = [np.array([0, 1, 1], np.uint8), np.array([0, 0, 1], np.uint8)]
    >>> sums, blocks = block_sums(None, packs, levels)
    >>> sums
    array([1., 2., 3., 1.])
    >>> [block.tolist() for block in blocks]
    [[[1.0, 0.0], [0.0, 2.0]], [[3.0, 1.0], [1.0, 1.0]]]
    """
    blocks = Blocks.of(levels.widths)
    if compiled is not None:
        sums = np.zeros(levels.n_columns)
        weights = None if values is None else np.ascontiguousarray(values, np.float64)
        compiled.block_sums(weights, contiguous(packs), levels.compiled, sums, blocks.widths, blocks.entries)
        return sums, blocks
    by_code = level_sums(values, packs, levels.sizes)
    for block, matrix, sums in zip(blocks, levels.matrices, by_code, strict=True):
        block += matrix.T @ (sums[:, None] * matrix)
    return levels.by_column(by_code), blocks
