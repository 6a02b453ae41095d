r"""Figures with confidence intervals: shares, their difference and ratio, and the area under the ROC curve.

A row is one observation, whatever its weight: weights state how much a row counts in an estimate, never that it
represents several observations. So the intervals do not change if all weights are multiplied by a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from plainrisk._types import Bools, Counts, Floats

__all__ = [
    "UNKNOWN",
    "Placement",
    "Range",
    "auc_range",
    "impact_ratio",
    "is_small",
    "newcombe",
    "normal_quantile",
    "wilson",
]

FEW_ROWS = 30  # a share of fewer rows says little: its interval is over a third wide
FEW_OUTCOMES = 5  # with fewer of one outcome the normal approximation of most figures fails


@dataclass(frozen=True)
class Range:
    """A figure with its confidence interval; NaN where nothing determines it."""

    estimate: float
    low: float
    high: float


UNKNOWN = Range(math.nan, math.nan, math.nan)


def is_small(rows: int, positives: int | None = None) -> bool:
    """Whether a sample has so few rows, or so few of one outcome, that its measures mean little."""
    return rows < FEW_ROWS or (positives is not None and min(positives, rows - positives) < FEW_OUTCOMES)


def normal_quantile(level: float) -> float:
    """Return how many standard errors an interval of this level reaches to either side."""
    return NormalDist().inv_cdf((1 + level) / 2)


# ---- shares


def wilson(successes: float, n: float, z: float = 1.959963984540054) -> Range:
    """Return a share with Wilson's score interval; the numbers may be effective ones of weighted rows.

    >>> share = wilson(8, 10)
    >>> round(share.low, 4), round(share.high, 4)
    (0.4902, 0.9433)
    """
    if n == 0:
        return UNKNOWN
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At the ends the formula is exact except for rounding.
    return Range(share, 0.0 if successes == 0 else middle - half, 1.0 if successes == n else middle + half)


def newcombe(a: Range, b: Range) -> Range:
    """Return the difference of two shares with Newcombe's interval, from the two intervals."""
    gap = a.estimate - b.estimate
    low = gap - math.hypot(a.estimate - a.low, b.high - b.estimate)
    high = gap + math.hypot(a.high - a.estimate, b.estimate - b.low)
    return Range(gap, low, high)


def impact_ratio(a: Range, b: Range) -> Range:
    r"""Return the ratio of two shares with Donner and Zou's interval, from the two intervals.

    The limits :math:`r` solve :math:`(p_a - r\,p_b)^2 = (p_a - a)^2 + r^2 (b - p_b)^2` with the limits a, b of the
    two shares that are worst for the ratio: the method of variance estimates recovery.
    """
    if not b.estimate > 0:
        return UNKNOWN
    low = _recovered(a.estimate, b.estimate, a.estimate - a.low, b.high - b.estimate, upper=False)
    high = _recovered(a.estimate, b.estimate, a.high - a.estimate, b.estimate - b.low, upper=True)
    return Range(a.estimate / b.estimate, low, high)


def _recovered(p: float, q: float, dp: float, dq: float, *, upper: bool) -> float:
    square, constant = q * q - dq * dq, p * p - dp * dp
    root = math.sqrt(max(0.0, (p * q) ** 2 - square * constant))
    if upper:
        return (p * q + root) / square if square > 0 else math.inf
    # The smaller root, written so that there is no cancellation or division by zero if the other share is near 0.
    return max(0.0, constant) / (p * q + root) if p > 0 else 0.0


# ---- the area under the ROC curve


@dataclass(frozen=True, eq=False)
class Placement:
    r"""The AUC by DeLong's placements.

    The placement :math:`V_i` of a bad row is the share of good rows with a smaller risk, ties as one half; that of a
    good row is the share of bad rows with a larger one. The mean of either is the AUC. With the weights of a row's own
    outcome summing to 1, the row's influence is :math:`w_i (V_i - AUC) \sqrt{n / (n - 1)}`, with the n rows of its
    outcome. The variance of the AUC is the sum of squared influences; that of the difference of two AUCs on the same
    rows is the sum of squared differences of influences. Without weights this is DeLong's covariance.

    Attributes
    ----------
    auc : NaN where one outcome has no rows
    influence : (n,); NaN where an outcome has fewer than two rows
    """

    auc: float
    influence: Floats

    @classmethod
    def of(
        cls,
        bad: Bools,
        risk: Floats,
        weight: Floats | None = None,
        spread: Floats | None = None,
        rows: Counts | None = None,
    ) -> Placement:
        """Rank the rows of each outcome among those of the other.

        An entry may be several rows: of this weight together, `spread` the root of their sum of squared weights.

        >>> placed = Placement.of(np.array([False, False, True, True]), np.array([0.1, 0.4, 0.35, 0.8]))
        >>> placed.auc, round(placed.error, 4)
        (0.75, 0.3536)
        """
        weight = np.ones(len(risk)) if weight is None else weight
        spread = weight if spread is None else spread
        placed = np.empty(len(risk))
        for rows_of, others in ((bad, ~bad), (~bad, bad)):
            placed[rows_of] = _share_below(risk[rows_of], risk[others], weight[others])
        placed[~bad] = 1 - placed[~bad]
        if bad.all() or not bad.any():
            return cls(math.nan, np.full(len(risk), math.nan))
        influence, auc = np.empty(len(risk)), float(np.average(placed[bad], weights=weight[bad]))
        for outcome in (bad, ~bad):
            n = int(outcome.sum() if rows is None else rows[outcome].sum())
            correction = math.sqrt(n / (n - 1)) if n > 1 else math.nan
            influence[outcome] = spread[outcome] / weight[outcome].sum() * (placed[outcome] - auc) * correction
        return cls(auc, influence)

    @property
    def error(self) -> float:
        """The standard error of the AUC."""
        return math.sqrt(float(self.influence @ self.influence))

    def range(self, z: float) -> Range:
        """Return the AUC with DeLong's interval, on the logit scale so that it stays inside [0, 1]."""
        if math.isnan(self.error) or not 0 < self.auc < 1:
            return Range(self.auc, math.nan, math.nan)
        half, logit = z * self.error / (self.auc * (1 - self.auc)), math.log(self.auc / (1 - self.auc))
        return Range(self.auc, *(1 / (1 + math.exp(-(logit + side * half))) for side in (-1, 1)))

    def less(self, other: Placement, z: float) -> tuple[Range, float]:
        """Return this AUC less another on the same rows, with its interval, and DeLong's p-value of no difference."""
        gap, moved = self.auc - other.auc, self.influence - other.influence
        error = math.sqrt(float(moved @ moved))
        if error == 0:
            return Range(gap, gap, gap), 1.0
        return Range(gap, gap - z * error, gap + z * error), 2 * NormalDist().cdf(-abs(gap) / error)


def _share_below(risk: Floats, other: Floats, weight: Floats) -> Floats:
    """Return the share of the others' weight below each risk, ties as one half."""
    if not len(other):
        return np.full(len(risk), math.nan)
    order = np.argsort(other, kind="stable")
    below, ranked = np.concatenate([[0.0], np.cumsum(weight[order])]), other[order]
    ends = (np.searchsorted(ranked, risk, side=side) for side in ("left", "right"))
    return np.asarray(sum(below[end] for end in ends) / (2 * below[-1]), dtype=np.float64)


def auc_range(bad: Bools, risk: Floats, z: float) -> Range:
    """Return the AUC with DeLong's interval."""
    return Placement.of(bad, risk).range(z)
