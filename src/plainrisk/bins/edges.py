"""Supervised bin edges of one feature, from a histogram of its values.

The edges are the thresholds of a best-first classification tree on that single feature. They are those of
scikit-learn's ``DecisionTreeClassifier(criterion=..., max_leaf_nodes=..., min_samples_leaf=...)``, bit for
bit, because every quantity that decides a split is computed in the same precision and the same order. But the
rows are counted once and never visited again; histograms add up over blocks of rows and subtract for folds.

Equality needs weights whose sums are exact in any order: none, integers, or multiples of a power of two. With
others scikit-learn's own sums depend on the order of tied rows, and splits that are equally good up to
rounding may change places. Nodes that tie follow the heap of the GNU C++ library, and products are rounded
before they are added, as in scikit-learn's builds for Linux on x86-64; elsewhere ties may fall differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from plainrisk._native import tree_cuts
from plainrisk.bins.buckets import bucket_edges
from plainrisk.bins.histogram import Histogram, checked, histogram, sorted_histogram, tabulated
from plainrisk.bins.tree import GAP, IMPURITY, Splitter, grow, midway
from plainrisk.errors import SchemaError, did_you_mean

__all__ = ["Criterion", "column_edges", "row_edges", "split_edges", "supervised_edges"]

Criterion = Literal["gini", "entropy"]
Bools = npt.NDArray[np.bool_]
Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
_Number = TypeVar("_Number", np.int64, np.float64)

MANY_ROWS = 1 << 16  # from here on buckets are faster than sorting
WIDE = 2.0**-6


def split_edges(h: Histogram, max_bins: int, criterion: Criterion = "gini", min_rows: int = 1) -> Floats:
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
        A value x is in bin number ``count(edges < x)``: x equal to an edge goes left. Edges lie midway
        between two float32 values, so round x to float32 to agree with the tree on every value.

    Examples
    --------
    >>> split_edges(histogram([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 1, 0]), max_bins=3)
    array([2.5, 5.5])
    """
    _check_settings(max_bins, criterion, min_rows)
    if h.values.size < 2 or max_bins < 2:
        return np.zeros(0)
    # Neighbours that no split may separate are one group; the gap rule does not depend on the node.
    last = np.flatnonzero(h.values[1:] > h.values[:-1] + GAP)
    rows = _prefix_sums(h.rows, last)
    good, bad = _prefix_sums(h.weight - h.positive, last), _prefix_sums(h.positive, last)
    with np.errstate(divide="ignore", invalid="ignore"):  # weights whose squares vanish: never a best split
        cuts = grow(Splitter(rows, good, bad, criterion, min_rows), max_bins - 1)
    at = last[np.searchsorted(rows, sorted(cuts)) - 1]
    return midway(h.values[at], h.values[at + 1])


def supervised_edges(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    max_bins: int = 5,
    criterion: Criterion = "gini",
    min_rows: int = 1,
) -> Floats:
    """Return the bin edges of one feature, those of `split_edges` on its `histogram`, the quickest way there is.

    That is the compiled one for rows without weights; else of many rows `bucket_edges`, which sorts few of them.

    Examples
    --------
    >>> supervised_edges([20, 30, 40, 50], [1, 1, 0, 0])
    array([35.])
    """
    _check_settings(max_bins, criterion, min_rows)
    single, bad, mass = checked(x, y, weight)
    if mass is None:
        return row_edges(single, bad, max_bins, criterion, min_rows)
    return split_edges(histogram(single, bad, mass), max_bins, criterion, min_rows)


def row_edges(x: Singles, bad: Bools, max_bins: int, criterion: Criterion = "gini", min_rows: int = 1) -> Floats:
    """Return the bin edges of rows that are checked and have no weights; NaN is no measurement and left out.

    Examples
    --------
    >>> row_edges(np.array([20, 30, np.nan, 50], np.float32), np.array([True, True, True, False]), max_bins=5)
    array([40.])
    """
    return np.array(column_edges([x], bad, [max_bins], criterion, min_rows)[0])


def column_edges(
    columns: Sequence[Singles], bad: Bools, max_bins: Sequence[int], criterion: Criterion = "gini", min_rows: int = 1
) -> list[list[float]]:
    """Return the same for several columns of the same rows.

    Examples
    --------
    >>> columns = [np.array([20, 30, np.nan, 50], np.float32), np.array([1, 2, 2, 2], np.float32)]
    >>> column_edges(columns, np.array([True, True, True, False]), max_bins=[5, 5])
    [[40.0], [1.5]]
    """
    for most in max_bins:
        _check_settings(most, criterion, min_rows)
    cuts = tree_cuts(columns, bad, max_bins, criterion, min_rows)
    if cuts is None:
        each = zip(columns, max_bins, strict=True)
        return [_edges_in_numpy(x, bad, most, criterion, min_rows).tolist() for x, most in each]
    lower, upper, found = cuts
    return [edges[:n] for edges, n in zip(midway(lower, upper).tolist(), found, strict=True)]


def _edges_in_numpy(x: Singles, bad: Bools, max_bins: int, criterion: Criterion, min_rows: int) -> Floats:
    measured = x == x
    if not measured.all():
        x, bad = x[measured], bad[measured]
    found = tabulated(x, bad, None) if x.size else None
    # Where hardly two values are far enough apart to be separated, no bucket would stay closed.
    if found is None and x.size >= MANY_ROWS and float(x.max()) - float(x.min()) > WIDE:
        return bucket_edges(x, bad, max_bins, criterion, min_rows)
    return split_edges(found or sorted_histogram(x, bad), max_bins, criterion, min_rows)


def _check_settings(max_bins: int, criterion: str, min_rows: int) -> None:
    if criterion not in IMPURITY:
        raise SchemaError(f"split_edges: unknown criterion {criterion!r}.{did_you_mean(criterion, IMPURITY)}")
    for name, value in {"max_bins": max_bins, "min_rows": min_rows}.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise SchemaError(f"split_edges: {name} must be a whole number of at least 1, got {value!r}.")


def _prefix_sums(each: npt.NDArray[_Number], last: npt.NDArray[np.intp]) -> npt.NDArray[_Number]:
    """Return sums before each group of values: entry i adds up groups 0 to i - 1."""
    total = np.cumsum(each)
    out = np.zeros(last.size + 2, each.dtype)
    out[1:-1] = total[last]
    out[-1] = total[-1]
    return out
