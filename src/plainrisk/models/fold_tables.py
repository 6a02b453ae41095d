"""Rows coded once for all folds: every training fold's levels and counts are small tables.

The edges of all training folds together cut a feature into *fine* levels. A fold's own levels are unions of fine
ones, so its codes are a lookup and its counts are those of all rows less the fold's, added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import fold_counts, read_levels, rule_of, small_codes
from plainrisk._native.reading import HAS_INFINITY, TOO_LARGE, steps_of
from plainrisk.bins.learn import Criterion, categories_of
from plainrisk.bins.reading import plain_numbers
from plainrisk.data.columns import refuse_infinity
from plainrisk.errors import DataError
from plainrisk.form import Bins, Categories, Levels
from plainrisk.form.levels import code_type
from plainrisk.models.fold_bins import fold_edges
from plainrisk.models.training import Training
from plainrisk.schema import Feature

__all__ = ["Binning", "FoldFeature", "Folds", "code_feature"]

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]  # floats or integers
Counts = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]
Singles = npt.NDArray[np.float32]
Codes = npt.NDArray[np.unsignedinteger[Any]]

# Up to so many levels, adding up comparisons beats a binary search per value.
_COMPARED = 100


@dataclass(frozen=True)
class Folds:
    """Training rows, dealt. Everything made from them has the rows of fold 0 first, then those of fold 1, and so on.

    Attributes
    ----------
    training : all rows, without weights
    of : (n,) the fold of every row of `training`
    n : how many folds
    order : (n,) which row of `training` each is
    ends : (folds,) where the rows of each fold end
    """

    training: Training
    of: npt.NDArray[np.uint8 | np.uint16]
    n: int
    order: Index
    ends: Counts

    @cached_property
    def target(self) -> npt.NDArray[np.uint8]:
        """The outcome of every row."""
        return self.training.target[self.order]

    @cached_property
    def sizes(self) -> Counts:
        """How many rows of each outcome every fold has: (folds, outcome)."""
        return fold_counts(np.zeros(len(self.of), np.uint8), 1, self.target, self.ends)[:, 0]

    def inside(self, k: int) -> slice:
        """Return where the rows of a fold are."""
        return slice(int(self.ends[k - 1]) if k else 0, int(self.ends[k]))

    def outside(self, k: int) -> tuple[slice, slice]:
        """Return where the rows before and after those of a fold are."""
        inside = self.inside(k)
        return slice(0, inside.start), slice(inside.stop, len(self.of))

    def rows(self, k: int) -> tuple[float, float]:
        """Return how many rows are outside a fold, and how many of them are positive."""
        return self._rows[k]

    @cached_property
    def _rows(self) -> list[tuple[float, float]]:
        outside = (self.sizes.sum(axis=0) - self.sizes).astype(np.float64)
        return list(zip(outside.sum(axis=1).tolist(), outside[:, 1].tolist(), strict=True))


@dataclass(frozen=True)
class Binning:
    """How bins are found, where the schema does not say."""

    max_bins: int
    criterion: Criterion
    min_rows: int


@dataclass(frozen=True)
class FoldFeature:
    """One feature.

    Attributes
    ----------
    name, feature : from the schema
    size : how many fine levels
    codes : (n,) the fine level of every row
    levels : per fold, what its training rows give
    lookup : per fold, (size,): from fine levels to the fold's
    counts : (folds, size, outcome) rows inside each fold
    """

    name: str
    feature: Feature
    size: int
    codes: Codes
    levels: tuple[Levels, ...]
    lookup: tuple[Index, ...]
    counts: Counts

    @cached_property
    def total(self) -> Counts:
        """Rows by fine level and outcome."""
        return np.asarray(self.counts.sum(axis=0))

    def training(self, k: int) -> tuple[Floats, Floats]:
        """Return how many rows outside a fold have each of the fold's levels, and how many of them are positive."""
        rows, positives = self._training
        n = len(self.levels[k])
        return rows[k, :n], positives[k, :n]

    @cached_property
    def _training(self) -> tuple[Floats, Floats]:
        """Rows outside each fold by the fold's levels, and positive ones: (folds, most levels) each."""
        n_folds, widest = len(self.levels), max(map(len, self.levels))
        key = (np.stack(self.lookup) + widest * np.arange(n_folds)[:, None]).ravel()
        fine = self.total - self.counts
        found = [
            np.bincount(key, rows.ravel(), minlength=n_folds * widest).astype(np.float64, copy=False)
            for rows in (fine.sum(axis=2), fine[:, :, 1])
        ]
        return found[0].reshape(n_folds, widest), found[1].reshape(n_folds, widest)

    def unseen(self, k: int) -> bool:
        """Whether a row inside a fold has a level that no row outside has."""
        return bool((self.counts[k].sum(axis=1)[self.training(k)[0][self.lookup[k]] == 0]).any())


