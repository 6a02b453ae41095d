"""Calibration of probabilities: calibration errors by bins, the reliability diagram, the calibration line.

Equal-width bins are :math:`[i/K, (i+1)/K)`, the last closed at 1; empty ones are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from plainrisk._types import Counts, Floats, Index
from plainrisk.figures import new_axes
from plainrisk.intervals import normal_quantile, wilson
from plainrisk.measure.predictions import Predictions, Weights, bin_sums, check_bins, check_predictions
from plainrisk.tables import TableResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CalibrationLine",
    "Reliability",
    "calibration_line",
    "certainty",
    "equal_weight_bins",
    "equal_width_bins",
    "expected_calibration_error",
    "maximum_calibration_error",
    "reliability",
]

NEWTON_STEPS = 30  # a line that has a maximum is found in under ten


def expected_calibration_error(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None, bins: int = 15
) -> float:
    r"""Return the mean gap between observed and predicted risk over equal-width bins.

    .. math:: ECE = \sum_i P(i) \, |o_i - e_i|,

    where :math:`P(i)` is the weighted share of rows in bin :math:`i`, :math:`o_i` their share of bad outcomes
    and :math:`e_i` their mean prediction.

    >>> round(expected_calibration_error([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.9], bins=2), 3)
    0.275
    """
    return reliability(y_true, y_prob, sample_weight, bins).expected_error


def maximum_calibration_error(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None, bins: int = 15
) -> float:
    r"""Return the largest gap between observed and predicted risk over equal-width bins.

    .. math:: MCE = \max_i |o_i - e_i|

    >>> round(maximum_calibration_error([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.9], bins=2), 3)
    0.4
    """
    return reliability(y_true, y_prob, sample_weight, bins).maximum_error


def certainty(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None) -> float:
    """Return the weighted share of predictions that are exactly 0 or 1.

    The outcomes are checked and not used, so that all metrics have the same arguments.

    >>> certainty([0, 0, 1, 1], [0.0, 0.4, 0.6, 1.0])
    0.5
    """
    checked = check_predictions(y_true, y_prob, sample_weight)
    return checked.mean((checked.risk == 0) | (checked.risk == 1))


# ---- the reliability diagram


@dataclass(frozen=True, eq=False, repr=False)
class Reliability(TableResult):
    """Predicted and observed risk over the nonempty bins.

    Attributes
    ----------
    lower, upper : (k,) the edges of the bins; of bins of equal weight, their smallest and largest prediction
    count : (k,) the number of rows of positive weight
    weight : (k,) the sum of their weights
    predicted : (k,) their weighted mean prediction
    observed : (k,) their weighted share of bad outcomes
    low, high : (k,) Wilson's interval of the observed share; of weighted rows, with their effective number
    """

    lower: Floats
    upper: Floats
    count: Counts
    weight: Floats
    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats

    @property
    def expected_error(self) -> float:
        """The expected calibration error of these bins."""
        return float(self.weight @ np.abs(self.observed - self.predicted) / self.weight.sum())

    @property
    def maximum_error(self) -> float:
        """The maximum calibration error of these bins."""
        return float(np.abs(self.observed - self.predicted).max())

    def _headline(self) -> str:
        return f"Calibration error: {self.expected_error:.4f} expected, {self.maximum_error:.4f} at most"

    def columns(self) -> dict[str, list[float] | list[int]]:
        """Return the bins as columns by name."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    to_dict = columns

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the reliability diagram with intervals, by default in a new figure; a point's area is its weight."""
        ax = new_axes(4.6, 4.4) if ax is None else ax
        ax.plot([0, 1], [0, 1], color="#6B6B6B", linewidth=1, linestyle="--", label="perfect")
        ax.vlines(self.predicted, self.low, self.high, color="#0072B2", linewidth=4, alpha=0.3, label="interval")
        # The stem of a point is its gap, of which the calibration errors are averages.
        ax.vlines(self.predicted, self.predicted, self.observed, color="#D55E00", linewidth=1.5, label="gap")
        area = 15 + 185 * self.weight / self.weight.max()
        ax.scatter(self.predicted, self.observed, s=area, color="#0072B2", alpha=0.85, zorder=3, label="bin")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted risk", ylabel="observed share of bad")
        ax.set_aspect("equal")
        ax.spines[["top", "right"]].set_visible(False)
        legend = ax.legend(loc="upper left", frameon=False)
        legend.legend_handles[-1].set_sizes([40])  # type: ignore[union-attr]
        return ax


def reliability(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights = None, bins: int = 15) -> Reliability:
    """Return predicted and observed risk over equal-width bins.

    >>> table = reliability([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.9], bins=4)
    >>> table.lower.tolist(), table.count.tolist(), table.observed.tolist()
    ([0.0, 0.75], [2, 2], [0.5, 1.0])
    """
    bins = check_bins(bins)
    return equal_width_bins(check_predictions(y_true, y_prob, sample_weight), bins)


