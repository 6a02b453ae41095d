"""Pairs of features: coarse levels, and coefficients that keep directions by bounds alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plainrisk._native import code_type
from plainrisk._types import Bools, Codes, Floats
from plainrisk.bins.coding import Contrast
from plainrisk.bins.edges import Histogram, fine_edges

__all__ = ["Axis", "coarse_axis", "pair_contrast", "silent_cells"]


@dataclass(frozen=True)
class Axis:
    """The coarse levels of one feature of a pair.

    Attributes
    ----------
    coarse : (levels,) the coarse level of each of the feature's levels
    n_ordered : how many coarse levels are in the order; the others follow. Categories without an order have none
    size : how many there are
    sign : the feature's direction
    neutral : coarse levels in which the pair adds nothing
    """

    coarse: Codes
    n_ordered: int
    size: int
    sign: int
    neutral: tuple[int, ...] = ()

    @property
    def inside(self) -> Bools:
        """The coarse levels that are ordered."""
        return np.asarray(np.arange(self.size) < self.n_ordered)

    @property
    def beyond(self) -> Bools:
        """(cuts, size): the ordered levels beyond each cut, in the direction of the feature, or upward."""
        levels, cuts = np.arange(self.size), np.arange(1, self.n_ordered)[:, None]
        return np.asarray(levels < cuts if self.sign < 0 else (levels >= cuts) & self.inside)

    @property
    def ranges(self) -> Bools:
        """(ranges, size): both halves of the ordered levels, the halves of these, and so on down to single levels."""
        ranges = np.array(_halves(0, self.n_ordered)).reshape(-1, 2)
        levels = np.arange(self.size)
        return np.asarray((levels >= ranges[:, :1]) & (levels < ranges[:, 1:]))

    @property
    def loose(self) -> Bools:
        """(special levels, size): each of them."""
        return np.eye(self.size, dtype=bool)[self.n_ordered :]


def coarse_axis(
    weights: Floats, n_ordered: int, sign: int, *, ordered: bool, scores: Floats | None = None, cells: int = 8
) -> Axis:
    """Group the levels of a feature: ordered ones into a few groups, cut where there are many rows or large steps.

    Half of the cuts follow the rows and half the steps of the feature itself, since risk that jumps with one feature
    often jumps by an amount that depends on another. Of categories without an order the heaviest stand alone, and
    the others together. Grouping them by the model's predictions would put residuals of one sign together, and
    chance would look like evidence. Special levels stay as they are.

    Parameters
    ----------
    scores : of the levels, in the model without pairs; without them all cuts follow the rows
    cells : ordered levels at most, and categories that stand alone

    >>> coarse_axis(np.array([5.0] * 14 + [20, 3]), 15, 0, ordered=True).coarse
    array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8], dtype=uint8)
    >>> coarse_axis(np.array([5.0, 9, 1, 2, 20, 8, 7, 6, 4, 3, 3]), 10, 0, ordered=False).coarse
    array([5, 1, 8, 8, 0, 2, 3, 4, 6, 7, 9], dtype=uint8)
    """
    coarse = np.empty(len(weights), np.intp)
    inside = weights[:n_ordered]
    if ordered:
        seen = np.flatnonzero(inside > 0)
        mass = inside[seen] if scores is None else _mass(inside[seen], scores[:n_ordered][seen])
        h = Histogram(seen.astype(np.float64), np.ones(len(seen), np.int64), mass, np.zeros(len(seen)))
        coarse[:n_ordered] = np.searchsorted(fine_edges(h, cells), np.arange(n_ordered))
    else:
        coarse[np.argsort(-inside, kind="stable")] = np.minimum(np.arange(n_ordered), cells)
    n = int(coarse[:n_ordered].max(initial=-1)) + 1
    coarse[n_ordered:] = n + np.arange(len(weights) - n_ordered)
    size = n + len(weights) - n_ordered
    return Axis(coarse.astype(code_type(size)), n if ordered else 0, size, sign)


def _mass(weights: Floats, scores: Floats) -> Floats:
    """Return what equal shares are made of: the rows, and as much again for the steps to and from every level."""
    steps = np.abs(np.diff(scores))
    if not steps.any():
        return weights
    around = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    return np.asarray(weights / weights.sum() + around / around.sum())


def pair_contrast(first: Axis, second: Axis, weights: Floats) -> Contrast:
    """Return the coefficients of a pair of features, over the cells of its table, row by row.

    With "beyond a" for the levels of u beyond a cut:

    - neither has a direction: [u beyond a] [v beyond b], both less their means, so that nothing is left of it for one
      feature alone;
    - u has one: [u beyond a and v in range r], ranges being halves, quarters and so on down to single levels. The wide
      ones are what neighbors have in common; with the single ones every function that is monotone in u can be written;
    - both have: risk that builds up, [u beyond a and v beyond b], and risk for which either suffices, [u beyond a or v
      beyond b].

    In special levels of one feature, the other has separate steps; where both are special, each cell has an effect.
    Steps in a direction are at least 0, so every sum of them is monotone.

    Parameters
    ----------
    weights : (cells,) training weight of every cell; coefficients that no row has are left out
    """
    u, v = first, second
    table = weights.reshape(u.size, v.size)
    rows, columns = (
        axis.beyond if axis.sign else _centered(axis, margin)
        for axis, margin in ((u, table.sum(axis=1)), (v, table.sum(axis=0)))
    )
    free, rising = [_products(u.loose, v.loose)], []
    if u.sign and v.sign:
        neither = _products(u.inside & ~u.beyond, v.inside & ~v.beyond)
        rising += [_products(rows, columns), _products(u.inside[None], v.inside[None]) - neither]
    elif u.sign:
        rising.append(_products(rows, v.ranges))
    elif v.sign:
        rising.append(_products(u.ranges, columns))
    else:
        free.append(_products(rows, columns))
    (rising if u.sign else free).append(_products(rows, v.loose))
    (rising if v.sign else free).append(_products(u.loose, columns))
    matrix = np.concatenate([*free, *rising]).T
    lower = np.repeat([-np.inf, 0.0], [sum(map(len, free)), sum(map(len, rising))])
    # Centered on the training rows, so that shrinking draws cells to the mean, not to the first cell.
    silent = silent_cells(u, v)
    weights = np.where(silent, 0.0, weights)
    total = max(float(weights.sum()), np.finfo(float).tiny)
    center = weights @ matrix / total
    used = weights @ (matrix - center) ** 2 > 1e-9 * total
    matrix, lower, center = matrix[:, used], lower[used], center[used]
    matrix[silent] = center  # which is 0 when centered
    keys = tuple(("cell", column) for column in np.flatnonzero(used).tolist())
    return Contrast(matrix, lower, keys, center, np.ones(len(matrix), bool), (("pair", matrix.shape[1]),))


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    """Return both halves of a range, the halves of these, and so on.

    >>> _halves(0, 3)
    [(0, 1), (1, 3), (1, 2), (2, 3)]
    """
    if stop - start < 2:
        return []
    middle = (start + stop) // 2
    halves = [(start, middle), (middle, stop)]
    return [*halves, *(part for half in halves for part in _halves(*half))]


def silent_cells(first: Axis, second: Axis) -> Bools:
    """Return which cells of a pair's table, row by row, add nothing: those of neutral levels."""
    u, v = (np.isin(np.arange(axis.size), axis.neutral) for axis in (first, second))
    return np.asarray(np.logical_or.outer(u, v).ravel())


def _products(first: Floats | Bools, second: Floats | Bools) -> Floats:
    """Return the products of functions of one feature with functions of another, (pairs of functions, cells)."""
    each = np.einsum("ai,bj->abij", first.astype(np.float64), second.astype(np.float64))
    return np.asarray(each.reshape(len(first) * len(second), first.shape[1] * second.shape[1]))


def _centered(axis: Axis, weights: Floats) -> Floats:
    """Return the steps of an axis less their means over the ordered levels; 0 for special levels."""
    inside = np.where(axis.inside, weights, 0.0)
    means = axis.beyond @ inside / max(float(inside.sum()), np.finfo(float).tiny)
    return np.where(axis.inside, axis.beyond - means[:, None], 0.0)
