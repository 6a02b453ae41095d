"""Minimize a quadratic in a box, by block principal pivoting with an active-set method behind it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk._types import Bools, Floats
from plainrisk.solve.curvature import Curvature, Factor, corrected, factorize

__all__ = ["BoxedQuadratic"]

States = npt.NDArray[np.int8]
LOWER, FREE, UPPER = -1, 0, 1

# Rounds without fewer violations before block pivoting gives way, and free optima in a row that are not lower than the
# best before the active-set method gives up.
_PATIENCE, _STALLED = 3, 20
_MOST_PIVOTS = 1000


class BoxedQuadratic:
    """Quadratics ``g'd + d'Hd/2`` of one H, to be minimized subject to ``lower <= d <= upper``.

    Block principal pivoting: guess which bounds hold, solve for the rest, move *all* variables on the wrong side at
    once; mostly a handful of solves. If that stops helping, an active-set method goes on one bound at a time from a
    feasible point, which lowers the value in every step and so always ends. The last Cholesky factor is kept for the
    next g, and corrected where few variables changed.

    Parameters
    ----------
    H : (n, n) or LowRank, symmetric positive semidefinite

    Attributes
    ----------
    state : (n,) for every variable of the last solution LOWER, FREE or UPPER
    """

    def __init__(self, H: Curvature) -> None:
        self.H = H
        self.state: States = np.zeros(len(H), np.int8)
        # The last factors: one that was made, and one that was corrected from it.
        self._made: tuple[Bools, Factor] | None = None
        self._last: tuple[Bools, Factor] | None = None

    def minimize(self, g: Floats, lower: Floats, upper: Floats) -> Floats:
        """Return the minimizer; bounds may be infinite."""
        tolerance = 1e-14 * max(1e-300, float(np.abs(g).max(initial=0.0)))
        # If 0, the point that a caller moves from, is on a bound and the gradient holds it there, it probably stays.
        held = (lower == upper) | ((lower == 0) & (g > 0))
        state = np.where(held, LOWER, np.where((upper == 0) & (g < 0), UPPER, FREE)).astype(np.int8)
        fewest, patience = len(g) + 1, _PATIENCE
        while True:
            d = self._solve_free(g, lower, upper, state)
            wrong = _wrong_side(self.H @ d + g, d, lower, upper, state, tolerance)
            count = int(np.count_nonzero(wrong))
            if count == 0:
                self.state = state
                return np.clip(d, lower, upper)
            if count < fewest:
                fewest, patience = count, _PATIENCE
            elif patience == 0:
                return self._one_at_a_time(g, lower, upper, np.clip(d, lower, upper), tolerance)
            else:
                patience -= 1
            other = np.where(state == FREE, np.where(d < lower, LOWER, UPPER), FREE)
            state = np.where(wrong, other, state).astype(np.int8)

    def _one_at_a_time(self, g: Floats, lower: Floats, upper: Floats, d: Floats, tolerance: float) -> Floats:
        """The active-set method: go to the free optimum until a bound stops it, or release the worst bound."""
        if g @ d + 0.5 * d @ (self.H @ d) > 0:
            d = np.clip(np.zeros(len(d)), lower, upper)
        self.state = state = np.where(d <= lower, LOWER, np.where(d >= upper, UPPER, FREE)).astype(np.int8)
        best, patience = np.inf, _STALLED
        for _ in range(_MOST_PIVOTS):
            move = self._solve_free(g, lower, upper, state) - d
            reach = np.full(len(d), np.inf)
            moving = move != 0
            reach[moving] = (np.where(move < 0, lower, upper) - d)[moving] / move[moving]
            first = int(np.argmin(reach))
            if reach[first] < 1:
                d = np.clip(d + reach[first] * move, lower, upper)
                state[first] = LOWER if move[first] < 0 else UPPER
                d[first] = lower[first] if move[first] < 0 else upper[first]
                continue
            d = np.clip(d + move, lower, upper)
            gradient = self.H @ d + g
            # Twice the value. It falls from one free optimum to the next, except for moves of length 0 where bounds
            # coincide, and where H is so flat that rounding decides.
            value = float((gradient + g) @ d)
            patience = _STALLED if value < best - 1e-14 * abs(value) else patience - 1
            best = min(best, value)
            wrong = _wrong_side(gradient, d, lower, upper, state, tolerance)
            if patience == 0 or not wrong.any():
                break
            state[np.argmax(np.where(wrong, gradient**2 / self.H.diagonal(), -1.0))] = FREE
        return d

    def _solve_free(self, g: Floats, lower: Floats, upper: Floats, state: States) -> Floats:
        d = np.where(state == LOWER, lower, np.where(state == UPPER, upper, 0.0))
        free = state == FREE
        if free.any():
            d[free] = self.solve(free, -(g + self.H @ d)[free])
        return d

    def solve(self, free: Bools, right: Floats) -> Floats:
        """Solve ``H d = right`` in the free variables."""
        return self.factor(free).solve(right)

    def factor(self, free: Bools) -> Factor:
        """Return the factor of H in the free variables; the last ones are kept."""
        for kept in (self._last, self._made):
            if kept is not None and np.array_equal(kept[0], free):
                return kept[1]
        factor = None if self._made is None else corrected(self.H, *self._made, free)
        if factor is not None:
            self._last = free.copy(), factor
            return factor
        self._made = free.copy(), factorize(self.H, free)
        return self._made[1]


def _wrong_side(gradient: Floats, d: Floats, lower: Floats, upper: Floats, state: States, tolerance: float) -> Bools:
    """Free variables outside the box, and bound variables whose gradient would let them back in."""
    outside = (state == FREE) & ((d < lower) | (d > upper))
    back = ((state == LOWER) & (gradient < -tolerance)) | ((state == UPPER) & (gradient > tolerance))
    return np.asarray(outside | (back & (lower < upper)))
