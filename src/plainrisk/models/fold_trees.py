"""Best-first trees on one feature, one for every training fold, grown side by side.

The folds' trees differ little, and each is a handful of nodes: looking for their best cuts together costs little more
than for one of them. What is found is handed to `grow`, which decides, as it does for a single tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.bins.tree import IMPURITY, Node, Splitter, c_log, grow, proxy_of

__all__ = ["grow_folds"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]

_gini = IMPURITY["gini"][0]
_PURE = float(np.finfo(np.float64).eps)
_SEGMENT = 32  # neighbouring places that are ruled out together
_MANY = 1 << 14  # places from which that pays
_SLACK = 1e-11  # far above the rounding of a gain, per unit of weight


def grow_folds(good: Counts, bad: Counts, max_bins: int, criterion: str) -> list[Index]:
    """Return every fold's cuts, as numbers of rows below them, ascending.

    Parameters
    ----------
    good, bad : (folds, places) training rows of each outcome below every place where the values may be cut, from 0
        to all

    Examples
    --------
    >>> good, bad = np.array([[0, 3, 3, 5]]), np.array([[0, 0, 4, 4]])
    >>> [cuts.tolist() for cuts in grow_folds(good, bad, 3, "gini")]
    [[3, 7]]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        known = _Lookahead(good, bad).nodes(max_bins - 1) if criterion == "gini" else [{}] * len(good)
        out = []
        for g, b, nodes in zip(good, bad, known, strict=True):
            cuts = grow(_Informed(g, b, criterion, nodes), max_bins - 1) if max_bins > 1 else []
            out.append(np.array(sorted(cuts), np.intp))
    return out


class _Informed(Splitter):
    """Knows some nodes already."""

    def __init__(self, good: Counts, bad: Counts, criterion: str, nodes: dict[tuple[int, int], Node]) -> None:
        super().__init__(good + bad, good.astype(np.float64), bad.astype(np.float64), criterion, 1)
        self.nodes = nodes

    def node(self, start: int, end: int, impurity: float) -> Node:
        """Return the node of some rows."""
        return self.nodes.get((start, end)) or super().node(start, end, impurity)


@dataclass(frozen=True)
class _Open:
    """A node whose best cut is to be found: places `a` to `b` of a fold."""

    fold: int
    a: int
    b: int
    impurity: float


