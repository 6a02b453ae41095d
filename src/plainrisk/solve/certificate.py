"""What a solver returns: the answer, and the proof of how good it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Solution", "kkt_residual"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """The minimiser of a convex objective in a box.

    Attributes
    ----------
    intercept : float
    coefficients : (p,)
    objective : the value minimised, penalty included
    loss : its mean loss alone
    kkt : largest violation of the optimality conditions, see `kkt_residual`
    iterations : how many steps were taken
    converged : whether the stopping rule for an optimum was met
    reason : why it stopped, in words
    at_box : (p,) whether the safety box, not a sign bound, holds a coefficient
    history : one row per step: objective and predicted decrease
    """

    intercept: float
    coefficients: Floats
    objective: float
    loss: float
    kkt: float
    iterations: int
    converged: bool
    reason: str
    at_box: npt.NDArray[np.bool_]
    history: tuple[tuple[float, float], ...] = ()


def kkt_residual(point: Floats, gradient: Floats, lower: Floats, upper: Floats) -> float:
    """Return the largest violation of the optimality conditions of a box-bounded problem.

    At an optimum the gradient is 0 where the point is free, not negative at a lower bound and not positive
    at an upper one. The residual is the largest entry that breaks this, 0 at an exact optimum.
    """
    at_lower, at_upper = point <= lower, point >= upper
    violation = np.abs(gradient)
    violation[at_lower] = np.maximum(-gradient[at_lower], 0.0)
    violation[at_upper] = np.maximum(gradient[at_upper], 0.0)
    return float(violation.max(initial=0.0))
