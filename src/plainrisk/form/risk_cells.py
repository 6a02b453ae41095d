"""Probabilities counted in fixed cells: how a model file keeps those of the training rows, and samples are compared.

A cell is 0.05 wide in log odds, from -10 to 10, and there is one beyond either end. So cells tell small probabilities
apart as well as large ones, they are the same for all samples, and their counts add up over batches and machines.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.errors import ModelFileError

__all__ = ["N_CELLS", "TrainedRisks", "count_risks"]

_ENDS: Floats = 1 / (1 + np.exp(-np.arange(-200, 201) / 20))
N_CELLS = len(_ENDS) + 1


def count_risks(risk: Floats, weight: Floats | None = None) -> Floats:
    """Return the rows, or their weight, in every cell.

    >>> found = count_risks(np.array([0.0, 0.011, 0.011, 0.9]))
    >>> len(found), found[found > 0].tolist()
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
        # Fewer than a sum could hold.
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
