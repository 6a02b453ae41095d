"""The coefficients of a layer: their bounds, how they are shrunk, and how they become scores.

There are three bases: steps between the few bins of each feature, smooth shapes over many, and lines.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.bins import Anchor, Contrast, level_contrast, outside_contrast, smooth_contrast
from plainrisk.bins.coding import Key
from plainrisk.fit.choices import APART, SPREAD, TAIL
from plainrisk.fit.coding import CodedRows, Held, collapsed
from plainrisk.fit.pairs import PairRows
from plainrisk.form import Bins, GroupKind, Levels, Link, Part, Shape, Table, held_scores, outside_rules
from plainrisk.schema import Feature, Schema
from plainrisk.solve import BOX, Hyperprior, Layout, Rows
from plainrisk.totals import once

__all__ = [
    "Basis",
    "Group",
    "LineBounds",
    "centered",
    "centered_table",
    "line_basis",
    "smooth_basis",
    "step_basis",
    "table_part",
]


@dataclass(frozen=True)
class Group:
    """Coefficients that are shrunk together: their features, kind and number."""

    names: tuple[str, ...]
    kind: GroupKind
    size: int


@dataclass(frozen=True)
class LineBounds:
    """Bounds of the slopes of numeric columns, and what multiplies the ridge of each."""

    lower: Floats
    upper: Floats
    scale: Floats


@dataclass(frozen=True)
class Basis:
    """The coefficients of coded rows: those of every feature, then those of every pair, then the slopes of lines.

    Attributes
    ----------
    held : the special levels that a rule constrains, by feature
    weighted : the rows with other weights than they were coded with, for a refit
    """

    coded: CodedRows
    held: Held
    contrasts: tuple[Contrast, ...]
    pairs: PairRows | None = None
    lines: LineBounds | None = None
    weighted: Rows | None = None

    @property
    def pair_contrasts(self) -> Sequence[Contrast]:
        """The coefficients of the pairs."""
        return () if self.pairs is None else self.pairs.contrasts

    @property
    def owners(self) -> list[tuple[tuple[str, ...], Contrast]]:
        """The features and the pairs, each with its coefficients."""
        both: Sequence[tuple[str, ...]] = () if self.pairs is None else self.pairs.pairs
        names = [*((name,) for name in self.coded.names), *both]
        return list(zip(names, (*self.contrasts, *self.pair_contrasts), strict=True))

    @once
    def layout(self) -> Layout:
        """How coefficients become row scores."""
        matrices = []
        for joint in self.coded.joints:
            features = zip(joint.features, joint.levels, strict=True)
            matrices.append(np.hstack([self.contrasts[j].matrix[level] for j, level in features]))
        n_lines = 0 if self.lines is None else len(self.lines.lower)
        return Layout((*matrices, *(c.matrix for c in self.pair_contrasts)), n_lines)

    @once
    def rows(self) -> Rows:
        """All rows, as weighted cells where distinct rows are few."""
        if self.weighted is not None:
            return self.weighted
        if self.pairs is not None:
            return self.pairs.rows
        return self.coded.rows if self.layout.n_dense else collapsed(self.coded.rows, self.layout.sizes)

    @once
    def lower(self) -> Floats:
        """The lower bound of every coefficient."""
        slopes = [] if self.lines is None else [self.lines.lower]
        return np.concatenate([np.zeros(0), *(contrast.lower for _, contrast in self.owners), *slopes])

    @once
    def upper(self) -> Floats | None:
        """The upper bound of every coefficient; None without bounds."""
        if self.lines is None:
            return None
        return np.concatenate([np.full(self.n_levels, np.inf), self.lines.upper])

    @property
    def n_levels(self) -> int:
        """The number of coefficients of levels and pairs."""
        return self.layout.n_coefficients - self.layout.n_dense

    @property
    def scale(self) -> float | Floats:
        """The factors of the ridge for every coefficient."""
        return 1.0 if self.lines is None else np.concatenate([np.ones(self.n_levels), self.lines.scale])

    @property
    def box(self) -> float | Floats:
        """The largest size of coefficients without a ridge."""
        if self.lines is None:
            return BOX
        return np.concatenate([np.full(self.n_levels, BOX), np.full(len(self.lines.lower), np.inf)])

    @once
    def places(self) -> dict[tuple[tuple[str, ...], Key], int]:
        """The position of every coefficient, by its owner and key."""
        every = [(names, key) for names, contrast in self.owners for key in contrast.keys]
        return {key: place for place, key in enumerate(every)}

    @once
    def groups(self) -> list[Group]:
        """The groups in which coefficients are shrunk."""
        return [Group(names, *group) for names, contrast in self.owners for group in contrast.groups]

    @once
    def group_of(self) -> Index:
        """The group of every coefficient."""
        return np.repeat(np.arange(len(self.groups)), [group.size for group in self.groups])

    @once
    def precision_of(self) -> Index:
        """The number of the precision of every group.

        A special level has one coefficient, too few to choose a precision by: all special levels share one.
        """
        outside = np.array([group.kind == "outside" for group in self.groups], bool)
        inside = np.cumsum(~outside) - 1
        return np.where(outside, inside[-1] + 1 if len(inside) else 0, inside)

    def hyperprior(self) -> Hyperprior:
        """Return the prior of the precisions.

        Features are compared by the variance over the rows that scores have at precision 1. The precisions of a
        feature's tails are drawn to that of its body.
        """
        n = int(self.precision_of.max(initial=-1)) + 1
        unit, parent = np.full(n, np.nan), np.full(n, -1)
        variance = np.bincount(self.group_of, self._variances(), minlength=len(self.groups))
        body = {group.names: u for u, group in enumerate(self.groups) if group.kind == "steps"}
        for u, group in enumerate(self.groups):
            at = self.precision_of[u]
            if group.kind in ("lower tail", "upper tail"):
                parent[at] = self.precision_of[body[group.names]]
            elif group.kind != "outside" and variance[u] > 0:
                unit[at] = np.log(variance[u])
        return Hyperprior(unit, parent, SPREAD, APART)

    def _variances(self) -> Floats:
        """Return the variance over the rows of every coefficient's column."""
        weights = [*self.coded.weights, *([] if self.pairs is None else self.pairs.counts[0])]
        variances = [np.zeros(0)]
        for (_, contrast), weight in zip(self.owners, weights, strict=True):
            share = weight / weight.sum()
            variances.append(share @ contrast.matrix**2 - (share @ contrast.matrix) ** 2)
        return np.concatenate(variances)

    def scores(self, coefficients: Floats) -> list[Floats]:
        """Return the scores of the levels of every feature, then of the cells of every pair."""
        sizes = [len(contrast.keys) for _, contrast in self.owners]
        pieces = np.split(coefficients[: self.n_levels], np.cumsum(sizes)[:-1])
        return [contrast.scores(beta) for (_, contrast), beta in zip(self.owners, pieces, strict=True)]

    def level_scores(self, coefficients: Floats) -> list[Floats]:
        """Return the scores of the levels of every feature."""
        return self.scores(coefficients)[: len(self.contrasts)]

    def pair_scores(self, coefficients: Floats) -> list[Floats]:
        """Return the score of every cell of every pair."""
        if self.pairs is None:
            return []
        pairs = zip(self.scores(coefficients)[len(self.contrasts) :], self.pairs.silent, strict=True)
        return [np.where(silent, 0.0, scores) for scores, silent in pairs]


