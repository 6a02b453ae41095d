"""Sums over rows for every pair of columns that are combinations of levels: what Hessians and lines are made of.

Rows are first summed by pairs of pack codes; then the codes that stand for the same level are added up, and the levels
become columns. Both ways agree to rounding, and exactly where values and maps are whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.kernels.choice import compiled
from plainrisk.kernels.sums import contiguous

__all__ = ["add_pair_sums"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]
Members = npt.NDArray[np.int32]


def add_pair_sums(
    values: Floats | None,
    packs: Sequence[Codes],
    members: Sequence[Members],
    maps: Sequence[Floats],
    first: int,
    out: Floats,
) -> None:
    """Add ``value * column * column`` over the rows, for the columns of one pack with those of it and all later packs.

    Parameters
    ----------
    values : (n,), or None where every row counts 1
    packs : (n,) each
    members : per pack, (size, features in it): the level that a code stands for, feature by feature
    maps : per pack, (levels, columns): what each level adds to each column
    first : which pack
    out : (columns, columns) of all packs, in one piece; entries across the diagonal are added to as well

    Examples
    --------
    >>> members, maps = [np.array([[0], [1]], np.int32)] * 2, [np.eye(2)] * 2
    >>> packs = [np.array([0, 1, 1], np.uint8), np.array([0, 0, 1], np.uint8)]
    >>> out = np.zeros((4, 4))
    >>> add_pair_sums(None, packs, members, maps, 0, out)
    >>> out
    array([[1., 0., 1., 0.],
           [0., 2., 1., 1.],
           [1., 1., 0., 0.],
           [0., 1., 0., 0.]])
    """
    if compiled is not None:
        values = None if values is None else np.ascontiguousarray(values, np.float64)
        compiled.pair_sums(values, contiguous(packs), members, maps, first, out)
        return
    ends = np.cumsum([0, *(m.shape[1] for m in maps)])
    rows, own_map = slice(ends[first], ends[first + 1]), _spread(members[first], maps[first])
    own = np.bincount(packs[first], values, minlength=len(own_map))
    out[rows, rows] += own_map.T @ (own[:, None] * own_map)
    wide = packs[first].astype(np.intp)
    for k in range(first + 1, len(packs)):
        columns, other_map = slice(ends[k], ends[k + 1]), _spread(members[k], maps[k])
        size = len(other_map)
        table = np.bincount(wide * size + packs[k], values, minlength=len(own_map) * size).reshape(-1, size)
        sums = own_map.T @ table @ other_map
        out[rows, columns] += sums
        out[columns, rows] += sums.T


def _spread(members: Members, levels: Floats) -> Floats:
    """The matrix from a pack's codes to its columns."""
    return np.asarray(levels[members].sum(axis=1))
