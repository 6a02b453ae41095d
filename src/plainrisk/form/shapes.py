"""Shapes: what one feature adds to the score."""

from __future__ import annotations

import itertools
import math
import sys

import msgspec
import numpy as np

from plainrisk._types import Codes, Floats
from plainrisk.data.frame import Frame
from plainrisk.errors import ModelFileError
from plainrisk.form.levels import Bins, Levels, unseen_level

__all__ = ["LARGEST", "Curve", "Line", "Shape", "Table"]

# What one feature may add to a score, so that a sum over features is a number: infinity less infinity is none.
# The numbers of links keep to it too, so that their products with scores are numbers.
LARGEST = 1e100


class Table(msgspec.Struct, frozen=True, kw_only=True, tag="table", tag_field="kind", forbid_unknown_fields=True):
    """A score per level.

    Attributes
    ----------
    levels : Bins or Categories
    scores : one per level; levels that training never saw have 0, the training mean of the shape
    weights : training weight per level
    positives : training weight of the positive outcome per level
    """

    levels: Levels
    scores: tuple[float, ...]
    weights: tuple[float, ...]
    positives: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_levels(self)

    def values(self, frame: Frame, name: str, *, refuse_unseen: bool = False) -> Floats:
        """Return what the feature adds to the score of every row."""
        codes = self.levels.codes(frame, name)
        if refuse_unseen:
            _refuse_unseen(self, codes, name)
        return np.asarray(self.scores)[codes]


class Line(msgspec.Struct, frozen=True, kw_only=True, tag="line", tag_field="kind", forbid_unknown_fields=True):
    """A straight line, ``slope * (x - center)``, with a score per level outside the order.

    Level 0 is the line itself (its score is 0); special values, values below the bound and missing values
    follow as in `Bins`.
    """

    slope: float
    center: float
    levels: Bins
    scores: tuple[float, ...]
    weights: tuple[float, ...]
    positives: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_levels(self)
        if not (math.isfinite(self.slope) and math.isfinite(self.center)) or self.levels.edges:
            raise ModelFileError("Model: a line needs a finite slope and center, and no bin edges.")

    def of_numbers(self, x: Floats) -> Floats:
        """Return what each number adds to the score."""
        codes = self.levels.code_numbers(x)
        with np.errstate(over="ignore"):
            line = np.clip(self.slope * _distance(x, self.center), -LARGEST, LARGEST)
        return np.where(codes == 0, line, np.asarray(self.scores)[codes])

    def values(self, frame: Frame, name: str, *, refuse_unseen: bool = False) -> Floats:
        """Return what the feature adds to the score of every row."""
        return _values(self, frame, name, refuse_unseen)


class Curve(msgspec.Struct, frozen=True, kw_only=True, tag="curve", tag_field="kind", forbid_unknown_fields=True):
    """A piecewise polynomial, with a score per level outside the order.

    On piece k, from ``breaks[k]`` to ``breaks[k+1]``, it is ``sum_m coefficients[k][m] * (x - breaks[k])^m``; the
    first and the last piece run on. Level 0 is the curve (its score is 0), the others follow as in `Bins`.
    """

    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    levels: Bins
    scores: tuple[float, ...]
    weights: tuple[float, ...]
    positives: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_levels(self)
        rises = all(b > a for a, b in itertools.pairwise(self.breaks))
        numbers = (*self.breaks, *(c for piece in self.coefficients for c in piece))
        if not rises or not all(map(math.isfinite, numbers)) or self.levels.edges:
            raise ModelFileError("Model: a curve needs rising breaks, finite coefficients, and no bin edges.")
        lengths = {len(piece) for piece in self.coefficients}
        if len(self.coefficients) != len(self.breaks) - 1 or len(lengths) != 1 or 0 in lengths:
            raise ModelFileError("Model: a curve needs one polynomial of one degree per piece.")

    def at(self, x: Floats) -> Floats:
        """Return the curve at each x."""
        piece = np.searchsorted(np.asarray(self.breaks[1:-1]), x, side="right")
        t = _distance(x, np.asarray(self.breaks)[piece])
        table = np.asarray(self.coefficients)
        value = np.zeros(len(x))
        with np.errstate(over="ignore"):
            for power in range(table.shape[1] - 1, -1, -1):
                value = value * t + table[piece, power]
        return np.clip(value, -LARGEST, LARGEST)

    def of_numbers(self, x: Floats) -> Floats:
        """Return what each number adds to the score."""
        codes = self.levels.code_numbers(x)
        return np.where(codes == 0, self.at(np.where(codes == 0, x, 0.0)), np.asarray(self.scores)[codes])

    def values(self, frame: Frame, name: str, *, refuse_unseen: bool = False) -> Floats:
        """Return what the feature adds to the score of every row."""
        return _values(self, frame, name, refuse_unseen)


Shape = Table | Line | Curve


def _check_levels(shape: Table | Line | Curve) -> None:
    n = len(shape.levels)
    for field in ("scores", "weights", "positives"):
        numbers = getattr(shape, field)
        if len(numbers) != n:
            raise ModelFileError(f"Model: a shape with {n} levels has {len(numbers)} {field}.")
        # The sum is within it too, unless some number is not (or many are large, which is looked into).
        if not sum(map(abs, numbers)) <= LARGEST and not all(abs(number) <= LARGEST for number in numbers):
            raise ModelFileError(f"Model: the {field} of a shape must be within {LARGEST:g}.")


def _distance(x: Floats, origin: Floats | float) -> Floats:
    """Return x less the origin; at most the largest number, since 0 times infinity is none."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(x - origin, -sys.float_info.max, sys.float_info.max))


def _values(shape: Line | Curve, frame: Frame, name: str, refuse_unseen: bool) -> Floats:
    x = frame.numbers(name)
    if refuse_unseen:
        _refuse_unseen(shape, shape.levels.code_numbers(x), name)
    return shape.of_numbers(x)


def _refuse_unseen(shape: Shape, codes: Codes, name: str) -> None:
    """Raise if a row has a level that training never saw."""
    bad = (np.asarray(shape.weights) == 0)[codes]
    if bad.any():
        row = int(bad.argmax())
        raise unseen_level(name, row, shape.levels.labels[codes[row]])
