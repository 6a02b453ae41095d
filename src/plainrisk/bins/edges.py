"""Bin edges of one feature, from a histogram of its values.

A histogram counts how often each value occurs, in all and with the positive outcome. It is all that bins need of the
rows, and histograms of batches of rows add up.

Supervised edges are the thresholds of a best-first classification tree on that single feature: those of scikit-learn's
``DecisionTreeClassifier(criterion=..., max_leaf_nodes=..., min_samples_leaf=...)``, bit for bit. Equality needs weights
whose sums are exact in any order: none, integers, or multiples of a power of two. With others scikit-learn's own sums
depend on the order of tied rows. And it needs values that single precision, in which scikit-learn works, keeps apart.
Values that differ less (time stamps, account numbers, amounts in cents) are told apart here, in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plainrisk._native.tree import Impurity, tree_cuts
from plainrisk._types import Array, Bools, Counts, Floats, Index

__all__ = [
    "MOST_VALUES",
    "Histogram",
    "ValueCounts",
    "coarsen",
    "fine_edges",
    "histogram",
    "merge",
    "quantile_edges",
    "split_edges",
]

_Number = TypeVar("_Number", np.int64, np.float64)

# The number of distinct values of a feature that are counted separately if rows come in batches: a histogram of 7 MB.
MOST_VALUES = 1 << 18
# scikit-learn never separates neighbors that are nearer than this; the sum is rounded to single precision.
_GAP = np.float32(1e-7)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Rows and weight at every distinct value of one feature.

    Attributes
    ----------
    values : (n,) distinct and ascending
    rows : (n,) rows of positive weight at the value, at least 1
    weight : (n,) their total weight; equal to `rows` without weights
    positive : (n,) the weight of those with target 1
    """

    values: Floats
    rows: Counts
    weight: Floats
    positive: Floats


