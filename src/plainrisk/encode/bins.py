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

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from plainrisk.encode.histogram import Histogram, histogram
from plainrisk.errors import SchemaError, did_you_mean

__all__ = ["Criterion", "split_edges", "supervised_edges"]

Criterion = Literal["gini", "entropy"]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]
_Number = TypeVar("_Number", np.int64, np.float64)

_GAP = np.float32(1e-7)  # neighbours nearer than this are never separated; the sum is rounded to float32
_PURE = float(np.finfo(np.float64).eps)  # a node of at most this impurity is a leaf
_BLOCK = 1 << 15  # candidates evaluated at once: the temporaries stay in the processor's cache
_TINY = float(np.finfo(np.float64).tiny)
_LN2 = math.log(2.0)


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
    last = np.flatnonzero(h.values[1:] > h.values[:-1] + _GAP)
    with np.errstate(divide="ignore", invalid="ignore"):  # weights whose squares vanish: never a best split
        cuts = _grow(_Splitter(h, last, criterion, min_rows), max_bins - 1)
    at = last[np.array(sorted(cuts), np.intp) - 1]
    lower, upper = h.values[at].astype(np.float64), h.values[at + 1].astype(np.float64)
    return np.asarray(lower / 2.0 + upper / 2.0)


def supervised_edges(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    max_bins: int = 5,
    criterion: Criterion = "gini",
    min_rows: int = 1,
) -> Floats:
    """Return the bin edges of one feature: `histogram`, then `split_edges`.

    Examples
    --------
    >>> supervised_edges([20, 30, 40, 50], [1, 1, 0, 0])
    array([35.])
    """
    return split_edges(histogram(x, y, weight), max_bins, criterion, min_rows)


def _check_settings(max_bins: int, criterion: str, min_rows: int) -> None:
    if criterion not in _IMPURITY:
        raise SchemaError(f"split_edges: unknown criterion {criterion!r}.{did_you_mean(criterion, _IMPURITY)}")
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


Log = Callable[[Floats], Floats]


def _gini(good: Floats, bad: Floats, weight: Floats, log: Log) -> Floats:
    return 1.0 - (good * good + bad * bad) / (weight * weight)


def _entropy(good: Floats, bad: Floats, weight: Floats, log: Log) -> Floats:
    p, q = good / weight, bad / weight
    # 0 log 0 is 0. The logarithm is divided by ln 2, not log2: their last bits differ.
    return -(p * (log(np.maximum(p, _TINY)) / _LN2)) - q * (log(np.maximum(q, _TINY)) / _LN2)


def _c_log(x: Floats) -> Floats:
    """Return the C library's logarithm; numpy's own vector version may differ in the last bit."""
    return np.array([math.log(v) for v in x.tolist()])


Impurity = Callable[[Floats, Floats, Floats, Log], Floats]
# Each with the error of its fast evaluation, per unit of weight.
_IMPURITY: dict[str, tuple[Impurity, float]] = {"gini": (_gini, 0.0), "entropy": (_entropy, 1e-13)}


@dataclass(frozen=True)
class _Node:
    """The groups [start, end) of values and their best cut; cut 0 marks a leaf."""

    start: int
    end: int
    gain: float = 0.0
    cut: int = 0
    left_impurity: float = 0.0
    right_impurity: float = 0.0


