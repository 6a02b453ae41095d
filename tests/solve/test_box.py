"""Quadratics in a box: against every active set, by their optimality conditions, and where they are singular."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plainrisk.solve import box
from plainrisk.solve.box import FREE, LOWER, UPPER, BoxedQuadratic
from plainrisk.solve.curvature import solve_semidefinite

INF = np.inf


def minimize(H, g, lower, upper):
    return BoxedQuadratic(H).minimize(g, lower, upper)


def best_value(H, g, lower, upper):
    """The least value over all choices of which variables stand at which bound."""
    best = INF
    for state in itertools.product("lfu", repeat=len(g)):
        ends = {"l": lower, "u": upper}
        d = np.array([0.0 if s == "f" else ends[s][j] for j, s in enumerate(state)])
        if not np.isfinite(d).all():
            continue
        free = [j for j, s in enumerate(state) if s == "f"]
        if free:
            d[free] = np.linalg.lstsq(H[np.ix_(free, free)], -(g + H @ d)[free], rcond=None)[0]
        if (d >= lower - 1e-9).all() and (d <= upper + 1e-9).all():
            d = np.clip(d, lower, upper)
            best = min(best, g @ d + 0.5 * d @ H @ d)
    return best


small = st.integers(-4, 4).map(float)


@st.composite
def problems(draw):
    """Small problems, many of them singular, that are bounded below."""
    n = draw(st.integers(1, 4))
    rank = draw(st.integers(0, n + 1))
    A = draw(arrays(np.float64, (rank, n), elements=small))
    b = draw(arrays(np.float64, rank, elements=small))
    lower = -draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 0.0, 1.0, 2.5, INF])))
    upper = draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0, 3.0, INF, INF])))
    g = A.T @ b
    if np.isfinite(lower).all() and np.isfinite(upper).all():
        # In a bounded box a direction without curvature may have a slope.
        g = g + draw(arrays(np.float64, n, elements=small))
    return A.T @ A, g, lower, upper


@settings(max_examples=300, deadline=None)
@given(problems())
def test_equals_brute_force_over_active_sets(problem):
    H, g, lower, upper = problem
    d = minimize(H, g, lower, upper)
    assert (d >= lower).all()
    assert (d <= upper).all()
    best = best_value(H, g, lower, upper)
    assert g @ d + 0.5 * d @ H @ d == pytest.approx(best, rel=1e-9, abs=1e-9)


def check_optimal(quadratic, g, lower, upper, d):
    gradient = quadratic.H @ d + g
    free = (d > lower) & (d < upper)
    assert (d >= lower).all()
    assert (d <= upper).all()
    assert np.abs(gradient[free]).max(initial=0.0) < 1e-9
    assert gradient[(d == lower) & (d < upper)].min(initial=0.0) > -1e-9
    assert gradient[(d == upper) & (d > lower)].max(initial=0.0) < 1e-9


@pytest.mark.parametrize("n", [30, 120, 250])
def test_large_problems_meet_the_optimality_conditions(rng, n):
    A = rng.normal(size=(n // 2, n))  # singular
    quadratic, g = BoxedQuadratic(A.T @ A + 0.01 * np.eye(n)), rng.normal(size=n)
    lower, upper = -rng.random(n), np.where(rng.random(n) < 0.5, rng.random(n), INF)
    d = quadratic.minimize(g, lower, upper)
    check_optimal(quadratic, g, lower, upper, d)
    assert ((d > lower) & (d < upper)).any()
    assert (d == lower).any()


def test_the_active_set_method_alone_finds_the_optimum_too(rng, monkeypatch):
    monkeypatch.setattr(box, "_PATIENCE", 0)  # block pivoting gives way at once
    for _ in range(20):
        A = rng.normal(size=(15, 12))
        quadratic, g = BoxedQuadratic(A.T @ A), rng.normal(size=12)
        lower, upper = -rng.random(12) * 0.05, np.where(rng.random(12) < 0.5, 0.05 * rng.random(12), INF)
        d = quadratic.minimize(g, lower, upper)
        check_optimal(quadratic, g, lower, upper, d)


def test_one_matrix_serves_for_many_gradients(rng):
    A = rng.normal(size=(40, 10))
    quadratic, lower, upper = BoxedQuadratic(A.T @ A), np.zeros(10), np.full(10, INF)
    for _ in range(10):
        g = rng.normal(size=10)
        d = quadratic.minimize(g, lower, upper)
        np.testing.assert_allclose(d, minimize(A.T @ A, g, lower, upper), rtol=0, atol=1e-12)


def test_the_state_says_which_bounds_hold():
    quadratic = BoxedQuadratic(np.eye(3))
    d = quadratic.minimize(np.array([1.0, 0.5, -3.0]), np.array([0.0, -1.0, -1.0]), np.array([1.0, 1.0, 1.0]))
    np.testing.assert_allclose(d, [0.0, -0.5, 1.0])
    assert quadratic.state.tolist() == [LOWER, FREE, UPPER]


def test_without_bounds_it_is_a_linear_system(rng):
    A = rng.normal(size=(20, 6))
    H, g = A.T @ A, rng.normal(size=6)
    d = minimize(H, g, np.full(6, -INF), np.full(6, INF))
    np.testing.assert_allclose(d, np.linalg.solve(H, -g), rtol=1e-11)


def test_one_variable_in_large_units_does_not_blur_the_others():
    H = np.array([[1e16, 0.0, 0.0], [0.0, 1.0, 0.4], [0.0, 0.4, 2.0]])
    g = np.array([3.0, -1.0, 0.5])
    d = minimize(H, g, np.full(3, -INF), np.full(3, INF))
    np.testing.assert_allclose(d, [-3e-16, *np.linalg.solve(H[1:, 1:], -g[1:])], rtol=1e-11)


def test_flat_directions_stay_where_they_are():
    # An intercept beside one indicator per level: moving one up and the others down changes nothing.
    A = np.column_stack([np.ones(6), np.repeat(np.eye(2), 3, axis=0)])
    d = minimize(A.T @ A, -A.T @ np.arange(6.0), np.full(3, -INF), np.full(3, INF))
    assert np.abs(d).max() < 10
    np.testing.assert_allclose(A @ d, [1, 1, 1, 4, 4, 4], rtol=1e-9)


def test_no_variables():
    assert minimize(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


def test_a_matrix_without_any_curvature_gives_a_finite_answer():
    H = np.array([[1e-310, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    d = minimize(H, np.array([0.0, 0.0, -2.0]), np.full(3, -INF), np.full(3, INF))
    assert np.isfinite(d).all()
    assert d[2] == pytest.approx(1.0)


def test_badly_conditioned_problems_end_no_worse_than_where_they_began():
    rng = np.random.default_rng(7)
    A = rng.normal(size=(20, 60)) * 10.0 ** rng.uniform(-7, 1, 60)
    H, g = A.T @ A, A.T @ rng.normal(size=20) + 1e-9 * rng.normal(size=60)
    lower, upper = np.where(rng.random(60) < 0.7, 0.0, -1e6), np.full(60, 1e6)
    d = minimize(H, g, lower, upper)
    assert (d >= lower).all()
    assert (d <= upper).all()
    assert g @ d + 0.5 * d @ H @ d < 0


# ---- singular systems


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
def test_a_singular_system_is_solved(rng, scale):
    A = rng.normal(size=(3, 6))
    units = scale ** np.linspace(0, 1, 6)
    H = units[:, None] * (A.T @ A) * units
    x = rng.normal(size=6)
    d = solve_semidefinite(H, H @ x)
    np.testing.assert_allclose((A * units) @ d, (A * units) @ x, rtol=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(0, 8))
def test_of_all_solutions_it_is_the_shortest(seed, n, rank):
    """In units that make the diagonal 1."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(min(rank, n), n))
    H = A.T @ A
    right = H @ rng.normal(size=n)
    scale = 1.0 / np.sqrt(np.where(H.diagonal() > 0, H.diagonal(), 1.0))
    scaled = scale[:, None] * H * scale
    shortest = np.linalg.pinv(scaled, rcond=1e-9, hermitian=True) @ (scale * right)
    values = np.linalg.eigvalsh(scaled)
    if (np.abs(values) < 1e-12).sum() + (values > 1e-4).sum() < n:
        return  # neither flat nor curved: what counts as a solution is a matter of tolerance
    np.testing.assert_allclose(solve_semidefinite(H, right), scale * shortest, rtol=1e-7, atol=1e-7)


