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

from plainrisk._types import Floats

__all__ = ["Contrast", "level_contrast", "outside_contrast"]


@dataclass(frozen=True)
class Contrast:
    """The coefficients of one feature.

    Attributes
    ----------
    matrix : (levels, p), 0/1; level scores are ``matrix @ beta``
    lower : (p,), 0 for steps, minus infinity for free coefficients
    """

    matrix: Floats
    lower: Floats

    def scores(self, beta: Floats) -> Floats:
        """Return the scores of the levels, each added up from the first coefficient to the last.

        A matrix product may add in another order for some levels. Two levels with a step of 0 between them would then
        differ in the last digit, and the scores would no longer be exactly monotone.
        """
        scores = np.zeros(len(self.matrix))
        for column, coefficient in zip(self.matrix.T, beta.tolist(), strict=True):
            scores += column * coefficient
        return scores


def level_contrast(weights: Floats, n_ordered: int, sign: int, *, steps: bool = False) -> Contrast:
    """Return the coefficients of a feature whose levels have these training weights.

    With `steps` a feature without a direction has free steps between its ordered levels instead of a coefficient per
    level, so that a ridge draws neighbours together.

    >>> level_contrast(np.array([3.0, 2.0, 4.0, 0.0]), n_ordered=3, sign=1).matrix
    array([[0., 0.],
           [1., 0.],
           [1., 1.],
           [0., 0.]])
    """
    seen = np.flatnonzero(weights > 0).tolist()
    inside = [level for level in seen if level < n_ordered]
    if sign == 0 and not steps:
        return _contrast([(level, level + 1) for level in seen], len(weights), n_steps=0)
    # One indicator per half interval that training rows lie on both sides of.
    cuts = range(inside[0] + 1, inside[-1] + 1) if inside else ()
    ranges = [(0, cut) if sign < 0 else (cut, n_ordered) for cut in cuts]
    n_steps = len(ranges) if sign else 0
    outside = seen[len(inside) :]
    if inside and outside:
        ranges.append((0, n_ordered))
    ranges += [(level, level + 1) for level in outside]
    return _contrast(ranges, len(weights), n_steps)


def outside_contrast(weights: Floats, n_ordered: int) -> Contrast:
    """Return one free coefficient per level that is outside the order and was seen, for features that are lines."""
    outside = [level for level in np.flatnonzero(weights > 0).tolist() if level >= n_ordered]
    return _contrast([(level, level + 1) for level in outside], len(weights), n_steps=0)


def _contrast(ranges: list[tuple[int, int]], n_levels: int, n_steps: int) -> Contrast:
    """Return indicators of neighbouring levels, from and up to; the first few are steps in a direction."""
    matrix = np.zeros((n_levels, len(ranges)))
    for column, (start, stop) in enumerate(ranges):
        matrix[start:stop, column] = 1.0
    lower = np.full(len(ranges), -np.inf)
    lower[:n_steps] = 0.0
    return Contrast(matrix, lower)
