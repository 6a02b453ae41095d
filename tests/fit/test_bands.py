"""Bands from sums of scores: against every choice of knots, on scores that leave little to choose, and by outcomes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from scipy.special import expit, xlogy

import plainrisk as pr
from plainrisk.fit.bands import ScoreSums, fitted_bands


def portfolio_bands(scores, pieces, weight=None):
    """The bands of rows whose outcomes are not known."""
    return fitted_bands(ScoreSums.of(scores, weight, None), pieces)


def outcome_bands(scores, pieces, positive, weight=None, degrees=0.0):
    return fitted_bands(ScoreSums.of(scores, weight, positive), pieces, degrees=degrees)


def cost(bands, scores, weight=None):
    """What the line costs beside the sigmoid in expected log loss, where the sigmoid is right."""
    risk, line = expit(scores), bands.value(scores)
    return np.average(xlogy(risk, risk / line) + xlogy(1 - risk, (1 - risk) / (1 - line)), weights=weight)


def best_by_trying_all(scores, pieces, n_places=18):
    """Every choice of inner knots on a grid; the values by weighted least squares of scipy."""
    low, high = scores.min(), scores.max()
    places = [np.quantile(scores, np.linspace(0, 1, n_places + 2)[1:-1]), np.linspace(low, high, n_places + 2)[1:-1]]
    target = expit(scores)
    root = np.sqrt(0.5 / (len(scores) * target * (1 - target)))
    least = np.inf
    for grid in places:
        for inner in itertools.combinations(grid, pieces - 1):
            knots = np.array([low, *inner, high])
            hats = np.array([np.interp(scores, knots, row) for row in np.eye(pieces + 1)]).T
            rest = target - hats[:, 0] * expit(low) - hats[:, -1] * expit(high)
            found = lsq_linear(root[:, None] * hats[:, 1:-1], root * rest, method="bvls")
            least = min(least, 2 * found.cost)
    return least


@pytest.mark.parametrize("center", [-3.0, -1.0, 0.0, 2.0])
@pytest.mark.parametrize("pieces", [2, 3, 4])
def test_no_other_knots_do_much_better(center, pieces):
    """In expected log loss, to second order: squared errors over the variance of the outcome.

    Knots are those of the best chords, on the curve, and their values are moved afterward: that costs up to as much
    again as the best line costs.
    """
    scores = np.random.default_rng(7).normal(center, 1.3, 400)
    bands = portfolio_bands(scores, pieces)
    risk = expit(scores)
    found = 0.5 * np.mean((bands.value(scores) - risk) ** 2 / (risk * (1 - risk)))
    assert found <= 2.1 * best_by_trying_all(scores, pieces)
    straight = portfolio_bands(scores, 1)
    assert straight.knots == (scores.min(), scores.max())
    assert cost(bands, scores) < 0.5 * cost(straight, scores)


@pytest.mark.parametrize("center", [-4.0, -2.0, 0.0, 3.0])
@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
def test_auto_costs_no_more_than_a_ten_thousandth(center, spread):
    """Beside the sigmoid, with as few pieces as that needs, three at least; whether or not outcomes are known."""
    rng = np.random.default_rng(3)
    scores = rng.normal(center, spread, 20_000)
    outcome = (rng.random(20_000) < expit(scores)).astype(float)
    bands = portfolio_bands(scores, "auto")
    assert cost(bands, scores) < 1.2e-4
    pieces = len(bands.rates)
    assert 3 <= pieces <= 10
    assert bands == portfolio_bands(scores, pieces)
    if pieces > 3:
        assert cost(portfolio_bands(scores, pieces - 1), scores) > 0.8e-4
    calibrated = outcome_bands(scores, "auto", outcome)
    assert cost(calibrated, scores) < 2e-4


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
    """The bands of the other outcome's scores are the same, turned round, but for the cells that scores lie in."""
    for center in (-3.0, 0.5):
        scores = rng.normal(center, 1.5, 400)
        bands, turned = portfolio_bands(scores, pieces), portfolio_bands(-scores, pieces)
        np.testing.assert_allclose(bands.value(scores), 1 - turned.value(-scores), atol=1e-2)
        assert cost(bands, scores) == pytest.approx(cost(turned, -scores), rel=0.05, abs=1e-6)


def test_rows_in_any_order(rng):
    scores, weight = rng.normal(size=5000), rng.random(5000)
    other = rng.permutation(5000)
    assert portfolio_bands(scores, 3, weight).knots == pytest.approx(
        portfolio_bands(scores[other], 3, weight[other]).knots, abs=1e-9
    )


