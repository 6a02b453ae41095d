"""The input of every metric, checked once: outcomes, predicted risks and weights."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from plainrisk._types import Array, Bools, Counts, Floats, Index
from plainrisk.checks import check_parameters, whole
from plainrisk.errors import DataError
from plainrisk.form.risks import RiskSums

__all__ = ["Predictions", "Weights", "bin_sums", "check_bins", "check_column", "check_predictions"]

Weights = ArrayLike | None

BINS = {"bins": whole(1, 1_000_000)}  # each bin takes memory, also an empty one


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked outcomes, predictions and weights, without the rows of weight 0.

    An entry is a row, or several rows with the same prediction and outcome that were counted where they are stored.

    Attributes
    ----------
    bad : (n,) whether the outcome is 1
    risk : (n,) the predictions
    weight : (n,) the weights, all positive
    spread : (n,) the root of the sum of the rows' squared weights; for one row, its weight
    rows : (n,) the number of rows in an entry
    """

    bad: Bools
    risk: Floats
    weight: Floats
    spread: Floats
    rows: Counts

    @classmethod
    def of_rows(cls, bad: Bools, risk: Floats, weight: Floats | None = None) -> Self:
        """Return checked rows, without weights unless they are given."""
        weight = np.ones(len(bad)) if weight is None else weight
        return cls(bad, risk, weight, weight, np.ones(len(bad), np.int64))

    @classmethod
    def of_sums(cls, sums: RiskSums) -> Self:
        """Return rows that were counted, each of them checked."""
        return cls(sums.bad, sums.risk, sums.weight, np.sqrt(sums.squares), sums.rows)

    def take(self, index: Index) -> Self:
        """Return some of the entries."""
        return type(self)(**{name: array[index] for name, array in vars(self).items()})

    @property
    def are_rows(self) -> bool:
        """Whether every entry stands for one row."""
        return bool((self.rows == 1).all())

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weight.sum())

    @property
    def one_outcome(self) -> bool:
        """Whether all rows have the same outcome."""
        return bool(self.bad.all() or not self.bad.any())

    def mean(self, values: Floats | Bools) -> float:
        """Return the weighted mean of one value per row."""
        return float(self.weight @ values) / self.total


def check_predictions(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights) -> Predictions:
    """Return the checked input of a metric, or raise an error that names the argument and the first row at fault.

    >>> check_predictions([0, 1], [0.1, 1.2], None)
    Traceback (most recent call last):
    plainrisk.errors.DataError: y_prob: must lie between 0 and 1, and row 1 (counting from 0) does not fit.
    """
    outcome = _column("y_true", y_true)
    # In one piece, so that sums over it do not depend on its origin.
    risk = np.ascontiguousarray(_column("y_prob", y_prob, hint=" Pass one column, as predict_proba(X)[:, 1]."))
    _require_length("y_prob", risk, len(outcome))
    if len(outcome) == 0:
        raise DataError("y_true: there are no rows.")
    _require("y_true", "must be 0 or 1", outcome, (outcome == 0) | (outcome == 1))
    _require("y_prob", "must lie between 0 and 1", risk, (risk >= 0) & (risk <= 1))
    if sample_weight is None:
        return Predictions.of_rows(outcome == 1, risk)
    weight = check_column("sample_weight", sample_weight, len(outcome))
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total == 0:
        raise DataError("sample_weight: all weights are 0.")
    if not 1e-99 < total < 1e99:  # their squares are summed too
        raise DataError(f"sample_weight: the weights add up to {total:g}. Scale them to about 1 per row.")
    kept = weight > 0
    return Predictions.of_rows(outcome[kept] == 1, risk[kept], weight[kept])


def check_column(name: str, values: ArrayLike, rows: int) -> Floats:
    """Return one finite number per row, none negative, or raise an error that names the first wrong row."""
    column = _column(name, values)
    _require_length(name, column, rows)
    _require(name, "must be finite and not negative", column, (column >= 0) & np.isfinite(column))
    return column


def check_bins(bins: int) -> int:
    """Return the number of bins, or raise an error if it is not valid."""
    check_parameters("metrics", {"bins": bins}, BINS)
    return int(bins)


def bin_sums(bin_of_row: Index, values: Floats) -> Floats:
    """Return the sum of the values of every bin."""
    # bincount is typed as counting only; with weights it returns floats.
    return np.asarray(np.bincount(bin_of_row, weights=values), dtype=np.float64)


def _column(name: str, values: ArrayLike, hint: str = "") -> Floats:
    """Return the values as one column of floats."""
    if np.ma.is_masked(values):
        raise DataError(f"{name}: masked rows have no value. Leave those rows out.")
    array: Array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name}: must have one dimension, got shape {array.shape}.{hint}")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    # numpy would read the text "1" as a number; a label is no outcome, so only numbers pass.
    for row, value in enumerate(array.tolist()):
        if not isinstance(value, (numbers.Real, np.bool_)):
            kind = type(value).__name__
            raise DataError(f"{name}: must hold numbers, and row {row} (counting from 0) holds a value of type {kind}.")
    return array.astype(np.float64)


def _require_length(name: str, values: Floats, rows: int) -> None:
    if len(values) != rows:
        raise DataError(f"{name}: has {len(values)} rows where y_true has {rows}.")


def _require(name: str, rule: str, values: Floats, obeyed: Bools) -> None:
    if not obeyed.all():
        row = int(np.argmin(obeyed))
        what = "is missing" if np.isnan(values[row]) else "does not fit"
        raise DataError(f"{name}: {rule}, and row {row} (counting from 0) {what}.")
