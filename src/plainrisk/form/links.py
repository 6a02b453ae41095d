"""Links: how an additive score becomes a probability.

A link is frozen data with this contract; a new one joins by keeping it and by standing in `Link`.

    value(score)        the probability, rising with the score, inside `range`
    derivative(score)   its slope
    range               the smallest and the largest probability it can give
    line(score)         (offset, slope) of the straight piece each score lies on, so that the unclipped
                        probability is offset + slope * score exactly; None where the link is curved
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.errors import ModelFileError

__all__ = ["ALPHA_STAR", "Bands", "Linear", "Link", "Logistic"]

#: The half width, in log odds, of the clipped line with the least squared error against the sigmoid.
ALPHA_STAR = 2.5996819083143223

Floats = npt.NDArray[np.float64]

# exp of this is still a number; the risk beyond it, 1e-304, is as good as 0.
_LARGEST_EXPONENT = 700.0


class Logistic(msgspec.Struct, frozen=True, tag="logistic", tag_field="kind", forbid_unknown_fields=True):
    """The sigmoid, ``1 / (1 + exp(-score))``: the score is in log odds.

    >>> float(Logistic().value(np.array(0.0)))
    0.5
    """

    @property
    def range(self) -> tuple[float, float]:
        """All of [0, 1]; the ends are reached only by rounding."""
        return 0.0, 1.0

    def value(self, score: Floats) -> Floats:
        """Return the probability."""
        # Three steps that each keep an order after rounding. The usual exp(score) / (1 + exp(score)) does not:
        # its two ends may round apart, and of two scores next to each other the higher may get the lower risk.
        out = np.negative(score, out=np.empty(np.shape(score)))
        np.minimum(out, _LARGEST_EXPONENT, out=out)
        np.exp(out, out=out)
        out += 1.0
        return np.divide(1.0, out, out=out)

    def derivative(self, score: Floats) -> Floats:
        """Return the slope, p (1 - p)."""
        small = np.exp(-np.abs(score))
        return small / (1.0 + small) ** 2

    def line(self, score: Floats) -> tuple[Floats, Floats] | None:
        """None: the sigmoid has no straight piece."""
        return None


class Linear(msgspec.Struct, frozen=True, tag="linear", tag_field="kind", forbid_unknown_fields=True):
    """A clipped line, ``clip(offset + slope * score, low, high)``.

    With offset 1/2 and slope 1/(2 alpha) it is the paper's linearised link; with offset 0 and slope 1 the
    score is the probability itself.

    >>> Linear.from_alpha(2.5).value(np.array([-5.0, 0.0, 1.0, 5.0])).tolist()
    [0.0, 0.5, 0.7, 1.0]
    """

    slope: float = 1.0
    offset: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _require_finite("a linear link", (self.slope, self.offset, self.low, self.high))
        if self.slope <= 0 or not 0 <= self.low < self.high <= 1:
            raise ModelFileError("Model: a linear link must rise, from low to high inside [0, 1].")

    @classmethod
    def from_alpha(cls, alpha: float, epsilon: float = 0.0) -> Linear:
        """Return the line that is 0 at -alpha, 1/2 at 0 and 1 at alpha, clipped to [epsilon, 1 - epsilon]."""
        return cls(slope=1.0 / (2.0 * alpha), offset=0.5, low=epsilon, high=1.0 - epsilon)

    @property
    def range(self) -> tuple[float, float]:
        """The probabilities at which the line is clipped."""
        return self.low, self.high

    def value(self, score: Floats) -> Floats:
        """Return the probability."""
        return np.clip(self.offset + self.slope * score, self.low, self.high)

    def derivative(self, score: Floats) -> Floats:
        """Return the slope: 0 where the line is clipped."""
        line = self.offset + self.slope * score
        return np.where((line < self.low) | (line > self.high), 0.0, self.slope)

    def line(self, score: Floats) -> tuple[Floats, Floats] | None:
        """Return the one line there is, for every score."""
        return np.full(score.shape, self.offset), np.full(score.shape, self.slope)


class Bands(msgspec.Struct, frozen=True, tag="bands", tag_field="kind", forbid_unknown_fields=True):
    """A rising line of a few straight pieces through (knot, value) points, clipped to [0, 1].

    The first and the last piece run on beyond the outer knots. Inside a band, contributions add up at that
    band's rate.

    >>> Bands((-4.0, -1.0, 1.0, 4.0), (0.02, 0.25, 0.75, 0.98)).value(np.array([-1.0, 0.0, 9.0])).tolist()
    [0.25, 0.5, 1.0]
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        _require_finite("a link of bands", (*self.knots, *self.values))
        rises = all(b > a for seq in (self.knots, self.values) for a, b in itertools.pairwise(seq))
        if len(self.knots) < 2 or len(self.knots) != len(self.values) or not rises:
            raise ModelFileError("Model: a link of bands needs two or more knots, rising strictly in score and value.")
        if not all(0 <= v <= 1 for v in self.values[1:-1]):
            raise ModelFileError("Model: the inner values of a link of bands must lie inside [0, 1].")
        _require_finite("a link of bands", self.rates)

    @property
    def range(self) -> tuple[float, float]:
        """All of [0, 1]: the outer pieces run on until they are clipped."""
        return 0.0, 1.0

    @property
    def rates(self) -> tuple[float, ...]:
        """The slope of each band: probability per unit of score."""
        knots, values = itertools.pairwise(self.knots), itertools.pairwise(self.values)
        return tuple((v - u) / (b - a) for (a, b), (u, v) in zip(knots, values, strict=True))

    def band(self, score: Floats) -> npt.NDArray[np.intp]:
        """Return the number of the band each score lies in, from 0."""
        return np.searchsorted(np.asarray(self.knots[1:-1]), score, side="right")

    def value(self, score: Floats) -> Floats:
        """Return the probability."""
        # Anchored at the band's lower knot and held below the next value, so that rounding at a knot can not
        # break the order.
        band = self.band(score)
        start, base = np.asarray(self.knots)[band], np.asarray(self.values)[band]
        tops = np.append(np.asarray(self.values[1:-1]), 1.0)[band]
        floors = np.insert(np.asarray(self.values[1:-1]), 0, 0.0)[band]
        return np.asarray(np.clip(base + np.asarray(self.rates)[band] * (score - start), floors, tops))

    def derivative(self, score: Floats) -> Floats:
        """Return the rate of the score's band: 0 where the line is clipped."""
        offset, rate = self.line(score)
        line = offset + rate * score
        return np.where((line < 0.0) | (line > 1.0), 0.0, rate)

    def line(self, score: Floats) -> tuple[Floats, Floats]:
        """Return offset and slope of the band each score lies in."""
        band = self.band(score)
        rate = np.asarray(self.rates)[band]
        return np.asarray(self.values)[band] - rate * np.asarray(self.knots)[band], rate


Link = Logistic | Linear | Bands


def _require_finite(what: str, values: Iterable[float]) -> None:
    if not all(map(math.isfinite, values)):
        raise ModelFileError(f"Model: {what} holds a number that is not finite.")
