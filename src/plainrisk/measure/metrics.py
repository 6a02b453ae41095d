"""Metrics of predicted risks: ranking, proper scores, calibration, and the usual ones in one call.

All metrics take outcomes (1 = bad), predicted risks and optional weights; an integer weight counts as that
many equal rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from plainrisk._types import Floats
from plainrisk.checks import check_parameters, number, words
from plainrisk.errors import DataError
from plainrisk.measure.calibration import (
    Reliability,
    certainty,
    equal_width_bins,
    expected_calibration_error,
    maximum_calibration_error,
    reliability,
)
from plainrisk.measure.calibration_tests import calibration_tests, hosmer_lemeshow, spiegelhalter
from plainrisk.measure.predictions import Predictions, Weights, bin_sums, check_bins, check_predictions
from plainrisk.tables import text_table

__all__ = [
    "Reliability",
    "brier_score",
    "calibration_tests",
    "certainty",
    "expected_calibration_error",
    "gini",
    "h_measure",
    "hosmer_lemeshow",
    "ks_statistic",
    "log_loss",
    "maximum_calibration_error",
    "reliability",
    "roc_auc",
    "spiegelhalter",
    "summary",
]

SEVERITIES = ("symmetric", "class ratio")


# ---- ranking


def roc_auc(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None) -> float:
    r"""Return the area under the ROC curve.

    .. math:: AUC = P(p_1 > p_0) + \tfrac12 P(p_1 = p_0),

    where :math:`p_1` and :math:`p_0` are the predictions of a random bad and a random good row, drawn in
    proportion to the weights.

    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    return _auc(*_counts_by_risk(_both_outcomes(y_true, y_prob, sample_weight)))


def gini(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None) -> float:
    """Return the Gini coefficient, 2 AUC - 1.

    >>> gini([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    """
    return 2 * roc_auc(y_true, y_prob, sample_weight) - 1


def ks_statistic(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None) -> float:
    r"""Return the Kolmogorov-Smirnov statistic.

    .. math:: KS = \max_t |F_0(t) - F_1(t)|,

    where :math:`F_0` and :math:`F_1` are the weighted distribution functions of the prediction among the good
    and among the bad rows.

    >>> ks_statistic([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    """
    return ks_of_counts(*_counts_by_risk(_both_outcomes(y_true, y_prob, sample_weight)))


def h_measure(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None, severity: str = "symmetric"
) -> float:
    """Return the H-measure: the share that the ranking saves of the cost of treating all rows alike.

    Parameters
    ----------
    y_true, y_prob, sample_weight : outcomes, predictions and weights
    severity : how costs are distributed: "symmetric", beta(2, 2) (Hand 2009), or "class ratio", beta(1 + bad share,
        1 + good share) (Hand and Anagnostopoulos 2014)

    >>> round(h_measure([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.5
    """
    check_parameters("h_measure", {"severity": severity}, {"severity": words(*SEVERITIES)})
    return h_of_counts(*_counts_by_risk(_both_outcomes(y_true, y_prob, sample_weight)), severity)


def h_of_counts(goods: Floats, bads: Floats, severity: str = "symmetric") -> float:
    r"""Return the H-measure, given the good and the bad rows at every distinct risk, from the least to the greatest.

    Refusing a good applicant costs c, approving a bad one 1 - c, and c has a beta distribution u. Neighboring risks
    are merged until their bad rates r rise (the convex hull of the ROC curve), and every block b is then decided as is
    best for its rate:

    .. math:: L = \sum_b \Big( g_b \int_0^{r_b} c\,u(c)\,dc + n_b \int_{r_b}^1 (1 - c)\,u(c)\,dc \Big), \qquad
              H = 1 - L / L_{one\ block}

    with good rows g and bad rows n of a block. "symmetric" is beta(2, 2) of Hand (2009), "class ratio" beta(1 + bad
    share, 1 + good share) of Hand and Anagnostopoulos (2014). Not a number where an outcome has no rows.
    """
    from scipy.optimize import isotonic_regression
    from scipy.special import betainc

    total, n_bad = float(goods.sum() + bads.sum()), float(bads.sum())
    if not 0 < n_bad < total:
        return math.nan
    rows = goods + bads
    used = rows > 0
    blocks = isotonic_regression(bads[used] / rows[used], weights=rows[used]).blocks[:-1]
    good, bad = (np.add.reduceat(counts[used], blocks) for counts in (goods, bads))
    share = n_bad / total
    a, b = (2.0, 2.0) if severity == "symmetric" else (1 + share, 2 - share)

    def cost(good: Floats, bad: Floats) -> float:
        rate = bad / (good + bad)
        refused = a / (a + b) * betainc(a + 1, b, rate)
        approved = b / (a + b) * betainc(b + 1, a, 1 - rate)
        return float((good * refused + bad * approved).sum())

    return 1 - cost(good, bad) / cost(np.array([total - n_bad]), np.array([n_bad]))


