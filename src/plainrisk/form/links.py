r"""Links: how an additive score becomes a probability.

A link is frozen data with this contract; a new one fulfills it and is added to `Link`.

    value(score) the probability, nondecreasing in the score, within `range` derivative(score) its slope range the
    smallest and the largest possible probability line(score) (offset, slope) of the straight piece that contains each
    score, so that the unclipped probability is offset + slope * score exactly; None where the link is curved

`best_bands` finds the best line of a few pieces through the logistic sigmoid. On the half line :math:`x \ge 0` let
:math:`q(x) = 1/(1 + e^x)` be the distance to 1, and let :math:`L` be the continuous line through
:math:`(0, \frac12), (t_1, g_1), \dots, (t_m, 0)`, zero from :math:`t_m` on. At the optimum the error :math:`L - q` is
orthogonal to every straight line on every piece (on the first, to :math:`x`). With :math:`u` running from 0 to 1 along
piece :math:`k` these are :math:`2m - 1` equations for as many unknowns,

.. math::

    \int_0^1 u \, (L - q) \, du = 0 \quad (k = 1..m), \qquad
    \int_0^1 (1 - u) \, (L - q) \, du = 0 \quad (k = 2..m),

solved by Newton's method.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.errors import DataError, ModelFileError

__all__ = ["ALPHA_STAR", "LARGEST", "Bands", "BestBands", "Linear", "Link", "Logistic", "at_odds", "best_bands"]

#: The clipped line that is 0 at -alpha and 1 at alpha is nearest to the logistic sigmoid, by squared error over all
#: scores, at this alpha (to the last bit).
ALPHA_STAR = 2.5996819083143223

# The bounds on the numbers of links and shapes, so that their sums and products are finite: infinity minus infinity is
# not a number.
LARGEST = 1e100


class Logistic(msgspec.Struct, frozen=True, tag="logistic", tag_field="kind", forbid_unknown_fields=True):
    """The sigmoid, ``1 / (1 + exp(-score))``: the score is in log odds.

    >>> float(Logistic().value(np.array(0.0)))
    0.5
    """

    @property
    def range(self) -> tuple[float, float]:
        """All of [0, 1]; the ends are reached only by rounding."""
        return 0.0, 1.0

    def value(self, score: Floats) -> Floats:
        """Return the probability."""
        # Three steps that each keep an order after rounding. The usual exp(score) / (1 + exp(score)) does not:
        # its two ends may round apart, and of two scores next to each other the higher may get the lower risk.
        out = np.negative(score, out=np.empty(np.shape(score)))
        np.minimum(out, 700.0, out=out)  # its exp is still a number; the risk there, 1e-304, is as good as 0
        np.exp(out, out=out)
        out += 1.0
        return np.divide(1.0, out, out=out)

    def derivative(self, score: Floats) -> Floats:
        """Return the slope, p (1 - p)."""
        small = np.exp(-np.abs(score))
        return small / (1.0 + small) ** 2

    def line(self, score: Floats) -> tuple[Floats, Floats] | None:
        """None: the sigmoid has no straight piece."""
        return None


class Linear(msgspec.Struct, frozen=True, tag="linear", tag_field="kind", forbid_unknown_fields=True):
    """A clipped line, ``clip(offset + slope * score, low, high)``.

    With offset 1/2 and slope 1/(2 alpha) it is the paper's linearised link; with offset 0 and slope 1 the
    score is the probability itself.

    >>> Linear.from_alpha(2.5).value(np.array([-5.0, 0.0, 1.0, 5.0])).tolist()
    [0.0, 0.5, 0.7, 1.0]
    """

    slope: float = 1.0
    offset: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _require_bounded("a linear link", (self.slope, self.offset, self.low, self.high))
        if self.slope <= 0 or not 0 <= self.low < self.high <= 1:
            raise ModelFileError("Model: a linear link must rise, from low to high inside [0, 1].")

    @classmethod
    def from_alpha(cls, alpha: float, epsilon: float = 0.0) -> Linear:
        """Return the line that is 0 at -alpha, 1/2 at 0 and 1 at alpha, clipped to [epsilon, 1 - epsilon]."""
        return cls(slope=1.0 / (2.0 * alpha), offset=0.5, low=epsilon, high=1.0 - epsilon)

    @property
    def range(self) -> tuple[float, float]:
        """The probabilities at which the line is clipped."""
        return self.low, self.high

    def value(self, score: Floats) -> Floats:
        """Return the probability."""
        return np.clip(self.offset + self.slope * score, self.low, self.high)

    def derivative(self, score: Floats) -> Floats:
        """Return the slope: 0 where the line is clipped."""
        line = self.offset + self.slope * score
        return np.where((line < self.low) | (line > self.high), 0.0, self.slope)

    def line(self, score: Floats) -> tuple[Floats, Floats] | None:
        """Return the single line of the link, for every score."""
        return np.full(score.shape, self.offset), np.full(score.shape, self.slope)


class Bands(msgspec.Struct, frozen=True, dict=True, tag="bands", tag_field="kind", forbid_unknown_fields=True):
    """A rising line of a few straight pieces through (knot, value) points, clipped to [0, 1].

    The first and the last piece run on beyond the outer knots. Inside a band, contributions add up at that
    band's rate.

    >>> Bands((-4.0, -1.0, 1.0, 4.0), (0.02, 0.25, 0.75, 0.98)).value(np.array([-1.0, 0.0, 9.0])).tolist()
    [0.25, 0.5, 1.0]
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        _require_bounded("a link of bands", (*self.knots, *self.values))
        rises = all(b > a for seq in (self.knots, self.values) for a, b in itertools.pairwise(seq))
        if len(self.knots) < 2 or len(self.knots) != len(self.values) or not rises:
            raise ModelFileError("Model: a link of bands needs two or more knots, rising strictly in score and value.")
        if not all(0 <= v <= 1 for v in self.values[1:-1]):
            raise ModelFileError("Model: the inner values of a link of bands must lie inside [0, 1].")
        _require_bounded("a link of bands", self.rates)

    @property
    def range(self) -> tuple[float, float]:
        """All of [0, 1]: the outer pieces run on until they are clipped."""
        return 0.0, 1.0

    @functools.cached_property
    def rates(self) -> tuple[float, ...]:
        """The slope of each band: probability per unit of score."""
        knots, values = itertools.pairwise(self.knots), itertools.pairwise(self.values)
        return tuple((v - u) / (b - a) for (a, b), (u, v) in zip(knots, values, strict=True))

    @functools.cached_property
    def _pieces(self) -> tuple[Floats, ...]:
        """By band: its first knot, the value there, the rate, and the least and the greatest value."""
        inner = self.values[1:-1]
        columns = (self.knots[:-1], self.values[:-1], self.rates, (0.0, *inner), (*inner, 1.0))
        return tuple(np.array(column, dtype=np.float64) for column in columns)

    @functools.cached_property
    def _inner_knots(self) -> Floats:
        return np.array(self.knots[1:-1], dtype=np.float64)

    def band(self, score: Floats) -> Index:
        """Return the number of the band that contains each score, from 0."""
        return np.asarray(self._inner_knots.searchsorted(score, side="right"))

    def value(self, score: Floats) -> Floats:
        """Return the probability."""
        # Anchored at the band's lower knot and held below the next value, so that rounding at a knot can not
        # break the order.
        band = self.band(score)
        start, base, rate, floor, top = (column[band] for column in self._pieces)
        return np.minimum(np.maximum(base + rate * (score - start), floor), top)

    def derivative(self, score: Floats) -> Floats:
        """Return the rate of the score's band: 0 where the line is clipped."""
        offset, rate = self.line(score)
        line = offset + rate * score
        return np.where((line < 0.0) | (line > 1.0), 0.0, rate)

    def line(self, score: Floats) -> tuple[Floats, Floats]:
        """Return offset and slope of the band that contains each score."""
        band = self.band(score)
        start, base, rate = (column[band] for column in self._pieces[:3])
        return base - rate * start, rate


