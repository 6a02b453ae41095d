"""Pairs of features for an additive model: which of them the residuals speak for, and their rows as cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import msgspec
import numpy as np

from plainrisk._native import level_sums, look_up, pair_sums
from plainrisk._types import Bools, Codes, Floats, Index
from plainrisk.bins import (
    Axis,
    Contrast,
    chance_level,
    coarse_axis,
    code_type,
    end_levels,
    pair_contrast,
    pair_gain,
    silent_cells,
)
from plainrisk.errors import DataError, did_you_mean
from plainrisk.form import Bins, Levels, Link, PairTable, RiskForm, Table, TreePart, outside_rules
from plainrisk.models.design import CodedRows, code_rows, scores_by_code
from plainrisk.models.training import read_training
from plainrisk.schema import Feature, Rule, Schema
from plainrisk.solve import Block, Blocks, Rows

__all__ = [
    "PairEvidence",
    "PairRows",
    "Pairs",
    "chosen_pairs",
    "coarse_axes",
    "is_ordered",
    "rank_pairs",
    "suggest_pairs",
]

Pairs = Literal["auto"] | int | Sequence[tuple[str, str]] | None

# Pairs that are fitted at most when they are chosen by evidence, and features that pairs are sought among at most.
_MOST_PAIRS, _MOST_FEATURES = 50, 200


@dataclass(frozen=True)
class PairEvidence:
    """What the residuals of a model without pairs say of one pair.

    Attributes
    ----------
    features : the two
    z : how far the residuals in the cells of its table are from chance, in standard deviations
    gain : about what the pair would take off the mean log loss
    threshold : what the best of all pairs reaches by chance
    """

    features: tuple[str, str]
    z: float
    gain: float
    threshold: float

    @property
    def is_evident(self) -> bool:
        """Whether this is more than chance."""
        return self.z > self.threshold


def is_ordered(feature: Feature) -> bool:
    """Whether the levels of a feature have an order."""
    return feature.kind == "continuous" or feature.sign != 0


def coarse_axes(coded: CodedRows, schema: Schema) -> dict[str, Axis]:
    """Return the coarse levels of every feature that can stand in a pair.

    A level outside the order that a rule holds behaves in pairs as the best measured level ("not_better"), as the
    worst, or adds nothing ("neutral"). Without a direction another level may be the best for every level of the other
    feature, so a feature that needs to know it stands in no pair.
    """
    axes = {}
    for j, name in enumerate(coded.names):
        feature, levels = schema.features[name], coded.levels[j]
        axis = coarse_axis(coded.weights[j], levels.n_ordered, feature.sign, ordered=is_ordered(feature))
        rules = outside_rules(feature, levels)
        if feature.sign or not {"not_better", "worst"} & set(rules.values()):
            axes[name] = _held(axis, levels, rules, schema.worse) if levels.n_ordered else axis
    return axes


def _held(axis: Axis, levels: Levels, rules: Mapping[int, Rule], worse: int) -> Axis:
    coarse, neutral = axis.coarse.copy(), []
    best, worst = end_levels(axis.sign, levels.n_ordered, worse)
    for level, rule in rules.items():
        if rule == "neutral":
            neutral.append(int(coarse[level]))
        elif rule in ("not_better", "worst"):
            coarse[level] = coarse[best if rule == "not_better" else worst]
    return replace(axis, coarse=coarse, neutral=tuple(neutral))


def rank_pairs(
    coded: CodedRows,
    axes: Mapping[str, Axis],
    link: Link,
    intercept: float,
    level_scores: Sequence[Floats],
) -> list[PairEvidence]:
    """Rank all pairs by the residuals of a model, the best first: one pass over the rows.

    Parameters
    ----------
    intercept, level_scores : the model: per feature, the score of every level
    """
    names, tables = _candidates(coded, axes, level_scores), scores_by_code(coded, level_scores)
    reader = _Coarse(coded, axes, names)
    sizes = [axes[name].size for name in names]

    def sums(block: Block) -> tuple[list[Floats], list[Floats]]:
        risk = np.clip(link.value(look_up(intercept, block.codes, tables, len(block))), 1e-6, 1.0 - 1e-6)
        weight = np.ones(len(block)) if block.weight is None else block.weight
        residual, variance = block.positive - weight * risk, weight * risk * (1.0 - risk)
        codes = reader.codes(block)
        found: tuple[list[Floats], list[Floats]] = [], []
        for k in range(len(names) - 1):
            rest = (codes[k], codes[k + 1 :], sizes[k], sizes[k + 1 :])
            for into, values in zip(found, (residual, variance), strict=True):
                into += pair_sums(values, *rest)
        return found

    if len(names) < 2:
        return []
    residuals, variances = coded.rows.sum(sums)
    threshold, total = chance_level(len(residuals)), coded.rows.totals[1]
    found = []
    for pair, r, w in zip(combinations(names, 2), residuals, variances, strict=True):
        z, gain = pair_gain(r, w)
        found.append(PairEvidence(pair, z, gain / total, threshold))
    return sorted(found, key=lambda one: -one.z)


def suggest_pairs(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> list[PairEvidence]:
    """Rank all pairs of features by the residuals of a fitted one-layer model, the best first.

    Parameters
    ----------
    model : a fitted model of one part whose shapes are tables, without pairs
    X, y, sample_weight : the rows it was fitted to

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    >>> pr.suggest_pairs(model, german.frame, german.target)[0].is_evident
    False
    """
    form: RiskForm = model.form_
    part = form.parts[0]
    tables = not isinstance(part, TreePart) and all(isinstance(s, Table) for s in part.shapes.values())
    if len(form.parts) > 1 or isinstance(part, TreePart) or not tables or part.pairs:
        raise DataError("suggest_pairs: the model must be of one part whose shapes are tables, without pairs.")
    training = read_training(X, y, form.schema, sample_weight, None)
    coded = code_rows(training, {name: shape.levels for name, shape in part.shapes.items()})
    scores = [np.asarray(shape.scores) for shape in part.shapes.values()]
    axes = coarse_axes(coded, form.schema)
    return rank_pairs(coded, axes, part.link, part.intercept, scores)


def _candidates(coded: CodedRows, axes: Mapping[str, Axis], level_scores: Sequence[Floats]) -> list[str]:
    """Return the features that vary; of very many, those that move the model's score most."""
    varying = [j for j, name in enumerate(coded.names) if name in axes and axes[name].size > 1]
    moves = {j: float(coded.weights[j] @ level_scores[j] ** 2) for j in varying}
    most = sorted(varying, key=lambda j: -moves[j])[:_MOST_FEATURES]
    return [coded.names[j] for j in sorted(most)]


