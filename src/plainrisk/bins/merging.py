"""Short tables: neighbouring levels whose scores hardly differ are merged.

Replacing the scores of a run of levels by their mean raises the loss, to second order, by half the sum of the squared
differences, each weighted by the curvature of the loss at its level. For each feature the best runs of every number
are found exactly (dynamic programming); how many rows each table keeps is chosen for all tables together, so that the
fewest rows in all cost no more than the tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from plainrisk._types import Floats, Index

__all__ = ["Runs", "best_runs", "merged_scores", "rows_within"]


@dataclass(frozen=True)
class Runs:
    """The best ways to cut ordered levels into runs.

    Attributes
    ----------
    first : (n,), the levels that a run can start at: those whose score is not that of the level before
    costs : (most,), the least cost with 1, 2, ... runs
    last : (most, n), where the last of k + 1 runs of the levels up to j begins
    """

    first: Index
    costs: Floats
    last: Index

    def starts(self, k: int) -> list[int]:
        """Return where each of the best k runs starts."""
        starts, end = [], len(self.first)
        for count in range(k, 0, -1):
            end = int(self.last[count - 1, end - 1])
            starts.append(int(self.first[end]))
        return starts[::-1]


def best_runs(scores: Floats, weights: Floats, mass: Floats | None = None, floor: float = 0.0) -> Runs:
    """Find the runs that differ least from their means, for every number of runs.

    Parameters
    ----------
    weights : the curvature of the loss at every level
    mass, floor : a run has at least this mass, optional

    >>> found = best_runs(np.array([0.0, 0.2, 1.0, 1.2]), np.ones(4))
    >>> found.costs.round(3).tolist(), found.starts(2)
    ([0.52, 0.02, 0.01, 0.0], [0, 2])
    >>> best_runs(np.array([0.0, 0.1, 1.0, 1.2]), np.ones(4), np.ones(4), floor=2.0).starts(2)
    [0, 2]
    """
    first = np.flatnonzero(np.append(True, np.diff(scores) != 0))
    scores, weights = scores[first], np.add.reduceat(weights, first)
    n, most = len(first), len(first)
    cost = _run_costs(scores, weights)
    if mass is not None and floor > 0:
        upto = np.concatenate([[0.0], np.cumsum(np.add.reduceat(mass, first))])
        inside = np.subtract.outer(upto[1:], upto[:-1]).T
        small = inside < floor * (1.0 - 1e-9)
        small[0, -1] = False  # all levels together are always possible
        cost = np.where(small, np.inf, cost)
        most = int(np.clip(upto[-1] / floor, 1, n))
    costs, last = np.empty((most, n)), np.zeros((most, n), np.intp)
    costs[0] = cost[0]
    for k in range(1, most):
        # With k + 1 runs, the last of which begins at i and ends at j.
        total = np.full((n, n), np.inf)
        total[1:] = costs[k - 1, :-1, None] + cost[1:]
        last[k] = np.argmin(total, axis=0)
        costs[k] = np.take_along_axis(total, last[k][None], axis=0)[0]
    return Runs(first, costs[:, -1], last)


def _run_costs(scores: Floats, weights: Floats) -> Floats:
    """Return half the weighted squares about the mean for the run from i up to j; infinite below the diagonal."""
    n = len(scores)
    centred = scores - weights @ scores / max(float(weights.sum()), np.finfo(float).tiny)
    moments = [np.concatenate([[0.0], np.cumsum(weights * centred**power)]) for power in range(3)]
    zero, one, two = (np.subtract.outer(m[1:], m[:-1]).T for m in moments)
    cost = 0.5 * np.maximum(two - one**2 / np.where(zero > 0, zero, 1.0), 0.0)
    cost[cost < 1e-13 * moments[2][-1]] = 0.0  # equal scores differ by rounding alone
    return np.where(np.tri(n, dtype=bool).T, cost, np.inf)


def rows_within(tables: Sequence[Runs], tolerance: float, most: int | None = None) -> list[int]:
    """Return how many runs each table keeps, so that all together cost at most the tolerance.

    A price per row is found by bisection: at the right price every table keeps the runs that are worth it.

    Parameters
    ----------
    most : at most this many runs for each table, whatever it costs
    """

    kept = [t.costs[: 1 if t.costs[0] <= 0.0 else most] for t in tables]  # a flat table keeps one row at any price
    costs = np.full((len(kept), max(map(len, kept), default=1)), np.inf)
    for table, own in zip(costs, kept, strict=True):
        table[: len(own)] = own
    rows = np.arange(costs.shape[1])
    low, high = 0.0, float(costs[:, 0].max(initial=0.0)) + tolerance
    best = costs.argmin(axis=1)
    for _ in range(60):
        middle = 0.5 * (low + high)
        last = (costs + middle * rows).argmin(axis=1)
        if sum(np.take_along_axis(costs, last[:, None], axis=1).ravel().tolist()) <= tolerance:
            low, best = middle, last
        else:
            high = middle
    return [1 + int(k) for k in best]


def merged_scores(scores: Floats, weights: Floats, starts: Sequence[int]) -> Floats:
    """Return one score for each run, the mean of its levels; runs of a monotone shape are exactly monotone."""
    each = []
    for start, end in pairwise([*starts, len(scores)]):
        run_scores, mass = scores[start:end], np.maximum(weights[start:end], np.finfo(float).tiny)
        # Rounding must not carry a mean beyond the scores it is the mean of.
        each.append(np.clip(np.average(run_scores, weights=mass), run_scores.min(), run_scores.max()))
    return np.array(each)
