"""What one feature adds to the log odds of a model that was read: a function of a number or of a label.

Unlike a shape of the risk form, an effect is exact algebra: it can be scaled, added to another and composed with a
transformer. It becomes a shape, centered and with training weights, once the whole model is known.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from plainrisk.errors import ExtractionError

__all__ = ["Effect", "LabelEffect", "NumberEffect", "PairEffect", "Piece", "add_effects"]


@dataclass(frozen=True)
class Piece:
    """A polynomial, ``sum_m coefficients[m] * (x - origin)^m``."""

    coefficients: tuple[float, ...]
    origin: float = 0.0

    @property
    def degree(self) -> int:
        """The highest power with a coefficient that is not 0."""
        return max((m for m, c in enumerate(self.coefficients) if c != 0), default=0)

    def at(self, x: float) -> float:
        """Return the polynomial at x."""
        value = 0.0
        for c in reversed(self.coefficients):
            value = value * (x - self.origin) + c
        return value

    def moved(self, origin: float) -> Piece:
        """Return the same polynomial in powers of the distance from another origin."""
        if origin == self.origin or len(self.coefficients) == 1:
            return Piece(self.coefficients, origin)
        step = np.polynomial.Polynomial([origin - self.origin, 1.0])
        moved = np.polynomial.Polynomial(self.coefficients)(step).coef
        return Piece((*map(float, moved), *[0.0] * (len(self.coefficients) - len(moved))), origin)

    def scaled(self, factor: float, constant: float = 0.0) -> Piece:
        """Return ``constant + factor * piece``."""
        first, *rest = (factor * c for c in self.coefficients)
        return Piece((first + constant, *rest), self.origin)

    def plus(self, other: Piece) -> Piece:
        """Return the sum, about the origin of the higher degree."""
        a, b = (self, other) if len(self.coefficients) >= len(other.coefficients) else (other, self)
        short = (*b.moved(a.origin).coefficients, *[0.0] * len(a.coefficients))
        return Piece(tuple(x + y for x, y in zip(a.coefficients, short, strict=False)), a.origin)


@dataclass(frozen=True)
class NumberEffect:
    """A piecewise polynomial of a number; piece k applies to ``edges[k-1] < x <= edges[k]``.

    `special` are single values with their own effect, outside the pieces. `missing` is the effect of a missing value,
    or None if the model does not accept one.

    >>> age = NumberEffect.line(0.5, missing=0.0).plus(NumberEffect.steps([30.0], [0.0, 1.0], missing=2.0))
    >>> age.at(30.0), age.at(40.0), age.at(float("nan"))
    (15.0, 21.0, 2.0)
    """

    edges: tuple[float, ...] = ()
    pieces: tuple[Piece, ...] = (Piece((0.0,)),)
    special: Mapping[float, float] = field(default_factory=dict)
    missing: float | None = None

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.edges) + 1:
            raise ExtractionError(f"Effect: {len(self.edges)} edges need one more piece, not {len(self.pieces)}.")

    @classmethod
    def line(cls, slope: float, constant: float = 0.0, *, missing: float | None = None) -> NumberEffect:
        """Return ``constant + slope * x``."""
        return cls(pieces=(Piece((float(constant), float(slope))),), missing=missing)

    @classmethod
    def steps(cls, edges: Sequence[float], values: Sequence[float], *, missing: float | None = None) -> NumberEffect:
        """Return a step function; a value equal to an edge is on its left."""
        return cls(tuple(map(float, edges)), tuple(Piece((float(v),)) for v in values), missing=_float(missing))

    @property
    def degree(self) -> int:
        """The highest power of any piece: 0 is a step function."""
        return max(piece.degree for piece in self.pieces)

    @property
    def is_line(self) -> bool:
        """Whether there is exactly one straight piece and otherwise only missing values."""
        return not self.edges and self.degree <= 1 and not self.special

    def piece_at(self, x: float) -> Piece:
        """Return the piece that contains x."""
        return self.pieces[bisect_left(self.edges, x)]

    def at(self, x: float) -> float | None:
        """Return the effect of x; None where the model has none."""
        if math.isnan(x):
            return self.missing
        return self.special[x] if x in self.special else self.piece_at(x).at(x)

    def scaled(self, factor: float, constant: float = 0.0) -> NumberEffect:
        """Return ``constant + factor * effect``."""
        return NumberEffect(
            self.edges,
            tuple(piece.scaled(factor, constant) for piece in self.pieces),
            {x: constant + factor * v for x, v in self.special.items()},
            None if self.missing is None else constant + factor * self.missing,
        )

    def plus(self, other: NumberEffect) -> NumberEffect:
        """Return the sum, which has no effect for a level if one of the two has none."""
        edges = tuple(sorted({*self.edges, *other.edges}))
        pieces = tuple(self.piece_at(x).plus(other.piece_at(x)) for x in (*edges, math.inf))
        special = {x: _sum(self.at(x), other.at(x)) for x in {**self.special, **other.special}}
        defined = {x: v for x, v in special.items() if v is not None}
        return NumberEffect(edges, pieces, defined, _sum(self.missing, other.missing))


@dataclass(frozen=True)
class LabelEffect:
    """One number per label, one for missing and one for labels that the model does not know; None if it has none.

    >>> job = LabelEffect({"clerk": 0.2, "miner": -0.1}, unseen=0.0)
    >>> job.at("clerk"), job.at("baker"), job.at(None)
    (0.2, 0.0, None)
    """

    scores: Mapping[str, float]
    missing: float | None = None
    unseen: float | None = None

    def at(self, label: str | None) -> float | None:
        """Return the effect of a label; None is missing."""
        return self.missing if label is None else self.scores.get(label, self.unseen)

    def mapped(self, function: Callable[[float], float | None]) -> LabelEffect:
        """Return a function of the effect; labels it has no value for become unknown."""
        scores = {label: function(value) for label, value in self.scores.items()}
        return LabelEffect(
            {label: v for label, v in scores.items() if v is not None},
            *(None if v is None else function(v) for v in (self.missing, self.unseen)),
        )

    def scaled(self, factor: float, constant: float = 0.0) -> LabelEffect:
        """Return ``constant + factor * effect``."""
        return self.mapped(lambda value: constant + factor * value)

    def plus(self, other: LabelEffect) -> LabelEffect:
        """Return the sum, which has no effect for a level if one of the two has none."""
        sums = {label: _sum(self.at(label), other.at(label)) for label in {**self.scores, **other.scores}}
        defined = {label: v for label, v in sums.items() if v is not None}
        return LabelEffect(defined, _sum(self.missing, other.missing), _sum(self.unseen, other.unseen))


Effect = NumberEffect | LabelEffect


@dataclass(frozen=True)
class PairEffect:
    """What two features add together: steps, labels or both, with a number per combination.

    Attributes
    ----------
    features : the two
    axes : of each its levels, as a step function or labels whose values are the numbers of rows or columns of `scores`;
        missing and unknown values have rows or columns, too
    scores : (rows, columns)
    """

    features: tuple[str, str]
    axes: tuple[NumberEffect | LabelEffect, NumberEffect | LabelEffect]
    scores: tuple[tuple[float, ...], ...]


def add_effects(effects: dict[str, Effect], feature: str, effect: Effect) -> None:
    """Add an effect to the feature's existing one."""
    earlier = effects.get(feature)
    if earlier is None:
        effects[feature] = effect
        return
    if isinstance(earlier, NumberEffect) and isinstance(effect, NumberEffect):
        effects[feature] = earlier.plus(effect)
        return
    if isinstance(earlier, LabelEffect) and isinstance(effect, LabelEffect):
        effects[feature] = earlier.plus(effect)
        return
    raise ExtractionError(
        f"Extract: feature {feature!r} is read as a number in one place and as a category in another; "
        "a risk form has one shape per feature. Give the model two columns."
    )


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