def _both_outcomes(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights) -> Predictions:
    checked = check_predictions(y_true, y_prob, sample_weight)
    if checked.one_outcome:
        only = int(checked.bad[0])
        raise DataError(f"y_true: a ranking needs both outcomes, all rows of positive weight are {only}.")
    return checked


def _counts_by_risk(checked: Predictions) -> tuple[Floats, Floats]:
    """Return the weights of the good and of the bad rows at every distinct prediction, the smallest first."""
    _, value_of_row = np.unique(checked.risk, return_inverse=True)
    goods, bads = (bin_sums(value_of_row, checked.weight * outcome) for outcome in (~checked.bad, checked.bad))
    return goods, bads


def _auc(goods: Floats, bads: Floats) -> float:
    """Return the AUC; not a number if an outcome has no rows."""
    total = float(goods.sum() * bads.sum())
    return float(bads @ (np.cumsum(goods) - goods / 2)) / total if total else math.nan  # ties count one half


def ks_of_counts(goods: Floats, bads: Floats) -> float:
    """Return the Kolmogorov-Smirnov statistic; not a number if an outcome has no rows."""
    below_good, below_bad = np.cumsum(goods), np.cumsum(bads)
    if not below_good[-1] or not below_bad[-1]:
        return math.nan
    return float(np.abs(below_good / below_good[-1] - below_bad / below_bad[-1]).max())


# ---- proper scores


def brier_score(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None) -> float:
    r"""Return the weighted mean of :math:`(p - y)^2`.

    >>> round(brier_score([0, 1], [0.1, 0.8]), 6)
    0.025
    """
    return _brier_score(check_predictions(y_true, y_prob, sample_weight))


def log_loss(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None, clip: float = 0.0) -> float:
    r"""Return the weighted mean of :math:`-y \ln p - (1 - y) \ln(1 - p)`.

    Parameters
    ----------
    y_true, y_prob, sample_weight : outcomes, predictions and weights
    clip : predictions are first moved into [clip, 1 - clip]; with 0 one that is certain and wrong makes it infinite

    >>> round(log_loss([0, 1], [0.0, 0.5]), 6)
    0.346574
    >>> log_loss([0, 1], [0.0, 0.0])
    inf
    >>> round(log_loss([0, 1], [0.0, 0.0], clip=0.01), 6)
    2.30761
    """
    check_parameters("log_loss", {"clip": clip}, {"clip": number(at_least=0, below=0.5)})
    return _log_loss(check_predictions(y_true, y_prob, sample_weight), clip)


def _brier_score(checked: Predictions) -> float:
    return checked.mean((checked.risk - checked.bad) ** 2)


def _log_loss(checked: Predictions, clip: float = 0.0) -> float:
    risk = np.clip(checked.risk, clip, 1 - clip)
    with np.errstate(divide="ignore"):  # log 0 is the infinity that is meant
        return checked.mean(-np.where(checked.bad, np.log(risk), np.log1p(-risk)))


# ---- the usual metrics in one call


class Summary(dict[str, float]):
    """Metrics by name; it prints as a table."""

    def __repr__(self) -> str:
        return text_table("Metrics", {"metric": list(self), "value": list(self.values())})


def summary(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None, bins: int = 15) -> Summary:
    """Return auc, ece, mce, brier, log_loss, certainty and ks.

    The input is checked once. The log loss is not clipped, so one prediction that is certain and wrong makes
    it infinite. When all outcomes are equal, auc and ks are not a number instead of an error, so that a month
    without bad loans still has a summary.

    >>> summary([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    Metrics
      metric      value
      auc          0.75
      ece        0.3375
      mce          0.65
      brier      0.1581
      log_loss   0.4723
      certainty       0
      ks            0.5
    """
    bins = check_bins(bins)
    checked = check_predictions(y_true, y_prob, sample_weight)
    goods, bads = _counts_by_risk(checked)
    table = equal_width_bins(checked, bins)
    return Summary(
        auc=_auc(goods, bads),
        ece=table.expected_error,
        mce=table.maximum_error,
        brier=_brier_score(checked),
        log_loss=_log_loss(checked),
        certainty=checked.mean((checked.risk == 0) | (checked.risk == 1)),
        ks=ks_of_counts(goods, bads),
    )
