"""Matrices of low rank and their factors, against the same written out."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk.solve import Block, Layout, LogisticLoss, Moments, Rows, minimize, minimize_squares
from plainrisk.solve.box import BoxedQuadratic
from plainrisk.solve.curvature import LowRank, add_diagonal, corrected, factorize, solve_semidefinite


def low_rank(rng, m=7, n=30, unpenalized=1):
    extra = rng.uniform(0.1, 2.0, n)
    extra[:unpenalized] = 0.0
    return LowRank(rng.normal(size=(m, n)), extra)


def written_out(H: LowRank) -> np.ndarray:
    return H.root.T @ H.root + np.diag(H.extra)


def test_products_and_diagonal(rng):
    H, v = low_rank(rng), rng.normal(size=30)
    np.testing.assert_allclose(H @ v, written_out(H) @ v, rtol=1e-12)
    np.testing.assert_allclose(H.diagonal(), written_out(H).diagonal(), rtol=1e-12)
    np.testing.assert_allclose((3.0 * H) @ v, 3.0 * (H @ v), rtol=1e-12)
    np.testing.assert_allclose(add_diagonal(H, v**2) @ v, H @ v + v**3, rtol=1e-12)


@pytest.mark.parametrize("unpenalized", [0, 1, 4])
def test_factors_solve_and_know_blocks_of_the_inverse(rng, unpenalized):
    H = low_rank(rng, unpenalized=unpenalized)
    free = rng.random(30) < 0.8
    full = written_out(H)[np.ix_(free, free)]
    right = rng.normal(size=int(free.sum()))
    for matrix in (H, written_out(H)):
        factor = factorize(matrix, free)
        np.testing.assert_allclose(factor.solve(right), np.linalg.solve(full, right), rtol=1e-9, atol=1e-9)
        blocks = [np.arange(len(right)), np.array([0, 4, 7]), np.array([2]), np.zeros(0, int)]
        for block, found in zip(blocks, factor.inverse_blocks(blocks), strict=True):
            np.testing.assert_allclose(found, np.linalg.inv(full)[np.ix_(block, block)], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("come", "go"), [(3, 4), (0, 5), (5, 0)])
def test_a_factor_is_corrected_where_few_variables_changed(rng, come, go):
    X = rng.normal(size=(300, 200))
    H, before = X.T @ X + np.eye(200), rng.random(200) < 0.8
    free = before.copy()
    free[np.flatnonzero(~before)[:come]], free[np.flatnonzero(before)[3 : 3 + go]] = True, False
    found, made = corrected(H, before, factorize(H, before), free), factorize(H, free)
    assert found is not None
    right = rng.normal(size=int(free.sum()))
    np.testing.assert_allclose(found.solve(right), made.solve(right), rtol=1e-9, atol=1e-12)
    blocks = [np.arange(len(right)), np.array([9, 2, 40]), np.zeros(0, int)]
    for one, other in zip(found.inverse_blocks(blocks), made.inverse_blocks(blocks), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_a_factor_is_not_corrected_for_many_changes_nor_for_a_variable_that_repeats_another(rng):
    X = rng.normal(size=(300, 100))
    X[:, 0] = X[:, 1]
    H, before = X.T @ X, np.arange(100) > 0
    factor = factorize(H, before)
    assert corrected(H, before, factor, np.arange(100) > 20) is None
    assert corrected(H, before, factor, np.ones(100, bool)) is None
    assert corrected(H, before, factor, np.arange(100) > 2) is not None


def test_without_a_ridge_the_shortest_solution_is_the_dense_one(rng):
    root = rng.normal(size=(6, 20)) * rng.uniform(0.1, 5.0, 20)
    root[:, 3] = 0.0
    factor, full = factorize(LowRank(root, np.zeros(20)), np.ones(20, bool)), root.T @ root
    right = full @ rng.normal(size=20)
    np.testing.assert_allclose(factor.solve(right), solve_semidefinite(full, right), rtol=1e-6, atol=1e-9)
    lost = factor.solve(right + np.eye(20)[3])  # a slope without curvature: a long step, for a bound to stop
    assert lost[3] > 1e6
    scale = 1.0 / np.sqrt(np.where(full.diagonal() > 0, full.diagonal(), 1.0))
    shortest = np.linalg.pinv(scale[:, None] * full * scale, rcond=1e-10, hermitian=True)
    (inverse,) = factor.inverse_blocks([np.arange(20)])
    np.testing.assert_allclose(inverse, scale[:, None] * shortest * scale, rtol=1e-6, atol=1e-9)


def test_a_box_is_solved_alike(rng):
    H, g = low_rank(rng), rng.normal(size=30)
    lower, upper = np.where(np.arange(30) % 2, 0.0, -np.inf), np.full(30, 0.3)
    dense = BoxedQuadratic(written_out(H)).minimize(g, lower, upper)
    np.testing.assert_allclose(BoxedQuadratic(H).minimize(g, lower, upper), dense, rtol=1e-9, atol=1e-10)


@pytest.fixture
def wide(rng):
    """Rows that are fewer than the coefficients, and the same three times over, with a third of the weight."""
    layout = Layout(tuple(np.eye(5) for _ in range(12)), n_dense=2)
    codes = tuple(rng.integers(0, 5, 40).astype(np.uint8) for _ in range(12))
    positive, weight = rng.random(40) * 0.5, rng.uniform(0.5, 2.0, 40)
    few = [Block(codes, positive, weight, rng.normal(size=(40, 2)))]
    many = [Block(codes, positive / 3, weight / 3, few[0].dense)] * 3
    lower = np.where(np.arange(layout.n_coefficients) % 3, -np.inf, 0.0)
    return layout, Rows(few), Rows(many), lower


def test_more_coefficients_than_rows_give_the_same_logistic_fit(wide):
    layout, few, many, lower = wide
    assert isinstance(LogisticLoss(layout, few).hessian(np.zeros(63)), LowRank)
    assert isinstance(LogisticLoss(layout, many).hessian(np.zeros(63)), np.ndarray)
    a, b = (minimize(LogisticLoss(layout, rows), ridge=0.01, lower=lower) for rows in (few, many))
    assert a.converged
    np.testing.assert_allclose(a.coefficients, b.coefficients, atol=1e-9)


def test_more_coefficients_than_rows_give_the_same_least_squares(wide):
    layout, few, many, lower = wide
    a, b = (minimize_squares(Moments.of(layout, rows), ridge=0.01, lower=lower) for rows in (few, many))
    assert a.converged
    np.testing.assert_allclose(a.coefficients, b.coefficients, atol=1e-9)
    assert a.loss == pytest.approx(b.loss, abs=1e-12)
