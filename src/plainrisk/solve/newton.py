"""Minimize a smooth convex loss plus a ridge, in a box, by Newton steps that know the bounds.

    minimize  loss(b0, beta) + sum_j ridge_j beta_j^2      subject to  lower <= beta <= upper

The intercept b0 is free and not penalized. Each step minimizes the quadratic model inside the box exactly (`box`), then
searches along it on the true objective. A Hessian is kept while it serves, even one from a sample of rows, and
corrected by the changes of the gradient seen since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.solve.box import FREE, LOWER, UPPER, BoxedQuadratic
from plainrisk.solve.curvature import Curvature, add_diagonal
from plainrisk.threads import one_blas_thread

__all__ = ["BOX", "Loss", "Solution", "kkt_residual", "minimize"]

# Without a ridge, a level with a single outcome has no finite best coefficient. Coefficients are limited to this many
# units of log odds, where the loss is flat to nine digits.
BOX = 20.0

# The Hessian is recomputed if the predicted decrease of a step is more than this share of the previous one.
_SLOW_DECREASE = 0.2
# Near the optimum it is recomputed where a step is longer than this share of the last.
_SLOW_STEP = 0.5
# After this many Hessians from a sample of the rows, the next is of all rows.
_MOST_ESTIMATES = 4
# A step that must be halved more often than this comes of a bad Hessian; after the second number, no step helps.
_BAD_HALVINGS, _MOST_HALVINGS = 4, 40
# Near the optimum: the step length at which coefficients count as converged, and the largest number of steps.
_STEP_TOLERANCE, _MOST_POLISHING = 2e-10, 12
# A secant is used where the curvature along it is within these multiples of the Hessian's.
_PLAUSIBLE = (0.2, 5.0)


class Loss(Protocol):
    """What the solver needs from a loss; the point is (intercept, coefficients)."""

    @property
    def start(self) -> Floats:
        """A point to start from."""

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]:
        """Return the mean loss and its gradient."""

    def hessian(self, point: Floats, *, exact: bool = False) -> Curvature:
        """Return the Hessian, or unless `exact` a good estimate of it."""

    @property
    def is_sampled(self) -> bool:
        """Whether Hessians are estimates unless they must be exact."""


def minimize(
    loss: Loss,
    *,
    ridge: float | Floats = 0.0,
    lower: Floats | None = None,
    upper: Floats | None = None,
    box: float | Floats = BOX,
    start: Floats | None = None,
    tolerance: float = 1e-11,
    max_iterations: int = 200,
) -> Solution:
    """Return the constrained minimizer with its certificate.

    It stops when one of these conditions holds:

    1. The predicted decrease is below ``tolerance * max(objective, 1e-3)``, and the next step would be shorter than
       2e-10 if steps go on shrinking as the last two did: the optimum. So it is, too, if steps no longer shrink with a
       fresh Hessian of all rows, or after twelve such steps. A rule on the gradient alone would not do, since a level
       with one row moves it by 1/M at most. If the steps stay long without a ridge, there is no finite optimum.
    2. No step along the direction lowers the objective: the limit of rounding.
    3. `max_iterations`.

    Parameters
    ----------
    loss : Loss
    ridge : float or (p,)
    lower, upper : (p,), optional; default unbounded
    box : float or (p,); how far from 0 coefficients without ridge may go
    start : (1 + p,), optional; where to begin, e.g. the solution of a nearby problem
    """
    first = loss.start if start is None else start
    problem = _Problem.of(loss, len(first), ridge, lower, upper, box)
    with one_blas_thread():
        return _Newton(problem, tolerance, problem.inside(first)).run(max_iterations)


@dataclass(frozen=True)
class _State:
    """The objective and its gradient at a point."""

    point: Floats
    value: float
    gradient: Floats


@dataclass(frozen=True)
class _Problem:
    """Loss, ridge and bounds, the intercept first; `low_box`, `high_box` mark the bounds that are the safety box's."""

    loss: Loss
    ridge: Floats
    lower: Floats
    upper: Floats
    low_box: Bools
    high_box: Bools

    @classmethod
    def of(
        cls, loss: Loss, n: int, ridge: float | Floats, lower: Floats | None, upper: Floats | None, box: float | Floats
    ) -> _Problem:
        penalty = _with_intercept(0.0, ridge, n)
        low = _with_intercept(-np.inf, -np.inf if lower is None else lower, n)
        high = _with_intercept(np.inf, np.inf if upper is None else upper, n)
        safe = _with_intercept(np.inf, np.where(penalty[1:] == 0, box, np.inf), n)
        return cls(loss, penalty, np.maximum(low, -safe), np.minimum(high, safe), -safe > low, safe < high)

    def at(self, point: Floats) -> _State:
        value, gradient = self.loss.value_and_gradient(point)
        pull = self.ridge * point
        return _State(point, value + float(pull @ point), gradient + 2.0 * pull)

    def hessian(self, point: Floats, exact: bool) -> Curvature:
        return add_diagonal(self.loss.hessian(point, exact=exact), 2.0 * self.ridge)

    def inside(self, point: Floats) -> Floats:
        return np.asarray(np.clip(point, self.lower, self.upper))

    @property
    def has_ridge(self) -> bool:
        return bool((self.ridge[1:] > 0).all())


