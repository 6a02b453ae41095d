"""Where features need finer bins than they have, by the evidence.

Within a bin let r = sum(y - p) and w = sum(p (1 - p)) by fine level, p being the fitted risk. To second order, steps b
between the fine levels change the log likelihood by g'b - b'Hb/2, where g and H are those of the steps less their mean
over the bin; and so finer steps have a Bayes factor (`plainrisk.solve.log_factors`), averaged over their precision. A
feature as a whole may ask for finer bins, since its shape bends everywhere; or one of its bins, since it jumps there.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise

import numpy as np

from plainrisk._types import Floats
from plainrisk.fit.choices import POSITIVE, PRECISIONS
from plainrisk.solve import averaged, log_factors

__all__ = ["finer_cuts"]


def finer_cuts(
    residual: Floats, curvature: Floats, cuts: Collection[int], candidates: Collection[int], least: float = 0.0
) -> set[int]:
    """Return the cuts that the evidence asks for beside those there are.

    Parameters
    ----------
    residual, curvature : (levels,) sums over the training rows, at the fit with one score for every bin
    cuts : the levels that bins start at, but for the first
    candidates : the cuts of bins of the next size, taken if the feature as a whole asks for them
    least : what a gain in log likelihood must exceed, beside being evident

    Examples
    --------
    >>> level, wave = np.full(4, 50.0), np.array([20.0, -20.0, 0.0, 0.0])
    >>> sorted(finer_cuts(wave, level, {2}, {1, 2, 3})), finer_cuts(0.1 * wave, level, {2}, {1, 2, 3})
    ([1, 3], set())
    """
    starts = [0, *sorted(cuts), len(residual)]
    bins = [(start, end) for start, end in pairwise(starts) if end - start > 1]
    if not bins:
        return set()
    factors = np.array([_log_factors(residual[a:b], curvature[a:b]) for a, b in bins])
    asked: set[int] = set()
    if averaged(factors.sum(axis=0)) > max(POSITIVE, least):
        asked |= {cut for cut in candidates if cut not in cuts}
    # Any of the bins may be the one that jumps.
    bar = max(POSITIVE + math.log(len(starts)), least)
    for (start, end), own in zip(bins, factors, strict=True):
        if averaged(own) > bar:
            asked |= set(range(start + 1, end))
    return asked


def _log_factors(residual: Floats, curvature: Floats) -> Floats:
    """Return the logarithms of the Bayes factors of the steps within a bin, by precision."""
    n = len(residual)
    steps = np.tri(n, k=-1)[:, : n - 1]
    steps = steps - curvature @ steps / max(float(curvature.sum()), np.finfo(float).tiny)
    return log_factors(steps.T @ (curvature[:, None] * steps), steps.T @ residual, np.array(PRECISIONS))
