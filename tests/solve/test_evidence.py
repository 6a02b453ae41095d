"""Precisions by marginal likelihood: against mgcv, at their stationary point, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.bins import smooth_contrast
from plainrisk.fit.coding import Design, code_rows, learn_levels
from plainrisk.fit.training import read_training
from plainrisk.solve import Block, Layout, LogisticLoss, Moments, Rows, maximise_evidence
from plainrisk.solve.evidence import _Search

# mgcv 1.8.41: gam(y ~ A + B + C, paraPen = an identity for each, method = "REML"), on the columns of `credit` below.
# Precisions, effective degrees of freedom, intercept and the first coefficient.
GAUSSIAN = ([207.1664001, 905.6921414, 125.7214097], [6.386763, 4.547138, 5.638683], 0.69748163187, -0.04336606231)
FELLNER_SCHALL = ([7.175985745, 34.296337879, 4.598419075], [6.444356, 4.450044, 5.671252], 0.918284638, -0.2773073919)
LAPLACE_EDF = [6.571525, 4.51722, 5.729246]


@pytest.fixture(scope="module")
def credit():
    """Two features in fine bins and one of categories, of the German credit data."""
    german = pr.datasets.load("german", backend="pandas")
    names = ["Duration in month", "Credit amount", "Purpose"]
    schema = german.schema.part(names)
    training = read_training(german.frame[names], german.target, schema, None, None)
    coded = code_rows(training, learn_levels(training, max_bins=20, criterion="fine", min_rows=10))
    kinds = [schema.features[name].kind == "continuous" for name in names]
    contrasts = tuple(
        smooth_contrast(w, lv.n_ordered, 0, ordered=ordered)
        for w, lv, ordered in zip(coded.weights, coded.levels, kinds, strict=True)
    )
    design = Design(coded, contrasts)
    return design.layout, coded.rows, np.repeat(np.arange(3), [c.indicators.shape[1] for c in contrasts])


def test_least_squares_are_those_of_mgcv(credit):
    layout, rows, groups = credit
    solution, evidence = maximise_evidence(Moments.of(layout, rows), groups, tolerance=1e-12)
    precision, edf, intercept, first = GAUSSIAN
    np.testing.assert_allclose(evidence.precision, precision, rtol=1e-4)
    np.testing.assert_allclose(evidence.edf, edf, rtol=1e-4)
    assert solution.intercept == pytest.approx(intercept, abs=1e-6)
    assert solution.coefficients[0] == pytest.approx(first, abs=1e-6)
    assert evidence.scale == pytest.approx(0.1898993538, rel=1e-5)


def test_logistic_fits_are_those_of_mgcv(credit):
    """The same update there stops a little earlier; its full Laplace approximation lets the Hessian move, too."""
    layout, rows, groups = credit
    solution, evidence = maximise_evidence(LogisticLoss(layout, rows), groups, tolerance=1e-12)
    precision, edf, intercept, first = FELLNER_SCHALL
    np.testing.assert_allclose(evidence.precision, precision, rtol=5e-3)
    np.testing.assert_allclose(evidence.edf, edf, rtol=5e-3)
    np.testing.assert_allclose(evidence.edf, LAPLACE_EDF, rtol=0.03)
    assert solution.intercept == pytest.approx(intercept, abs=2e-4)
    assert solution.coefficients[0] == pytest.approx(first, abs=2e-4)


def test_groups_that_share_a_precision_are_as_one(credit):
    layout, rows, groups = credit
    loss = LogisticLoss(layout, rows)
    solution, evidence = maximise_evidence(loss, groups, shared=np.array([0, 0, 2]))
    whole, one = maximise_evidence(loss, np.array([0, 0, 1])[groups])
    assert evidence.converged
    assert evidence.precision[0] == evidence.precision[1] == pytest.approx(one.precision[0], rel=0.01)
    assert evidence.edf[:2].sum() == pytest.approx(one.edf[0], rel=0.01)
    np.testing.assert_allclose(solution.point, whole.point, atol=2e-3)
    np.testing.assert_allclose(evidence.gradient, 0, atol=0.02)


def log_evidence(H, gradient_at, point, precision, groups, value):
    """Laplace's log marginal likelihood with the Hessian held, at the minimum of the penalised quadratic."""
    penalty = np.concatenate([[0.0], precision[groups]])
    best = point - np.linalg.solve(H + np.diag(penalty), gradient_at + penalty * point)
    d = best - point
    loss = value + gradient_at @ d + 0.5 * d @ H @ d + 0.5 * penalty @ best**2
    return -loss + 0.5 * np.log(penalty[1:]).sum() - 0.5 * np.linalg.slogdet(H + np.diag(penalty))[1]


