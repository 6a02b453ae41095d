from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plainrisk.solve import box
from plainrisk.solve.box import minimise_quadratic, solve_symmetric

INF = np.inf


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
    d = minimise_quadratic(H, g, lower, upper)
    assert (d >= lower).all()
    assert (d <= upper).all()
    best = best_value(H, g, lower, upper)
    assert g @ d + 0.5 * d @ H @ d == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n", [30, 120, 250])
def test_large_problems_meet_the_optimality_conditions(rng, n):
    A = rng.normal(size=(n // 2, n))  # singular
    H, g = A.T @ A + 0.01 * np.eye(n), rng.normal(size=n)
    lower, upper = -rng.random(n), np.where(rng.random(n) < 0.5, rng.random(n), INF)
    d = minimise_quadratic(H, g, lower, upper)
    gradient = H @ d + g
    free = (d > lower) & (d < upper)
    assert free.any()
    assert (d == lower).any()
    assert np.abs(gradient[free]).max() < 1e-9
    assert gradient[d == lower].min() > -1e-9
    assert gradient[d == upper].max(initial=-1.0) < 1e-9


@pytest.mark.parametrize(("came", "left"), [(3, 0), (0, 4), (5, 6), (0, 0)])
def test_a_factor_serves_for_nearly_the_same_variables(rng, monkeypatch, came, left):
    A = rng.normal(size=(400, 240))
    quadratic = box.BoxedQuadratic(A.T @ A)
    free = rng.random(240) < 0.5
    quadratic.solver(free)
    monkeypatch.setattr(box.BoxedQuadratic, "_own_solver", None)  # no further factor is made
    near = free.copy()
    near[np.flatnonzero(~free)[:came]] = True
    near[np.flatnonzero(free)[:left]] = False
    right = rng.normal(size=int(near.sum()))
    expected = np.linalg.solve((A.T @ A)[np.ix_(near, near)], right)
    np.testing.assert_allclose(quadratic.solver(near)(right), expected, rtol=0, atol=1e-12)


def test_without_bounds_it_is_a_linear_system(rng):
    A = rng.normal(size=(20, 6))
    H, g = A.T @ A, rng.normal(size=6)
    d = minimise_quadratic(H, g, np.full(6, -INF), np.full(6, INF))
    np.testing.assert_allclose(d, np.linalg.solve(H, -g), rtol=1e-11)


def test_one_variable_in_large_units_does_not_blur_the_others():
    H = np.array([[1e16, 0.0, 0.0], [0.0, 1.0, 0.4], [0.0, 0.4, 2.0]])
    g = np.array([3.0, -1.0, 0.5])
    d = minimise_quadratic(H, g, np.full(3, -INF), np.full(3, INF))
    np.testing.assert_allclose(d, [-3e-16, *np.linalg.solve(H[1:, 1:], -g[1:])], rtol=1e-11)


def test_flat_directions_stay_where_they_are():
    # An intercept beside one indicator per level: moving one up and the others down changes nothing.
    A = np.column_stack([np.ones(6), np.repeat(np.eye(2), 3, axis=0)])
    d = minimise_quadratic(A.T @ A, -A.T @ np.arange(6.0), np.full(3, -INF), np.full(3, INF))
    assert np.abs(d).max() < 10
    np.testing.assert_allclose(A @ d, [1, 1, 1, 4, 4, 4], rtol=1e-9)


def test_no_variables():
    assert minimise_quadratic(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


def test_a_matrix_without_any_curvature_gives_a_finite_answer():
    H = np.array([[1e-310, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    d = minimise_quadratic(H, np.array([0.0, 0.0, -2.0]), np.full(3, -INF), np.full(3, INF))
    assert np.isfinite(d).all()
    assert d[2] == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
def test_a_singular_matrix_is_solved_up_to_what_it_can_not_see(rng, scale):
    A = rng.normal(size=(3, 6))
    units = scale ** np.linspace(0, 1, 6)
    H = units[:, None] * (A.T @ A) * units
    x = rng.normal(size=6)
    d = solve_symmetric(H, H @ x)
    assert (A * units) @ d == pytest.approx((A * units) @ x, rel=1e-3)


def test_an_exactly_singular_matrix_raises_nothing():
    H = np.ones((4, 4))
    d = solve_symmetric(H, np.full(4, 8.0))
    assert H @ d == pytest.approx(np.full(4, 8.0), rel=1e-6)
    assert np.isfinite(solve_symmetric(np.zeros((2, 2)), np.array([1.0, -1.0]))).all()


def test_flat_directions_do_not_use_up_the_pivots(monkeypatch):
    """Badly conditioned problems end early, no worse than where they began."""
    rng = np.random.default_rng(7)
    A = rng.normal(size=(20, 60)) * 10.0 ** rng.uniform(-7, 1, 60)
    H, g = A.T @ A, A.T @ rng.normal(size=20) + 1e-9 * rng.normal(size=60)
    lower, upper = np.where(rng.random(60) < 0.7, 0.0, -1e6), np.full(60, 1e6)
    solves = []
    monkeypatch.setattr(box, "solve_symmetric", lambda H, r: solves.append(1) or solve_symmetric(H, r))
    d = minimise_quadratic(H, g, lower, upper)
    assert len(solves) < 500
    assert g @ d + 0.5 * d @ H @ d < 0
