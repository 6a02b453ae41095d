"""The bin edges of every training fold of one feature.

Values are sorted once for all folds: the histogram of a training fold is that of all rows less the fold's, and what
the folds share, where a best cut can be, is found once. The compiled loops do the same, but sort few of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import fold_cuts
from plainrisk.bins.edges import split_edges
from plainrisk.bins.histogram import Histogram
from plainrisk.bins.learn import Criterion
from plainrisk.bins.quantiles import quantile_edges
from plainrisk.bins.tree import GAP, midway
from plainrisk.models.fold_trees import grow_folds

__all__ = ["fold_edges"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]

_TABLE_SHARE = 4  # rows per whole number of a range below which sorting is as good as a table
_SIGN = np.uint32(1 << 31)
_NOTHING = Histogram(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def fold_edges(
    x: Floats | Singles,
    target: npt.NDArray[Any],
    fold: npt.NDArray[Any],
    n_folds: int,
    *,
    max_bins: int,
    criterion: Criterion = "gini",
    min_rows: int = 1,
) -> list[Floats]:
    """Return, for every fold, the edges that the rows outside it would give.

    Parameters
    ----------
    x : (n,) within the range of float32; what is not a number is left out
    target : (n,) 0/1
    fold : (n,) from 0 to n_folds - 1

    Examples
    --------
    >>> x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1])
    >>> [e.tolist() for e in fold_edges(x, y, np.array([0, 1, 0, 1]), 2, max_bins=2)]
    [[3.0], [2.0]]
    """

    settings = max_bins, "gini" if criterion == "quantile" else criterion, min_rows
    split_edges(_NOTHING, *settings)  # checks the settings
    single = x.astype(np.float32, copy=False)
    narrow: npt.NDArray[Any] = fold.astype(np.uint8 if n_folds <= 256 else np.uint16, copy=False)
    bad = target.view(np.bool_) if target.dtype == np.uint8 else target.astype(np.bool_)
    if criterion != "quantile" and (cuts := fold_cuts(single, bad, narrow, n_folds, *settings)):
        return [midway(*both) for both in cuts]
    measured = single == single
    single, target, fold = single[measured] + np.float32(0), target[measured], fold[measured]  # -0.0 becomes 0.0
    label = fold.astype(np.uint32) + target.astype(np.uint32) * np.uint32(n_folds)
    # Bins of several rows, and equal shares, may end anywhere, so that every value is needed.
    anywhere = criterion == "quantile" or min_rows != 1
    found = _tabulated(single, label, n_folds)
    if found is None:
        rows = _SortedRows.of(single, label)
        if not anywhere:
            return _edges_of_rows(rows, n_folds, max_bins, criterion)
        found = rows.values[rows.starts], rows.counts(rows.starts[1:], n_folds)
    values, counts = found
    if not anywhere:
        return _edges_of_values(values, counts, max_bins, criterion)
    training = (counts.sum(axis=1, keepdims=True) - counts)[:, :, 1:]
    histograms = [_histogram(values, *train) for train in training.swapaxes(0, 1)]
    if criterion == "quantile":
        return [quantile_edges(h, max_bins, min_rows) for h in histograms]
    return [split_edges(h, max_bins, criterion, min_rows) for h in histograms]


def _histogram(values: Singles, good: Counts, bad: Counts) -> Histogram:
    rows = good + bad
    kept = np.flatnonzero(rows)
    return Histogram(values[kept], rows[kept], rows[kept].astype(np.float64), bad[kept].astype(np.float64))


def _training_below(counts: Counts) -> Counts:
    """Return the rows outside each fold below every place where values may be cut: (outcome, fold, place).

    Places go from 0, below all, to the last, above all. The counts, those inside each fold between a place and the one
    before, are overwritten: of many values they are the largest table there is.
    """
    np.cumsum(counts, axis=2, out=counts)
    np.subtract(counts.sum(axis=1, keepdims=True), counts, out=counts)
    return counts


def _edges_of_values(values: Singles, counts: Counts, max_bins: int, criterion: str) -> list[Floats]:
    """Return the folds' edges between values that are all far enough apart."""
    if values.size == 0:
        return [np.zeros(0)] * counts.shape[1]
    good, bad = _training_below(counts)
    out = []
    for k, cuts in enumerate(grow_folds(good, bad, max_bins, criterion)):
        below = good[k] + bad[k]
        lower, upper = np.searchsorted(below, cuts) - 1, np.searchsorted(below, cuts, side="right") - 1
        out.append(midway(values[lower], values[upper]))
    return out


def _tabulated(x: Singles, label: npt.NDArray[np.uint32], n_folds: int) -> tuple[Singles, Counts] | None:
    """Count whole numbers of a narrow range by (outcome, fold, value); else None."""
    if x.size == 0:
        return x, np.zeros((2, n_folds, 1), np.int64)
    low = x.min()
    width = float(x.max()) - float(low) + 1.0
    if width > min(x.size / _TABLE_SHARE, 2.0**24) or (np.rint(x) != x).any():
        return None
    counts = _counts((x - low).astype(np.intp), label, int(width), n_folds)
    seen = np.flatnonzero(counts.any(axis=(0, 1)))
    # Before the first value there is nothing.
    return (seen + float(low)).astype(np.float32), np.insert(counts[:, :, seen], 0, 0, axis=2)


