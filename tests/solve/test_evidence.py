"""Precisions by marginal likelihood: against mgcv, at their stationary point, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.bins import smooth_contrast
from plainrisk.fit.basis import Basis
from plainrisk.fit.coding import code_rows, learn_levels
from plainrisk.fit.training import read_training
from plainrisk.solve import Block, Hyperprior, Layout, LogisticLoss, Moments, Rows, maximize_evidence, polished

# mgcv 1.8.41: gam(y ~ A + B + C, paraPen = an identity for each, method = "REML"), on the columns of `credit` below.
# Precisions, effective degrees of freedom, intercept and the first coefficient.
GAUSSIAN = ([207.1664001, 905.6921414, 125.7214097], [6.386763, 4.547138, 5.638683], 0.69748163187, -0.04336606231)
FELLNER_SCHALL = ([7.175985745, 34.296337879, 4.598419075], [6.444356, 4.450044, 5.671252], 0.918284638, -0.2773073919)
LAPLACE_EDF = [6.571525, 4.51722, 5.729246]


EDGES = {
    "Duration in month": (6.5, 8.5, 9.5, 11.5, 12.5, 15.5, 19.0, 23.0, 25.0, 29.0, 34.5, 37.5, 47.5),
    "Credit amount": (708.5, 931.5, 1156.5, 1260.0, 1365.0, 1479.0, 1602.5, 1906.5, 2100.5, 2319.5, 2577.5, 2853.5,
                      3188.0, 3584.0, 3972.5, 4726.0, 5981.5, 7201.0, 9214.0),
}  # fmt: skip


@pytest.fixture(scope="module")
def credit():
    """Two features in fine bins and one of categories, of the German credit data."""
    german = pr.datasets.load("german", backend="pandas")
    features = {name: {"edges": edges} for name, edges in EDGES.items()} | {"Purpose": {"kind": "categorical"}}
    schema = pr.Schema(features=features)
    training = read_training(german.frame[list(features)], german.target, schema, None, None)
    coded = code_rows(training, learn_levels(training))
    contrasts = tuple(
        smooth_contrast(weights, levels.n_ordered, 0, ordered=name in EDGES)
        for name, weights, levels in zip(features, coded.weights, coded.levels, strict=True)
    )
    basis = Basis(coded, {}, contrasts)
    return basis.layout, coded.rows, np.repeat(np.arange(3), [len(c.keys) for c in contrasts])


def edf_of(evidence, groups):
    """The effective degrees of freedom of every group."""
    return np.bincount(groups, evidence.edf)


def test_least_squares_are_those_of_mgcv(credit):
    layout, rows, groups = credit
    evidence = maximize_evidence(Moments.of(layout, rows), groups, tolerance=1e-12)
    precision, edf, intercept, first = GAUSSIAN
    np.testing.assert_allclose(evidence.precision, precision, rtol=1e-4)
    np.testing.assert_allclose(edf_of(evidence, groups), edf, rtol=1e-4)
    assert evidence.point[:2] == pytest.approx((intercept, first), abs=1e-6)
    assert evidence.scale == pytest.approx(0.1898993538, rel=1e-5)


def test_logistic_fits_are_those_of_mgcv(credit):
    """The same update there stops a little earlier; its full Laplace approximation lets the Hessian move, too."""
    layout, rows, groups = credit
    evidence = maximize_evidence(LogisticLoss(layout, rows), groups, tolerance=1e-12)
    precision, edf, intercept, first = FELLNER_SCHALL
    np.testing.assert_allclose(evidence.precision, precision, rtol=5e-3)
    np.testing.assert_allclose(edf_of(evidence, groups), edf, rtol=5e-3)
    np.testing.assert_allclose(edf_of(evidence, groups), LAPLACE_EDF, rtol=0.03)
    assert evidence.point[:2] == pytest.approx((intercept, first), abs=2e-4)


@pytest.mark.parametrize("linear", [False, True])
def test_polished_coefficients_are_the_minimum_at_the_precisions_found(credit, linear):
    layout, rows, groups = credit
    loss, lower = Moments.of(layout, rows) if linear else LogisticLoss(layout, rows), np.zeros(len(groups))
    evidence = maximize_evidence(loss, groups, lower=lower)
    solution = polished(loss, groups, evidence, lower)
    assert solution.converged
    np.testing.assert_allclose(solution.point, evidence.point, atol=0.01)
    if linear:
        gradient = (loss.gram @ solution.point - loss.moment) / evidence.scale
    else:
        gradient = rows.totals[1] * loss.value_and_gradient(solution.point)[1]
    gradient[1:] += evidence.precision[groups] * solution.coefficients
    held = np.append(False, solution.coefficients == 0)
    assert held.any()
    assert np.abs(gradient[~held]).max() < 1e-4
    assert (gradient[held] > -1e-4).all()


@pytest.mark.parametrize("linear", [False, True])
def test_it_does_not_matter_where_the_search_begins(credit, linear):
    layout, rows, groups = credit
    loss = Moments.of(layout, rows) if linear else LogisticLoss(layout, rows)
    plain = maximize_evidence(loss, groups, tolerance=1e-10)
    elsewhere = np.random.default_rng(0).normal(scale=0.3, size=1 + len(groups))
    other = maximize_evidence(loss, groups, point=elsewhere, precision=np.array([1e4, np.nan, 0.5]), tolerance=1e-10)
    assert other.converged
    np.testing.assert_allclose(other.precision, plain.precision, rtol=1e-4)
    np.testing.assert_allclose(other.point, plain.point, atol=1e-5)


@pytest.mark.parametrize("linear", [False, True])
def test_weights_may_stand_for_any_number_of_rows(credit, linear):
    """Scaled weights with the number of rows given are the rows; without it they are so many rows."""
    layout, rows, groups = credit
    block = next(iter(rows))
    n, positive = len(block), block.positive.astype(float)
    light = Rows([Block(block.codes, positive / n, np.full(n, 1 / n))])
    make = Moments.of if linear else LogisticLoss
    plain = maximize_evidence(make(layout, rows), groups)
    scaled = maximize_evidence(make(layout, light), groups, total=float(n))
    np.testing.assert_allclose(scaled.precision, plain.precision, rtol=1e-6)
    np.testing.assert_allclose(scaled.point, plain.point, atol=1e-8)
    few = maximize_evidence(make(layout, light), groups)
    assert few.edf.sum() < 0.1 * plain.edf.sum()


def test_the_covariance_is_that_of_the_posterior_without_bounds(credit):
    layout, rows, groups = credit
    loss = LogisticLoss(layout, rows)
    evidence = maximize_evidence(loss, groups, lower=np.zeros(len(groups)), tolerance=1e-10)
    assert not evidence.free.all()
    hessian = rows.totals[1] * loss.hessian(evidence.point, exact=True)
    penalty = np.append(0.0, evidence.precision[groups])
    np.testing.assert_allclose(evidence.covariance(), np.linalg.inv(hessian + np.diag(penalty)), atol=1e-5)


def log_evidence(H, gradient_at, point, precision, groups, value):
    """Laplace's log marginal likelihood with the Hessian held, at the minimum of the penalized quadratic."""
    penalty = np.concatenate([[0.0], precision[groups]])
    best = point - np.linalg.solve(H + np.diag(penalty), gradient_at + penalty * point)
    d = best - point
    loss = value + gradient_at @ d + 0.5 * d @ H @ d + 0.5 * penalty @ best**2
    return -loss + 0.5 * np.log(penalty[1:]).sum() - 0.5 * np.linalg.slogdet(H + np.diag(penalty))[1]


