"""Short tables for people: neighbouring bins of smooth shapes are merged while that costs next to nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.bins import best_runs, merged_scores, rows_within
from plainrisk.fit.basis import Basis
from plainrisk.fit.coding import scores_by_code, sums_by_code
from plainrisk.form import Bins, Part, Shape, Table, held_scores
from plainrisk.schema import Schema

__all__ = ["FineTables", "Merged"]

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

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables, by feature."""
        return {name: shape for name, shape in self.part.shapes.items() if isinstance(shape, Table)}

    @cached_property
    def scores(self) -> tuple[Floats, ...]:
        """The scores of all levels, by feature."""
        return tuple(np.asarray(table.scores) for table in self.tables.values())

    @cached_property
    def curvature(self) -> list[Floats]:
        """The curvature of the mean loss at every level, by feature."""
        coded, (_, by_code) = self.basis.coded, self._measured(self.scores)
        total = self.basis.rows.totals[1]
        return [c / total for joint, own in zip(coded.joints, by_code, strict=False) for c in joint.margins(own)]

    @property
    def mergeable(self) -> list[int]:
        """The features whose rows may be merged: bins have neighbours, and edges that the schema states stay."""
        each = enumerate(self.tables.items())
        features = self.schema.features
        return [j for j, (name, t) in each if isinstance(t.levels, Bins) and features[name].edges is None]

    def merged(self, tolerance: float, most: int | None, floor: float) -> Merged:
        """Return the part with tables as short as the tolerance allows.

        Parameters
        ----------
        most : rows of a table in the order at most, whatever that costs
        floor : the least share of all training rows that a row of a table stands for
        """
        own, total = self.mergeable, self.basis.rows.totals[1]
        runs = [
            best_runs(self._ordered(j), self._weights(j), self.basis.coded.weights[j][: self._n(j)], floor * total)
            for j in own
        ]
        finest = {j: one.starts(1 + int(np.argmin(one.costs))) for j, one in zip(own, runs, strict=True)}
        limit = self._measured(self.starting_at(finest).level_scores)[0] + tolerance
        least = sum(float(one.costs.min()) for one in runs)
        budget = least + tolerance
        while True:
            counts = rows_within(runs, budget, most)
            starts = {j: one.starts(k) for j, one, k in zip(own, runs, counts, strict=True)}
            merged = self.starting_at(starts)
            # The errors of several tables add up where features go together, so the cost is measured.
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
    """Return the mean of levels that each row of a short table stands for."""
    n = len(weights)
    run = np.searchsorted(starts, np.arange(n), side="right") - 1
    mass = np.maximum(weights, np.finfo(float).tiny)
    out = np.zeros((len(starts) + n_levels - n, n_levels))
    out[run, np.arange(n)] = mass / np.bincount(run, mass)[run]
    out[np.arange(len(starts), len(out)), np.arange(n, n_levels)] = 1.0
    return out


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
