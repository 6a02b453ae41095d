"""Short tables for people: neighboring bins of smooth shapes are merged while that costs next to nothing.

Replacing the scores of a run of levels by their mean raises the loss, to second order, by half the sum of the squared
differences, each weighted by the curvature of the loss at its level. For each feature the best runs of every number
are found exactly (dynamic programming); how many rows each table keeps is chosen for all tables together, so that the
fewest rows in all cost no more than the tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec
import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.fit.basis import Basis
from plainrisk.fit.coding import scores_by_code, sums_by_code
from plainrisk.form import Bins, Part, Shape, Table, held_scores
from plainrisk.schema import Schema
from plainrisk.totals import once

__all__ = ["FineTables", "Merged", "best_runs", "merged_scores", "rows_within"]

# By position of a feature, the fine bins that the rows of its table start at.
Starts = Mapping[int, Sequence[int]]


@dataclass(frozen=True)
class Merged:
    """A part with short tables.

    Attributes
    ----------
    level_scores : per feature, the score of every fine level, merged ones alike
    means : per feature, (rows of the table, levels): each row's score is this mean of levels
    """

    part: Part
    level_scores: tuple[Floats, ...]
    means: tuple[Floats, ...]


@dataclass(frozen=True)
class FineTables:
    """The tables of a part with all their fine bins, and the rows they were fitted to.

    Attributes
    ----------
    cells : the scores of the cells of every pair
    """

    part: Part
    basis: Basis
    cells: Sequence[Floats]
    schema: Schema

    @once
    def tables(self) -> dict[str, Table]:
        """The tables, by feature."""
        return {name: shape for name, shape in self.part.shapes.items() if isinstance(shape, Table)}

    @once
    def scores(self) -> tuple[Floats, ...]:
        """The scores of all levels, by feature."""
        return tuple(np.asarray(table.scores) for table in self.tables.values())

    @once
    def curvature(self) -> list[Floats]:
        """The curvature of the mean loss at every level, by feature."""
        coded, (_, by_code) = self.basis.coded, self._measured(self.scores)
        total = self.basis.rows.totals[1]
        return [c / total for joint, sums in zip(coded.joints, by_code, strict=False) for c in joint.margins(sums)]

    @property
    def mergeable(self) -> list[int]:
        """The features whose rows may be merged: bins have neighbors, and edges that the schema states stay."""
        tables, features = enumerate(self.tables.items()), self.schema.features
        return [j for j, (name, t) in tables if isinstance(t.levels, Bins) and features[name].edges is None]

    def merged(self, tolerance: float, most: int | None, floor: float) -> Merged:
        """Return the part with tables as short as the tolerance allows.

        Parameters
        ----------
        most : bins of a table at most, whatever that costs
        floor : the least share of all training rows that a row of a table stands for
        """
        mergeable, total = self.mergeable, self.basis.rows.totals[1]
        runs = [
            best_runs(self._ordered(j), self._weights(j), self.basis.coded.weights[j][: self._n(j)], floor * total)
            for j in mergeable
        ]
        finest = {j: r.starts(1 + int(np.argmin(r.costs))) for j, r in zip(mergeable, runs, strict=True)}
        limit = self._measured(self.starting_at(finest).level_scores)[0] + tolerance
        least = sum(float(r.costs.min()) for r in runs)
        budget = least + tolerance
        while True:
            counts = rows_within(runs, budget, most)
            starts = {j: r.starts(k) for j, r, k in zip(mergeable, runs, counts, strict=True)}
            merged = self.starting_at(starts)
            # The errors of several tables add up if their features are correlated, so the cost is measured.
            if most is not None or self._measured(merged.level_scores)[0] <= limit or budget == least:
                return merged
            budget = least + 0.5 * (budget - least) if budget - least > 1e-12 else least

    def _n(self, j: int) -> int:
        return self.basis.coded.levels[j].n_ordered

    def _ordered(self, j: int) -> Floats:
        return self.scores[j][: self._n(j)]

    def _weights(self, j: int) -> Floats:
        return self.curvature[j][: self._n(j)]

    def starting_at(self, starts: Starts) -> Merged:
        """Return the part with tables whose rows start at these bins."""
        shapes: dict[str, Shape] = dict(self.part.shapes)
        fine, means = list(self.scores), [np.eye(len(scores)) for scores in self.scores]
        for j, (name, table) in enumerate(self.tables.items()):
            if j in starts and isinstance(table.levels, Bins):
                merged = merged_scores(self._ordered(j), self._weights(j), starts[j])
                n, short = table.levels.n_ordered, _short(table, table.levels, merged, starts[j])
                held = held_scores(
                    np.asarray(short.scores),
                    np.asarray(short.weights),
                    short.levels,
                    self.schema.features[name],
                    self.schema.worse,
                )
                shapes[name] = msgspec.structs.replace(short, scores=tuple(held.tolist()))
                fine[j] = np.concatenate([np.repeat(merged, np.diff([*starts[j], n])), held[len(merged) :]])
                means[j] = _means(self._weights(j), starts[j], len(table.scores))
        return Merged(msgspec.structs.replace(self.part, shapes=shapes), tuple(fine), tuple(means))

    def _measured(self, level_scores: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the mean loss with these scores, and the curvature of the summed loss by joint code."""
        tables = [*scores_by_code(self.basis.coded, level_scores), *self.cells]
        loss, _, curvature = sums_by_code(self.basis.rows, self.part.link, self.part.intercept, tables)
        return loss / self.basis.rows.totals[1], curvature


