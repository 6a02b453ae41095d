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

from plainrisk._native.choice import compiled
from plainrisk._native.levels import LevelMap
from plainrisk._native.numbers import Numbers
from plainrisk._native.sums import contiguous, level_sums, look_up

__all__ = ["LogisticSums", "curvatures", "dense_newton", "logistic_sums", "look_up_risks"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]

# With more dense columns than this, a library's matrix product is faster.
_FEW_SLOPES = 16


@dataclass(frozen=True)
class LogisticSums:
    """Sums over rows.

    Attributes
    ----------
    loss : float
    gradient : (1 + columns,), of the residual times 1 and every column
    """

    loss: float
    gradient: Floats

    def __add__(self, other: LogisticSums) -> LogisticSums:
        return LogisticSums(self.loss + other.loss, self.gradient + other.gradient)


def logistic_sums(
    point: Floats,
    packs: Sequence[Codes],
    levels: LevelMap,
    positive: npt.NDArray[np.generic],
    weight: Floats | None = None,
    dense: Floats | None = None,
) -> LogisticSums:
    """Return the sums of losses and their gradient over rows.

    Parameters
    ----------
    point : (1 + columns,), the intercept and a coefficient for every column of the packs, then of `dense`
    packs, levels : rows, and what their codes stand for
    positive, weight : (n,) weight of the positive outcome, and total weight (default 1 each)
    dense : (n, q), numeric columns

    Examples
    --------
    >>> levels = LevelMap((np.eye(2),), (np.array([[0], [1]]),))
    >>> logistic_sums(np.zeros(3), [np.array([0, 1], np.uint8)], levels, np.array([1, 0], np.uint8)).gradient
    array([ 0. , -0.5,  0.5])
    """
    few = dense is None or dense.shape[1] <= _FEW_SLOPES
    if compiled is None or not few:
        return _sums_in_numpy(point, packs, levels, positive, weight, dense)
    outcome = np.ascontiguousarray(positive, None if positive.dtype == np.uint8 else np.float64)
    weights = None if weight is None else np.ascontiguousarray(weight, np.float64)
    columns = None if dense is None else np.asarray(dense, np.float64)
    gradient = np.zeros(len(point))
    at = np.ascontiguousarray(point, np.float64)
    loss = compiled.logistic(at, contiguous(packs), levels.compiled, outcome, weights, columns, gradient)
    return LogisticSums(loss, gradient)


def _sums_in_numpy(
    point: Floats,
    packs: Sequence[Codes],
    levels: LevelMap,
    positive: npt.NDArray[np.generic],
    weight: Floats | None,
    dense: Floats | None,
) -> LogisticSums:
    # Look-ups and sums both want wide integers.
    wide: Any = packs if compiled is not None else [pack.astype(np.intp) for pack in packs]
    score = look_up(float(point[0]), wide, levels.tables(point[1:]), len(positive))
    if dense is not None:
        score += dense @ point[1 + levels.n_columns :]
    loss, residual = _loss_and_residual(score, positive, weight)
    by_column = levels.by_column(level_sums(residual, wide, levels.sizes))
    by_dense = np.zeros(0) if dense is None else residual @ dense
    return LogisticSums(loss, np.concatenate([[residual.sum()], by_column, by_dense]))


def _loss_and_residual(score: Floats, positive: npt.NDArray[np.generic], weight: Floats | None) -> tuple[float, Floats]:
    """Return the summed loss and the residual of every row."""
    small = np.exp(-np.abs(score))
    softplus = np.maximum(score, 0.0) + np.log1p(small)
    p = np.where(score >= 0, 1.0, small) / (1.0 + small)
    outcome = positive.astype(np.float64)
    if weight is None:
        return float(softplus.sum() - outcome @ score), p - outcome
    return float(weight @ softplus - outcome @ score), weight * p - outcome