def laplace(credit):
    """Return the evidence of a logistic fit; Hessian, gradient and point of its sum of losses; the sum; and groups."""
    layout, rows, groups = credit
    loss = LogisticLoss(layout, rows)
    evidence = maximize_evidence(loss, groups, tolerance=1e-9)
    return evidence, *problem_at(loss, evidence.point), groups


def problem_at(loss, point):
    """Hessian, gradient and point of the sum of losses; and the sum."""
    total = loss.rows.totals[1]
    value, gradient = loss.value_and_gradient(point)
    return (total * loss.hessian(point, exact=True), total * gradient, point), total * value


def test_the_marginal_likelihood_is_stationary(credit):
    evidence, problem, value, groups = laplace(credit)
    for u in range(3):
        found = []
        for size in (-1e-3, 1e-3):
            precision = evidence.precision.copy()
            precision[u] *= np.exp(size)
            found.append(log_evidence(*problem, precision, groups, value))
        slope = (found[1] - found[0]) / 2e-3
        assert slope == pytest.approx(evidence.gradient[u], abs=1e-5)
        assert abs(slope) < 1e-3


def test_bayes_factors_compare_with_the_model_without_the_group(credit):
    evidence, problem, value, groups = laplace(credit)
    found = log_evidence(*problem, evidence.precision, groups, value)
    blocks = [np.flatnonzero(groups == u) for u in range(3)]
    factors = evidence.log_factors(blocks, evidence.precision.tolist())
    for u in range(3):
        without = np.where(np.arange(3) == u, 1e10, evidence.precision)
        gain = found - log_evidence(*problem, without, groups, value)
        assert factors[u] == pytest.approx(gain, abs=1e-3)  # the Hessian is of a point close by


