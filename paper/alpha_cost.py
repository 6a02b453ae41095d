"""What a clipped line costs against the logistic sigmoid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from plainrisk.errors import DataError
from plainrisk.form.alpha import ALPHA_STAR, squared_error

__all__ = ["LineCost", "cost_of"]


@dataclass(frozen=True)
class LineCost:
    """What the line 1/2 + x/(2 alpha), clipped to [epsilon, 1 - epsilon], costs against the logistic sigmoid.

    Attributes
    ----------
    alpha, epsilon : float
        The line.
    squared_error : float
        Integral of the squared error over all scores; infinite when epsilon is positive.
    excess : float
        `squared_error` minus that of the best line, ``ALPHA_STAR`` with epsilon 0.
    linear_squared_error : float
        The part of the integral where the line is not clipped; always finite.
    largest_error : float
        Supremum over all scores of the absolute error, in probability.
    largest_error_at : float
        The score, zero or positive, where the error is that large (and so it is at minus that score);
        infinite when the error is approached far out in the tails only.
    linear_scores : tuple of float
        The scores between which the line is not clipped.
    linear_risks : tuple of float
        The logistic probabilities of these scores: whoever is outside is told epsilon or 1 - epsilon.
    """

    alpha: float
    epsilon: float
    squared_error: float
    excess: float
    linear_squared_error: float
    largest_error: float
    largest_error_at: float
    linear_scores: tuple[float, float]
    linear_risks: tuple[float, float]


def cost_of(alpha: float, epsilon: float = 0.0) -> LineCost:
    r"""Return what a clipped line costs against the logistic sigmoid.

    A wider line clips fewer people and errs more on those between. A positive epsilon keeps the line from
    saying 0 or 1, but then the error tends to epsilon in both tails, and its square has no finite integral
    over all scores. `squared_error` says so by being infinite; `linear_squared_error`, the integral over
    :math:`|x| \le \alpha (1 - 2\epsilon)`, stays finite. It leaves out the tails, so it falls as epsilon
    grows and is no measure to choose epsilon by; `largest_error` compares such lines.

    Parameters
    ----------
    alpha : float
        Half width of the line before clipping, in scores; positive.
    epsilon : float
        The least risk the line may say, 0 <= epsilon < 1/2.

    Examples
    --------
    >>> cost = cost_of(4.0)
    >>> round(cost.excess, 6), round(cost.largest_error, 6), round(cost.largest_error_at, 6)
    (0.05889, 0.13321, 1.762747)
    >>> tuple(round(p, 3) for p in cost.linear_risks)
    (0.018, 0.982)
    >>> cost_of(4.0, epsilon=0.01).squared_error
    inf
    """
    if not 0 <= epsilon < 0.5:
        raise DataError(f"cost_of: epsilon must be at least 0 and below 1/2, got {epsilon!r}")
    whole = squared_error(alpha)  # also checks alpha
    total = math.inf if epsilon > 0 else whole
    reach = alpha * (1 - 2 * epsilon)
    largest, where = _largest_error(alpha, epsilon, reach)
    risk = float(expit(-reach))
    return LineCost(
        alpha=float(alpha),
        epsilon=float(epsilon),
        squared_error=total,
        excess=max(0.0, total - squared_error(ALPHA_STAR)),
        linear_squared_error=_linear_error(alpha, reach),
        largest_error=largest,
        largest_error_at=where,
        linear_scores=(-reach, reach),
        linear_risks=(risk, 1 - risk),
    )


def _linear_error(alpha: float, reach: float) -> float:
    """Integrate the squared error over [-reach, reach].

    Panels of one unit or less, so that 20 nodes see the sigmoid as a polynomial. Beyond 40 it is 1 to the
    last bit, and the error is the polynomial x/(2 alpha) - 1/2.
    """
    near = min(reach, 40.0)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    panels = math.ceil(near)
    x = (np.arange(panels)[:, None] + (nodes + 1) / 2) * (near / panels)
    gap = x / (2 * alpha) - np.tanh(x / 2) / 2  # line minus sigmoid, both less 1/2
    far = ((near / alpha - 1) ** 3 - (reach / alpha - 1) ** 3) * -alpha / 6
    return float((gap**2 @ weights).sum() * (near / panels) + far)


def _largest_error(alpha: float, epsilon: float, reach: float) -> tuple[float, float]:
    """Return the supremum of the absolute error over x >= 0 and where it is.

    On the line the error is extreme where the slopes agree, s(1 - s) = 1/(2 alpha), or at the end; beyond the
    end it runs monotonically from its value there to epsilon.
    """
    candidates = [(abs(reach / (2 * alpha) - math.tanh(reach / 2) / 2), reach), (float(epsilon), math.inf)]
    if alpha > 2:
        tanh_half = math.sqrt(1 - 2 / alpha)  # 2s - 1 at the point of equal slope
        turn = 2 * math.atanh(tanh_half)
        if turn < reach:
            candidates.append((abs(turn / (2 * alpha) - tanh_half / 2), turn))
    return max(candidates)
