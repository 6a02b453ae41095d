"""One row from a dict, in plain Python: setting up arrays for one row takes longer than scoring it.

Levels, tables and sums are those of the array way, to the last bit. Whatever is unusual (text where a number is due, a
column that is missing, a list) is left to the array way, which raises the error or knows what to do.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk.form.levels import Bins, Categories
from plainrisk.form.shapes import LARGEST, Curve, Line, Shape, Table
from plainrisk.schema import label_of

__all__ = ["SingleScore", "UnusualRowError", "is_one_row", "single_score"]

Reader = Callable[[Any], int]
Term = Callable[[Mapping[str, Any]], float]

# Larger whole numbers may be rounded on their way to a float, and not in the same way everywhere.
_LARGEST_WHOLE = 2**53

# What may stand beside the features in a row: anything that is clearly one value.
_ONE_VALUE = (str, float, int, type(None), np.number)


class UnusualRowError(Exception):
    """The row is not for this way; the array way decides."""


@dataclass(frozen=True)
class SingleScore:
    """The additive score of one row.

    Attributes
    ----------
    intercept : float
    terms : what is added to it, in this order, each a function of the row
    """

    intercept: float
    terms: tuple[Term, ...]

    def score(self, row: Mapping[str, Any]) -> float:
        """Return the score, or raise `UnusualRowError` or KeyError."""
        score = self.intercept
        for term in self.terms:
            score += term(row)
        return score


def single_score(intercept: float, shapes: Mapping[str, Shape], strict: frozenset[str]) -> SingleScore | None:
    """Prepare a part for rows that come one by one; None if it has shapes that are neither tables nor lines.

    `strict` are the features whose unseen levels are refused.
    """
    terms = []
    for name, shape in shapes.items():
        level_of = _reader(shape, name in strict)
        if isinstance(shape, Curve):
            return None
        terms.append(_line_term(name, shape, level_of) if isinstance(shape, Line) else _term(name, shape, level_of))
    return SingleScore(intercept, tuple(terms))


def is_one_row(row: Mapping[Any, Any], features: frozenset[str]) -> bool:
    """Whether a dict holds one value under each name, as far as its columns that are no features tell."""
    return len(row) == len(features) or all(
        name in features or (isinstance(name, str) and isinstance(value, _ONE_VALUE)) for name, value in row.items()
    )


def _term(name: str, table: Table, level_of: Reader) -> Term:
    scores = table.scores
    return lambda row: scores[level_of(row[name])]


def _line_term(name: str, line: Line, level_of: Reader) -> Term:
    def term(row: Mapping[str, Any]) -> float:
        level = level_of(row[name])
        if level:
            return line.scores[level]
        return min(max(line.slope * (float(row[name]) - line.center), -LARGEST), LARGEST)

    return term


def _reader(shape: Shape, strict: bool) -> Reader:
    """Return a function from a value to its level."""
    levels = shape.levels
    read = _number_reader(levels) if isinstance(levels, Bins) else _label_reader(levels)
    refused = frozenset(k for k, weight in enumerate(shape.weights) if weight == 0 and strict)
    if not refused:
        return read

    def read_strictly(value: Any) -> int:
        level = read(value)
        if level in refused:
            raise UnusualRowError
        return level

    return read_strictly


def _number_reader(bins: Bins) -> Reader:
    edges, missing = bins.edges, bins.missing
    low = -math.inf if bins.lower_bound is None else bins.lower_bound
    special = {value: bins.n_ordered + k for k, value in enumerate(bins.special_values)}

    def read(value: Any) -> int:
        kind = type(value)
        if kind is not float:
            if value is None:
                return missing
            if kind is not int and kind is not np.float64:
                raise UnusualRowError
            if not -_LARGEST_WHOLE < value < _LARGEST_WHOLE and kind is int:
                raise UnusualRowError
        if value in special:
            return special[value]
        if value < low:
            if value == -math.inf:
                raise UnusualRowError
            return missing - 1
        if value != value:
            return missing
        if value in (math.inf, -math.inf):
            raise UnusualRowError
        return bisect_left(edges, value)

    return read


def _label_reader(categories: Categories) -> Reader:
    known = {label: level for level, label in enumerate(categories.categories)}
    missing, unseen = categories.missing, len(categories) - 1

    def read(value: Any) -> int:
        kind = type(value)
        if kind is not str:
            if value is None or (kind is float and value != value):
                return missing
            if kind is not int and kind is not float:
                raise UnusualRowError
            if not -_LARGEST_WHOLE < value < _LARGEST_WHOLE:
                raise UnusualRowError
            value = label_of(value)
        return known.get(value, unseen)

    return read
