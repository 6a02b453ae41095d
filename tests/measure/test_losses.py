from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from plainrisk.errors import DataError
from plainrisk.measure.metrics import brier_decomposition, brier_score, log_loss

RISKS = st.floats(0, 1) | st.integers(0, 10).map(lambda i: i / 10)
ROWS = st.lists(st.tuples(st.integers(0, 1), RISKS, st.integers(0, 4)), min_size=1, max_size=40).filter(
    lambda rows: sum(row[2] for row in rows) > 0
)


def columns(rows):
    return (np.array(column) for column in zip(*rows, strict=True))


@pytest.fixture(params=[1, 2, 3])
def sample(request):
    rng = np.random.default_rng(request.param)
    p = np.clip(rng.beta(1, 4, 5000), 1e-6, 1 - 1e-6)
    return rng.random(5000) < p, p, rng.gamma(2.0, size=5000)


def test_losses_agree_with_sklearn(sample):
    y, p, w = sample
    oracle = sklearn.metrics
    assert brier_score(y, p) == pytest.approx(oracle.brier_score_loss(y, p), abs=1e-13)
    assert brier_score(y, p, w) == pytest.approx(oracle.brier_score_loss(y, p, sample_weight=w), abs=1e-13)
    assert log_loss(y, p) == pytest.approx(oracle.log_loss(y, p), abs=1e-12)
    assert log_loss(y, p, w) == pytest.approx(oracle.log_loss(y, p, sample_weight=w), abs=1e-12)
    clipped = np.clip(p, 0.01, 0.99)
    assert log_loss(y, p, w, clip=0.01) == pytest.approx(oracle.log_loss(y, clipped, sample_weight=w), abs=1e-12)


@given(rows=ROWS)
def test_integer_weights_are_repeated_rows(rows):
    y, p, w = columns(rows)
    again = np.repeat(y, w), np.repeat(p, w)
    assert brier_score(y, p, w) == pytest.approx(brier_score(*again), abs=1e-12)
    assert log_loss(y, p, w, clip=1e-6) == pytest.approx(log_loss(*again, clip=1e-6), abs=1e-10)
    ours, theirs = brier_decomposition(y, p, w, bins=4), brier_decomposition(*again, bins=4)
    for name in ("reliability", "resolution", "uncertainty", "within_variance", "within_covariance"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-12)


@given(rows=ROWS, bins=st.none() | st.integers(1, 30))
def test_terms_add_up_to_the_brier_score(rows, bins):
    y, p, w = columns(rows)
    terms = brier_decomposition(y, p, w, bins=bins)
    assert terms.brier_score == pytest.approx(brier_score(y, p, w), abs=1e-13)
    assert min(terms.reliability, terms.resolution, terms.within_variance) >= 0


@given(rows=ROWS)
def test_distinct_predictions_leave_nothing_within(rows):
    y, p, w = columns(rows)
    terms = brier_decomposition(y, p, w)
    assert (terms.within_variance, terms.within_covariance) == (0.0, 0.0)


def test_terms_by_hand():
    """One bin below one half, one above: every term from its definition."""
    terms = brier_decomposition([0, 1, 1, 1], [0.2, 0.4, 0.7, 0.9], bins=2)
    assert terms.reliability == pytest.approx(0.5 * (0.3 - 0.5) ** 2 + 0.5 * (0.8 - 1.0) ** 2)
    assert terms.resolution == pytest.approx(0.5 * 0.25**2 + 0.5 * 0.25**2)
    assert terms.uncertainty == pytest.approx(0.75 * 0.25)
    assert terms.within_variance == pytest.approx(0.1**2)
    assert terms.within_covariance == pytest.approx(2 * (0.5 * 0.1 * 0.5))


def test_a_constant_prediction_has_no_resolution():
    terms = brier_decomposition([0, 0, 0, 1], [0.25] * 4)
    assert (terms.reliability, terms.resolution, terms.uncertainty) == (0.0, 0.0, 0.1875)


def test_log_loss_is_infinite_when_certain_and_wrong():
    assert log_loss([1, 0], [0.0, 0.5]) == math.inf
    assert log_loss([0, 1], [1.0, 0.5]) == math.inf
    assert log_loss([0, 1], [0.0, 1.0]) == 0.0
    assert log_loss([1, 0], [0.0, 0.5], [0.0, 1.0]) == pytest.approx(math.log(2))


def test_clip_bounds_the_loss_of_a_row():
    assert log_loss([1], [0.0], clip=0.069) == pytest.approx(-math.log(0.069))
    assert log_loss([0], [1.0], clip=1e-15) == pytest.approx(-math.log(1e-15), rel=1e-2)


def test_log_loss_keeps_small_risks():
    assert log_loss([0], [1e-20]) == pytest.approx(1e-20, rel=1e-12, abs=0)


@pytest.mark.parametrize("clip", [-0.1, 0.5, math.nan])
def test_clip_outside_its_range_is_refused(clip):
    with pytest.raises(DataError, match=r"clip must be a finite number of at least 0 and below 0.5, not"):
        log_loss([0, 1], [0.1, 0.9], clip=clip)


def test_bins_of_the_decomposition_are_checked():
    with pytest.raises(DataError, match="bins must be a whole number from 1 to 1,000,000, not 0"):
        brier_decomposition([0, 1], [0.1, 0.9], bins=0)
