"""Pairs of features: coarse levels, the evidence for a pair, and coefficients that keep directions by bounds alone.

The evidence compares, in the cells of a coarse table of two features, the residuals r = sum(y - p) of a fitted model
with their variance w = sum(p (1 - p)): with a normal prior of precision 2 on every cell,

    z = (sum r^2 / (w + 2) - df) / sqrt(2 df + 1),      df = sum w / (w + 2)

The largest of m values that chance makes is about sqrt(2 ln m).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Bools, Codes, Floats
from plainrisk.bins.coding import Contrast, code_type
from plainrisk.bins.edges import Histogram, fine_edges

__all__ = ["Axis", "chance_level", "coarse_axis", "pair_contrast", "pair_gain", "silent_cells"]

# Ordered levels of a feature in a pair, at most; and the precision of a cell in the evidence for a pair.
_COARSE, _PRECISION = 3, 2.0


@dataclass(frozen=True)
class Axis:
    """The coarse levels of one feature of a pair.

    Attributes
    ----------
    coarse : (levels,) the coarse level of each of the feature's levels
    n_ordered : how many coarse levels are in the order; the others follow
    size : how many there are
    sign : the feature's direction
    neutral : coarse levels in which the pair adds nothing
    """

    coarse: Codes
    n_ordered: int
    size: int
    sign: int
    neutral: tuple[int, ...] = ()


def coarse_axis(weights: Floats, n_ordered: int, sign: int, *, ordered: bool) -> Axis:
    """Group the levels of a feature: ordered ones into three of about equal weight, heavy ones alone.

    Of categories without an order the three heaviest stand alone, and the others together. Grouping them by what the
    model says of them would put residuals of one sign together, and chance would look like evidence. Levels outside the
    order stay as they are.

    >>> coarse_axis(np.array([5.0, 5, 5, 5, 20, 3]), 5, 0, ordered=True).coarse
    array([0, 0, 1, 1, 2, 3], dtype=uint8)
    >>> coarse_axis(np.array([5.0, 9, 1, 2, 20, 3]), 5, 0, ordered=False).coarse
    array([2, 1, 3, 3, 0, 4], dtype=uint8)
    """
    coarse = np.empty(len(weights), np.intp)
    inside = weights[:n_ordered]
    if ordered:
        seen = np.flatnonzero(inside > 0)
        h = Histogram(seen.astype(np.float64), np.ones(len(seen), np.int64), inside[seen], np.zeros(len(seen)))
        coarse[:n_ordered] = np.searchsorted(fine_edges(h, _COARSE), np.arange(n_ordered))
    else:
        coarse[np.argsort(-inside, kind="stable")] = np.minimum(np.arange(n_ordered), _COARSE)
    n = int(coarse[:n_ordered].max(initial=-1)) + 1
    coarse[n_ordered:] = n + np.arange(len(weights) - n_ordered)
    size = n + len(weights) - n_ordered
    return Axis(coarse.astype(code_type(size)), n, size, sign)


def pair_gain(residual: Floats, weight: Floats) -> tuple[float, float]:
    """Return the evidence z for a pair, and what it may take off the summed log loss, given sums by cell."""
    df = float((weight / (weight + _PRECISION)).sum())
    excess = float((residual**2 / (weight + _PRECISION)).sum()) - df
    return excess / math.sqrt(2.0 * df + 1.0), 0.5 * excess


def chance_level(n_pairs: int) -> float:
    """Return the evidence that the best of this number of pairs reaches by chance."""
    return math.sqrt(2.0 * math.log(max(n_pairs, 2)))


def pair_contrast(first: Axis, second: Axis, weights: Floats) -> Contrast:
    """Return the coefficients of a pair of features, over the cells of its table, row by row.

    Where no feature has a direction, one for each cell. Where one has, a step of that feature for each level of the
    other. Where both have: risk that builds up, [u beyond a and v beyond b], and risk for which either suffices,
    [u beyond a or v beyond b]. Steps are at least 0, so every sum of them is monotone. Levels outside an order have
    steps, or effects, of their own.

    Parameters
    ----------
    weights : (cells,) training weight of every cell; coefficients that no row has are left out
    """
    columns = [*_free(first, second), *_steps(first, second)]
    silent = silent_cells(first, second)
    weights = np.where(silent, 0.0, weights)
    matrix = np.array([cells.ravel() for cells, _ in columns], dtype=np.float64).reshape(len(columns), -1).T
    lower = np.array([low for _, low in columns])
    inside = weights @ matrix
    used = (inside > 0) & (inside < weights.sum())
    matrix, lower = matrix[:, used], lower[used]
    # Centred on the training rows, so that shrinking draws cells to the mean, not to the first cell.
    centre = weights @ matrix / max(float(weights.sum()), np.finfo(float).tiny)
    matrix[silent] = centre  # which is 0 when centred
    return Contrast(matrix, lower, centre, np.ones(len(matrix), bool), (("pair", matrix.shape[1]),))


def silent_cells(first: Axis, second: Axis) -> Bools:
    """Return which cells of a pair's table, row by row, add nothing: those of neutral levels."""
    u, v = (np.isin(np.arange(axis.size), axis.neutral) for axis in (first, second))
    return np.asarray(np.logical_or.outer(u, v).ravel())


def _free(u: Axis, v: Axis) -> list[tuple[Bools, float]]:
    """Cells in which neither feature is in an order that has a direction."""
    return [(np.outer(_at(u, a), _at(v, b)), -np.inf) for a in _loose(u) for b in _loose(v)]


def _loose(axis: Axis) -> range:
    """The levels that no direction orders."""
    return range(axis.n_ordered if axis.sign else 0, axis.size)


def _steps(u: Axis, v: Axis) -> list[tuple[Bools, float]]:
    """Steps in the direction of one feature, or of both."""
    cells = [np.outer(a, _at(v, b)) for a in _beyond(u) for b in _loose(v)]
    cells += [np.outer(_at(u, a), b) for b in _beyond(v) for a in _loose(u)]
    both = np.outer(np.arange(u.size) < u.n_ordered, np.arange(v.size) < v.n_ordered)
    for a in _beyond(u):
        for b in _beyond(v):
            cells += [np.outer(a, b), np.logical_or.outer(a, b) & both]
    return [(cell, 0.0) for cell in cells]


def _at(axis: Axis, level: int) -> Bools:
    return np.asarray(np.arange(axis.size) == level)


def _beyond(axis: Axis) -> list[Bools]:
    """Indicators of the ordered levels beyond each cut, in the direction of the feature; none without one."""
    if not axis.sign:
        return []
    levels = np.arange(axis.size)
    cuts = range(1, axis.n_ordered)
    return [(levels >= cut) & (levels < axis.n_ordered) if axis.sign > 0 else levels < cut for cut in cuts]
