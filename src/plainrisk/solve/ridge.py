"""Choose the ridge by cross validation along a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Floats
from plainrisk.solve.newton import Solution

__all__ = ["RIDGE_TIMES_ROWS", "RidgePath", "choose_ridge"]

# The path in units of ridge times total weight; "auto" is 0.5 there.
RIDGE_TIMES_ROWS = (0.05, 0.15, 0.5, 1.5, 5.0, 15.0, 50.0, 150.0, 500.0)

Fit = Callable[[float, Floats | None], Solution]  # from a ridge and a start
Judge = Callable[[Floats], float]  # from (intercept, coefficients) to a held-out loss


@dataclass(frozen=True)
class RidgePath:
    """What cross validation saw.

    Attributes
    ----------
    ridges : (r,)
    losses : (folds, r) held-out mean loss
    best : the ridge with the least mean loss; the stronger one of equals
    """

    ridges: Floats
    losses: Floats
    best: float

    def __repr__(self) -> str:
        return f"RidgePath(best {self.best:.3g} of {len(self.ridges)}, held-out loss {self.mean.min():.6g})"

    @property
    def mean(self) -> Floats:
        """The curve: the mean held-out loss of each ridge."""
        return np.asarray(self.losses.mean(axis=0))


def choose_ridge(folds: Sequence[tuple[Fit, Judge]], total: float) -> RidgePath:
    """Return the path of held-out losses and the best ridge on it.

    Parameters
    ----------
    folds : per fold, how to fit without it and how to judge on it; a fit starts from the solution of a stronger ridge
    total : total training weight; the path's numbers are divided by it
    """
    ridges = np.asarray(RIDGE_TIMES_ROWS) / total
    losses = np.empty((len(folds), len(ridges)))
    for k, (fit, judge) in enumerate(folds):
        point: Floats | None = None
        for j in reversed(range(len(ridges))):
            point = fit(float(ridges[j]), point).point
            losses[k, j] = judge(point)
    mean = losses.mean(axis=0)
    best = len(mean) - 1 - int(np.argmin(mean[::-1]))  # the last of the least: among equals the stronger ridge
    return RidgePath(ridges, losses, float(ridges[best]))
