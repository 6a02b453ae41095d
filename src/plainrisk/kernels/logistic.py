"""One pass of the logistic loss over rows.

With score s, total weight w and positive weight t of a row:

    loss = w log(1 + exp(s)) - t s        residual = w p - t,  p = 1 / (1 + exp(-s))

The compiled way has an exponential and a logarithm of its own: it agrees with numpy to rounding, not to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.kernels.choice import compiled
from plainrisk.kernels.sums import level_sums, look_up

__all__ = ["LogisticSums", "curvature", "logistic_sums"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]

# With more dense columns than this, a library's matrix product is faster.
_FEW_SLOPES = 16


@dataclass(frozen=True)
class LogisticSums:
    """Sums over rows.

    Attributes
    ----------
    loss, residual : over all rows
    by_level : per pack, the residuals by its codes
    by_dense : (q,) of residual times each dense column, or None where there are none
    """

    loss: float
    residual: float
    by_level: list[Floats]
    by_dense: Floats | None = None


def logistic_sums(
    intercept: float,
    packs: Sequence[Codes],
    tables: Sequence[Floats],
    positive: npt.NDArray[np.generic],
    weight: Floats | None = None,
    dense: Floats | None = None,
    slopes: Floats | None = None,
) -> LogisticSums:
    """Return the sums of losses and residuals over rows.

    Parameters
    ----------
    packs, tables : the score of a row is ``intercept + tables[0][packs[0]] + ...``
    positive, weight : (n,) weight of the positive outcome, and total weight (default 1 each)
    dense, slopes : (n, q) and (q,): numeric columns, whose ``dense @ slopes`` is in the score too

    Examples
    --------
    >>> sums = logistic_sums(0.0, [np.array([0, 1], np.uint8)], [np.zeros(2)], np.array([1, 0], np.uint8))
    >>> sums.residual, sums.by_level
    (0.0, [array([-0.5,  0.5])])
    """
    few = slopes is None or len(slopes) <= _FEW_SLOPES
    if compiled is None or not few or not all(pack.flags.c_contiguous for pack in packs):
        return _sums_in_numpy(intercept, packs, tables, positive, weight, dense, slopes)
    outcome = positive if positive.dtype == np.uint8 else positive.astype(np.float64, copy=False)
    by_level = [np.zeros(len(table)) for table in tables]
    by_dense = None if slopes is None else np.zeros(len(slopes))
    arrays = [None if a is None else np.ascontiguousarray(a, np.float64) for a in (weight, slopes)]
    columns = None if dense is None else np.asarray(dense, np.float64)
    loss, rest = compiled.logistic(
        intercept, packs, tables, np.ascontiguousarray(outcome), arrays[0], by_level, columns, arrays[1], by_dense
    )
    return LogisticSums(loss, rest, by_level, by_dense)


def _sums_in_numpy(
    intercept: float,
    packs: Sequence[Codes],
    tables: Sequence[Floats],
    positive: npt.NDArray[np.generic],
    weight: Floats | None,
    dense: Floats | None,
    slopes: Floats | None,
) -> LogisticSums:
    # Look-ups and sums both want wide integers.
    wide: Any = packs if compiled is not None else [pack.astype(np.intp) for pack in packs]
    score = look_up(intercept, wide, tables, len(positive))
    if dense is not None and slopes is not None:
        score += dense @ slopes
    loss, residual = _loss_and_residual(score, positive, weight)
    by_level = level_sums(residual, wide, [len(table) for table in tables])
    return LogisticSums(loss, float(residual.sum()), by_level, None if dense is None else residual @ dense)


def _loss_and_residual(score: Floats, positive: npt.NDArray[np.generic], weight: Floats | None) -> tuple[float, Floats]:
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
