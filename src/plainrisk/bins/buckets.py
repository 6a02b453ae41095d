"""Bin edges of very many rows, without sorting them: exactly those of `split_edges`.

Rows are counted in buckets of neighbouring float32 numbers, and the buckets joined to segments of about equally many
rows. The gain of a cut is convex in the two class counts below it, and inside a segment these lie in a rectangle. So
the best of its four corners bounds every cut of the segment, and only segments whose bound reaches the best known
cut are opened: their rows, a few in a hundred, are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.bins.histogram import Histogram, sorted_histogram
from plainrisk.bins.tree import GAP, Splitter, grow, midway, proxy_of

__all__ = ["bucket_edges"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]

_BUCKETS = 1 << 16  # the number of a bucket takes two bytes
_SEGMENT_ROWS = 1 << 7  # rows of a segment, unless there would be too few or too many segments
_SEGMENTS = (1 << 11, 1 << 14)
_BLOCK = 1 << 16  # rows counted at once
_SAMPLE = 1 << 12  # rows that tell whether the values are skewed
_OPEN = 1 << 10  # segments opened at first
_SLACK = 1e-11  # far above the rounding of a gain, per unit of weight


def bucket_edges(x: Singles, bad: Bools, max_bins: int, criterion: str = "gini", min_rows: int = 1) -> Floats:
    """Return the thresholds of a best-first tree on the rows of one feature, ascending.

    Parameters
    ----------
    x : (n,) finite
    bad : (n,) whether the outcome is the positive one
    max_bins, criterion, min_rows : as in `split_edges`

    Examples
    --------
    >>> x = np.arange(12, dtype=np.float32) / 4
    >>> bucket_edges(x, (x > 1) & (x < 2), max_bins=3)
    array([1.125, 1.875])
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # a corner without rows is no cut
        splitter = _BucketSplitter(_Rows.of(x, bad), criterion, min_rows)
        cuts = grow(splitter, max_bins - 1) if max_bins > 1 else []
    at = np.searchsorted(splitter.rows, sorted(cuts)).astype(np.intp)
    return midway(splitter.segments.value[at - 1], splitter.segments.value[at])