def noisy_rows(rng, n=400, n_features=3):
    codes = tuple(rng.integers(0, 6, n).astype(np.uint8) for _ in range(n_features))
    chance = 1 / (1 + np.exp(-(codes[0] - 2.5)))
    return Rows([Block(codes, (rng.random(n) < chance).astype(np.uint8))])


STEPS = np.tri(6, 6, -1)[:, :5]


@pytest.mark.parametrize("linear", [False, True])
def test_groups_without_effect_are_shrunk_to_next_to_nothing(linear):
    layout, groups = Layout((STEPS,) * 3), np.repeat(np.arange(3), 5)
    edf = []
    for seed in range(20):
        rows = noisy_rows(np.random.default_rng(seed))
        loss = Moments.of(layout, rows) if linear else LogisticLoss(layout, rows)
        evidence = maximize_evidence(loss, groups)
        assert evidence.converged
        edf.append(edf_of(evidence, groups))
    edf = np.array(edf)
    assert (edf[:, 0] > 1.5).all()
    assert np.median(edf[:, 1:]) < 0.1  # of about half of them nothing is left
    assert edf[:, 1:].mean() < 1.0


def test_steps_that_bounds_hold_do_not_count(rng):
    """A falling feature that must not fall: every step is held at 0, and the group has no degrees of freedom."""
    block = noisy_rows(rng).blocks[0]
    loss = LogisticLoss(Layout((-STEPS, STEPS)), Rows([Block(block.codes[:2], block.positive)]))
    groups, lower = np.repeat([0, 1], 5), np.zeros(10)
    evidence = maximize_evidence(loss, groups, lower=lower)
    for point in (evidence.point, polished(loss, groups, evidence, lower).point):
        assert (point[1:] >= 0).all()
        assert (point[1:6] == 0).all()
    assert (evidence.edf[:5] == 0).all()
    assert not evidence.free[1:6].any()


def test_weights_count_like_rows(rng):
    codes = tuple(rng.integers(0, 6, 200).astype(np.uint8) for _ in range(2))
    positive, layout, groups = rng.integers(0, 2, 200), Layout((STEPS,) * 2), np.repeat([0, 1], 5)
    twice = Rows([Block(tuple(np.tile(c, 2) for c in codes), np.tile(positive, 2).astype(np.uint8))])
    heavy = Rows([Block(codes, 2.0 * positive, np.full(200, 2.0))])
    a, b = (maximize_evidence(LogisticLoss(layout, rows), groups) for rows in (twice, heavy))
    np.testing.assert_allclose(a.point, b.point, atol=1e-9)
    np.testing.assert_allclose(a.precision, b.precision, rtol=1e-7)


def test_no_coefficients_at_all():
    loss, groups = LogisticLoss(Layout(()), Rows([Block((), np.array([1, 0, 0, 0], np.uint8))])), np.zeros(0, int)
    evidence = maximize_evidence(loss, groups)
    assert polished(loss, groups, evidence, np.zeros(0)).intercept == pytest.approx(np.log(1 / 3))
    assert len(evidence.edf) == 0


# ---- what is known of precisions before the rows are seen


def population(units, parent=None, spread=0.1, apart=2.0):
    return Hyperprior(np.asarray(units, float), np.full(len(units), -1) if parent is None else parent, spread, apart)


def slopes_at(loss, groups, evidence):
    """The slope of the log marginal likelihood by each log precision, by differences."""
    problem, value = problem_at(loss, evidence.point)
    slopes = []
    for u in range(len(evidence.precision)):
        found = []
        for size in (-1e-3, 1e-3):
            precision = evidence.precision * np.exp(np.where(np.arange(len(evidence.precision)) == u, size, 0.0))
            found.append(log_evidence(*problem, precision, groups, value))
        slopes.append((found[1] - found[0]) / 2e-3)
    return np.array(slopes)


def test_a_population_draws_precisions_together(credit):
    """At the maximum each likelihood's slope is the pull of one normal density, whose mean is that of the groups."""
    layout, rows, groups = credit
    loss, alike = LogisticLoss(layout, rows), np.array([4.0, 1.0, 2.0])
    evidence = maximize_evidence(loss, groups, hyperprior=population(np.log(alike)), tolerance=1e-12)
    alone = maximize_evidence(loss, groups)
    assert evidence.converged
    np.testing.assert_allclose(evidence.gradient, 0, atol=1e-4)
    slopes = slopes_at(loss, groups, evidence)
    away = np.log(evidence.precision / alike)
    away -= away.mean()
    variance = away @ away / (away @ slopes)
    np.testing.assert_allclose(slopes, away / variance, atol=2e-3)
    assert variance > 0
    assert np.ptp(np.log(evidence.precision / alike)) < np.ptp(np.log(alone.precision / alike))


