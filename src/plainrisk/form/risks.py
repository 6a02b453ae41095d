"""Sums of row probabilities, which add up over batches and machines: counted in fixed cells, or one by one.

A cell is 0.05 wide in log odds, from -10 to 10, with one more at either end. So the cells distinguish small
probabilities as well as large ones and are the same for all samples: a model file contains those of the training rows.
Evaluating a model needs the probabilities themselves (`RiskSums`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np

from plainrisk._types import Bools, Counts, Floats
from plainrisk.errors import ModelFileError

__all__ = ["MOST_RISKS", "N_CELLS", "RiskSums", "TrainedRisks", "count_risks"]

_ENDS: Floats = 1 / (1 + np.exp(-np.arange(-200, 201) / 20))
N_CELLS = len(_ENDS) + 1


def count_risks(risk: Floats, weight: Floats | None = None) -> Floats:
    """Return the rows, or their weight, in every cell.

    >>> counts = count_risks(np.array([0.0, 0.011, 0.011, 0.9]))
    >>> len(counts), counts[counts > 0].tolist()
    (402, [1.0, 2.0, 1.0])
    """
    cells = np.searchsorted(_ENDS, risk, side="right")
    return np.bincount(cells, weight, minlength=N_CELLS).astype(np.float64)


class TrainedRisks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The probabilities of the training rows, as weights by cell.

    Attributes
    ----------
    mean : of the probabilities
    rows, positives : the weight of all rows, and of those with the positive outcome, by the number of the cell
    """

    mean: float
    rows: dict[int, float]
    positives: dict[int, float]

    def __post_init__(self) -> None:
        cells = {**self.rows, **self.positives}
        if not self.rows or not all(0 <= cell < N_CELLS for cell in cells):
            raise ModelFileError(f"Model: the probabilities of training rows are counted in cells 0 to {N_CELLS - 1}.")
        # Fewer than a sum could contain.
        if not all(0 < n < 1e100 for n in (*self.rows.values(), *self.positives.values())):
            raise ModelFileError("Model: the counts of training rows by probability must be positive numbers.")

    @classmethod
    def of(cls, total: float, rows: Floats, positives: Floats) -> TrainedRisks:
        """Keep the counts of all cells that are not empty, given the sum of the probabilities."""
        used: list[dict[int, float]] = [
            {int(k): float(counts[k]) for k in np.flatnonzero(counts)} for counts in (rows, positives)
        ]
        return cls(total / float(rows.sum()), *used)

    def counts(self, positives: bool = False) -> Floats:
        """Return the weight in every cell, of all rows or of those with the positive outcome."""
        counts = np.zeros(N_CELLS)
        for cell, weight in (self.positives if positives else self.rows).items():
            counts[cell] = weight
        return counts

    @property
    def auc(self) -> float:
        """The AUC on the training rows, rows of one cell as ties: better than on new rows."""
        bad = self.counts(positives=True)
        good = self.counts() - bad
        below = np.cumsum(good) - good / 2
        return float(bad @ below / (bad.sum() * good.sum()))

    def share_below(self, risk: float) -> float:
        """Return the share of rows below a probability; inside a cell rows are spread evenly."""
        counts = self.counts()
        cell = int(np.searchsorted(_ENDS, risk, side="right"))
        low, high = (0.0, *_ENDS.tolist(), 1.0)[cell : cell + 2]
        inside = counts[cell] * (risk - low) / (high - low)
        return float((counts[:cell].sum() + inside) / counts.sum())

    def quantile(self, share: float) -> float:
        """Return the probability below which a share of the rows is, to the middle of a cell."""
        total = np.cumsum(self.counts())
        cell = int(np.searchsorted(total, share * total[-1]))
        return float(1 / (1 + math.exp(10.025 - 0.05 * min(max(cell, 1), N_CELLS - 2))))


# ---- one by one

# The largest number of distinct probabilities per outcome that are counted separately: at most 20 MB of sums. With ten
# times fewer, probabilities that differ by one part in 1,000 would share a bucket.
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
    >>> sums = RiskSums.of(np.array([0.1, 0.3]), np.array([True, False])) + RiskSums.of(
    ...     np.array([0.3, 0.3]), np.array([False, True])
    ... )
    >>> sums.risk.tolist(), sums.bad.tolist(), sums.rows.tolist()
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
        values = np.array([np.ones(len(risk)), mass, mass**2, worth, worth**2, mass * risk])
        kept = mass > 0
        sums = cls((risk + 0.0).view(np.uint64)[kept], bad[kept], values[:, kept])
        return sums._grouped(0)

    def __add__(self, other: RiskSums) -> Self:
        dropped = max(self.dropped, other.dropped)
        shifted = [sums.keys >> np.uint64(dropped - sums.dropped) for sums in (self, other)]
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
        risk, weight = (np.bincount(bucket, weights=sums) for sums in (self.sums[5], self.weight))
        return np.asarray((risk / weight)[bucket])

    @property
    def rows(self) -> Counts:
        """The number of rows of each probability."""
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