def chosen_pairs(
    pairs: Any, ranked: Sequence[PairEvidence], names: Sequence[str], axes: Mapping[str, Axis]
) -> list[tuple[str, str]]:
    """Return the pairs that were asked for: "auto", a number of them, or a list."""
    if pairs == "auto":
        return [one.features for one in ranked if one.is_evident][:_MOST_PAIRS]
    if isinstance(pairs, int | np.integer):
        return [one.features for one in ranked[: int(pairs)]]
    place = {name: k for k, name in enumerate(names)}
    found: list[tuple[str, str]] = []
    for pair in pairs:
        for name in pair:
            if name not in place:
                raise DataError(f"pairs: there is no feature {name!r}.{did_you_mean(name, names)}")
            if name not in axes:
                raise DataError(
                    f"pairs: feature {name!r} has a rule 'not_better' or 'worst' but no direction, so the level it is "
                    "held at differs with the other feature. State a direction, another rule, or no such pair."
                )
        u, v = sorted(pair, key=place.__getitem__)
        if u == v or (u, v) in found:
            raise DataError(f"pairs: {u!r} and {v!r} are one feature, or are named twice.")
        found.append((u, v))
    return found


class _Coarse:
    """Reads the coarse levels of some features from the joint codes of rows."""

    def __init__(self, coded: CodedRows, axes: Mapping[str, Axis], names: Sequence[str]) -> None:
        self.tables: list[tuple[int, Codes]] = []
        where = {j: (k, joint) for k, joint in enumerate(coded.joints) for j in joint.features}
        for name in names:
            j = coded.names.index(name)
            k, joint = where[j]
            self.tables.append((k, axes[name].coarse[joint.levels[joint.features.index(j)]]))

    def codes(self, block: Block) -> list[Codes]:
        return [table[block.codes[k]] for k, table in self.tables]


