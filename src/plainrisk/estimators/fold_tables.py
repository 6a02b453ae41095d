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

from plainrisk.encode.learn import Criterion, categories_of
from plainrisk.errors import DataError
from plainrisk.estimators.fold_bins import fold_edges
from plainrisk.estimators.training import Training
from plainrisk.form import Bins, Categories, Levels
from plainrisk.schema import Feature
from plainrisk.threads import side_by_side

__all__ = ["Binning", "FoldFeature", "Folds", "code_features"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]
Codes = npt.NDArray[np.unsignedinteger[Any]]

# Up to so many levels, adding up comparisons beats a binary search per value.
_COMPARED = 100


@dataclass(frozen=True)
class Folds:
    """Training rows, dealt.

    Attributes
    ----------
    training : all rows, without weights
    of : (n,) the fold of every row
    n : how many folds
    """

    training: Training
    of: npt.NDArray[np.uint8 | np.uint16]
    n: int

    @cached_property
    def label(self) -> Index:
        """Fold and outcome of every row in one number: outcome * folds + fold."""
        return self.of + self.training.target * np.intp(self.n)

    @cached_property
    def sizes(self) -> Counts:
        """How many rows of each outcome every fold has: (folds, outcome)."""
        return np.bincount(self.label, minlength=2 * self.n).reshape(2, self.n).T

    @cached_property
    def inside(self) -> list[Index]:
        """The rows of every fold."""
        ends = np.cumsum(self.sizes.sum(axis=1))
        return np.split(np.argsort(self.of, kind="stable"), ends[:-1])

    def rows(self, k: int) -> tuple[float, float]:
        """Return how many rows are outside a fold, and how many of them are positive."""
        outside = self.sizes.sum(axis=0) - self.sizes[k]
        return float(outside.sum()), float(outside[1])


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
        fine = self.total - self.counts[k]
        n = len(self.levels[k])
        rows = np.bincount(self.lookup[k], fine.sum(axis=1), minlength=n)
        return rows.astype(np.float64), np.bincount(self.lookup[k], fine[:, 1], minlength=n).astype(np.float64)

    def unseen(self, k: int) -> bool:
        """Whether a row inside a fold has a level that no row outside has."""
        return bool((self.counts[k].sum(axis=1)[self.training(k)[0][self.lookup[k]] == 0]).any())


def code_features(folds: Folds, wanted: Sequence[tuple[str, Binning]]) -> list[FoldFeature]:
    """Find every fold's levels of some features and code the rows on fine levels."""
    return list(side_by_side(lambda one: _code_feature(folds, *one), wanted, len(folds.of)))


def _code_feature(folds: Folds, name: str, binning: Binning) -> FoldFeature:
    feature = folds.training.schema.features[name]
    code = _code_labels if feature.kind == "categorical" else _code_numbers
    size, codes, levels, lookup = code(folds, name, feature, binning)
    key = folds.label * np.intp(size)
    key += codes
    counts = np.bincount(key, minlength=2 * folds.n * size).reshape(2, folds.n, size)
    return FoldFeature(name, feature, size, codes, levels, lookup, np.ascontiguousarray(np.moveaxis(counts, 0, 2)))


_Coded = tuple[int, Codes, tuple[Levels, ...], tuple[Index, ...]]


def _code_numbers(folds: Folds, name: str, feature: Feature, binning: Binning) -> _Coded:
    def bins(edges: tuple[float, ...]) -> Bins:
        special = tuple(float(v) for v in feature.special_values)
        return Bins(edges=edges, special_values=special, lower_bound=feature.lower_bound)

    x = folds.training.frame.numbers(name)
    outside = bins(()).code_numbers(x)
    if feature.edges is not None:
        edges = [feature.edges] * folds.n
    else:
        inside = outside == 0
        measured, target, fold = (x, folds.training.target, folds.of) if inside.all() else _where(inside, x, folds)
        _check_range(name, measured)
        most = feature.max_bins or binning.max_bins
        found = fold_edges(
            measured, target, fold, folds.n, max_bins=most, criterion=binning.criterion, min_rows=binning.min_rows
        )
        edges = [tuple(map(float, e)) for e in found]
    fine = bins(tuple(sorted({e for some in edges for e in some})))
    levels = tuple(bins(tuple(e)) for e in edges)
    return len(fine), _fine_codes(fine, x, outside), levels, tuple(_coarser(fine, lv) for lv in levels)


def _fine_codes(fine: Bins, x: Floats, outside: Codes) -> Codes:
    """Return the fine level of every number, given its level where there is one bin only."""
    if len(fine) > _COMPARED:
        return fine.code_numbers(x)
    codes = np.zeros(len(x), np.uint8)
    for edge in fine.edges:
        codes += x > edge
    at = np.flatnonzero(outside)
    codes[at] = outside[at] + len(fine.edges)
    return codes


def _where(inside: npt.NDArray[np.bool_], x: Floats, folds: Folds) -> tuple[Floats, npt.NDArray[Any], npt.NDArray[Any]]:
    return x[inside], folds.training.target[inside], folds.of[inside]


def _check_range(name: str, x: Floats) -> None:
    largest = float(np.finfo(np.float32).max)
    if x.size and max(float(x.max()), -float(x.min())) > largest:
        raise DataError(
            f"Data: feature {name!r}: a value is too large for float32 (at most {largest:g}). "
            "Rescale the feature or declare it a special value."
        )


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
    codes = np.where(column.codes < 0, n_labels, column.codes)
    codes = codes.astype(np.uint8 if n_labels < 256 else np.uint16 if n_labels < 65536 else np.uint32)
    inside = np.bincount(folds.of * np.intp(n_labels + 1) + codes, minlength=folds.n * (n_labels + 1))
    inside = inside.reshape(folds.n, n_labels + 1)
    outside = inside.sum(axis=0) - inside
    levels = tuple(
        categories_of(name, feature, [column.labels[j] for j in np.flatnonzero(rows[:-1])]) for rows in outside
    )
    return n_labels + 1, codes, levels, tuple(_known(column.labels, lv) for lv in levels)


def _known(labels: Sequence[str], levels: Categories) -> Index:
    place = {label: code for code, label in enumerate(levels.categories)}
    return np.array([*(place.get(label, len(levels) - 1) for label in labels), levels.missing], dtype=np.intp)
