"""One additive part, fitted to every training fold from tables of all rows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import add_places, cell_counts, level_sums, look_up
from plainrisk.bins import Columns, Pack, counted_cells, pack_limit
from plainrisk.form import Linear, Logistic, Part, Table
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.base import resolve_ridge
from plainrisk.models.fitting import Encoded, fit_line, table_part
from plainrisk.models.fold_cells import FoldCells, fold_pairs
from plainrisk.models.fold_plans import Plan, Plans
from plainrisk.models.fold_tables import FoldFeature, Folds
from plainrisk.solve import Block, LogisticLoss, PairCounts, Solution, fit_rows, minimise
from plainrisk.threads import side_by_side

__all__ = ["FittedPart", "FoldPart"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class FittedPart:
    """A part fitted without one fold."""

    part: Part
    solution: Solution


class FoldPart:
    """One additive model of some features, ready to be fitted without each fold in turn.

    Parameters
    ----------
    name : of the part
    model : its settings
    features : coded
    groups : the part's cells; all features in one group where cells are few
    folds : the rows
    """

    def __init__(
        self,
        name: str,
        model: AdditiveRiskModel,
        features: Sequence[FoldFeature],
        groups: Sequence[FoldCells],
        folds: Folds,
    ) -> None:
        self.name, self.model, self.features, self.groups, self.folds = name, model, features, groups, folds
        self.names = tuple(f.name for f in features)
        self.plans = Plans(features, steps=model.penalty == "steps")
        self.last: FittedPart | None = None
        self.last_fold = -1
        self.last_plan: Plan | None = None
        self._ahead: dict[int, FittedPart] = {}
        self._packed: dict[int, tuple[list[Codes], Codes]] = {}  # places and codes of every pack
        self._scored: tuple[int, Part, list[Floats]] | None = None

    def counted(self) -> FoldPart:
        """Count the rows now, if counts will be asked for."""
        if self.model.link == "logistic" and len(self.groups) == 1:
            self._counts  # noqa: B018  it is kept
        return self

    @cached_property
    def _counts(self) -> Floats:
        """Rows by (outcome, cell) of the first group."""
        return self.groups[0].counts(self.folds)

    @cached_property
    def _pairs(self) -> tuple[Floats, Floats]:
        by_fold = fold_pairs(self.features, self.folds)
        return by_fold, by_fold.sum(axis=0)

    def training_cells(self, k: int) -> Floats:
        """Return the rows outside a fold by (outcome, cell), where all features are one group."""
        return self._counts - self.groups[0].counts(self.folds, self.folds.inside(k))

    def fitted_ahead(self) -> FoldPart:
        """Fit all folds now if that is done on small tables."""
        if len(self.groups) == 1 or self.model.link == "linear":
            self._ahead = {k: self._fit(k) for k in range(self.folds.n)}
        return self

    def fit(self, k: int) -> FittedPart:
        """Return the part fitted to the rows outside fold k."""
        return self._ahead.pop(k) if k in self._ahead else self._fit(k)

    def _fit(self, k: int) -> FittedPart:
        tables = [f.training(k) for f in self.features]
        levels = tuple(f.levels[k] for f in self.features)
        encoded = Encoded(self.names, levels, (), tuple(t[0] for t in tables), tuple(t[1] for t in tables))
        total = self.folds.rows(k)[0]
        plan = self.plans.plan(k, encoded.weights, pack_limit(int(total)))
        ridge = resolve_ridge(self.model.ridge, total)
        logistic = self.model.link == "logistic"
        counts = None if logistic else self._pair_counts(k, encoded)
        solution = (
            self._fit_logistic(plan, ridge, k)
            if counts is None
            else fit_line(plan.design, plan.design.pair_counts_of(counts), ridge)
        )
        link = Logistic() if logistic else Linear()
        part = table_part(self.name, encoded, plan.design, solution, link, self.folds.training.schema)
        self.last, self.last_fold, self.last_plan = FittedPart(part, solution), k, plan
        return self.last

    # ---- scores

    def tables(self, part: Part, k: int) -> list[Floats]:
        """Return what every cell of each group adds to the score without fold k, the intercept included."""
        if self._scored is None or self._scored[0] != k or self._scored[1] is not part:
            fine = fine_scores(part, self.features, k)
            starts = [part.intercept, *[0.0] * (len(self.groups) - 1)]
            tables = [g.scores(fine, start) for g, start in zip(self.groups, starts, strict=True)]
            self._scored = k, part, tables
        return self._scored[2]

    def scores(self, part: Part, k: int, rows: slice) -> Floats:
        """Return the score of some rows by a part that was fitted without fold k."""
        cells = [g.cell[rows] for g in self.groups]
        return look_up(0.0, cells, self.tables(part, k), len(cells[0]))

    def risks(self, part: Part, k: int, rows: slice) -> Floats:
        """Return the part's risk of some rows."""
        if len(self.groups) == 1 and len(self.groups[0]) < rows.stop - rows.start:
            cell = self.groups[0].cell[rows]
            return look_up(0.0, [cell], [part.link.value(self.tables(part, k)[0])], len(cell))
        return part.link.value(self.scores(part, k, rows))

    def range(self, part: Part, k: int) -> tuple[float, float]:
        """Return bounds of the score."""
        tables = self.tables(part, k)
        return sum(float(t.min()) for t in tables), sum(float(t.max()) for t in tables)

    # ---- what the solvers see

    def _pair_counts(self, k: int, encoded: Encoded) -> PairCounts:
        by_fold, total = self._pairs
        fine = total - by_fold[k]
        sizes = [f.size for f in self.features]
        widths = [len(f.levels[k]) for f in self.features]
        union = np.zeros((sum(sizes), sum(widths)))
        starts = np.repeat(np.cumsum([0, *widths[:-1]]), sizes)
        union[np.arange(sum(sizes)), starts + np.concatenate([f.lookup[k] for f in self.features])] = 1.0
        return PairCounts(union.T @ fine @ union, np.concatenate(encoded.positives), *self.folds.rows(k))

    def _blocks(self, plan: Plan, k: int) -> list[Block]:
        """Return the rows outside a fold: as weighted cells, or in two pieces, before and after the fold."""
        if len(self.groups) == 1:
            return [self._cells(plan, k)]
        packs = self._packs(plan, k)
        pieces = [rows for rows in self.folds.outside(k) if rows.start < rows.stop]
        return _collapsed([Block(tuple(p[rows] for p in packs), self.folds.target[rows]) for rows in pieces], plan)

    def _cells(self, plan: Plan, k: int) -> Block:
        members = self.groups[0].members
        good, bad = self.training_cells(k)
        weight = good + bad
        if plan.grid > max(4096, 2 * len(weight)):
            used = np.flatnonzero(weight)
            codes = [m[used] for m in members]
            packs = tuple(add_places([codes[j] for j in p.features], self._places(plan, p, k)) for p in plan.packs)
            return Block(packs, bad[used], weight[used])
        # Fine cells that are one to the fold are added up.
        places = [place[f.lookup[k]] for place, f in zip(plan.grid_places, self.features, strict=True)]
        key = add_places(members, places)
        weight, bad = (level_sums(rows, [key], [plan.grid])[0] for rows in (weight, bad))
        used = np.flatnonzero(weight)
        return Block(tuple(codes[used] for codes in plan.cell_codes), bad[used], weight[used])

    def _places(self, plan: Plan, pack: Pack, k: int) -> list[Codes]:
        """Return what fine levels add to the code of a pack."""
        return [plan.places[j][self.features[j].lookup[k]] for j in pack.features]

    def _packs(self, plan: Plan, k: int) -> list[Codes]:
        """Return the packs of all rows, those of the last fold where nothing has changed."""

        def pack(p: int) -> Codes:
            places = self._places(plan, plan.packs[p], k)
            last, codes = self._packed.get(p, ([], None))
            alike = plan is self.last_plan and all(map(np.array_equal, last, places))
            if codes is None or not alike:
                codes = add_places([self.features[j].codes for j in plan.packs[p].features], places)
                self._packed[p] = places, codes
            return codes

        return list(side_by_side(pack, range(len(plan.packs)), len(self.folds.of)))

    def _start(self, plan: Plan, k: int, small: bool) -> Floats | None:
        """Return where the solver starts: near what was found without another fold, if that is had for less."""
        if self.last is None:
            return None
        found, part = self.last.solution, self.last.part
        if plan is self.last_plan:
            return np.concatenate([[found.intercept], found.coefficients])
        if small:
            return None
        fine = fine_scores(part, self.features, self.last_fold)
        return near_point(part.intercept, fine, self.features, plan.columns, k)

    def _fit_logistic(self, plan: Plan, ridge: float, k: int) -> Solution:
        loss = LogisticLoss(plan.design.layout, self._blocks(plan, k))
        # Without a ridge the optimum may not be unique, and then depends on the start.
        start = None if ridge == 0 else self._start(plan, k, loss.small)
        if start is None:
            return fit_rows(loss, ridge=ridge, lower=plan.design.lower)
        return minimise(loss, ridge=ridge, lower=plan.design.lower, start=start)


