"""Links: how an additive score becomes a probability.

A link is frozen data with this contract; a new one joins by keeping it and by standing in `Link`.

    value(score)        the probability, rising with the score, inside `range`
    derivative(score)   its slope
    range               the smallest and the largest probability it can give
    line(score)         (offset, slope) of the straight piece each score lies on, so that the unclipped
                        probability is offset + slope * score exactly; None where the link is curved
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.errors import ModelFileError

__all__ = ["Linear", "Link", "Logistic"]

Floats = npt.NDArray[np.float64]


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
        small = np.exp(-np.abs(score))  # never overflows
        return np.where(score >= 0, 1.0, small) / (1.0 + small)

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


Link = Logistic | Linear


def _require_finite(what: str, values: Iterable[float]) -> None:
    if not all(map(math.isfinite, values)):
        raise ModelFileError(f"Model: {what} holds a number that is not finite.")
