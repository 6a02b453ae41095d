"""Bands for a portfolio: the rising line of a few pieces that is nearest to the sigmoid, by squared error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.form import Bands, Logistic

__all__ = ["portfolio_bands"]

_GROUPS = 600  # scores are grouped by rank before the search
_CANDIDATES = 80  # where an inner knot may stand
_NEAR = 1e-9  # the least rise between two knots
_CERTAIN = 30.0  # log odds of 1 - 1e-13
_STEPS = 200  # at most, from one start


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
    portfolio = _Portfolio.of(scores, weight, low, high)
    candidates = portfolio.candidates
    starts = _starts(len(candidates), pieces - 1)
    error, shares, values = _descend(starts, candidates, portfolio) if starts else (np.inf, candidates, candidates)
    first, last = map(float, portfolio.ends)
    if not np.isfinite(error):  # no inner knot leaves a line that rises
        return Bands((low, high), (first, last))
    knots = low + shares * (high - low)
    return Bands((low, *knots.tolist(), high), (first, *values.tolist(), last))


@dataclass(frozen=True)
class _Portfolio:
    """The scores as shares of the way from the lowest knot to the highest.

    Attributes
    ----------
    x, weight : (g,) ascending groups of neighbours
    ends : (2,) the sigmoid at the outer knots
    sums : (g + 1, 5) running sums of w, w x, w x^2, w t and w t x, where t is the sigmoid
    square : the sum of w t^2
    """

    x: Floats
    weight: Floats
    ends: Floats
    sums: Floats
    square: float

    @classmethod
    def of(cls, scores: Floats, weight: Floats | None, low: float, high: float) -> _Portfolio:
        s, w = _grouped(scores, weight)
        t, x = Logistic().value(s), (s - low) / (high - low)
        terms = np.column_stack([w, w * x, w * x**2, w * t, w * t * x])
        sums = np.vstack([np.zeros(5), np.cumsum(terms, axis=0)])
        return cls(x, w, Logistic().value(np.array([low, high])), sums, float(w @ t**2))

    @property
    def candidates(self) -> Floats:
        """Candidates for inner knots: half by the scores' ranks, half evenly over their range."""
        middles = (np.cumsum(self.weight) - 0.5 * self.weight) / self.weight.sum()
        ranks = np.interp(np.linspace(0.01, 0.99, _CANDIDATES // 2), middles, self.x)
        even = np.linspace(self.x[0], self.x[-1], _CANDIDATES // 2)
        shares = np.unique(np.concatenate([ranks, even]).round(6))
        return shares[(shares > 1e-3) & (shares < 1 - 1e-3)]

    def fit(self, knots: Floats) -> tuple[Floats, Floats]:
        """Return the errors, (c,), and the best values at the inner knots, (c, K - 1), for c choices of knots.

        Where the best values do not rise the error is infinite.
        """
        n, inner = len(knots), slice(1, -1)
        normal, right = self._normal(np.column_stack([np.zeros(n), knots, np.ones(n)]))
        rest = right[:, inner] - normal[:, inner, 0] * self.ends[0] - normal[:, inner, -1] * self.ends[1]
        # A piece without rows leaves its values open; a hair of ridge closes them.
        matrix = normal[:, inner, inner] + 1e-12 * np.eye(knots.shape[1])
        values = np.linalg.solve(matrix, rest[:, :, None])[:, :, 0]
        line = np.column_stack([np.full(n, self.ends[0]), values, np.full(n, self.ends[1])])
        error = self.square - 2.0 * (right * line).sum(axis=1) + np.einsum("ci,cij,cj->c", line, normal, line)
        rises = (np.diff(line) > _NEAR * (self.ends[1] - self.ends[0])).all(axis=1)
        return np.where(rises, error, np.inf), values

    def _normal(self, grid: Floats) -> tuple[Floats, Floats]:
        """Return the normal equations of the line's values at its K + 1 knots: (c, K + 1, K + 1), (c, K + 1)."""
        cuts = np.searchsorted(self.x, grid[:, 1:-1])
        upto = self.sums[np.column_stack([np.zeros(len(grid), np.intp), cuts, np.full(len(grid), len(self.x))])]
        w, wx, wxx, wt, wtx = np.moveaxis(np.diff(upto, axis=1), 2, 0)
        start, width = grid[:, :-1], np.diff(grid)
        # With u from 0 to 1 along a piece, the line is 1 - u times its value at the start plus u times that at the end.
        u, uu = (wx - start * w) / width, (wxx - 2 * start * wx + start**2 * w) / width**2
        tu = (wtx - start * wt) / width
        normal, right = np.zeros((*grid.shape, grid.shape[1])), np.zeros(grid.shape)
        k = np.arange(grid.shape[1] - 1)
        normal[:, k, k] += w - 2 * u + uu
        normal[:, k + 1, k + 1] += uu
        normal[:, k, k + 1] = normal[:, k + 1, k] = u - uu
        right[:, :-1] += wt - tu
        right[:, 1:] += tu
        return normal, right


def _grouped(scores: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Replace the scores by the means of groups of neighbours with equal weight, 1 in all."""
    # Equal scores are one, so that a row of weight 2 is two rows.
    if weight is None:
        s, rows = np.unique(scores, return_counts=True)
        w = rows / len(scores)
    else:
        s, at = np.unique(scores, return_inverse=True)
        w = np.bincount(at, weight) / weight.sum()
    total = np.cumsum(w)
    group = np.minimum((_GROUPS * (total - 0.5 * w) / total[-1]).astype(np.intp), _GROUPS - 1)
    mass = np.bincount(group, w, minlength=_GROUPS).astype(np.float64)
    mean = np.bincount(group, w * s, minlength=_GROUPS) / np.where(mass > 0, mass, 1.0)
    used = mass > 0
    return mean[used], mass[used]


def _starts(n_candidates: int, n_knots: int) -> list[Index]:
    """Where to begin: knots spread over all candidates, and over each run of quarters of them."""
    if n_knots == 0:
        return []
    quarters = np.linspace(0, n_candidates - 1, 5)
    spans = [(quarters[a], quarters[b]) for a in range(4) for b in range(a + 1, 5)]
    starts = [np.unique(np.linspace(*span, n_knots + 2)[1:-1].round().astype(np.intp)) for span in spans]
    return [start for start in starts if len(start) == n_knots]


def _descend(starts: list[Index], candidates: Floats, portfolio: _Portfolio) -> tuple[float, Floats, Floats]:
    """From every start make the best move of a single knot until none helps; return the best of all."""
    at, left = list(starts), list(range(len(starts)))
    error, values = portfolio.fit(candidates[np.array(at)])
    for _ in range(_STEPS):
        # The moves of all starts that still get better are tried together.
        moves = [_moves(at[k], len(candidates)) for k in left]
        errors, found = portfolio.fit(candidates[np.concatenate(moves)])
        first = 0
        for k, own in zip(tuple(left), moves, strict=True):
            best = first + int(errors[first : first + len(own)].argmin())
            if errors[best] < error[k] * (1.0 - 1e-9):
                at[k], error[k], values[k] = own[best - first], errors[best], found[best]
            else:
                left.remove(k)
            first += len(own)
        if not left:
            break
    best = int(error.argmin())
    return float(error[best]), candidates[at[best]], values[best]


def _moves(at: Index, n_candidates: int) -> Index:
    """Return all choices that differ in one knot, which stays between its neighbours."""
    bounds = np.concatenate([[-1], at, [n_candidates]])
    moves = []
    for j in range(len(at)):
        to = np.arange(bounds[j] + 1, bounds[j + 2])
        trial = np.tile(at, (len(to), 1))
        trial[:, j] = to
        moves.append(trial)
    return np.concatenate(moves)
