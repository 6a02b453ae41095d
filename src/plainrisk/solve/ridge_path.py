"""Choose the ridge by cross validation along a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError

__all__ = ["RIDGE_TIMES_ROWS", "RidgePath", "choose_ridge", "stratified_folds"]

Floats = npt.NDArray[np.float64]

# The path in units of ridge times total weight; "auto" is 0.5 there.
RIDGE_TIMES_ROWS = (0.05, 0.15, 0.5, 1.5, 5.0, 15.0, 50.0, 150.0, 500.0)


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

    @property
    def mean(self) -> Floats:
        """The curve: the mean held-out loss of each ridge."""
        return np.asarray(self.losses.mean(axis=0))


def choose_ridge(
    fit_and_judge: Sequence[Callable[[float], float]], total: float, path: Sequence[float] = RIDGE_TIMES_ROWS
) -> RidgePath:
    """Return the path of held-out losses and the best ridge on it.

    Parameters
    ----------
    fit_and_judge : per fold, a function from a ridge to the held-out loss of the model fitted with it; called
        from the strongest ridge to the weakest, so that it may start from the last solution
    total : total training weight; the path's numbers are divided by it
    """
    ridges = np.asarray(path, dtype=np.float64) / total
    losses = np.array([[judge(float(r)) for r in ridges[::-1]][::-1] for judge in fit_and_judge])
    mean = losses.mean(axis=0)
    # The last of the least: among equals the stronger ridge.
    best = len(mean) - 1 - int(np.argmin(mean[::-1]))
    return RidgePath(ridges, losses, float(ridges[best]))


def stratified_folds(target: npt.NDArray[np.generic], n_folds: int, seed: int = 0) -> npt.NDArray[np.intp]:
    """Return the fold of every row: each outcome is dealt out evenly, in a shuffled order fixed by the seed.

    With fewer rows than folds the last folds are empty.
    """
    fewest = min(int(np.count_nonzero(target == outcome)) for outcome in (0, 1))
    if fewest < 2:
        raise DataError(f"Data: cross validation needs two rows of each outcome; of one there is {fewest}.")
    rng = np.random.default_rng(seed)
    folds = np.empty(len(target), dtype=np.intp)
    for outcome in (0, 1):
        rows = np.flatnonzero(target == outcome)
        folds[rng.permutation(rows)] = np.arange(len(rows)) % n_folds
    return folds
