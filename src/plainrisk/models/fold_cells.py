"""Rows of equal fine levels, and pairs of fine levels, counted by fold: what additive parts are fitted from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import (
    LevelMap,
    add_pair_sums,
    add_places,
    fold_counts,
    level_sums,
    look_up,
    occupied_cells,
    small_codes,
    table_room,
)
from plainrisk.models.fold_tables import FoldFeature, Folds
from plainrisk.threads import side_by_side

__all__ = ["FoldCells", "fold_cells", "fold_pairs"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]
Index = npt.NDArray[np.intp]

# Grids of so many cells, or a cell in so many rows, are not searched for cells that are empty.
_SMALL_GRID, _EMPTY_SHARE = 1 << 10, 32
# Codes that share one score table when rows are scored.
_PACK = 1 << 12
_ALL = slice(None)


def fold_pairs(features: Sequence[FoldFeature], folds: Folds) -> Floats:
    """Return how often two fine levels occur together inside each fold: (folds, levels, levels), symmetric."""
    # A table of pairs should not outgrow the rows it counts.
    limit = int(np.clip((len(folds.of) / folds.n / 4) ** 0.5, 1, 256))
    groups = [_all_cells(features, tuple(group)) for group in _neighbours(features, limit)]
    members = tuple(np.column_stack(group.members) for group in groups)
    levels = LevelMap(tuple(np.eye(f.size) for f in features), members)
    n_levels = levels.n_columns
    out = np.zeros((folds.n, n_levels, n_levels))

    def count(k: int) -> None:
        packs = [group.cell[folds.inside(k)] for group in groups]
        room = table_room(levels)
        for first, own in enumerate(level_sums(None, packs, levels.sizes)):
            add_pair_sums(None, packs, levels, first, own, out[k], room)

    # Every fold fills a table that is its own.
    for _ in side_by_side(count, range(folds.n), len(folds.of)):
        pass
    return out


@dataclass(frozen=True)
class FoldCells:
    """Rows of equal fine levels, of all features of a part or of some of them.

    Attributes
    ----------
    features : positions of the features
    cell : (n,) the cell of every row
    members : per feature, (cells,) its fine level
    """

    features: tuple[int, ...]
    cell: Codes
    members: tuple[Codes, ...]

    def __len__(self) -> int:
        return len(self.members[0])

    def counts(self, folds: Folds, rows: slice = _ALL) -> Floats:
        """Return how many of some rows there are by (outcome, cell)."""
        cell, target = self.cell[rows], folds.target[rows]
        found = fold_counts(cell, len(self), target, np.array([len(cell)]))[0]
        return np.ascontiguousarray(found.T, np.float64)

    def scores(self, by_feature: Sequence[Floats], start: float = 0.0) -> Floats:
        """Add up per cell, one feature after the other, what its fine levels add to the score."""
        return look_up(start, self.members, [by_feature[j] for j in self.features], len(self))


def fold_cells(features: Sequence[FoldFeature], n_rows: int) -> list[FoldCells]:
    """Return the part's cells as one where they are far fewer than the rows, else features in several groups."""
    grid = math.prod(f.size for f in features)
    whole = tuple(range(len(features)))
    if grid <= max(4096, 16 * n_rows) and grid <= 2**32 - 64:
        found = _occupied(features, whole)
        if len(found) <= max(4096, n_rows // 4):
            return [found]
    groups = _neighbours(features, _PACK)
    return list(side_by_side(lambda group: _all_cells(features, tuple(group)), groups, n_rows))


def _neighbours(features: Sequence[FoldFeature], limit: int) -> list[list[int]]:
    """Return groups of neighbouring features with so many cells each, or one feature each."""
    groups: list[list[int]] = []
    size = limit + 1
    for j, f in enumerate(features):
        if size * f.size > limit:
            groups.append([])
            size = 1
        groups[-1].append(j)
        size *= f.size
    return groups


def _all_cells(features: Sequence[FoldFeature], group: tuple[int, ...]) -> FoldCells:
    """Return every cell there can be."""
    sizes = [features[j].size for j in group]
    grid = math.prod(sizes)
    return FoldCells(group, _keys(features, group, sizes), _members(np.arange(grid), sizes))


def _occupied(features: Sequence[FoldFeature], group: tuple[int, ...]) -> FoldCells:
    """Return the cells in which there are rows, but for a few more."""
    sizes = [features[j].size for j in group]
    grid = math.prod(sizes)
    if grid <= max(_SMALL_GRID, len(features[0].codes) // _EMPTY_SHARE):
        return _all_cells(features, group)
    used, cell = occupied_cells([features[j].codes for j in group], sizes)
    return FoldCells(group, cell, _members(used, sizes))


def _keys(features: Sequence[FoldFeature], group: tuple[int, ...], sizes: Sequence[int]) -> Codes:
    """Return the place of every row in the grid, numbered as ``np.ravel_multi_index`` does."""
    grid = stride = math.prod(sizes)
    places: list[Codes] = []
    for size in sizes:
        stride //= size
        places.append((np.arange(size) * stride).astype(small_codes(grid)))
    return add_places([features[j].codes for j in group], places)


def _members(keys: Index, sizes: Sequence[int]) -> tuple[Codes, ...]:
    columns = np.unravel_index(keys, tuple(sizes))
    return tuple(column.astype(small_codes(size)) for column, size in zip(columns, sizes, strict=True))
