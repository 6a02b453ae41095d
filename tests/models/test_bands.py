"""Bands for a portfolio: against every choice of knots, on scores that leave little to choose, and by outcomes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize
from scipy.special import expit

import plainrisk as pr
from plainrisk.fit.bands import outcome_bands, portfolio_bands


def squared_error(bands, scores, weight=None):
    return np.average((bands.value(scores) - expit(scores)) ** 2, weights=weight)


def best_by_trying_all(scores, pieces, n_places=18):
    """Every choice of inner knots on a grid; the values by bounded least squares of scipy."""
    low, high = scores.min(), scores.max()
    grid = np.quantile(scores, np.linspace(0, 1, n_places + 2)[1:-1])
    target = expit(scores)
    least = np.inf
    for inner in itertools.combinations(grid, pieces - 1):
        knots = np.array([low, *inner, high])
        hats = np.array([np.interp(scores, knots, row) for row in np.eye(pieces + 1)]).T
        rest = target - hats[:, 0] * expit(low) - hats[:, -1] * expit(high)
        found = lsq_linear(hats[:, 1:-1], rest, method="bvls")
        least = min(least, 2 * found.cost / len(scores))
    return least


@pytest.mark.parametrize("center", [-3.0, -1.0, 0.0, 2.0])
@pytest.mark.parametrize("pieces", [2, 3, 4])
def test_no_other_knots_do_much_better(center, pieces):
    scores = np.random.default_rng(7).normal(center, 1.3, 400)
    bands = portfolio_bands(scores, pieces)
    found = squared_error(bands, scores)
    assert found <= 1.02 * best_by_trying_all(scores, pieces)
    straight = portfolio_bands(scores, 1)
    assert straight.knots == (scores.min(), scores.max())
    assert found < 0.5 * squared_error(straight, scores)


@settings(deadline=None, max_examples=25)
@given(
    scores=st.lists(st.floats(-60, 60), min_size=1, max_size=60),
    pieces=st.integers(2, 6),
    seed=st.integers(0, 1000),
)
def test_whatever_the_scores_the_line_rises_and_clips_none(scores, pieces, seed):
    scores = np.array(scores)
    weight = np.random.default_rng(seed).uniform(0.1, 3.0, len(scores))
    bands = portfolio_bands(scores, pieces, weight)
    assert min(bands.rates) > 0
    assert 1 <= len(bands.rates) <= pieces
    assert bands.knots[0] <= scores.min()
    assert bands.knots[-1] >= scores.max()
    assert 0 <= bands.values[0] < bands.values[-1] <= 1
    risk = bands.value(np.sort(scores))
    assert (np.diff(risk) >= 0).all()
    offset, rate = bands.line(scores)
    np.testing.assert_allclose(offset + rate * scores, bands.value(scores), rtol=0, atol=1e-9)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10_000), pieces=st.integers(2, 5))
def test_a_weight_is_a_number_of_equal_rows(seed, pieces):
    rng = np.random.default_rng(seed)
    scores, weight = rng.normal(-1, 2, 80), rng.integers(1, 5, 80)
    once = portfolio_bands(scores, pieces, weight.astype(float))
    many = portfolio_bands(np.repeat(scores, weight), pieces)
    np.testing.assert_allclose(once.knots, many.knots, atol=1e-9)
    np.testing.assert_allclose(once.values, many.values, atol=1e-9)
    scaled = portfolio_bands(scores, pieces, 1e-3 * weight)
    np.testing.assert_allclose(once.values, scaled.values, atol=1e-9)


@pytest.mark.parametrize("pieces", [2, 3, 4])
def test_good_and_bad_change_places(rng, pieces):
    """The bands of the other outcome's scores are the same, turned round."""
    for center in (-3.0, 0.5):
        scores = rng.normal(center, 1.5, 400)
        bands, turned = portfolio_bands(scores, pieces), portfolio_bands(-scores, pieces)
        np.testing.assert_allclose(bands.knots, -np.array(turned.knots)[::-1], atol=1e-5)
        np.testing.assert_allclose(bands.values, 1 - np.array(turned.values)[::-1], atol=1e-5)


