r"""The best line of a few pieces through the logistic sigmoid.

On the half line :math:`x \ge 0` let :math:`q(x) = 1/(1 + e^x)` be what is left to 1, and let :math:`L` be the
continuous line through :math:`(0, \frac12), (t_1, g_1), \dots, (t_m, 0)`, zero from :math:`t_m` on. At the
optimum the error :math:`L - q` is orthogonal to every straight line on every piece (on the first, to
:math:`x`). With :math:`u` running from 0 to 1 along piece :math:`k` these are :math:`2m - 1` equations for as
many unknowns,

.. math::

    \int_0^1 u \, (L - q) \, du = 0 \quad (k = 1..m), \qquad
    \int_0^1 (1 - u) \, (L - q) \, du = 0 \quad (k = 2..m),

solved by Newton's method.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from plainrisk.errors import DataError

__all__ = ["BestBands", "best_bands"]

Floats = NDArray[np.float64]

# 40 nodes integrate q over a piece a few units wide to the last bit.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_U = (_NODES + 1) / 2
_W = _WEIGHTS / 2


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
    pieces : int
        Number of pieces between the first and the last knot, 1 to 30.

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
    pieces = _checked(pieces)
    knots, values = _solve((pieces + 1) // 2)
    at_zero = pieces % 2 == 0
    # The values are what is left to 1 at the positive knots, so they are the risks at the negative ones.
    return BestBands(
        knots=tuple((-knots[::-1]).tolist() + [0.0] * at_zero + knots.tolist()),
        values=tuple(values[:0:-1].tolist() + [0.5] * at_zero + (1 - values[1:]).tolist()),
        squared_error=_squared_error(knots, values),
    )


def _checked(pieces: int) -> int:
    try:
        pieces = operator.index(pieces)
    except TypeError:
        raise DataError(f"best_bands: pieces must be a whole number, got {pieces!r}") from None
    if not 1 <= pieces <= 30:
        raise DataError(f"best_bands: pieces must be 1 to 30, got {pieces}")
    return pieces


@cache
def _solve(half: int) -> tuple[Floats, Floats]:
    """Return the positive knots t_1..t_m and the values g_0..g_m."""
    knots = _start(half)
    values = np.concatenate([[0.5], expit(-knots[:-1]), [0.0]])
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
    q = expit(-x)
    share = np.cumsum((q * (1 - q) * (1 - 2 * q)) ** 0.4)
    # The last piece stands for the whole tail, about half a share more than the others.
    wanted = np.arange(1, half + 1) / (half + 0.5) * share[-1]
    return np.asarray(np.interp(wanted, share, x), dtype=np.float64)


def _stationarity(knots: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the 2m - 1 equations above and their Jacobian in (t_1..t_m, g_1..g_{m-1})."""
    m = len(knots)
    gap, q = _gap(knots, values)
    density = q * (1 - q)
    rows = []
    residual = []
    for k in range(m):
        # The first piece starts at the fixed point (0, 1/2): it has no equation for its start.
        for weight in (_U, 1 - _U) if k > 0 else (_U,):
            residual.append(_W @ (weight * gap[k]))
            row = np.zeros(2 * m + 1)  # derivatives by t_1..t_m, then by g_0..g_m
            row[k] = _W @ (weight * _U * density[k])
            if k > 0:
                row[k - 1] = _W @ (weight * (1 - _U) * density[k])
            row[m + k] = _W @ (weight * (1 - _U))
            row[m + k + 1] = _W @ (weight * _U)
            rows.append(np.delete(row, [m, 2 * m]))
    return np.array(residual), np.array(rows)


def _gap(knots: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return L - q and q at the quadrature nodes, one row per piece."""
    starts = np.concatenate([[0.0], knots[:-1]])
    q = expit(-(starts[:, None] * (1 - _U) + knots[:, None] * _U))
    return values[:-1, None] * (1 - _U) + values[1:, None] * _U - q, q


def _squared_error(knots: Floats, values: Floats) -> float:
    gap, _ = _gap(knots, values)
    widths = np.diff(knots, prepend=0.0)
    last = knots[-1]
    tail = np.log1p(np.exp(-last)) - expit(-last)  # the integral of q^2 from the last knot on
    return float(2 * (widths @ (gap**2 @ _W) + tail))
