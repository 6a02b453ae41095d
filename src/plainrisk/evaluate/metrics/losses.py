"""Proper scores of a predicted risk: Brier score with its decomposition, log loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError
from plainrisk.evaluate.metrics._weights import Floats, Ints, Scored, check_bins, check_scored, sums
from plainrisk.evaluate.metrics.calibration import width_bins

__all__ = ["BrierDecomposition", "brier_decomposition", "brier_score", "log_loss"]


def brier_score(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
    r"""Return the weighted mean of :math:`(p - y)^2`.

    Examples
    --------
    >>> round(brier_score([0, 1], [0.1, 0.8]), 6)
    0.025
    """
    return brier_of(check_scored(y_true, y_prob, sample_weight))


def log_loss(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    clip: float = 0.0,
) -> float:
    r"""Return the weighted mean of :math:`-y \ln p - (1 - y) \ln(1 - p)`.

    Parameters
    ----------
    y_true, y_prob, sample_weight : array-like
        Outcomes, predictions and weights.
    clip : float
        Predictions are first moved into [clip, 1 - clip]. With 0 a prediction that is certain and wrong makes
        the loss infinite.

    Examples
    --------
    >>> log_loss([0, 1], [0.0, 0.5]) == math.log(2) / 2
    True
    >>> log_loss([0, 1], [0.0, 0.0])
    inf
    >>> round(log_loss([0, 1], [0.0, 0.0], clip=0.01), 6)
    2.30761
    """
    if not 0 <= clip < 0.5:
        raise DataError(f"clip: must be at least 0 and below 1/2, got {clip!r}.")
    return log_loss_of(check_scored(y_true, y_prob, sample_weight), clip)


@dataclass(frozen=True)
class BrierDecomposition:
    """The Brier score in five terms.

    Attributes
    ----------
    reliability : float
        Mean squared gap between predicted and observed risk of a bin; 0 is best.
    resolution : float
        Mean squared gap between the observed risk of a bin and that of all rows; the larger the better.
    uncertainty : float
        Variance of the outcome, which no model changes.
    within_variance : float
        Mean squared gap between a prediction and the mean prediction of its bin.
    within_covariance : float
        Twice the covariance of prediction and outcome inside the bins; the larger the better.
    """

    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float

    @property
    def brier_score(self) -> float:
        """The sum: reliability - resolution + uncertainty + within_variance - within_covariance."""
        return math.fsum(
            [
                self.reliability,
                -self.resolution,
                self.uncertainty,
                self.within_variance,
                -self.within_covariance,
            ]
        )


def brier_decomposition(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    bins: int | None = None,
) -> BrierDecomposition:
    r"""Return the terms whose sum is the Brier score.

    .. math::

        BS = \underbrace{\sum_i P_i (e_i - o_i)^2}_{reliability}
           - \underbrace{\sum_i P_i (o_i - o)^2}_{resolution}
           + \underbrace{o (1 - o)}_{uncertainty}
           + \underbrace{\overline{(p - e_i)^2}}_{within\ variance}
           - \underbrace{2\,\overline{(y - o_i)(p - e_i)}}_{within\ covariance}

    where :math:`P_i, e_i, o_i` are the weighted share, mean prediction and share of bad of bin :math:`i`,
    :math:`o` is the share of bad of all rows and a bar is the weighted mean over all rows. The last two terms
    are what Murphy's three miss when a bin holds different predictions.

    Parameters
    ----------
    y_true, y_prob, sample_weight : array-like
        Outcomes, predictions and weights.
    bins : int, optional
        Number of equal-width bins. By default every distinct prediction is a bin, and the within terms are 0.

    Examples
    --------
    >>> terms = brier_decomposition([0, 1, 1, 1], [0.2, 0.2, 0.7, 0.9], bins=2)
    >>> round(terms.reliability, 4), round(terms.resolution, 4), round(terms.uncertainty, 4)
    (0.065, 0.0625, 0.1875)
    >>> round(terms.brier_score, 6), round(brier_score([0, 1, 1, 1], [0.2, 0.2, 0.7, 0.9]), 6)
    (0.195, 0.195)
    """
    count = None if bins is None else check_bins(bins)
    scored = check_scored(y_true, y_prob, sample_weight)
    place, weight, predicted, observed = _grouped(scored, count)
    base = scored.mean(scored.bad)
    off_risk, off_bad = scored.risk - predicted[place], scored.bad - observed[place]
    return BrierDecomposition(
        reliability=float(weight @ (predicted - observed) ** 2) / scored.total,
        resolution=float(weight @ (observed - base) ** 2) / scored.total,
        uncertainty=base * (1 - base),
        within_variance=scored.mean(off_risk**2),
        within_covariance=2 * scored.mean(off_risk * off_bad),
    )


def _grouped(scored: Scored, bins: int | None) -> tuple[Ints, Floats, Floats, Floats]:
    """Return the bin of every row, and the weight, mean prediction and share of bad of every bin."""
    if bins is None:
        values, place = np.unique(scored.risk, return_inverse=True)
        bins = len(values)
    else:
        values, place = None, width_bins(scored.risk, bins)
    weight = sums(place, scored.weight, bins)
    full = np.where(weight > 0, weight, 1.0)  # an empty bin weighs nothing in any later sum
    observed = sums(place, scored.weight * scored.bad, bins) / full
    if values is not None:
        return place, weight, values, observed  # the mean of equal numbers, without its rounding
    predicted = sums(place, scored.weight * scored.risk, bins) / full
    return place, weight, predicted, observed


def brier_of(scored: Scored) -> float:
    """Return the Brier score of checked input."""
    return scored.mean((scored.risk - scored.bad) ** 2)


def log_loss_of(scored: Scored, clip: float = 0.0) -> float:
    """Return the log loss of checked input."""
    risk = np.clip(scored.risk, clip, 1 - clip) if clip > 0 else scored.risk
    with np.errstate(divide="ignore"):  # log 0 is the infinity that is meant
        loss = -np.where(scored.bad, np.log(risk), np.log1p(-risk))
    return scored.mean(loss)
