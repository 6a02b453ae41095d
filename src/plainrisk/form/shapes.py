"""Shapes: what one feature adds to the score."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk._native import Chain, Ramp
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, ModelFileError
from plainrisk.form.blocks import Room
from plainrisk.form.levels import Bins, Categories, Codes, Levels, code_type

__all__ = ["Curve", "Line", "Shape", "Table"]

Floats = npt.NDArray[np.float64]

# What one feature may add to a score, so that a sum over features is a number: infinity less infinity is none.
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

    def chain(self, *, places: bool = False, refuse_unseen: bool = False) -> Chain:
        """Return the same as comparisons of a number, or of a place among categories; what is refused is NaN."""
        scores = _allowed(self, refuse_unseen)
        if places and isinstance(self.levels, Categories):
            return self.levels.place_chain(scores)
        return self.levels.chain(scores)

    def add(self, score: Floats, frame: Frame, name: str, room: Room) -> None:
        """Add the `values` to a score, asking for little memory."""
        codes: Codes = np.zeros(len(score), code_type(len(self.levels)))
        self.levels.add_codes(codes, frame, name, room.numbers)
        score += room.look_up(np.asarray(self.scores), codes)


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

    def values(self, frame: Frame, name: str, *, refuse_unseen: bool = False) -> Floats:
        """Return what the feature adds to the score of every row."""
        x = frame.numbers(name)
        codes = self.levels.code_numbers(x)
        if refuse_unseen:
            _refuse_unseen(self, codes, name)
        with np.errstate(over="ignore"):
            line = np.clip(self.slope * (x - self.center), -LARGEST, LARGEST)
        return np.where(codes == 0, line, np.asarray(self.scores)[codes])

    def chain(self, *, refuse_unseen: bool = False) -> Chain:
        """Return the same as comparisons of a number; what is refused is NaN."""
        scores = _allowed(self, refuse_unseen)
        low, below = self.levels.lower_bound, scores[-2]
        slope = math.nan if math.isnan(scores[0]) else self.slope
        ramp = Ramp(slope, self.center, LARGEST) if low is None else Ramp(slope, self.center, LARGEST, low, below)
        return replace(self.levels.chain(scores), values=(0.0,), edges=(), ramp=ramp)


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
        t = x - np.asarray(self.breaks)[piece]
        table = np.asarray(self.coefficients)
        value = np.zeros(len(x))
        with np.errstate(over="ignore"):
            for power in range(table.shape[1] - 1, -1, -1):
                value = value * t + table[piece, power]
        return np.clip(value, -LARGEST, LARGEST)

    def values(self, frame: Frame, name: str, *, refuse_unseen: bool = False) -> Floats:
        """Return what the feature adds to the score of every row."""
        x = frame.numbers(name)
        codes = self.levels.code_numbers(x)
        if refuse_unseen:
            _refuse_unseen(self, codes, name)
        return np.where(codes == 0, self.at(np.where(codes == 0, x, 0.0)), np.asarray(self.scores)[codes])


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


def _allowed(shape: Table | Line, refuse_unseen: bool) -> tuple[float, ...]:
    """Return the scores, NaN for levels that are refused."""
    pairs = zip(shape.scores, shape.weights, strict=True)
    return tuple(math.nan if refuse_unseen and weight == 0 else score for score, weight in pairs)


def _refuse_unseen(shape: Shape, codes: Codes, name: str) -> None:
    """Raise if a row has a level that training never saw."""
    bad = (np.asarray(shape.weights) == 0)[codes]
    if bad.any():
        row = int(bad.argmax())
        label = shape.levels.labels[codes[row]]
        raise DataError(
            f"Data: feature {name!r}, row {row}: level {label!r} was not in the training data, and the schema "
            "says unseen = 'error'. Correct the row, or set unseen = 'neutral'."
        )