def test_rows_in_any_order(rng):
    scores, weight = rng.normal(size=5000), rng.random(5000)
    other = rng.permutation(5000)
    assert portfolio_bands(scores, 3, weight).knots == pytest.approx(
        portfolio_bands(scores[other], 3, weight[other]).knots, abs=1e-9
    )


def test_knots_go_where_the_rows_are():
    """A rare-event portfolio has its bands at low risk, one in the middle in the middle."""
    rng = np.random.default_rng(0)
    rare = portfolio_bands(rng.normal(-4, 1, 20_000), 3)
    even = portfolio_bands(rng.normal(0, 2, 20_000), 3)
    assert rare.values[1] < rare.values[2] < 0.3
    assert even.values[1] < 0.35 < 0.65 < even.values[2]


def test_limits_move_the_ends_only():
    scores = np.random.default_rng(2).normal(0, 1, 500)
    bands = portfolio_bands(scores, 3, limits=(-9.0, 8.0))
    assert (bands.knots[0], bands.knots[-1]) == (-9.0, 8.0)
    np.testing.assert_allclose((bands.values[0], bands.values[-1]), expit([-9.0, 8.0]), atol=1e-15)
    assert len(bands.rates) == 3
    assert scores.min() - 1 < bands.knots[1] < bands.knots[2] < scores.max() + 1


@pytest.mark.parametrize(
    "scores",
    [
        np.zeros(5),
        np.full(3, -7.0),
        np.array([0.25]),
        np.array([0.0, 1e-7]),
        np.array([0.0, 1e-4, 2e-4]),
        np.array([40.0, 45.0, 50.0]),  # the sigmoid is 1 there, to the last bit
        np.array([-800.0, -700.0]),
        np.array([-1e6, 1e6]),
        np.array([-1e6, 0.0, 1e-3]),
    ],
    ids=str,
)
def test_portfolios_with_little_to_choose_from(scores):
    for pieces in (2, 3, 5):
        bands = portfolio_bands(scores, pieces)
        assert min(bands.rates) > 0
        risk = bands.value(scores)
        assert ((risk >= 0) & (risk <= 1)).all()
        assert (np.diff(risk) >= 0).all()
        assert np.abs(risk - expit(scores)).max() < 0.2


def test_the_same_scores_give_the_same_bands(rng):
    scores = rng.normal(size=3000)
    assert portfolio_bands(scores, 4) == portfolio_bands(scores.copy(), 4)


def log_loss(bands, scores, outcome):
    risk = np.clip(bands.value(scores), 1e-9, 1 - 1e-9)
    return -np.mean(outcome * np.log(risk) + (1 - outcome) * np.log(1 - risk))


