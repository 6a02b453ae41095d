"""How much each group of coefficients is shrunk, chosen by marginal likelihood.

The coefficients of group u have a normal prior of mean 0 and precision lambda_u. The most probable ones minimise

    sum of losses / phi + 1/2 sum_u lambda_u |beta_u|^2

(phi = 1 for the logistic loss, the residual variance for half the squared error). With H the Hessian of the sum of
losses, taken as it is, Laplace's approximation of the marginal likelihood of the lambdas is greatest where

    lambda_u |beta_u|^2 = edf_u = n_u - lambda_u trace [(H/phi + Lambda)^-1]_uu

and n_u is the number of coefficients of the group that no bound holds. The update lambda_u = edf_u / |beta_u|^2 goes
there (Fellner and Schall; MacKay; Wood and Fasiolo 2017). A group whose effective degrees of freedom edf_u go to 0 has
left the model. Groups that share a precision have sums in place of edf_u and |beta_u|^2, and leave together.

A few rows tell little of one precision, but the precisions of many groups tell what is usual. So groups whose scores
have a known variance c_u over the rows at precision 1 are a population: log(lambda_u / c_u) is normal, and its mean mu
and variance tau^2 are found along with the precisions, by EM. The update becomes Newton's step for

    log marginal likelihood - sum_u (log(lambda_u / c_u) - mu)^2 / (2 tau^2)

on log(lambda_u). Where groups differ widely tau^2 is large, and each precision is found by its own evidence, as above.

Groups without any effect stay in such a population, each next to nothing; many of them are a nuisance. So where most
groups are silent, a group must be more likely in than out. Its Bayes factor, the marginal likelihood with the group
over that without, is

    sqrt(lambda_u^n_u |A_uu|) exp(1/2 beta_u' A_uu^-1 beta_u),    A = (H/phi + Lambda)^-1

and the odds beforehand are taken from the groups themselves: those that speak to those that are silent. A group is
silent if its Bayes factor is below 1, or it has left, and there is no strong evidence for it alone either, beside the
intercept; one whose say others have taken over is not. All silent groups leave, and the weaker half of the others that
fail; then the search goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.solve.box import FREE, BoxedQuadratic
from plainrisk.solve.curvature import Curvature, Factor, add_diagonal, submatrix
from plainrisk.solve.loss import LogisticLoss
from plainrisk.solve.newton import Solution, minimise
from plainrisk.solve.squares import Moments, minimise_squares
from plainrisk.threads import one_blas_thread

__all__ = ["Evidence", "log_factors", "maximise_evidence"]

# Where the precisions start, and the range they are kept in.
_START, _LEAST, _MOST = 10.0, 1e-3, 1e12
# A group of fewer effective degrees of freedom than this has left the model.
_LEFT = 0.05
_MOST_UPDATES = 200
# The logarithm of a precision moves by at most this in one update.
_LONGEST = 2.0
# Bayes factors are looked at once an update raises the log marginal likelihood by less than this for each group.
_NEARLY = 1e-2
# Beside the groups of a population there is one more, whose log precision is this far from the mean, squared: so tau^2
# does not vanish where groups are few. And how many steps of EM are made between two updates of the precisions.
_APART, _EM_STEPS = 1.0, 10
# From 20 on, a Bayes factor is strong evidence (Kass and Raftery 1995); precisions to try for a group that is alone.
_STRONG, _PRECISIONS = float(np.log(20.0)), np.logspace(-1, 5, 13)


@dataclass(frozen=True)
class Evidence:
    """What the marginal likelihood says of every group of coefficients.

    Attributes
    ----------
    precision : (groups,), lambda
    edf : (groups,), effective degrees of freedom
    left : (groups,), whether the group has left the model; its coefficients are 0
    gradient : (groups,), of the log marginal likelihood, and of the population's density, by the logarithm of each
        one's precision: 0 at the maximum
    log_factor : (groups,), the logarithm of each one's Bayes factor; 0 if it has left
    scale : phi
    updates : how often the precisions were updated
    converged : whether they were found
    free : (1 + p,), which coefficients no bound holds, the intercept first
    factor : of (H/phi + Lambda) in these, whose inverse is the covariance of the posterior
    """

    precision: Floats
    edf: Floats
    left: Bools
    gradient: Floats
    log_factor: Floats
    scale: float
    updates: int
    converged: bool
    free: Bools
    factor: Factor

    def covariance(self) -> Floats:
        """Return the covariance of all coefficients, (1 + p, 1 + p); 0 for those that a bound holds."""
        (inverse,) = self.factor.inverse_blocks([np.arange(int(self.free.sum()))])
        whole = np.zeros((len(self.free), len(self.free)))
        whole[np.ix_(self.free, self.free)] = inverse
        return whole


def maximise_evidence(
    loss: LogisticLoss | Moments,
    groups: Index,
    *,
    shared: Index | None = None,
    alike: Floats | None = None,
    needed: Floats | None = None,
    lower: Floats | None = None,
    point: Floats | None = None,
    precision: Floats | None = None,
    left: Bools | None = None,
    tolerance: float = 1e-4,
) -> tuple[Solution, Evidence]:
    """Return the most probable coefficients, and the precisions of their groups.

    Between two Newton steps on the coefficients the precisions are updated, by the Hessian of the step.

    Parameters
    ----------
    loss : the logistic loss; or for least squares, the sums over the rows
    groups : (p,) the group of every coefficient, from 0
    shared : (groups,), optional: groups of the same number share a precision
    alike : (groups,), optional: c_u for the groups of the population, which share no precision; NaN for others
    needed : (groups,), optional: the logarithm of the Bayes factor that a group needs to stay; NaN if the odds of all
        such groups decide
    lower : (p,), optional
    point : where to begin, optional: the intercept and the coefficients
    precision : where to begin, optional: (groups,), NaN where nothing is known
    left : (groups,), optional: groups that are out from the beginning
    tolerance : it stops when another update would raise the log marginal likelihood by less than about this
    """
    total = _Squares(loss) if isinstance(loss, Moments) else _Logistic(loss)
    bounds = np.full(len(groups), -np.inf) if lower is None else lower
    with one_blas_thread():
        search = _Search(total, groups, bounds, shared, needed, alike)
        if point is not None:
            search.point = point.copy()
        if precision is not None:
            search.precision = np.where(np.isnan(precision), search.precision, precision)
        if left is not None:
            search.leave(left)
        return search.run(tolerance)


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


class _Total(Protocol):
    """A sum of losses over rows."""

    start: Floats

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]: ...
    def hessian(self, point: Floats) -> Curvature: ...
    def scale(self, point: Floats, edf: float) -> float: ...
    def solve(self, penalty: Floats, lower: Floats, upper: Floats, start: Floats) -> Solution: ...


class _Logistic:
    def __init__(self, loss: LogisticLoss) -> None:
        self.loss, self.total = loss, loss.rows.totals[1]
        self.start = loss.start

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]:
        value, gradient = self.loss.value_and_gradient(point)
        return value * self.total, gradient * self.total

    def hessian(self, point: Floats) -> Curvature:
        return self.total * self.loss.hessian(point, exact=True)

    def scale(self, point: Floats, edf: float) -> float:
        return 1.0

    def solve(self, penalty: Floats, lower: Floats, upper: Floats, start: Floats) -> Solution:
        return minimise(self.loss, ridge=penalty / (2.0 * self.total), lower=lower, upper=upper, start=start)


class _Squares:
    def __init__(self, moments: Moments) -> None:
        self.moments, self.total = moments, moments.total
        self.start = np.zeros(len(moments.moment))
        self.start[0] = moments.moment[0] / moments.total

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]:
        gradient = self.moments.gram @ point - self.moments.moment
        return 0.5 * self.total * self.moments.mean_squared_error(point), gradient

    def hessian(self, point: Floats) -> Curvature:
        return self.moments.gram

    def scale(self, point: Floats, edf: float) -> float:
        # Should the coefficients take up most of what the rows tell, half of it is left for the residuals. No fit
        # is taken to be nearer than if one row had the error that all have without it.
        least = self.moments.mean_squared_error(self.start) / max(self.total, 1.0)
        error = max(self.moments.mean_squared_error(point), least)
        return self.total * error / max(self.total - 1.0 - edf, 0.5 * self.total)

    def solve(self, penalty: Floats, lower: Floats, upper: Floats, start: Floats) -> Solution:
        # The residual variance is part of the penalty already.
        return minimise_squares(self.moments, ridge=penalty / self.total, lower=lower, upper=upper, start=start)


class _Population:
    """The precisions of groups that are alike; see the module's docstring.

    Attributes
    ----------
    unit : (groups,), log c_u, NaN for groups that do not belong to it
    mean, variance : mu and tau^2
    """

    def __init__(self, alike: Floats) -> None:
        self.unit = np.log(np.where(alike > 0, alike, np.nan))
        self.mean, self.variance = np.nan, _APART

    def find(self, precision: Floats, curvature: Floats, stay: Bools) -> None:
        """Find mean and variance, given the curvature of each group's log likelihood by its log precision."""
        own = stay & ~np.isnan(self.unit)
        if not own.any():
            return
        at = np.log(precision[own]) - self.unit[own]
        self.mean = float(at.mean())
        away = float(((at - self.mean) ** 2).sum()) + _APART
        for _ in range(_EM_STEPS):
            # How far each may be from where it stands, by the likelihood and the population.
            spread = 1.0 / (curvature[own] + 1.0 / self.variance)
            self.variance = (away + float(spread.sum())) / (len(at) + 1)

    def pull(self, precision: Floats) -> Floats:
        """Return the slope of each group's log density by its log precision; 0 for others."""
        return np.nan_to_num((self.mean - (np.log(precision) - self.unit)) / self.variance)

    def newton(self, slope: Floats, curvature: Floats, stay: Bools) -> Floats:
        """Return Newton's step for the log precisions, of slopes with the pull and curvatures without.

        The mean goes along: were it held, many groups that all have far to go would hold each other back.
        """
        own = stay & ~np.isnan(self.unit)
        stiff = np.where(own, 1.0 / self.variance, 0.0)
        step = np.zeros(len(slope))
        step[stay] = slope[stay] / (curvature + stiff)[stay]
        if own.any():
            share = stiff[own] / (curvature + stiff)[own]
            free = max(float((1.0 - share).sum()), np.finfo(float).tiny)
            step[own] += share * np.clip(step[own].sum() / free, -_LONGEST, _LONGEST)
        return step


