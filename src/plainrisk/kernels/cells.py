"""Codes of several features as one number: packs of a few levels, and cells of a whole row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.kernels.choice import compiled

__all__ = ["add_places", "cell_sums"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


def add_places(codes: Sequence[Codes], places: Sequence[Codes]) -> Codes:
    """Return ``places[0][codes[0]] + places[1][codes[1]] + ...``, of the type of the places.

    >>> add_places([np.array([0, 1, 1], np.uint8)], [np.array([7, 9], np.uint16)])
    array([7, 9, 9], dtype=uint16)
    """
    out: Codes = np.zeros(len(codes[0]), places[0].dtype)
    if compiled is not None:
        compiled.pack([np.ascontiguousarray(c) for c in codes], places, out)
        return out
    for code, place in zip(codes, places, strict=True):
        out += place[code]
    return out


def cell_sums(
    codes: Sequence[Codes], sizes: Sequence[int], positive: npt.NDArray[Any], weight: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return total and positive weight of every possible cell; those of blocks of rows add up.

    Cells are numbered as ``np.ravel_multi_index`` does.

    >>> cell_sums([np.array([0, 1, 1], np.uint8)], [2], np.array([1, 0, 1], np.uint8))
    (array([1., 2.]), array([1., 1.]))
    """
    grid = int(np.prod(sizes, dtype=np.int64))
    outcome = positive if positive.dtype == np.uint8 else positive.astype(np.float64, copy=False)
    if compiled is None:
        key = _keys(codes, sizes)
        total = np.bincount(key, weight, minlength=grid).astype(np.float64)
        return total, np.bincount(key, outcome.astype(np.float64), minlength=grid).astype(np.float64)
    strides = np.cumprod([1, *sizes[:0:-1]], dtype=np.int64)[::-1].copy()
    total, hits = np.zeros(grid), np.zeros(grid)
    mass = None if weight is None else np.ascontiguousarray(weight, np.float64)
    packs = [np.ascontiguousarray(c) for c in codes]
    compiled.cell_sums(packs, strides, np.ascontiguousarray(outcome), mass, total, hits)
    return total, hits


def _keys(codes: Sequence[Codes], sizes: Sequence[int]) -> npt.NDArray[np.uint32]:
    key = codes[0].astype(np.uint32)
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        key *= np.uint32(size)
        key += column
    return key
