"""Choose the bands of a piecewise line from the portfolio's scores.

    minimise  sum_i w_i (sigmoid(s_i) - line(s_i))^2

over continuous, strictly rising lines of K pieces. The outer knots lie at the least and the greatest score, on the
sigmoid itself, so no row between them is clipped; the inner knots and values are chosen by least squares.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.form import Bands, Logistic

__all__ = ["portfolio_bands"]

Floats = npt.NDArray[np.float64]

_GROUPS = 600  # scores are grouped by rank before the search
_CANDIDATES = 80  # places an inner knot may stand
_NEAR = 1e-9  # the least rise between two knots
_CERTAIN = 30.0  # log odds of 1 - 1e-13


def portfolio_bands(
    scores: Floats, pieces: int, weight: Floats | None = None, limits: tuple[float, float] | None = None
) -> Bands:
    """Return the best bands for these scores.

    Parameters
    ----------
    scores : (n,) log odds of the portfolio
    pieces : K, 2 or more
    weight : (n,), optional
    limits : where the outer knots stand; default the least and the greatest score of the portfolio
    """
    low, high = (float(scores.min()), float(scores.max())) if limits is None else limits
    if high - low < 1e-6:  # a constant model still needs a line
        low, high = low - 1.0, high + 1.0
    # Where the sigmoid rounds to 0 or to 1 a line through it would not rise.
    low, high = min(low, _CERTAIN), max(high, -_CERTAIN)
    s, w = _grouped(scores, np.ones(len(scores)) if weight is None else weight)
    target = Logistic().value(s)
    ends = Logistic().value(np.array([low, high]))
    places = _places(s, w, low, high)
    pieces = min(pieces, len(places) + 1)
    best: tuple[float, Floats, Floats] | None = None
    for start in _starts(places, pieces - 1):
        found = _descend(start, places, s, w, target, (low, high), ends)
        if found is not None and (best is None or found[0] < best[0] - 1e-15):
            best = found
    if best is None:
        return Bands((low, high), (float(ends[0]), float(ends[1])))
    _, knots, values = best
    return Bands((low, *knots.tolist(), high), (float(ends[0]), *values.tolist(), float(ends[1])))


def _grouped(scores: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Replace the scores by the means of groups of neighbours with equal weight."""
    # Equal scores are one, so that a row of weight 2 is two rows.
    s, place = np.unique(scores, return_inverse=True)
    w = np.bincount(place, weight)
    total = np.cumsum(w)
    group = np.minimum((_GROUPS * (total - 0.5 * w) / total[-1]).astype(np.intp), _GROUPS - 1)
    mass = np.bincount(group, w, minlength=_GROUPS).astype(np.float64)
    mean = np.bincount(group, w * s, minlength=_GROUPS) / np.where(mass > 0, mass, 1.0)
    used = mass > 0
    return mean[used], mass[used]


def _places(s: Floats, w: Floats, low: float, high: float) -> Floats:
    """Candidates for inner knots: half by the scores' ranks, half evenly over their range."""
    ranks = np.interp(np.linspace(0.01, 0.99, _CANDIDATES // 2), np.cumsum(w) / w.sum(), s)
    even = np.linspace(s[0], s[-1], _CANDIDATES // 2)
    shares = np.unique(((np.concatenate([ranks, even]) - low) / (high - low)).round(6))
    return np.asarray(low + shares[(shares > 1e-3) & (shares < 1 - 1e-3)] * (high - low))


def _starts(places: Floats, n: int) -> list[npt.NDArray[np.intp]]:
    """Two places to begin: knots spread over all candidates, and over their upper half."""
    if n == 0 or len(places) < n:
        return []
    wide = np.linspace(0, len(places) - 1, n + 2)[1:-1]
    upper = np.linspace(len(places) // 2, len(places) - 1, n + 2)[1:-1]
    return [np.unique(x.astype(np.intp)) for x in (wide, upper) if len(np.unique(x.astype(np.intp))) == n]


def _descend(
    start: npt.NDArray[np.intp],
    places: Floats,
    s: Floats,
    w: Floats,
    target: Floats,
    limits: tuple[float, float],
    ends: Floats,
) -> tuple[float, Floats, Floats] | None:
    """Move one knot at a time to its best place until none moves."""
    at = start.copy()
    best = _fit(places[at], s, w, target, limits, ends)
    for _ in range(20):
        moved = False
        for j in range(len(at)):
            first = at[j - 1] + 1 if j else 0
            last = at[j + 1] if j + 1 < len(at) else len(places)
            for place in range(first, last):
                trial = at.copy()
                trial[j] = place
                found = _fit(places[trial], s, w, target, limits, ends)
                if found is not None and (best is None or found[0] < best[0] - 1e-15):
                    best, at, moved = found, trial, True
        if not moved:
            break
    return best


def _fit(
    knots: Floats, s: Floats, w: Floats, target: Floats, limits: tuple[float, float], ends: Floats
) -> tuple[float, Floats, Floats] | None:
    """Return the squared error and the best values at given inner knots; None if they do not rise."""
    grid = np.concatenate([[limits[0]], knots, [limits[1]]])
    band = np.clip(np.searchsorted(grid, s, side="right") - 1, 0, len(grid) - 2)
    share = (s - grid[band]) / (grid[band + 1] - grid[band])
    # The line is a sum of hats; those of the two ends are given.
    hats = np.zeros((len(s), len(grid)))
    rows = np.arange(len(s))
    hats[rows, band] = 1.0 - share
    hats[rows, band + 1] += share
    inner = hats[:, 1:-1]
    rest = target - hats[:, 0] * ends[0] - hats[:, -1] * ends[1]
    normal = inner.T @ (w[:, None] * inner) + 1e-12 * w.sum() * np.eye(len(knots))
    values = np.linalg.solve(normal, inner.T @ (w * rest))
    if not (np.diff(np.concatenate([ends[:1], values, ends[1:]])) > _NEAR * (ends[1] - ends[0])).all():
        return None
    error = rest - inner @ values
    return float(w @ error**2), knots, values
