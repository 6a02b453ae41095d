from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from paper.slsqp import minimise_slsqp
from plainrisk.bins import collapse, pack_codes
from plainrisk.solve import (
    BOX,
    Block,
    Layout,
    LogisticLoss,
    blocks,
    bounded,
    kkt_residual,
    logistic,
    minimise,
    sampling,
)

N = 600
LEVELS = (4, 3, 5)
STEPS = np.array([True] * 3 + [False] * 3 + [True] * 4)  # coefficients of the three features


def feature_maps():
    """Steps, one indicator per level, steps downwards: the columns that fitted features have."""
    up = np.tri(4, 3, -1)
    return [up, np.eye(3), np.tri(5, 4, -1)[::-1]]


def make_rows(seed, *, weighted=False):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, N).astype(np.uint8) for size in LEVELS]
    score = -1.0 + 0.6 * codes[0] - 0.5 * (codes[1] == 1) + rng.normal(size=N) - 0.2 * (codes[2] > 2)
    target = (score > 0).astype(np.float64)
    weight = rng.integers(0, 4, N).astype(np.float64) if weighted else np.ones(N)
    X = np.hstack([m[c] for m, c in zip(feature_maps(), codes, strict=True)])
    return codes, target, weight, X


def make_loss(codes, target, weight, *, way):
    """The same rows as one pack per feature, as packs of several features, or as weighted cells."""
    limit = 1 if way == "rows" else 1000
    packs = pack_codes(codes, [np.ones(size, dtype=bool) for size in LEVELS], limit)
    maps = feature_maps()
    layout = Layout(tuple(np.hstack([maps[j][m] for j, m in zip(p.features, p.members.T, strict=True)]) for p in packs))
    packed = tuple(p.codes for p in packs)
    block = Block(packed, weight * target, weight)
    if way == "cells":
        cells = collapse(packed, [len(p.members) for p in packs], weight * target, weight)
        assert len(cells.weight) <= 60
        block = Block(cells.codes, cells.positive, cells.weight)
    return LogisticLoss(layout, [block])


def objective(point, X, target, weight, ridge):
    """Mean log loss + ridge, and its gradient, as in a textbook."""
    score = point[0] + X @ point[1:]
    probability = 1.0 / (1.0 + np.exp(-score))
    loss = weight @ (np.logaddexp(0.0, score) - target * score) / weight.sum()
    residual = weight * (probability - target) / weight.sum()
    gradient = np.concatenate([[residual.sum()], X.T @ residual + 2.0 * ridge * point[1:]])
    return loss + (ridge * point[1:] ** 2).sum(), gradient


