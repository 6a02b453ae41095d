r"""Tests of calibration that banks use: Hosmer and Lemeshow, Spiegelhalter, and Jeffreys per grade.

The null hypothesis is that every probability is right, so large samples reject gaps too small to matter: look at the
size of the gaps as well. The tests count rows, so they take no weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plainrisk._types import Index
from plainrisk.checks import FLAG, LEVEL, check_parameters
from plainrisk.errors import DataError
from plainrisk.measure.calibration import equal_weight_bins
from plainrisk.measure.predictions import Predictions, check_bins, check_predictions
from plainrisk.tables import TableResult
from plainrisk.text import show_p

__all__ = [
    "CalibrationTests",
    "Grade",
    "SignificanceTest",
    "calibration_tests",
    "hosmer_lemeshow",
    "spiegelhalter",
    "tests_of",
]

TEN = 10  # groups, or grades where no bounds are given


@dataclass(frozen=True)
class SignificanceTest:
    """A test.

    Attributes
    ----------
    statistic : chi-squared, or z
    degrees : of freedom; None for z
    p_value : the probability of a statistic as extreme if all predictions are right
    """

    statistic: float
    degrees: int | None
    p_value: float


@dataclass(frozen=True)
class Grade:
    """A grade: the rows with a probability in [lower, upper).

    Attributes
    ----------
    lower, upper : its bounds; for tenths, the smallest and the largest probability
    rows, positives : the number of rows, and of those with the positive outcome
    predicted : the mean probability
    observed, low, high : the share of positive outcomes, with Jeffreys' interval
    p_value : of Jeffreys' test: the posterior probability that the true share is at most the predicted one
    """

    lower: float
    upper: float
    rows: int
    positives: int
    predicted: float
    observed: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, repr=False)
class CalibrationTests(TableResult):
    """Tests of calibration.

    Attributes
    ----------
    hosmer_lemeshow : over ten groups of about equal size
    spiegelhalter : over all rows
    level : of the intervals of grades
    grades : from the lowest to the highest
    """

    hosmer_lemeshow: SignificanceTest
    spiegelhalter: SignificanceTest
    level: float
    grades: tuple[Grade, ...]

    def in_words(self) -> str:
        """Return the two tests of all rows in a sentence.

        >>> tests = calibration_tests([0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9])
        >>> print(tests.in_words())
        Hosmer-Lemeshow: 2.86 in 4 groups, p = 0.5813. Spiegelhalter: z = -0.23, p = 0.8208.
        """
        chi, z = self.hosmer_lemeshow, self.spiegelhalter
        first = f"Hosmer-Lemeshow: {chi.statistic:.2f} in {chi.degrees} groups, p = {show_p(chi.p_value)}."
        return f"{first} Spiegelhalter: z = {z.statistic:.2f}, p = {show_p(z.p_value)}."

    def _headline(self) -> str:
        return self.in_words()

    def columns(self) -> dict[str, Any]:
        """Return a line per grade, as columns by name."""
        return {name: [getattr(grade, name) for grade in self.grades] for name in Grade.__dataclass_fields__}


def hosmer_lemeshow(
    y_true: ArrayLike, y_prob: ArrayLike, groups: int = TEN, *, fitted: bool = False
) -> SignificanceTest:
    r"""Return Hosmer and Lemeshow's test over groups of about equal size.

    .. math:: \sum_g \frac{(O_g - E_g)^2}{E_g (1 - E_g / n_g)}

    Parameters
    ----------
    y_true, y_prob : outcomes and predictions
    groups : their number; fewer if predictions are equal
    fitted : whether the model was fitted to these rows, which costs two degrees of freedom; new rows have one per group

    >>> hosmer_lemeshow([0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9], groups=2).degrees
    2
    """
    check_parameters("hosmer_lemeshow", {"fitted": fitted}, {"fitted": FLAG})
    return _hosmer_lemeshow(check_predictions(y_true, y_prob, None), check_bins(groups), fitted)


def _hosmer_lemeshow(checked: Predictions, groups: int, fitted: bool = False) -> SignificanceTest:
    from scipy.special import chdtrc

    table = equal_weight_bins(checked, groups)
    gap = table.weight * (table.observed - table.predicted)
    variance = table.weight * table.predicted * (1 - table.predicted)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A group in which every probability is 0 or 1 is either right or impossible.
        parts = np.where(variance > 0, gap**2 / variance, np.where(gap == 0, 0.0, math.inf))
    degrees, statistic = len(parts) - 2 * fitted, float(parts.sum())
    p = float(chdtrc(degrees, statistic)) if degrees > 0 else math.nan
    return SignificanceTest(statistic, degrees, 0.0 if math.isinf(statistic) else p)


def spiegelhalter(y_true: ArrayLike, y_prob: ArrayLike) -> SignificanceTest:
    r"""Return Spiegelhalter's test, which compares the Brier score with its expectation if all predictions are right.

    .. math:: z = \frac{\sum (y - p)(1 - 2p)}{\sqrt{\sum (1 - 2p)^2\, p\, (1 - p)}}

    >>> round(spiegelhalter([0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9]).statistic, 4)
    -0.2265
    """
    return _spiegelhalter(check_predictions(y_true, y_prob, None))


def _spiegelhalter(checked: Predictions) -> SignificanceTest:
    p, bent = checked.risk, 1 - 2 * checked.risk
    spread = math.sqrt(float((checked.weight * bent**2 * p * (1 - p)).sum()))
    gap = float((checked.weight * (checked.bad - p) * bent).sum())
    z = gap / spread if spread > 0 else 0.0 if gap == 0 else math.copysign(math.inf, gap)
    return SignificanceTest(z, None, 2 * NormalDist().cdf(-abs(z)))


def calibration_tests(
    y_true: ArrayLike, y_prob: ArrayLike, grades: Sequence[float] | None = None, *, level: float = 0.95
) -> CalibrationTests:
    """Return all three tests.

    Parameters
    ----------
    y_true, y_prob : outcomes and predictions
    grades : the probabilities at which a new grade begins; None makes ten of about equal size
    level : of the intervals of grades
    """
    check_parameters("calibration_tests", {"level": level}, {"level": LEVEL})
    return tests_of(check_predictions(y_true, y_prob, None), grades, level)


def tests_of(checked: Predictions, grades: Sequence[float] | None, level: float) -> CalibrationTests:
    """Return all three tests of checked input."""
    chi, z = _hosmer_lemeshow(checked, TEN), _spiegelhalter(checked)
    return CalibrationTests(chi, z, level, _graded(checked, grades, level))


def _graded(checked: Predictions, grades: Sequence[float] | None, level: float) -> tuple[Grade, ...]:
    if grades is None:
        table = equal_weight_bins(checked, TEN)
        lower, upper = table.lower, table.upper
        grade_of_row: Index = np.searchsorted(lower, checked.risk, side="right") - 1
    else:
        bounds = np.array(_bounds(grades))
        grade_of_row = np.searchsorted(bounds, checked.risk, side="right")
        lower, upper = np.append(0.0, bounds), np.append(bounds, 1.0)
    n = len(lower)
    sizes = (checked.weight, checked.weight * checked.bad, checked.weight * checked.risk)
    rows, positives, sums = (np.bincount(grade_of_row, weights=values, minlength=n) for values in sizes)
    return tuple(
        _grade(float(lower[k]), float(upper[k]), int(rows[k]), int(positives[k]), float(sums[k] / rows[k]), level)
        for k in np.flatnonzero(rows)
    )


def _bounds(grades: Sequence[float]) -> list[float]:
    bounds = [float(bound) for bound in grades]
    if not bounds or not all(0 < bound < 1 for bound in bounds) or sorted(set(bounds)) != bounds:
        raise DataError(
            f"grades must be probabilities between 0 and 1 that rise, such as 0.02, 0.05, 0.1, not {bounds}."
        )
    return bounds


def _grade(lower: float, upper: float, rows: int, positives: int, predicted: float, level: float) -> Grade:
    """Test a grade: with Jeffreys' prior the share has a beta distribution, given the outcomes."""
    from scipy.special import betainc, betaincinv

    a, b = positives + 0.5, rows - positives + 0.5
    low, high = (float(betaincinv(a, b, (1 + side * level) / 2)) for side in (-1, 1))
    low, high = 0.0 if positives == 0 else low, 1.0 if positives == rows else high
    p = float(betainc(a, b, predicted))
    return Grade(lower, upper, rows, positives, predicted, positives / rows, low, high, p)
