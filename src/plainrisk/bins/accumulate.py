"""Find the levels of features whose rows come in batches.

Value histograms of batches add up to that of all rows, so the bins are exactly those of the rows in memory - as long
as a feature has no more distinct values than a histogram may hold. Beyond, neighbouring values share a bucket: float32
numbers that agree but for their last bits. Rows are still counted exactly, and every edge is the end of a bucket; only
where inside a bucket an edge would have stood is lost, a share of 2**-(23 - bits) of the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.bins.histogram import Histogram, histogram, merge
from plainrisk.bins.learn import Criterion, categories_of, edges_of, measured, naming
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError
from plainrisk.form import Bins, Levels
from plainrisk.schema import Feature
from plainrisk.schema.check import MOST_CATEGORIES
from plainrisk.threads import side_by_side

__all__ = ["MOST_VALUES", "LevelFinder", "ValueCounts", "find_levels"]

# Distinct values of a feature that are counted one by one: a histogram of 7 MB.
MOST_VALUES = 1 << 18
_SIGN = np.uint32(1 << 31)

Singles = npt.NDArray[np.float32]


class ValueCounts:
    """A histogram that grows batch by batch, and grows coarse rather than large.

    The result depends on the rows, not on how they were cut into batches.

    Attributes
    ----------
    bits : how many of the last bits of a float32 number are dropped; 0 while every value is counted by itself
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = MOST_VALUES if most is None else most
        self.bits = 0
        self._sum = histogram((), ())

    @property
    def histogram(self) -> Histogram:
        """What was counted; the value of a bucket is its largest number."""
        return self._sum

    def add(self, x: npt.NDArray[Any], target: npt.NDArray[Any], weight: npt.NDArray[np.float64] | None) -> None:
        """Count the values of a batch: as `histogram` does, in buckets if there are too many."""
        if self.bits:
            # Before they are sorted: equal numbers are cheaper than buckets of different ones.
            x = bucket_ends(x.astype(np.float32), self.bits)
        self._sum = merge(self._sum, histogram(x, target, weight))
        while len(self._sum.values) > self.most:
            self.bits += 1
            self._sum = coarse(self._sum, self.bits)

    def snap(self, edges: Sequence[float]) -> tuple[float, ...]:
        """Move edges between two buckets to the end of the first, so that all of a bucket lies on one side."""
        if not self.bits or not edges:
            return tuple(edges)
        ends = self._sum.values.astype(np.float64)
        return tuple(ends[np.searchsorted(ends, edges, side="right") - 1].tolist())


def coarse(found: Histogram, bits: int) -> Histogram:
    """Return a histogram in which numbers that differ in their last bits only are one, the largest of them.

    >>> coarse(histogram([1.0, 1.0000001, 2.0], [0, 1, 1]), 4).rows
    array([2, 1])
    """
    if not bits or not len(found.values):
        return found
    ends = bucket_ends(found.values, bits)
    starts = np.flatnonzero(np.concatenate([[True], ends[1:] != ends[:-1]]))
    add: Any = np.add.reduceat
    return Histogram(ends[starts], add(found.rows, starts), add(found.weight, starts), add(found.positive, starts))


def bucket_ends(values: Singles, bits: int) -> Singles:
    """Return the largest number of every number's bucket."""
    rest = np.uint32((1 << bits) - 1)
    raw = (values + np.float32(0)).view(np.uint32)  # -0.0 becomes 0.0
    # Numbers below 0 grow with smaller bits, so their last one has none - but for the last of all, which must not be 0.
    below = np.maximum(raw & ~rest, _SIGN | np.uint32(1))
    ends = np.where(raw >= _SIGN, below, raw | rest).view(np.float32)
    # The last bucket would end beyond the finite numbers.
    return np.fmin(ends, np.float32(np.finfo(np.float32).max))


class LevelFinder:
    """Collects what the levels of one feature depend on, batch by batch."""

    def __init__(self, name: str, feature: Feature, *, lines: bool = False) -> None:
        self.name, self.feature = name, feature
        self.values = ValueCounts()
        self.labels: set[str] = set()
        # Nothing is to be found where the schema says it, or where the feature enters as a line.
        self._numbers = feature.kind == "continuous" and feature.edges is None and not lines
        self._lines = lines
        self._words = feature.kind == "categorical" and feature.category_labels is None

    def add(self, frame: Frame, target: npt.NDArray[Any], weight: npt.NDArray[np.float64] | None) -> None:
        """Look at a batch."""
        if self._numbers:
            x, outcome, mass = measured(frame, self.name, self.feature, target, weight)
            with naming(self.name):
                self.values.add(x, outcome, mass)
        elif self._words:
            self.labels.update(frame.labels(self.name).labels)
            if len(self.labels) > MOST_CATEGORIES + len(self.feature.special_values):
                raise DataError(
                    f"Data: feature {self.name!r} has more than {MOST_CATEGORIES:,} categories. "
                    "Group them, or leave it out."
                )

    def levels(self, *, max_bins: int = 5, criterion: Criterion = "gini", min_rows: int = 1) -> Levels:
        """Return the levels."""
        feature = self.feature
        if feature.kind == "categorical":
            return categories_of(self.name, feature, sorted(self.labels))
        edges = () if self._lines else feature.edges or ()
        if self._numbers:
            found = edges_of(self.values.histogram, feature, max_bins=max_bins, criterion=criterion, min_rows=min_rows)
            edges = self.values.snap(found)
        special = tuple(float(v) for v in feature.special_values)
        return Bins(edges=edges, special_values=special, lower_bound=feature.lower_bound)


def find_levels(
    finders: Sequence[LevelFinder], frame: Frame, target: npt.NDArray[Any], weight: npt.NDArray[np.float64] | None
) -> None:
    """Show a batch to every finder, several at a time: sorting leaves the interpreter to others."""
    for _ in side_by_side(lambda finder: finder.add(frame, target, weight), finders):
        pass