def test_an_exactly_singular_system():
    np.testing.assert_allclose(solve_semidefinite(np.ones((4, 4)), np.full(4, 8.0)), np.full(4, 2.0), rtol=1e-12)
    assert np.isfinite(solve_semidefinite(np.zeros((2, 2)), np.array([1.0, -1.0]))).all()
    assert solve_semidefinite(np.zeros((0, 0)), np.zeros(0)).shape == (0,)


def test_a_slope_along_a_flat_direction_makes_a_long_step_that_way():
    H = np.array([[1.0, 1.0], [1.0, 1.0]])
    d = solve_semidefinite(H, np.array([1.0, -1.0]))  # no solution: (1, -1) is flat
    assert d[0] > 1e6
    assert d[0] == pytest.approx(-d[1], rel=1e-6)
    rounding = solve_semidefinite(H, np.array([2.0 + 1e-12, 2.0 - 1e-12]))
    np.testing.assert_allclose(rounding, [1.0, 1.0], rtol=1e-9)


def singular_answers():
    """Solutions of systems with flat directions: an intercept beside an indicator per level, and doubled columns."""
    rng = np.random.default_rng(3)
    answers = []
    for n in (5, 40, 150):
        levels = rng.integers(0, n, 20 * n)
        X = np.hstack([np.ones((20 * n, 1)), np.eye(n)[levels], np.eye(n)[levels][:, :3]])
        w = rng.random(20 * n)
        H, right = (X.T * w) @ X / w.sum(), X.T @ (w * rng.normal(size=20 * n)) / w.sum()
        answers.append(solve_semidefinite(H, right).tolist())
        lower = np.full(len(H), -INF)
        lower[1 : n // 2] = 0.0
        answers.append(minimize(H, -right, lower, np.full(len(H), INF)).tolist())
    return answers


if __name__ == "__main__":
    print(json.dumps(singular_answers()))


@pytest.mark.parametrize("kernels", ["Haswell", "Prescott"])
def test_singular_answers_do_not_depend_on_the_kernels_of_linear_algebra(kernels):
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": "1"}
    run = [sys.executable, __file__]
    found = json.loads(subprocess.run(run, env=environment, capture_output=True, check=True, text=True).stdout)
    for other, here in zip(found, singular_answers(), strict=True):
        np.testing.assert_allclose(other, here, rtol=0, atol=1e-9)