def drawn(seed, n, truth):
    """Scores, and outcomes of the risk that the truth makes of them."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-1.5, 1.5, n)
    return scores, (rng.random(n) < truth(scores)).astype(float)


def test_with_many_rows_the_line_is_that_of_the_outcomes():
    def truth(s):
        return 0.05 + 0.5 * expit(2 * s)  # not a sigmoid: never below 5%, never above 55%

    scores, outcome = drawn(0, 100_000, truth)
    nearest, found = portfolio_bands(scores, 3), outcome_bands(scores, 3, outcome)
    fresh, _ = drawn(1, 20_000, truth)
    assert np.abs(found.value(fresh) - truth(fresh)).mean() < 0.012
    assert np.abs(nearest.value(fresh) - truth(fresh)).mean() > 0.05
    assert (found.knots[0], found.knots[-1]) == (nearest.knots[0], nearest.knots[-1])


def test_with_few_rows_the_line_stays_near_the_sigmoid():
    scores, outcome = drawn(3, 30, expit)
    found, nearest = outcome_bands(scores, 3, outcome), portfolio_bands(scores, 3)
    assert np.abs(found.value(scores) - nearest.value(scores)).max() < 0.03


@pytest.mark.parametrize("pieces", [2, 3])
def test_no_other_line_is_much_more_likely(pieces):
    """Against every choice of inner knots on a grid, the values found by scipy; the prior is drowned in rows."""
    scores, outcome = drawn(5, 2000, lambda s: 0.7 * expit(1.5 * s))
    many = np.full(2000, 1e4)
    found = outcome_bands(scores, pieces, many * outcome, many)
    grid, least = np.quantile(scores, np.linspace(0, 1, 12)[1:-1]), np.inf
    for inner in itertools.combinations(grid, pieces - 1):
        knots = np.array([scores.min(), *inner, scores.max()])
        hats = np.array([np.interp(scores, knots, row) for row in np.eye(pieces + 1)]).T

        def cost(logs, hats=hats):
            steps = np.cumsum(np.exp(logs - logs.max()))  # rising from end to end
            low, high = expit(scores.min()), expit(scores.max())
            risk = np.clip(hats @ (low + (high - low) * np.append(0.0, steps / steps[-1])), 1e-9, 1 - 1e-9)
            return -np.mean(outcome * np.log(risk) + (1 - outcome) * np.log(1 - risk))

        least = min(least, minimize(cost, np.zeros(pieces), method="BFGS").fun)
    assert log_loss(found, scores, outcome) <= least + 0.001


def test_rows_are_judged_as_if_they_had_been_left_out(rng):
    """Scores fitted to noise are too far apart; with their degrees of freedom the line is flatter, and does better."""
    X = rng.normal(size=(400, 60))
    truth = expit(X[:, 0] - 0.5)
    y, fresh = (rng.random((2, 400)) < truth).astype(float)
    gram = X.T @ X / 4 + np.eye(60)  # one Newton step of a logistic fit
    scores = X @ np.linalg.solve(gram, X.T @ (y - 0.5))
    seen, left_out = outcome_bands(scores, 3, y), outcome_bands(scores, 3, y, degrees=60.0)
    middle = np.quantile(scores, [0.2, 0.8])
    assert np.diff(left_out.value(middle)) < np.diff(seen.value(middle))
    assert log_loss(left_out, scores, fresh) < log_loss(seen, scores, fresh)


@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(st.tuples(st.floats(-60, 60), st.booleans()), min_size=1, max_size=60),
    pieces=st.integers(2, 6),
    seed=st.integers(0, 1000),
    degrees=st.sampled_from([0.0, 1.0, 20.0, 1e6]),
)
def test_whatever_the_outcomes_the_line_rises_and_clips_none(rows, pieces, seed, degrees):
    scores, outcome = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    weight = np.random.default_rng(seed).uniform(0.1, 3000.0, len(scores))
    bands = outcome_bands(scores, pieces, weight * outcome, weight, degrees=degrees)
    assert min(bands.rates) > 0
    assert bands.knots[0] <= scores.min()
    assert bands.knots[-1] >= scores.max()
    assert 0 <= bands.values[0] < bands.values[-1] <= 1


def test_outcomes_of_equal_rows_add_up():
    rng = np.random.default_rng(8)
    scores, weight = rng.normal(-1, 2, 80), rng.integers(1, 90, 80)
    outcome = (rng.random(80) < expit(scores)).astype(float)
    once = outcome_bands(scores, 3, weight * outcome, weight.astype(float), degrees=9.0)
    many = outcome_bands(np.repeat(scores, weight), 3, np.repeat(outcome, weight), degrees=9.0)
    np.testing.assert_allclose(once.knots, many.knots, atol=1e-9)
    np.testing.assert_allclose(once.values, many.values, atol=1e-9)


def test_outcomes_ask_for_more_pieces_where_they_can_tell(rng):
    """A risk that bends four times: few rows do not show it, many do."""
    score = rng.uniform(-4, 4, 60_000)
    risk = np.interp(score, [-4, -2.5, -1, 1, 2.5, 4], [0.02, 0.03, 0.3, 0.35, 0.9, 0.98])
    outcome = (rng.random(len(score)) < risk).astype(float)
    few, many = (outcome_bands(score[:n], "auto", outcome[:n]) for n in (500, 60_000))
    assert len(few.knots) - 1 == 3
    assert len(many.knots) - 1 == 5
    assert many == outcome_bands(score, 5, outcome)
    assert (
        np.abs(many.value(score) - risk).mean()
        < 0.5 * np.abs(outcome_bands(score, 3, outcome).value(score) - risk).mean()
    )


def test_without_outcomes_auto_is_three_pieces():
    credit = pr.datasets.make_credit(400, 1, backend="pandas")
    model = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    for rows in (credit.frame, None):
        assert len(pr.linearise(model, rows, pieces="auto").form_.last_link.knots) == 4
