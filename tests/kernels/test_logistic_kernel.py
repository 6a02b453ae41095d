"""One pass of the logistic loss: the compiled way and numpy agree to rounding, and both with the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plainrisk.kernels import logistic

SIZES = [5, 125, 256, 3, 700, 2]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_dense", [0, 1, 4, 20])
@pytest.mark.parametrize("n", [0, 1, 1023, 3000])
def test_both_ways_agree(n, n_dense, weighted, in_numpy):
    rng = np.random.default_rng(n)
    packs = [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in SIZES]
    tables = [3 * rng.normal(size=size) for size in SIZES]
    target = rng.integers(0, 2, n).astype(np.uint8)
    weight = rng.random(n) if weighted else None
    positive = target * weight if weighted else target
    columns = (rng.normal(size=(n, n_dense)), rng.normal(size=n_dense)) if n_dense else (None, None)
    args = (-0.7, packs, tables, positive, weight, *columns)
    found, plain = logistic.logistic_sums(*args), in_numpy(logistic, logistic.logistic_sums, *args)
    assert found.loss == pytest.approx(plain.loss, rel=1e-13, abs=1e-12)
    assert found.residual == pytest.approx(plain.residual, abs=1e-10)
    for one, other in zip(found.by_level, plain.by_level, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)
    if n_dense:
        np.testing.assert_allclose(found.by_dense, plain.by_dense, rtol=0, atol=1e-10)
    else:
        assert found.by_dense is plain.by_dense is None


def test_every_score_is_exact_to_rounding():
    scores = np.concatenate([np.linspace(-700, 700, 1401), np.random.default_rng(0).normal(size=500) * 5])
    for s in map(float, scores):
        found = logistic.logistic_sums(s, [], [], np.zeros(1, np.uint8))
        small = math.exp(-abs(s))
        assert found.loss == pytest.approx(max(s, 0.0) + math.log1p(small), rel=1e-15, abs=1e-306)
        assert found.residual == pytest.approx((1.0 if s >= 0 else small) / (1.0 + small), rel=1e-15, abs=1e-306)


def test_the_loss_of_many_rows_is_exact_to_rounding():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=256) * 4
    pack, target = rng.integers(0, 256, 5000).astype(np.uint8), rng.integers(0, 2, 5000).astype(np.uint8)
    expected = math.fsum(math.log1p(math.exp(s if t == 0 else -s)) for s, t in zip(scores[pack], target, strict=True))
    found = logistic.logistic_sums(0.0, [pack], [scores], target)
    assert found.loss == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("s", [-1e300, -1e4, 1e4, 1e300])
def test_scores_beyond_reason_give_no_nonsense(s):
    found = logistic.logistic_sums(s, [], [], np.ones(1, np.uint8))
    assert found.loss == pytest.approx(max(-s, 0.0), abs=1e-300)
    assert found.residual == pytest.approx(-1.0 if s < 0 else 0.0, abs=1e-15)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"tables": []}, "do not fit"),
        ({"weight": np.zeros(2)}, "do not fit"),
        ({"dense": np.zeros((3, 2)), "slopes": np.zeros(2)}, "do not fit"),
        ({"dense": np.zeros((2, 2)), "slopes": np.zeros(2), "slope_sums": np.zeros(2)}, "do not fit"),
        ({"packs": [np.zeros(2, np.uint8)]}, "one small integer per row"),
    ],
)
def test_what_does_not_fit_is_refused(changed, what, in_numpy):
    byte, one = np.zeros(3, np.uint8), [np.zeros(1)]
    args = {"start": 0.0, "packs": [byte], "tables": one, "positive": byte, "weight": None, "sums": one}
    args |= {"dense": None, "slopes": None, "slope_sums": None} | changed
    with pytest.raises(ValueError, match=what):
        logistic.compiled.logistic(*args.values())


def test_curvature(in_numpy):
    score = np.concatenate([np.linspace(-800, 800, 1601), np.random.default_rng(0).normal(size=500)])
    expected = in_numpy(logistic, logistic.curvature, score.copy())
    np.testing.assert_allclose(logistic.curvature(score.copy()), expected, rtol=1e-15, atol=1e-306)
