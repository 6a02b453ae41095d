"""One pass of the logistic loss over rows.

With score s, total weight w and positive weight t of a row:

    loss = w log(1 + exp(s)) - t s        residual = w p - t,  p = 1 / (1 + exp(-s))

The compiled way has an exponential and a logarithm of its own: it agrees with numpy to rounding, not to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.kernels.choice import compiled
from plainrisk.kernels.sums import level_sums, look_up

__all__ = ["curvature", "logistic_sums", "loss_and_residual"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


def logistic_sums(
    intercept: float,
    packs: Sequence[Codes],
    tables: Sequence[Floats],
    positive: npt.NDArray[np.generic],
    weight: Floats | None,
) -> tuple[float, float, list[Floats]]:
    """Return the summed loss of the rows, their summed residual, and that by the codes of every pack.

    Parameters
    ----------
    packs, tables : the score of a row is ``intercept + tables[0][packs[0]] + ...``
    positive, weight : (n,) weight of the positive outcome, and total weight (default 1 each)

    Examples
    --------
    >>> logistic_sums(0.0, [np.array([0, 1], np.uint8)], [np.zeros(2)], np.array([1, 0], np.uint8), None)[1:]
    (0.0, [array([-0.5,  0.5])])
    """
    if compiled is not None and all(pack.flags.c_contiguous for pack in packs):
        outcome = positive if positive.dtype == np.uint8 else positive.astype(np.float64, copy=False)
        sums = [np.zeros(len(table)) for table in tables]
        mass = None if weight is None else np.ascontiguousarray(weight)
        loss, rest = compiled.logistic(intercept, packs, tables, np.ascontiguousarray(outcome), mass, sums)
        return loss, rest, sums
    # Look-ups and sums both want wide integers.
    wide: Any = [pack.astype(np.intp) for pack in packs]
    score = look_up(intercept, wide, tables, len(positive))
    loss, residual = loss_and_residual(score, positive, weight)
    return loss, float(residual.sum()), level_sums(residual, wide, [len(table) for table in tables])


def loss_and_residual(score: Floats, positive: npt.NDArray[np.generic], weight: Floats | None) -> tuple[float, Floats]:
    """Return the summed loss and the residual of every row."""
    small = np.exp(-np.abs(score))
    softplus = np.maximum(score, 0.0) + np.log1p(small)
    p = np.where(score >= 0, 1.0, small) / (1.0 + small)
    outcome = positive.astype(np.float64)
    if weight is None:
        return float(softplus.sum() - outcome @ score), p - outcome
    return float(weight @ softplus - outcome @ score), weight * p - outcome


def curvature(score: Floats) -> Floats:
    """Return ``p (1 - p)`` for every score, in the array of the scores.

    >>> curvature(np.array([0.0, np.log(3.0)])).round(4)
    array([0.25  , 0.1875])
    """
    if compiled is not None and score.flags.c_contiguous:
        compiled.curvature(score)
        return score
    small = np.exp(-np.abs(score, out=score))
    return np.divide(small, (1.0 + small) ** 2, out=score)