def _counts(place: Index, label: npt.NDArray[Any], n_places: int, n_folds: int) -> Counts:
    """Return how many rows there are by (outcome, fold, place), from 0 to n_places - 1."""
    key = label * np.intp(n_places)
    key += place
    return np.bincount(key, minlength=2 * n_folds * n_places).reshape(2, n_folds, n_places)


@dataclass(frozen=True)
class _SortedRows:
    """Rows in the order of one feature's values.

    Attributes
    ----------
    values : (n,) ascending
    label : (n,) outcome * folds + fold
    starts : where each run of equal values starts
    """

    values: Singles
    label: npt.NDArray[np.intp]
    starts: Index

    @classmethod
    def of(cls, x: Singles, label: npt.NDArray[np.uint32]) -> _SortedRows:
        # Two sorts by 16 bits each, which numpy does by counting, are several times faster than one by 32. The bits are
        # turned so that they sort as the value does.
        bits = x.view(np.uint32)
        bits = np.where(bits & _SIGN, ~bits, bits | _SIGN)
        order = np.argsort(bits.astype(np.uint16), kind="stable")
        high = (bits >> np.uint32(16)).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
        values = x[order]
        starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
        return cls(values, label[order].astype(np.intp), starts)

    def counts(self, cuts: Index, n_folds: int) -> Counts:
        """Return the rows of every segment between the cuts: (outcome, fold, segment), none in segment 0."""
        segment = np.zeros(len(self.values), np.intp)
        segment[cuts] = 1
        segment[0] = 1
        np.cumsum(segment, out=segment)
        return _counts(segment, self.label, len(cuts) + 2, n_folds)


def _edges_of_rows(rows: _SortedRows, n_folds: int, max_bins: int, criterion: str) -> list[Floats]:
    """Return the folds' edges, looking only at the cuts where one can be best.

    Weight times impurity is strictly concave in the class counts where a node holds both outcomes, so a cut inside a
    run of one outcome is worse than one of the run's ends. Runs of all rows are runs in every training fold.
    """
    places, doubtful = _candidates(rows, n_folds)
    good, bad = _training_below(rows.counts(places, n_folds))
    folds = [_FoldView(rows, k, n_folds) for k in range(n_folds)]
    at = places[doubtful]
    for k, fold in enumerate(folds):
        _join(doubtful[fold.first_value(at) <= fold.last_value(at) + GAP] + 1, good[k], bad[k])
    out = []
    for k, cuts in enumerate(grow_folds(good, bad, max_bins, criterion)):
        # The last of the places with so many rows below: those joined to it before are no cuts.
        at = places[np.searchsorted(good[k] + bad[k], cuts, side="right") - 2]
        out.append(midway(folds[k].last_value(at), folds[k].first_value(at)))
    return out


def _join(places: Index, *below: Counts) -> None:
    """Make these places, where a fold's values are too near each other, the same as the next that is not among them."""
    ends = np.append(np.diff(places) != 1, True)[: len(places)]
    next_one = places[ends][np.cumsum(ends) - ends] + 1
    for rows in below:
        rows[places] = rows[next_one]


def _candidates(rows: _SortedRows, n_folds: int) -> tuple[Index, Index]:
    """Return the row positions of cuts that may be best, and the numbers of those that only some folds allow."""
    values, starts = rows.values, rows.starts[1:]
    apart = values[starts] > values[starts - 1] + GAP
    groups = np.concatenate([[0], starts[apart]])
    bad = np.add.reduceat((rows.label >= n_folds).astype(np.intp), groups)
    size = np.diff(groups, append=len(values))
    outcome = np.where(bad == 0, 0, np.where(bad == size, 1, 2))
    within = (outcome[1:] == outcome[:-1]) & (outcome[1:] < 2)
    # Of three values in a chain of near ones the middle may be in one fold only, and the outer two far enough apart.
    near = ~apart
    chained = near & (np.append(near[1:], False) | np.insert(near[:-1], 0, False))
    cuts = np.concatenate([groups[1:][~within], starts[chained]])
    order = np.argsort(cuts, kind="stable")
    return cuts[order], np.flatnonzero(order >= len(cuts) - np.count_nonzero(chained))


@dataclass(frozen=True)
class _FoldView:
    """The sorted rows without one fold."""

    rows: _SortedRows
    fold: int
    n_folds: int

    def last_value(self, at: Index) -> Singles:
        """Return the greatest training value before each row position."""
        return self._value(at - 1, -1)

    def first_value(self, at: Index) -> Singles:
        """Return the least training value from each row position on."""
        return self._value(at, 1)

    def _value(self, at: Index, step: int) -> Singles:
        place = at.copy()
        held = np.flatnonzero(self.rows.label[place] % self.n_folds == self.fold)
        end = 0 if step < 0 else len(self.rows.values) - 1
        while held.size:
            place[held] += step
            # At the end of the rows there is nothing left: the cut separates nothing.
            inside = held[place[held] * step <= end * step]
            place[held] = np.clip(place[held], 0, len(self.rows.values) - 1)
            held = inside[self.rows.label[place[inside]] % self.n_folds == self.fold]
        return self.rows.values[place]