Link = Logistic | Linear | Bands


def _require_bounded(what: str, values: Iterable[float]) -> None:
    if not all(abs(value) <= LARGEST for value in values):  # NaN is not
        raise ModelFileError(f"Model: the numbers of {what} must be within {LARGEST:g}.")


# ---- another base rate

BASE_RATE_ERROR = 0.005  # of a probability: below what calibration can tell on most portfolios


def at_odds(link: Linear | Bands, factor: float) -> Bands:
    r"""Return bands that multiply the odds of a straight link's probabilities by a factor.

    A probability p becomes :math:`T(p) = kp / D(p)` with :math:`D(p) = 1 + (k - 1) p`, which bends a straight piece. It
    is cut into pieces that start and end on T. Between p and q the chord is off by at most

    .. math:: \frac{k}{|k - 1|} \Big(D(p)^{-1/2} - D(q)^{-1/2}\Big)^2,

    so pieces of equal length in :math:`D^{-1/2}` have equal errors; `BASE_RATE_ERROR` says how many are needed.

    >>> bands = at_odds(Linear(), 0.25)
    >>> [round(p, 3) for p in bands.knots]
    [0.0, 0.253, 0.441, 0.583, 0.694, 0.782, 0.853, 0.911, 0.96, 1.0]
    >>> [round(p, 3) for p in bands.values]
    [0.0, 0.078, 0.165, 0.259, 0.362, 0.473, 0.593, 0.72, 0.856, 1.0]
    """
    first, *inner, last = _points(link)
    knots, values = [first[0]], [0.0]
    for (a, u), (b, v) in itertools.pairwise((first, *inner, last)):
        start, stop = ((1 + (factor - 1) * p) ** -0.5 for p in (u, v))
        widest = math.sqrt(BASE_RATE_ERROR * abs(factor - 1) / factor)
        n = max(1, math.ceil(abs(stop - start) / widest))
        risks = ((np.linspace(start, stop, n + 1) ** -2 - 1) / (factor - 1))[1:-1].tolist()
        knots += [a + (p - u) / (v - u) * (b - a) for p in risks] + [b]
        values += [p / (p + (1 - p) / factor) for p in (*risks, v)]  # exactly 1 where p is
    return Bands(tuple(knots), tuple(values))


