"""From training rows to one additive part: encode, solve, centre."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk._native import Coded, add_places, look_up, look_up_risks, small_codes
from plainrisk.bins import (
    Columns,
    Pack,
    collapse,
    feature_columns,
    pack_codes,
    pack_limit,
)
from plainrisk.form import Linear, Logistic, Part, Shape, Table
from plainrisk.models.encoding import Encoded, encode_rows, encode_with
from plainrisk.models.training import Training
from plainrisk.schema import Schema
from plainrisk.solve import (
    Block,
    Layout,
    LogisticLoss,
    PairCounts,
    RidgePath,
    Solution,
    choose_ridge,
    count_pairs,
    fit_rows,
    minimise,
    minimise_squares,
    stratified_folds,
)

__all__ = [
    "Design",
    "Encoded",
    "Penalty",
    "RisksOf",
    "center",
    "design_columns",
    "encode_rows",
    "encode_with",
    "fit_line",
    "fit_logistic",
    "line_path",
    "logistic_path",
    "squared_error",
    "table_part",
    "training_risks",
]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]
Penalty = Literal["levels", "steps"]

# Different risks of a model whose table fits the processor's second-level cache, and rows of which there is one.
_FEW_RISKS, _ROWS_PER_RISK = 1 << 14, 8

RisksOf = Callable[[slice], Floats | Coded]  # the risks of some rows


@dataclass(frozen=True)
class Design:
    """The problem a solver sees: rows as packs, and the columns of every feature."""

    columns: tuple[Columns, ...]
    packs: list[Pack]
    rows: Block

    @classmethod
    def of(cls, encoded: Encoded, training: Training, penalty: Penalty = "levels") -> Design:
        """Lay out encoded rows."""
        columns = design_columns(encoded, training.schema, penalty)
        seen = [w > 0 for w in encoded.weights]
        packs = pack_codes(encoded.codes, seen, pack_limit(len(training.target)))
        return cls(columns, packs, Block(tuple(p.codes for p in packs), training.positive, training.weight))

    @cached_property
    def block(self) -> Block:
        """All rows, as weighted cells where there are far fewer cells than rows."""
        return self.cells(self.rows)

    @property
    def blocks(self) -> Sequence[Block]:
        """All rows, for a solver."""
        return [self.block]

    def rows_where(self, mask: npt.NDArray[np.bool_]) -> Sequence[Block]:
        """Return some of the rows."""
        return [self.rows.take(np.flatnonzero(mask))]

    def cells_where(self, mask: npt.NDArray[np.bool_]) -> Sequence[Block]:
        """Return some of the rows, as weighted cells where that pays."""
        return [self.cells(rows) for rows in self.rows_where(mask)]

    def cells(self, rows: Block) -> Block:
        """Collapse rows into weighted cells where that pays."""
        found = collapse(rows.packs, [len(p.members) for p in self.packs], rows.positive, rows.weight)
        return rows if found is None else Block(found.codes, found.positive, found.weight)

    @cached_property
    def layout(self) -> Layout:
        """How coefficients become row scores."""
        return Layout(tuple(c.matrix for c in self.columns), members=tuple(p.members for p in self.packs))

    @cached_property
    def lower(self) -> Floats:
        """The lower bound of every coefficient."""
        return np.concatenate([c.lower for c in self.columns])

    @cached_property
    def map(self) -> Floats:
        """The matrix from coefficients to the scores of all levels of all features."""
        out = np.zeros((int(self.offsets[-1]), len(self.lower)))
        column = 0
        for start, c in zip(self.offsets, self.columns, strict=False):
            rows, p = c.matrix.shape
            out[start : start + rows, column : column + p] = c.matrix
            column += p
        return out

    @cached_property
    def offsets(self) -> npt.NDArray[np.intp]:
        """Where each feature's levels start among all levels, and where they end."""
        return np.cumsum([0, *(len(c.matrix) for c in self.columns)])

    def pair_counts(self, rows: Sequence[Block] | None = None) -> PairCounts:
        """Count the pairs of columns, over all rows or some."""
        # Cells carry their counts as weights, which would make integers floats; packs are few, so rows do.
        return count_pairs([self.rows] if rows is None else rows, self.layout)

    def pair_counts_of(self, levels: PairCounts) -> PairCounts:
        """Return the counts of pairs of columns, given those of pairs of levels of all features."""
        pairs = self.map.T @ levels.pairs.astype(np.float64) @ self.map
        positives = levels.positives.astype(np.float64) @ self.map
        return PairCounts(pairs, positives, levels.total, levels.positive_total)


