"""Scores of additive parts: for every row the intercept plus what its features add, in the order of the shapes, and
what its pairs of features add, in theirs.

Many rows are scored by `_native.add_scores`, which looks up every number in the cells of its levels. One row from a
dict is scored in plain Python, since setting up arrays takes longer than scoring it. Both use the same levels and the
same tables in the same order, so a row has the same score to the last bit whatever rows are scored with it, and a
monotone shape gives exactly ordered scores: rounding keeps an order.

A value that must be refused (infinity, a level that the schema does not allow) has the score NaN here. The caller
then scores the rows by `Part.score`, which names the row.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._native import Term, add_scores, is_readable
from plainrisk._types import Array, Floats
from plainrisk.data.frame import Frame
from plainrisk.form.levels import Bins, Categories
from plainrisk.form.links import LARGEST
from plainrisk.form.shapes import Curve, Line, PairTable, Shape, Table
from plainrisk.threads import parallel_map

__all__ = ["Column", "Scorer"]

# What a dict with one row may contain besides the features: anything that is clearly a single value.
_ONE_VALUE = (str, float, int, type(None), np.number)


@dataclass(frozen=True, eq=False)
class Column:
    """A column in the form needed for scoring.

    Attributes
    ----------
    values : (n,), numbers as they are stored, codes of categories, or cells of a pair
    term : what they add to the score; None if the shape itself must say, because it is no table
    """

    values: Array
    term: Term | None


class _Feature:
    """One feature of one part."""

    def __init__(self, part: int, name: str, shape: Shape, strict: bool) -> None:
        self.part, self.name, self.shape, self.strict = part, name, shape, strict
        refused = np.array([strict and weight == 0 for weight in shape.weights], np.bool_)
        self.scores = np.where(refused, np.nan, shape.scores)

    @functools.cached_property
    def by_number(self) -> Term:
        """The effect of a number; bins refuse infinity."""
        cells = self.shape.levels.cells
        cuts, table = cells.cuts, self.scores[cells.levels]
        if isinstance(self.shape.levels, Bins):
            cuts = np.concatenate([[-math.inf], cuts, [sys.float_info.max]])
            table = np.concatenate([[math.nan], table[:-1], [math.nan], table[-1:]])
        return Term(self.part, cuts, table)

    @functools.cached_property
    def by_code(self) -> Term:
        """What a code adds."""
        return _term_of_codes(self.part, self.scores)

    def read(self, frame: Frame) -> Column:
        """Read the feature's column; text among numbers raises."""
        levels = self.shape.levels
        x = frame.array(self.name)
        if isinstance(levels, Categories) and (x is None or not levels.reads(x)):
            return Column(levels.codes(frame, self.name), self.by_code)
        if x is None:
            x = frame.numbers(self.name)
        if isinstance(self.shape, Table):
            return Column(x if is_readable(x) else x.astype(np.float64), self.by_number)
        return Column(x, None)

    def of_numbers(self, x: Array) -> Floats:
        """Return what numbers add by a line or a curve."""
        assert not isinstance(self.shape, Table)
        numbers = x.astype(np.float64)
        infinite = np.isinf(numbers)
        numbers[infinite] = np.nan
        values = self.shape.of_numbers(numbers)
        if self.strict:
            infinite |= np.isnan(self.scores)[self.shape.levels.code_numbers(numbers)]
        values[infinite] = np.nan
        return values


class _Pair:
    """One pair of one part."""

    def __init__(self, part: int, pair: PairTable, strict: frozenset[str]) -> None:
        self.part, self.pair = part, pair
        self.scores = np.array(pair.scores)
        for axis, name in enumerate(pair.features):
            if name in strict:
                np.moveaxis(self.scores, axis, 0)[pair.level_weights(axis) == 0] = np.nan

    @functools.cached_property
    def by_cell(self) -> Term:
        """What a cell adds."""
        return _term_of_codes(self.part, self.scores.ravel())

    def read(self, frame: Frame) -> Column:
        """Read the cell of every row; text among numbers and infinity raise."""
        return Column(self.pair.cells(*self.pair.codes(frame)), self.by_cell)


