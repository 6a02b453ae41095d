"""Which coefficients a feature has, and how they become its level scores.

Following Chen et al.'s Additive Risk Model:

- with a direction: one nonnegative step between each two neighbouring ordered levels (the half intervals);
  if levels outside the order occur, one free coefficient for all ordered levels together;
- without: one free coefficient per level;
- each special value, below the bound, missing: one free coefficient, outside the order.

Levels that training never saw have no coefficient.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Columns", "feature_columns"]

Floats = npt.NDArray[np.float64]

_FEW_LEVELS = 64  # of which the columns take little memory


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
    seen = weights > 0
    make = _few_columns if len(weights) <= _FEW_LEVELS else _make
    return make(seen.tobytes(), n_ordered, sign, steps)


def _make(flags: bytes, n_ordered: int, sign: int, steps: bool) -> Columns:
    """Return the columns of a feature of whose levels these were seen."""
    seen = [level for level, flag in enumerate(flags) if flag]
    inside = [level for level in seen if level < n_ordered]
    if sign == 0 and not steps:
        ranges = [(level, level + 1) for level in seen]
        return _columns(ranges, len(flags), n_free=len(ranges))
    # One indicator per half interval that training rows lie on both sides of.
    cuts = range(inside[0] + 1, inside[-1] + 1) if inside else ()
    ranges = [(0, cut) if sign < 0 else (cut, n_ordered) for cut in cuts]
    n_steps = len(ranges) if sign else 0
    outside = seen[len(inside) :]
    if inside and outside:
        ranges.append((0, n_ordered))
    ranges += [(level, level + 1) for level in outside]
    return _columns(ranges, len(flags), n_free=len(ranges) - n_steps)


# Most features look like some other.
_few_columns = functools.lru_cache(maxsize=256)(_make)


def _columns(ranges: list[tuple[int, int]], n_levels: int, n_free: int) -> Columns:
    """Return indicators of neighbouring levels, from and up to; all but the last few are steps in a direction."""
    matrix = np.zeros((n_levels, len(ranges)))
    for column, (start, stop) in enumerate(ranges):
        matrix[start:stop, column] = 1.0
    lower = np.zeros(len(ranges))
    lower[len(ranges) - n_free :] = -np.inf
    matrix.flags.writeable = lower.flags.writeable = False  # they may be kept
    return Columns(matrix, lower)