def step_basis(coded: CodedRows, schema: Schema, held: Held) -> Basis:
    """Return the steps of every feature that has a direction, and an effect per level for the others."""
    contrasts = [
        level_contrast(weights, levels.n_ordered, schema.features[name].sign, anchors=held[name])
        for name, levels, weights in zip(coded.names, coded.levels, coded.weights, strict=True)
    ]
    return Basis(coded, held, tuple(contrasts))


def smooth_basis(
    coded: CodedRows,
    schema: Schema,
    held: Held,
    cuts: Mapping[str, Collection[int]],
    pairs: PairRows | None = None,
) -> Basis:
    """Return steps that are shrunk feature by feature, at some cuts or at all of them, together with pairs."""
    contrasts = []
    for name, levels, weights in zip(coded.names, coded.levels, coded.weights, strict=True):
        feature = schema.features[name]
        contrasts.append(
            smooth_contrast(
                weights,
                levels.n_ordered,
                feature.sign,
                ordered=feature.has_order,
                anchors=held[name],
                cuts=cuts.get(name),
                tail=TAIL if feature.kind == "continuous" else 0.0,
            )
        )
    return Basis(coded, held, tuple(contrasts), pairs)


def line_basis(coded: CodedRows, schema: Schema, held: Held, lines: LineBounds) -> Basis:
    """Return slopes of numeric columns, with an effect for each level that is no measurement."""
    contrasts = []
    for name, levels, weights in zip(coded.names, coded.levels, coded.weights, strict=True):
        feature = schema.features[name]
        if isinstance(levels, Bins):
            # The line is 0 at the mean measurement, the one level that others are compared with.
            anchors = _at_the_mean(feature, levels, weights, schema.worse)
            contrasts.append(outside_contrast(weights, levels.n_ordered, anchors))
        else:
            contrasts.append(level_contrast(weights, levels.n_ordered, feature.sign, anchors=held[name]))
    return Basis(coded, held, tuple(contrasts), lines=lines)


