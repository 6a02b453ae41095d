"""Bounded least squares: sums of products against counts by hand, and solutions against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from plainrisk.solve import Block, Layout, Moments, Rows, minimize_squares

N = 300
SIZES = (4, 3, 6, 2)


def make_rows(rng, *, weighted=False):
    codes = tuple(rng.integers(0, size, N).astype(np.uint8) for size in SIZES)
    target = (rng.random(N) < 0.2 + 0.1 * codes[0]).astype(np.uint8)
    weight = rng.random(N) * (rng.random(N) < 0.8) if weighted else None
    return Block(codes, target if weight is None else weight * target, weight)


def products_by_hand(block):
    """Count pairs of levels in plain Python; the constant comes first."""
    starts = 1 + np.cumsum([0, *SIZES])
    gram, moment = np.zeros((starts[-1], starts[-1])), np.zeros(starts[-1])
    for i in range(N):
        columns = [0, *(int(start + code[i]) for start, code in zip(starts, block.codes, strict=False))]
        for a in columns:
            moment[a] += block.positive[i]
            for b in columns:
                gram[a, b] += 1.0 if block.weight is None else block.weight[i]
    return gram, moment


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_products_are_counts(rng, weighted):
    block = make_rows(rng, weighted=weighted)
    found = Moments.of(Layout(tuple(map(np.eye, SIZES))), Rows([block]))
    gram, moment = products_by_hand(block)
    np.testing.assert_allclose(found.gram, gram, rtol=1e-12, atol=0 if not weighted else 1e-13)
    np.testing.assert_allclose(found.moment, moment, rtol=1e-12, atol=0 if not weighted else 1e-13)
    assert found.total == pytest.approx(N if block.weight is None else block.weight.sum(), rel=1e-13)


def test_joint_codes_give_the_sums_of_single_ones(rng):
    block = make_rows(rng)
    joint = np.ravel_multi_index(block.codes[:2], SIZES[:2]).astype(np.uint8)
    members = np.unravel_index(np.arange(12), SIZES[:2])
    pair = np.hstack([np.eye(4)[members[0]], np.eye(3)[members[1]]])
    single = Moments.of(Layout(tuple(map(np.eye, SIZES))), Rows([block]))
    joined = Block((joint, *block.codes[2:]), block.positive)
    found = Moments.of(Layout((pair, np.eye(6), np.eye(2))), Rows([joined]))
    np.testing.assert_array_equal(found.gram, single.gram)
    np.testing.assert_array_equal(found.moment, single.moment)


def test_the_mean_squared_error_is_that_of_the_rows(rng):
    block, point = make_rows(rng, weighted=True), rng.normal(size=16)
    target = (block.positive > 0).astype(float)
    score = point[0] + np.hstack([np.eye(n)[c] for n, c in zip(SIZES, block.codes, strict=True)]) @ point[1:]
    wanted = np.average((np.where(block.weight > 0, target, 0.0) - score) ** 2, weights=block.weight)
    found = Moments.of(Layout(tuple(map(np.eye, SIZES))), Rows([block])).mean_squared_error(point)
    assert found == pytest.approx(wanted, rel=1e-11)


def moments(X, y, w=None):
    A = np.column_stack([np.ones(len(X)), X])
    weight = np.ones(len(X)) if w is None else w
    return Moments((A.T * weight) @ A, A.T @ (weight * y))


def lsq_reference(X, y, w, ridge, lower, upper):
    """scipy's bounded least squares, the ridge as further rows: (objective, point)."""
    n, p = X.shape
    root = np.sqrt(w / w.sum())
    A = np.vstack([np.column_stack([np.ones(n), X]) * root[:, None], np.zeros((p, 1 + p))])
    A[n:, 1:] = np.sqrt(ridge) * np.eye(p)
    b = np.concatenate([root * y, np.zeros(p)])
    bounds = (np.concatenate([[-np.inf], lower]), np.concatenate([[np.inf], upper]))
    found = lsq_linear(A, b, bounds, method="bvls", tol=1e-15, max_iter=1000)
    return float(((A @ found.x - b) ** 2).sum()), found.x


@pytest.mark.parametrize("ridge", [0.0, 1 / (2 * N), 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_line_equals_scipy(ridge, weighted, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((N, 9)) < 0.4).astype(np.float64)
    y = (rng.random(N) < 0.3 + 0.2 * X[:, 0] - 0.1 * X[:, 1]).astype(np.float64)
    w = rng.integers(0, 4, N).astype(np.float64) if weighted else np.ones(N)
    lower = np.where(np.arange(9) < 5, 0.0, -np.inf)
    upper = np.where(np.arange(9) == 8, 0.05, np.inf)
    found = minimize_squares(moments(X, y, w), ridge=ridge, lower=lower, upper=upper)
    value, point = lsq_reference(X, y, w, ridge, lower, upper)
    assert found.objective == pytest.approx(value, rel=1e-9)
    assert found.loss == pytest.approx(value - ridge * (point[1:] ** 2).sum(), rel=1e-9)
    np.testing.assert_allclose(found.point, point, atol=1e-9)
    assert found.converged
    assert found.kkt < 1e-12
    assert (found.coefficients >= lower).all()
    assert (found.coefficients <= upper).all()
    assert (found.coefficients == 0).any(), "no bound is active, so the test says little"


def test_a_ridge_per_coefficient_and_a_warm_start(rng):
    X, y = rng.normal(size=(N, 3)), rng.integers(0, 2, N).astype(float)
    ridge, lower = np.array([0.0, 0.1, 10.0]), np.array([0.0, -np.inf, 0.0])
    found = minimize_squares(moments(X, y), ridge=ridge, lower=lower)
    A = np.column_stack([np.ones(N), X])
    free = np.concatenate([[True], found.coefficients != 0])
    normal = (A.T @ A / N + np.diag([0.0, *ridge]))[np.ix_(free, free)]
    np.testing.assert_allclose(found.point[free], np.linalg.solve(normal, (A.T @ y / N)[free]), atol=1e-10)
    for start in (found.point, np.full(4, -3.0), rng.normal(size=4)):
        again = minimize_squares(moments(X, y), ridge=ridge, lower=lower, start=start)
        np.testing.assert_allclose(again.point, found.point, rtol=0, atol=1e-10)


def test_duplicate_and_constant_columns_have_the_same_fit(rng):
    X = (rng.random((N, 4)) < 0.5).astype(np.float64)
    y = (rng.random(N) < 0.2 + 0.5 * X[:, 0]).astype(np.float64)
    twice = np.column_stack([X, X[:, 0], np.ones(N), np.zeros(N)])
    plain, doubled = (minimize_squares(moments(Z, y)) for Z in (X, twice))
    assert doubled.converged
    assert doubled.objective == pytest.approx(plain.objective, rel=1e-12)
    lines = [found.intercept + Z @ found.coefficients for found, Z in ((plain, X), (doubled, twice))]
    np.testing.assert_allclose(lines[1], lines[0], atol=1e-9)


def test_an_unsolved_problem_does_not_call_itself_solved(monkeypatch):
    monkeypatch.setattr("plainrisk.solve.squares.BoxedQuadratic.minimize", lambda _, g, lower, upper: 0 * g + 0.1)
    found = minimize_squares(moments(np.arange(4.0)[:, None], np.array([0.0, 1.0, 1.0, 0.0])))
    assert found.kkt > 0.01
    assert not found.converged
    assert "optimum" not in found.reason