@pytest.mark.parametrize("known", [False, True])
def test_batches_add_up(rng, known):
    scores, weight = rng.normal(-1, 1.5, 3000), rng.random(3000) + 0.1
    positive = weight * (rng.random(3000) < expit(1.5 * scores)) if known else None
    whole = ScoreSums.of(scores, weight, positive)
    cuts = [0, 1, 700, 2500, 3000]
    parts = [
        ScoreSums.of(scores[a:b], weight[a:b], None if positive is None else positive[a:b])
        for a, b in itertools.pairwise(cuts)
    ]
    added = parts[0] + parts[1] + parts[2] + parts[3]
    assert (
        (added.low, added.high, added.rows) == (whole.low, whole.high, whole.rows) == (scores.min(), scores.max(), 3000)
    )
    for pieces in (3, "auto"):
        one, two = (fitted_bands(sums, pieces, degrees=9.0) for sums in (whole, added))
        np.testing.assert_allclose(one.knots, two.knots, atol=1e-9)
        np.testing.assert_allclose(one.values, two.values, atol=1e-9)


def test_rows_without_weight_are_not_there(rng):
    scores, weight = rng.normal(size=500), np.repeat([0.0, 1.0], 250)
    scores[0] = 40.0
    outcome = (rng.random(500) < 0.3).astype(float)
    found = outcome_bands(scores, 3, weight * outcome, weight, degrees=5.0)
    assert found == outcome_bands(scores[250:], 3, outcome[250:], np.ones(250), degrees=5.0)


def test_knots_go_where_the_rows_are():
    """A rare-event portfolio has its bands at low risk, one in the middle in the middle."""
    rng = np.random.default_rng(0)
    rare = portfolio_bands(rng.normal(-4, 1, 20_000), 3)
    even = portfolio_bands(rng.normal(0, 2, 20_000), 3)
    assert rare.values[1] < rare.values[2] < 0.3
    assert even.values[1] < 0.35 < 0.65 < even.values[2]


@pytest.mark.parametrize(
    "scores",
    [
        np.zeros(5),
        np.full(3, -7.0),
        np.array([0.25]),
        np.array([0.0, 1e-7]),
        np.array([0.0, 1e-4, 2e-4]),
        np.array([-2.0, 1.0]),
        np.array([-3.0, -1.0, -1.0, 2.0]),
        np.array([40.0, 45.0, 50.0]),  # the sigmoid is 1 there, to the last bit
        np.array([-800.0, -700.0]),
        np.array([-1e6, 1e6]),
        np.array([-1e6, 0.0, 1e-3]),
    ],
    ids=str,
)
def test_portfolios_with_little_to_choose_from(scores):
    for pieces in (2, 3, 5, "auto"):
        bands = portfolio_bands(scores, pieces)
        assert min(bands.rates) > 0
        risk = bands.value(scores)
        assert ((risk >= 0) & (risk <= 1)).all()
        assert (np.diff(risk) >= 0).all()
        assert np.abs(risk - expit(scores)).max() < 0.2


