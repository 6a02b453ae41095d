"""Quadratics in a box: the compiled way finds what the careful one does, or says that it does not."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk._native import box
from plainrisk.solve.box import minimise_quadratic


@pytest.mark.parametrize("n", [1, 2, 7, 40, 192])
def test_the_minimum_meets_its_conditions_and_is_that_of_numpy(n, rng, in_numpy):
    A = rng.normal(size=(2 * n, n))
    H, g = A.T @ A, rng.normal(size=n) * n
    lower = np.where(rng.random(n) < 0.5, -rng.random(n), -np.inf)
    upper = np.where(rng.random(n) < 0.5, rng.random(n), np.inf)
    found = box.minimise_in_box(H, g, lower, upper, 1e-11)
    slope = H @ found.d + g
    np.testing.assert_allclose(slope[found.state == 0], 0.0, atol=1e-9)
    assert (slope[found.state == -1] >= 0).all()
    assert (slope[found.state == 1] <= 0).all()
    assert (lower <= found.d).all()
    assert (found.d <= upper).all()
    plain = in_numpy(box, minimise_quadratic, H, g, lower, upper)
    np.testing.assert_allclose(found.d, plain, rtol=0, atol=1e-10)
    free = found.state == 0
    L = np.tril(found.factor)
    np.testing.assert_allclose(L @ L.T, H[np.ix_(free, free)], atol=1e-10)
    if free.any():
        right = rng.normal(size=int(free.sum()))
        solved, kept = found.solve(right), right.copy()
        np.testing.assert_allclose(H[np.ix_(free, free)] @ solved, right, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(right, kept)


def test_no_variable_is_free(in_numpy):
    found = box.minimise_in_box(np.eye(2), np.ones(2), np.zeros(2), np.ones(2), 1e-11)
    assert found.d.tolist() == [0.0, 0.0]
    assert found.factor.shape == (0, 0)


@pytest.mark.parametrize("H", [np.ones((2, 2)), np.zeros((2, 2)), np.diag([1.0, np.nan]), -np.eye(2)])
def test_what_is_nearly_singular_is_left_to_the_careful_way(H, in_numpy):
    far = np.full(2, np.inf)
    assert box.minimise_in_box(H, np.ones(2), -far, far, 1e-11) is None


def test_many_variables_are_left_to_a_library(in_numpy):
    n = 193
    assert box.minimise_in_box(np.eye(n), np.ones(n), np.zeros(n), np.ones(n), 1e-11) is None


@pytest.mark.parametrize("place", range(7))
def test_what_does_not_fit_is_refused(place, in_numpy):
    args = [np.eye(2), np.zeros(2), np.zeros(2), np.ones(2), np.zeros(2), np.zeros(2, np.int8), np.zeros(4)]
    args[place] = args[place].ravel()[1:].copy()
    with pytest.raises(ValueError, match="do not fit"):
        box.compiled.minimise_in_box(*args, 1e-11)


@pytest.mark.parametrize(("factor", "right"), [(np.eye(2), np.zeros(3)), (np.zeros(1), np.zeros(2)), (np.eye(0), [])])
def test_a_factor_of_other_variables_is_refused(factor, right, in_numpy):
    with pytest.raises(ValueError, match="do not fit"):
        box.compiled.solve_factored(factor, np.array(right, np.float64))
