"""Which coefficients a feature has, and how they become its level scores.

Following Chen et al.'s Additive Risk Model:

- with a direction: one nonnegative step between each two neighbouring ordered levels (the half intervals);
  if levels outside the order occur, one free coefficient for all ordered levels together;
- without: one free coefficient per level;
- each special value, below the bound, missing: one free coefficient, outside the order.

Levels that training never saw have no coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Columns", "feature_columns"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """The coefficients of one feature.

    Attributes
    ----------
    matrix : (levels, p), 0/1; level scores are ``matrix @ beta``
    lower : (p,), 0 for steps, minus infinity for free coefficients
    """

    matrix: Floats
    lower: Floats


def feature_columns(weights: Floats, n_ordered: int, sign: int, *, steps: bool = False) -> Columns:
    """Return the columns of a feature whose levels have these training weights.

    With `steps` a feature without a direction has free steps between its ordered levels instead of a coefficient per
    level, so that a ridge draws neighbours together.

    >>> feature_columns(np.array([3.0, 2.0, 4.0, 0.0]), n_ordered=3, sign=1).matrix
    array([[0., 0.],
           [1., 0.],
           [1., 1.],
           [0., 0.]])
    """
    n = len(weights)
    seen = np.flatnonzero(weights > 0)
    if sign == 0 and not steps:
        return Columns(np.eye(n)[:, seen], np.full(len(seen), -np.inf))
    outside = seen[seen >= n_ordered]
    blocks = [_steps(weights[:n_ordered], sign, n)]
    n_steps = blocks[0].shape[1]
    if len(outside) and len(outside) < len(seen):
        blocks.append((np.arange(n) < n_ordered).astype(np.float64)[:, None])
    blocks.append(np.eye(n)[:, outside])
    matrix = np.hstack(blocks)
    lower = np.full(matrix.shape[1], -np.inf)
    lower[:n_steps] = 0.0 if sign else -np.inf
    return Columns(matrix, lower)


def _steps(ordered: Floats, sign: int, n: int) -> Floats:
    """One indicator per half interval that training rows lie on both sides of."""
    seen = np.flatnonzero(ordered > 0)
    cuts = np.arange(seen[0] + 1, seen[-1] + 1) if len(seen) else seen
    level = np.arange(n)
    inside = level < len(ordered)
    high = inside[:, None] & (level[:, None] >= cuts)
    low = inside[:, None] & (level[:, None] < cuts)
    return (low if sign < 0 else high).astype(np.float64)