def _points(link: Linear | Bands) -> list[tuple[float, float]]:
    """Return where a straight link starts from 0, bends, and reaches 1: (score, probability)."""
    if isinstance(link, Linear):
        if (link.low, link.high) != (0.0, 1.0):
            raise DataError(
                f"A line that is cut off at {link.low:g} and {link.high:g} cannot be corrected for another base rate. "
                "Fit with epsilon=0."
            )
        return [((p - link.offset) / link.slope, p) for p in (0.0, 1.0)]
    start = link.knots[0] - link.values[0] / link.rates[0]
    end = link.knots[-1] + (1 - link.values[-1]) / link.rates[-1]
    inner = zip(link.knots[1:-1], link.values[1:-1], strict=True)
    return [(start, 0.0), *((s, p) for s, p in inner if 0 < p < 1), (end, 1.0)]


# ---- the best bands

_SIGMOID = Logistic().value


@dataclass(frozen=True)
class BestBands:
    """A continuous line of a few pieces: 0 before the first knot, 1 after the last, straight between."""

    knots: tuple[float, ...]
    values: tuple[float, ...]
    squared_error: float


def best_bands(pieces: int) -> BestBands:
    r"""Return the line of `pieces` pieces with the least squared error against the logistic sigmoid.

    Parameters
    ----------
    pieces : number of pieces between the first and the last knot, 1 to 30

    Returns
    -------
    BestBands
        ``knots`` are the ``pieces + 1`` scores, ``values`` the probabilities there, from 0 to 1. Both are
        antisymmetric about score 0 and probability 1/2.

    Notes
    -----
    One piece is the clipped line of ``ALPHA_STAR``. The error falls with every *two* pieces: an antisymmetric
    line has the same slope on both sides of 0, so a knot there bends nothing. An even number of pieces is
    therefore the line of one piece less, with its middle piece cut in two at (0, 1/2).

    Examples
    --------
    >>> bands = best_bands(3)
    >>> [round(x, 4) for x in bands.knots]
    [-3.9587, -1.6375, 1.6375, 3.9587]
    >>> [round(p, 4) for p in bands.values]
    [0.0, 0.1368, 0.8632, 1.0]
    >>> round(best_bands(1).squared_error / bands.squared_error, 1)
    8.3
    """
    knots, values = _solve((pieces + 1) // 2)
    is_even = int(pieces % 2 == 0)
    # The values are 1 minus those at the positive knots, which makes them the risks at the negative ones.
    return BestBands(
        knots=tuple((-knots[::-1]).tolist() + [0.0] * is_even + knots.tolist()),
        values=tuple(values[:0:-1].tolist() + [0.5] * is_even + (1 - values[1:]).tolist()),
        squared_error=_squared_error(knots, values),
    )


@functools.cache
def _solve(half: int) -> tuple[Floats, Floats]:
    """Return the positive knots t_1..t_m and the values g_0..g_m."""
    knots = _start(half)
    values = np.concatenate([[0.5], _SIGMOID(-knots[:-1]), [0.0]])
    for _ in range(50):
        residual, jacobian = _stationarity(knots, values)
        step = np.linalg.solve(jacobian, -residual)
        knots = knots + step[:half]
        values[1:-1] += step[half:]
        if np.abs(step).max() < 1e-14 * knots[-1]:
            break
    return knots, values


def _start(half: int) -> Floats:
    """Return knots of equal share of |q''|^(2/5), their density in the limit of many pieces."""
    x = np.linspace(0.0, 40.0, 4001)
    q = _SIGMOID(-x)
    share = np.cumsum((q * (1 - q) * (1 - 2 * q)) ** 0.4)
    # The last piece represents the whole tail, about half a share more than the others.
    targets = np.arange(1, half + 1) / (half + 0.5) * share[-1]
    return np.asarray(np.interp(targets, share, x), dtype=np.float64)


@functools.cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes and weights on [0, 1]; 40 of them integrate q over a piece a few units wide to the last bit."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    return (nodes + 1) / 2, weights / 2


def _stationarity(knots: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the 2m - 1 equations above and their Jacobian in (t_1..t_m, g_1..g_{m-1})."""
    m = len(knots)
    u, w = _quadrature()
    gap, q = _gap(knots, values)
    density = q * (1 - q)
    rows = []
    residual = []
    for k in range(m):
        # The first piece starts at the fixed point (0, 1/2): it has no equation for its start.
        for weight in (u, 1 - u) if k > 0 else (u,):
            residual.append(w @ (weight * gap[k]))
            row = np.zeros(2 * m + 1)  # derivatives by t_1..t_m, then by g_0..g_m
            row[k] = w @ (weight * u * density[k])
            if k > 0:
                row[k - 1] = w @ (weight * (1 - u) * density[k])
            row[m + k] = w @ (weight * (1 - u))
            row[m + k + 1] = w @ (weight * u)
            rows.append(np.delete(row, [m, 2 * m]))
    return np.array(residual), np.array(rows)


def _gap(knots: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return L - q and q at the quadrature nodes, one row per piece."""
    u, _ = _quadrature()
    starts = np.concatenate([[0.0], knots[:-1]])
    q = _SIGMOID(-(starts[:, None] * (1 - u) + knots[:, None] * u))
    return values[:-1, None] * (1 - u) + values[1:, None] * u - q, q


def _squared_error(knots: Floats, values: Floats) -> float:
    _, w = _quadrature()
    gap, _ = _gap(knots, values)
    widths = np.diff(knots, prepend=0.0)
    last = knots[-1]
    tail = np.log1p(np.exp(-last)) - _SIGMOID(-last)  # the integral of q^2 from the last knot on
    return float(2 * (widths @ (gap**2 @ w) + tail))
