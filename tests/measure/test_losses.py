from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from plainrisk.errors import DataError
from plainrisk.measure.metrics import brier_score, log_loss

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
