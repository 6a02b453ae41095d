"""From training rows to one additive part: encode, solve, centre."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.encode import Columns, Pack, collapse, feature_columns, learn_levels, pack_codes, pack_limit
from plainrisk.estimators.training import Training
from plainrisk.form import Levels, Linear, Logistic, Part, Shape, Table
from plainrisk.solve import (
    Block,
    Layout,
    LogisticLoss,
    PairCounts,
    Solution,
    count_pairs,
    minimise,
    minimise_squares,
)

__all__ = ["Design", "Encoded", "center", "encode_rows", "fit_line", "fit_logistic", "table_part"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Encoded:
    """Rows as codes; one entry per feature throughout."""

    names: tuple[str, ...]
    levels: tuple[Levels, ...]
    codes: tuple[Codes, ...]
    weights: tuple[Floats, ...]
    positives: tuple[Floats, ...]


def encode_rows(
    training: Training, *, max_bins: int, criterion: Literal["gini", "entropy"] = "gini", min_rows: int = 1
) -> Encoded:
    """Find the levels of every feature and code the rows."""
    names = tuple(training.schema.features)
    levels = [
        learn_levels(
            training.frame,
            name,
            training.schema.features[name],
            training.target,
            training.weight,
            max_bins=max_bins,
            criterion=criterion,
            min_rows=min_rows,
        )
        for name in names
    ]
    return encode_with(training, names, levels)


def encode_with(training: Training, names: Sequence[str], levels: Sequence[Levels]) -> Encoded:
    """Code the rows with levels that are known."""
    codes = tuple(lv.codes(training.frame, name) for lv, name in zip(levels, names, strict=True))
    positive = training.positive.astype(np.float64)
    sizes = [len(lv) for lv in levels]
    weights = tuple(
        np.bincount(c, training.weight, minlength=n).astype(np.float64) for c, n in zip(codes, sizes, strict=True)
    )
    positives = tuple(
        np.bincount(c, positive, minlength=n).astype(np.float64) for c, n in zip(codes, sizes, strict=True)
    )
    return Encoded(tuple(names), tuple(levels), codes, weights, positives)


@dataclass(frozen=True)
class Design:
    """The problem a solver sees: rows as packs, and the columns of every feature."""

    columns: tuple[Columns, ...]
    packs: list[Pack]
    block: Block

    @classmethod
    def of(cls, encoded: Encoded, training: Training) -> Design:
        """Lay out encoded rows, as weighted cells where there are far fewer cells than rows."""
        signs = [training.schema.features[name].sign for name in encoded.names]
        columns = tuple(
            feature_columns(w, lv.n_ordered, sign)
            for w, lv, sign in zip(encoded.weights, encoded.levels, signs, strict=True)
        )
        seen = [w > 0 for w in encoded.weights]
        rows = len(training.target)
        packs = pack_codes(encoded.codes, seen, pack_limit(rows))
        codes = tuple(p.codes for p in packs)
        cells = collapse(codes, [len(p.members) for p in packs], training.positive, training.weight)
        if cells is None:
            return cls(columns, packs, Block(codes, training.positive, training.weight))
        return cls(columns, packs, Block(cells.codes, cells.positive, cells.weight))

    @cached_property
    def layout(self) -> Layout:
        """How coefficients become row scores."""
        return Layout(
            tuple(
                np.hstack([self.columns[j].matrix[level] for j, level in zip(p.features, p.members.T, strict=True)])
                for p in self.packs
            )
        )

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

    def pair_counts(self, block: Block | None = None) -> PairCounts:
        """Count the pairs of levels of all features."""
        members = [p.members + self.offsets[list(p.features)] for p in self.packs]
        return count_pairs([self.block if block is None else block], members, int(self.offsets[-1]))

    def level_scores(self, beta: Floats) -> list[Floats]:
        """Return the scores of every feature's levels."""
        parts = np.split(beta, np.cumsum([c.matrix.shape[1] for c in self.columns])[:-1])
        return [add_columns(c.matrix, part) for c, part in zip(self.columns, parts, strict=True)]


def fit_logistic(design: Design, ridge: float) -> Solution:
    """Minimise mean log loss + ridge ||beta||^2 under the sign bounds."""
    return minimise(LogisticLoss(design.layout, [design.block]), ridge=ridge, lower=design.lower)


def fit_line(design: Design, counts: PairCounts, ridge: float) -> Solution:
    """Minimise mean squared error + ridge ||beta||^2 under the sign bounds, from pair counts."""
    T = design.map
    pairs = counts.pairs.astype(np.float64)
    first = np.diag(pairs) @ T
    gram = np.block([[np.full((1, 1), counts.total), first[None, :]], [first[:, None], T.T @ pairs @ T]])
    moment = np.concatenate([[counts.positive_total], counts.positives.astype(np.float64) @ T])
    return minimise_squares(gram, moment, counts.total, ridge=ridge, lower=design.lower)


def table_part(
    name: str, encoded: Encoded, design: Design, solution: Solution, link: Logistic | Linear, schema: Any
) -> Part:
    """Return the fitted part with every shape centred on its training mean."""
    intercept = solution.intercept
    shapes: dict[str, Shape] = {}
    for j, scores in enumerate(design.level_scores(solution.coefficients)):
        feature, levels, weights = encoded.names[j], encoded.levels[j], encoded.weights[j]
        ordered = schema.features[feature].sign != 0
        centred, mean = center(scores, weights, levels.n_ordered if ordered else 0)
        intercept += mean
        shapes[feature] = Table(
            levels=levels,
            scores=tuple(centred.tolist()),
            weights=tuple(weights.tolist()),
            positives=tuple(encoded.positives[j].tolist()),
        )
    return Part(name=name, intercept=float(intercept), shapes=shapes, link=link)


def add_columns(matrix: Floats, beta: Floats) -> Floats:
    """Return ``matrix @ beta``, every row added up in the same order.

    A linear-algebra library may take another order for some rows. Two levels with a step of 0 between them
    then differ in the last digit, and the shape is no longer exactly monotone.
    """
    return np.asarray((matrix * beta).sum(axis=1))


def center(scores: Floats, weights: Floats, n_ordered: int) -> tuple[Floats, float]:
    """Return the scores less their training mean, and the mean.

    A level outside the order that training never saw gets 0, the mean: it is neutral; so do the ordered levels
    if training saw none of them. Subtracting a constant keeps the order of floating-point numbers, so a monotone
    shape stays exactly monotone.
    """
    mean = float(weights @ scores / weights.sum())
    centred = scores - mean
    unseen = weights == 0
    if not unseen[:n_ordered].all():
        unseen[:n_ordered] = False
    centred[unseen] = 0.0
    return centred, mean