def curvatures(
    point: Floats,
    packs: Sequence[Codes],
    levels: LevelMap,
    bend: Floats,
    weight: Floats | None = None,
    dense: Floats | None = None,
) -> list[Floats]:
    """Fill `bend` with ``weight * p (1 - p)`` of every row, and return its sums by the codes of every pack.

    Parameters are those of `logistic_sums`; `bend` is (n,), in one piece.

    >>> bend = np.empty(2)
    >>> levels = LevelMap((np.eye(2),), (np.array([[0], [1]]),))
    >>> curvatures(np.array([0.0, np.log(3.0), 0.0]), [np.array([0, 1], np.uint8)], levels, bend)[0].round(4)
    array([0.1875, 0.25  ])
    """
    if compiled is None:
        score = look_up(float(point[0]), packs, levels.tables(point[1:]), len(bend))
        if dense is not None:
            score += dense @ point[1 + levels.n_columns :]
        small = np.exp(-np.abs(score, out=score))
        np.divide(small, (1.0 + small) ** 2, out=bend)
        if weight is not None:
            bend *= weight
        return level_sums(bend, packs, levels.sizes)
    by_code = np.zeros(sum(levels.sizes))
    weights = None if weight is None else np.ascontiguousarray(weight, np.float64)
    columns = None if dense is None else np.asarray(dense, np.float64)
    at = np.ascontiguousarray(point, np.float64)
    compiled.curvatures(at, contiguous(packs), levels.compiled, weights, columns, bend, by_code)
    return levels.split(by_code)


def dense_newton(
    point: Floats,
    dense: Floats | Numbers,
    positive: npt.NDArray[np.generic],
    weight: Floats | None = None,
    *,
    bent: bool = True,
) -> tuple[LogisticSums, Floats | None]:
    """Return the sums of losses and their gradient, and of ``weight * p (1 - p) * column * column``; column 0 is 1.

    The last ones only if `bent`.

    >>> sums, hessian = dense_newton(np.zeros(2), np.array([[2.0], [4.0]]), np.array([0, 1], np.uint8))
    >>> sums.gradient
    array([ 0., -1.])
    >>> hessian
    array([[0.5, 1.5],
           [1.5, 5. ]])
    """
    weights = None if weight is None else np.ascontiguousarray(weight, np.float64)
    if compiled is not None:
        outcome = np.ascontiguousarray(positive, None if positive.dtype == np.uint8 else np.float64)
        gradient, table = np.zeros(len(point)), np.zeros((len(point), len(point))) if bent else None
        at = np.ascontiguousarray(point, np.float64)
        loss = compiled.dense_newton(at, outcome, weights, *Numbers.of(dense).compiled, gradient, table)
        return LogisticSums(loss, gradient), table
    X = np.column_stack([np.ones(len(dense)), np.asarray(dense)])
    loss, residual = _loss_and_residual(X @ point, positive, weights)
    if not bent:
        return LogisticSums(loss, residual @ X), None
    small = np.exp(-np.abs(X @ point))
    bend = small / (1.0 + small) ** 2
    hessian = X.T @ ((bend if weights is None else bend * weights)[:, None] * X)
    return LogisticSums(loss, residual @ X), hessian


def look_up_risks(start: float, packs: Sequence[Codes], tables: Sequence[Floats], out: Floats) -> None:
    """Fill `out` with the probabilities of the scores ``start + tables[0][packs[0]] + tables[1][packs[1]] + ...``.

    >>> risks = np.empty(2)
    >>> look_up_risks(0.0, [np.array([1, 0], np.uint8)], [np.array([0.0, np.log(3.0)])], risks)
    >>> risks.round(12)
    array([0.75, 0.5 ])
    """
    if compiled is not None:
        compiled.look_up_risks(start, contiguous(packs), tables, out)
        return
    score = look_up(start, packs, tables, len(out))
    small = np.exp(-np.abs(score))
    np.divide(np.where(score >= 0, 1.0, small), 1.0 + small, out=out)
