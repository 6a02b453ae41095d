"""How often each value of one feature occurs, in all and with the positive outcome.

Histograms of blocks of rows add up, and those of folds subtract: all that binning needs of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError

__all__ = ["Histogram", "checked", "histogram", "merge", "sorted_histogram", "subtract", "tabulated"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]
_Number = TypeVar("_Number", np.int64, np.float64)

_TABLE_SHARE = 1  # rows per tabulated value below which sorting is as good
_TABLE_BLOCK = 1 << 16  # rows counted at once when values are tabulated


@dataclass(frozen=True, eq=False)
class Histogram:
    """Rows and weight at every distinct value of one feature.

    Attributes
    ----------
    values : float32 array of shape (n,)
        Distinct values, ascending.
    rows : int64 array of shape (n,)
        Rows of positive weight at the value, at least 1.
    weight : float64 array of shape (n,)
        Their total weight; equal to ``rows`` without weights.
    positive : float64 array of shape (n,)
        The weight of those with target 1.
    """

    values: Singles
    rows: Counts
    weight: Floats
    positive: Floats


def histogram(x: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> Histogram:
    """Count one feature's values, in all and with target 1.

    Parameters
    ----------
    x : array of shape (rows,)
        Finite values; they are rounded to float32, and -0.0 is 0.0.
    y : array of shape (rows,)
        Target, 0 or 1.
    weight : array of shape (rows,), optional
        Nonnegative weights; rows of weight 0 are dropped.

    Examples
    --------
    >>> h = histogram([3, 1, 3, 2], [1, 0, 0, 1])
    >>> h.values, h.rows, h.positive
    (array([1., 2., 3.], dtype=float32), array([1, 1, 2]), array([0., 1., 1.]))
    """
    single, bad, mass = checked(x, y, weight)
    if single.size == 0:
        return Histogram(single, np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    found = tabulated(single, bad, mass)
    if found is not None:
        return found
    return sorted_histogram(single, bad) if mass is None else _sorted_weighted(single, bad, mass)


def merge(a: Histogram, b: Histogram) -> Histogram:
    """Return the histogram of two blocks of rows together.

    Examples
    --------
    >>> merge(histogram([1, 2], [0, 1]), histogram([2, 5], [0, 1])).rows
    array([1, 2, 1])
    """
    if a.values.size < b.values.size:
        a, b = b, a  # fewer values to look up
    at = np.searchsorted(a.values, b.values)
    new = np.ones(at.size, np.bool_) if a.values.size == 0 else a.values.take(at, mode="clip") != b.values
    values = np.insert(a.values, at[new], b.values[new])
    at += np.cumsum(new) - new
    old = np.ones(values.size, np.bool_)
    old[at[new]] = False
    place = np.flatnonzero(old)

    def total(first: npt.NDArray[_Number], second: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        out = np.zeros(values.size, first.dtype)
        out[place] = first
        out[at] += second
        return out

    return Histogram(values, total(a.rows, b.rows), total(a.weight, b.weight), total(a.positive, b.positive))


def subtract(a: Histogram, b: Histogram) -> Histogram:
    """Return the histogram of `a` without the rows of `b`, a part of them; emptied values are dropped.

    Exact where sums of weights are exact; else a value's class weights carry the rounding of the difference.

    Examples
    --------
    >>> subtract(histogram([1, 2, 2], [0, 1, 0]), histogram([2, 1], [1, 0])).values
    array([2.], dtype=float32)
    """
    at = np.searchsorted(a.values, b.values)
    known = at < a.values.size
    known[known] = a.values[at[known]] == b.values[known]
    rows = a.rows.copy()
    if known.all():
        rows[at] -= b.rows
    if not known.all() or (rows < 0).any():
        raise DataError("subtract: the second histogram holds rows that are not in the first. Pass a part of it.")
    weight, positive = a.weight.copy(), a.positive.copy()
    weight[at] -= b.weight
    positive[at] -= b.positive
    keep = rows > 0
    # Rounding of weights that are not exact sums must not make a negative class.
    weight = np.maximum(weight[keep], 0.0)
    return Histogram(a.values[keep], rows[keep], weight, np.clip(positive[keep], 0.0, weight))


def checked(x: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike | None) -> tuple[Singles, Bools, Floats | None]:
    """Return x as float32, y as booleans and the weights, without rows of weight 0."""
    values, target = np.asarray(x), np.asarray(y)
    mass = None if weight is None else np.asarray(weight, np.float64)
    shapes = [v.shape for v in (values, target, mass) if v is not None]
    if values.ndim != 1 or len(set(shapes)) > 1:
        raise DataError(f"histogram: x, y and weight must be one-dimensional and equally long, got {shapes}.")
    bad = target if target.dtype == np.bool_ else target == 1
    if bad is not target and (other := ~bad & (target != 0)).any():
        raise DataError(f"histogram: the target must be 0 or 1, got {target[other][0]!s}.")
    if mass is not None:
        if not (np.isfinite(mass) & (mass >= 0)).all():
            raise DataError("histogram: weights must be finite and nonnegative. Correct or drop those rows.")
        some = mass > 0
        if not some.all():
            values, bad, mass = values[some], bad[some], mass[some]
    with np.errstate(over="ignore"):
        single = values.astype(np.float32, copy=False)
    far = ~np.isfinite(single)
    if far.any():
        if np.isfinite(values).all():
            raise DataError(
                f"histogram: the value {values[far][0]:g} is too large for float32 "
                f"(at most {np.finfo(np.float32).max:g}). Rescale the feature or declare it a special value."
            )
        raise DataError("histogram: x holds missing or infinite values. Remove them first.")
    return single, bad, mass


def tabulated(x: Singles, bad: Bools, weight: Floats | None) -> Histogram | None:
    """Count whole numbers of a narrow range in a table, some ten times faster than sorting; else None."""
    low = x.min()
    width = float(x.max()) - float(low) + 1.0
    if width > min(x.size / _TABLE_SHARE, 2.0**24):
        return None
    size = int(width)
    step = max(_TABLE_BLOCK, size)
    rows = np.zeros(2 * size, np.int64)
    mass = rows if weight is None else np.zeros(2 * size)
    for start in range(0, x.size, step):
        part = x[start : start + step]
        if (np.rint(part) != part).any():
            return None
        code = (part - low).astype(np.intp)  # exact: whole numbers less than 2**24 apart
        code *= 2
        code += bad[start : start + step]
        rows += np.bincount(code, minlength=2 * size)
        if weight is not None:
            mass += np.bincount(code, weight[start : start + step], minlength=2 * size)
    by_class = mass.reshape(size, 2).astype(np.float64)
    count = rows.reshape(size, 2).sum(axis=1)
    seen = np.flatnonzero(count)
    values = (seen + float(low)).astype(np.float32)
    return Histogram(values, count[seen], by_class[seen].sum(axis=1), by_class[seen, 1])


def _runs(ordered: Singles) -> tuple[Counts, Counts]:
    """Return where each run of equal values starts, and its length."""
    first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    return starts, np.diff(starts, append=ordered.size)


def sorted_histogram(x: Singles, bad: Bools) -> Histogram:
    """Count the values of rows that are checked and have no weights."""
    # Sorting values twice (all of them, and the rarer class) is cheaper than one argsort.
    rare_is_bad = 2 * np.count_nonzero(bad) <= bad.size
    rare = np.sort(np.compress(bad if rare_is_bad else ~bad, x))
    ordered = np.sort(x)
    starts, rows = _runs(ordered)
    values = ordered[starts] + np.float32(0)  # -0.0 becomes 0.0
    del ordered
    starts, rare_rows = _runs(rare)
    positive = np.zeros(values.size)
    positive[np.searchsorted(values, rare[starts])] = rare_rows
    weight = rows.astype(np.float64)
    if not rare_is_bad:
        np.subtract(weight, positive, out=positive)
    return Histogram(values, rows, weight, positive)


def _sorted_weighted(x: Singles, bad: Bools, weight: Floats) -> Histogram:
    order = np.argsort(x, kind="stable")  # stable: tied weights are added in row order on every machine
    ordered = x[order]
    starts, rows = _runs(ordered)
    mass, ill = weight[order], bad[order]
    # By class, so that a pure value has exactly no weight in the other class.
    positive = np.add.reduceat(np.where(ill, mass, 0.0), starts)
    negative = np.add.reduceat(np.where(ill, 0.0, mass), starts)
    return Histogram(ordered[starts] + np.float32(0), rows, positive + negative, positive)
