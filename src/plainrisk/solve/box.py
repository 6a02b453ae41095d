"""Minimise a quadratic in a box, by block principal pivoting with an active-set method behind it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotrs

from plainrisk._native import minimise_in_box

__all__ = ["FLAT", "BoxedQuadratic", "minimise_quadratic", "solve_symmetric"]

Floats = npt.NDArray[np.float64]
Solve = Callable[[Floats], Floats]
LOWER, FREE, UPPER = -1, 0, 1

# Added to the diagonal, relative to each entry, so that one variable in large units does not blur the others.
# Directions without curvature (an indicator per level adds up to the intercept) then stay where they are
# instead of running away; callers iterate, which removes the tiny error this makes elsewhere.
_JITTER = 1e-13
# Free optima in a row that are not lower than the best before the active-set method gives up.
_PATIENCE = 20
# Factors of H that are kept: there are as many as sets of free variables, but the last ones come again.
_MOST_FACTORS = 2
# From so many variables on, a factor also serves where one in so many of them are others.
_MANY_VARIABLES, _SMALL_CHANGE = 200, 12
# A pivot of less than this share of its diagonal entry is rounding.
FLAT = 1e-11
# Damping tried in turn where the jitter is not enough, on a matrix of unit diagonal.
_DAMPING = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)


def minimise_quadratic(H: Floats, g: Floats, lower: Floats, upper: Floats, max_pivots: int = 1000) -> Floats:
    """Return the d that minimises ``g'd + d'Hd/2`` subject to ``lower <= d <= upper``; see `BoxedQuadratic`.

    >>> minimise_quadratic(np.eye(2), np.array([-2.0, 1.0]), np.zeros(2), np.full(2, np.inf))
    array([2., 0.])
    """
    return BoxedQuadratic(H.copy()).minimise(g, lower, upper, max_pivots)


class BoxedQuadratic:
    """Quadratics ``g'd + d'Hd/2`` of one H, to be minimised in boxes.

    Guess which bounds hold, solve for the rest, move *all* variables on the wrong side at once: mostly a
    handful of solves. If that stops helping three times in a row, go on one bound at a time from a feasible
    point, which lowers the value in every step and so always ends. Factors of H are kept for the next g.

    Parameters
    ----------
    H : (n, n), symmetric positive semidefinite; its diagonal is raised by a little

    Attributes
    ----------
    state : (n,) for every variable of the last solution LOWER, FREE or UPPER
    """

    def __init__(self, H: Floats) -> None:
        curvature = H.diagonal()
        least = curvature.min(initial=1.0)
        if least <= 0:
            curvature = np.where(curvature > 0, curvature, curvature[curvature > 0].min(initial=1.0))
        self.H = H
        self.H.flat[:: len(H) + 1] += _JITTER * curvature
        self.state: npt.NDArray[np.int8] = np.zeros(len(H), np.int8)
        self._solvers: dict[bytes, Solve] = {}
        self._base: tuple[npt.NDArray[np.intp], Solve] | None = None

    def minimise(self, g: Floats, lower: Floats, upper: Floats, max_pivots: int = 1000) -> Floats:
        """Return the d that minimises the quadratic subject to ``lower <= d <= upper``; bounds may be infinite."""
        found = minimise_in_box(self.H, g, lower, upper, FLAT)
        if found is not None:
            self.state = found.state
            self._keep((found.state == FREE).tobytes(), found.solve)
            return found.d
        n = len(g)
        tolerance = 1e-14 * max(1e-300, float(np.abs(g).max(initial=0.0)))
        # Where 0, the point a caller moves from, is on a bound and the gradient holds it there, the bound probably
        # stays.
        state = np.where((lower == 0) & (g > 0), LOWER, np.where((upper == 0) & (g < 0), UPPER, FREE)).astype(np.int8)
        best, patience = n + 1, 3
        while True:
            d = self._solve_free(g, lower, upper, state)
            wrong = _wrong_side(self.H @ d + g, d, lower, upper, state, tolerance)
            count = int(np.count_nonzero(wrong))
            if count == 0:
                self.state = state
                return np.clip(d, lower, upper)
            if count < best:
                best, patience = count, 3
            elif patience > 0:
                patience -= 1
            else:
                return self._one_at_a_time(g, lower, upper, np.clip(d, lower, upper), tolerance, max_pivots)
            state = np.where(wrong, _other_side(d, lower, upper, state), state)

    def _one_at_a_time(
        self, g: Floats, lower: Floats, upper: Floats, d: Floats, tolerance: float, max_pivots: int
    ) -> Floats:
        """The active-set method: go to the free optimum until a bound stops it, or let go of the worst bound."""
        H = self.H
        if g @ d + 0.5 * d @ H @ d > 0:
            d = np.clip(np.zeros(len(d)), lower, upper)
        self.state = state = np.where(d <= lower, LOWER, np.where(d >= upper, UPPER, FREE)).astype(np.int8)
        best, patience = np.inf, _PATIENCE
        for _ in range(max_pivots):
            move = self._solve_free(g, lower, upper, state) - d
            room = np.full(len(d), np.inf)
            moving = move != 0
            room[moving] = (np.where(move < 0, lower, upper) - d)[moving] / move[moving]
            first = int(np.argmin(room))
            if room[first] < 1:
                d = np.clip(d + room[first] * move, lower, upper)
                state[first] = LOWER if move[first] < 0 else UPPER
                d[first] = lower[first] if move[first] < 0 else upper[first]
                continue
            d = np.clip(d + move, lower, upper)
            gradient = H @ d + g
            # Twice the value. It falls from one free optimum to the next, but for moves of length 0 where bounds
            # coincide, and where H is so flat that rounding decides.
            value = float((gradient + g) @ d)
            if value < best - 1e-14 * abs(value):
                best, patience = value, _PATIENCE
            elif (patience := patience - 1) == 0:
                break
            wrong = _wrong_side(gradient, d, lower, upper, state, tolerance)
            if not wrong.any():
                break
            state[np.argmax(np.where(wrong, gradient**2 / np.diag(H), -1.0))] = FREE
        return d

    def _solve_free(self, g: Floats, lower: Floats, upper: Floats, state: npt.NDArray[np.int8]) -> Floats:
        d = np.where(state == LOWER, lower, np.where(state == UPPER, upper, 0.0))
        free = state == FREE
        if free.any():
            d[free] = self.solver(free)(-(g + self.H @ d)[free])
        return d

    def solver(self, free: npt.NDArray[np.bool_]) -> Solve:
        """Return what solves ``H d = right`` in some of the variables."""
        key = free.tobytes()
        if key not in self._solvers:
            self._keep(key, self._near_solver(free) or self._own_solver(np.flatnonzero(free)))
        return self._solvers[key]

    def _keep(self, key: bytes, solve: Solve) -> None:
        if len(self._solvers) == _MOST_FACTORS:
            del self._solvers[next(iter(self._solvers))]
        self._solvers[key] = solve

    def _own_solver(self, at: npt.NDArray[np.intp]) -> Solve:
        """Return what solves it by a factor of its own, if H allows that."""
        rows = self.H.take(at, axis=0, out=self._room[: len(at)], mode="clip")
        factor = _cholesky(rows.take(at, axis=1), self.H.diagonal()[at])
        if factor is None:
            return lambda right: solve_symmetric(self.H[np.ix_(at, at)], right)
        solve = _back_substitution(factor)
        self._base = (at, solve)
        return solve

    @cached_property
    def _room(self) -> Floats:
        """Room for some rows of H, used again and again: fresh memory costs time."""
        return np.empty_like(self.H)

    def _near_solver(self, free: npt.NDArray[np.bool_]) -> Solve | None:
        """Return what solves it by the factor of nearly the same variables, if there is one."""
        if self._base is None or len(free) < _MANY_VARIABLES:
            return None
        return _bordered(self.H, *self._base, free)


def _bordered(H: Floats, base: npt.NDArray[np.intp], solve: Solve, free: npt.NDArray[np.bool_]) -> Solve | None:
    """Return what solves ``H d = right`` in the free variables, given what does in nearly the same, those of `base`.

    Variables that left the base are held at 0 by multipliers, those that came are further unknowns: a small system
    besides the one that is factored already.
    """
    was = np.zeros(len(free), bool)
    was[base] = True
    came, left = np.flatnonzero(free & ~was), np.flatnonzero((was & ~free)[base])
    if not len(came) + len(left):
        return solve
    if len(came) + len(left) > len(free) // _SMALL_CHANGE:
        return None
    border = np.zeros((len(base), len(came) + len(left)))
    border[:, : len(came)] = H[np.ix_(base, came)]
    border[left, len(came) + np.arange(len(left))] = 1.0
    inner = solve(border)
    rest = -border.T @ inner
    rest[: len(came), : len(came)] += H[np.ix_(came, came)]
    if _cholesky(rest[: len(came), : len(came)].copy(), H.diagonal()[came]) is None:
        return None

    def solve_once(right: Floats) -> Floats:
        given = np.zeros(len(free))
        given[free] = right
        first = solve(given[base])
        target = np.concatenate([given[came], np.zeros(len(left))]) - border.T @ first
        more = np.linalg.solve(rest, target)
        found = np.zeros(len(free))
        found[base] = first - inner @ more
        found[came] = more[: len(came)]
        found[~free] = 0.0
        return found

    def solve_near(right: Floats) -> Floats:
        # The second system may be worse conditioned than the first: once more if much is left over.
        found = solve_once(right)
        left_over = right - (H @ found)[free]
        if np.abs(left_over).max(initial=0.0) > FLAT * np.abs(right).max(initial=0.0):
            found += solve_once(left_over)
        return found[free]

    return solve_near


def _cholesky(H: Floats, diagonal: Floats) -> Floats | None:
    """Return the lower Cholesky factor, or None where a pivot is rounding: that is left to the careful way.

    H is used up. It is symmetric, so its transpose is the same in the order that the library wants.
    """
    factor, failed = dpotrf(H.T, lower=1, clean=0, overwrite_a=1)
    return None if failed or (factor.diagonal() ** 2 < FLAT * diagonal).any() else factor


def _back_substitution(factor: Floats) -> Solve:
    return lambda right: np.asarray(dpotrs(factor, right, lower=1)[0])


def solve_symmetric(H: Floats, right: Floats) -> Floats:
    """Solve ``H d = right``, H positive semidefinite, with as little damping of H as gives a finite d: mostly none.

    >>> solve_symmetric(np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([4.0, 4.0])).round(6)
    array([1., 1.])
    """
    scale = np.ones(len(right))
    for damping in (0.0, *_DAMPING):
        try:
            d = scale * np.linalg.solve(H, scale * right)
        except np.linalg.LinAlgError:
            d = np.full(len(right), np.inf)
        if np.isfinite(d).all():
            break
        if damping == 0.0:
            # A unit diagonal, so that the damping means the same to every variable; none of them without curvature.
            diagonal = np.diag(H)
            scale = 1.0 / np.sqrt(np.maximum(diagonal, 1e-16 * max(diagonal.max(), 1e-200)))
            H = scale[:, None] * H * scale
        H = H + np.diag(np.full(len(H), _DAMPING[0] if damping == 0.0 else 99.0 * damping))
    return np.asarray(d, dtype=np.float64)


def _wrong_side(
    gradient: Floats, d: Floats, lower: Floats, upper: Floats, state: npt.NDArray[np.int8], tolerance: float
) -> npt.NDArray[np.bool_]:
    """Free variables outside the box, and bound variables whose gradient would let them back in."""
    outside = (state == FREE) & ((d < lower) | (d > upper))
    back = ((state == LOWER) & (gradient < -tolerance)) | ((state == UPPER) & (gradient > tolerance))
    return np.asarray(outside | back)


def _other_side(d: Floats, lower: Floats, upper: Floats, state: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    bound = np.where(d < lower, LOWER, UPPER)
    return np.where(state == FREE, bound, FREE).astype(np.int8)
