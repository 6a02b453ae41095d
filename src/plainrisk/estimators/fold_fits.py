"""One additive part, fitted to every training fold from tables of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.encode import Columns, feature_columns, pack_codes, pack_limit
from plainrisk.estimators.arm import AdditiveRiskModel
from plainrisk.estimators.base import resolve_ridge
from plainrisk.estimators.fitting import Design, Encoded, fit_line, table_part
from plainrisk.estimators.fold_cells import FoldCells, fold_cells, fold_pairs
from plainrisk.estimators.fold_tables import FoldFeature, Folds
from plainrisk.form import Linear, Logistic, Part, Table
from plainrisk.solve import Block, LogisticLoss, PairCounts, Solution, minimise

__all__ = ["FittedPart", "FoldPart"]

Floats = npt.NDArray[np.float64]


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
    folds : the rows
    """

    def __init__(self, name: str, model: AdditiveRiskModel, features: Sequence[FoldFeature], folds: Folds) -> None:
        self.name, self.model, self.features, self.folds = name, model, features, folds
        self.last: FittedPart | None = None
        self.last_fold = -1
        self.last_columns: tuple[Columns, ...] = ()

    @cached_property
    def groups(self) -> list[FoldCells]:
        """The part's cells: all features in one group where cells are few."""
        return fold_cells(self.features, len(self.folds.of))

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Rows by (outcome, fold, cell) of the first group."""
        return self.groups[0].counts(self.folds)

    @cached_property
    def _cell_total(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def _pairs(self) -> tuple[Floats, Floats]:
        by_fold = fold_pairs(self.features, self.folds)
        return by_fold, by_fold.sum(axis=0)

    def training_cells(self, k: int) -> npt.NDArray[np.int64]:
        """Return the rows outside a fold by (outcome, cell), where all features are one group."""
        return np.asarray(self._cell_total - self.counts[:, k])

    def fit(self, k: int) -> FittedPart:
        """Fit the part to the rows outside fold k."""
        tables = [f.training(k) for f in self.features]
        levels = tuple(f.levels[k] for f in self.features)
        names = tuple(f.name for f in self.features)
        encoded = Encoded(names, levels, (), tuple(t[0] for t in tables), tuple(t[1] for t in tables))
        columns = tuple(
            feature_columns(w, lv.n_ordered, f.feature.sign, steps=self._steps(f))
            for w, lv, f in zip(encoded.weights, levels, self.features, strict=True)
        )
        ridge = resolve_ridge(self.model.ridge, self.folds.rows(k)[0])
        logistic = self.model.link == "logistic"
        design = self._design(columns, encoded, k) if logistic else Design(columns, [], Block((), np.zeros(0)))
        solution = (
            self._fit_logistic(design, ridge, k)
            if logistic
            else fit_line(design, design.pair_counts_of(self._pair_counts(k)), ridge)
        )
        link = Logistic() if logistic else Linear()
        part = table_part(self.name, encoded, design, solution, link, self.folds.training.schema)
        self.last, self.last_fold = FittedPart(part, solution), k
        return self.last

    def scores(self, part: Part, k: int, rows: slice | npt.NDArray[np.intp]) -> Floats:
        """Return the score of some rows by a part that was fitted without fold k."""
        if len(self.groups) == 1:
            return np.asarray(self.cell_scores(part, k)[self.groups[0].cell[rows]])
        fine = fine_scores(part, self.features, k)
        return np.asarray(part.intercept + sum(g.scores(fine)[g.cell[rows]] for g in self.groups))

    def cell_scores(self, part: Part, k: int) -> Floats:
        """Return the part's score in every cell, where all features are one group."""
        return self.groups[0].scores(fine_scores(part, self.features, k), part.intercept)

    def _steps(self, f: FoldFeature) -> bool:
        return self.model.penalty == "steps" and f.feature.kind == "continuous"

    def _pair_counts(self, k: int) -> PairCounts:
        by_fold, total = self._pairs
        fine = total - by_fold[k]
        sizes = [f.size for f in self.features]
        widths = [len(f.levels[k]) for f in self.features]
        union = np.zeros((sum(sizes), sum(widths)))
        starts = np.repeat(np.cumsum([0, *widths[:-1]]), sizes)
        union[np.arange(sum(sizes)), starts + np.concatenate([f.lookup[k] for f in self.features])] = 1.0
        positives = np.concatenate([f.training(k)[1] for f in self.features])
        return PairCounts(union.T @ fine @ union, positives, *self.folds.rows(k))

    def _design(self, columns: tuple[Columns, ...], encoded: Encoded, k: int) -> Design:
        seen = [w > 0 for w in encoded.weights]
        if len(self.groups) == 1:
            good, bad = self.training_cells(k)
            used = np.flatnonzero(good + bad)
            fine: list[npt.NDArray[Any]] = list(self.groups[0].members[used].T)
            positive: npt.NDArray[Any] = bad[used].astype(np.float64)
            weight = (good + bad)[used].astype(np.float64)
        else:
            used = np.flatnonzero(self.folds.of != k)
            fine = [f.codes[used] for f in self.features]
            positive, weight = self.folds.training.target[used], None
        codes = [
            f.lookup[k].astype(np.uint8 if len(f.levels[k]) <= 256 else np.uint16)[c]
            for f, c in zip(self.features, fine, strict=True)
        ]
        packs = pack_codes(codes, seen, pack_limit(int(self.folds.rows(k)[0])))
        return Design(columns, packs, Block(tuple(p.codes for p in packs), positive, weight))

    def _start(self, columns: tuple[Columns, ...], k: int) -> Floats | None:
        """Return where the solver starts: near what was found without another fold."""
        if self.last is None:
            return None
        found, part = self.last.solution, self.last.part
        if all(np.array_equal(c.matrix, d.matrix) for c, d in zip(columns, self.last_columns, strict=True)):
            return np.concatenate([[found.intercept], found.coefficients])
        return near_point(part.intercept, fine_scores(part, self.features, self.last_fold), self.features, columns, k)

    def _fit_logistic(self, design: Design, ridge: float, k: int) -> Solution:
        # Without a ridge the optimum may not be unique, and then depends on the start.
        start = None if ridge == 0 else self._start(design.columns, k)
        self.last_columns = design.columns
        loss = LogisticLoss(design.layout, [design.block])
        return minimise(loss, ridge=ridge, lower=design.lower, start=start)


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
