"""The best-first tree on one feature: which cut is best, and which node is split next.

Every quantity that decides is computed in scikit-learn's precision and order; see `bins`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["GAP", "IMPURITY", "Splitter", "c_log", "grow", "midway", "proxy_of"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)

GAP = np.float32(1e-7)  # neighbours nearer than this are never separated; the sum is rounded to float32
_PURE = float(np.finfo(np.float64).eps)  # a node of at most this impurity is a leaf
_BLOCK = 1 << 15  # candidates evaluated at once: the temporaries stay in the processor's cache
_TINY = float(np.finfo(np.float64).tiny)
_LN2 = math.log(2.0)


Log = Callable[[Floats], Floats]


def _gini(good: Floats, bad: Floats, weight: Floats, log: Log) -> Floats:
    return 1.0 - (good * good + bad * bad) / (weight * weight)


def _entropy(good: Floats, bad: Floats, weight: Floats, log: Log) -> Floats:
    p, q = good / weight, bad / weight
    # 0 log 0 is 0. The logarithm is divided by ln 2, not log2: their last bits differ.
    return -(p * (log(np.maximum(p, _TINY)) / _LN2)) - q * (log(np.maximum(q, _TINY)) / _LN2)


def c_log(x: Floats) -> Floats:
    """Return the C library's logarithm; numpy's own vector version may differ in the last bit."""
    return np.array([math.log(v) for v in x.tolist()])


Impurity = Callable[[Floats, Floats, Floats, Log], Floats]
# Each with the error of its fast evaluation, per unit of weight.
IMPURITY: dict[str, tuple[Impurity, float]] = {"gini": (_gini, 0.0), "entropy": (_entropy, 1e-13)}


@dataclass(frozen=True)
class Node:
    """The rows from `start` to `end`, in the order of values, and their best cut; cut 0 marks a leaf."""

    start: int
    end: int
    gain: float = 0.0
    cut: int = 0
    left_impurity: float = 0.0
    right_impurity: float = 0.0


class Splitter:
    """The best cut of any node, found from prefix sums alone.

    Attributes
    ----------
    rows, good, bad : (places,) rows and class weights below each place where the values may be cut, from 0 to all.
        Classes are summed apart: differences of these sums are never negative, and exactly 0 in pure nodes.
    """

    def __init__(self, rows: Counts, good: Floats, bad: Floats, criterion: str, min_rows: int) -> None:
        self.rows, self.good, self.bad = rows, good, bad
        self.impurity, self.error = IMPURITY[criterion]
        self.min_rows = min_rows

    def at(self, rows: int) -> int:
        """Return the place with so many rows below it."""
        return int(self.rows.searchsorted(rows))

    def weight(self, start: int, end: int) -> np.float64:
        """Return the weight of some rows."""
        a, b = self.at(start), self.at(end)
        return np.float64((self.good[b] - self.good[a]) + (self.bad[b] - self.bad[a]))

    def root(self) -> Node:
        """Return the node of all rows."""
        good, bad = self.good[-1:], self.bad[-1:]
        return self.node(0, int(self.rows[-1]), self.impurity(good, bad, good + bad, c_log).item())

    def node(self, start: int, end: int, impurity: float) -> Node:
        """Return the node of some rows."""
        cut = 0 if impurity <= _PURE else self.best_cut(start, end)
        if cut == 0:
            return Node(start, end)
        wl, wr, left, right = (v[0] for v in self.halves(start, end, np.array([self.at(cut)]), c_log))
        weight, total = self.weight(start, end), self.weight(0, int(self.rows[-1]))
        gain = (weight / total) * (impurity - (wr / weight * right) - (wl / weight * left))
        if gain + _PURE < 0.0:
            return Node(start, end)
        return Node(start, end, float(gain), cut, float(left), float(right))

    def best_cut(self, start: int, end: int) -> int:
        """Return how many rows are below the best cut, the leftmost of equals; 0 if there is none."""
        slack = self.error * self.weight(start, end)
        best, near = np.float64(-np.inf), []
        first, stop = self.allowed(start, end)
        for low in range(first, stop, _BLOCK):
            block = slice(low, min(low + _BLOCK, stop))
            proxy = proxy_of(*self.halves(start, end, block, np.log))
            top = np.fmax.reduce(proxy)  # not a number loses, as it does in a comparison
            if top >= best - slack:
                best = max(best, top)
                near.append(low + np.flatnonzero(proxy >= best - slack))
        return self.leftmost_best(start, end, np.concatenate(near)) if near else 0

    def allowed(self, start: int, end: int) -> tuple[int, int]:
        """Return the places, from and up to, that leave enough rows on both sides."""
        first = self.rows.searchsorted(start + self.min_rows)
        return int(first), int(self.rows.searchsorted(end - self.min_rows, side="right"))

    def leftmost_best(self, start: int, end: int, cuts: npt.NDArray[np.intp]) -> int:
        """Compare what is near the best by numpy's logarithm again by the C library's."""
        best = cuts[np.argmax(proxy_of(*self.halves(start, end, cuts, c_log)))]
        return int(self.rows[best])

    def halves(
        self, start: int, end: int, cuts: slice | npt.NDArray[np.intp], log: Log
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the weights and impurities of the left and right halves, for every cut."""
        return self.split(start, end, self.good[cuts], self.bad[cuts], log)

    def split(self, start: int, end: int, good: Floats, bad: Floats, log: Log) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the same for places known by the class weights below them."""
        a, b = self.at(start), self.at(end)
        good_left, bad_left = good - self.good[a], bad - self.bad[a]
        good_right, bad_right = self.good[b] - good, self.bad[b] - bad
        wl, wr = good_left + bad_left, good_right + bad_right
        left = self.impurity(good_left, bad_left, wl, log)
        return wl, wr, left, self.impurity(good_right, bad_right, wr, log)


def proxy_of(wl: Floats, wr: Floats, left: Floats, right: Floats) -> Floats:
    """Return the decrease of impurity up to constants of the node."""
    return -wr * right - wl * left


def midway(lower: Singles, upper: Singles) -> Floats:
    """Return the edges between the values on both sides of cuts."""
    return np.asarray(lower.astype(np.float64) / 2.0 + upper.astype(np.float64) / 2.0)


def grow(splitter: Splitter, splits: int) -> list[int]:
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
def _push(heap: list[Node], node: Node) -> None:
    heap.append(node)
    _rise(heap, len(heap) - 1, node)


def _pop(heap: list[Node]) -> Node:
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


def _rise(heap: list[Node], hole: int, node: Node) -> None:
    while hole > 0 and heap[parent := (hole - 1) // 2].gain < node.gain:
        heap[hole], hole = heap[parent], parent
    heap[hole] = node