def _term_of_codes(part: int, scores: Floats) -> Term:
    """Return what codes add: they are whole numbers, so the cuts are all whole numbers below the last."""
    return Term(part, np.arange(len(scores) - 1.0), np.append(scores, math.nan))


class Scorer:
    """The scores of several additive parts, prepared once and used for rows of any kind.

    Parameters
    ----------
    intercepts : one per part
    shapes : those of each part by feature, in the order in which they are added
    pairs : those of each part, which are added after its shapes
    strict : the features whose unseen levels are refused
    """

    def __init__(
        self,
        intercepts: Sequence[float],
        shapes: Sequence[Mapping[str, Shape]],
        pairs: Sequence[Sequence[PairTable]],
        strict: frozenset[str],
    ) -> None:
        self._intercepts = intercepts
        self._features = [
            _Feature(k, n, shape, n in strict) for k, by_name in enumerate(shapes) for n, shape in by_name.items()
        ]
        self._pairs = [_Pair(k, pair, strict) for k, part_pairs in enumerate(pairs) for pair in part_pairs]
        self._terms: list[_Feature | _Pair] = [*self._features, *self._pairs]

    # ---- many rows

    def read(self, frame: Frame) -> list[Column]:
        """Read all columns once, so that blocks of rows are slices of arrays."""
        return list(parallel_map(lambda term: term.read(frame), self._terms, frame.n_rows))

    def add(self, scores: Sequence[Floats], columns: Iterable[Column], rows: slice) -> None:
        """Add every feature and pair to the score of its part, for some of the rows; refused values become NaN."""
        terms = [(column.values[rows], column.term, term) for column, term in zip(columns, self._terms, strict=True)]
        # Neighboring tables go together: a matrix that is stored row by row is then read once.
        for is_table, run in itertools.groupby(terms, key=lambda item: item[1] is not None):
            if is_table:
                values, tables, _ = zip(*run, strict=True)
                add_scores(scores, values, tables)
                continue
            for x, _, feature in run:
                assert isinstance(feature, _Feature)  # pairs are tables
                scores[feature.part] += feature.of_numbers(x)

    # ---- one row

    @functools.cached_property
    def _row_terms(self) -> list[tuple[int, str, Any, list[float], Line | None]]:
        return [
            (f.part, f.name, f.shape.levels.level_of, f.scores.tolist(), f.shape if isinstance(f.shape, Line) else None)
            for f in self._features
        ]

    @functools.cached_property
    def _row_pairs(self) -> list[tuple[int, list[tuple[str, Any]], list[list[float]]]]:
        return [
            (
                p.part,
                [(n, lv.level_of) for n, lv in zip(p.pair.features, p.pair.levels, strict=True)],
                p.scores.tolist(),
            )
            for p in self._pairs
        ]

    @functools.cached_property
    def _names(self) -> frozenset[str]:
        return frozenset((*(f.name for f in self._features), *(n for p in self._pairs for n in p.pair.features)))

    @functools.cached_property
    def _has_curves(self) -> bool:
        return any(isinstance(f.shape, Curve) for f in self._features)

    def row_scores(self, row: Mapping[Any, Any]) -> list[float] | None:
        """Return the score of each part for one row; None if only the code for arrays can tell."""
        if self._has_curves or not self._is_one_row(row):
            return None
        scores = list(self._intercepts)
        for part, name, level_of, values, line in self._row_terms:
            level = level_of(row.get(name, _ABSENT))
            if level is None:
                return None
            if line is not None and level == 0 and values[0] == values[0]:
                scores[part] += min(max(line.slope * (float(row[name]) - line.center), -LARGEST), LARGEST)
            else:
                scores[part] += values[level]
        for part, axes, table in self._row_pairs:
            first, second = (level_of(row.get(name, _ABSENT)) for name, level_of in axes)
            if first is None or second is None:
                return None
            scores[part] += table[first][second]
        return None if any(map(math.isnan, scores)) else scores

    def _is_one_row(self, row: Mapping[Any, Any]) -> bool:
        """Whether a dict is one row: each name has a single value, judged by the columns that are not features."""
        return len(row) == len(self._names) or all(
            name in self._names or (isinstance(name, str) and isinstance(value, _ONE_VALUE))
            for name, value in row.items()
        )


_ABSENT = object()  # no level is that of a column that is not there
