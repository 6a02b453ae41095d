"""The shrinkage of each group of coefficients, chosen by marginal likelihood.

The coefficients of group u have a normal prior of mean 0 and precision lambda_u. The most probable ones minimize

    sum of losses / phi + 1/2 sum_u lambda_u |beta_u|^2

(phi = 1 for the logistic loss, the residual variance for half the squared error). With a fixed Hessian H of the sum of
losses, Laplace's approximation of the marginal likelihood of the lambdas is greatest where

    lambda_u |beta_u|^2 = edf_u = n_u - lambda_u trace [(H/phi + Lambda)^-1]_uu

and n_u is the number of coefficients of the group that are not at a bound (Fellner and Schall; MacKay; Wood and
Fasiolo 2017). Where coefficients are bounded at 0, their prior is half-normal; the constants of the normal prior are
kept.

A few rows say little about one precision, so the precisions have a prior of their own. The logarithms of those that
belong to a population are normal about mu + log(c_u), where c_u is the variance over the rows that scores have at
precision 1; mu and the variance tau^2 are found along with the precisions, by EM, tau^2 under a scaled inverse
chi-squared prior with one degree of freedom. A group with a parent (the tail of a feature) has a log precision that is
normal about its parent's, with variance `APART`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.solve.box import FREE, BoxedQuadratic
from plainrisk.solve.curvature import Curvature, Factor, add_diagonal
from plainrisk.solve.loss import LogisticLoss
from plainrisk.solve.newton import Solution, minimize
from plainrisk.solve.squares import Moments, minimize_squares
from plainrisk.threads import one_blas_thread

__all__ = ["Evidence", "Hyperprior", "averaged", "log_factors", "maximize_evidence", "polished"]

# The starting values of the precisions, their range, and the largest change of a logarithm in one update.
_START, _LEAST, _MOST, _LONGEST = 10.0, 1e-3, 1e12, 2.0
_MOST_UPDATES = 200
_EM_STEPS = 10
# The Hessian is recomputed after steps that gain more, by row, than this times the tolerance: scores that move less
# hardly change it.
_STALE = 0.25
# The starting value of tau^2: large, so that different groups separate before they are shrunk together.
_FIRST_VARIANCE = 10.0


@dataclass(frozen=True)
class Hyperprior:
    """What is known of the log precisions of groups before the rows are seen.

    Attributes
    ----------
    unit : (groups,), log c_u of the groups of the population, NaN for others
    parent : (groups,), the group that a tail's precision is drawn to, or -1
    spread : the scale of the prior of tau^2
    apart : the variance of a tail's log precision about its parent's
    """

    unit: Floats
    parent: Index
    spread: float
    apart: float

    @classmethod
    def flat(cls, n_groups: int) -> Hyperprior:
        """Return the prior that knows nothing."""
        return cls(np.full(n_groups, np.nan), np.full(n_groups, -1), 1.0, 1.0)

    @property
    def members(self) -> Index:
        """The groups of the population."""
        return np.flatnonzero(~np.isnan(self.unit))

    def equations(self, variance: float) -> tuple[Floats, Floats, Floats]:
        """Return A, t and v of the density -1/2 sum (A phi - t)^2 / v, phi being the log precisions and mu."""
        members, tails = self.members, np.flatnonzero(self.parent >= 0)
        A = np.zeros((len(members) + len(tails), len(self.unit) + 1))
        rows = np.arange(len(members))
        A[rows, members], A[rows, -1] = 1.0, -1.0
        rows = len(members) + np.arange(len(tails))
        A[rows, tails], A[rows, self.parent[tails]] = 1.0, -1.0
        t = np.concatenate([self.unit[members], np.zeros(len(tails))])
        return A, t, np.repeat([variance, self.apart], [len(members), len(tails)])


@dataclass(frozen=True)
class Evidence:
    """The most probable coefficients, and the evidence (marginal likelihood) for their groups.

    Attributes
    ----------
    point : (1 + p,), the intercept and the coefficients
    precision : (groups,), lambda
    edf : (p,), effective degrees of freedom of every coefficient
    gradient : (groups,), of the log posterior density by the logarithm of each precision: 0 at the maximum
    scale : phi
    mean, variance : of the population, mu and tau^2
    updates : how often the precisions were updated
    converged : whether they were found
    free : (1 + p,), which coefficients no bound holds, the intercept first
    quadratic : of H/phi + Lambda, whose inverse is the covariance of the posterior
    """

    point: Floats
    precision: Floats
    edf: Floats
    gradient: Floats
    scale: float
    mean: float
    variance: float
    updates: int
    converged: bool
    free: Bools
    quadratic: BoxedQuadratic

    @property
    def factor(self) -> Factor:
        """The factor of H/phi + Lambda in the coefficients that are not at a bound."""
        return self.quadratic.factor(self.free)

    def covariance(self) -> Floats:
        """Return the covariance of all coefficients, (1 + p, 1 + p), as if no bound held any."""
        everywhere = np.ones(len(self.free), bool)
        (inverse,) = self.quadratic.factor(everywhere).inverse_blocks([np.arange(len(self.free))])
        return inverse

    def log_factors(self, blocks: Sequence[Index], precisions: Sequence[float]) -> Floats:
        """Return the logarithm of the Bayes factor of sets of coefficients, numbered from 0 without the intercept.

        That is the marginal likelihood with them over that without:
        sqrt(lambda^n |A|) exp(1/2 beta' A^-1 beta), A being their block of the covariance.
        """
        each = zip(*self._inside(blocks), precisions, strict=True)
        return np.array([_log_factor(self.point[at], A, precision) for at, A, precision in each])

    def unneeded(self, blocks: Sequence[Index], precisions: Sequence[float], least: float) -> list[int]:
        """Return the sets of coefficients to drop, by their numbers: those whose log Bayes factor is below the least.

        They go one at a time, the weakest first, and each is looked at again without those that went before: each of
        two sets that say the same can make the other look unneeded.
        """
        factors = self.log_factors(blocks, precisions)
        weak = [u for u in np.argsort(factors, kind="stable").tolist() if factors[u] < least]
        if not weak:
            return []
        (inside,), (A,) = self._inside([np.concatenate([blocks[u] for u in weak])])
        ends = np.cumsum([np.count_nonzero(self.free[1 + blocks[u]]) for u in weak])
        mean, dropped = self.point[inside], []
        for u, at in zip(weak, np.split(np.arange(len(inside)), ends[:-1]), strict=True):
            own = A[np.ix_(at, at)]
            if _log_factor(mean[at], own, precisions[u]) < least:
                # Without these coefficients the others are what they are where these are 0.
                moves = np.linalg.solve(own, A[at]).T
                mean, A = mean - moves @ mean[at], A - moves @ A[at]
                dropped.append(u)
        return dropped

    def _inside(self, blocks: Sequence[Index]) -> tuple[list[Index], list[Floats]]:
        """Return where the coefficients of sets are that no bound holds, and their blocks of the covariance."""
        place = np.cumsum(self.free) - 1
        inside = [1 + block[self.free[1 + block]] for block in blocks]
        return inside, self.factor.inverse_blocks([place[at] for at in inside])


def _log_factor(mean: Floats, covariance: Floats, precision: float) -> float:
    """Return the logarithm of the Bayes factor of coefficients, given their posterior and their prior's precision."""
    size, axes = np.linalg.eigh(covariance)
    size = np.maximum(size, np.finfo(float).tiny)
    return 0.5 * float(np.log(precision * size).sum() + ((axes.T @ mean) ** 2 / size).sum())


def maximize_evidence(
    loss: LogisticLoss | Moments,
    groups: Index,
    *,
    hyperprior: Hyperprior | None = None,
    total: float | None = None,
    lower: Floats | None = None,
    point: Floats | None = None,
    precision: Floats | None = None,
    population: tuple[float, float] | None = None,
    tolerance: float = 2e-4,
) -> Evidence:
    """Return the most probable coefficients, and the precisions of their groups.

    Between two Newton steps on the coefficients the precisions are updated, by the Hessian of the step.

    Parameters
    ----------
    loss : the logistic loss; or for least squares, the sums over the rows
    groups : (p,) the group of every coefficient, from 0
    total : how many rows the weights stand for; by default the sum of the weights
    lower : (p,), optional
    point : where to begin, optional: the intercept and the coefficients
    precision : where to begin, optional: (groups,), NaN where nothing is known
    population : where to begin, optional: mu and tau^2
    tolerance : it stops when another update would raise the log marginal likelihood by less than about this by group
    """
    n_groups = int(groups.max(initial=-1)) + 1
    prior = Hyperprior.flat(n_groups) if hyperprior is None else hyperprior
    with one_blas_thread():
        search = _Search(_sum_of_losses(loss, total), groups, lower, prior)
        state = search.start(point, precision, population)
        return search.run(state, tolerance)


def polished(
    loss: LogisticLoss | Moments, groups: Index, found: Evidence, lower: Floats, total: float | None = None
) -> Solution:
    """Return the coefficients at these precisions exactly, with the solver's certificate."""
    solution = _sum_of_losses(loss, total).solve(found.scale * found.precision[groups], lower, found.point)
    if found.converged:
        return solution
    return replace(solution, converged=False, reason=f"the limit of {_MOST_UPDATES} updates of the precisions")


def log_factors(curvature: Floats, score: Floats, precisions: Floats) -> Floats:
    """Return the logarithms of the Bayes factors of coefficients, to second order, at each of some precisions.

    Parameters
    ----------
    curvature, score : (p, p), (p,), of the log likelihood where the coefficients are 0

    Examples
    --------
    >>> log_factors(np.eye(1), np.array([2.0]), np.array([1.0, 1e9])).round(6)
    array([0.653426, 0.      ])
    """
    size, axes = np.linalg.eigh(curvature)
    steep = np.maximum(size, 0.0)[:, None] / precisions
    rise = (axes.T @ score) ** 2 @ (1.0 / (precisions * (1.0 + steep)))
    return np.asarray(0.5 * (rise - np.log1p(steep).sum(axis=0)))


def averaged(factors: Floats) -> float:
    """Return the logarithm of the mean of Bayes factors, given their logarithms."""
    return float(np.logaddexp.reduce(factors)) - math.log(len(factors))


class _Total(Protocol):
    """A sum of losses over rows."""

    start: Floats
    total: float

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]: ...
    def hessian(self, point: Floats) -> Curvature: ...
    def scale(self, point: Floats, edf: float) -> float: ...
    def solve(self, penalty: Floats, lower: Floats, start: Floats) -> Solution: ...


