"""What a solver returns: the answer, and the proof of how good it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plainrisk._types import Bools, Floats

__all__ = ["Solution", "kkt_residual"]


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
    at_box: Bools
    history: tuple[tuple[float, float], ...] = ()

    def __repr__(self) -> str:
        return (
            f"Solution({len(self.coefficients)} coefficients, objective {self.objective:.6g}, KKT residual "
            f"{self.kkt:.1e}, {self.iterations} iterations: {self.reason})"
        )

    @property
    def point(self) -> Floats:
        """Intercept and coefficients, (1 + p,)."""
        return np.concatenate([[self.intercept], self.coefficients])


def kkt_residual(point: Floats, gradient: Floats, lower: Floats, upper: Floats) -> float:
    """Return the largest violation of the optimality conditions of a box-bounded problem.

    At an optimum the gradient is 0 where the point is free, not negative at a lower bound and not positive
    at an upper one. The residual is the largest entry that breaks this, 0 at an exact optimum.
    """
    up = np.where(point > lower, gradient, 0.0).max(initial=0.0)  # it could move down there
    down = np.where(point < upper, gradient, 0.0).min(initial=0.0)
    return float(max(up, -down))
