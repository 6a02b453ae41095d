from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit

from plainrisk.errors import DataError
from plainrisk.form import ALPHA_STAR
from plainrisk_lab.paper.alpha import cost_of, squared_error


def test_the_best_line_has_no_excess():
    cost = cost_of(ALPHA_STAR)
    assert cost.excess == 0.0
    assert cost.squared_error == pytest.approx(0.009894011265975, abs=1e-14)
    assert cost.linear_risks == pytest.approx((0.0691589, 0.9308411), abs=1e-7)
    assert cost.linear_scores == (-ALPHA_STAR, ALPHA_STAR)
    assert cost.largest_error == pytest.approx(0.0691589, abs=1e-7)
    assert cost.largest_error_at == ALPHA_STAR


@pytest.mark.parametrize("alpha", [0.5, 2.0, 2.6, 4.0, 30.0, 60.0, 1e6])
def test_parts_add_up_when_nothing_is_kept_from_the_ends(alpha):
    cost = cost_of(alpha)
    tails = 2 * (math.log1p(math.exp(-alpha)) - expit(-alpha))
    assert cost.linear_squared_error + tails == pytest.approx(squared_error(alpha), rel=1e-12)
    assert cost.excess == pytest.approx(squared_error(alpha) - squared_error(ALPHA_STAR), rel=1e-12)


def test_a_positive_epsilon_has_an_infinite_squared_error():
    cost = cost_of(ALPHA_STAR, epsilon=0.01)
    assert cost.squared_error == cost.excess == math.inf
    assert 0 < cost.linear_squared_error < cost_of(ALPHA_STAR).linear_squared_error
    assert cost.linear_scores[1] == pytest.approx(0.98 * ALPHA_STAR, rel=1e-15)


def test_far_out_the_error_is_epsilon():
    cost = cost_of(ALPHA_STAR, epsilon=0.2)
    assert (cost.largest_error, cost.largest_error_at) == (0.2, math.inf)


@settings(max_examples=60)
@given(alpha=st.floats(0.05, 45.0), epsilon=st.just(0.0) | st.floats(0.001, 0.45))
def test_cost_agrees_with_brute_force(alpha, epsilon):
    cost = cost_of(alpha, epsilon)

    def error(x):
        return np.clip(0.5 + x / (2 * alpha), epsilon, 1 - epsilon) - expit(x)

    low, high = cost.linear_scores
    part = 2 * quad(lambda x: error(x) ** 2, 0, high, epsabs=1e-13, limit=200)[0]
    assert cost.linear_squared_error == pytest.approx(part, abs=1e-9)
    grid = np.abs(error(np.append(np.linspace(0, 60.0, 60001), high)))
    assert cost.largest_error == pytest.approx(grid.max(), abs=1e-6)
    if math.isfinite(cost.largest_error_at):
        assert abs(error(cost.largest_error_at)) == pytest.approx(cost.largest_error, abs=1e-12)
    assert cost.linear_risks == pytest.approx((expit(low), expit(high)), abs=1e-15)


@pytest.mark.parametrize("epsilon", [-0.1, 0.5, 1.0, math.nan])
def test_epsilon_outside_its_range_is_refused(epsilon):
    with pytest.raises(DataError, match="cost_of: epsilon must be at least 0 and below 1/2"):
        cost_of(2.0, epsilon)


def test_alpha_outside_its_range_is_refused():
    with pytest.raises(DataError, match="alpha: must be positive and finite, got -2"):
        cost_of(-2.0)
