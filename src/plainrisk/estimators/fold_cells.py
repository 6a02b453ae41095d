"""Rows of equal fine levels, and pairs of fine levels, counted by fold: what additive parts are fitted from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.estimators.fold_tables import FoldFeature, Folds
from plainrisk.threads import side_by_side

__all__ = ["FoldCells", "fold_cells", "fold_pairs"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]

# Cells looked for in a table of the whole grid; beyond, by sorting.
_GRID = 1 << 21
# Codes that share one score table when rows are scored.
_PACK = 1 << 13


def fold_pairs(features: Sequence[FoldFeature], folds: Folds) -> Floats:
    """Return how often two fine levels occur together inside each fold: (folds, levels, levels), symmetric."""
    ends = np.cumsum([0, *(f.size for f in features)])
    out = np.zeros((folds.n, ends[-1], ends[-1]))

    def count(i: int) -> None:
        a = features[i]
        own = np.arange(ends[i], ends[i + 1])
        out[:, own, own] = a.counts.sum(axis=2)
        wide = folds.of * np.intp(a.size) + a.codes
        key = np.empty_like(wide)
        for j, b in enumerate(features[i + 1 :], start=i + 1):
            np.multiply(wide, b.size, out=key)
            key += b.codes
            both = np.bincount(key, minlength=folds.n * a.size * b.size).reshape(folds.n, a.size, b.size)
            out[:, ends[i] : ends[i + 1], ends[j] : ends[j + 1]] = both
            out[:, ends[j] : ends[j + 1], ends[i] : ends[i + 1]] = both.transpose(0, 2, 1)

    # Every feature fills a part of the table that is its own.
    for _ in side_by_side(count, range(len(features)), len(folds.of)):
        pass
    return out


@dataclass(frozen=True)
class FoldCells:
    """Rows of equal fine levels, of all features of a part or of some of them.

    Attributes
    ----------
    features : positions of the features
    cell : (n,) the cell of every row
    members : (cells, features) the fine level of each feature
    """

    features: tuple[int, ...]
    cell: npt.NDArray[Any]
    members: npt.NDArray[Any]

    def counts(self, folds: Folds) -> Counts:
        """Return the rows inside each fold: (outcome, fold, cell)."""
        n = len(self.members)
        key = folds.label * np.intp(n)
        key += self.cell
        return np.bincount(key, minlength=2 * folds.n * n).reshape(2, folds.n, n)

    def scores(self, by_feature: Sequence[Floats], start: float = 0.0) -> Floats:
        """Add up per cell, one feature after the other, what its fine levels add to the score."""
        score = np.full(len(self.members), start)
        for j, column in zip(self.features, self.members.T, strict=True):
            score += by_feature[j][column]
        return score


def fold_cells(features: Sequence[FoldFeature], n_rows: int) -> list[FoldCells]:
    """Return the part's cells as one where they are far fewer than the rows, else features in several groups."""
    grid = math.prod(f.size for f in features)
    whole = tuple(range(len(features)))
    if grid <= max(4096, 16 * n_rows) and grid < 2**40:
        found = _occupied(features, whole)
        if len(found.members) <= max(4096, n_rows // 4):
            return [found]
    groups: list[list[int]] = []
    size = _PACK + 1
    for j, f in enumerate(features):
        if size * f.size > _PACK:
            groups.append([])
            size = 1
        groups[-1].append(j)
        size *= f.size
    return [_occupied(features, tuple(group)) for group in groups]


def _occupied(features: Sequence[FoldFeature], group: tuple[int, ...]) -> FoldCells:
    sizes = [features[j].size for j in group]
    key = features[group[0]].codes.astype(np.intp)
    for j in group[1:]:
        key *= features[j].size
        key += features[j].codes
    if (grid := math.prod(sizes)) <= _GRID:
        used = np.flatnonzero(np.bincount(key, minlength=grid))
        number = np.zeros(grid, np.int32)
        number[used] = np.arange(len(used))
        return FoldCells(group, number[key], _members(used, sizes))
    used, cell = np.unique(key, return_inverse=True)
    return FoldCells(group, cell, _members(used, sizes))


def _members(keys: Index, sizes: Sequence[int]) -> npt.NDArray[np.int32]:
    return np.stack([column.astype(np.int32) for column in np.unravel_index(keys, tuple(sizes))]).T