def code_feature(folds: Folds, name: str, binning: Binning) -> FoldFeature:
    """Find every fold's levels of a feature and code the rows on fine levels."""
    feature = folds.training.schema.features[name]
    code = _code_labels if feature.kind == "categorical" else _code_numbers
    size, codes, levels, lookup = code(folds, name, feature, binning)
    return FoldFeature(name, feature, size, codes, levels, lookup, fold_counts(codes, size, folds.target, folds.ends))


_Coded = tuple[int, Codes, tuple[Levels, ...], tuple[Index, ...]]


def _code_numbers(folds: Folds, name: str, feature: Feature, binning: Binning) -> _Coded:
    def bins(edges: tuple[float, ...]) -> Bins:
        return Bins(edges=edges, special_values=special, lower_bound=feature.lower_bound)

    special = tuple(float(v) for v in feature.special_values)
    frame = folds.training.frame
    x = plain_numbers(frame, name)
    if feature.edges is not None:
        refuse_infinity(name, x.astype(np.float64, copy=False), frame.first)
        edges = [feature.edges] * folds.n
    else:
        rows = _measured(x, name, bins(()), frame.first), folds.training.target, folds.of, folds.n
        most = feature.max_bins or binning.max_bins
        found = fold_edges(*rows, max_bins=most, criterion=binning.criterion, min_rows=binning.min_rows)
        edges = [tuple(e.tolist()) for e in found]
    fine = bins(tuple(sorted({e for some in edges for e in some})))
    levels = tuple(bins(tuple(e)) for e in edges)
    return len(fine), _fine_codes(fine, x)[folds.order], levels, tuple(_coarser(fine, lv) for lv in levels)


def _measured(x: Numbers, name: str, line: Bins, first: int) -> Singles:
    """Return measurements as float32, and NaN for all others."""
    singles = np.empty(len(x), np.float32)
    flags = read_levels([x], [rule_of(steps_of(line))], [singles])[0]
    if flags & HAS_INFINITY:
        refuse_infinity(name, x.astype(np.float64, copy=False), first)
    if flags & TOO_LARGE:
        largest = float(np.finfo(np.float32).max)
        raise DataError(
            f"Data: feature {name!r}: a value is too large for float32 (at most {largest:g}). "
            "Rescale the feature or declare it a special value."
        )
    return singles


def _fine_codes(fine: Bins, x: Numbers) -> Codes:
    """Return the fine level of every number.

    The numbers themselves are compared, not those rounded to float32: a fold's edge may lie next to what is in the
    fold alone.
    """
    if len(fine.edges) > _COMPARED:
        return fine.code_numbers(x.astype(np.float64, copy=False))
    codes = np.empty(len(x), code_type(len(fine)))
    read_levels([x], [rule_of(steps_of(fine))], [codes])
    return codes


def _coarser(fine: Bins, levels: Bins) -> Index:
    """Return which of `levels` each fine level is in; the edges of `levels` are among the fine ones."""
    edges = np.asarray(levels.edges, dtype=np.float64)
    start = np.concatenate([[-np.inf], fine.edges])
    return np.concatenate(
        [np.searchsorted(edges, start, side="right"), np.arange(levels.n_ordered, len(levels))]
    ).astype(np.intp)


def _code_labels(folds: Folds, name: str, feature: Feature, _: Binning) -> _Coded:
    column = folds.training.frame.labels(name)
    n_labels = len(column.labels)
    # One place per distinct label of all rows, and the last for missing.
    known = column.codes[folds.order]
    codes: Codes = np.where(known < 0, n_labels, known).astype(small_codes(n_labels + 1))
    inside = fold_counts(codes, n_labels + 1, folds.target, folds.ends).sum(axis=2)
    outside = inside.sum(axis=0) - inside
    levels = tuple(
        categories_of(name, feature, [column.labels[j] for j in np.flatnonzero(rows[:-1])]) for rows in outside
    )
    return n_labels + 1, codes, levels, tuple(_known(column.labels, lv) for lv in levels)


def _known(labels: Sequence[str], levels: Categories) -> Index:
    place = {label: code for code, label in enumerate(levels.categories)}
    return np.array([*(place.get(label, len(levels) - 1) for label in labels), levels.missing], dtype=np.intp)
