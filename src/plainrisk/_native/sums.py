"""Sums over rows by joint code: what the solvers need of the rows.

A joint code is one small integer per row for the levels of one or several features. Rows have several of them, each
with a table of scores; everything below is a loop over rows that reads only codes and tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plainrisk._native.choice import compiled
from plainrisk._types import Array, Codes, Floats

__all__ = ["LogisticPass", "level_sums", "logistic_pass", "look_up", "pair_sums"]


def look_up(start: float, codes: Sequence[Codes], tables: Sequence[Floats], n_rows: int) -> Floats:
    """Return ``start + tables[0][codes[0]] + tables[1][codes[1]] + ...``, added from left to right.

    >>> look_up(1.0, [np.array([0, 1], np.uint8)], [np.array([2.0, 4.0])], n_rows=2)
    array([3., 5.])
    """
    score = np.full(n_rows, start)
    if compiled is not None:
        compiled.look_up(score, _contiguous(codes), tables)
        return score
    for table, code in zip(tables, codes, strict=True):
        score += table[code]
    return score


def level_sums(values: Floats | None, codes: Sequence[Codes], sizes: Sequence[int]) -> list[Floats]:
    """Return for every joint code the sum of the values over the rows with each of its numbers.

    Parameters
    ----------
    values : (n,), or None to count rows
    codes : (n,) each
    sizes : how many numbers each joint code has

    >>> level_sums(np.array([1.0, 2.0, 4.0]), [np.array([0, 1, 0], np.uint8)], [2])
    [array([5., 2.])]
    """
    if compiled is None:
        sized = zip(codes, sizes, strict=True)
        return [np.bincount(code, values, minlength=n).astype(np.float64, copy=False) for code, n in sized]
    sums = [np.zeros(size) for size in sizes]
    if sums:
        given = None if values is None else np.ascontiguousarray(values, np.float64)
        compiled.level_sums(given, _contiguous(codes), len(codes[0]), sums)
    return sums


def pair_sums(
    values: Floats | None, first: Codes, others: Sequence[Codes], size: int, sizes: Sequence[int]
) -> list[Floats]:
    """Return the sums of the values over the rows with each pair of numbers of `first` and of one other joint code.

    Parameters
    ----------
    values : (n,), or None to count rows
    size, sizes : how many numbers `first` and each of the others have

    Returns
    -------
    list of (size, sizes[k])

    Examples
    --------
    >>> a, b = np.array([0, 1, 1], np.uint8), np.array([0, 0, 1], np.uint8)
    >>> pair_sums(None, a, [b], 2, [2])
    [array([[1., 0.],
           [1., 1.]])]
    """
    if compiled is None:
        wide = first.astype(np.intp)
        keys = (wide * width + other for other, width in zip(others, sizes, strict=True))
        flat = [np.bincount(key, values, minlength=size * width) for key, width in zip(keys, sizes, strict=True)]
        return [table.reshape(size, -1).astype(np.float64, copy=False) for table in flat]
    tables = [np.zeros((size, width)) for width in sizes]
    if tables:
        given = None if values is None else np.ascontiguousarray(values, np.float64)
        compiled.pair_sums(given, _contiguous([first]), _contiguous(others), len(first), size, tables)
    return tables


@dataclass(frozen=True)
class LogisticPass:
    """The logistic loss of some rows.

    Attributes
    ----------
    loss, residual_sum : summed over the rows
    by_code : the residuals summed by the numbers of every joint code
    residual, curvature : (n,), or None where they were not asked for
    """

    loss: float
    residual_sum: float
    by_code: list[Floats]
    residual: Floats | None
    curvature: Floats | None


def logistic_pass(
    intercept: float,
    codes: Sequence[Codes],
    tables: Sequence[Floats],
    positive: Array,
    weight: Floats | None = None,
    offset: Floats | None = None,
    *,
    residual: bool = False,
    curvature: bool = False,
) -> LogisticPass:
    """Pass over rows once: with score s, total weight w and positive weight t of a row, and p = 1 / (1 + exp(-s)),

        loss = w log(1 + exp(s)) - t s      residual = w p - t      curvature = w p (1 - p)

    The compiled loop has its own exponential and agrees with numpy to rounding, not to the last bit.

    Parameters
    ----------
    intercept, codes, tables, offset : the score is ``intercept + offset + tables[0][codes[0]] + ...``
    positive : (n,) weight of the positive outcome, as bytes where rows have no weights
    weight : (n,), default 1 each
    residual, curvature : whether to return them row by row

    Examples
    --------
    >>> passed = logistic_pass(0.0, [np.array([0, 1], np.uint8)], [np.zeros(2)], np.array([1, 0], np.uint8))
    >>> passed.by_code
    [array([-0.5,  0.5])]
    """
    n = len(positive)
    if compiled is None:
        return _pass_in_numpy(intercept, codes, tables, positive, weight, offset)
    sums = [np.zeros(len(table)) for table in tables]
    left = np.empty(n) if residual else None
    curved = np.empty(n) if curvature else None
    outcome = np.ascontiguousarray(positive, None if positive.dtype == np.uint8 else np.float64)
    row_weight = None if weight is None else np.ascontiguousarray(weight, np.float64)
    start = None if offset is None else np.ascontiguousarray(offset, np.float64)
    loss, total = compiled.logistic(
        intercept, start, _contiguous(codes), tables, outcome, row_weight, sums, left, curved
    )
    return LogisticPass(loss, total, sums, left, curved)


def _pass_in_numpy(
    intercept: float,
    codes: Sequence[Codes],
    tables: Sequence[Floats],
    positive: Array,
    weight: Floats | None,
    offset: Floats | None,
) -> LogisticPass:
    score = look_up(intercept, codes, tables, len(positive))
    if offset is not None:
        score += offset
    small = np.exp(-np.abs(score))
    softplus = np.maximum(score, 0.0) + np.log1p(small)
    p = np.where(score >= 0, 1.0, small) / (1.0 + small)
    curvature = small / (1.0 + small) ** 2
    outcome = positive.astype(np.float64)
    if weight is not None:
        softplus, p, curvature = weight * softplus, weight * p, weight * curvature
    residual = p - outcome
    by_code = level_sums(residual, codes, [len(table) for table in tables])
    return LogisticPass(float(softplus.sum() - outcome @ score), float(residual.sum()), by_code, residual, curvature)


def _contiguous(codes: Sequence[Codes]) -> list[Codes]:
    return [np.ascontiguousarray(code) for code in codes]
