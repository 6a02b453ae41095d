"""Minimise a smooth convex loss plus a ridge, in a box, by Newton steps that know the bounds.

    minimise  loss(b0, beta) + sum_j ridge_j beta_j^2      subject to  lower <= beta <= upper

The intercept b0 is free and not penalised. Each step minimises the quadratic model inside the box exactly
(`box`), then searches along it on the true objective. A Hessian is kept while it serves, even one from a
sample of rows, and corrected by the gradients seen since (`local`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from plainrisk._native import BlockHessian, Problem, Settled
from plainrisk.solve.approach import State, approach
from plainrisk.solve.box import FLAT
from plainrisk.solve.certificate import Solution, kkt_residual
from plainrisk.solve.local import LocalModel
from plainrisk.solve.threads import one_thread

__all__ = ["BOX", "Loss", "minimise"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Without a ridge, a level with one outcome only has no finite best coefficient. Coefficients are kept within
# this many units of log odds, where the loss is flat to nine digits.
BOX = 20.0


# The Hessian is taken anew where a step promises more than this share of what the last one did or, near the optimum, is
# longer than this share of the last: often enough to converge fast, seldom enough not to pay for one that is no better.
_STALE = 0.2
# A Hessian is from afar where a step promises more than this share of the value.
_AFAR = 1e-5
_SLOW = 0.5
# A step that must be halved more often than this comes of a bad Hessian; after so many halvings, no step helps.
_MOST_HALVINGS, _NONE_HELPS = 4, 40
# The step that would come next, where a solver stops, and how far off that guess may be if steps shrink by squares.
_SETTLED, _ABOUT = 2e-10, 10.0
# A step after which a Hessian is as good as before.
_SHORT = 1e-3
# The part of a step below which a variable's does not matter.
_MATTERS = 1e-3


class Loss(Protocol):
    """What the solver asks of a loss; the point is (intercept, coefficients)."""

    @property
    def start(self) -> Floats:
        """A point to start from."""

    def value_and_gradient(self, point: Floats, *, bent: bool = True) -> tuple[float, Floats]:
        """Return the mean loss and its gradient; `bent` says that the Hessian will be asked for, too."""

    def hessian(self, point: Floats, *, whole: bool = False) -> Floats:
        """Return the Hessian, or a good estimate of it unless the whole of it is asked for."""

    @property
    def sampled(self) -> bool:
        """Whether Hessians are estimates."""

    @property
    def cheap(self) -> bool:
        """Whether a Hessian takes hardly longer than a gradient: then there is one for every step but short ones."""

    @property
    def moderate(self) -> bool:
        """Whether a Hessian takes about as long as two gradients: then one from afar is not kept."""

    def settle(self, start: Floats, problem: Problem) -> Settled | None:
        """Return the minimum if there is a way to it at one go, else None."""

    def in_blocks(self, ridge: Floats) -> BlockHessian | None:
        """Return a Hessian in blocks, to get near the minimum with, if that saves a dear one; else None."""


def minimise(
    loss: Loss,
    *,
    ridge: float | Floats = 0.0,
    lower: Floats | None = None,
    upper: Floats | None = None,
    box: float | Floats = BOX,
    start: Floats | None = None,
    hessian: Floats | None = None,
    tolerance: float = 1e-11,
    polish: bool = True,
    max_iterations: int = 200,
) -> Solution:
    """Return the constrained minimiser with its certificate.

    It stops when one of these holds:

    1. The quadratic model promises less than ``tolerance * max(objective, 1e-3)``, and the next step would be below
       2e-10 if steps go on shrinking as the last two did (by squares, with a fresh Hessian): the optimum. So it is
       if steps no longer shrink with a fresh Hessian of all rows, or twelve did not do. The raw gradient alone would
       not do as a rule, since a level with one row can move it by no more than 1/M. Without a ridge, if the steps stay
       long: no finite optimum. Without `polish` the promise alone decides.
    2. No step along the direction lowers the objective: the limit of rounding.
    3. `max_iterations`.

    Parameters
    ----------
    loss : Loss
    ridge : float or (p,)
    lower, upper : (p,), optional; default unbounded
    box : float or (p,); how far from 0 coefficients without ridge may go
    start : (1 + p,), optional; where to begin, e.g. the solution of a nearby problem
    hessian : (1 + p, 1 + p), optional; the loss's at the start, or nearly so, if it is known
    polish : whether to go on until the coefficients settle; a point to begin from need not be so near
    """
    with one_thread():
        return _Newton(loss, ridge, lower, upper, box, start, hessian, tolerance, polish, max_iterations).run()


class _Newton:
    def __init__(
        self,
        loss: Loss,
        ridge: float | Floats,
        lower: Floats | None,
        upper: Floats | None,
        box: float | Floats,
        start: Floats | None,
        hessian: Floats | None,
        tolerance: float,
        polish: bool,
        max_iterations: int,
    ) -> None:
        first = loss.start if start is None else start
        self.loss = loss
        self.ridge = _with_intercept(0.0, ridge, len(first))
        self.lower = _with_intercept(-np.inf, -np.inf if lower is None else lower, len(first))
        self.upper = _with_intercept(np.inf, np.inf if upper is None else upper, len(first))
        self.in_box = self._bound(box) if (self.ridge[1:] == 0).any() else None
        self.tolerance, self.polish, self.max_iterations = tolerance, polish, max_iterations
        self.history: list[tuple[float, float]] = []
        self.first, self.is_far, self.hessian = self._inside(first), start is None, hessian
        self.state: State

    def _bound(self, box: float | Floats) -> tuple[Flags, Flags]:
        """Keep coefficients without a ridge in the box; return which bounds are the box's."""
        near = np.where(self.ridge[1:] == 0, box, np.inf)
        low, high = self.lower[1:].copy(), self.upper[1:].copy()
        np.maximum(low, -near, out=self.lower[1:])
        np.minimum(high, near, out=self.upper[1:])
        return self.lower[1:] > low, self.upper[1:] < high

    def _at(self, point: Floats, bent: bool = True) -> State:
        value, gradient = self.loss.value_and_gradient(point, bent=bent)
        pull = self.ridge * point
        return State(point, value + float(pull @ point), gradient + 2.0 * pull)

    def _hessian(self, point: Floats, whole: bool) -> Floats:
        H = self.loss.hessian(point, whole=whole) if self.hessian is None else self.hessian.copy()
        self.hessian = None
        H.flat[:: len(H) + 1] += 2.0 * self.ridge
        return H

    def _inside(self, point: Floats) -> Floats:
        return np.asarray(np.minimum(np.maximum(point, self.lower), self.upper))

    def run(self) -> Solution:
        problem = Problem(
            self.ridge, self.lower, self.upper, self.tolerance, _SETTLED, FLAT, self.max_iterations, self.is_far
        )
        found = self.loss.settle(self.first, problem) if self.polish else None
        if found is None:
            return self._step_by_step()
        self.state = State(found.point, found.value, found.gradient)
        self.history = [(value, promise) for value, promise, _ in found.history.tolist()]
        return self._settled(step=float(found.history[-1, 2]), promise=float(found.history[-1, 1]))

    def _step_by_step(self) -> Solution:
        self.state = self._at(self.first)
        blocks = self.loss.in_blocks(self.ridge[1:]) if self.is_far else None
        if blocks is not None:
            most = self.max_iterations
            self.state, self.history = approach(self.state, self._at, blocks, self.lower, self.upper, most)
        model: LocalModel | None = None
        last_promise, last_step, last_shrink, polished, whole = np.inf, np.inf, 1.0, 0, False
        last_d = np.zeros(len(self.first))  # the last step, if it was taken in full
        for _ in range(self.max_iterations - len(self.history)):
            before = self.state
            fresh, lent = model is None, self.hessian is not None
            if model is None:
                model = LocalModel(self._hessian(before.point, whole))
            doubtful = self.loss.sampled and not whole  # a model of other rows may help
            d, promise = model.direction(before.gradient, self.lower - before.point, self.upper - before.point)
            self.history.append((before.value, promise))
            step = float(np.abs(d).max(initial=0.0))
            shrink = min(1.0, step / last_step) if 0 < last_step < np.inf else 1.0
            anew = self.loss.cheap and step > _SHORT
            if promise <= self.tolerance * max(before.value, 1e-3):
                if not self.polish:
                    return self._settled(step, promise)
                halvings = 0
                # Near enough for full steps; go on while they shrink, so that the coefficients settle too.
                if step > 0 and promise > 0:
                    self.state = self._at(self._inside(before.point + d), anew)
                polished += 1
                stuck = shrink > _SLOW
                # With a fresh Hessian, a step shrinks by the square of what the last one did, or about so.
                by_squares = self.loss.cheap and fresh
                rate = min(1.0, _ABOUT * _shrinking(d, last_d) ** 2) if by_squares else max(shrink, last_shrink)
                next_step = step * rate
                if next_step <= _SETTLED or polished >= 12 or (polished > 2 and stuck and fresh and not doubtful):
                    return self._settled(step, promise)
                renew = stuck and (not fresh or doubtful)
            else:
                # One that was lent may know nothing of a level: it is given up sooner than a step is halved.
                halvings = self._search(d, 1 if lent else _NONE_HELPS, anew)
                stuck = halvings > _MOST_HALVINGS
                if halvings == _NONE_HELPS and fresh and not doubtful:
                    return self._solution(False, "rounding: no step lowers the objective further")
                # Two models' promises do not compare: a fresh one is given a chance.
                renew = stuck or lent or (promise > _STALE * last_promise and not fresh)
            whole = whole or (stuck and fresh)
            renew = renew or anew or (self.loss.moderate and promise > _AFAR * max(before.value, 1e-3))
            if not renew:
                model.learn(self.state.point - before.point, self.state.gradient - before.gradient)
            model = None if renew else model
            last_promise, last_step, last_shrink = promise, step, shrink
            last_d = d if polished or halvings == 0 else np.zeros(len(d))
        return self._solution(False, f"the limit of {self.max_iterations} iterations")

    def _settled(self, step: float, promise: float) -> Solution:
        # Where there is no finite optimum, each step is as long as the last while the loss falls less and less.
        # In a direction without curvature steps may be long too, but there they promise nothing but rounding.
        nothing = 1e-6 * self.tolerance * max(self.state.value, 1e-3)
        if step > 1e-3 and promise > nothing and (self.ridge[1:] == 0).any():
            return self._solution(False, "no finite optimum without a ridge: the coefficients keep growing")
        return self._solution(True, "optimum: the predicted decrease is below the tolerance")

    def _search(self, d: Floats, most: int, bent: bool) -> int:
        """Halve the step until the objective falls enough (Armijo), and take it; return how often, or `most`."""
        slope = float(self.state.gradient @ d)
        for halvings in range(most):
            size = 0.5**halvings
            trial = self._at(self._inside(self.state.point + size * d), bent)
            if trial.value <= self.state.value + 1e-4 * size * slope:
                self.state = trial
                return halvings
        return most

    def _solution(self, converged: bool, reason: str) -> Solution:
        state = self.state
        beta = state.point[1:]
        at_box = np.zeros(len(beta), bool)
        if self.in_box is not None:
            at_box = (self.in_box[0] & (beta <= self.lower[1:])) | (self.in_box[1] & (beta >= self.upper[1:]))
        if converged and at_box.any():
            reason += f"; {int(at_box.sum())} coefficients at the safety box: no finite optimum without a ridge"
        return Solution(
            intercept=float(state.point[0]),
            coefficients=beta,
            objective=float(state.value),
            loss=float(state.value - self.ridge @ state.point**2),
            kkt=kkt_residual(state.point, state.gradient, self.lower, self.upper),
            iterations=len(self.history),
            converged=converged,
            reason=reason,
            at_box=at_box,
            history=tuple(self.history),
        )


def _shrinking(d: Floats, last: Floats) -> float:
    """By how much a step is shorter than the last, in the variable that matters where that is least so."""
    size = np.abs(d)
    matter = size > _MATTERS * size.max(initial=0.0)
    with np.errstate(divide="ignore"):
        return float((size[matter] / np.abs(last[matter])).max(initial=0.0))


def _with_intercept(intercept: float, others: float | Floats, n: int) -> Floats:
    out = np.empty(n)
    out[0] = intercept
    out[1:] = others
    return out
