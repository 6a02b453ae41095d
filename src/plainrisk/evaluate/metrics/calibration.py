"""Whether a risk means what it says: calibration errors by bins, and the reliability diagram.

All metrics take outcomes (1 = bad), predicted risks and optional weights; an integer weight counts as that
many equal rows. The bins are :math:`[i/K, (i+1)/K)`, the last closed at 1; empty ones are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from plainrisk.errors import missing_extra
from plainrisk.evaluate.metrics._weights import Floats, Ints, Scored, check_bins, check_scored, sums

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Reliability",
    "adaptive_calibration_error",
    "certainty",
    "expected_calibration_error",
    "maximum_calibration_error",
    "reliability",
]


def expected_calibration_error(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, bins: int = 15
) -> float:
    r"""Return the mean gap between observed and predicted risk over equal-width bins.

    .. math::

        ECE = \sum_i P(i) \, |o_i - e_i|,

    where :math:`P(i)` is the weighted share of rows in bin :math:`i`, :math:`o_i` their share of bad outcomes
    and :math:`e_i` their mean prediction.

    Examples
    --------
    >>> round(expected_calibration_error([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.9], bins=2), 3)
    0.275
    """
    return reliability(y_true, y_prob, sample_weight, bins).expected_error


def maximum_calibration_error(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, bins: int = 15
) -> float:
    r"""Return the largest gap between observed and predicted risk over equal-width bins.

    .. math::

        MCE = \max_i |o_i - e_i|

    Examples
    --------
    >>> round(maximum_calibration_error([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.9], bins=2), 3)
    0.4
    """
    return reliability(y_true, y_prob, sample_weight, bins).maximum_error


def adaptive_calibration_error(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, bins: int = 15
) -> float:
    r"""Return the mean gap between observed and predicted risk over bins of equal weight.

    A distinct prediction goes to bin :math:`\lfloor K c / W \rfloor`, where :math:`c` is the weight below it
    plus half its own and :math:`W` the total. So equal predictions stay together, and without ties and
    weights the bins hold equally many rows. The gaps are weighted by :math:`P(i)`, as ties can make the bins
    unequal.

    Examples
    --------
    >>> round(adaptive_calibration_error([0, 1, 1, 1], [0.1, 0.2, 0.8, 0.9], bins=2), 3)
    0.25
    """
    bins = check_bins(bins)
    scored = check_scored(y_true, y_prob, sample_weight)
    gaps = sums(_equal_weight_bins(scored, bins), scored.weight * (scored.bad - scored.risk), bins)
    return float(np.abs(gaps).sum()) / scored.total


def certainty(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
    """Return the weighted share of predictions that are exactly 0 or 1.

    The outcomes are checked and not used, so that all metrics are called alike.

    Examples
    --------
    >>> certainty([0, 0, 1, 1], [0.0, 0.4, 0.6, 1.0])
    0.5
    """
    scored = check_scored(y_true, y_prob, sample_weight)
    return scored.mean((scored.risk == 0) | (scored.risk == 1))


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predicted and observed risk over the bins that hold rows.

    Attributes
    ----------
    lower, upper : array of float, shape (k,)
        The edges of the bins.
    count : array of int, shape (k,)
        The number of rows of positive weight.
    weight : array of float, shape (k,)
        The sum of their weights.
    predicted : array of float, shape (k,)
        Their weighted mean prediction.
    observed : array of float, shape (k,)
        Their weighted share of bad outcomes.
    """

    lower: Floats
    upper: Floats
    count: npt.NDArray[np.int64]
    weight: Floats
    predicted: Floats
    observed: Floats

    @property
    def expected_error(self) -> float:
        """The expected calibration error of these bins."""
        return float(self.weight @ np.abs(self.observed - self.predicted) / self.weight.sum())

    @property
    def maximum_error(self) -> float:
        """The maximum calibration error of these bins."""
        return float(np.abs(self.observed - self.predicted).max())

    def to_dict(self) -> dict[str, list[float] | list[int]]:
        """Return plain lists, ready for JSON."""
        names = ("lower", "upper", "count", "weight", "predicted", "observed")
        return {name: getattr(self, name).tolist() for name in names}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the reliability diagram; the area of a point is the weight of its bin.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError:
                raise missing_extra("matplotlib", "plot") from None
            _, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
        ax.plot([0, 1], [0, 1], color="#6B6B6B", linewidth=1, linestyle="--", label="perfect")
        # The stem of a point is its gap: what the calibration errors average.
        ax.vlines(self.predicted, self.predicted, self.observed, color="#D55E00", linewidth=1.5, label="gap")
        area = 15 + 185 * self.weight / self.weight.max()
        ax.scatter(self.predicted, self.observed, s=area, color="#0072B2", alpha=0.85, zorder=3, label="bin")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted risk", ylabel="observed share of bad")
        ax.set_aspect("equal")
        ax.spines[["top", "right"]].set_visible(False)
        legend = ax.legend(loc="upper left", frameon=False)
        legend.legend_handles[-1].set_sizes([40])  # type: ignore[union-attr]
        return ax


def reliability(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, bins: int = 15
) -> Reliability:
    """Return predicted and observed risk over equal-width bins.

    Examples
    --------
    >>> table = reliability([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.9], bins=4)
    >>> table.lower.tolist(), table.count.tolist(), table.observed.tolist()
    ([0.0, 0.75], [2, 2], [0.5, 1.0])
    """
    bins = check_bins(bins)
    scored = check_scored(y_true, y_prob, sample_weight)
    return equal_width(scored, bins)


def equal_width(scored: Scored, bins: int) -> Reliability:
    """Return the reliability over equal-width bins of checked input."""
    edges = np.arange(bins + 1) / bins
    place = width_bins(scored.risk, bins)
    count = np.bincount(place, minlength=bins)
    kept = count > 0
    weight = sums(place, scored.weight, bins)[kept]
    predicted = sums(place, scored.weight * scored.risk, bins)[kept] / weight
    observed = sums(place, scored.weight * scored.bad, bins)[kept] / weight
    return Reliability(edges[:-1][kept], edges[1:][kept], count[kept], weight, predicted, observed)


def width_bins(risk: Floats, bins: int) -> Ints:
    """Return the bin of every prediction.

    Compared with the edges themselves: int(p * K) would put 0.29 of 100 bins below its own edge.
    """
    edges = np.arange(bins + 1) / bins
    return np.minimum(np.searchsorted(edges, risk, side="right") - 1, bins - 1)


def _equal_weight_bins(scored: Scored, bins: int) -> Ints:
    values, inverse = np.unique(scored.risk, return_inverse=True)
    own = sums(inverse, scored.weight, len(values))
    upto = np.cumsum(own)
    place = np.floor(bins * (upto - own / 2) / upto[-1]).astype(np.intp)
    return np.asarray(np.minimum(place, bins - 1)[inverse], dtype=np.intp)
