"""The logistic loss: its derivatives, its sums over blocks, and the sample that a Hessian may be taken of."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk.solve import Block, Layout, LogisticLoss, Rows, loss


@pytest.mark.parametrize("way", ["features", "joint", "cells"])
def test_gradient_and_hessian_are_the_derivatives(make_problem, way, rng):
    found = make_problem(0, weighted=True).loss(way)
    point, h = rng.normal(size=11), 1e-5
    _, gradient = found.value_and_gradient(point)
    H = found.hessian(point)
    for j, step in enumerate(h * np.eye(len(point))):
        up, down = found.value_and_gradient(point + step), found.value_and_gradient(point - step)
        assert gradient[j] == pytest.approx((up[0] - down[0]) / (2 * h), abs=1e-9)
        np.testing.assert_allclose(H[j], (up[1] - down[1]) / (2 * h), atol=1e-9)


def test_codes_and_numeric_columns_together(make_problem, rng):
    problem = make_problem(3, weighted=True)
    dense = rng.normal(size=(600, 2))
    layout = Layout(problem.loss().layout.matrices, 2)
    block = Block(tuple(problem.codes), problem.weight * problem.target, problem.weight, dense)
    point = rng.normal(size=13)
    value, gradient = LogisticLoss(layout, Rows([block])).value_and_gradient(point)
    H = LogisticLoss(layout, Rows([block])).hessian(point)
    X, w = np.hstack([np.ones((600, 1)), problem.X, dense]), problem.weight / problem.weight.sum()
    score = X @ point
    p = 1 / (1 + np.exp(-score))
    assert value == pytest.approx(w @ (np.logaddexp(0, score) - problem.target * score), rel=1e-12)
    np.testing.assert_allclose(gradient, X.T @ (w * (p - problem.target)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(H, (X.T * (w * p * (1 - p))) @ X, rtol=0, atol=1e-12)


@pytest.mark.parametrize("way", ["joint", "cells"])
def test_ways_to_code_the_same_rows_agree(make_problem, way, rng):
    problem, point = make_problem(1, weighted=True), rng.normal(size=11)
    one, other = problem.loss("features"), problem.loss(way)
    assert other.value_and_gradient(point)[0] == pytest.approx(one.value_and_gradient(point)[0], rel=1e-13)
    np.testing.assert_allclose(other.value_and_gradient(point)[1], one.value_and_gradient(point)[1], atol=1e-13)
    np.testing.assert_allclose(other.hessian(point), one.hessian(point), rtol=0, atol=1e-13)
    np.testing.assert_allclose(other.start, one.start, rtol=1e-13)


def test_the_loss_is_a_sum_over_blocks(make_problem, rng):
    whole = make_problem(1, weighted=True).loss("joint")
    (block,) = whole.rows
    parts = LogisticLoss(whole.layout, Rows([block.take(slice(0, 50)), block.take(slice(50, 600))]))
    point = rng.normal(size=11)
    assert parts.value_and_gradient(point)[0] == pytest.approx(whole.value_and_gradient(point)[0], rel=1e-13)
    np.testing.assert_allclose(parts.value_and_gradient(point)[1], whole.value_and_gradient(point)[1], atol=1e-14)
    np.testing.assert_allclose(parts.hessian(point), whole.hessian(point), rtol=0, atol=1e-13)


def test_the_start_is_the_best_constant(make_problem):
    problem = make_problem(2, weighted=True)
    found = problem.loss()
    rate = np.average(problem.target, weights=problem.weight)
    assert found.start[0] == pytest.approx(np.log(rate / (1 - rate)), rel=1e-12)
    assert not found.start[1:].any()
    assert found.value_and_gradient(found.start)[1][0] == pytest.approx(0.0, abs=1e-15)


def test_scores_far_out_neither_overflow_nor_lose_the_loss():
    block = Block((), np.array([1.0, 0.0]), None, np.array([[1.0], [-1.0]]))
    found = LogisticLoss(Layout((), 1), Rows([block]))
    with np.errstate(all="raise", under="ignore"):
        assert found.value_and_gradient(np.array([0.0, -2000.0]))[0] == 2000.0
        assert found.value_and_gradient(np.array([0.0, 2000.0]))[0] == 0.0


# ---- the sample


def many_rows(n=50_000, rare=40):
    rng = np.random.default_rng(5)
    code = np.zeros(n, dtype=np.uint8)
    code[rng.permutation(n)[:rare]] = 1
    other = rng.integers(0, 4, n).astype(np.uint8)
    return Layout((np.eye(2), np.eye(4))), Block((code, other), rng.integers(0, 2, n).astype(np.uint8))


def test_few_rows_are_not_sampled(make_problem):
    assert not make_problem(0).loss().is_sampled


def test_the_sample_keeps_rare_levels_and_stands_for_all_rows(monkeypatch):
    monkeypatch.setattr(loss, "_HESSIAN_BUDGET", 1.5e4)
    layout, block = many_rows()
    found = LogisticLoss(layout, Rows([block]))
    assert found.is_sampled
    (sample,) = found._sample
    assert np.count_nonzero(sample.codes[0] == 1) == 40
    assert 3000 < len(sample) < 8000
    assert sample.weight.sum() == pytest.approx(len(block), rel=0.1)


def test_a_sampled_hessian_is_near_the_exact_one(monkeypatch, rng):
    monkeypatch.setattr(loss, "_HESSIAN_BUDGET", 3e4)
    layout, block = many_rows()
    found, point = LogisticLoss(layout, Rows([block])), rng.normal(size=7)
    exact, sampled = found.hessian(point, exact=True), found.hessian(point)
    assert (exact != sampled).any()
    np.testing.assert_allclose(sampled, exact, rtol=0.15, atol=0.01)


def test_the_sample_is_the_same_every_time(monkeypatch):
    monkeypatch.setattr(loss, "_HESSIAN_BUDGET", 1.5e4)
    layout, block = many_rows()
    one, two = (next(iter(LogisticLoss(layout, Rows([block]))._sample)) for _ in range(2))
    np.testing.assert_array_equal(one.codes[1], two.codes[1])
    np.testing.assert_array_equal(one.weight, two.weight)


def test_weights_of_rows_are_kept_in_the_sample(monkeypatch):
    monkeypatch.setattr(loss, "_HESSIAN_BUDGET", 1.5e4)
    layout, block = many_rows()
    weight = np.where(block.codes[0] == 1, 3.0, 0.5)
    weighted = Block(block.codes, weight * block.positive, weight)
    (sample,) = LogisticLoss(layout, Rows([weighted]))._sample
    np.testing.assert_allclose(sample.weight[sample.codes[0] == 1], 3.0)
    assert sample.weight.sum() == pytest.approx(weight.sum(), rel=0.1)
