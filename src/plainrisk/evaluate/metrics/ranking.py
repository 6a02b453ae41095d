"""How well a risk tells the bad outcomes from the good: AUC, Gini, Kolmogorov-Smirnov."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError
from plainrisk.evaluate.metrics._weights import Floats, Scored, check_scored

__all__ = ["gini", "ks_statistic", "roc_auc"]


def roc_auc(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
    r"""Return the area under the ROC curve.

    .. math::

        AUC = P(p_1 > p_0) + \tfrac12 P(p_1 = p_0),

    where :math:`p_1` and :math:`p_0` are the predictions of a random bad and a random good row, drawn in
    proportion to the weights.

    Examples
    --------
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    return _auc(*_climb(check_scored(y_true, y_prob, sample_weight)))


def gini(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
    """Return the Gini coefficient, 2 AUC - 1.

    Examples
    --------
    >>> gini([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    """
    return 2 * roc_auc(y_true, y_prob, sample_weight) - 1


def ks_statistic(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
    r"""Return the Kolmogorov-Smirnov statistic.

    .. math::

        KS = \max_t |F_0(t) - F_1(t)|,

    where :math:`F_0` and :math:`F_1` are the weighted distribution functions of the prediction among the good
    and among the bad rows.

    Examples
    --------
    >>> ks_statistic([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    """
    return _ks(*_climb(check_scored(y_true, y_prob, sample_weight)))


def auc_and_ks(scored: Scored) -> tuple[float, float]:
    """Return both from one sort; not a number when all rows have the same outcome."""
    if scored.bad.all() or not scored.bad.any():
        return float("nan"), float("nan")
    good, bad = _climb(scored)
    return _auc(good, bad), _ks(good, bad)


def _auc(good: Floats, bad: Floats) -> float:
    # A step of the curve is a trapezium: ties count one half.
    steps = np.diff(bad, prepend=0.0)
    below = good - np.diff(good, prepend=0.0) / 2
    return float(steps @ below / (good[-1] * bad[-1]))


def _ks(good: Floats, bad: Floats) -> float:
    return float(np.abs(good / good[-1] - bad / bad[-1]).max())


def _climb(scored: Scored) -> tuple[Floats, Floats]:
    """Return the weight of good and of bad rows at or below every distinct prediction, in rising order."""
    if scored.bad.all() or not scored.bad.any():
        only = int(scored.bad[0])
        raise DataError(f"y_true: a ranking needs both outcomes, all rows of positive weight are {only}.")
    if scored.weighted:
        order = np.argsort(scored.risk)
        risk, bad, weight = scored.risk[order], scored.bad[order], scored.weight[order]
        ends = np.flatnonzero(np.append(risk[1:] != risk[:-1], True))
        return np.cumsum(weight * ~bad)[ends], np.cumsum(weight * bad)[ends]
    # Floats that are not negative sort like their bits, and a float up to 1 leaves the first two bits free.
    # So the outcome fits in as the last bit, and a plain sort, faster than an argsort, carries it along.
    # The shift drops the sign of -0.0, which ties with 0.0 as it should.
    key = np.sort((scored.risk.view(np.int64) << 1) | scored.bad)
    ends = np.flatnonzero(np.append((key[1:] >> 1) != (key[:-1] >> 1), True))
    bads = np.cumsum(key & 1)[ends].astype(np.float64)
    return (ends + 1) - bads, bads