def lbfgs(X, target, weight, ridge, lower, upper):
    """An independent solution; polished by restarts, since one run stops a little early."""
    bounds = [(None, None), *zip(lower, upper, strict=True)]
    point = np.zeros(1 + X.shape[1])
    for _ in range(5):
        found = minimize(
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


@pytest.mark.parametrize("ridge", [0.0, 1 / (2 * N), 0.5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", ["rows", "packs", "cells"])
def test_equals_an_independent_solution(ridge, weighted, way):
    for seed in range(3):
        codes, target, weight, X = make_rows(seed, weighted=weighted)
        lower = np.where(STEPS, 0.0, -BOX if ridge == 0 else -np.inf)
        upper = np.full(len(STEPS), BOX if ridge == 0 else np.inf)
        upper[0] = 0.005  # a bound from above, too
        found = minimise(
            make_loss(codes, target, weight, way=way),
            ridge=ridge,
            lower=np.where(STEPS, 0.0, -np.inf),
            upper=np.where(np.arange(len(STEPS)) == 0, 0.005, np.inf),
        )
        value, _ = lbfgs(X, target, weight, ridge, lower, upper)
        assert found.objective == pytest.approx(value, rel=1e-9)
        point = np.array([found.intercept, *found.coefficients])
        own_value, gradient = objective(point, X, target, weight, ridge)
        assert found.objective == pytest.approx(own_value, rel=1e-12)
        assert found.loss == pytest.approx(own_value - ridge * (point[1:] ** 2).sum(), rel=1e-12)
        check_optimal(point[1:], gradient, lower, upper)
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


@pytest.mark.parametrize("seed", range(3))
def test_equals_slsqp_where_that_converges(seed):
    codes, target, weight, X = make_rows(seed)
    lower = np.where(STEPS, 0.0, -np.inf)
    ridge = 1 / (2 * N)
    found = minimise(make_loss(codes, target, weight, way="cells"), ridge=ridge, lower=lower)
    slow = minimise_slsqp(X, target, ridge=ridge, lower=lower, tolerance=1e-14, max_iterations=2000)
    assert slow.converged
    assert found.objective == pytest.approx(slow.objective, rel=1e-9)
    np.testing.assert_allclose(found.coefficients, slow.coefficients, atol=1e-5)


def test_dense_columns_and_a_ridge_per_coefficient(rng):
    X = rng.normal(size=(N, 3)) * [1.0, 3.0, 0.2]
    target = (X @ [1.0, -0.5, 2.0] + rng.normal(size=N) > 0.5).astype(np.float64)
    ridge = np.array([0.01, 0.0, 0.2])
    lower = np.array([-np.inf, 0.0, -np.inf])
    loss = LogisticLoss(Layout((), 3), [Block((), target, None, X)])
    found = minimise(loss, ridge=ridge, lower=lower)
    value, point = lbfgs(X, target, np.ones(N), ridge, lower, np.full(3, np.inf))
    assert found.objective == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose([found.intercept, *found.coefficients], point, atol=1e-6)
    assert found.coefficients[1] == 0


@pytest.mark.parametrize("kind", ["packs", "dense", "both"])
def test_a_sampled_hessian_reaches_the_same_optimum(kind, monkeypatch, rng):
    n = 6000
    codes = [rng.integers(0, size, n).astype(np.uint8) for size in LEVELS]
    codes[1][:] = np.where(rng.random(n) < 0.005, 2, codes[1] % 2)  # a rare level
    dense = rng.normal(size=(n, 2))
    target = (0.8 * codes[0] - 1.0 + dense[:, 0] + rng.normal(size=n) > 0).astype(np.uint8)
    packs = tuple(codes) if kind != "dense" else ()
    block = Block(packs, target, None, None if kind == "packs" else dense)
    layout = Layout(tuple(feature_maps()) if packs else (), 0 if kind == "packs" else 2)
    lower = np.zeros(layout.n_coefficients)
    exact = minimise(LogisticLoss(layout, [block]), ridge=1e-4, lower=lower)

    n_columns = len(packs) + layout.n_dense
    monkeypatch.setattr(sampling, "_HESSIAN_BUDGET", 2000 * (n_columns * (n_columns + 1) // 2))
    monkeypatch.setattr(sampling, "_DENSE_ROWS", 2000)
    monkeypatch.setattr(blocks, "_FEW_NUMBERS", 0)
    monkeypatch.setattr(blocks, "_FEW_PAIRED", 0)
    loss = LogisticLoss(layout, [block])
    (sample,) = loss._hessian_rows
    assert 1000 < len(sample) < 3500
    assert sample.weight.sum() == pytest.approx(n, rel=0.1)
    sampled = minimise(loss, ridge=1e-4, lower=lower)
    assert sampled.converged
    assert sampled.kkt < 1e-9
    assert sampled.objective == pytest.approx(exact.objective, rel=1e-12)
    np.testing.assert_allclose(sampled.coefficients, exact.coefficients, atol=1e-7)


@pytest.mark.parametrize("column", ["rare", "odd rows", "one outlier"])
@pytest.mark.parametrize("ridge", [0.0, 1e-6])
def test_a_column_that_a_sample_may_miss(column, ridge, monkeypatch, rng):
    monkeypatch.setattr(blocks, "_FEW_NUMBERS", 0)
    monkeypatch.setattr(blocks, "_FEW_PAIRED", 0)
    n = 200_000
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
    loss = LogisticLoss(Layout((), 2), [Block((), target, None, X)])
    assert loss.sampled
    found = minimise(loss, ridge=ridge, box=np.inf)
    assert found.converged
    assert found.kkt < 1e-9
    assert found.iterations < 60


def test_the_sample_keeps_rare_levels(monkeypatch, rng):
    n = 50_000
    pack = np.zeros(n, dtype=np.uint8)
    pack[rng.permutation(n)[:40]] = 1
    monkeypatch.setattr(sampling, "_HESSIAN_BUDGET", 1000)
    monkeypatch.setattr(blocks, "_FEW_PAIRED", 0)
    loss = LogisticLoss(Layout((np.eye(2),)), [Block((pack,), rng.integers(0, 2, n))])
    (sample,) = loss._hessian_rows
    assert np.count_nonzero(sample.packs[0] == 1) == 40
    assert len(sample) < 2000


def test_gradient_and_hessian_are_the_derivatives(rng):
    codes, target, weight, _ = make_rows(0, weighted=True)
    loss = make_loss(codes, target, weight, way="rows")
    point, h = rng.normal(size=1 + len(STEPS)), 1e-5
    _, gradient = loss.value_and_gradient(point)
    H = loss.hessian(point)
    for j, step in enumerate(h * np.eye(len(point))):
        up, down = loss.value_and_gradient(point + step), loss.value_and_gradient(point - step)
        assert gradient[j] == pytest.approx((up[0] - down[0]) / (2 * h), abs=1e-9)
        np.testing.assert_allclose(H[j], (up[1] - down[1]) / (2 * h), atol=1e-9)


def test_the_loss_is_a_sum_over_blocks(rng):
    codes, target, weight, _ = make_rows(1, weighted=True)
    whole = make_loss(codes, target, weight, way="packs")
    (block,) = whole.blocks
    parts = LogisticLoss(whole.layout, [block.take(slice(0, 50)), block.take(slice(50, N))])
    point = rng.normal(size=1 + len(STEPS))
    assert parts.total == whole.total
    assert parts.value_and_gradient(point)[0] == pytest.approx(whole.value_and_gradient(point)[0], rel=1e-13)
    np.testing.assert_allclose(parts.hessian(point), whole.hessian(point), rtol=1e-10, atol=1e-14)


def test_scores_far_out_neither_overflow_nor_lose_the_loss():
    loss = LogisticLoss(Layout((), 1), [Block((), np.array([1.0, 0.0]), None, np.array([[1.0], [-1.0]]))])
    with np.errstate(all="raise", under="ignore"):
        value, _ = loss.value_and_gradient(np.array([0.0, -2000.0]))
        assert value == 2000.0
        assert loss.value_and_gradient(np.array([0.0, 2000.0]))[0] == 0.0


def test_a_warm_start_ends_at_the_same_optimum():
    codes, target, weight, _ = make_rows(2)
    loss = make_loss(codes, target, weight, way="cells")
    lower = np.where(STEPS, 0.0, -np.inf)
    cold = minimise(loss, ridge=1e-3, lower=lower)
    start = np.array([cold.intercept, *cold.coefficients])
    warm = minimise(loss, ridge=1e-3, lower=lower, start=start)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.coefficients, cold.coefficients, atol=1e-12)
    far = minimise(loss, ridge=1e-3, lower=lower, start=np.full(1 + len(STEPS), -7.0))
    assert far.objective == pytest.approx(cold.objective, rel=1e-12)


def test_the_limit_of_iterations_is_a_stop_that_says_so():
    codes, target, weight, _ = make_rows(0)
    found = minimise(make_loss(codes, target, weight, way="rows"), ridge=1e-3, max_iterations=1)
    assert not found.converged
    assert found.reason == "the limit of 1 iterations"
    assert found.iterations == len(found.history) == 1


# ---- no finite optimum


def one_hot_loss(pack, target, size):
    return LogisticLoss(Layout((np.eye(size),)), [Block((pack.astype(np.uint8),), target)])


@pytest.mark.parametrize("pure", [0, 1])
def test_a_pure_level_without_ridge_is_stopped_and_told(pure):
    pack, target = np.repeat([0, 1], 40), np.tile([0.0, 1.0], 40)
    target[40:] = pure
    found = minimise(one_hot_loss(pack, target, 2))
    assert not found.converged or found.at_box.any()
    assert "no finite optimum" in found.reason
    assert np.isfinite(found.coefficients).all()
    assert found.loss == pytest.approx(0.5 * np.log(2), abs=1e-8)
    assert minimise(one_hot_loss(pack, target, 2), ridge=1e-3).converged


def test_separable_lines_without_a_box_are_stopped_and_told(rng):
    X = rng.normal(size=(100, 2))
    loss = LogisticLoss(Layout((), 2), [Block((), (X[:, 0] > 0).astype(float), None, X)])
    found = minimise(loss, box=np.inf)
    assert not found.converged
    assert found.loss < 1e-6
    assert np.isfinite(found.coefficients).all()


def test_quasi_separable_lines_are_stopped_and_told():
    X = np.repeat([0.0, 1.0], 50)[:, None]
    target = np.where(X[:, 0] == 1, 1.0, np.tile([0.0, 1.0], 50))
    found = minimise(LogisticLoss(Layout((), 1), [Block((), target, None, X)]), box=np.inf)
    assert not found.converged
    assert "no finite optimum" in found.reason


def test_flat_directions_are_no_reason_to_complain(rng):
    # Duplicate columns beside an intercept and all indicators: many optima, all finite, all the same model.
    X = np.column_stack([np.repeat(np.eye(4), 50, axis=0)] * 2)
    target = (rng.random(200) < 0.4).astype(float)
    found = minimise(LogisticLoss(Layout((), 8), [Block((), target, None, X)]))
    assert found.converged
    assert found.kkt < 1e-9
    rates = target.reshape(4, 50).mean(axis=1)
    score = found.intercept + X[::50] @ found.coefficients
    np.testing.assert_allclose(1 / (1 + np.exp(-score)), rates, atol=1e-9)


@pytest.mark.parametrize("kind", ["packs", "dense"])
def test_a_search_that_begins_on_few_rows_ends_at_the_same_optimum(kind, monkeypatch, rng):
    n = 20_000
    codes = tuple(rng.integers(0, size, n).astype(np.uint8) for size in LEVELS)
    dense = rng.normal(size=(n, 2))
    target = (0.8 * codes[0] - 1.0 + dense[:, 0] + rng.normal(size=n) > 0).astype(np.uint8)
    block = Block(codes if kind == "packs" else (), target, None, dense if kind == "dense" else None)
    layout = Layout(tuple(feature_maps()) if kind == "packs" else (), 0 if kind == "packs" else 2)
    loss, problem = LogisticLoss(layout, [block]), {"ridge": 1e-4, "lower": np.zeros(layout.n_coefficients)}
    monkeypatch.setattr(logistic, "_AT_ONE_GO", 0)  # compiled loops have a way of their own to begin
    monkeypatch.setattr(logistic, "_MANY_ROWS", n)
    whole = minimise(loss, **problem)
    monkeypatch.setattr(logistic, "_ROWS_TO_BEGIN", 50)
    begun = logistic.fit_rows(loss, **problem)
    assert begun.iterations < whole.iterations
    assert begun.objective == pytest.approx(whole.objective, rel=1e-13)
    np.testing.assert_allclose(begun.coefficients, whole.coefficients, atol=1e-9)


def test_a_search_does_not_begin_on_rows_of_one_outcome(monkeypatch):
    monkeypatch.setattr(logistic, "_MANY_ROWS", 1)
    monkeypatch.setattr(logistic, "_ROWS_TO_BEGIN", 1)
    target = np.zeros(64, np.uint8)
    target[1::16] = 1  # none among every sixteenth row
    loss = LogisticLoss(Layout(()), [Block((), target)])
    assert logistic.fit_rows(loss).intercept == pytest.approx(np.log(4 / 60))


def test_a_step_onto_a_bound_teaches_nothing():
    class Bowl:
        start = np.zeros(2)
        cheap = moderate = sampled = False

        def value_and_gradient(self, point, *, bent=True):
            return 0.5 * point[0] ** 2 + 0.5 * (point[1] - 1) ** 2, point - np.array([0.0, 1.0])

        def hessian(self, point, *, whole=False):
            return np.eye(2)

        def settle(self, start, problem):
            return None

        def in_blocks(self, ridge):
            return None

    found = minimise(Bowl(), upper=np.array([0.5]))
    assert found.converged
    assert found.coefficients.tolist() == [0.5]


@pytest.mark.parametrize("packs", [0, 2])
def test_every_takes_one_row_in_so_many(rng, packs):
    n = 10_000
    block = Block(
        tuple(rng.integers(0, 9, n).astype(np.uint8) for _ in range(packs)),
        np.arange(n) % 256,
        rng.random(n),
        np.arange(2.0 * n).reshape(n, 2),
    )
    for step in (1, 3, 16, n - 1):
        few = sampling.every(block, step)
        assert len(few) == pytest.approx(n / step, abs=256)
        at = few.dense[:, 0].astype(int) // 2  # which rows they are
        assert (np.diff(at) > 0).all()
        np.testing.assert_array_equal(few.positive, block.positive[at])
        np.testing.assert_array_equal(few.weight, block.weight[at])
        np.testing.assert_array_equal(few.dense, block.dense[at])
        for some, pack in zip(few.packs, block.packs, strict=True):
            np.testing.assert_array_equal(some, pack[at])
    assert len(sampling.every(block.take(slice(0, 0)), 4)) == 0


def test_rows_that_stand_together_are_in_the_start(rng):
    """A level of 2,000 rows, one after the other, among 300,000: none of a few long runs of rows may be all of them."""
    n = 300_000
    year = np.zeros(n, np.uint8)
    year[123_000:125_000] = 1
    other = rng.integers(0, 5, n).astype(np.uint8)
    target = (rng.random(n) < 0.2 + 0.3 * year + 0.05 * other).astype(np.uint8)
    layout = Layout((np.eye(2), np.eye(5)))
    loss = LogisticLoss(layout, [Block((year, other), target)])
    assert sampling.every(loss.blocks[0], 16).packs[0].sum() == 125
    passes = []
    asked = LogisticLoss.value_and_gradient

    class Counted(LogisticLoss):
        def value_and_gradient(self, point, *, bent=True):
            passes.append(self.n_rows)
            return asked(self, point, bent=bent)

    found = logistic.fit_rows(Counted(layout, loss.blocks), ridge=1e-6)
    wanted = minimise(loss, ridge=1e-6)
    assert found.converged
    np.testing.assert_allclose(found.coefficients, wanted.coefficients, atol=1e-8)
    assert passes.count(n) <= 8


def test_a_lent_hessian_without_a_level_is_given_up(rng):
    n = 4000
    codes = rng.integers(0, 3, n).astype(np.uint8)
    target = (rng.random(n) < 0.1 + 0.2 * codes).astype(np.uint8)
    loss = LogisticLoss(Layout((np.eye(3),)), [Block((codes,), target)])
    lent = loss.hessian(loss.start)
    lent[2, :] = lent[:, 2] = 0.0  # as if no row had been seen
    found = bounded._Newton(loss, 1e-3, None, None, 20.0, loss.start, lent, 1e-11, True, 200)._step_by_step()
    wanted = minimise(loss, ridge=1e-3)
    assert found.converged
    assert found.iterations <= wanted.iterations + 2
    np.testing.assert_allclose(found.coefficients, wanted.coefficients, atol=1e-9)


def test_numbers_in_several_blocks_are_those_of_one(rng):
    X = rng.normal(size=(5000, 3))
    target = (X[:, 0] + rng.normal(size=5000) > 0).astype(np.uint8)
    one = LogisticLoss(Layout((), 3), [Block((), target, None, X)])
    cuts = [slice(0, 100), slice(100, 3000), slice(3000, 5000)]
    several = [Block((), target[rows], None, X[rows]) for rows in cuts]
    point = rng.normal(size=4)
    for rows in (several, tuple(several)):  # in a list they are at hand; others come one after the other
        loss = LogisticLoss(Layout((), 3), rows)
        assert loss.value_and_gradient(point)[0] == pytest.approx(one.value_and_gradient(point)[0], rel=1e-13)
        np.testing.assert_allclose(loss.hessian(point), one.hessian(point), rtol=1e-12)
    kept = one.hessian(point)
    point += 1.0  # in place
    assert not np.allclose(one.hessian(point), kept)


def test_what_counts_against_an_optimum():
    lower, upper = np.array([-np.inf, 0.0, 0.0, 0.0, 2.0]), np.array([np.inf, 1.0, 1.0, 1.0, 2.0])
    point = np.array(
        [0.0, 0.0, 1.0, 0.5, 2.0]
    )  # free, at the lower bound, at the upper, between them, and held by both
    for gradient, wanted in [
        ([0.0, 5.0, -5.0, 0.0, 5.0], 0.0),
        ([0.0, 5.0, -5.0, 0.0, -5.0], 0.0),
        ([-0.5, 0.0, 0.0, 0.25, 0.0], 0.5),
        ([0.0, -0.5, 0.25, 0.0, 0.0], 0.5),
        ([0.0, -0.25, 0.5, 0.0, 0.0], 0.5),
    ]:
        assert kkt_residual(point, np.array(gradient), lower, upper) == wanted


def test_a_hessian_of_numbers_is_there_when_it_is_asked_for(rng):
    target = rng.integers(0, 2, 300).astype(np.uint8)
    block = Block((), target, None, rng.normal(size=(300, 2)))
    point = np.array([0.1, 0.2, -0.3])
    loss, other = (LogisticLoss(Layout((), 2), [block]) for _ in range(2))
    value, gradient = loss.value_and_gradient(point, bent=False)
    np.testing.assert_array_equal(loss.hessian(point), other.hessian(point))
    assert value == pytest.approx(other.value_and_gradient(point)[0], rel=1e-14)
    np.testing.assert_allclose(gradient, other.value_and_gradient(point)[1], rtol=1e-13, atol=1e-16)
