"""Pairs of features of an additive model: their coarse levels, and rows as cells of their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from plainrisk._native import code_type, level_sums
from plainrisk._types import Bools, Codes, Floats, Index
from plainrisk.bins import (
    Axis,
    Contrast,
    coarse_axis,
    end_levels,
    pair_contrast,
    silent_cells,
)
from plainrisk.fit.choices import CELLS
from plainrisk.fit.coding import CodedRows
from plainrisk.form import Bins, Levels, PairTable, outside_rules
from plainrisk.schema import Rule, Schema
from plainrisk.solve import Block, Rows
from plainrisk.totals import once

__all__ = ["CoarseReader", "PairRows", "coarse_axes"]


def coarse_axes(coded: CodedRows, schema: Schema, scores: Sequence[Floats]) -> dict[str, Axis]:
    """Return the coarse levels of every feature that can be in a pair.

    In pairs, a special level with a rule behaves like the best measured level ("not_better") or like the worst, or
    adds nothing ("neutral"). Without a direction, the best level may differ for each level of the other feature, so a
    feature whose rule depends on it is not used in pairs.
    """
    axes = {}
    for j, name in enumerate(coded.names):
        feature, levels = schema.features[name], coded.levels[j]
        ordered, known = feature.has_order, scores[j]
        weights = coded.weights[j]
        axis = coarse_axis(weights, levels.n_ordered, feature.sign, ordered=ordered, scores=known, cells=CELLS)
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


@dataclass(frozen=True)
class CoarseReader:
    """Reads the coarse levels of some features from the joint codes of rows.

    Attributes
    ----------
    tables : by feature, the joint code, and the coarse level of each of its numbers
    """

    tables: tuple[tuple[int, Codes], ...]

    @classmethod
    def of(cls, coded: CodedRows, axes: Mapping[str, Axis], names: Sequence[str]) -> CoarseReader:
        """Return what reads these features of coded rows."""
        tables = []
        where = {j: (k, joint) for k, joint in enumerate(coded.joints) for j in joint.features}
        for name in names:
            j = coded.names.index(name)
            k, joint = where[j]
            tables.append((k, axes[name].coarse[joint.levels[joint.features.index(j)]]))
        return cls(tuple(tables))

    def codes(self, block: Block) -> list[Codes]:
        """Return the coarse levels of a block's rows, by feature."""
        return [table[block.codes[k]] for k, table in self.tables]


@dataclass(frozen=True)
class _WithCells:
    """Adds to the codes of rows one for each pair: the cell of its coarse table.

    Attributes
    ----------
    widths, sizes : by pair, how many coarse levels the second feature has, and how many cells there are
    """

    reader: CoarseReader
    widths: Sequence[int]
    sizes: Sequence[int]

    def __call__(self, block: Block) -> Block:
        coarse = self.reader.codes(block)
        cells = [
            u.astype(code_type(size)) * code_type(size)(width) + v.astype(code_type(size))
            for u, v, width, size in zip(coarse[::2], coarse[1::2], self.widths, self.sizes, strict=True)
        ]
        return replace(block, codes=(*block.codes, *cells))


class PairRows:
    """Rows with one more code for each pair: the cell of its coarse table.

    Attributes
    ----------
    pairs : the pairs of features
    axes : by feature
    """

    def __init__(self, coded: CodedRows, axes: Mapping[str, Axis], pairs: Sequence[tuple[str, str]]) -> None:
        self.coded, self.axes, self.pairs = coded, axes, tuple(pairs)

    @once
    def sizes(self) -> list[int]:
        """The number of cells of every pair."""
        return [self.axes[u].size * self.axes[v].size for u, v in self.pairs]

    @once
    def rows(self) -> Rows:
        """All rows."""
        return self.coded.rows.mapped(self.with_cells)

    @once
    def with_cells(self) -> Callable[[Block], Block]:
        """The cell codes to add to those of coded rows."""
        reader = CoarseReader.of(self.coded, self.axes, [name for pair in self.pairs for name in pair])
        return _WithCells(reader, [self.axes[v].size for _, v in self.pairs], self.sizes)

    @once
    def counts(self) -> tuple[list[Floats], list[Floats]]:
        """The weight of every cell of every pair, and that of the positive outcome."""
        return self.rows.sum(_CellCounts(len(self.coded.joints), self.sizes))

    @once
    def contrasts(self) -> list[Contrast]:
        """The coefficients of every pair."""
        each = zip(self.pairs, self.counts[0], strict=True)
        return [pair_contrast(self.axes[u], self.axes[v], weight) for (u, v), weight in each]

    @once
    def silent(self) -> list[Bools]:
        """The cells of every pair that add nothing."""
        return [silent_cells(self.axes[u], self.axes[v]) for u, v in self.pairs]

    def expansions(self) -> list[Index]:
        """Return, for every pair, the coarse cell whose score each cell of its table has."""
        expansions = []
        for u, v in self.pairs:
            rows, columns = (_coarse_of(self.axes[name], self._levels(name)) for name in (u, v))
            expansions.append((rows[:, None] * self.axes[v].size + columns).ravel())
        return expansions

    def tables(self, cells: Sequence[Floats]) -> tuple[PairTable, ...]:
        """Return the pairs as shapes of a form, given the score of every cell; those that are all 0 are left out.

        Bins stay coarse; every category is listed.
        """
        wide = {name: _told_apart(axis, self._levels(name)) for name, axis in self.axes.items()}
        weights, positives = PairRows(self.coded, wide, self.pairs).counts
        tables = []
        for (u, v), own, weight, positive in zip(self.pairs, cells, weights, positives, strict=True):
            if not own.any():
                continue
            rows, columns = (_coarse_of(self.axes[name], self._levels(name)) for name in (u, v))
            scores = own.reshape(self.axes[u].size, self.axes[v].size)[np.ix_(rows, columns)]
            shape = (len(rows), len(columns))
            tables.append(
                PairTable(
                    features=(u, v),
                    levels=(_axis_levels(self.axes[u], self._levels(u)), _axis_levels(self.axes[v], self._levels(v))),
                    scores=_rows_of(scores),
                    weights=_rows_of(weight.reshape(shape)),
                    positives=_rows_of(positive.reshape(shape)),
                )
            )
        return tuple(tables)

    def _levels(self, name: str) -> Levels:
        return self.coded.levels[self.coded.names.index(name)]


@dataclass(frozen=True)
class _CellCounts:
    """The weight of every cell of every pair, and that of the positive outcome; the cells come after other codes."""

    n_others: int
    sizes: Sequence[int]

    def __call__(self, block: Block) -> tuple[list[Floats], list[Floats]]:
        cells = block.codes[self.n_others :]
        positive = block.positive.astype(np.float64)
        return level_sums(block.weight, cells, self.sizes), level_sums(positive, cells, self.sizes)


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
    """Return an axis that separates all levels of a pair's table: coarse bins, and each other level."""
    if isinstance(levels, Bins):
        coarse = axis.coarse.copy()
        coarse[levels.n_ordered :] = axis.n_ordered + np.arange(len(levels) - levels.n_ordered)
        return replace(axis, coarse=coarse)
    n = len(levels)
    return Axis(np.arange(n).astype(code_type(n)), axis.n_ordered and levels.n_ordered, n, axis.sign)


def _rows_of(table: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, table.tolist()))
