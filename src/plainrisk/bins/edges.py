"""Bin edges of one feature, from a histogram of its values.

Supervised edges are the thresholds of a best-first classification tree on that single feature: those of scikit-learn's
``DecisionTreeClassifier(criterion=..., max_leaf_nodes=..., min_samples_leaf=...)``, bit for bit. Equality needs weights
whose sums are exact in any order: none, integers, or multiples of a power of two. With others scikit-learn's own sums
depend on the order of tied rows.
"""

from __future__ import annotations

from typing import TypeVar, get_args

import numpy as np
import numpy.typing as npt

from plainrisk._native.tree import Impurity, tree_cuts
from plainrisk._types import Floats, Index
from plainrisk.bins.histogram import Histogram, histogram
from plainrisk.errors import SchemaError, did_you_mean

__all__ = ["quantile_edges", "split_edges", "supervised_edges"]

_Number = TypeVar("_Number", np.int64, np.float64)

# scikit-learn never separates neighbours that are nearer than this; the sum is rounded to float32.
_GAP = np.float32(1e-7)


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
        A value x is in bin number ``count(edges < x)``: x equal to an edge goes left. Edges lie midway
        between two float32 values, so round x to float32 to agree with the tree on every value.

    Examples
    --------
    >>> split_edges(histogram([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 1, 0]), max_bins=3)
    array([2.5, 5.5])
    """
    _check("split_edges", max_bins, min_rows)
    if criterion not in get_args(Impurity):
        raise SchemaError(f"split_edges: unknown criterion {criterion!r}.{did_you_mean(criterion, get_args(Impurity))}")
    if h.values.size < 2 or max_bins < 2:
        return np.zeros(0)
    # Neighbours that no cut may separate are one candidate; the rule does not depend on the node.
    last = np.flatnonzero(h.values[1:] > h.values[:-1] + _GAP)
    rows = _running_sums(h.rows, last)
    good, bad = _running_sums(h.weight - h.positive, last), _running_sums(h.positive, last)
    cuts = tree_cuts(rows, good, bad, max_bins - 1, min(min_rows, int(rows[-1]) + 1), criterion)
    at = last[np.array(sorted(cuts), dtype=np.intp) - 1]
    return _midway(h, at)


def supervised_edges(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    max_bins: int = 5,
    criterion: Impurity = "gini",
    min_rows: int = 1,
) -> Floats:
    """Return the bin edges of one feature: `split_edges` on the `histogram` of its values.

    Examples
    --------
    >>> supervised_edges([20, 30, 40, 50], [1, 1, 0, 0])
    array([35.])
    """
    return split_edges(histogram(x, y, weight), max_bins, criterion, min_rows)


def quantile_edges(h: Histogram, max_bins: int, min_rows: int = 1) -> Floats:
    """Return the edges that cut the weight into `max_bins` equal shares as nearly as the values allow.

    Edges that would leave a bin with fewer than `min_rows` rows are left out. They are found without the outcome, so a
    held-out fold knows nothing through them.

    Examples
    --------
    >>> quantile_edges(histogram([1, 2, 3, 4, 4, 4, 4, 4], [0] * 8), max_bins=4)
    array([2.5, 3.5])
    """
    _check("quantile_edges", max_bins, min_rows)
    if h.values.size < 2:
        return np.zeros(0)
    upto = np.cumsum(h.weight)
    wanted = upto[-1] * np.arange(1, max_bins) / max_bins
    after = np.searchsorted(upto, wanted)
    before = np.maximum(after - 1, 0)
    # A heavy value holds several quantiles; cut on whichever side of it is nearer.
    last = np.unique(np.where(wanted - upto[before] < upto[after] - wanted, before, after))
    return _midway(h, _with_rows(h, last[last < h.values.size - 1], min_rows))


def _with_rows(h: Histogram, last: Index, min_rows: int) -> Index:
    """Return the cuts, from below, that leave enough rows on both sides."""
    upto = np.cumsum(h.rows)
    kept, start = [], 0
    for cut in last:
        if min(upto[cut] - start, upto[-1] - upto[cut]) >= min_rows:
            kept.append(cut)
            start = upto[cut]
    return np.array(kept, dtype=np.intp)


def _midway(h: Histogram, at: Index) -> Floats:
    """Return the edges between the values at these positions and the next ones."""
    values = h.values.astype(np.float64)
    return np.asarray(values[at] / 2.0 + values[at + 1] / 2.0)


def _running_sums(each: npt.NDArray[_Number], last: Index) -> npt.NDArray[_Number]:
    """Return the sums below each candidate cut, from 0 to all."""
    total = np.cumsum(each)
    out = np.zeros(last.size + 2, each.dtype)
    out[1:-1] = total[last]
    out[-1] = total[-1]
    return out


def _check(who: str, max_bins: int, min_rows: int) -> None:
    for name, value in {"max_bins": max_bins, "min_rows": min_rows}.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise SchemaError(f"{who}: {name} must be a whole number of at least 1, got {value!r}.")
