"""Probabilities and outcomes of rows, counted one by one: what evaluating a model needs of rows wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from plainrisk._types import Bools, Counts, Floats

__all__ = ["MOST_RISKS", "RiskSums"]

# Distinct probabilities of an outcome that are counted one by one: 20 MB of sums at most. Ten times fewer would put
# probabilities into one bucket that differ by one part in 1,000.
MOST_RISKS = 1 << 18


@dataclass(frozen=True, eq=False)
class RiskSums:
    """Sums over the rows of every probability and outcome; they add up over batches and machines.

    With more than `MOST_RISKS` of them, probabilities that agree but for their last bits share a bucket, and its mean.
    That depends on the rows, not on how they were cut into batches.

    Attributes
    ----------
    keys : (k,) buckets: the bits of a probability, without the last `dropped`
    bad : (k,) whether the outcome is the positive one
    sums : (6, k) of rows, weights, squared weights, values and squared values of rows, and weighted probabilities
    dropped : bits

    Examples
    --------
    >>> found = RiskSums.of(np.array([0.1, 0.3]), np.array([True, False])) + RiskSums.of(
    ...     np.array([0.3, 0.3]), np.array([False, True])
    ... )
    >>> found.risk.tolist(), found.bad.tolist(), found.rows.tolist()
    ([0.1, 0.3, 0.3], [True, False, True], [1, 2, 1])
    """

    keys: Any
    bad: Bools
    sums: Floats
    dropped: int = 0

    @classmethod
    def of(cls, risk: Floats, bad: Bools, weight: Floats | None = None, value: Floats | None = None) -> Self:
        """Count rows: their probabilities, outcomes, weights, and a value of each, such as an amount."""
        mass = np.ones(len(risk)) if weight is None else weight
        worth = mass if value is None else mass * value
        each = np.array([np.ones(len(risk)), mass, mass**2, worth, worth**2, mass * risk])
        kept = mass > 0
        sums = cls((risk + 0.0).view(np.uint64)[kept], bad[kept], each[:, kept])
        return sums._grouped(0)

    def __add__(self, other: RiskSums) -> Self:
        dropped = max(self.dropped, other.dropped)
        shifted = [one.keys >> np.uint64(dropped - one.dropped) for one in (self, other)]
        bad, sums = np.append(self.bad, other.bad), np.hstack([self.sums, other.sums])
        return type(self)(np.concatenate(shifted), bad, sums, dropped)._grouped(dropped)

    def _grouped(self, dropped: int) -> Self:
        """Add up the rows of every key and outcome, in their order, and drop bits while there are too many."""
        keys, bad, sums = self.keys >> np.uint64(dropped - self.dropped), self.bad, self.sums
        order = np.lexsort((bad, keys))
        keys, bad, sums = keys[order], bad[order], sums[:, order]
        first = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]) | (bad[1:] != bad[:-1]))[: len(keys)])
        if len(first):
            sums = np.add.reduceat(sums, first, axis=1)
        grouped = type(self)(keys[first], bad[first], sums, dropped)
        return grouped._grouped(dropped + 1) if len(first) > MOST_RISKS else grouped

    @property
    def risk(self) -> Floats:
        """The probabilities; of a bucket, the mean of its rows of both outcomes."""
        if not self.dropped:
            return np.asarray(self.keys.view(np.float64))
        _, bucket = np.unique(self.keys, return_inverse=True)
        risk, weight = (np.bincount(bucket, weights=each) for each in (self.sums[5], self.weight))
        return np.asarray((risk / weight)[bucket])

    @property
    def rows(self) -> Counts:
        """How many rows there are of each."""
        return np.asarray(self.sums[0].astype(np.int64))

    @property
    def weight(self) -> Floats:
        """The sums of their weights."""
        return np.asarray(self.sums[1])

    @property
    def squares(self) -> Floats:
        """The sums of their squared weights."""
        return np.asarray(self.sums[2])

    @property
    def values(self) -> Floats:
        """The sums of weight times value; of the weights alone where rows have no value."""
        return np.asarray(self.sums[3])

    @property
    def value_squares(self) -> Floats:
        """The sums of its squares."""
        return np.asarray(self.sums[4])