@pytest.mark.parametrize("n", [60, 300, 3000])
@pytest.mark.parametrize("spread", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("degrees", [0.0, 1.0, 10.0])
def test_the_mean_risk_is_that_of_the_outcomes(n, spread, degrees):
    """However little the scores say, and however many degrees of freedom they took."""
    rng = np.random.default_rng(n)
    scores = -0.7 + spread * rng.normal(size=n)
    outcome = (rng.random(n) < expit(scores)).astype(float)
    scores += np.log(outcome.mean() / (1 - outcome.mean())) - scores.mean()
    bands = outcome_bands(scores, 3, outcome, degrees=degrees)
    assert bands.value(scores).mean() == pytest.approx(expit(scores).mean(), abs=0.03 * spread + 1e-4)
    assert min(bands.rates) > 0


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
    assert np.abs(found.value(fresh) - truth(fresh)).mean() < 0.016
    assert np.abs(outcome_bands(scores, "auto", outcome).value(fresh) - truth(fresh)).mean() < 0.007
    assert np.abs(nearest.value(fresh) - truth(fresh)).mean() > 0.05
    assert (found.knots[0], found.knots[-1]) == (nearest.knots[0], nearest.knots[-1])


def test_with_few_rows_the_line_stays_near_the_sigmoid():
    scores, outcome = drawn(3, 30, expit)
    found, nearest = outcome_bands(scores, 3, outcome), portfolio_bands(scores, 3)
    assert np.abs(found.value(scores) - nearest.value(scores)).max() < 0.03


def test_outcomes_that_agree_with_the_sigmoid_leave_it():
    """Calibrated scores: the line is that of rows whose outcomes are not known, most of the time exactly."""
    alike = 0
    for seed in range(20):
        scores, outcome = drawn(seed, 3000, expit)
        alike += outcome_bands(scores, 3, outcome) == portfolio_bands(scores, 3)
    assert alike >= 18


@pytest.mark.parametrize("slope", [0.6, 1.6])
def test_scores_that_are_too_near_or_too_far_apart_are_mended(slope):
    scores, outcome = drawn(5, 20_000, lambda s: expit(-0.3 + slope * s))
    found = outcome_bands(scores, "auto", outcome)
    fresh, new = drawn(6, 20_000, lambda s: expit(-0.3 + slope * s))
    best = -np.mean(np.where(new == 1, np.log(expit(-0.3 + slope * fresh)), np.log(expit(0.3 - slope * fresh))))
    assert log_loss(found, fresh, new) < best + 6e-4
    assert log_loss(portfolio_bands(scores, "auto"), fresh, new) > best + 5e-3


def test_rows_are_judged_as_if_they_had_been_left_out():
    """Scores fitted to noise are too far apart; with their degrees of freedom the line is flatter, and does better."""
    gains = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 60))
        truth = expit(X[:, 0] - 0.5)
        y = (rng.random(400) < truth).astype(float)
        gram = X.T @ X / 4 + np.eye(60)  # one Newton step of a logistic fit
        scores = X @ np.linalg.solve(gram, X.T @ (y - 0.5))
        seen, left_out = outcome_bands(scores, 3, y), outcome_bands(scores, 3, y, degrees=60.0)
        middle = np.quantile(scores, [0.2, 0.8])
        assert np.diff(left_out.value(middle)) < np.diff(seen.value(middle))
        gains.append(log_loss(seen, scores, truth) - log_loss(left_out, scores, truth))
    assert np.mean(gains) > 0.02
    assert np.mean(np.array(gains) > 0) > 0.8


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


def test_the_unit_of_weights_does_not_matter():
    """The evidence of outcomes is that of the rows there are, whatever they weigh."""
    rng = np.random.default_rng(8)
    scores, weight = rng.normal(-1, 2, 800), rng.uniform(0.1, 3.0, 800)
    outcome = (rng.random(800) < expit(0.5 * scores)).astype(float)
    once = outcome_bands(scores, 3, weight * outcome, weight, degrees=9.0)
    for unit in (1e-3, 1e3):
        scaled = outcome_bands(scores, 3, unit * weight * outcome, unit * weight, degrees=9.0)
        np.testing.assert_allclose(once.knots, scaled.knots, atol=1e-9)
        np.testing.assert_allclose(once.values, scaled.values, atol=1e-9)
    assert once != portfolio_bands(scores, 3, weight)


def test_outcomes_ask_for_more_pieces_where_they_can_tell(rng):
    """A risk that bends four times: few rows do not show it, many do."""
    score = rng.uniform(-4, 4, 60_000)
    risk = np.interp(score, [-4, -2.5, -1, 1, 2.5, 4], [0.02, 0.03, 0.3, 0.35, 0.9, 0.98])
    outcome = (rng.random(len(score)) < risk).astype(float)
    few, many = (outcome_bands(score[:n], "auto", outcome[:n]) for n in (500, 60_000))
    assert len(few.rates) <= len(many.rates)
    assert len(many.rates) >= 5
    assert many == outcome_bands(score, len(many.rates), outcome)
    assert (
        np.abs(many.value(score) - risk).mean()
        < 0.5 * np.abs(outcome_bands(score, 3, outcome).value(score) - risk).mean()
    )


def test_without_outcomes_auto_is_near_the_sigmoid_and_without_rows_three_pieces():
    credit = pr.datasets.make_credit(400, 1, backend="pandas")
    model = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    assert len(pr.linearise(model, None, pieces="auto").form_.last_link.knots) == 4
    bands, scores = pr.linearise(model, credit.frame, pieces="auto").form_.last_link, model.form_.score(credit.frame)
    assert cost(bands, scores) < 1.2e-4
    assert cost(fitted_bands(ScoreSums.of(scores, None, None), len(bands.rates) - 1), scores) > 0.8e-4