class _Search:
    """The iteration; points have the intercept first.

    Attributes
    ----------
    needed : the logarithm of the Bayes factor that a group needs to stay: none if it shares its precision; NaN if the
        odds decide
    point, precision, scale : where it stands
    decrease : about what the last step took off the penalised loss
    edf, squares : per group at that point, degrees of freedom and the sum of squares of the coefficients
    blocks : of the groups that had not left: number, coefficients that are free, their part of A, and the precision
    left : groups that have left, whose coefficients stay at 0
    """

    def __init__(
        self,
        loss: _Total,
        groups: Index,
        lower: Floats,
        shared: Index | None,
        needed: Floats | None,
        alike: Floats | None,
    ) -> None:
        self.loss, self.groups, self._lower = loss, groups, lower
        self.n_groups = int(groups.max(initial=-1)) + 1
        self.shared = np.arange(self.n_groups) if shared is None else shared
        own = np.bincount(self.shared, minlength=self.n_groups)[self.shared] == 1
        self.needed = np.where(own, np.nan if needed is None else needed, -np.inf)
        self.point = np.maximum(loss.start, np.concatenate([[-np.inf], lower]))
        self.scale = loss.scale(self.point, 0.0)
        self.precision, self.left = np.full(self.n_groups, _START), np.zeros(self.n_groups, bool)
        self.population = _Population(np.full(self.n_groups, np.nan) if alike is None else alike)
        self.edf, self.edf_squared, self.squares, self.step = np.zeros((4, self.n_groups))
        self.pace = np.ones(self.n_groups)

    def run(self, tolerance: float) -> tuple[Solution, Evidence]:
        updates, gain, settled = 0, np.inf, False
        while updates < _MOST_UPDATES and not settled:
            self._step()
            gain = self._update()
            updates += 1
            dropped = gain <= max(tolerance, _NEARLY * np.sum(~self.left)) and self._drop()
            settled = gain <= tolerance and not dropped
        penalty = self.scale * self.penalty[1:]
        solution = self.loss.solve(penalty, self.lower[1:], self.upper[1:], self.point)
        self.point = solution.point
        self._step()
        self.leave(self.left)
        slope = 0.5 * (self._together(self.edf) - self.precision * self._together(self.squares))
        slope += self.population.pull(self.precision)
        gradient = np.where(self.left, 0.0, slope)
        if not settled:
            reason = f"the limit of {_MOST_UPDATES} updates of the precisions"
            solution = replace(solution, converged=False, reason=reason)
        return solution, Evidence(
            self.precision,
            self.edf,
            self.left,
            gradient,
            self.log_factor,
            self.scale,
            updates,
            settled,
            self.quadratic.state == FREE,
            self.quadratic.factor(self.quadratic.state == FREE),
        )

    @property
    def penalty(self) -> Floats:
        """The precision of every coefficient; that of the intercept is 0."""
        return np.concatenate([[0.0], self.precision[self.groups]])

    @property
    def lower(self) -> Floats:
        """The lower bounds: 0 for groups that have left."""
        return np.concatenate([[-np.inf], np.where(self.left[self.groups], 0.0, self._lower)])

    @property
    def upper(self) -> Floats:
        """The upper bounds: 0 for groups that have left."""
        return np.concatenate([[np.inf], np.where(self.left[self.groups], 0.0, np.inf)])

    def _step(self) -> None:
        """Take a Newton step at the present precisions, and find the degrees of freedom by its Hessian."""
        value, gradient = self.loss.value_and_gradient(self.point)
        H = (1.0 / self.scale) * self.loss.hessian(self.point)
        penalty, lower, upper = self.penalty, self.lower, self.upper
        self.quadratic = quadratic = BoxedQuadratic(add_diagonal(H, penalty))
        slope = gradient / self.scale + penalty * self.point
        d = quadratic.minimise(slope, lower - self.point, upper - self.point)
        self._find_edf(quadratic)
        self.decrease = -0.5 * float(slope @ d)
        self.point = self._searched(d, value / self.scale, float(slope @ d))
        self.squares = np.bincount(self.groups, self.point[1:] ** 2, minlength=self.n_groups).astype(np.float64)

    def _find_edf(self, quadratic: BoxedQuadratic) -> None:
        """Find the degrees of freedom of every group, the trace of I - lambda A, and the trace of its square."""
        free = quadratic.state == FREE
        place, own = np.cumsum(free) - 1, np.concatenate([[-1], self.groups])
        stay = np.flatnonzero(~self.left).tolist()
        inside = [np.flatnonzero((own == u) & free) for u in stay]
        inverse = quadratic.factor(free).inverse_blocks([place[at] for at in inside])
        for u, A in zip(stay, inverse, strict=True):
            S = np.eye(len(A)) - self.precision[u] * A
            self.edf[u], self.edf_squared[u] = max(float(S.trace()), 0.0), float((S * S).sum())
        self.blocks = list(zip(stay, inside, inverse, self.precision[stay].tolist(), strict=True))

    @property
    def log_factor(self) -> Floats:
        """The logarithm of the Bayes factor of every group; 0 if it has left."""
        found = np.zeros(self.n_groups)
        for u, at, A, precision in self.blocks:
            size, axes = np.linalg.eigh(A)
            size = np.maximum(size, np.finfo(float).tiny)
            found[u] = 0.5 * (np.log(precision * size).sum() + ((axes.T @ self.point[at]) ** 2 / size).sum())
        return np.where(self.left, 0.0, found)

    def _searched(self, d: Floats, value: float, slope: float) -> Floats:
        """Halve a step until the penalised loss falls."""
        penalty, start = self.penalty, np.asarray(self.point)
        first = value + 0.5 * float(penalty @ start**2)
        for halvings in range(30):
            size = 0.5**halvings
            point = np.asarray(np.clip(start + size * d, self.lower, self.upper))
            found = self.loss.value_and_gradient(point)[0] / self.scale + 0.5 * float(penalty @ point**2)
            if found <= first + 1e-4 * size * slope:
                return point
        return start

    def _together(self, values: Floats) -> Floats:
        """Return for every group the sum over those that share its precision."""
        return np.bincount(self.shared, values)[self.shared].astype(np.float64)

    def leave(self, groups: Bools) -> None:
        """Take groups out of the model, for good."""
        self.left = self.left | groups
        self.edf[self.left] = 0.0
        self.point[1:][self.left[self.groups]] = 0.0

    def _drop(self) -> bool:
        """Let groups go that are less likely in than out; return whether there are any."""
        if np.isneginf(self.needed).all():
            return False
        factor, judged = self.log_factor, np.isnan(self.needed)
        silent, odds = judged & (self.left | (factor < 0)), -np.inf
        if 2 * silent.sum() > judged.sum():
            silent &= self.silent_alone
            # Half a group on both sides keeps the odds finite; even odds let nobody go.
            against = float(np.log((silent.sum() + 0.5) / ((judged & ~silent).sum() + 0.5)))
            odds = against if against > 0 else -np.inf
        fail = (factor < np.where(judged, odds, self.needed)) & ~self.left
        others = np.flatnonzero(fail & ~silent)
        # Each of two groups that say the same makes the other look idle, so of the others only half leave at a time.
        weakest = others[np.argsort(factor[others], kind="stable")][: -(-len(others) // 2)]
        self.leave(fail & (silent | np.isin(np.arange(self.n_groups), weakest)))
        return bool(fail.any())

    @cached_property
    def silent_alone(self) -> Bools:
        """Whether a group says little alone: its Bayes factor beside the intercept, at the best precision."""
        null = self.loss.start
        scale = self.loss.scale(null, 0.0)
        score, H = -self.loss.value_and_gradient(null)[1] / scale, (1.0 / scale) * self.loss.hessian(null)
        order = np.argsort(self.groups, kind="stable")
        blocks = np.split(order, np.cumsum(np.bincount(self.groups, minlength=self.n_groups))[:-1])
        best = np.zeros(self.n_groups)
        for u, block in enumerate(blocks):
            whole = submatrix(H, np.concatenate([[0], 1 + block]))
            own = whole[1:, 1:] - np.outer(whole[1:, 0], whole[0, 1:]) / whole[0, 0]
            best[u] = log_factors(own, score[1 + block], _PRECISIONS).max()
        return np.asarray(best < _STRONG)

    def _update(self) -> float:
        """Update the precisions; return by about how much that, and the step, raise the log marginal likelihood."""
        edf, edf_squared, squares = map(self._together, (self.edf, self.edf_squared, self.squares))
        # A group stays if only its population holds it down, and its own evidence asks for more.
        self.leave((edf < _LEFT) & ((edf >= squares * self.precision) | (edf == 0)))
        stay = ~self.left
        # Newton's step, by the expected curvature, is longer than the update; a group that swings back goes slower.
        slope, curvature = 0.5 * (edf - self.precision * squares), 0.5 * edf_squared
        self.population.find(self.precision, curvature, stay)
        pull = self.population.pull(self.precision)
        step = self.population.newton(slope + pull, curvature, stay)
        self.pace = np.where(self.step * step < 0, 0.5 * self.pace, np.minimum(1.0, 1.25 * self.pace))
        self.step = np.clip(self.pace * step, -_LONGEST, _LONGEST)
        before = self.precision
        self.precision = np.clip(before * np.exp(self.step), _LEAST, _MOST)
        slope = 0.5 * (self.edf - before * self.squares) + pull
        gain = slope[stay] * np.log(self.precision[stay] / before[stay])
        self.scale = self.loss.scale(self.point, float(self.edf.sum()))
        return self.decrease + float(np.abs(gain).sum())