def _collapsed(blocks: list[Block], plan: Plan) -> list[Block]:
    """Return rows as weighted cells where these are far fewer, as `collapse` does."""
    n = sum(map(len, blocks))
    if plan.grid > max(4096, 2 * n):
        return blocks
    counts = [cell_counts(rows.packs, plan.sizes, rows.positive.view(np.uint8)) for rows in blocks]
    cells = counted_cells(functools.reduce(np.add, counts), plan.sizes)
    if 2 * len(cells.weight) > n > 4096:
        return blocks
    return [Block(cells.codes, cells.positive, cells.weight)]


def fine_scores(part: Part, features: Sequence[FoldFeature], k: int) -> list[Floats]:
    """Return what every fine level adds to the score, feature by feature."""
    shapes = [part.shapes[f.name] for f in features]
    return [
        np.asarray(shape.scores)[f.lookup[k]]
        for f, shape in zip(features, shapes, strict=True)
        if isinstance(shape, Table)
    ]


def near_point(
    intercept: float, fine: Sequence[Floats], features: Sequence[FoldFeature], columns: Sequence[Columns], k: int
) -> Floats:
    """Return coefficients of fold k's columns that give about these scores: where the solver starts."""
    point = [np.array([intercept])]
    for scores, f, c in zip(fine, features, columns, strict=True):
        rows = (f.total - f.counts[k]).sum(axis=1).astype(np.float64)
        weights = np.bincount(f.lookup[k], rows, minlength=len(c.matrix))
        mean = np.bincount(f.lookup[k], rows * scores, minlength=len(c.matrix)) / np.maximum(weights, 1.0)
        seen = weights > 0
        matrix = np.column_stack([np.ones(int(seen.sum())), c.matrix[seen]])
        found = np.linalg.lstsq(matrix, mean[seen], rcond=None)[0]
        point[0] += found[0]
        point.append(np.maximum(found[1:], c.lower))
    return np.concatenate(point)