def _means(weights: Floats, starts: Sequence[int], n_levels: int) -> Floats:
    """Return the mean of the levels in each row of a short table."""
    n = len(weights)
    run = np.searchsorted(starts, np.arange(n), side="right") - 1
    mass = np.maximum(weights, np.finfo(float).tiny)
    means = np.zeros((len(starts) + n_levels - n, n_levels))
    means[run, np.arange(n)] = mass / np.bincount(run, mass)[run]
    means[np.arange(len(starts), len(means)), np.arange(n, n_levels)] = 1.0
    return means


def _short(table: Table, levels: Bins, merged: Floats, starts: Sequence[int]) -> Table:
    """Return a table with one row for each run of bins."""
    n = levels.n_ordered

    def added(values: tuple[float, ...]) -> tuple[float, ...]:
        return (*np.add.reduceat(np.asarray(values[:n]), starts).tolist(), *values[n:])

    return Table(
        levels=msgspec.structs.replace(levels, edges=tuple(levels.edges[start - 1] for start in starts[1:])),
        scores=(*merged.tolist(), *table.scores[n:]),
        weights=added(table.weights),
        positives=added(table.positives),
    )


# ---- runs of levels


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

    >>> runs = best_runs(np.array([0.0, 0.2, 1.0, 1.2]), np.ones(4))
    >>> runs.costs.round(3).tolist(), runs.starts(2)
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
    centered = scores - weights @ scores / max(float(weights.sum()), np.finfo(float).tiny)
    moments = [np.concatenate([[0.0], np.cumsum(weights * centered**power)]) for power in range(3)]
    zero, one, two = (np.subtract.outer(m[1:], m[:-1]).T for m in moments)
    cost = 0.5 * np.maximum(two - one**2 / np.where(zero > 0, zero, 1.0), 0.0)
    cost[cost < 1e-13 * moments[2][-1]] = 0.0  # equal scores differ by rounding alone
    return np.where(np.tri(n, dtype=bool).T, cost, np.inf)


def rows_within(tables: Sequence[Runs], tolerance: float, most: int | None = None) -> list[int]:
    """Return the number of runs that each table keeps, so that all together cost at most the tolerance.

    The price per row is found by bisection: at the right price, every table keeps the runs that are worth it.

    Parameters
    ----------
    most : at most this many runs for each table, whatever it costs
    """
    kept = [t.costs[: 1 if t.costs[0] <= 0.0 else most] for t in tables]  # a flat table keeps one row at any price
    costs = np.full((len(kept), max(map(len, kept), default=1)), np.inf)
    for row, table_costs in zip(costs, kept, strict=True):
        row[: len(table_costs)] = table_costs
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
    means = []
    for start, end in pairwise([*starts, len(scores)]):
        run_scores, mass = scores[start:end], np.maximum(weights[start:end], np.finfo(float).tiny)
        # Rounding must not carry a mean beyond the scores it is the mean of.
        means.append(np.clip(np.average(run_scores, weights=mass), run_scores.min(), run_scores.max()))
    return np.array(means)