def test_a_population_comes_nearer_to_the_truth_on_few_rows():
    layout, groups = Layout((STEPS,) * 10), np.repeat(np.arange(10), 5)
    distance = np.zeros(2)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 6, (10, 300)).astype(np.uint8)
        truth = -1.0 + rng.normal(scale=0.15, size=10) @ (codes - 2.5)
        rows = Rows([Block(tuple(codes), (rng.random(300) < 1 / (1 + np.exp(-truth))).astype(np.uint8))])
        for k, hyperprior in enumerate((None, population(np.zeros(10)))):
            point = maximize_evidence(LogisticLoss(layout, rows), groups, hyperprior=hyperprior).point
            columns = np.hstack([STEPS[code] for code in codes])
            distance[k] += np.mean((point[0] + columns @ point[1:] - truth) ** 2)
    assert distance[1] < 0.9 * distance[0]


@pytest.mark.parametrize("linear", [False, True])
def test_noise_tells_a_population_that_little_is_usual(linear):
    """Forty groups without effect and one with: by themselves the forty move the scores more."""
    layout, groups = Layout((STEPS,) * 41), np.repeat(np.arange(41), 5)
    noise = np.zeros(2)
    for seed in range(3):
        rows = noisy_rows(np.random.default_rng(seed), n_features=41)
        loss = Moments.of(layout, rows) if linear else LogisticLoss(layout, rows)
        for k, hyperprior in enumerate((None, population(np.zeros(41)))):
            evidence = maximize_evidence(loss, groups, hyperprior=hyperprior)
            assert evidence.converged
            edf = edf_of(evidence, groups)
            assert edf[0] > 3.5
            assert np.median(edf[1:]) < 1.0
            columns = np.hstack([STEPS[code] for code in rows.blocks[0].codes[1:]])
            noise[k] += np.std(columns @ evidence.point[6:])
    assert noise[1] < 0.85 * noise[0]


def test_tails_are_drawn_to_the_body(credit):
    """A group with a parent has its precision where the parent's is, the nearer the less they may be apart."""
    layout, rows, groups = credit
    loss = LogisticLoss(layout, rows)
    gaps = []
    for apart in (1e-4, 2.0, 1e6):
        hyperprior = population([np.nan] * 3, np.array([-1, 0, 0]), apart=apart)
        evidence = maximize_evidence(loss, groups, hyperprior=hyperprior, tolerance=1e-8)
        assert evidence.converged
        theta = np.log(evidence.precision)
        gaps.append(np.abs(theta[1:] - theta[0]))
        # The likelihood pulls each tail away from its body as hard as the prior draws it there.
        slopes = slopes_at(loss, groups, evidence)
        np.testing.assert_allclose(slopes[1:], (theta[1:] - theta[0]) / apart, atol=0.02)
        assert slopes.sum() == pytest.approx(0.0, abs=0.02)
    alone = np.log(maximize_evidence(loss, groups).precision)
    assert (gaps[0] < 0.01).all()
    sizes = [float(np.linalg.norm(gap)) for gap in gaps]
    assert sizes == sorted(sizes)
    assert sizes[1] < 0.8 * sizes[2]
    np.testing.assert_allclose(gaps[2], np.abs(alone[1:] - alone[0]), atol=0.05)


@pytest.mark.parametrize("precision", [10.0, 100.0])
def test_directions_find_half_normal_precisions_within_a_factor(precision):
    """With bounds the evidence keeps the constants of the normal prior; docs/choices.md says how far off that is."""
    rng = np.random.default_rng(5)
    features, steps, n = 8, 16, 5000
    beta = np.abs(rng.normal(size=(features, steps))) / precision**0.5
    codes = tuple(rng.integers(0, steps + 1, size=(features, n)).astype(np.uint8))
    matrix = np.tri(steps + 1, steps, -1)
    score = sum((matrix @ own)[code] for own, code in zip(beta, codes, strict=True))
    y = (rng.random(n) < 1 / (1 + np.exp(score.mean() + 1.5 - score))).astype(np.uint8)
    loss = LogisticLoss(Layout((matrix,) * features), Rows([Block(codes, y)]))
    groups = np.repeat(np.arange(features), steps)
    found = maximize_evidence(loss, groups, lower=np.zeros(len(groups)))
    assert 0.25 * precision < np.median(found.precision) < 1.25 * precision