@dataclass(frozen=True)
class _Step:
    """A step's predicted decrease and length, and by how much it is shorter than the one before."""

    decrease: float = np.inf
    length: float = np.inf
    ratio: float = 1.0

    def next(self, d: Floats, decrease: float) -> _Step:
        length = float(np.abs(d).max(initial=0.0))
        ratio = min(1.0, length / self.length) if 0 < self.length < np.inf else 1.0
        return _Step(decrease, length, ratio)


class _Newton:
    """The iteration: a direction from a local model, a step along it, and then keeping or replacing the model.

    Attributes
    ----------
    here : the current point of the iteration
    model : the local model, or None where a new one is due
    exact : whether Hessians are of all rows
    estimates : Hessians taken from a sample so far
    polished : full steps taken since the predicted decrease fell below the tolerance
    history : per step, objective and predicted decrease
    """

    def __init__(self, problem: _Problem, tolerance: float, first: Floats) -> None:
        self.problem, self.tolerance = problem, tolerance
        self.here = problem.at(first)
        self.model: _LocalModel | None = None
        self.exact, self.estimates, self.polished = not problem.loss.is_sampled, 0, 0
        self.history: list[tuple[float, float]] = []

    def run(self, max_iterations: int) -> Solution:
        """Take steps until a stopping rule holds; see `minimize`."""
        step = _Step()
        for _ in range(max_iterations):
            fresh, here = self.model is None, self.here
            model = self.model or _LocalModel(self.problem.hessian(here.point, self.exact))
            self.estimates += fresh and not self.exact
            bounds = self.problem.lower - here.point, self.problem.upper - here.point
            d, decrease = model.direction(here.gradient, *bounds)
            self.history.append((here.value, decrease))
            last, step = step, step.next(d, decrease)
            is_near = decrease <= self.tolerance * max(here.value, 1e-3)
            slow, end = (self._polish if is_near else self._descend)(d, step, last, fresh)
            if end is not None:
                return end
            if slow:
                # A fresh Hessian of a sample did not help, or several did not bring it to an end.
                self.exact = self.exact or fresh or self.estimates == _MOST_ESTIMATES
                self.model = None
            else:
                model.learn(self.here.point - here.point, self.here.gradient - here.gradient)
                self.model = model
        return self._solution(False, f"the limit of {max_iterations} iterations")

    def _polish(self, d: Floats, step: _Step, last: _Step, fresh: bool) -> tuple[bool, Solution | None]:
        """Close enough for full steps: continue while they shrink, so that the coefficients converge, too.

        Returns whether the Hessian converges too slowly, and the solution if this was the last step.
        """
        if step.length > 0 and step.decrease > 0:
            self.here = self.problem.at(self.problem.inside(self.here.point + d))
        self.polished += 1
        slow = step.ratio > _SLOW_STEP and last.length < np.inf
        next_length = step.length * max(step.ratio, last.ratio)
        stuck = slow and fresh and self.exact and self.polished > 2
        polished = next_length <= _STEP_TOLERANCE or self.polished == _MOST_POLISHING or stuck
        return slow, self._optimum(step) if polished else None

    def _descend(self, d: Floats, step: _Step, last: _Step, fresh: bool) -> tuple[bool, Solution | None]:
        """Search along a direction; returns as `_polish` does."""
        self.here, halvings = self._search(d)
        if halvings == _MOST_HALVINGS and fresh and self.exact:
            return True, self._solution(False, "rounding: no step lowers the objective further")
        # Two models' predictions do not compare: a fresh one is given a chance.
        return halvings > _BAD_HALVINGS or (step.decrease > _SLOW_DECREASE * last.decrease and not fresh), None

    def _search(self, d: Floats) -> tuple[_State, int]:
        """Halve the step until the objective falls enough (Armijo); return where it leads, and the halvings."""
        here, slope = self.here, float(self.here.gradient @ d)
        for halvings in range(_MOST_HALVINGS):
            size = 0.5**halvings
            there = self.problem.at(self.problem.inside(here.point + size * d))
            if there.value <= here.value + 1e-4 * size * slope:
                return there, halvings
        return here, _MOST_HALVINGS

    def _optimum(self, step: _Step) -> Solution:
        # If there is no finite optimum, steps stay equally long while the loss falls less and less. In a direction
        # without curvature, steps may be long too, but their predicted decrease is only rounding error.
        nothing = 1e-6 * self.tolerance * max(self.here.value, 1e-3)
        if step.length > 1e-3 and step.decrease > nothing and not self.problem.has_ridge:
            return self._solution(False, "no finite optimum without a ridge: the coefficients keep growing")
        return self._solution(True, "optimum: the predicted decrease is below the tolerance")

    def _solution(self, converged: bool, reason: str) -> Solution:
        problem, state, point = self.problem, self.here, self.here.point
        at_box = (problem.low_box & (point <= problem.lower)) | (problem.high_box & (point >= problem.upper))
        if converged and at_box.any():
            reason += f"; {int(at_box.sum())} coefficients at the safety box: no finite optimum without a ridge"
        return Solution(
            intercept=float(point[0]),
            coefficients=point[1:],
            objective=float(state.value),
            loss=float(state.value - problem.ridge @ point**2),
            kkt=kkt_residual(point, state.gradient, problem.lower, problem.upper),
            iterations=len(self.history),
            converged=converged,
            reason=reason,
            at_box=at_box[1:],
            history=tuple(self.history),
        )


