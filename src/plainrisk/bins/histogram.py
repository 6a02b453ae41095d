"""How often each value of one feature occurs, in all and with the positive outcome.

A histogram is all that bins need of the rows, and histograms of batches of rows add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plainrisk._types import Array, Bools, Counts, Floats, Index
from plainrisk.errors import DataError

__all__ = ["MOST_VALUES", "Histogram", "ValueCounts", "coarsen", "histogram", "merge"]

Singles = npt.NDArray[np.float32]
_Number = TypeVar("_Number", np.int64, np.float64)

# Distinct values of a feature that are counted one by one where rows come in batches: a histogram of 7 MB.
MOST_VALUES = 1 << 18


@dataclass(frozen=True, eq=False)
class Histogram:
    """Rows and weight at every distinct value of one feature.

    Attributes
    ----------
    values : (n,) float32, distinct and ascending
    rows : (n,) rows of positive weight at the value, at least 1
    weight : (n,) their total weight; equal to `rows` without weights
    positive : (n,) the weight of those with target 1
    """

    values: Singles
    rows: Counts
    weight: Floats
    positive: Floats


def histogram(x: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> Histogram:
    """Count one feature's values, in all and with target 1.

    Parameters
    ----------
    x : (rows,)
        Finite values; they are rounded to float32, and -0.0 is 0.0.
    y : (rows,)
        Target, 0 or 1.
    weight : (rows,), optional
        Nonnegative weights; rows of weight 0 are dropped.

    Examples
    --------
    >>> h = histogram([3, 1, 3, 2], [1, 0, 0, 1])
    >>> h.values, h.rows, h.positive
    (array([1., 2., 3.], dtype=float32), array([1, 1, 2]), array([0., 1., 1.]))
    """
    single, positive, mass = _checked(np.asarray(x), np.asarray(y), weight)
    return _counted(single, positive) if mass is None else _weighed(single, positive, mass)


def _checked(x: Array, y: Array, weight: npt.ArrayLike | None) -> tuple[Singles, Bools, Floats | None]:
    """Return x as float32, y as booleans and the weights, without rows of weight 0."""
    mass = None if weight is None else np.asarray(weight, np.float64)
    shapes = [v.shape for v in (x, y, mass) if v is not None]
    if x.ndim != 1 or len(set(shapes)) > 1:
        raise DataError(f"histogram: x, y and weight must be one-dimensional and equally long, got {shapes}.")
    positive = y if y.dtype == np.bool_ else y == 1
    if positive is not y and (other := ~positive & (y != 0)).any():
        raise DataError(f"histogram: the target must be 0 or 1, got {y[other][0]!s}.")
    if mass is not None:
        if not (np.isfinite(mass) & (mass >= 0)).all():
            raise DataError("histogram: weights must be finite and nonnegative. Correct or drop those rows.")
        some = mass > 0
        if not some.all():
            x, positive, mass = x[some], positive[some], mass[some]
    return _singles(x), positive, mass


def _singles(x: Array) -> Singles:
    with np.errstate(over="ignore"):
        single = x.astype(np.float32, copy=False)
    far = ~np.isfinite(single)
    if not far.any():
        return single
    if np.isfinite(x).all():
        raise DataError(
            f"histogram: the value {x[far][0]:g} is too large for float32 "
            f"(at most {np.finfo(np.float32).max:g}). Rescale the feature or declare it a special value."
        )
    raise DataError("histogram: x holds missing or infinite values. Remove them first.")


def _runs(ordered: Singles) -> tuple[Index, Counts]:
    """Return where each run of equal values starts, and its length."""
    first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    return starts, np.diff(starts, append=ordered.size)


def _counted(x: Singles, positive: Bools) -> Histogram:
    """Count rows without weights. Sorting all values and those of one class is cheaper than one argsort."""
    ordered = np.sort(x)
    starts, rows = _runs(ordered)
    values = ordered[starts] + np.float32(0)  # -0.0 becomes 0.0
    hits = np.sort(x[positive])
    starts, hit_rows = _runs(hits)
    found = np.zeros(values.size)
    found[np.searchsorted(values, hits[starts])] = hit_rows
    return Histogram(values, rows, rows.astype(np.float64), found)


def _weighed(x: Singles, positive: Bools, weight: Floats) -> Histogram:
    order = np.argsort(x, kind="stable")  # stable: tied weights are added in row order on every machine
    ordered = x[order]
    starts, rows = _runs(ordered)
    if not len(starts):
        return Histogram(ordered, rows, np.zeros(0), np.zeros(0))
    mass, hit = weight[order], positive[order]
    # By class, so that a pure value has exactly no weight in the other class.
    hits = np.add.reduceat(np.where(hit, mass, 0.0), starts)
    others = np.add.reduceat(np.where(hit, 0.0, mass), starts)
    return Histogram(ordered[starts] + np.float32(0), rows, hits + others, hits)


def merge(a: Histogram, b: Histogram) -> Histogram:
    """Return the histogram of two batches of rows together.

    Examples
    --------
    >>> merge(histogram([1, 2], [0, 1]), histogram([2, 5], [0, 1])).rows
    array([1, 2, 1])
    """
    values = np.union1d(a.values, b.values)
    at_a, at_b = np.searchsorted(values, a.values), np.searchsorted(values, b.values)

    def total(first: npt.NDArray[_Number], second: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        out = np.zeros(values.size, first.dtype)
        out[at_a] = first
        out[at_b] += second
        return out

    return Histogram(values, total(a.rows, b.rows), total(a.weight, b.weight), total(a.positive, b.positive))


class ValueCounts:
    """A histogram that grows batch by batch, and grows coarse rather than large.

    Values of one batch are counted one by one. From the second batch on, if there are more than `most` distinct values,
    neighbours share a bucket: float32 numbers that agree but for their last bits. No row is lost, and every edge found
    is the end of a bucket. The result depends on the rows, not on how they were cut into batches.

    Attributes
    ----------
    bits : how many of the last bits of a float32 number are dropped; 0 while every value is counted by itself
    histogram : what was counted; the value of a bucket is its largest number
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = MOST_VALUES if most is None else most
        self.bits = 0
        self.histogram: Histogram | None = None

    def add(self, x: Array, target: Array, weight: Floats | None) -> None:
        """Count the values of a batch."""
        if self.bits:
            # Before they are sorted: equal numbers are cheaper than buckets of different ones.
            x = _bucket_ends(x.astype(np.float32), self.bits)
        found = histogram(x, target, weight)
        if self.histogram is None:
            self.histogram = found
            return
        found = merge(self.histogram, found)
        while len(found.values) > self.most:
            self.bits += 1
            found = coarsen(found, self.bits)
        self.histogram = found

    def snap(self, edges: tuple[float, ...]) -> tuple[float, ...]:
        """Move edges between two buckets to the end of the first, so that all of a bucket lies on one side."""
        if not self.bits or not edges or self.histogram is None:
            return edges
        ends = self.histogram.values.astype(np.float64)
        return tuple(ends[np.searchsorted(ends, edges, side="right") - 1].tolist())


def coarsen(found: Histogram, bits: int) -> Histogram:
    """Return a histogram in which numbers that differ in their last bits only are one, the largest of them.

    >>> coarsen(histogram([1.0, 1.0000001, 2.0], [0, 1, 1]), 4).rows
    array([2, 1])
    """
    if not bits or not len(found.values):
        return found
    ends = _bucket_ends(found.values, bits)
    starts, _ = _runs(ends)
    add: Any = np.add.reduceat
    return Histogram(ends[starts], add(found.rows, starts), add(found.weight, starts), add(found.positive, starts))


def _bucket_ends(values: Singles, bits: int) -> Singles:
    """Return the largest number of every number's bucket."""
    sign, rest = np.uint32(1 << 31), np.uint32((1 << bits) - 1)
    raw = (values + np.float32(0)).view(np.uint32)  # -0.0 becomes 0.0
    # Numbers below 0 grow with smaller bits, so the largest of a bucket has none; but the last bucket must not reach 0.
    below = np.maximum(raw & ~rest, sign | np.uint32(1))
    ends = np.where(raw >= sign, below, raw | rest).view(np.float32)
    # The last bucket would end beyond the finite numbers.
    return np.fmin(ends, np.float32(np.finfo(np.float32).max))
