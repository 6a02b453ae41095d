"""Bands: a rising line of a few straight pieces from scores to risks, fitted from sums.

All that is asked of the rows is how much weight, and how much of it with the positive outcome, has a score in each of
many narrow cells (`ScoreSums`). Where outcomes are known, they may move the sigmoid: the log odds at score s become
s + d(s), with d a line that bends at a few knots and is shrunk to 0 as the evidence asks. Then the line of straight
pieces is found that costs least against that curve, in expected log loss; as few pieces as cost no more than `BANDS`.

The pooled risk of a mixture is calibrated in the same way: its log odds are the scores, d is shrunk to the best line,
since a pool is too near the mean by design, and the straight pieces lead from the pooled risk to the risk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.optimize import brentq, isotonic_regression

from plainrisk._types import Floats, Index
from plainrisk.fit.choices import BANDS, LINK, POSITIVE, PRECISIONS
from plainrisk.form import Bands, Logistic
from plainrisk.solve import averaged, log_factors

__all__ = ["FEWEST", "Pieces", "ScoreSums", "calibrating_bands", "fitted_bands", "log_odds"]

Pieces = int | Literal["auto"]

# The width of the cells in log odds, and their extent in either direction: log odds of 1 - 1e-13.
_WIDTH, _CERTAIN = 1.0 / 32.0, 30.0
_N_CELLS = 2 * int(_CERTAIN / _WIDTH) + 2
# The possible knots, the correction of the sigmoid at them, and Newton steps for it.
_CANDIDATES, _BENDS, _STEPS = 64, 6, 5
# The number of pieces that "auto" begins with, and the most it takes.
FEWEST, _MOST = 3, 10
# Against rounding: the least rise between two knots, and the least variance of an outcome.
_RISE, _VARIANCE = 1e-9, 1e-6
# The least risk that has log odds, and the ridge on the line, without which separable outcomes have no best one.
_SURE, _HOLD = 1e-13, 1e-3


@dataclass(frozen=True)
class ScoreSums:
    """Sums over rows by the cell of their score.

    Attributes
    ----------
    weight, positive, score : (cells,) the weight, that of the positive outcome (None if unknown), weight times score
    low, high : the extreme scores
    rows : how many rows there are
    """

    weight: Floats
    positive: Floats | None
    score: Floats
    low: float
    high: float
    rows: int

    @classmethod
    def of(cls, scores: Floats, weight: Floats | None, positive: Floats | None) -> ScoreSums:
        """Add up some rows; rows without weight are ignored."""
        mass = np.ones(len(scores)) if weight is None else weight
        seen = scores[mass > 0] if mass.any() else scores
        cell = _cells(scores)

        def total(values: Floats) -> Floats:
            return np.bincount(cell, values, minlength=_N_CELLS).astype(np.float64)

        hits = None if positive is None else total(positive)
        return cls(total(mass), hits, total(mass * scores), float(seen.min()), float(seen.max()), len(seen))

    @property
    def shares(self) -> tuple[Floats, Floats, Floats | None]:
        """The mean score of every cell that is used, its share of the weight, and of the positive weight in it."""
        used, total = self.weight > 0, self.weight.sum()
        positive = None if self.positive is None else self.positive[used] / total
        return self.score[used] / self.weight[used], self.weight[used] / total, positive

    def __add__(self, other: ScoreSums) -> ScoreSums:
        counted = self.positive is not None and other.positive is not None
        return ScoreSums(
            self.weight + other.weight,
            self.positive + other.positive if counted else None,  # type: ignore[operator]
            self.score + other.score,
            min(self.low, other.low),
            max(self.high, other.high),
            self.rows + other.rows,
        )


def _cells(scores: Floats) -> Index:
    return np.floor(np.clip(scores, -_CERTAIN, _CERTAIN) / _WIDTH).astype(np.intp) + _N_CELLS // 2


def fitted_bands(
    sums: ScoreSums,
    pieces: Pieces = "auto",
    degrees: float = 0.0,
    n_rows: float | None = None,
) -> Bands:
    """Return the bands of a portfolio.

    Parameters
    ----------
    pieces : how many; "auto" for as few as cost no more than `BANDS` in mean log loss
    degrees : degrees of freedom of the model behind the scores
        A model is nearer to the outcomes it was fitted to than to others. Every row is judged by about the score it
        would have if it had been left out.
    n_rows : how many rows the weights stand for; by default as many as there are
    """
    low, high = _ends(sums)
    s, w, y = sums.shares
    corrected = _Correction()
    if y is not None:
        rows = sums.rows if n_rows is None else n_rows
        corrected = _corrected_by(s, w, y, rows, degrees).expecting(float(y.sum()), s, w)
    return _followed(_Curve.of(corrected.value, np.clip(s, low, high), w, low, high), pieces)


def calibrating_bands(sums: ScoreSums, degrees: float = 0.0) -> Bands:
    """Return the bands from the pooled risk of a mixture to the risk.

    Parameters
    ----------
    sums : by the log odds of the pooled risk, with the outcomes
    degrees : degrees of freedom of the experts on average; 0 if these rows were held out
    """
    s, w, y = sums.shares
    assert y is not None
    corrected = _corrected_by(s, w, y, sums.rows, degrees, sloped=True).expecting(float(y.sum()), s, w)
    low, high, pooled = (Logistic().value(np.clip(score, *_ends(sums))) for score in (sums.low, sums.high, s))
    return _followed(
        _Curve.of(lambda risk: corrected.value(log_odds(risk)), pooled, w, float(low), float(high)), "auto"
    )


def log_odds(risk: Floats) -> Floats:
    """Return the log odds of risks; those of certainty are finite."""
    inside = np.clip(risk, _SURE, 1.0 - _SURE)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _followed(curve: _Curve, pieces: Pieces) -> Bands:
    """Return the bands of so many pieces that follow a curve; "auto" are as few as cost no more than `BANDS`."""
    counts = range(FEWEST, _MOST + 1) if pieces == "auto" else [pieces]
    runs = curve.runs(max(counts))
    for count in counts:
        bands, cost = curve.bands(runs, count)
        if cost <= BANDS:
            break
    return bands


def _ends(sums: ScoreSums) -> tuple[float, float]:
    """Return the scores of the outer knots."""
    low, high = sums.low, sums.high
    if high - low < 1e-6:  # a constant model still needs a line: nearly the sigmoid's tangent
        low, high = low - 1e-3, high + 1e-3
    # Where the sigmoid rounds to 0 or to 1 a line through it would not rise.
    return min(low, _CERTAIN), max(high, -_CERTAIN)


@dataclass(frozen=True)
class _Correction:
    """The sigmoid of s + d(s): a line about `center` with changes of slope at some knots."""

    center: float = 0.0
    knots: Floats = field(default_factory=lambda: np.zeros(0))
    coefficients: Floats = field(default_factory=lambda: np.zeros(2))

    def columns(self, s: Floats) -> Floats:
        """Return the functions that d is a sum of, (scores, 2 + knots)."""
        z = s - self.center
        return np.column_stack([np.ones(len(z)), z, np.maximum(z[:, None] - self.knots, 0.0)])

    def value(self, s: Floats) -> Floats:
        return Logistic().value(s + self.columns(s) @ self.coefficients)

    def expecting(self, share: float, s: Floats, w: Floats) -> _Correction:
        """Return the curve moved up or down until it expects this share of positive outcomes among these rows.

        Rows that are judged as if they had been left out show how steep the curve is. Each is drawn away from its
        outcome, so they do not show how high it is.
        """

        def moved(by: float) -> _Correction:
            return replace(self, coefficients=self.coefficients + np.append(by, np.zeros(len(self.coefficients) - 1)))

        def excess(by: float) -> float:
            return float(w @ moved(by).value(s)) - share

        if not self.coefficients.any() or excess(-_CERTAIN) >= 0 or excess(_CERTAIN) <= 0:
            return self
        return moved(brentq(excess, -_CERTAIN, _CERTAIN))


def _corrected_by(s: Floats, w: Floats, y: Floats, rows: float, degrees: float, *, sloped: bool = False) -> _Correction:
    """Return the sigmoid as the outcomes bend it, shrunk as their evidence asks: to itself, or to the best line."""
    risk = Logistic().value(s)
    variance = risk * (1.0 - risk)
    leverage = min(degrees / max(rows * float(w @ variance), 1e-300), 1.0)
    step = leverage / (1.0 - leverage * variance)
    # Every cell twice: its positive outcomes, and the others, each at the score without them.
    s = np.concatenate([s - step * (1.0 - risk), s + step * risk])
    w, y = np.concatenate([y, w - y]), np.concatenate([y, 0.0 * y])
    center = float(w @ s)
    order = np.argsort(s, kind="stable")
    shares = (np.arange(_BENDS) + 1.0) / (_BENDS + 1.0)
    at = np.searchsorted(np.cumsum(w[order]), shares)
    knots = s[order][np.minimum(at, len(s) - 1)] - center
    corrected = _Correction(center, knots, np.zeros(2 + _BENDS))
    C, precision = corrected.columns(s), 0.0
    line = _line_of(s, w, y, rows, C[:, :2]) if sloped else np.zeros(2)
    prior = np.append(line, np.zeros(_BENDS))
    corrected = replace(corrected, coefficients=prior)
    for _ in range(_STEPS):
        risk = Logistic().value(s + C @ corrected.coefficients)
        H = rows * (C.T @ ((w * risk * (1.0 - risk))[:, None] * C))
        slope = rows * (C.T @ (y - w * risk))
        if not precision:
            precisions = np.array([precision for precision in PRECISIONS if precision >= LINK])
            factors = log_factors(H, slope, precisions)
            if averaged(factors) <= POSITIVE:
                break
            precision = float(precisions[int(np.argmax(factors))])
        moved = np.linalg.solve(H + precision * np.eye(len(H)), slope - precision * (corrected.coefficients - prior))
        corrected = replace(corrected, coefficients=corrected.coefficients + moved)
    return corrected


def _line_of(s: Floats, w: Floats, y: Floats, rows: float, C: Floats) -> Floats:
    """Return the two coefficients of the straight correction with the greatest likelihood."""
    line = np.zeros(2)
    for _ in range(50):
        risk = Logistic().value(s + C @ line)
        H = rows * (C.T @ ((w * risk * (1.0 - risk))[:, None] * C)) + _HOLD * np.eye(2)
        step = np.linalg.solve(H, rows * (C.T @ (y - w * risk)) - _HOLD * line)
        line += np.clip(step, -1.0, 1.0)  # the sigmoid is flat far out
        if np.abs(step).max() < 1e-10:
            break
    return line


@dataclass(frozen=True)
class _Curve:
    """A rising curve from scores to risks, and the rows along it.

    Attributes
    ----------
    s, w, risk : the scores of the rows, ascending, their weights, and their risks on the curve
    knots, values : where a knot may stand, the ends first and last, and the curve there
    cost : what a squared error of the risk costs at every score: to second order, in log loss
    """

    s: Floats
    w: Floats
    risk: Floats
    knots: Floats
    values: Floats
    cost: Floats

    @classmethod
    def of(cls, rising_risk: Callable[[Floats], Floats], s: Floats, w: Floats, low: float, high: float) -> _Curve:
        """Return the increasing curve closest to the given one."""
        # Half of the candidates by the scores' ranks, half evenly over their range.
        ranks = np.interp(np.linspace(0.0, 1.0, _CANDIDATES // 2), np.cumsum(w) - 0.5 * w, s)
        inner = np.unique(np.concatenate([ranks, np.linspace(low, high, _CANDIDATES // 2)]))
        far = 1e-3 * (high - low)
        inner = inner[np.append(True, np.diff(inner) > 1e-3 * far)]
        knots = np.concatenate([[low], inner[(inner > low + far) & (inner < high - far)], [high]])
        both = np.concatenate([s, knots])
        order = np.argsort(both, kind="stable")
        mass = np.concatenate([w, np.full(len(knots), 1e-9)])[order]
        rising = isotonic_regression(rising_risk(both[order]), weights=mass).x
        rising = (1.0 - _RISE) * rising + _RISE * np.arange(len(both)) / len(both)  # within [0, 1]
        risk = np.empty(len(both))
        risk[order] = rising
        at_scores = risk[: len(s)]
        return cls(
            s, w, at_scores, knots, risk[len(s) :], 0.5 * w / np.maximum(at_scores * (1.0 - at_scores), _VARIANCE)
        )

    def runs(self, most: int) -> tuple[Floats, Index]:
        """Return the cost of the best chords from the first knot to each, and where the last one begins; by number."""
        cost, n = self._chord_costs(), len(self.knots)
        least, last = np.full((most + 1, n), np.inf), np.zeros((most + 1, n), np.intp)
        least[0, 0] = 0.0
        for k in range(1, most + 1):
            total = least[k - 1][:, None] + cost
            last[k], least[k] = total.argmin(axis=0), total.min(axis=0)
        return least, last

    def _chord_costs(self) -> Floats:
        """Return the cost of a chord from one knot to another, or infinity if it runs backward."""
        n = len(self.knots)
        places, at = self.knots - self.knots[0], np.searchsorted(self.s, self.knots)
        at[-1] = len(self.s)
        z = self.s - self.knots[0]

        def between(values: Floats) -> Floats:
            upto: Floats = np.append(0.0, np.cumsum(self.cost * values))[at]
            return upto - upto[:, None]

        run = places - places[:, None] + np.eye(n)
        slope = (self.values - self.values[:, None]) / run
        level = self.values[:, None] - slope * places[:, None]
        squares = between(self.risk**2) + level**2 * between(np.ones(len(z))) + slope**2 * between(z**2)
        products = level * between(self.risk) + slope * between(self.risk * z) - level * slope * between(z)
        return np.where(np.tri(n, dtype=bool), np.inf, np.maximum(squares - 2.0 * products, 0.0))

    def bands(self, runs: tuple[Floats, Index], pieces: int) -> tuple[Bands, float]:
        """Return the best line with this many pieces, and its cost in mean log loss."""
        least, last = runs
        end = len(self.knots) - 1
        count = pieces if np.isfinite(least[pieces, end]) else int(np.flatnonzero(np.isfinite(least[:, end]))[-1])
        at = [end]
        for k in range(count, 0, -1):
            at.append(int(last[k, at[-1]]))
        values = self._best_values(at[::-1])
        bands = Bands(tuple(self.knots[at[::-1]].tolist()), tuple(values.tolist()))
        return bands, float(self.cost @ (bands.value(self.s) - self.risk) ** 2)

    def _best_values(self, at: list[int]) -> Floats:
        """Return the values at some knots that cost least; the ends stay on the curve, for few rows are there."""
        knots, first = self.knots[at], self.values[at]
        hats = np.column_stack([np.interp(self.s, knots, hat) for hat in np.eye(len(knots))])
        inner, residual = hats[:, 1:-1], self.risk - hats @ first
        H = inner.T @ (self.cost[:, None] * inner)
        # A piece without rows leaves its values open: there they stay on the curve.
        H[np.diag_indices_from(H)] += 1e-9 * max(float(np.trace(H)), 1e-290)
        best = first.copy()
        best[1:-1] += np.linalg.solve(H, inner.T @ (self.cost * residual))
        return best if (np.diff(best) > 0).all() else first
