r"""The best clipped line through a sigmoid, and what a line costs.

A clipped line says 0 below :math:`-\alpha`, 1 above :math:`\alpha` and :math:`\frac12 + \frac{x}{2\alpha}`
between. Its squared error against a sigmoid :math:`F` that is symmetric about 0, with density :math:`f`, is

.. math::

    SE(\alpha)   &= \int_{-\infty}^{\infty} (\text{line}(x) - F(x))^2 \, dx, \\
    SE'(\alpha)  &= \frac16 - \frac{2}{\alpha^2} \int_0^\alpha x \, (1 - F(x)) \, dx, \\
    SE''(\alpha) &= \frac{2}{\alpha^3} \int_0^\alpha x^2 f(x) \, dx > 0 .

So the error is convex for every such sigmoid, and there is one best :math:`\alpha`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, cast

import numpy as np
from numpy.polynomial import Polynomial
from scipy import special

from plainrisk.errors import DataError, did_you_mean
from plainrisk.form import ALPHA_STAR

__all__ = [
    "PAPER_ALPHA",
    "PROBIT_ALPHA_STAR",
    "BestLine",
    "LineCost",
    "Sigmoid",
    "best_alpha",
    "cloglog_line",
    "cost_of",
    "squared_error",
    "squared_error_curvature",
    "squared_error_quadrature",
    "squared_error_slope",
]

Sigmoid = Literal["logistic", "probit"]

#: The best alpha for the normal distribution function.
PROBIT_ALPHA_STAR = 1.545481584109132
#: The rational that the paper prints for the logistic alpha; it is 3.7e-7 too small.
PAPER_ALPHA = Fraction(80000, 30773)

_LOG_2 = math.log(2.0)


def _near_zero() -> Polynomial:
    r"""Return the Taylor polynomial of the logistic squared error, good to the last bits for alpha up to 1.

    With log(1 + e^-x) = log 2 - x/2 + log cosh(x/2) the error is
    2 log 2 - 1 - alpha/3 + (2/alpha) int_0^alpha log cosh(x/2) dx. The series of log cosh converges for
    alpha < pi, and 20 terms at alpha = 1 leave about pi^-40. Its coefficients are written with the zeta
    function: scipy's Bernoulli numbers, the other way, are good to 12 digits only.
    """
    terms = [2 * _LOG_2 - 1, -1 / 3]
    for n in range(1, 21):
        odd_zeta = special.zeta(2 * n) * (1 - 4.0**-n)
        terms += [2 * (-1) ** (n + 1) * odd_zeta / (n * (2 * n + 1) * math.pi ** (2 * n)), 0.0]
    return Polynomial(terms)


_LOGISTIC_NEAR_ZERO = _near_zero()


def squared_error(alpha: float, sigmoid: Sigmoid = "logistic") -> float:
    r"""Return the squared error of the clipped line, in closed form.

    .. math::

        SE_{logistic}(\alpha) &= \frac{\alpha}{6} - 1
            + \frac{1}{\alpha}\left(\frac{\pi^2}{6} + 2\,\mathrm{Li}_2(-e^{-\alpha})\right) \\
        SE_{probit}(\alpha) &= \frac{\alpha}{6} - \frac{1}{\sqrt\pi} - \alpha\,\Phi(-\alpha) + \phi(\alpha)
            + \frac{\Phi(\alpha) - \frac12}{\alpha}

    Parameters
    ----------
    alpha : float
        Half width of the line, in scores; positive.
    sigmoid : {"logistic", "probit"}
        What the line approximates.

    Notes
    -----
    The paper's logistic form holds the dilogarithm at both :math:`-e^{-\alpha}` and :math:`-e^{\alpha}`, and
    terms in the square of alpha cancel; the inversion formula of the dilogarithm gives the form above. Below
    alpha = 1 that still loses digits to the division, and the Taylor series takes over. The absolute error is
    below 1e-14 for alpha from 0.001 to 50.

    Examples
    --------
    >>> round(squared_error(ALPHA_STAR), 12)
    0.009894011266
    >>> squared_error(4.0) > squared_error(ALPHA_STAR)
    True
    """
    alpha = _checked(alpha, sigmoid)
    if sigmoid == "probit":
        inside = 0.5 * special.erf(alpha / math.sqrt(2.0))  # Phi(alpha) - 1/2, without the subtraction
        constant = alpha / 6 - 1 / math.sqrt(math.pi)
        return float(constant - alpha * special.ndtr(-alpha) + _normal_density(alpha) + inside / alpha)
    if alpha < 1.0:
        return float(_LOGISTIC_NEAR_ZERO(alpha))
    return float(alpha / 6 - 1 + 2 * _log_integral(alpha) / alpha)


def squared_error_slope(alpha: float, sigmoid: Sigmoid = "logistic") -> float:
    """Return the first derivative of `squared_error` in alpha; it is zero at the best alpha.

    Examples
    --------
    >>> abs(squared_error_slope(ALPHA_STAR)) < 1e-15
    True
    """
    alpha = _checked(alpha, sigmoid)
    if sigmoid == "probit":
        return float(1 / 6 - special.ndtr(-alpha) - _normal_second_moment(alpha) / alpha**2)
    if alpha < 1.0:
        return float(_LOGISTIC_NEAR_ZERO.deriv(1)(alpha))
    log_tail = math.log1p(math.exp(-alpha))
    return float(1 / 6 + 2 * (log_tail - _log_integral(alpha) / alpha) / alpha)


def squared_error_curvature(alpha: float, sigmoid: Sigmoid = "logistic") -> float:
    """Return the second derivative of `squared_error` in alpha; it is positive everywhere.

    Examples
    --------
    >>> round(squared_error_curvature(ALPHA_STAR), 6)
    0.075015
    """
    alpha = _checked(alpha, sigmoid)
    if sigmoid == "probit":
        return float(2 * _normal_second_moment(alpha) / alpha**3)
    if alpha < 1.0:
        return float(_LOGISTIC_NEAR_ZERO.deriv(2)(alpha))
    log_tail = math.log1p(math.exp(-alpha))
    return float(4 * (_log_integral(alpha) / alpha - log_tail) / alpha**2 - 2 * special.expit(-alpha) / alpha)


def squared_error_quadrature(alpha: float, sigmoid: str | Callable[[float], float] = "logistic") -> float:
    """Return the squared error of the clipped line by adaptive quadrature.

    It serves any sigmoid, symmetric or not, and checks the closed forms.

    Parameters
    ----------
    alpha : float
        Half width of the line, in scores; positive.
    sigmoid : {"logistic", "probit", "cloglog"} or callable
        What the line approximates: a name, or a function of the score that rises from 0 to 1.

    Examples
    --------
    >>> abs(squared_error_quadrature(3.0) - squared_error(3.0)) < 1e-12
    True
    """
    if isinstance(sigmoid, str):
        alpha = _checked(alpha, sigmoid, tuple(_CDFS))
        return _line_error(_CDFS[sigmoid], -alpha, alpha)
    alpha = _checked(alpha, "logistic")
    return _line_error(sigmoid, -alpha, alpha)


def best_alpha(sigmoid: Sigmoid = "logistic") -> float:
    """Return the alpha with the least squared error, by Newton's method.

    The slope of the error rises and is concave, so Newton's steps from the left never pass the root.

    Examples
    --------
    >>> round(best_alpha(), 12), round(best_alpha("probit"), 12)
    (2.599681908314, 1.545481584109)
    """
    alpha = 1.0
    for _ in range(50):
        step = squared_error_slope(alpha, sigmoid) / squared_error_curvature(alpha, sigmoid)
        alpha -= step
        if abs(step) < 1e-15 * alpha:
            break
    return alpha


@dataclass(frozen=True)
class BestLine:
    """A clipped line: 0 up to the score `lower`, 1 from the score `upper` on, straight between."""

    lower: float
    upper: float
    squared_error: float


def cloglog_line(symmetric: bool = False) -> BestLine:
    r"""Return the best clipped line through the complementary log-log sigmoid.

    The sigmoid :math:`F(x) = 1 - \exp(-e^x)` is not symmetric, so both ends of the line are free. The squared
    error is the Cramér distance between :math:`F` and the uniform distribution on [lower, upper],

    .. math::

        E|X - Y| - \tfrac12 E|X - X'| - \tfrac16 (upper - lower),
        \quad Y = lower + (upper - lower)\,U,

    which is convex in (lower, upper). So the optimum exists, is unique and is found by Newton's method from
    the condition that the error of the line is orthogonal to every straight line on [lower, upper].

    Parameters
    ----------
    symmetric : bool
        Demand lower = -upper, as for the logistic and the probit sigmoid. It is a poor choice here: the line
        then says 1/2 at score 0, where the sigmoid says 0.632, and its squared error is 6.8 times as large.

    Examples
    --------
    >>> line = cloglog_line()
    >>> round(line.lower, 6), round(line.upper, 6), round(line.squared_error, 6)
    (-2.273673, 1.309071, 0.00975)
    >>> round(cloglog_line(symmetric=True).squared_error, 6)
    0.066323
    """
    nodes, weights = np.polynomial.legendre.leggauss(64)
    u, weights = (nodes + 1) / 2, weights / 2
    # One column per free parameter: how the score at position u of the line moves with it.
    moves = np.stack([2 * u - 1] if symmetric else [1 - u, u], axis=1)
    ends = np.array([2.0]) if symmetric else np.array([-2.0, 1.0])
    for _ in range(50):
        x = moves @ ends
        gap = u + np.expm1(-np.exp(x))  # line minus sigmoid
        density = np.exp(x - np.exp(x))
        step = np.linalg.solve(moves.T @ ((weights * density)[:, None] * moves), moves.T @ (weights * gap))
        ends = ends + step
        if np.abs(step).max() < 1e-15:
            break
    lower, upper = float(-ends[0] if symmetric else ends[0]), float(ends[-1])
    return BestLine(lower, upper, _line_error(_CDFS["cloglog"], lower, upper))


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
        The logistic probabilities of these scores: outside the line they are epsilon or 1 - epsilon.
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
    grows and is not a measure to choose epsilon by; `largest_error` compares such lines.

    Parameters
    ----------
    alpha : float
        Half width of the line before clipping, in scores; positive.
    epsilon : float
        The least risk the line may predict, 0 <= epsilon < 1/2.

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
    risk = float(special.expit(-reach))
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


def _checked(alpha: float, sigmoid: str, known: tuple[str, ...] = ("logistic", "probit")) -> float:
    if sigmoid not in known:
        raise DataError(f"alpha: no squared error is known for sigmoid {sigmoid!r}.{did_you_mean(sigmoid, known)}")
    if not (alpha > 0 and math.isfinite(alpha)):
        raise DataError(f"alpha: must be positive and finite, got {alpha!r}")
    return float(alpha)


def _log_integral(alpha: float) -> float:
    """Return the integral of log(1 + e^-x) over [0, alpha]; spence(1 - z) is the dilogarithm of z."""
    return cast(float, math.pi**2 / 12 + special.spence(1.0 + math.exp(-alpha)))


def _normal_density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _normal_second_moment(alpha: float) -> float:
    """Return the integral of x^2 phi(x) over [0, alpha]; Phi - 1/2 - alpha phi would cancel near 0."""
    return cast(float, 0.5 * special.gammainc(1.5, alpha**2 / 2))


def _cloglog(x: float) -> float:
    return -math.expm1(-math.exp(min(x, 700.0)))  # exp(710) overflows, and the answer is 1 long before


_CDFS: dict[str, Callable[[float], float]] = {
    "logistic": special.expit,
    "probit": special.ndtr,
    "cloglog": _cloglog,
}


def _line_error(cdf: Callable[[float], float], lower: float, upper: float) -> float:
    from scipy.integrate import quad  # only checks and asymmetric sigmoids need it

    def inside(x: float) -> float:
        return (cdf(x) - (x - lower) / (upper - lower)) ** 2

    middle = (lower + upper) / 2
    parts = [
        (lambda x: cdf(x) ** 2, -math.inf, lower),
        (inside, lower, middle),
        (inside, middle, upper),
        (lambda x: (1 - cdf(x)) ** 2, upper, math.inf),
    ]
    return float(sum(quad(f, a, b, epsabs=1e-14, epsrel=1e-13, limit=200)[0] for f, a, b in parts))
