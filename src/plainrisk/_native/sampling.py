"""Rows taken at random, each with a chance of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled
from plainrisk._native.sums import contiguous

__all__ = ["sample_rows"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]
Index = npt.NDArray[np.intp]


def sample_rows(
    packs: Sequence[Codes], floors: Sequence[Floats], share: float, n_rows: int, first: int = 0
) -> tuple[Index, Floats]:
    """Return rows taken at random, and how many each of them stands for.

    Parameters
    ----------
    packs, floors : a row with code c in a pack is taken with a chance of at least the pack's ``floor[c]``
    share : the chance of a row where no floor is higher
    first : the number of the first row; what is taken depends on the rows' numbers and on nothing else

    Examples
    --------
    >>> rows, weights = sample_rows([np.array([0, 0, 0, 0, 1], np.uint8)], [np.array([0.0, 1.0])], 0.5, n_rows=5)
    >>> rows.tolist(), weights.tolist()
    ([1, 2, 4], [2.0, 2.0, 1.0])
    """
    if compiled is not None:
        rows, weights = np.empty(n_rows, np.int64), np.empty(n_rows)
        taken = compiled.sample(contiguous(packs), floors, share, first, rows, weights)
        return rows[:taken].astype(np.intp, copy=False), weights[:taken]
    chance = np.full(n_rows, share)
    for floor, pack in zip(floors, packs, strict=True):
        np.maximum(chance, floor[pack], out=chance)
    chosen = np.flatnonzero(_lots(np.arange(first, first + n_rows, dtype=np.uint64)) < chance)
    return chosen, 1.0 / chance[chosen]


def _lots(row: npt.NDArray[np.uint64]) -> Floats:
    """Numbers in [0, 1) that look random but are always the same for a row."""
    z = (row + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
