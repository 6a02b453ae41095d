"""The best-first classification tree on one feature: which cut is best, and which node is split next.

The tree is scikit-learn's ``DecisionTreeClassifier`` on a single column, bit for bit, because every quantity that
decides a split is computed in the same precision and the same order. It needs running sums of the sorted values only,
never the rows. Nodes that tie follow the heap of the GNU C++ library, and products are rounded before they are added,
as in scikit-learn's builds for Linux on x86-64; elsewhere ties may fall differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plainrisk._native.choice import compiled
from plainrisk._types import Counts, Floats, Index

__all__ = ["Impurity", "tree_cuts"]

Impurity = Literal["gini", "entropy"]

_PURE = float(np.finfo(np.float64).eps)  # a node of at most this impurity is a leaf
_TINY = float(np.finfo(np.float64).tiny)
_LOG_ERROR = 1e-13  # of numpy's logarithm against the C library's, per unit of weight


def tree_cuts(rows: Counts, good: Floats, bad: Floats, splits: int, min_rows: int, criterion: Impurity) -> list[int]:
    """Return the positions of the cuts, in the order in which they are made.

    Parameters
    ----------
    rows, good, bad : (c + 2,)
        Rows and weight of each class below each candidate cut, from 0 to all; rows ascend strictly.
    splits : int
        At most this many cuts.
    min_rows : int
        Both sides of a cut hold at least this many rows.

    Examples
    --------
    >>> counts = np.array([0, 2, 5, 6])
    >>> tree_cuts(counts, counts - np.array([0, 0.0, 3, 3]), np.array([0, 0.0, 3, 3]), 5, 1, "gini")
    [1, 2]
    """
    if len(rows) < 3 or splits < 1:
        return []
    if compiled is None:
        with np.errstate(divide="ignore", invalid="ignore"):  # weights whose squares vanish: never a best cut
            return _grow(_Splitter(rows, good, bad, criterion, min_rows), splits)
    cuts = np.empty(min(splits, len(rows) - 2), np.int64)
    arrays = (np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(good), np.ascontiguousarray(bad))
    n_cuts = compiled.tree_cuts(*arrays, cuts, min_rows, criterion == "entropy")
    return list(map(int, cuts[:n_cuts]))


Log = Callable[[Floats], Floats]


def _c_log(x: Floats) -> Floats:
    """Return the C library's logarithm; numpy's own vector version may differ in the last bit."""
    return np.array([math.log(v) for v in x.tolist()])


def _gini(good: Floats, bad: Floats, weight: Floats, log: Log) -> Floats:
    return 1.0 - (good * good + bad * bad) / (weight * weight)


def _entropy(good: Floats, bad: Floats, weight: Floats, log: Log) -> Floats:
    p, q = good / weight, bad / weight
    # 0 log 0 is 0. The logarithm is divided by ln 2, not log2: their last bits differ.
    return -(p * (log(np.maximum(p, _TINY)) / math.log(2.0))) - q * (log(np.maximum(q, _TINY)) / math.log(2.0))


@dataclass(frozen=True)
class _Node:
    """The candidates from `start` to `end`, and the best cut between them; cut 0 marks a leaf."""

    start: int
    end: int
    cut: int = 0
    gain: float = 0.0
    left_impurity: float = 0.0
    right_impurity: float = 0.0


class _Splitter:
    """The best cut of any node. Classes are summed apart: differences are not negative, and exactly 0 in pure nodes."""

    def __init__(self, rows: Counts, good: Floats, bad: Floats, criterion: Impurity, min_rows: int) -> None:
        self.rows, self.good, self.bad, self.min_rows = rows, good, bad, min_rows
        self.impurity, self.error = (_gini, 0.0) if criterion == "gini" else (_entropy, _LOG_ERROR)

    def weight(self, start: int, end: int) -> np.float64:
        return np.float64((self.good[end] - self.good[start]) + (self.bad[end] - self.bad[start]))

    def root(self) -> _Node:
        good, bad = self.good[-1:], self.bad[-1:]
        return self.node(0, len(self.rows) - 1, self.impurity(good, bad, good + bad, _c_log).item())

    def node(self, start: int, end: int, impurity: float) -> _Node:
        cut = 0 if impurity <= _PURE else self.best_cut(start, end)
        if cut == 0:
            return _Node(start, end)
        wl, wr, left, right = (v[0] for v in self.halves(start, end, np.array([cut]), _c_log))
        weight, total = self.weight(start, end), self.weight(0, len(self.rows) - 1)
        gain = (weight / total) * (impurity - (wr / weight * right) - (wl / weight * left))
        if gain + _PURE < 0.0:
            return _Node(start, end)
        return _Node(start, end, cut, float(gain), float(left), float(right))

    def best_cut(self, start: int, end: int) -> int:
        """Return the leftmost best cut that leaves enough rows on both sides, or 0 if there is none."""
        first = int(self.rows.searchsorted(self.rows[start] + self.min_rows))
        stop = int(self.rows.searchsorted(self.rows[end] - self.min_rows, side="right"))
        cuts = np.arange(first, stop)
        if not len(cuts):
            return 0
        gain = _gains(*self.halves(start, end, cuts, np.log))
        best = np.fmax.reduce(gain)  # not a number loses, as it does in a comparison
        if not best > -np.inf:
            return 0
        # What is near the best by numpy's logarithm is compared again by the C library's.
        near = cuts[gain >= best - self.error * self.weight(start, end)]
        return int(near[np.argmax(_gains(*self.halves(start, end, near, _c_log)))])

    def halves(self, start: int, end: int, cuts: Index, log: Log) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the weights and impurities of the left and right halves, for every cut."""
        good_left, bad_left = self.good[cuts] - self.good[start], self.bad[cuts] - self.bad[start]
        good_right, bad_right = self.good[end] - self.good[cuts], self.bad[end] - self.bad[cuts]
        wl, wr = good_left + bad_left, good_right + bad_right
        left = self.impurity(good_left, bad_left, wl, log)
        return wl, wr, left, self.impurity(good_right, bad_right, wr, log)


def _gains(wl: Floats, wr: Floats, left: Floats, right: Floats) -> Floats:
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
        _push(heap, splitter.node(node.start, node.cut, node.left_impurity))
        _push(heap, splitter.node(node.cut, node.end, node.right_impurity))
    return cuts


# A binary heap with the largest gain on top. Leaves are in it, and heapq is not used, because which of two equal gains
# comes first depends on every move: when the top is popped, its hole sinks to the bottom, to the right child among
# equals, and the last node rises from there past strictly smaller gains.
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