def laplace(credit):
    """Return the evidence of a logistic fit; Hessian, gradient and point of its sum of losses; groups; and the sum."""
    layout, rows, groups = credit
    loss = LogisticLoss(layout, rows)
    solution, evidence = maximise_evidence(loss, groups)
    total = rows.totals[1]
    value, gradient = loss.value_and_gradient(solution.point)
    problem = (total * loss.hessian(solution.point, exact=True), total * gradient, solution.point)
    return evidence, problem, groups, total * value


def test_the_marginal_likelihood_is_stationary(credit):
    evidence, problem, groups, value = laplace(credit)
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
    evidence, problem, groups, value = laplace(credit)
    found = log_evidence(*problem, evidence.precision, groups, value)
    for u in range(3):
        without = np.where(np.arange(3) == u, 1e10, evidence.precision)
        gain = found - log_evidence(*problem, without, groups, value)
        assert evidence.log_factor[u] == pytest.approx(gain, abs=1e-4)


def noisy_rows(rng, n=400, n_features=3):
    codes = tuple(rng.integers(0, 6, n).astype(np.uint8) for _ in range(n_features))
    chance = 1 / (1 + np.exp(-(codes[0] - 2.5)))
    return Rows([Block(codes, (rng.random(n) < chance).astype(np.uint8))])


STEPS = np.tri(6, 6, -1)[:, :5]


@pytest.mark.parametrize("linear", [False, True])
def test_groups_without_effect_leave(linear):
    layout, groups = Layout((STEPS,) * 3), np.repeat(np.arange(3), 5)
    left = np.zeros(3)
    for seed in range(20):
        rows = noisy_rows(np.random.default_rng(seed))
        loss = Moments.of(layout, rows) if linear else LogisticLoss(layout, rows)
        solution, evidence = maximise_evidence(loss, groups)
        assert evidence.converged
        assert (solution.coefficients[evidence.left[groups]] == 0).all()
        assert (evidence.edf[evidence.left] == 0).all()
        left += evidence.left
    assert left[0] == 0
    assert (left[1:] > 5).all()  # about half of those that are noise


@pytest.mark.parametrize("linear", [False, True])
def test_few_groups_stay_where_most_have_no_effect(linear):
    """By marginal likelihood alone a third of the forty would stay, the Bayes factor of most being next to 1."""
    layout, groups = Layout((STEPS,) * 41), np.repeat(np.arange(41), 5)
    stayed = 0
    for seed in range(3):
        rows = noisy_rows(np.random.default_rng(seed), n_features=41)
        loss = Moments.of(layout, rows) if linear else LogisticLoss(layout, rows)
        solution, evidence = maximise_evidence(loss, groups)
        assert evidence.converged
        assert not evidence.left[0]
        assert (solution.coefficients[evidence.left[groups]] == 0).all()
        stay = ~evidence.left
        assert (evidence.log_factor[stay] >= np.log(np.sum(~stay) / np.sum(stay)) - 0.1).all()
        stayed += stay[1:].sum()
    assert stayed <= 6  # of 120


def test_features_that_others_speak_for_are_not_silent(rng, monkeypatch):
    """Most of twenty copies of one feature leave; that says nothing against those that stay."""
    n = 1000
    x, weak = rng.integers(0, 6, (2, n))
    codes = [np.where(rng.random(n) < 0.03, rng.integers(0, 6, n), x).astype(np.uint8) for _ in range(20)]
    chance = 1 / (1 + np.exp(-(x - 2.5) - 0.15 * (weak - 2.5)))
    rows = Rows([Block((*codes, weak.astype(np.uint8)), (rng.random(n) < chance).astype(np.uint8))])
    loss, groups = LogisticLoss(Layout((STEPS,) * 21), rows), np.repeat(np.arange(21), 5)
    _, evidence = maximise_evidence(loss, groups)
    monkeypatch.setattr(_Search, "_drop", lambda self: False)
    _, alone = maximise_evidence(loss, groups)
    assert evidence.left[:20].sum() > 10
    assert not evidence.left[20]
    np.testing.assert_array_equal(evidence.left, alone.left)