def design_columns(encoded: Encoded, schema: Schema, penalty: Penalty) -> tuple[Columns, ...]:
    """Return the columns of every feature."""
    features = [schema.features[name] for name in encoded.names]
    return tuple(
        feature_columns(w, lv.n_ordered, f.sign, steps=penalty == "steps" and f.kind == "continuous")
        for w, lv, f in zip(encoded.weights, encoded.levels, features, strict=True)
    )


def fit_logistic(design: Design, ridge: float) -> Solution:
    """Minimise mean log loss + ridge ||beta||^2 under the sign bounds."""
    return fit_rows(LogisticLoss(design.layout, design.blocks), ridge=ridge, lower=design.lower)


def training_risks(design: Design, solution: Solution, link: Logistic | Linear) -> RisksOf:
    """Return what gives the risks of some training rows, from their codes: as codes where different ones are few."""
    tables, start = design.layout.levels.tables(solution.coefficients), solution.intercept
    sizes = [len(table) for table in tables]
    if math.prod(sizes) <= min(_FEW_RISKS, len(design.rows) // _ROWS_PER_RISK):
        scores = functools.reduce(lambda sums, table: np.add.outer(sums, table).ravel(), tables, np.array([start]))
        values = link.value(scores)
        return functools.partial(_coded_risks, design.rows.packs, sizes, values)

    def risks_of(rows: slice) -> Floats:
        packs = [pack[rows] for pack in design.rows.packs]
        risks = np.empty(len(packs[0]))
        if isinstance(link, Logistic):
            look_up_risks(start, packs, tables, risks)
        else:
            risks[:] = link.value(look_up(start, packs, tables, len(risks)))
        return risks

    return risks_of


def _coded_risks(packs: Sequence[Codes], sizes: Sequence[int], values: Floats, rows: slice) -> Coded:
    if len(packs) == 1:
        return Coded(packs[0][rows], values)
    steps = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    kind = small_codes(len(values))
    places: list[Codes] = [(np.arange(size) * step).astype(kind) for size, step in zip(sizes, steps, strict=True)]
    return Coded(add_places([pack[rows] for pack in packs], places), values)


def fit_line(design: Design, counts: PairCounts, ridge: float) -> Solution:
    """Minimise mean squared error + ridge ||beta||^2 under the sign bounds, from counts of pairs of columns."""
    gram, moment = _moments(counts)
    return minimise_squares(gram, moment, counts.total, ridge=ridge, lower=design.lower)


def _moments(counts: PairCounts) -> tuple[Floats, Floats]:
    """Return the sums of products of the columns, the constant first, and of the columns with the outcome."""
    p = len(counts.pairs)
    gram = np.empty((1 + p, 1 + p))
    gram[0, 0] = counts.total
    gram[1:, 1:] = counts.pairs
    gram[0, 1:] = gram[1:, 0] = gram.diagonal()[1:]  # columns are 0 or 1, and so their own squares
    return gram, np.concatenate([[counts.positive_total], counts.positives])


def squared_error(found: Solution, gram: Floats, moment: Floats) -> float:
    """Return the summed squared error of a line on rows known by their moments; y^2 = y."""
    point = np.concatenate([[found.intercept], found.coefficients])
    return float(moment[0] - 2.0 * moment @ point + point @ gram @ point)


def line_path(design: Design, target: npt.NDArray[Any], n_folds: int) -> tuple[RidgePath, PairCounts]:
    """Choose the ridge of a direct line from one table of pair counts per fold; also return the counts of all rows.

    Every training table is the total less a fold, and held-out loss is a quadratic in the fold's own table: the rows
    are read once.
    """
    folds = stratified_folds(target, n_folds)
    tables = [design.pair_counts(design.rows_where(folds == k)) for k in range(n_folds)]
    total = functools.reduce(operator.add, tables)

    def judge(table: PairCounts) -> Callable[[float], float]:
        gram, moment = _moments(total - table)
        held_gram, held_moment = _moments(table)
        weight = total.total - table.total
        point: Floats | None = None

        def held_out(ridge: float) -> float:
            nonlocal point
            found = minimise_squares(gram, moment, weight, ridge=ridge, lower=design.lower, start=point)
            point = np.concatenate([[found.intercept], found.coefficients])
            return squared_error(found, held_gram, held_moment) / table.total

        return held_out

    return choose_ridge([judge(t) for t in tables if t.total > 0], total.total), total


def logistic_path(
    layout: Layout,
    rows_where: Callable[[npt.NDArray[np.bool_]], Sequence[Block]],
    target: npt.NDArray[Any],
    total: float,
    n_folds: int,
    scale: Floats | float = 1.0,
    **bounds: Any,
) -> RidgePath:
    """Choose the ridge of a logistic fit by its held-out log loss.

    Parameters
    ----------
    rows_where : from a mask to the rows it chooses
    scale : float or (p,); the ridge of each coefficient as a multiple of the path's
    **bounds : lower, upper, box of `minimise`
    """
    folds = stratified_folds(target, n_folds)

    def judge(k: int) -> Callable[[float], float]:
        train = LogisticLoss(layout, rows_where(folds != k))
        held = LogisticLoss(layout, rows_where(folds == k))
        point = train.start

        def held_out(ridge: float) -> float:
            nonlocal point
            found = minimise(train, ridge=ridge * scale, start=point, **bounds)
            point = np.concatenate([[found.intercept], found.coefficients])
            return held.value_and_gradient(point)[0]

        return held_out

    return choose_ridge([judge(int(k)) for k in np.unique(folds)], total)


def table_part(
    name: str, encoded: Encoded, design: Design, solution: Solution, link: Logistic | Linear, schema: Any
) -> Part:
    """Return the fitted part with every shape centred on its training mean."""
    intercept = solution.intercept
    shapes: dict[str, Shape] = {}
    for j, scores in enumerate(design.layout.levels.scores(solution.coefficients)[0]):
        feature, levels, weights = encoded.names[j], encoded.levels[j], encoded.weights[j]
        ordered = schema.features[feature].sign != 0
        centred, mean = center(scores, weights, levels.n_ordered if ordered else 0)
        intercept += mean
        shapes[feature] = Table(
            levels=levels,
            scores=tuple(centred),
            weights=tuple(weights.tolist()),
            positives=tuple(encoded.positives[j].tolist()),
        )
    return Part(name=name, intercept=float(intercept), shapes=shapes, link=link)


def center(scores: Floats, weights: Floats, n_ordered: int) -> tuple[list[float], float]:
    """Return the scores less their training mean, and the mean.

    A level outside the order that training never saw gets 0, the mean: it is neutral; so do the ordered levels
    if training saw none of them. Subtracting a constant keeps the order of floating-point numbers, so a monotone
    shape stays exactly monotone.
    """
    values, rows = scores.tolist(), weights.tolist()  # levels are few, and then numbers are quicker than arrays
    mean = math.fsum(map(operator.mul, values, rows)) / math.fsum(rows)
    kept = n_ordered if any(rows[:n_ordered]) else 0
    return [v - mean if level < kept or rows[level] else 0.0 for level, v in enumerate(values)], mean