def equal_width_bins(checked: Predictions, bins: int, level: float = 0.95) -> Reliability:
    """Return the reliability of checked input over equal-width bins."""
    bin_of_row, used = _width_bins(checked.risk, bins)
    return _reliability(checked, bin_of_row, used / bins, (used + 1) / bins, level)


def equal_weight_bins(checked: Predictions, bins: int, level: float = 0.95) -> Reliability:
    """Return the reliability of checked input over bins of about equal weight."""
    used, bin_of_row = np.unique(_weight_bins(checked, bins), return_inverse=True)
    lower, upper = np.full(len(used), math.inf), np.zeros(len(used))
    np.minimum.at(lower, bin_of_row, checked.risk)
    np.maximum.at(upper, bin_of_row, checked.risk)
    return _reliability(checked, bin_of_row, lower, upper, level)


def _reliability(checked: Predictions, bin_of_row: Index, lower: Floats, upper: Floats, level: float) -> Reliability:
    weight = bin_sums(bin_of_row, checked.weight)
    predicted, observed = (bin_sums(bin_of_row, checked.weight * x) / weight for x in (checked.risk, checked.bad))
    effective, z = weight**2 / bin_sums(bin_of_row, checked.spread**2), normal_quantile(level)
    shares = [wilson(share * n, n, z) for share, n in zip(observed.tolist(), effective.tolist(), strict=True)]
    low, high = np.array([share.low for share in shares]), np.array([share.high for share in shares])
    rows = bin_sums(bin_of_row, checked.rows.astype(np.float64)).astype(np.int64)
    return Reliability(lower, upper, rows, weight, predicted, observed, low, high)


def _weight_bins(checked: Predictions, bins: int) -> Index:
    r"""Return the bin of every row; bins may be empty.

    A distinct prediction goes to bin :math:`\lfloor K c / W \rfloor`, where :math:`c` is the weight below it plus half
    its own and :math:`W` the total: equal predictions stay together, and others are in bins of about equal weight.
    """
    _, value_of_row = np.unique(checked.risk, return_inverse=True)
    weight_of_value = bin_sums(value_of_row, checked.weight)
    upto = np.cumsum(weight_of_value)
    bin_of_value = np.minimum(np.floor(bins * (upto - weight_of_value / 2) / upto[-1]).astype(np.intp), bins - 1)
    return np.asarray(bin_of_value[value_of_row], dtype=np.intp)


def _width_bins(risk: Floats, bins: int) -> tuple[Index, Index]:
    """Return the bin of every row, numbered among the bins that have rows, and those bins.

    Predictions are compared with the edges: of 100 bins, int(p * K) would put 0.29 below its own edge.
    """
    edges = np.arange(bins + 1) / bins
    bin_of_row = np.minimum(np.searchsorted(edges, risk, side="right") - 1, bins - 1)
    used = np.flatnonzero(np.bincount(bin_of_row))
    return np.searchsorted(used, bin_of_row), used


# ---- the calibration line


@dataclass(frozen=True, eq=False)
class CalibrationLine:
    r"""The logistic regression of the outcome on the log odds of the risk.

    .. math:: logit P(y = 1) = a + b \; logit(p)

    The line of a calibrated risk has intercept 0 and slope 1; a slope below 1 means that the risks are too extreme.

    Attributes
    ----------
    intercept, slope : a and b; NaN where the likelihood has no maximum
    influence : (2, n) of each row on the two; the sum of squares is the variance (Huber's sandwich)
    certain : rows left out because their risk is 0 or 1, whose log odds are infinite
    """

    intercept: float
    slope: float
    influence: Floats
    certain: int


def calibration_line(checked: Predictions) -> CalibrationLine:
    """Fit the calibration line by Newton's method.

    >>> line = calibration_line(check_predictions([0, 1, 0, 1, 1, 0], [0.2, 0.2, 0.2, 0.8, 0.8, 0.8], None))
    >>> round(line.slope, 3)  # observed 1/3 and 2/3: log 2 / log 4
    0.5
    """
    inside = (checked.risk > 0) & (checked.risk < 1)
    influence, certain = np.zeros((2, len(inside))), int(checked.rows[~inside].sum())
    risk, weight = checked.risk[inside], checked.weight[inside]
    design = np.column_stack([np.ones(len(risk)), np.log(risk) - np.log1p(-risk)])
    line, none = np.array([0.0, 1.0]), CalibrationLine(math.nan, math.nan, influence * math.nan, certain)
    for _ in range(NEWTON_STEPS):
        fitted = 1 / (1 + np.exp(-np.clip(design @ line, -700, 700)))
        residuals = (checked.bad[inside] - fitted)[:, None] * design
        curvature = (design * (weight * fitted * (1 - fitted))[:, None]).T @ design
        if not np.linalg.cond(curvature) < 1 / np.finfo(np.float64).eps:
            return none  # one distinct risk, or outcomes that the risk separates
        step = np.linalg.solve(curvature, weight @ residuals)
        line = line + step
        if np.abs(step).max() < 1e-9:
            influence[:, inside] = np.linalg.solve(curvature, residuals.T * checked.spread[inside])
            return CalibrationLine(float(line[0]), float(line[1]), influence, certain)
    return none
