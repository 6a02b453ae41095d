"""Bands for a portfolio: a rising line of a few straight pieces from scores to risks.

First the line that is nearest to the sigmoid, by squared error. Then, where outcomes are known, the line that is most
likely by them, near the first while rows are few. How many pieces it needs, the outcomes can say, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.form import Bands, Logistic

__all__ = ["FEWEST", "Pieces", "outcome_bands", "portfolio_bands"]

Pieces = int | Literal["auto"]

_GROUPS = 600  # scores are grouped by rank before the search
_CANDIDATES = 80  # where an inner knot may stand
_NEAR = 1e-9  # the least rise between two knots
_CERTAIN = 30.0  # log odds of 1 - 1e-13
_STEPS = 200  # at most, from one start
_PRIOR_ROWS = 3000.0  # how many rows the sigmoid is worth, beside the outcomes
_LEAST_RISK = 1e-3  # no row counts for more than one of this risk
_ROUNDS = 3  # of weighing errors by the line found so far
FEWEST, _MOST = 3, 5  # how many pieces a line has if the outcomes decide


def portfolio_bands(
    scores: Floats, pieces: int, weight: Floats | None = None, limits: tuple[float, float] | None = None
) -> Bands:
    """Return the bands nearest to the sigmoid for these scores.

    Parameters
    ----------
    scores : (n,) log odds of the portfolio
    pieces : K, 2 or more
    weight : (n,), optional
    limits : where the outer knots stand; default the least and the greatest score of the portfolio
    """
    low, high = _ends(scores, limits)
    s, (w,) = _grouped(scores, np.ones(len(scores)) if weight is None else weight)
    return _nearest(s, w, pieces, low, high)


def outcome_bands(
    scores: Floats,
    pieces: Pieces,
    positive: Floats,
    weight: Floats | None = None,
    limits: tuple[float, float] | None = None,
    *,
    degrees: float = 0.0,
) -> Bands:
    """Return the bands most likely by the outcomes, where the sigmoid's are worth some rows of their own.

    Parameters
    ----------
    scores, weight, limits : as in `portfolio_bands`
    pieces : K; with "auto" three, four or five, by Schwarz's criterion: a piece has two parameters
    positive : (n,) how much of the weight at each score has the positive outcome
    degrees : degrees of freedom of the model behind the scores
        A model is nearer to the outcomes it was fitted to than to others. Every row is judged by about the score it
        would have if it had been left out.
    """
    total = float(len(scores) if weight is None else weight.sum())
    s, (w, y) = _grouped(scores, np.ones(len(scores)) if weight is None else weight, positive)
    ends = _ends(scores, limits)
    counts = range(FEWEST, _MOST + 1) if pieces == "auto" else [pieces]
    found = [_likeliest(_nearest(s, w, k, *ends), s, w, y, total, degrees) for k in counts]
    price = [total * loss + k * math.log(max(total, 1.0)) for k, (_, loss) in zip(counts, found, strict=True)]
    return found[int(np.argmin(price))][0]


def _likeliest(nearest: Bands, s: Floats, w: Floats, y: Floats, total: float, degrees: float) -> tuple[Bands, float]:
    """Return the most likely line of as many pieces as the one nearest to the sigmoid has, and its mean log loss."""
    pieces = len(nearest.knots) - 1
    risk = Logistic().value(s)
    variance = risk * (1.0 - risk)
    leverage = min(degrees / max(total * float(w @ variance), 1e-300), 1.0)
    step = leverage / (1.0 - leverage * variance)
    without = np.concatenate([s - step * (1.0 - risk), s + step * risk])
    without = np.clip(without, nearest.knots[0], nearest.knots[-1])
    s, (w, y) = _grouped(without, np.concatenate([y, w - y]), np.concatenate([y, 0.0 * y]))
    share = total / (total + _PRIOR_ROWS)
    target = share * y / w + (1.0 - share) * nearest.value(s)

    def possible(bands: Bands) -> Floats:
        return np.clip(bands.value(s), _LEAST_RISK, 1.0 - _LEAST_RISK)

    def loss(bands: Bands) -> float:
        p = possible(bands)
        return -float(w @ (target * np.log(p) + (1.0 - target) * np.log1p(-p)))

    found = [nearest]
    for _ in range(_ROUNDS):
        # A squared error over the variance is, to second order, what it costs in log loss.
        p = possible(found[-1])
        found.append(_Portfolio.of(nearest, s, w, target, w / (p * (1.0 - p))).best(pieces, found[-1]))
    best = min(found, key=loss)
    return best, loss(best)


def _ends(scores: Floats, limits: tuple[float, float] | None) -> tuple[float, float]:
    """Return where the outer knots stand."""
    low, high = (float(scores.min()), float(scores.max())) if limits is None else limits
    if high - low < 1e-6:  # a constant model still needs a line: next to the sigmoid's tangent
        low, high = low - 1e-3, high + 1e-3
    # Where the sigmoid rounds to 0 or to 1 a line through it would not rise.
    return min(low, _CERTAIN), max(high, -_CERTAIN)


def _nearest(s: Floats, w: Floats, pieces: int, low: float, high: float) -> Bands:
    """Return the bands nearest to the sigmoid."""
    sigmoid = Logistic().value
    straight = Bands((low, high), tuple(sigmoid(np.array([low, high])).tolist()))
    return _Portfolio.of(straight, s, w, sigmoid(s)).best(pieces)


@dataclass(frozen=True)
class _Portfolio:
    """The scores as shares of the way from the lowest knot to the highest.

    Attributes
    ----------
    near : the line to stay near where the rows tell nothing, with the outer knots
    x, weight : (g,) ascending groups of neighbours
    sums : (g + 1, 5) running sums of v, v x, v x^2, v t and v t x, where t is the target and v the weight of its error
    square : the sum of v t^2
    """

    near: Bands
    x: Floats
    weight: Floats
    sums: Floats
    square: float

    @classmethod
    def of(cls, near: Bands, s: Floats, w: Floats, t: Floats, v: Floats | None = None) -> _Portfolio:
        low, high = near.knots[0], near.knots[-1]
        x, errors = (s - low) / (high - low), w if v is None else v / v.sum()
        terms = np.column_stack([errors, errors * x, errors * x**2, errors * t, errors * t * x])
        sums = np.vstack([np.zeros(5), np.cumsum(terms, axis=0)])
        return cls(near, x, w, sums, float(errors @ t**2))

    def best(self, pieces: int, first: Bands | None = None) -> Bands:
        """Return the best line found: from one to begin with, or from many."""
        candidates = self.candidates
        starts = _starts(len(candidates), pieces - 1) if first is None else self._at(candidates, first)
        error, shares, values = _descend(starts, candidates, self) if starts else (np.inf, candidates, candidates)
        if not np.isfinite(error):  # no inner knot leaves a line that rises
            return self.near
        low, high = self.near.knots[0], self.near.knots[-1]
        return Bands((low, *(low + shares * (high - low)).tolist(), high), tuple(values.tolist()))

    def _at(self, candidates: Floats, bands: Bands) -> list[Index]:
        """Return the candidates next to the inner knots of a line."""
        low, high = bands.knots[0], bands.knots[-1]
        shares = (np.array(bands.knots[1:-1]) - low) / (high - low)
        at = np.abs(candidates[:, None] - shares).argmin(axis=0) if len(candidates) else np.zeros(0, np.intp)
        return [at] if len(np.unique(at)) == len(shares) > 0 else []

    @property
    def candidates(self) -> Floats:
        """Candidates for inner knots: half by the scores' ranks, half evenly over their range."""
        middles = (np.cumsum(self.weight) - 0.5 * self.weight) / self.weight.sum()
        ranks = np.interp(np.linspace(0.01, 0.99, _CANDIDATES // 2), middles, self.x)
        even = np.linspace(self.x[0], self.x[-1], _CANDIDATES // 2)
        shares = np.unique(np.concatenate([ranks, even]).round(6))
        return shares[(shares > 1e-3) & (shares < 1 - 1e-3)]

    def fit(self, knots: Floats) -> tuple[Floats, Floats]:
        """Return the errors, (c,), and the best values at all knots, (c, K + 1), for c choices of inner knots.

        The ends stay where they are: few rows are there to tell. Where the values do not rise the error is infinite.
        """
        n, inner = len(knots), slice(1, -1)
        grid = np.column_stack([np.zeros(n), knots, np.ones(n)])
        normal, right = self._normal(grid)
        first, last = self.near.values[0], self.near.values[-1]
        rest = right[:, inner] - normal[:, inner, 0] * first - normal[:, inner, -1] * last
        # A piece without rows leaves its values open; a hair of ridge closes them.
        matrix = normal[:, inner, inner] + 1e-12 * np.eye(knots.shape[1])
        values = np.linalg.solve(matrix, rest[:, :, None])[:, :, 0]
        line = np.column_stack([np.full(n, first), values, np.full(n, last)])
        error = self.square - 2.0 * (right * line).sum(axis=1) + np.einsum("ci,cij,cj->c", line, normal, line)
        rises = (np.diff(line) > _NEAR * (last - first)).all(axis=1)
        # Errors that differ by rounding alone are equal: then the first of them is taken, whatever the weights' scale.
        return np.where(rises, (error / (1e-9 * max(self.square, 1e-290))).round(), np.inf), line

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


def _grouped(scores: Floats, weight: Floats, *more: Floats) -> tuple[Floats, list[Floats]]:
    """Return the means of groups of neighbours with equal weight, and the sums in each of the weight, and of more.

    The weight is 1 in all.
    """
    # Equal scores are one, so that a row of weight 2 is two rows.
    s, at = np.unique(scores, return_inverse=True)
    w, *rest = (np.bincount(at, values) / weight.sum() for values in (weight, *more))
    total = np.cumsum(w)
    group = np.minimum((_GROUPS * (total - 0.5 * w) / total[-1]).astype(np.intp), _GROUPS - 1)
    sums = [np.bincount(group, values, minlength=_GROUPS).astype(np.float64) for values in (w, w * s, *rest)]
    mass, mean, *rest = sums
    used = mass > 0
    return mean[used] / mass[used], [mass[used], *(values[used] for values in rest)]


def _starts(n_candidates: int, n_knots: int) -> list[Index]:
    """Where to begin: knots spread over all candidates, and over each run of quarters of them."""
    if not 0 < n_knots <= n_candidates:
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
            if errors[best] < error[k]:
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