def _sum_of_losses(loss: LogisticLoss | Moments, total: float | None) -> _Total:
    return _Squares(loss, total) if isinstance(loss, Moments) else _Logistic(loss, total)


class _Logistic:
    def __init__(self, loss: LogisticLoss, total: float | None) -> None:
        self.loss, self.start = loss, loss.start
        self.total = loss.rows.totals[1] if total is None else total

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]:
        value, gradient = self.loss.value_and_gradient(point)
        return value * self.total, gradient * self.total

    def hessian(self, point: Floats) -> Curvature:
        return self.total * self.loss.hessian(point, exact=True)

    def scale(self, point: Floats, edf: float) -> float:
        return 1.0

    def solve(self, penalty: Floats, lower: Floats, start: Floats) -> Solution:
        return minimize(self.loss, ridge=penalty / (2.0 * self.total), lower=lower, start=start)


class _Squares:
    def __init__(self, moments: Moments, total: float | None) -> None:
        self.moments = moments
        self.total = moments.total if total is None else total
        self.start = np.zeros(len(moments.moment))
        self.start[0] = moments.moment[0] / moments.total
        self.unit = self.total / moments.total

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]:
        gradient = self.unit * (self.moments.gram @ point - self.moments.moment)
        return 0.5 * self.total * self.moments.mean_squared_error(point), gradient

    def hessian(self, point: Floats) -> Curvature:
        return self.unit * self.moments.gram

    def scale(self, point: Floats, edf: float) -> float:
        # If the coefficients use up most of the rows' degrees of freedom, half of them are reserved for the residuals.
        # No fit counts as closer than if one row had the error that all rows have without it.
        least = self.moments.mean_squared_error(self.start) / max(self.total, 1.0)
        error = max(self.moments.mean_squared_error(point), least)
        return self.total * error / max(self.total - 1.0 - edf, 0.5 * self.total)

    def solve(self, penalty: Floats, lower: Floats, start: Floats) -> Solution:
        # The residual variance is part of the penalty already.
        return minimize_squares(self.moments, ridge=penalty / self.total, lower=lower, start=start)


