"""The usual metrics in one call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.evaluate.metrics._weights import check_bins, check_scored
from plainrisk.evaluate.metrics.calibration import equal_width
from plainrisk.evaluate.metrics.losses import brier_of, log_loss_of
from plainrisk.evaluate.metrics.ranking import auc_and_ks

__all__ = ["main_scores", "summary"]


def summary(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, bins: int = 15
) -> dict[str, float]:
    """Return auc, ece, mce, brier, log_loss, certainty and ks.

    The input is checked once. The log loss is not clipped, so one prediction that is certain and wrong makes
    it infinite. When all outcomes are equal, auc and ks are not a number instead of an error, so that a month
    without bad loans still has a summary.

    Examples
    --------
    >>> for name, value in summary([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).items():
    ...     print(name, round(value, 4))
    auc 0.75
    ece 0.3375
    mce 0.65
    brier 0.1581
    log_loss 0.4723
    certainty 0.0
    ks 0.5
    """
    bins = check_bins(bins)
    scored = check_scored(y_true, y_prob, sample_weight)
    auc, ks = auc_and_ks(scored)
    table = equal_width(scored, bins)
    certain = np.isin(scored.risk, (0.0, 1.0))
    return {
        "auc": auc,
        "ece": table.expected_error,
        "mce": table.maximum_error,
        "brier": brier_of(scored),
        "log_loss": log_loss_of(scored),
        "certainty": scored.mean(certain),
        "ks": ks,
    }


def main_scores(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> dict[str, float]:
    """Return auc, log_loss, brier and ece, as `summary` does.

    Examples
    --------
    >>> {name: round(value, 4) for name, value in main_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).items()}
    {'auc': 0.75, 'log_loss': 0.4723, 'brier': 0.1581, 'ece': 0.3375}
    """
    scored = check_scored(y_true, y_prob, sample_weight)
    return {
        "auc": auc_and_ks(scored)[0],
        "log_loss": log_loss_of(scored),
        "brier": brier_of(scored),
        "ece": equal_width(scored, 15).expected_error,
    }
