"""Sums over rows by the levels of packs: what the solvers need of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = ["contiguous", "level_sums", "look_up"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


def look_up(
    start: float, packs: Sequence[Codes], tables: Sequence[Floats], n_rows: int, out: Floats | None = None
) -> Floats:
    """Return ``start + tables[0][packs[0]] + tables[1][packs[1]] + ...``, added from left to right; in `out`, if given.

    >>> look_up(1.0, [np.array([0, 1], np.uint8)], [np.array([2.0, 4.0])], n_rows=2)
    array([3., 5.])
    """
    score = np.empty(n_rows) if out is None else out
    score.fill(start)
    if compiled is not None:
        compiled.look_up(score, contiguous(packs), tables)
        return score
    for table, pack in zip(tables, packs, strict=True):
        # No code is beyond the table, and not having to look is quicker; but small integers would be copied first.
        score += table.take(pack, mode="clip") if pack.dtype == np.intp else table[pack]
    return score


def level_sums(values: Floats | None, packs: Sequence[Codes], sizes: Sequence[int]) -> list[Floats]:
    """Return for every pack the sum of the values over the rows with each of its codes; without values, their number.

    >>> level_sums(np.array([1.0, 2.0, 4.0]), [np.array([0, 1, 0], np.uint8)], [2])
    [array([5., 2.])]
    """
    if compiled is None:
        sized = zip(packs, sizes, strict=True)
        return [np.bincount(pack, values, minlength=n).astype(np.float64, copy=False) for pack, n in sized]
    sums = [np.zeros(size) for size in sizes]
    compiled.level_sums(None if values is None else np.ascontiguousarray(values, np.float64), contiguous(packs), sums)
    return sums


def contiguous(packs: Sequence[Codes]) -> list[Codes]:
    """Return packs in one piece each."""
    return [np.ascontiguousarray(pack) for pack in packs]