def histogram(x: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> Histogram:
    """Count one feature's values, in total and with outcome 1.

    Parameters
    ----------
    x : (rows,)
        Finite values; -0.0 is 0.0.
    y : (rows,)
        Target, 0 or 1.
    weight : (rows,), optional
        Finite weights above 0; rows of weight 0 are dropped.

    Examples
    --------
    >>> h = histogram([3, 1, 3, 2], [1, 0, 0, 1])
    >>> h.values, h.rows, h.positive
    (array([1., 2., 3.]), array([1, 1, 2]), array([0., 1., 1.]))
    """
    values, positive = np.asarray(x, np.float64), np.asarray(y).astype(np.bool_, copy=False)
    if weight is None:
        return _counted(values, positive)
    mass = np.asarray(weight, np.float64)
    kept = mass > 0
    return _weighed(values[kept], positive[kept], mass[kept])


def _runs(ordered: Floats) -> tuple[Index, Counts]:
    """Return where each run of equal values starts, and its length."""
    first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    return starts, np.diff(starts, append=ordered.size)


def _counted(x: Floats, positive: Bools) -> Histogram:
    """Count rows without weights. Sorting all values and those of one class is cheaper than one argsort."""
    ordered = np.sort(x)
    starts, rows = _runs(ordered)
    values = ordered[starts] + 0.0  # -0.0 becomes 0.0
    hits = np.sort(x[positive])
    starts, hit_rows = _runs(hits)
    positives = np.zeros(values.size)
    positives[np.searchsorted(values, hits[starts])] = hit_rows
    return Histogram(values, rows, rows.astype(np.float64), positives)


def _weighed(x: Floats, positive: Bools, weight: Floats) -> Histogram:
    order = np.argsort(x, kind="stable")  # stable: tied weights are added in row order on every machine
    ordered = x[order]
    starts, rows = _runs(ordered)
    if not len(starts):
        return Histogram(ordered, rows, np.zeros(0), np.zeros(0))
    mass, hit = weight[order], positive[order]
    # By class, so that a value with only one class has exactly zero weight in the other.
    hits = np.add.reduceat(np.where(hit, mass, 0.0), starts)
    others = np.add.reduceat(np.where(hit, 0.0, mass), starts)
    return Histogram(ordered[starts] + 0.0, rows, hits + others, hits)


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
    neighbors share a bucket: numbers that agree but for their last bits. No row is lost, and every edge found
    is the end of a bucket. The result depends on the rows, not on how they were cut into batches.

    Attributes
    ----------
    bits : how many of the last bits of a number are dropped; 0 while every value is counted by itself
    histogram : what was counted; the value of a bucket is its largest number
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = MOST_VALUES if most is None else most
        self.bits = 0
        self.histogram: Histogram | None = None

    def add(self, x: Array, target: Array, weight: Floats | None) -> None:
        """Count the values of a batch."""
        self._merge(histogram(x, target, weight), 0)

    def __add__(self, other: ValueCounts) -> ValueCounts:
        """Return the counts of the rows of both."""
        both = ValueCounts(self.most)
        for counts in (self, other):
            both._merge(counts.histogram, counts.bits)
        return both

    def _merge(self, new: Histogram | None, bits: int) -> None:
        if new is None or self.histogram is None:
            self.histogram, self.bits = (self.histogram, self.bits) if new is None else (new, bits)
            return
        self.bits = max(self.bits, bits)
        merged = merge(coarsen(self.histogram, self.bits), coarsen(new, self.bits))
        while len(merged.values) > self.most:
            self.bits += 1
            merged = coarsen(merged, self.bits)
        self.histogram = merged

    def snap(self, edges: tuple[float, ...]) -> tuple[float, ...]:
        """Move edges inside a bucket to its end, so that the whole bucket is on one side."""
        if not self.bits or not edges or self.histogram is None:
            return edges
        ends = self.histogram.values
        return tuple(ends[np.searchsorted(ends, edges, side="right") - 1].tolist())


def coarsen(h: Histogram, bits: int) -> Histogram:
    """Return a histogram in which numbers that differ in their last bits only are one, the largest of them.

    >>> coarsen(histogram([1.0, 1.0000001, 2.0], [0, 1, 1]), 33).rows
    array([2, 1])
    """
    if not bits or not len(h.values):
        return h
    ends = _bucket_ends(h.values, bits)
    starts, _ = _runs(ends)
    add: Any = np.add.reduceat
    return Histogram(ends[starts], add(h.rows, starts), add(h.weight, starts), add(h.positive, starts))


def _bucket_ends(values: Floats, bits: int) -> Floats:
    """Return the largest number of every number's bucket."""
    sign, dropped = np.uint64(1 << 63), np.uint64((1 << bits) - 1)
    raw = (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    # Numbers below 0 grow with smaller bits, so the largest of a bucket has none; but the last bucket must not reach 0.
    below = np.maximum(raw & ~dropped, sign | np.uint64(1))
    ends = np.where(raw >= sign, below, raw | dropped).view(np.float64)
    # The last bucket would end beyond the finite numbers.
    return np.fmin(ends, np.finfo(np.float64).max)


def split_edges(h: Histogram, max_bins: int, criterion: Impurity = "gini", min_rows: int = 1) -> Floats:
    r"""Return the thresholds of a best-first tree on the histogram, ascending.

    The node with the largest decrease of impurity is split first, until there are `max_bins` leaves:

    .. math:: \frac{w}{W}\Bigl(I - \frac{w_r}{w} I_r - \frac{w_l}{w} I_l\Bigr), \quad
        I = 1 - p_0^2 - p_1^2 \ \text{(gini)}, \quad I = -p_0 \log_2 p_0 - p_1 \log_2 p_1 \ \text{(entropy)}

    where w, w_l, w_r are the weights of the node and its halves, W of all rows, and p_0, p_1 class shares.

    Parameters
    ----------
    h : Histogram
    max_bins : int
        At most this many bins, at least 1.
    criterion : {"gini", "entropy"}, default="gini"
    min_rows : int, default=1
        Every bin holds at least this many rows.

    Returns
    -------
    float64 array of shape (at most max_bins - 1,)
        A value x is in bin number ``count(edges < x)``: x equal to an edge goes left. Edges lie midway between two
        values: between these as single-precision numbers, if that separates them.

    Examples
    --------
    >>> split_edges(histogram([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 1, 0]), max_bins=3)
    array([2.5, 5.5])
    """
    if h.values.size < 2 or max_bins < 2:
        return np.zeros(0)
    last = _candidates(h.values)
    rows = _running_sums(h.rows, last)
    good, bad = _running_sums(h.weight - h.positive, last), _running_sums(h.positive, last)
    cuts = tree_cuts(rows, good, bad, max_bins - 1, min(min_rows, int(rows[-1]) + 1), criterion)
    at = last[np.array(sorted(cuts), dtype=np.intp) - 1]
    return _midway(h, at)


def quantile_edges(h: Histogram, max_bins: int, min_rows: int = 1) -> Floats:
    """Return the edges that cut the weight into `max_bins` equal shares as nearly as the values allow.

    Edges that would leave a bin with fewer than `min_rows` rows are left out. They are found without the outcome, so a
    held-out fold knows nothing through them.

    Examples
    --------
    >>> quantile_edges(histogram([1, 2, 3, 4, 4, 4, 4, 4], [0] * 8), max_bins=4)
    array([2.5, 3.5])
    """
    if h.values.size < 2:
        return np.zeros(0)
    upto = np.cumsum(h.weight)
    targets = upto[-1] * np.arange(1, max_bins) / max_bins
    after = np.searchsorted(upto, targets)
    before = np.maximum(after - 1, 0)
    # A frequent value spans several quantiles; cut on its nearer side.
    last = np.unique(np.where(targets - upto[before] < upto[after] - targets, before, after))
    return _midway(h, _with_rows(h, last[last < h.values.size - 1], min_rows))


def fine_edges(h: Histogram, max_bins: int, halvings: int = 0) -> Floats:
    """Return edges that give every frequent value its own bin, and cut the other rows into equal shares.

    A value is heavy if it has more than ``1 / max_bins`` of the weight. Equal shares alone would leave few bins to a
    feature that is mostly one value.

    Parameters
    ----------
    max_bins : about how many bins there are, tails not counted
    halvings : how often the outermost bins are cut in halves, toward the ends

    Examples
    --------
    >>> fine_edges(histogram([0] * 6 + [1, 2, 3, 4, 5, 6], [0] * 12), max_bins=4)
    array([0.5, 2.5, 4.5])
    >>> fine_edges(histogram(np.arange(16), [0] * 16), max_bins=2, halvings=2)
    array([ 1.5,  3.5,  7.5, 11.5, 13.5])
    """
    if h.values.size < 2 or max_bins < 2:
        return np.zeros(0)
    heavy = h.weight > h.weight.sum() / max_bins
    light = np.where(heavy, 0.0, h.weight)
    # Every stretch of rare values between frequent ones has at least one bin.
    stretches = int(np.count_nonzero(~heavy & np.concatenate([[True], heavy[:-1]])))
    shares = max(max_bins - int(heavy.sum()) - stretches, 0) + 1
    upto = np.cumsum(light)
    number = np.ceil(upto * (shares / max(float(upto[-1]), 1e-300)) - 1e-9)
    cut = heavy[:-1] | heavy[1:] | (number[1:] > number[:-1])
    cut[_tail_cuts(h, max_bins, halvings)] = True
    return _midway(h, np.flatnonzero(cut))


def _tail_cuts(h: Histogram, max_bins: int, halvings: int) -> Index:
    """Return the cuts that halve the outermost bins again and again."""
    upto = np.cumsum(h.weight)
    tails = upto[-1] / max_bins * 0.5 ** np.arange(1, halvings + 1)
    both = np.concatenate([tails, upto[-1] - tails])
    return np.unique(np.minimum(np.searchsorted(upto, both * (1.0 - 1e-9)), h.values.size - 2))


def _with_rows(h: Histogram, last: Index, min_rows: int) -> Index:
    """Return the cuts, from below, that leave enough rows on both sides."""
    upto = np.cumsum(h.rows)
    kept, start = [], 0
    for cut in last:
        if min(upto[cut] - start, upto[-1] - upto[cut]) >= min_rows:
            kept.append(cut)
            start = upto[cut]
    return np.array(kept, dtype=np.intp)


def _candidates(values: Floats) -> Index:
    """Return the positions of the values that a cut may follow; the rule does not depend on the node.

    Where single precision distinguishes all values, these are scikit-learn's candidates. Elsewhere, every value is a
    candidate.
    """
    single = _single(values)
    if not (single[1:] > single[:-1]).all():
        return np.arange(len(values) - 1)
    return np.flatnonzero(single[1:] > single[:-1] + _GAP)


def _midway(h: Histogram, at: Index) -> Floats:
    """Return the edges between the values at these positions and the next ones."""
    below, above = h.values[at], h.values[at + 1]
    with np.errstate(invalid="ignore"):  # minus infinity and infinity, far beyond single precision
        edges = _single(below).astype(np.float64) / 2.0 + _single(above).astype(np.float64) / 2.0
    separates = (edges >= below) & (edges < above)
    middle = below / 2.0 + above / 2.0
    # Between two neighbors among all numbers the middle is rounded to one of them: it must be the lower one.
    return np.asarray(np.where(separates, edges, np.where((middle >= below) & (middle < above), middle, below)))


def _single(values: Floats) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _running_sums(counts: npt.NDArray[_Number], last: Index) -> npt.NDArray[_Number]:
    """Return the sums below each candidate cut, from 0 to all."""
    total = np.cumsum(counts)
    return np.concatenate([[0], total[last], total[-1:]]).astype(counts.dtype, copy=False)
