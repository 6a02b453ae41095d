"""Steps by gradients alone: they come near the minimum, and the solver that goes on from there ends at the same one."""

import numpy as np
import pytest

from plainrisk._native import BlockHessian, Blocks
from plainrisk.solve import Block, Layout, LogisticLoss, minimise
from plainrisk.solve.approach import State, approach


def quadratic(H, g, lower, upper):
    """Return the state of ``g x + x H x / 2`` at a point, counting how often it was asked for."""
    asked = []

    def at(x):
        assert (x >= lower).all()
        assert (x <= upper).all()
        asked.append(x)
        return State(x, float(g @ x + 0.5 * x @ H @ x) + 10.0, g + H @ x)

    return at, asked


@pytest.mark.parametrize("bounded", [False, True])
def test_it_comes_near_the_minimum_of_a_quadratic(rng, bounded):
    n = 61
    A = rng.normal(size=(300, n)) + rng.normal(size=(300, 1))
    A[:, 0] = 1.0
    H = A.T @ A / 300
    g = rng.normal(size=n)
    lower = np.where((np.arange(n) > 0) & bounded, 0.0, -np.inf)
    upper = np.full(n, np.inf)
    at, asked = quadratic(H, g, lower, upper)
    blocks = Blocks.of([10] * 6)
    for k, block in enumerate(blocks):
        block[:] = H[1 + 10 * k : 11 + 10 * k, 1 + 10 * k : 11 + 10 * k]
    hessian = BlockHessian(H[0, :1].copy(), H[0, 1:].copy(), blocks, np.zeros(n - 1))
    near, history = approach(at(np.zeros(n)), at, hessian, lower, upper)
    begin = 10.0
    best = minimise(Quadratic(H, g), lower=lower[1:], box=1e9).objective + 10.0
    assert near.value - best < 0.05 * (begin - best)
    assert len(asked) <= 19
    values = [value for value, _ in history]
    assert values == sorted(values, reverse=True)
    assert values[0] == begin


class Quadratic:
    """A loss the solver minimises by its Hessian."""

    sampled, moderate, cheap = False, False, True

    def __init__(self, H, g):
        self.H, self.g, self.start = H, g, np.zeros(len(g))

    def value_and_gradient(self, x, *, bent=True):
        return float(self.g @ x + 0.5 * x @ self.H @ x), self.g + self.H @ x

    def hessian(self, x, *, whole=False):
        return self.H.copy()

    def settle(self, start, problem):
        return None

    def in_blocks(self, ridge):
        return None


def of_two():
    return BlockHessian(np.ones(1), np.zeros(2), Blocks(np.array([2]), np.array([2.0, 0.0, 0.0, 3.0])), np.zeros(2))


def test_a_start_at_the_minimum_stays_there():
    H = np.diag([1.0, 2.0, 3.0])
    bounds = np.full(3, np.inf)
    at, asked = quadratic(H, np.zeros(3), -bounds, bounds)
    start = at(np.zeros(3))
    assert approach(start, at, of_two(), -bounds, bounds) == (start, [])
    assert len(asked) == 1


def test_a_loss_that_never_falls_ends_it():
    def at(x):
        asked.append(x)
        return State(x, 5.0 + float(np.abs(x).sum()), np.array([1.0, -1.0, 1.0]))  # a gradient that is wrong

    asked = []
    bounds = np.full(3, np.inf)
    start = at(np.zeros(3))
    near, _ = approach(start, at, of_two(), -bounds, bounds)
    assert near is start
    assert len(asked) <= 5


def wide_rows(rng, *, weighted=False, n=4000, features=60, levels=6):
    """Rows of many features of which half may only push upwards."""
    codes = rng.integers(0, levels, size=(features, n)).astype(np.uint8)
    codes[:, : n // 2] = np.minimum(codes[:, : n // 2], rng.integers(0, levels, n // 2).astype(np.uint8))
    steps = np.tri(levels, levels - 1, -1)
    effects = rng.normal(scale=0.2, size=(features, levels - 1))
    score = sum((steps @ effect)[code] for effect, code in zip(effects, codes, strict=True))
    target = (rng.random(n) < 1 / (1 + np.exp(-score + score.mean() + 1.0))).astype(np.uint8)
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    positive = target if weight is None else weight * target
    lower = np.where(np.arange(features * (levels - 1)) % 10 < 5, 0.0, -np.inf)
    return Layout((steps,) * features), [Block(tuple(codes), positive, weight)], lower


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [1e-4, 0.0])
def test_the_optimum_is_that_of_hessians_alone(rng, monkeypatch, weighted, ridge):
    layout, blocks, lower = wide_rows(rng, weighted=weighted)
    loss = LogisticLoss(layout, blocks)
    assert loss.in_blocks(np.zeros(layout.n_coefficients)) is not None
    found = minimise(loss, ridge=ridge, lower=lower)
    monkeypatch.setattr(LogisticLoss, "in_blocks", lambda self, ridge: None)
    wanted = minimise(LogisticLoss(layout, blocks), ridge=ridge, lower=lower)
    assert found.converged
    assert wanted.converged
    assert found.objective == pytest.approx(wanted.objective, rel=1e-11)
    np.testing.assert_allclose(found.coefficients, wanted.coefficients, atol=1e-7)
    assert found.kkt < 1e-9


def test_the_limit_of_iterations_holds(rng):
    layout, blocks, lower = wide_rows(rng)
    for most in (1, 3):
        found = minimise(LogisticLoss(layout, blocks), ridge=1e-4, lower=lower, max_iterations=most)
        assert not found.converged
        assert found.iterations == most


def test_a_very_wide_feature_is_left_to_the_hessian(rng):
    loss = LogisticLoss(
        Layout((np.eye(300),)), [Block((rng.integers(0, 300, 500).astype(np.uint16),), np.arange(500) % 2)]
    )
    assert loss.in_blocks(np.zeros(300)) is None