class _Splitter:
    """The best cut of any node, found from prefix sums alone."""

    def __init__(self, h: Histogram, last: npt.NDArray[np.intp], criterion: str, min_rows: int) -> None:
        # Classes are summed apart: differences of these sums are never negative, and exactly 0 in pure nodes.
        self.rows = _prefix_sums(h.rows, last)
        self.good = _prefix_sums(h.weight - h.positive, last)
        self.bad = _prefix_sums(h.positive, last)
        self.impurity, self.error = _IMPURITY[criterion]
        self.min_rows = min_rows

    def weight(self, start: int, end: int) -> np.float64:
        return np.float64((self.good[end] - self.good[start]) + (self.bad[end] - self.bad[start]))

    def root(self) -> _Node:
        good, bad = self.good[-1:], self.bad[-1:]
        return self.node(0, self.rows.size - 1, self.impurity(good, bad, good + bad, _c_log).item())

    def node(self, start: int, end: int, impurity: float) -> _Node:
        cut = 0 if impurity <= _PURE else self.best_cut(start, end)
        if cut == 0:
            return _Node(start, end)
        wl, wr, left, right = (v[0] for v in self.halves(start, end, np.array([cut]), _c_log))
        weight, total = self.weight(start, end), self.weight(0, -1)
        gain = (weight / total) * (impurity - (wr / weight * right) - (wl / weight * left))
        if gain + _PURE < 0.0:
            return _Node(start, end)
        return _Node(start, end, float(gain), cut, float(left), float(right))

    def best_cut(self, start: int, end: int) -> int:
        """Return the first group of the best right half, the leftmost cut of equals; 0 if there is none."""
        rows = self.rows
        first = int(np.searchsorted(rows, rows[start] + self.min_rows))
        stop = int(np.searchsorted(rows, rows[end] - self.min_rows, side="right"))
        slack = self.error * self.weight(start, end)
        best, near = np.float64(-np.inf), []
        for low in range(first, stop, _BLOCK):
            block = slice(low, min(low + _BLOCK, stop))
            proxy = _proxy(*self.halves(start, end, block, np.log))
            top = np.fmax.reduce(proxy)  # not a number loses, as it does in a comparison
            if top >= best - slack:
                best = max(best, top)
                near.append(low + np.flatnonzero(proxy >= best - slack))
        if not near:
            return 0
        # What is near the best by numpy's logarithm is compared again by the C library's.
        cuts = np.concatenate(near)
        return int(cuts[np.argmax(_proxy(*self.halves(start, end, cuts, _c_log)))])

    def halves(
        self, start: int, end: int, cuts: slice | npt.NDArray[np.intp], log: Log
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the weights and impurities of the left and right halves, for every cut."""
        good, bad = self.good, self.bad
        good_left, bad_left = good[cuts] - good[start], bad[cuts] - bad[start]
        good_right, bad_right = good[end] - good[cuts], bad[end] - bad[cuts]
        wl, wr = good_left + bad_left, good_right + bad_right
        left = self.impurity(good_left, bad_left, wl, log)
        return wl, wr, left, self.impurity(good_right, bad_right, wr, log)


def _proxy(wl: Floats, wr: Floats, left: Floats, right: Floats) -> Floats:
    """Return the decrease of impurity up to constants of the node."""
    return -wr * right - wl * left


def _grow(splitter: _Splitter, splits: int) -> list[int]:
    """Split the best node again and again; return the cuts made."""
    cuts: list[int] = []
    heap = [splitter.root()]
    while heap:
        node = _pop(heap)
        if node.cut == 0:
            continue
        cuts.append(node.cut)
        if len(cuts) == splits:
            break
        left = splitter.node(node.start, node.cut, node.left_impurity)
        right = splitter.node(node.cut, node.end, node.right_impurity)
        _push(heap, left)
        _push(heap, right)
    return cuts


# A binary heap with the largest gain on top. Leaves are in it, and heapq is not used, because which of two
# equal gains comes first depends on every move: when the top is popped, its hole sinks to the bottom, to the
# right child among equals, and the last node rises from there past strictly smaller gains.
def _push(heap: list[_Node], node: _Node) -> None:
    heap.append(node)
    _rise(heap, len(heap) - 1, node)


def _pop(heap: list[_Node]) -> _Node:
    last = heap.pop()
    if not heap:
        return last
    top, hole = heap[0], 0
    while (child := 2 * hole + 2) < len(heap):
        if heap[child].gain < heap[child - 1].gain:
            child -= 1
        heap[hole], hole = heap[child], child
    if child == len(heap):
        heap[hole], hole = heap[child - 1], child - 1
    _rise(heap, hole, last)
    return top


def _rise(heap: list[_Node], hole: int, node: _Node) -> None:
    while hole > 0 and heap[parent := (hole - 1) // 2].gain < node.gain:
        heap[hole], hole = heap[parent], parent
    heap[hole] = node