class _LocalModel:
    """A quadratic model of the objective in a box: a Hessian, corrected by secants.

    With a fixed Hessian, steps shrink only by a steady factor. The change y of the gradient over a step s shows how
    the true Hessian acts on s, and the BFGS formula adds this. While the same bounds are active, this needs neither a
    new Hessian nor a new factor of the old one.
    """

    def __init__(self, H: Curvature) -> None:
        self.H = H
        self.box = BoxedQuadratic(H)
        self.secants: list[tuple[Floats, Floats, float]] = []

    def direction(self, g: Floats, lower: Floats, upper: Floats) -> tuple[Floats, float]:
        """Return the step to the model's minimum in the box, and the predicted decrease."""
        if self.secants:
            d = self._corrected(g, lower, upper)
            if d is not None:
                return d, -0.5 * float(g @ d)
            self.secants.clear()
        d = self.box.minimize(g, lower, upper)
        return d, -float(g @ d + 0.5 * d @ (self.H @ d))

    def learn(self, step: Floats, change: Floats) -> None:
        """Take in how the gradient changed over a step, if it moved free variables only."""
        free = self.box.state == FREE
        if step[~free].any():
            return
        curvature, expected = float(step @ change), float(step @ (self.H @ step))
        if _PLAUSIBLE[0] * expected < curvature < _PLAUSIBLE[1] * expected:
            self.secants.append((step[free], change[free], curvature))

    def _corrected(self, g: Floats, lower: Floats, upper: Floats) -> Floats | None:
        """Return the step by the corrected Hessian if the bounds of the last step are still active, else None."""
        state = self.box.state
        free, low, high = state == FREE, state == LOWER, state == UPPER
        holds = not lower[low].any() and not upper[high].any() and (g[low] >= 0).all() and (g[high] <= 0).all()
        if not free.any() or not holds:
            return None
        d = np.zeros(len(g))
        d[free] = self._inverse(free, -g[free])
        return None if (d < lower).any() or (d > upper).any() or not g @ d < 0 else d

    def _inverse(self, free: Bools, right: Floats) -> Floats:
        """Apply the inverse of the corrected Hessian of the free variables (the two loops of L-BFGS)."""
        q, shares = right, []
        for s, y, curvature in reversed(self.secants):
            shares.append(float(s @ q) / curvature)
            q = q - shares[-1] * y
        d = self.box.solve(free, q)
        for (s, y, curvature), share in zip(self.secants, reversed(shares), strict=True):
            d = d + (share - float(y @ d) / curvature) * s
        return d


def _with_intercept(intercept: float, others: float | Floats, n: int) -> Floats:
    out = np.empty(n)
    out[0] = intercept
    out[1:] = others
    return out


@dataclass(frozen=True)
class Solution:
    """The minimizer of a convex objective in a box.

    Attributes
    ----------
    intercept : float
    coefficients : (p,)
    objective : the value minimized, penalty included
    loss : its mean loss alone
    kkt : largest violation of the optimality conditions, see `kkt_residual`
    iterations : how many steps were taken
    converged : whether the stopping rule for an optimum was met
    reason : why it stopped, in words
    at_box : (p,) whether the safety box, not a sign bound, holds a coefficient
    history : one row per step: objective and predicted decrease
    """

    intercept: float
    coefficients: Floats
    objective: float
    loss: float
    kkt: float
    iterations: int
    converged: bool
    reason: str
    at_box: Bools
    history: tuple[tuple[float, float], ...] = ()

    def __repr__(self) -> str:
        return (
            f"Solution({len(self.coefficients)} coefficients, objective {self.objective:.6g}, KKT residual "
            f"{self.kkt:.1e}, {self.iterations} iterations: {self.reason})"
        )

    @property
    def point(self) -> Floats:
        """Intercept and coefficients, (1 + p,)."""
        return np.concatenate([[self.intercept], self.coefficients])


def kkt_residual(point: Floats, gradient: Floats, lower: Floats, upper: Floats) -> float:
    """Return the largest violation of the optimality conditions of a box-bounded problem.

    At an optimum the gradient is 0 where the point is free, not negative at a lower bound and not positive
    at an upper one. The residual is the largest entry that breaks this, 0 at an exact optimum.
    """
    up = np.where(point > lower, gradient, 0.0).max(initial=0.0)  # it could move down there
    down = np.where(point < upper, gradient, 0.0).min(initial=0.0)
    return float(max(up, -down))