class _Lookahead:
    """The nodes that every fold's tree will most probably ask for."""

    def __init__(self, good: Counts, bad: Counts) -> None:
        self.n_folds, self.n_places = good.shape
        self.flat_good, self.flat_bad = good.reshape(-1), bad.reshape(-1)

    def nodes(self, splits: int) -> list[dict[tuple[int, int], Node]]:
        """Return nodes by (rows below their start, rows below their end)."""
        found: list[dict[tuple[int, int], Node]] = [{} for _ in range(self.n_folds)]
        leaves: list[list[tuple[float, _Open, int, Node]]] = [[] for _ in range(self.n_folds)]
        todo = [_Open(k, 0, self.n_places - 1, self._root(k)) for k in range(self.n_folds)]
        for _ in range(splits):
            for one, cut, node in self._evaluate([one for one in todo if one.impurity > _PURE]):
                found[one.fold][node.start, node.end] = node
                if node.cut:
                    leaves[one.fold].append((node.gain, one, cut, node))
            todo = []
            for some in leaves:
                if some:
                    best = max(range(len(some)), key=lambda i: some[i][0])
                    _, one, cut, node = some.pop(best)
                    todo.append(_Open(one.fold, one.a, cut, node.left_impurity))
                    todo.append(_Open(one.fold, cut, one.b, node.right_impurity))
        return found

    def _root(self, k: int) -> float:
        good, bad = self._below(np.array([(k + 1) * self.n_places - 1]))
        return float(_gini(good, bad, good + bad, c_log).item())

    def _evaluate(self, todo: list[_Open]) -> list[tuple[_Open, int, Node]]:
        """Return the nodes, with the place of their best cut."""
        todo = [one for one in todo if one.b - one.a > 1]
        if not todo:
            return []
        base = np.array([one.fold * self.n_places for one in todo])
        a, b = base + [one.a for one in todo], base + [one.b for one in todo]
        cut = self._best_cuts(a, b)
        some = cut > 0
        at = np.where(some, cut, a)
        ends = self._ends(a, b)
        good, bad = self._below(at)
        wl, wr, left, right = _halves(ends, good, bad)
        weight = _weight(ends)
        everything = sum(self._below(base + self.n_places - 1))
        impurity = np.array([one.impurity for one in todo])
        gain = (weight / everything) * (impurity - (wr / weight * right) - (wl / weight * left))
        rows = [v.astype(np.intp).tolist() for v in (ends[0] + ends[1], ends[2] + ends[3], good + bad)]
        out = []
        for i, (one, start, end, below) in enumerate(zip(todo, *rows, strict=True)):
            leaf = not some[i] or gain[i] + _PURE < 0.0
            node = (
                Node(start, end) if leaf else Node(start, end, float(gain[i]), below, float(left[i]), float(right[i]))
            )
            out.append((one, int(cut[i] - base[i]), node))
        return out

    def _below(self, place: Index) -> tuple[Floats, Floats]:
        """Return the rows of each outcome below places."""
        return self.flat_good[place].astype(np.float64), self.flat_bad[place].astype(np.float64)

    def _ends(self, a: Index, b: Index) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the rows of each outcome below the ends of nodes."""
        return *self._below(a), *self._below(b)

    def _best_cuts(self, a: Index, b: Index) -> Index:
        """Return the leftmost best cut of every node; 0 where there is none."""
        node, first, stop = np.arange(len(a)), a + 1, b
        if (b - a).sum() > _MANY:
            node, first, stop = self._promising(a, b)
        size = stop - first
        of = np.repeat(node, size)
        place = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size) + np.repeat(first, size)
        ends = tuple(v[of] for v in self._ends(a, b))
        wl, wr, left, right = _halves(ends, *self._below(place))
        gain = proxy_of(wl, wr, left, right)
        gain[(wl <= 0) | (wr <= 0)] = -np.inf  # a place without rows on one side
        starts = np.searchsorted(of, np.arange(len(a)))
        top = np.maximum.reduceat(gain, starts)
        near = np.flatnonzero(gain == top[of])
        leftmost = place[near[np.searchsorted(of[near], np.arange(len(a)))]]
        return np.where(top > -np.inf, leftmost, 0)

    def _promising(self, a: Index, b: Index) -> tuple[Index, Index, Index]:
        """Return the segments that may hold a node's best cut: the node, the first place and the one after the last.

        The gain is convex in the rows of each outcome below a cut. Inside a segment these lie in a rectangle, and the
        best of its corners bounds them all.
        """
        size = -(-(b - a) // _SEGMENT)
        node = np.repeat(np.arange(len(a)), size)
        number = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        low = a[node] + number * _SEGMENT
        high = np.minimum(low + _SEGMENT, b[node])
        ends = tuple(v[node] for v in self._ends(a, b))
        good, bad = zip(self._below(low), self._below(high), strict=True)
        corners = [proxy_of(*_halves(ends, g, d)) for g in good for d in bad]
        sure = np.fmax(np.where(low > a[node], corners[0], -np.inf), np.where(high < b[node], corners[3], -np.inf))
        starts = np.cumsum(size) - size
        least = np.fmax.reduceat(sure, starts)[node]
        bound = np.maximum.reduce(corners)  # a corner without rows on one side is not a number: anything may be there
        kept = ~(bound < least - _SLACK * _weight(ends))
        first = np.maximum(low, a[node] + 1)
        return node[kept], first[kept], np.minimum(high + 1, b[node])[kept]


def _weight(ends: tuple[Floats, ...]) -> Floats:
    return (ends[2] - ends[0]) + (ends[3] - ends[1])


def _halves(ends: tuple[Floats, ...], good: Floats, bad: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return weights and impurities left and right of places known by the rows below them, as `Splitter` does."""
    good_start, bad_start, good_end, bad_end = ends
    good_left, bad_left = good - good_start, bad - bad_start
    good_right, bad_right = good_end - good, bad_end - bad
    wl, wr = good_left + bad_left, good_right + bad_right
    return wl, wr, _gini(good_left, bad_left, wl, np.log), _gini(good_right, bad_right, wr, np.log)
