"""How often each level of a feature occurs, in all and with the positive outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import count_codes

__all__ = ["level_counts"]

Codes = npt.NDArray[np.unsignedinteger[Any]]
Floats = npt.NDArray[np.float64]


def level_counts(
    codes: Codes, n_levels: int, target: npt.NDArray[np.uint8], weight: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the weight of every level, and that of its rows with the positive outcome.

    Parameters
    ----------
    codes : (n,)
    target : (n,) 0/1
    weight : (n,), optional; default 1 each, and then the counts are exact

    Examples
    --------
    >>> level_counts(np.array([0, 2, 2], np.uint8), 3, np.array([1, 0, 1], np.uint8))
    (array([1., 0., 2.]), array([1., 0., 1.]))
    """
    if weight is not None:
        total, positive = (np.bincount(codes, w, minlength=n_levels) for w in (weight, weight * target))
        return total.astype(np.float64), positive.astype(np.float64)
    by_outcome = count_codes(codes, n_levels, target).astype(np.float64)
    return by_outcome.sum(axis=1), by_outcome[:, 1].copy()
