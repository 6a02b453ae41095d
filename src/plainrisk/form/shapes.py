"""Shapes: what one feature, or a pair of features, adds to the score; and a part, which adds them up under a link."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from plainrisk._types import Array, Bools, Codes, Floats
from plainrisk.data.frame import Frame
from plainrisk.errors import ModelFileError
from plainrisk.form.levels import Bins, Levels, unseen_level
from plainrisk.form.links import LARGEST, Link
from plainrisk.schema import Schema
from plainrisk.text import visible

__all__ = ["Curve", "Line", "PairTable", "Part", "Shape", "Table"]


class Table(
    msgspec.Struct, frozen=True, dict=True, kw_only=True, tag="table", tag_field="kind", forbid_unknown_fields=True
):
    """A score per level.

    Attributes
    ----------
    levels : Bins or Categories
    scores : one per level; levels without training rows have 0, the training mean of the shape
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
        """Return the contribution of the feature to the score of every row."""
        codes = self.levels.codes(frame, name)
        if refuse_unseen:
            _refuse_unseen(self, codes, name, frame.first)
        return self._scores[codes]

    @functools.cached_property
    def _scores(self) -> Floats:
        return np.asarray(self.scores, dtype=np.float64)


class Line(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,  # a line without deviation is written as it was before there was any, so hashes hold
    tag="line",
    tag_field="kind",
    forbid_unknown_fields=True,
):
    """A straight line, ``slope * (x - center)``, with a score per special level.

    Level 0 is the line itself (its score is 0); special values, values below the bound and missing values
    follow as in `Bins`. `deviation` is the mean distance of the training values from the center; 0 if nobody knows.
    """

    slope: float
    center: float
    levels: Bins
    scores: tuple[float, ...]
    weights: tuple[float, ...]
    positives: tuple[float, ...]
    deviation: float = 0.0

    def __post_init__(self) -> None:
        _check_levels(self)
        if not (math.isfinite(self.slope) and math.isfinite(self.center)) or self.levels.edges:
            raise ModelFileError("Model: a line needs a finite slope and center, and no bin edges.")
        if not 0 <= self.deviation < math.inf:
            raise ModelFileError("Model: the deviation of a line must be at least 0.")

    def of_numbers(self, x: Floats) -> Floats:
        """Return what each number adds to the score."""
        codes = self.levels.code_numbers(x)
        with np.errstate(over="ignore"):
            line = np.clip(self.slope * _distance(x, self.center), -LARGEST, LARGEST)
        return np.where(codes == 0, line, np.asarray(self.scores)[codes])

    def values(self, frame: Frame, name: str, *, refuse_unseen: bool = False) -> Floats:
        """Return the contribution of the feature to the score of every row."""
        return _values(self, frame, name, refuse_unseen)


class Curve(msgspec.Struct, frozen=True, kw_only=True, tag="curve", tag_field="kind", forbid_unknown_fields=True):
    """A piecewise polynomial, with a score per special level.

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
        """Return the contribution of the feature to the score of every row."""
        return _values(self, frame, name, refuse_unseen)


Shape = Table | Line | Curve


class PairTable(msgspec.Struct, frozen=True, kw_only=True, tag="pair", tag_field="kind", forbid_unknown_fields=True):
    """A score per combination of the levels of two features: their interaction.

    It is added to the effects of the two features and has its own levels, which are often coarser than theirs. A
    feature of a pair need not have a shape.

    Attributes
    ----------
    features : the two features
    levels : Bins or Categories of each
    scores : a row per level of the first feature, with an entry per level of the second; combinations that training
        never saw have 0
    weights : training weight, likewise
    positives : training weight of the positive outcome, likewise

    Examples
    --------
    >>> flat = ((0.0, 0.0), (0.0, 0.0))
    >>> pair = PairTable(features=("age", "debt"), levels=(Bins(), Bins()), scores=flat, weights=flat, positives=flat)
    >>> pair.name
    'age × debt'
    """

    features: tuple[str, str]
    levels: tuple[Levels, Levels]
    scores: tuple[tuple[float, ...], ...]
    weights: tuple[tuple[float, ...], ...]
    positives: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if self.features[0] == self.features[1]:
            raise ModelFileError(f"Model: a pair needs two features, not {self.features[0]!r} twice.")
        n, m = map(len, self.levels)
        for field in ("scores", "weights", "positives"):
            table = getattr(self, field)
            if len(table) != n or any(len(row) != m for row in table):
                raise ModelFileError(f"Model: the {field} of the pair {self.name!r} must be {n} rows of {m} numbers.")
            if not all(abs(number) <= LARGEST for row in table for number in row):
                raise ModelFileError(f"Model: the {field} of the pair {self.name!r} must be within {LARGEST:g}.")

    @property
    def name(self) -> str:
        """The two features in one text."""
        return f"{self.features[0]} × {self.features[1]}"

    def level_weights(self, axis: int) -> Floats:
        """Return the training weight of the levels of the first feature (axis 0) or the second (axis 1)."""
        return np.asarray(np.asarray(self.weights).sum(axis=1 - axis))

    def cells(self, first: Codes, second: Codes) -> Array:
        """Return the number of each row's cell, counted row by row of the table, from the levels of the features."""
        n, m = map(len, self.levels)
        return first.astype(np.min_scalar_type(n * m)) * m + second

    def codes(self, frame: Frame) -> tuple[Codes, Codes]:
        """Return the levels of every row, of the first and of the second feature."""
        (u, v), (first, second) = self.features, self.levels
        return first.codes(frame, u), second.codes(frame, v)

    def values(self, frame: Frame, *, refuse_unseen: tuple[bool, bool] = (False, False)) -> Floats:
        """Return the contribution of the pair to the score of every row."""
        codes = self.codes(frame)
        for axis, name in enumerate(self.features):
            if refuse_unseen[axis]:
                _refuse_levels(self.level_weights(axis) == 0, self.levels[axis], codes[axis], name, frame.first)
        return np.asarray(self.scores)[codes]