class PairRows(Blocks):
    """Blocks of rows with one more code for each pair: the cell of its coarse table.

    Attributes
    ----------
    pairs : the pairs of features
    axes : by feature
    """

    def __init__(self, coded: CodedRows, axes: Mapping[str, Axis], pairs: Sequence[tuple[str, str]]) -> None:
        self.coded, self.axes, self.pairs = coded, axes, tuple(pairs)
        self._reader = _Coarse(coded, axes, [name for pair in pairs for name in pair])

    def __len__(self) -> int:
        return len(self.coded.rows.blocks)

    def block(self, number: int) -> Block:
        """Return one block."""
        block = self.coded.rows.blocks[number]
        coarse = self._reader.codes(block)
        cells = [
            u.astype(code_type(size)) * code_type(size)(self.axes[pair[1]].size) + v.astype(code_type(size))
            for pair, u, v, size in zip(self.pairs, coarse[::2], coarse[1::2], self.sizes, strict=True)
        ]
        return Block((*block.codes, *cells), block.positive, block.weight, block.dense)

    @cached_property
    def sizes(self) -> list[int]:
        """How many cells every pair has."""
        return [self.axes[u].size * self.axes[v].size for u, v in self.pairs]

    @cached_property
    def rows(self) -> Rows:
        """All rows."""
        return Rows([self[0]] if len(self) == 1 else self)  # one batch lies in memory

    @cached_property
    def counts(self) -> tuple[list[Floats], list[Floats]]:
        """The weight of every cell of every pair, and that of the positive outcome."""
        n = len(self.coded.joints)

        def count(block: Block) -> tuple[list[Floats], list[Floats]]:
            cells = block.codes[n:]
            positive = block.positive.astype(np.float64)
            return level_sums(block.weight, cells, self.sizes), level_sums(positive, cells, self.sizes)

        return self.rows.sum(count)

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """The coefficients of every pair."""
        each = zip(self.pairs, self.counts[0], strict=True)
        return [pair_contrast(self.axes[u], self.axes[v], weight) for (u, v), weight in each]

    @cached_property
    def silent(self) -> list[Bools]:
        """Which cells of every pair add nothing."""
        return [silent_cells(self.axes[u], self.axes[v]) for u, v in self.pairs]

    def expansions(self) -> list[Index]:
        """Return, for every pair, the coarse cell whose score each cell of its table has."""
        found = []
        for u, v in self.pairs:
            rows, columns = (_coarse_of(self.axes[name], self._levels(name)) for name in (u, v))
            found.append((rows[:, None] * self.axes[v].size + columns).ravel())
        return found

    def tables(self, cells: Sequence[Floats]) -> tuple[PairTable, ...]:
        """Return the pairs as shapes of a form, given the score of every cell; those that are all 0 are left out.

        Bins are coarse; categories are told one by one.
        """
        wide = {name: _told_apart(axis, self._levels(name)) for name, axis in self.axes.items()}
        weights, positives = PairRows(self.coded, wide, self.pairs).counts
        found = []
        for (u, v), own, weight, positive in zip(self.pairs, cells, weights, positives, strict=True):
            if not own.any():
                continue
            rows, columns = (_coarse_of(self.axes[name], self._levels(name)) for name in (u, v))
            scores = own.reshape(self.axes[u].size, self.axes[v].size)[np.ix_(rows, columns)]
            shape = (len(rows), len(columns))
            found.append(
                PairTable(
                    features=(u, v),
                    levels=(_axis_levels(self.axes[u], self._levels(u)), _axis_levels(self.axes[v], self._levels(v))),
                    scores=_rows_of(scores),
                    weights=_rows_of(weight.reshape(shape)),
                    positives=_rows_of(positive.reshape(shape)),
                )
            )
        return tuple(found)

    def _levels(self, name: str) -> Levels:
        return self.coded.levels[self.coded.names.index(name)]


def _axis_levels(axis: Axis, levels: Levels) -> Levels:
    """Return the levels of one side of a pair's table."""
    if not isinstance(levels, Bins):
        return levels
    cuts = np.flatnonzero(np.diff(axis.coarse[: levels.n_ordered].astype(np.intp)))
    return msgspec.structs.replace(levels, edges=tuple(levels.edges[cut] for cut in cuts))


def _coarse_of(axis: Axis, levels: Levels) -> Index:
    """Return, for each level of one side of a pair's table, the coarse level whose score it has."""
    if isinstance(levels, Bins):
        return np.concatenate([np.arange(axis.n_ordered), axis.coarse[levels.n_ordered :].astype(np.intp)])
    return axis.coarse.astype(np.intp)


def _told_apart(axis: Axis, levels: Levels) -> Axis:
    """Return an axis that keeps apart all levels of a pair's table: coarse bins, and every other level by itself."""
    if isinstance(levels, Bins):
        coarse = axis.coarse.copy()
        coarse[levels.n_ordered :] = axis.n_ordered + np.arange(len(levels) - levels.n_ordered)
        return replace(axis, coarse=coarse)
    n = len(levels)
    return Axis(np.arange(n).astype(code_type(n)), levels.n_ordered, n, axis.sign)


def _rows_of(table: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, table.tolist()))