def test_steps_that_bounds_hold_do_not_count(rng):
    """A falling feature that must not fall: every step is held at 0, and the group has left."""
    rows = noisy_rows(rng)
    layout = Layout((-STEPS, STEPS))
    solution, evidence = maximise_evidence(
        LogisticLoss(layout, rows.__class__([Block(rows.blocks[0].codes[:2], rows.blocks[0].positive)])),
        np.repeat([0, 1], 5),
        lower=np.zeros(10),
    )
    assert evidence.left[0]
    assert (solution.coefficients >= 0).all()
    assert (solution.coefficients[:5] == 0).all()


def test_weights_count_like_rows(rng):
    codes = tuple(rng.integers(0, 6, 200).astype(np.uint8) for _ in range(2))
    positive, layout, groups = rng.integers(0, 2, 200), Layout((STEPS,) * 2), np.repeat([0, 1], 5)
    twice = Rows([Block(tuple(np.tile(c, 2) for c in codes), np.tile(positive, 2).astype(np.uint8))])
    heavy = Rows([Block(codes, 2.0 * positive, np.full(200, 2.0))])
    a, b = (maximise_evidence(LogisticLoss(layout, rows), groups) for rows in (twice, heavy))
    np.testing.assert_allclose(a[0].point, b[0].point, atol=1e-9)
    np.testing.assert_allclose(a[1].precision, b[1].precision, rtol=1e-7)


def test_no_coefficients_at_all():
    rows = Rows([Block((), np.array([1, 0, 0, 0], np.uint8))])
    solution, evidence = maximise_evidence(LogisticLoss(Layout(()), rows), np.zeros(0, int))
    assert solution.intercept == pytest.approx(np.log(1 / 3))
    assert len(evidence.edf) == 0


def test_a_population_draws_precisions_to_what_is_usual(credit):
    """At the maximum each likelihood's slope is the pull of one normal density, whose mean is that of the groups."""
    layout, rows, groups = credit
    loss, alike = LogisticLoss(layout, rows), np.array([4.0, 1.0, 2.0])
    solution, evidence = maximise_evidence(loss, groups, alike=alike, tolerance=1e-10)
    _, alone = maximise_evidence(loss, groups)
    assert evidence.converged
    np.testing.assert_allclose(evidence.gradient, 0, atol=1e-4)
    total = rows.totals[1]
    value, gradient = loss.value_and_gradient(solution.point)
    problem = (total * loss.hessian(solution.point, exact=True), total * gradient, solution.point)
    slopes = []
    for u in range(3):
        found = []
        for size in (-1e-3, 1e-3):
            precision = evidence.precision * np.exp(np.where(np.arange(3) == u, size, 0.0))
            found.append(log_evidence(*problem, precision, groups, total * value))
        slopes.append((found[1] - found[0]) / 2e-3)
    away = np.log(evidence.precision / alike)
    away -= away.mean()
    variance = away @ away / (away @ slopes)
    np.testing.assert_allclose(slopes, away / variance, atol=2e-4)
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
        for k, alike in enumerate((None, np.ones(10))):
            solution, _ = maximise_evidence(LogisticLoss(layout, rows), groups, alike=alike)
            columns = np.hstack([STEPS[code] for code in codes])
            distance[k] += np.mean((solution.intercept + columns @ solution.coefficients - truth) ** 2)
    assert distance[1] < 0.9 * distance[0]


@pytest.mark.parametrize("linear", [False, True])
def test_silent_groups_leave_a_population(linear):
    layout, groups = Layout((STEPS,) * 41), np.repeat(np.arange(41), 5)
    for seed in range(3):
        rows = noisy_rows(np.random.default_rng(seed), n_features=41)
        loss = Moments.of(layout, rows) if linear else LogisticLoss(layout, rows)
        _, evidence = maximise_evidence(loss, groups, alike=np.ones(41))
        assert evidence.converged
        assert not evidence.left[0]
        assert (~evidence.left).sum() <= 3


def test_groups_that_left_stay_out(credit):
    layout, rows, groups = credit
    solution, evidence = maximise_evidence(
        LogisticLoss(layout, rows), groups, left=np.array([False, True, False]), precision=np.array([np.nan, 1.0, 5.0])
    )
    assert evidence.left.tolist() == [False, True, False]
    assert (solution.coefficients[groups == 1] == 0).all()