class Part(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,  # a part without pairs is written as it was before there were any, so hashes hold
    tag="additive",
    tag_field="kind",
    forbid_unknown_fields=True,
):
    """One additive model: the whole model, or the expert of one subscale.

    Attributes
    ----------
    name : str
    intercept : float
    shapes : what each feature adds to the score
    link : from the score to the risk
    pairs : what each pair of features adds on top
    """

    name: str
    intercept: float
    shapes: dict[str, Shape]
    link: Link
    pairs: tuple[PairTable, ...] = ()

    def __post_init__(self) -> None:
        if not abs(self.intercept) <= LARGEST:
            raise ModelFileError(f"Model: the intercept of {self.name!r} must be within {LARGEST:g}.")
        seen: set[frozenset[str]] = set()
        for pair in self.pairs:
            if frozenset(pair.features) in seen:
                raise ModelFileError(f"Model: part {self.name!r} has the pair {pair.name!r} twice.")
            seen.add(frozenset(pair.features))
        if len(set(self.term_names)) < len(self.term_names):
            raise ModelFileError(f"Model: two terms of part {self.name!r} have the same name.")

    def __repr__(self) -> str:
        pairs = f", {len(self.pairs)} pairs" if self.pairs else ""
        return visible(f"Part({self.name!r}, {len(self.shapes)} shapes{pairs}, link={self.link!r})")

    @property
    def features(self) -> tuple[str, ...]:
        """The features the part reads: those with a shape, then those that are only in pairs."""
        return tuple(dict.fromkeys((*self.shapes, *(name for pair in self.pairs for name in pair.features))))

    @property
    def term_names(self) -> tuple[str, ...]:
        """The names of the terms: a feature for its shape, "u × v" for a pair."""
        return (*self.shapes, *(pair.name for pair in self.pairs))

    def pairs_with(self, name: str) -> Iterator[tuple[int, int, PairTable]]:
        """Yield the pairs of a feature: the number of the pair, the axis of the feature in it, and the pair."""
        for k, pair in enumerate(self.pairs):
            if name in pair.features:
                yield k, pair.features.index(name), pair

    def terms(self, frame: Frame, schema: Schema) -> dict[str, Floats]:
        """Return what each term adds to the score of every row."""
        strict = {name: schema.features[name].unseen == "error" for name in self.features}
        terms = {n: shape.values(frame, n, refuse_unseen=strict[n]) for n, shape in self.shapes.items()}
        for pair in self.pairs:
            u, v = pair.features
            terms[pair.name] = pair.values(frame, refuse_unseen=(strict[u], strict[v]))
        return terms

    def score(self, frame: Frame, schema: Schema) -> Floats:
        """Return the score of every row; `RiskForm.score` gives the same, faster."""
        score = np.full(frame.n_rows, self.intercept)
        for values in self.terms(frame, schema).values():
            score += values
        return score

    def split(self, frame: Frame, schema: Schema, zeros: Sequence[float], pieces: Floats) -> Floats:
        """Return the score of every row, and fill in what each term adds beyond its zero: rows by terms."""
        score = np.full(frame.n_rows, self.intercept)
        for j, values in enumerate(self.terms(frame, schema).values()):
            score += values
            pieces[:, j] = values
        pieces -= zeros
        return score


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
    """Return x minus the origin, at most the largest number, since 0 times infinity is not a number."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(x - origin, -sys.float_info.max, sys.float_info.max))


def _values(shape: Line | Curve, frame: Frame, name: str, refuse_unseen: bool) -> Floats:
    x = frame.numbers(name)
    if refuse_unseen:
        _refuse_unseen(shape, shape.levels.code_numbers(x), name, frame.first)
    return shape.of_numbers(x)


def _refuse_unseen(shape: Shape, codes: Codes, name: str, first: int) -> None:
    """Raise if a row has a level that is not in the training rows."""
    _refuse_levels(np.asarray(shape.weights) == 0, shape.levels, codes, name, first)


def _refuse_levels(unseen: Bools, levels: Levels, codes: Codes, name: str, first: int) -> None:
    bad = unseen[codes]
    if bad.any():
        row = int(bad.argmax())
        raise unseen_level(name, first + row, levels.labels[codes[row]])
