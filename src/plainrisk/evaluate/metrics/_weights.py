"""The one check of what every metric is given."""

from __future__ import annotations

import math
import numbers
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError

__all__ = ["Bools", "Floats", "Ints", "Scored", "check_bins", "check_scored", "sums"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Scored:
    """Checked outcomes, predictions and weights; rows of weight 0 are gone, as if they had never come.

    Attributes
    ----------
    bad : array of bool, shape (n,)
        Whether the outcome is 1.
    risk : array of float, shape (n,)
        The predictions.
    weight : array of float, shape (n,)
        The weights, all positive.
    weighted : bool
        False when every weight is 1, which lets a metric count instead of add.
    """

    bad: Bools
    risk: Floats
    weight: Floats
    weighted: bool

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weight.sum()) if self.weighted else float(len(self.weight))

    def mean(self, values: Floats | Bools) -> float:
        """Return the weighted mean of one value per row."""
        return float(self.weight @ values) / self.total


def check_scored(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> Scored:
    """Return the checked input of a metric.

    Raises
    ------
    DataError
        Naming the argument and the first row at fault.

    Examples
    --------
    >>> check_scored([0, 1], [0.1, 1.2], None)
    Traceback (most recent call last):
    plainrisk.errors.DataError: y_prob: must lie between 0 and 1, row 1 (counting from 0) holds 1.2.
    """
    outcome = _column("y_true", y_true)
    risk = _column("y_prob", y_prob, hint=" Pass one column, as predict_proba(X)[:, 1].")
    _same_length("y_prob", risk, outcome)
    if len(outcome) == 0:
        raise DataError("y_true: there are no rows.")
    _refuse("y_true", "must be 0 or 1", outcome, ~((outcome == 0) | (outcome == 1)))
    _refuse("y_prob", "must lie between 0 and 1", risk, ~((risk >= 0) & (risk <= 1)))
    if sample_weight is None:
        return Scored(outcome == 1, risk, np.ones(len(outcome)), weighted=False)
    weight = _column("sample_weight", sample_weight)
    _same_length("sample_weight", weight, outcome)
    _refuse("sample_weight", "must be finite and not negative", weight, ~((weight >= 0) & np.isfinite(weight)))
    _check_sum(weight)
    keep = weight > 0
    if not keep.all():
        outcome, risk, weight = outcome[keep], risk[keep], weight[keep]
    return Scored(outcome == 1, risk, weight, weighted=True)


def check_bins(bins: int) -> int:
    """Return the number of bins, a whole number from 1 on."""
    try:
        count = operator.index(bins)
    except TypeError:
        count = 0
    if count < 1 or isinstance(bins, bool):
        raise DataError(f"bins: must be a whole number, 1 or more, got {bins!r}.")
    return count


def sums(place: Ints, values: Floats, bins: int) -> Floats:
    """Return the sum of the values of every bin."""
    # bincount is typed as counting only; with weights it returns floats.
    return np.asarray(np.bincount(place, weights=values, minlength=bins), dtype=np.float64)


def _column(name: str, values: npt.ArrayLike, hint: str = "") -> Floats:
    """Return the values as one column of floats."""
    array: npt.NDArray[Any] = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name}: must have one dimension, got shape {array.shape}.{hint}")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    # numpy would read the text "1" as a number; a label is no outcome, so only numbers pass.
    for row, value in enumerate(array.tolist()):
        if not isinstance(value, (numbers.Real, np.bool_)):
            raise DataError(f"{name}: must hold numbers, row {row} (counting from 0) holds {value!r}.")
    return array.astype(np.float64)


def _same_length(name: str, values: Floats, outcome: Floats) -> None:
    if len(values) != len(outcome):
        raise DataError(f"{name}: has {len(values)} rows where y_true has {len(outcome)}.")


def _refuse(name: str, rule: str, values: Floats, bad: Bools) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{name}: {rule}, row {row} (counting from 0) holds {float(values[row])!r}.")


def _check_sum(weight: Floats) -> None:
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total == 0:
        raise DataError("sample_weight: all weights are 0.")
    if math.isinf(total):
        raise DataError("sample_weight: the sum of the weights overflows; divide them by their largest.")