@dataclass(frozen=True)
class _Grid:
    """Which bucket a number is in: never a lower one for a higher number.

    Buckets are equally wide in the numbers themselves, or where these are skewed in their bits, which is nearly their
    logarithm.
    """

    low: np.float32
    scale: np.float32
    shift: np.uint32
    size: int

    @classmethod
    def of(cls, x: Singles) -> _Grid:
        low, high = x.min(), x.max()
        first, last = (int(k) for k in _keys(np.array([low, high], np.float32)))
        shift = max(0, (last - first).bit_length() - _BUCKETS.bit_length() + 1)
        by_bits = cls(low, np.float32(0), np.uint32(shift), ((last - first) >> shift) + 1)
        with np.errstate(over="ignore", divide="ignore"):
            scale = np.float32(_BUCKETS - 1) / (high - low)
        if not 0 < scale < np.inf:
            return by_bits
        by_width = cls(low, scale, np.uint32(0), _BUCKETS)
        some = x[:: max(1, x.size // _SAMPLE)]
        return min(by_width, by_bits, key=lambda grid: int((np.bincount(grid.bucket(some)) ** 2).sum()))

    def bucket(self, x: Singles) -> npt.NDArray[np.uint32]:
        """Return the bucket of every number."""
        if self.scale:
            return ((x - self.low) * self.scale).astype(np.uint32)
        key = _keys(x)
        key -= _keys(np.array([self.low]))
        key >>= self.shift
        return key


@dataclass(frozen=True)
class _Rows:
    """The rows, and the bucket of each."""

    x: Singles
    bad: Bools
    grid: _Grid
    bucket: npt.NDArray[np.uint16]
    counts: Counts  # (buckets, 2), by class

    @classmethod
    def of(cls, x: Singles, bad: Bools) -> _Rows:
        grid = _Grid.of(x)
        bucket = np.empty(x.size, np.uint16)
        counts = np.zeros(2 * grid.size, np.int64)
        for start in range(0, x.size, _BLOCK):
            rows = slice(start, start + _BLOCK)
            key = grid.bucket(x[rows])
            bucket[rows] = key
            key <<= np.uint32(1)
            key |= bad[rows]
            counts += np.bincount(key, minlength=counts.size)
        return cls(x, bad, grid, bucket, counts.reshape(-1, 2))

    def inside(self, starts: Counts, ends: Counts) -> Histogram:
        """Return the histogram of the rows whose bucket is in one of these ranges."""
        change = np.zeros(self.grid.size + 1, np.int8)
        change[starts] += 1
        change[ends] -= 1
        chosen = np.cumsum(change[:-1], dtype=np.int8).view(np.bool_)
        # They are mostly neighbours. Rows from the first to the last are found by one comparison (a number below the
        # first wraps round), and only those looked up.
        first, width = np.uint16(starts.min()), np.uint16(ends.max() - 1 - starts.min())
        rows = np.flatnonzero(self.bucket - first <= width)
        rows = rows[chosen[self.bucket[rows]]]
        return sorted_histogram(self.x[rows], self.bad[rows])


@dataclass(frozen=True)
class _Segments:
    """Neighbouring rows: those of some buckets, or of one value. One entry per segment throughout.

    Attributes
    ----------
    good, bad : rows of each class
    start, end : the buckets
    value : of a segment of one value; else not a number
    """

    good: Counts
    bad: Counts
    start: Counts
    end: Counts
    value: Singles

    @classmethod
    def of(cls, counts: Counts) -> _Segments:
        total = counts.sum(axis=1)
        upto = np.cumsum(total)
        size = int(np.clip(upto[-1] // _SEGMENT_ROWS, *_SEGMENTS))
        share = (upto - 1) * size // upto[-1]  # buckets of one share, by rows, are one segment
        used = np.flatnonzero(total)
        first = used[np.flatnonzero(np.diff(share[used], prepend=-1))]
        sums = np.add.reduceat(counts, first, axis=0)
        end = np.append(first[1:], len(counts))
        return cls(sums[:, 0], sums[:, 1], first, end, np.full(first.size, np.nan, np.float32))

    @property
    def closed(self) -> Bools:
        """Which segments are buckets still."""
        return np.isnan(self.value)

    def opened(self, which: npt.NDArray[np.intp], rows: _Rows) -> _Segments:
        """Put the values of some segments into their place."""
        h = rows.inside(self.start[which], self.end[which])
        home = rows.grid.bucket(h.values).astype(np.int64)
        new = _Segments((h.weight - h.positive).astype(np.int64), h.positive.astype(np.int64), home, home + 1, h.values)
        kept = np.ones(self.value.size, np.bool_)
        kept[which] = False
        order = np.argsort(np.concatenate([self.start[kept], new.start]), kind="stable")
        pairs = [(getattr(self, f)[kept], getattr(new, f)) for f in ("good", "bad", "start", "end", "value")]
        return _Segments(*(np.concatenate(pair)[order] for pair in pairs))


class _BucketSplitter(Splitter):
    """Finds best cuts, opening segments as they are needed. Places between segments that are closed are no cuts yet."""

    def __init__(self, source: _Rows, criterion: str, min_rows: int) -> None:
        self.source = source
        self._use(_Segments.of(source.counts))
        super().__init__(self.rows, self.good, self.bad, criterion, min_rows)

    def _use(self, segments: _Segments) -> None:
        self.segments = segments
        good, bad = (np.concatenate([[0], np.cumsum(v)]) for v in (segments.good, segments.bad))
        self.rows, self.good, self.bad = good + bad, good.astype(np.float64), bad.astype(np.float64)
        value = segments.value
        # Comparisons with what is not a number are false: a cut needs a value on both sides.
        self.sure = np.concatenate([[False], value[1:] > value[:-1] + GAP, [False]])

    def best_cut(self, start: int, end: int) -> int:
        """Return how many rows are below the best cut, the leftmost of equals; 0 if there is none."""
        # First as if every place were a cut, which is nearly true; then from the best true cut.
        least, most = self._top(start, end, hoping=True), _OPEN
        while True:
            wanted = self._promising(start, end, least)
            chosen = wanted[: -most - 1 : -1]  # the most promising ones
            if chosen.size:
                self._use(self.segments.opened(chosen, self.source))
            best = self._top(start, end)
            if chosen.size == wanted.size and best >= least:
                break
            least, most = best, 4 * most
        first, proxy = self._proxies(start, end)
        near = first + np.flatnonzero(proxy >= best - self.error * self.weight(start, end))
        return self.leftmost_best(start, end, near) if best > -np.inf else 0

    def _proxies(self, start: int, end: int, *, hoping: bool = False) -> tuple[int, Floats]:
        """Return the first place that leaves enough rows, and the gains from there on; those of no cut are -inf."""
        first, stop = self.allowed(start, end)
        places = slice(first, max(first, stop))
        proxy = proxy_of(*self.halves(start, end, places, np.log))
        return first, proxy if hoping else np.where(self.sure[places], proxy, -np.inf)

    def _top(self, start: int, end: int, *, hoping: bool = False) -> float:
        proxy = self._proxies(start, end, hoping=hoping)[1]
        return float(np.fmax.reduce(proxy, initial=-np.inf))

    def _promising(self, start: int, end: int, least: float) -> npt.NDArray[np.intp]:
        """Return the closed segments of a node that may hold a cut of this gain or more, the most promising last."""
        a, b = self.at(start), self.at(end)
        corners = [(self.good[a + i : b + i], self.bad[a + j : b + j]) for i, j in ((0, 0), (0, 1), (1, 0), (1, 1))]
        bound = np.fmax.reduce([proxy_of(*self.split(start, end, g, d, np.log)) for g, d in corners])
        bound[np.isnan(bound)] = np.inf  # a segment of all rows of the node may hold anything
        slack = _SLACK * self.weight(start, end)
        wanted = np.flatnonzero((bound >= least - slack) & self.segments.closed[a:b])
        return a + wanted[np.argsort(bound[wanted], kind="stable")]


def _keys(x: Singles) -> npt.NDArray[np.uint32]:
    """Return whole numbers in the order of float32 numbers; -0.0 is 0.0."""
    bits = (x + np.float32(0)).view(np.int32)
    # Below 0 the bits count away from 0, so they are turned round.
    bits ^= (bits >> 31) & np.int32(0x7FFFFFFF)
    return np.add(bits.view(np.uint32), np.uint32(1 << 31))
