r"""The best clipped line through a sigmoid: the paper's alpha*, found again by whoever wants to see it.

A line from (lower, 0) to (upper, 1), clipped outside, has against a sigmoid F the squared error

.. math:: \int_{-\infty}^{lower} F^2 \, ds + \int_{lower}^{upper} \Big(\frac{s - lower}{upper - lower} - F\Big)^2 ds
          + \int_{upper}^{\infty} (1 - F)^2 \, ds,

the Cramér distance between F and a uniform distribution, which is convex in (lower, upper). So there is one best line,
and Newton's method finds it: the error on [lower, upper] is orthogonal to every straight line. For a symmetric sigmoid
it runs from -alpha to alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from plainrisk._types import Floats
from plainrisk.checks import check_parameters, number, words
from plainrisk.figures import new_axes
from plainrisk.form import Linear

__all__ = ["BestLine", "Sigmoid", "best_line"]

Sigmoid = Literal["logistic", "probit", "cloglog"]


def _cloglog(score: Floats) -> Floats:
    return np.asarray(-np.expm1(-np.exp(np.minimum(score, 700.0))))


# A sigmoid and its density.
_SIGMOIDS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "logistic": (special.expit, lambda s: special.expit(s) * special.expit(-s)),
    "probit": (special.ndtr, lambda s: np.exp(-s * s / 2) / math.sqrt(2 * math.pi)),
    "cloglog": (_cloglog, lambda s: np.exp(s - np.exp(s))),
}


@dataclass(frozen=True)
class BestLine:
    """A clipped line: 0 up to the score `lower`, 1 from the score `upper` on, straight between.

    Attributes
    ----------
    sigmoid : "logistic", "probit" or "cloglog", what the line stands for
    lower, upper : the scores at its ends
    squared_error : what it costs, integrated over all scores
    """

    sigmoid: Sigmoid
    lower: float
    upper: float
    squared_error: float

    @property
    def alpha(self) -> float:
        """Half the width: where the line of a symmetric sigmoid reaches 1."""
        return (self.upper - self.lower) / 2

    @property
    def linear_risks(self) -> tuple[float, float]:
        """The sigmoid's probabilities at both ends: applicants outside get 0 or 1."""
        low, high = _SIGMOIDS[self.sigmoid][0](np.array([self.lower, self.upper]))
        return float(low), float(high)

    def link(self, epsilon: float = 0.0) -> Linear:
        """Return the line as a link of a form, clipped to [epsilon, 1 - epsilon]."""
        slope = 1.0 / (self.upper - self.lower)
        return Linear(slope=slope, offset=-self.lower * slope, low=epsilon, high=1.0 - epsilon)

    def cost(self, alpha: float) -> float:
        """Return the squared error of a line about the same middle that is wider or narrower."""
        check_parameters("cost", {"alpha": alpha}, {"alpha": number(above=0)})
        middle = (self.lower + self.upper) / 2
        return _squared_error(self.sigmoid, middle - alpha, middle + alpha)

    def plot(self, axes: Any = None) -> Any:
        """Draw the squared error against alpha, and the line next to the sigmoid; returns the two axes."""
        axes = new_axes(10.0, 3.9, columns=2) if axes is None else axes
        left, right = axes
        alphas = np.linspace(0.05, 4 * self.alpha, 200)
        left.plot(alphas, [self.cost(alpha) for alpha in alphas], color=_BLUE, linewidth=2)
        left.plot([self.alpha], [self.squared_error], "o", color=_RED, markersize=7, zorder=3)
        left.set(xlabel="alpha", ylabel="squared error", ylim=(0, None), xlim=(0, alphas[-1]))
        left.set_title(f"alpha* = {self.alpha:.4f}, squared error {self.squared_error:.5f}", loc="left", fontsize=11)
        reach = 1.2 * self.alpha
        scores = np.linspace(self.lower - reach, self.upper + reach, 561)
        right.plot(scores, _SIGMOIDS[self.sigmoid][0](scores), color=_BLUE, linewidth=2, label=self.sigmoid)
        ends = [scores[0], self.lower, self.upper, scores[-1]]
        right.plot(ends, [0, 0, 1, 1], color=_RED, linewidth=2, linestyle="--", label="clipped line")
        low, high = self.linear_risks
        right.set(xlabel="score", ylabel="probability", ylim=(-0.04, 1.06))
        right.set_title(f"Not clipped: {low:.1%} to {high:.1%}", loc="left", fontsize=11)
        right.legend(loc="center right", frameon=False)
        for ax in (left, right):
            ax.spines[["top", "right"]].set_visible(False)
        return axes


# Okabe and Ito's colors, told apart by color-blind readers; line styles tell them apart without color.
_BLUE, _RED = "#0072B2", "#D55E00"


def best_line(sigmoid: Sigmoid = "logistic") -> BestLine:
    """Return the clipped line with the least squared error against a sigmoid, over all scores.

    Parameters
    ----------
    sigmoid : {"logistic", "probit", "cloglog"}, default="logistic"
        What the line stands for; "cloglog" is the complementary log-log link, whose sigmoid is not symmetric.

    Returns
    -------
    BestLine

    Examples
    --------
    >>> line = best_line()
    >>> round(line.alpha, 9), round(line.squared_error, 9)
    (2.599681908, 0.009894011)
    >>> [round(risk, 4) for risk in line.linear_risks]
    [0.0692, 0.9308]
    >>> round(best_line("probit").alpha, 9)
    1.545481584
    """
    check_parameters("best_line", {"sigmoid": sigmoid}, {"sigmoid": words(*_SIGMOIDS)})
    value, density = _SIGMOIDS[sigmoid]
    nodes, weights = np.polynomial.legendre.leggauss(64)
    u, weights = (nodes + 1) / 2, weights / 2
    moves = np.stack([1 - u, u], axis=1)  # how the score at position u of the line moves with its ends
    ends = np.array([-1.5, 1.5])
    for _ in range(50):
        scores = moves @ ends
        gap = u - value(scores)
        step = np.linalg.solve(moves.T @ ((weights * density(scores))[:, None] * moves), moves.T @ (weights * gap))
        ends = ends + step
        if np.abs(step).max() < 1e-15:
            break
    if sigmoid != "cloglog":  # symmetric: rounding apart, both ends are as far from 0
        ends = np.array([-1.0, 1.0]) * (ends[1] - ends[0]) / 2
    return BestLine(sigmoid, float(ends[0]), float(ends[1]), _squared_error(sigmoid, float(ends[0]), float(ends[1])))


def _squared_error(sigmoid: str, lower: float, upper: float) -> float:
    """Integrate on panels of at most half a unit; beyond 45 scores on either side a sigmoid is 0 or 1."""
    value = _SIGMOIDS[sigmoid][0]
    far = 45.0 + max(abs(lower), abs(upper))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for start, stop in ((-far, lower), (lower, upper), (upper, far)):
        panels = math.ceil(2 * (stop - start))
        scores = start + (np.arange(panels)[:, None] + (nodes + 1) / 2) * ((stop - start) / panels)
        line = np.clip((scores - lower) / (upper - lower), 0.0, 1.0)
        # On the right both are near 1; their difference is the sigmoid's distance from 1.
        total += float((((line - value(scores)) ** 2) @ weights).sum()) * (stop - start) / panels / 2
    return total
