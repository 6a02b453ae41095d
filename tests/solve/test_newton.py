"""Bounded Newton: certificates, independent solutions, and problems without a finite optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

from plainrisk.solve import BOX, Block, Layout, LogisticLoss, Rows, kkt_residual, loss, minimize

N = 600
INF = np.inf


def objective(point, X, target, weight, ridge):
    """Mean log loss + ridge, and its gradient, as in a textbook."""
    score = point[0] + X @ point[1:]
    probability = 1.0 / (1.0 + np.exp(-score))
    value = weight @ (np.logaddexp(0.0, score) - target * score) / weight.sum()
    residual = weight * (probability - target) / weight.sum()
    gradient = np.concatenate([[residual.sum()], X.T @ residual + 2.0 * ridge * point[1:]])
    return value + (ridge * point[1:] ** 2).sum(), gradient


def lbfgs(X, target, weight, ridge, lower, upper):
    """An independent solution; polished by restarts, since one run stops a little early."""
    bounds = [(None, None), *zip(lower, upper, strict=True)]
    point = np.zeros(1 + X.shape[1])
    for _ in range(5):
        found = scipy_minimize(
            objective,
            point,
            (X, target, weight, ridge),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"ftol": 0.0, "gtol": 1e-13, "maxiter": 5000, "maxfun": 50000, "maxcor": 30},
        )
        point = found.x
    return float(found.fun), point


def numeric_loss(X, target, weight=None):
    return LogisticLoss(Layout((), X.shape[1]), Rows([Block((), target, weight, X)]))


@pytest.mark.parametrize("ridge", [0.0, 1 / (2 * N), 0.5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", ["features", "joint", "cells"])
def test_equals_an_independent_solution(make_problem, ridge, weighted, way):
    for seed in range(3):
        problem = make_problem(seed, weighted=weighted)
        X, target, weight, steps = problem.X, problem.target, problem.weight, problem.steps
        lower = np.where(steps, 0.0, -BOX if ridge == 0 else -INF)
        upper = np.full(len(steps), BOX if ridge == 0 else INF)
        upper[0] = 0.005  # a bound from above, too
        found = minimize(
            problem.loss(way),
            ridge=ridge,
            lower=np.where(steps, 0.0, -INF),
            upper=np.where(np.arange(len(steps)) == 0, 0.005, INF),
        )
        value, _ = lbfgs(X, target, weight, ridge, lower, upper)
        assert found.objective == pytest.approx(value, rel=1e-9)
        own_value, gradient = objective(found.point, X, target, weight, ridge)
        assert found.objective == pytest.approx(own_value, rel=1e-12)
        assert found.loss == pytest.approx(own_value - ridge * (found.coefficients**2).sum(), rel=1e-12)
        check_optimal(found.coefficients, gradient, lower, upper)
        assert found.kkt < 1e-9
        assert found.converged
        assert found.reason.startswith("optimum")
        assert not found.at_box.any()


def check_optimal(beta, gradient, lower, upper):
    """The Karush-Kuhn-Tucker conditions, and that some bounds bind and some do not."""
    at_lower, at_upper = beta <= lower, beta >= upper
    assert (beta >= lower).all()
    assert (beta <= upper).all()
    assert abs(gradient[0]) < 1e-9
    slopes = gradient[1:]
    assert np.abs(slopes[~at_lower & ~at_upper]).max() < 1e-9
    assert slopes[at_lower].min(initial=0.0) > -1e-9
    assert slopes[at_upper].max(initial=0.0) < 1e-9
    assert 0 < np.count_nonzero(at_lower | at_upper) < len(beta)


def test_dense_columns_and_a_ridge_per_coefficient(rng):
    X = rng.normal(size=(N, 3)) * [1.0, 3.0, 0.2]
    target = (X @ [1.0, -0.5, 2.0] + rng.normal(size=N) > 0.5).astype(np.float64)
    ridge = np.array([0.01, 0.0, 0.2])
    lower = np.array([-INF, 0.0, -INF])
    found = minimize(numeric_loss(X, target), ridge=ridge, lower=lower)
    value, point = lbfgs(X, target, np.ones(N), ridge, lower, np.full(3, INF))
    assert found.objective == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(found.point, point, atol=1e-6)
    assert found.coefficients[1] == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([0.0, 1e-6, 1e-3, 0.1]))
def test_any_problem_with_a_finite_optimum_is_solved_to_its_certificate(seed, p, ridge):
    rng = np.random.default_rng(seed)
    n = 40 * p
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-2, 2, p)
    X[:, rng.random(p) < 0.2] = 1.0  # the intercept again
    if p > 3:
        X[:, 1] = X[:, 2]
    target = (rng.random(n) < 0.5).astype(np.uint8)
    lower = np.where(rng.random(p) < 0.5, 0.0, -INF)
    upper = np.where((rng.random(p) < 0.3) & (lower < 0), 0.0, INF)
    scale = np.abs(X).max(axis=0)
    found = minimize(numeric_loss(X, target), ridge=ridge * scale**2, lower=lower, upper=upper, box=INF)
    assert found.converged
    value, gradient = objective(found.point, X, target, np.ones(n), ridge * scale**2)
    assert found.objective == pytest.approx(value, rel=1e-12)
    low, high = np.concatenate([[-INF], lower]), np.concatenate([[INF], upper])
    units = np.concatenate([[1.0], scale])
    assert kkt_residual(found.point, gradient / units, low, high) < 1e-8


@pytest.mark.parametrize("kind", ["codes", "dense", "both"])
def test_a_sampled_hessian_reaches_the_same_optimum(kind, monkeypatch, rng, make_problem):
    n, levels = 6000, (4, 3, 5)
    codes = [rng.integers(0, size, n).astype(np.uint8) for size in levels]
    codes[1][:] = np.where(rng.random(n) < 0.005, 2, codes[1] % 2)  # a rare level
    dense = rng.normal(size=(n, 2))
    target = (0.8 * codes[0] - 1.0 + dense[:, 0] + rng.normal(size=n) > 0).astype(np.uint8)
    used = tuple(codes) if kind != "dense" else ()
    rows = Rows([Block(used, target, None, None if kind == "codes" else dense)])
    matrices = make_problem(0).loss().layout.matrices
    layout = Layout(matrices if used else (), 0 if kind == "codes" else 2)
    lower = np.zeros(layout.n_coefficients)
    exact = minimize(LogisticLoss(layout, rows), ridge=1e-4, lower=lower)

    n_columns = len(used) + layout.n_dense
    monkeypatch.setattr(loss, "_HESSIAN_BUDGET", 2000 * (n_columns * (n_columns + 1) // 2))
    few = LogisticLoss(layout, rows)
    assert few.is_sampled
    sampled = minimize(few, ridge=1e-4, lower=lower)
    assert sampled.converged
    assert sampled.kkt < 1e-9
    assert sampled.objective == pytest.approx(exact.objective, rel=1e-12)
    np.testing.assert_allclose(sampled.coefficients, exact.coefficients, atol=1e-8)


@pytest.mark.parametrize("column", ["rare", "odd rows", "one outlier"])
@pytest.mark.parametrize("ridge", [0.0, 1e-6])
def test_a_column_that_a_sample_may_miss(column, ridge, monkeypatch, rng):
    monkeypatch.setattr(loss, "_HESSIAN_BUDGET", 6000.0)
    n = 20_000
    X = rng.normal(size=(n, 2))
    if column == "rare":
        X[:, 1] = 0.0
        X[rng.choice(n, 8, replace=False), 1] = 1.0
    elif column == "odd rows":
        X[::2, 1] = 0.0
    else:
        X[:, 1] *= 1e-3
        X[n // 2, 1] = 40.0
    target = (X[:, 0] + rng.normal(size=n) > 1).astype(np.uint8)
    if column == "rare":
        target[X[:, 1] == 1.0] = [0, 1] * 4
    few = numeric_loss(X, target)
    assert few.is_sampled
    found = minimize(few, ridge=ridge, box=INF)
    assert found.converged
    assert found.kkt < 1e-9
    assert found.iterations < 60


@pytest.mark.parametrize("outliers", [3, 50])
@pytest.mark.parametrize("size", [1.0, 5.0])
def test_a_column_whose_curvature_a_sample_overrates(outliers, size, monkeypatch, rng):
    """Few rows far out are all in the sample, where each stands for ten."""
    n = 20_000
    X = rng.normal(size=(n, 2)) * [1.0, 1e-3]
    target = (X[:, 0] + rng.normal(size=n) > 1).astype(np.uint8)
    in_sample = np.flatnonzero(np.random.default_rng(0).random(n) < 0.1)  # as the first block is sampled
    X[in_sample[:outliers], 1] = size
    exact = minimize(numeric_loss(X, target), box=INF)
    monkeypatch.setattr(loss, "_HESSIAN_BUDGET", 6000.0)
    found = minimize(numeric_loss(X, target), box=INF)
    assert found.converged
    assert found.kkt < 1e-9
    np.testing.assert_allclose(found.coefficients, exact.coefficients, rtol=0, atol=1e-8)


def test_a_warm_start_ends_at_the_same_optimum(make_problem):
    problem = make_problem(2)
    found, lower = problem.loss("cells"), np.where(problem.steps, 0.0, -INF)
    cold = minimize(found, ridge=1e-3, lower=lower)
    warm = minimize(found, ridge=1e-3, lower=lower, start=cold.point)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.coefficients, cold.coefficients, atol=1e-9)
    far = minimize(found, ridge=1e-3, lower=lower, start=np.full(11, -7.0))
    assert far.objective == pytest.approx(cold.objective, rel=1e-12)
    np.testing.assert_allclose(far.coefficients, cold.coefficients, atol=1e-8)


def test_the_limit_of_iterations_is_a_stop_that_says_so(make_problem):
    found = minimize(make_problem(0).loss(), ridge=1e-3, max_iterations=1)
    assert not found.converged
    assert found.reason == "the limit of 1 iterations"
    assert found.iterations == len(found.history) == 1


def test_the_history_falls(make_problem):
    problem = make_problem(1)
    found = minimize(problem.loss(), ridge=1e-3, lower=np.where(problem.steps, 0.0, -INF))
    values, decreases = np.array(found.history).T
    assert len(values) == found.iterations
    assert (np.diff(values) <= 1e-12).all()
    assert (decreases >= -1e-15).all()
    assert values[-1] == pytest.approx(found.objective, rel=1e-9)


def test_nothing_but_an_intercept():
    target = np.zeros(64, np.uint8)
    target[1::16] = 1
    found = minimize(LogisticLoss(Layout(()), Rows([Block((), target)])))
    assert found.converged
    assert found.intercept == pytest.approx(np.log(4 / 60), rel=1e-12)
    assert found.coefficients.shape == (0,)


def test_repr_is_one_line_with_the_certificate(make_problem):
    found = minimize(make_problem(0).loss(), ridge=1e-3)
    assert repr(found).startswith("Solution(10 coefficients, objective 0.")
    assert "KKT residual" in repr(found)
    assert "\n" not in repr(found)


# ---- no finite optimum


def one_hot_loss(code, target, size):
    return LogisticLoss(Layout((np.eye(size),)), Rows([Block((code.astype(np.uint8),), target)]))


@pytest.mark.parametrize("pure", [0, 1])
def test_a_pure_level_without_ridge_is_stopped_and_told(pure):
    code, target = np.repeat([0, 1], 40), np.tile([0.0, 1.0], 40)
    target[40:] = pure
    found = minimize(one_hot_loss(code, target, 2))
    assert not found.converged or found.at_box.any()
    assert "no finite optimum" in found.reason
    assert np.abs(found.coefficients).max() <= BOX
    assert found.loss == pytest.approx(0.5 * np.log(2), abs=1e-8)
    assert minimize(one_hot_loss(code, target, 2), ridge=1e-3).converged


def test_separable_lines_without_a_box_are_stopped_and_told(rng):
    X = rng.normal(size=(100, 2))
    found = minimize(numeric_loss(X, (X[:, 0] > 0).astype(float)), box=INF)
    assert not found.converged
    assert found.loss < 1e-6
    assert np.isfinite(found.coefficients).all()


def test_quasi_separable_lines_are_stopped_and_told():
    X = np.repeat([0.0, 1.0], 50)[:, None]
    target = np.where(X[:, 0] == 1, 1.0, np.tile([0.0, 1.0], 50))
    found = minimize(numeric_loss(X, target), box=INF)
    assert not found.converged
    assert "no finite optimum" in found.reason


def test_flat_directions_are_no_reason_to_complain(rng):
    # Duplicate columns beside an intercept and all indicators: many optima, all finite, all the same model.
    X = np.column_stack([np.repeat(np.eye(4), 50, axis=0)] * 2)
    target = (rng.random(200) < 0.4).astype(float)
    found = minimize(numeric_loss(X, target))
    assert found.converged
    assert found.kkt < 1e-9
    rates = target.reshape(4, 50).mean(axis=1)
    score = found.intercept + X[::50] @ found.coefficients
    np.testing.assert_allclose(1 / (1 + np.exp(-score)), rates, atol=1e-9)


# ---- the parts


class Bowl:
    """A quadratic loss, whose Hessian may be wrong unless it is asked to be exact."""

    def __init__(self, H, center, estimate=None):
        self.H, self.center = np.asarray(H, float), np.asarray(center, float)
        self.estimate = self.H if estimate is None else np.asarray(estimate, float)
        self.start = np.zeros(len(self.center))
        self.is_sampled = estimate is not None
        self.exact_hessians = 0

    def value_and_gradient(self, point):
        d = point - self.center
        return float(1.0 + 0.5 * d @ self.H @ d), self.H @ d

    def hessian(self, point, *, exact=False):
        self.exact_hessians += exact
        return self.H if exact else self.estimate


def test_a_step_onto_a_bound():
    found = minimize(Bowl(np.eye(2), [0.0, 1.0]), upper=np.array([0.5]))
    assert found.converged
    assert found.coefficients.tolist() == [0.5]


@pytest.mark.parametrize("factor", [0.1, 0.3, 3.0, 10.0])
def test_a_wrong_estimate_of_the_hessian_costs_steps_not_the_optimum(factor, rng):
    A = rng.normal(size=(30, 6))
    H, center = A.T @ A / 30, rng.normal(size=6)
    bowl = Bowl(H, center, estimate=factor * np.diag(np.diag(H)))
    found = minimize(bowl)
    assert found.converged
    assert found.iterations < 40
    np.testing.assert_allclose(found.point, center, atol=1e-6)


def test_what_counts_against_an_optimum():
    # Free, at the lower bound, at the upper, between them, and held by both.
    lower, upper = np.array([-INF, 0.0, 0.0, 0.0, 2.0]), np.array([INF, 1.0, 1.0, 1.0, 2.0])
    point = np.array([0.0, 0.0, 1.0, 0.5, 2.0])
    for gradient, wanted in [
        ([0.0, 5.0, -5.0, 0.0, 5.0], 0.0),
        ([0.0, 5.0, -5.0, 0.0, -5.0], 0.0),
        ([-0.5, 0.0, 0.0, 0.25, 0.0], 0.5),
        ([0.0, -0.5, 0.25, 0.0, 0.0], 0.5),
        ([0.0, -0.25, 0.5, 0.0, 0.0], 0.5),
        ([0.0, 0.0, 0.0, -0.2, 0.0], 0.2),
    ]:
        assert kkt_residual(point, np.array(gradient), lower, upper) == wanted
    assert kkt_residual(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)) == 0
