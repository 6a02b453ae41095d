"""The scores of a portfolio, gathered batch by batch: how many rows have each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame

__all__ = ["Scores", "WeighedRows", "gather_scores"]

Floats = npt.NDArray[np.float64]
WeighedRows = Iterable[tuple[Frame, Floats | None]]

# Distinct scores that are kept apart: 16 MB.
MOST_SCORES = 1 << 20


@dataclass(frozen=True)
class Scores:
    """Scores of rows.

    Attributes
    ----------
    values : (n,)
    weight : (n,), or None where each weighs 1
    low, high : the least and the greatest, exactly
    """

    values: Floats
    weight: Floats | None
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats, weight: Floats | None) -> Scores:
        """Keep the scores of one batch as they are."""
        return cls(values, weight, float(values.min()), float(values.max()))

    def join(self, other: Scores, most: int = MOST_SCORES) -> Scores:
        """Return the scores of both, equal ones together; rounded if there are too many to be kept apart."""
        values = np.concatenate([self.values, other.values])
        weight = np.concatenate([_weights(self), _weights(other)])
        values, place = np.unique(values, return_inverse=True)
        weight = np.bincount(place, weight).astype(np.float64)
        digits = 12
        while len(values) > most:
            values, place = np.unique(values.round(digits), return_inverse=True)
            weight = np.bincount(place, weight).astype(np.float64)
            digits -= 1
        return Scores(values, weight, min(self.low, other.low), max(self.high, other.high))


def gather_scores(rows: WeighedRows, evaluate: Callable[[Frame], Floats], most: int = MOST_SCORES) -> list[Scores]:
    """Return the scores of all rows, one entry per column that `evaluate` gives."""
    found: list[Scores] = []
    for frame, weight in rows:
        batch = [Scores.of(np.ascontiguousarray(column), weight) for column in evaluate(frame).T]
        found = [a.join(b, most) for a, b in zip(found, batch, strict=True)] if found else batch
    return found


def _weights(scores: Scores) -> Floats:
    return np.ones(len(scores.values)) if scores.weight is None else scores.weight