def _at_the_mean(feature: Feature, levels: Levels, weights: Floats, worse: int) -> dict[int, Anchor]:
    """Return the anchors of a line's special levels: no better than the mean measurement, or at it."""
    held_at = {}
    for level, rule in outside_rules(feature, levels).items():
        if weights[level] and rule in ("not_better", "neutral"):
            held_at[level] = Anchor("beyond" if rule == "not_better" else "at", 0, worse)
    return held_at


def table_part(basis: Basis, intercept: float, coefficients: Floats, link: Link, schema: Schema) -> Part:
    """Return the fitted part with every shape centered on its training mean, and every rule kept exactly."""
    shapes: dict[str, Shape] = {}
    for j, scores in enumerate(basis.level_scores(coefficients)):
        shapes[basis.coded.names[j]], mean = centered_table(basis.coded, j, scores, schema)
        intercept += mean
    return Part(name="all", intercept=float(intercept), shapes=shapes, link=link)


def centered_table(coded: CodedRows, j: int, scores: Floats, schema: Schema) -> tuple[Table, float]:
    """Return the table of a feature, centered, with every rule kept exactly; and the mean that was subtracted."""
    feature, levels, weights = schema.features[coded.names[j]], coded.levels[j], coded.weights[j]
    shifted, mean = centered(scores, weights, levels.n_ordered if feature.sign else 0)
    table = Table(
        levels=levels,
        scores=tuple(held_scores(np.array(shifted), weights, levels, feature, schema.worse).tolist()),
        weights=tuple(weights.tolist()),
        positives=tuple(coded.positives[j].tolist()),
    )
    return table, mean


def centered(scores: Floats, weights: Floats, n_ordered: int) -> tuple[list[float], float]:
    """Return the scores less their training mean, and the mean.

    A special level without training rows gets 0, the mean: it is neutral; so do the ordered levels
    if training saw none of them. Subtracting a constant keeps the order of floating-point numbers, so a monotone
    shape stays exactly monotone.
    """
    values, rows = scores.tolist(), weights.tolist()
    mean = math.fsum(map(operator.mul, values, rows)) / math.fsum(rows)
    kept = n_ordered if any(rows[:n_ordered]) else 0
    return [v - mean if level < kept or rows[level] else 0.0 for level, v in enumerate(values)], mean