@dataclass(frozen=True)
class _State:
    """The current state of the search.

    Attributes
    ----------
    point, precision, scale : the coefficients, lambda and phi
    value, gradient : of the sum of losses at the point
    mean, variance : of the population, mu and tau^2
    step, pace : the last step of the log precisions, and how much of Newton's step is taken
    """

    point: Floats
    precision: Floats
    scale: float
    value: float
    gradient: Floats
    mean: float
    variance: float
    step: Floats
    pace: Floats


@dataclass(frozen=True)
class _Newton:
    """A Newton step of the coefficients: its end point, its predicted gain, and its Hessian.

    Attributes
    ----------
    edf : (p,), by coefficient
    edf_squared : (groups,), the trace of (I - lambda A)^2
    """

    point: Floats
    value: float
    gradient: Floats
    gain: float
    edf: Floats
    edf_squared: Floats
    quadratic: BoxedQuadratic


class _Search:
    """Alternates Newton steps of the coefficients and of the log precisions."""

    def __init__(self, loss: _Total, groups: Index, lower: Floats | None, prior: Hyperprior) -> None:
        self.loss, self.groups, self.prior, self.n_groups = loss, groups, prior, len(prior.unit)
        bounds = np.full(len(groups), -np.inf) if lower is None else lower
        self.lower = np.concatenate([[-np.inf], bounds])
        self.upper = np.full(1 + len(groups), np.inf)
        order = np.argsort(groups, kind="stable")
        self.blocks = np.split(1 + order, np.cumsum(np.bincount(groups, minlength=self.n_groups))[:-1])[: self.n_groups]

    def start(self, point: Floats | None, precision: Floats | None, population: tuple[float, float] | None) -> _State:
        """Return the state to begin with."""
        first = np.maximum(self.loss.start if point is None else point, self.lower)
        fixed = np.full(self.n_groups, np.nan) if precision is None else precision
        mean, variance = (np.nan, _FIRST_VARIANCE) if population is None else population
        usual = np.exp(mean + self.prior.unit)
        value, gradient = self.loss.value_and_gradient(first)
        return _State(
            point=first,
            precision=np.clip(
                np.where(~np.isnan(fixed), fixed, np.where(np.isnan(usual), _START, usual)), _LEAST, _MOST
            ),
            scale=self.loss.scale(first, 0.0),
            value=value,
            gradient=gradient,
            mean=mean,
            variance=variance,
            step=np.zeros(self.n_groups),
            pace=np.ones(self.n_groups),
        )

    def run(self, state: _State, tolerance: float) -> Evidence:
        """Search until an update is expected to gain less than the tolerance."""
        updates, H = 0, self.loss.hessian(state.point)
        newton = self._newton(state, H)
        after, gain = self._updated(state, newton)
        while newton.gain + gain > tolerance * self.n_groups and updates < _MOST_UPDATES:
            if newton.gain > _STALE * tolerance * self.loss.total:
                H = self.loss.hessian(after.point)
            state, updates = after, updates + 1
            newton = self._newton(state, H)
            after, gain = self._updated(state, newton)
        slope, curvature = self._slopes(state.precision, newton)
        pull, _ = self._density(np.log(state.precision), state.mean, state.variance, curvature)
        return Evidence(
            point=newton.point,
            precision=state.precision,
            edf=newton.edf,
            gradient=slope + pull[:-1],
            scale=state.scale,
            mean=state.mean,
            variance=state.variance,
            updates=updates,
            converged=updates < _MOST_UPDATES,
            free=newton.quadratic.state == FREE,
            quadratic=newton.quadratic,
        )

    def _density(self, theta: Floats, mean: float, variance: float, curvature: Floats) -> tuple[Floats, Floats]:
        """Return the slope of the hyperprior by log precisions and mu, and the curvature of the log posterior."""
        A, t, v = self.prior.equations(variance)
        H = np.diag(np.append(curvature, 0.0)) + A.T @ (A / v[:, None])
        H[np.diag_indices_from(H)] += 1e-9
        return -A.T @ ((A @ np.append(theta, mean) - t) / v), H

    def _newton(self, state: _State, H: Curvature) -> _Newton:
        """Take a step of the coefficients at the present precisions, H being about the Hessian there."""
        penalty = np.concatenate([[0.0], state.precision[self.groups]])
        quadratic = BoxedQuadratic(add_diagonal(H, penalty, 1.0 / state.scale))
        slope = state.gradient / state.scale + penalty * state.point
        d = quadratic.minimize(slope, self.lower - state.point, self.upper - state.point)
        edf, edf_squared = self._degrees(quadratic, state.precision)
        point, value, gradient = self._searched(state, d, penalty, float(slope @ d))
        return _Newton(point, value, gradient, -0.5 * float(slope @ d), edf, edf_squared, quadratic)

    def _degrees(self, quadratic: BoxedQuadratic, precision: Floats) -> tuple[Floats, Floats]:
        """Return the degrees of freedom of every coefficient, and the trace of the square of I - lambda A by group."""
        free = quadratic.state == FREE
        place = np.cumsum(free) - 1
        inside = [block[free[block]] for block in self.blocks]
        edf, squared = np.zeros(len(free)), np.zeros(self.n_groups)
        inverses = quadratic.factor(free).inverse_blocks([place[at] for at in inside])
        for u, (at, A) in enumerate(zip(inside, inverses, strict=True)):
            S = np.eye(len(A)) - precision[u] * A
            edf[at], squared[u] = np.maximum(S.diagonal(), 0.0), float((S * S).sum())
        return edf[1:], squared

    def _searched(self, state: _State, d: Floats, penalty: Floats, slope: float) -> tuple[Floats, float, Floats]:
        """Halve a step until the penalized loss falls; return the point, the sum of losses and its gradient."""
        first = state.value / state.scale + 0.5 * float(penalty @ state.point**2)
        for halvings in range(30):
            size = 0.5**halvings
            point = np.asarray(np.clip(state.point + size * d, self.lower, self.upper))
            value, gradient = self.loss.value_and_gradient(point)
            if value / state.scale + 0.5 * float(penalty @ point**2) <= first + 1e-4 * size * slope:
                return point, value, gradient
        return state.point, state.value, state.gradient

    def _slopes(self, precision: Floats, newton: _Newton) -> tuple[Floats, Floats]:
        """Return slope and expected curvature of the log marginal likelihood by each log precision."""
        edf, squares = (
            np.bincount(self.groups, values, minlength=self.n_groups) for values in (newton.edf, newton.point[1:] ** 2)
        )
        return 0.5 * (edf - precision * squares), 0.5 * newton.edf_squared

    def _updated(self, state: _State, newton: _Newton) -> tuple[_State, float]:
        """Move the log precisions; return the new state, and by about how much that raises the log posterior."""
        slope, curvature = self._slopes(state.precision, newton)
        theta = np.log(state.precision)
        mean, variance = self._population(state, theta, curvature)
        # Newton's step of the log precisions and mu together: groups that are far from their optimum must not slow
        # each other down.
        pull, H = self._density(theta, mean, variance, curvature)
        step = np.linalg.solve(H, np.append(slope, 0.0) + pull)[:-1]
        # A precision that swings back moves more slowly.
        pace = np.where(state.step * step < 0, 0.5 * state.pace, np.minimum(1.0, 1.25 * state.pace))
        step = np.clip(pace * step, -_LONGEST, _LONGEST)
        precision = np.clip(state.precision * np.exp(step), _LEAST, _MOST)
        gain = float(np.abs((slope + pull[:-1]) * np.log(precision / state.precision)).sum())
        return (
            _State(
                point=newton.point,
                precision=precision,
                scale=self.loss.scale(newton.point, float(newton.edf.sum())),
                value=newton.value,
                gradient=newton.gradient,
                mean=mean,
                variance=variance,
                step=step,
                pace=pace,
            ),
            gain,
        )

    def _population(self, state: _State, theta: Floats, curvature: Floats) -> tuple[float, float]:
        """Return mean and variance of the population, given the log precisions, by EM."""
        members = self.prior.members
        if not len(members):
            return 0.0, state.variance
        at = theta[members] - self.prior.unit[members]
        mean, variance = float(at.mean()), state.variance
        away = float(((at - mean) ** 2).sum()) + self.prior.spread
        for _ in range(_EM_STEPS):
            # How far each may be from its current value, by the likelihood and the population.
            variance = (away + float((1.0 / (curvature[members] + 1.0 / variance)).sum())) / (len(members) + 1)
        return mean, variance
