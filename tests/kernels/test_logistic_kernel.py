"""One pass of the logistic loss: the compiled way and numpy agree to rounding, and both with the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plainrisk.kernels import logistic

SIZES = [5, 125, 256, 3, 700, 2]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [0, 1, 1023, 3000])
def test_both_ways_agree(n, weighted, in_numpy):
    rng = np.random.default_rng(n)
    packs = [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in SIZES]
    tables = [3 * rng.normal(size=size) for size in SIZES]
    target = rng.integers(0, 2, n).astype(np.uint8)
    weight = rng.random(n) if weighted else None
    positive = target * weight if weighted else target
    args = (-0.7, packs, tables, positive, weight)
    loss, rest, by_level = logistic.logistic_sums(*args)
    plain_loss, plain_rest, plain_by_level = in_numpy(logistic, logistic.logistic_sums, *args)
    assert loss == pytest.approx(plain_loss, rel=1e-14, abs=1e-12)
    assert rest == pytest.approx(plain_rest, abs=1e-11)
    for one, other in zip(by_level, plain_by_level, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_every_score_is_exact_to_rounding():
    scores = np.concatenate([np.linspace(-700, 700, 1401), np.random.default_rng(0).normal(size=500) * 5])
    for s in map(float, scores):
        loss, residual, _ = logistic.logistic_sums(s, [], [], np.zeros(1, np.uint8), None)
        small = math.exp(-abs(s))
        assert loss == pytest.approx(max(s, 0.0) + math.log1p(small), rel=1e-15, abs=1e-306)
        assert residual == pytest.approx((1.0 if s >= 0 else small) / (1.0 + small), rel=1e-15, abs=1e-306)


@pytest.mark.parametrize("s", [-1e300, -1e4, 1e4, 1e300])
def test_scores_beyond_reason_give_no_nonsense(s):
    loss, residual, _ = logistic.logistic_sums(s, [], [], np.ones(1, np.uint8), None)
    assert loss == pytest.approx(max(-s, 0.0), abs=1e-300)
    assert residual == pytest.approx(-1.0 if s < 0 else 0.0, abs=1e-15)


def test_what_does_not_fit_is_refused(in_numpy):
    byte = np.zeros(3, np.uint8)
    with pytest.raises(ValueError, match="do not fit"):
        logistic.compiled.logistic(0.0, [byte], [], byte, None, [])
    with pytest.raises(ValueError, match="do not fit"):
        logistic.compiled.logistic(0.0, [byte], [np.zeros(1)], byte, np.zeros(2), [np.zeros(1)])
    with pytest.raises(ValueError, match="one small integer per row"):
        logistic.compiled.logistic(0.0, [byte[:2]], [np.zeros(1)], byte, None, [np.zeros(1)])
