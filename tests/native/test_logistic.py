"""One pass of the logistic loss: the compiled loop and numpy agree to rounding, and both with the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plainrisk._native import logistic_pass, sums

SIZES = [5, 125, 256, 3, 700, 2]


def make_rows(n, *, weighted, offset):
    rng = np.random.default_rng(n)
    codes = [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in SIZES]
    tables = [rng.normal(size=size) for size in SIZES]
    target = rng.integers(0, 2, n).astype(np.uint8)
    weight = rng.random(n) if weighted else None
    positive = target if weight is None else weight * target
    return (0.3, codes, tables, positive, weight, rng.normal(size=n) if offset else None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("n", [0, 1, 1023, 3000])
def test_both_ways_agree(n, offset, weighted, in_numpy):
    args = make_rows(n, weighted=weighted, offset=offset)
    found = logistic_pass(*args, residual=True, curvature=True)
    plain = in_numpy(sums, logistic_pass, *args)
    assert found.loss == pytest.approx(plain.loss, rel=1e-12, abs=1e-12)
    assert found.residual_sum == pytest.approx(plain.residual_sum, rel=0, abs=1e-10)
    np.testing.assert_allclose(found.residual, plain.residual, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.curvature, plain.curvature, rtol=1e-12, atol=1e-300)
    for one, other in zip(found.by_code, plain.by_code, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_is_what_it_is_defined_to_be(weighted):
    intercept, codes, tables, positive, weight, offset = args = make_rows(700, weighted=weighted, offset=True)
    found = logistic_pass(*args, residual=True, curvature=True)
    score = intercept + offset + sum(table[code] for table, code in zip(tables, codes, strict=True))
    w, p = np.ones(700) if weight is None else weight, 1 / (1 + np.exp(-score))
    assert found.loss == pytest.approx((w * np.logaddexp(0, score) - positive * score).sum(), rel=1e-12)
    residual = w * p - positive
    np.testing.assert_allclose(found.residual, residual, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.curvature, w * p * (1 - p), rtol=1e-11)
    assert found.residual_sum == pytest.approx(residual.sum(), rel=0, abs=1e-11)
    for code, size, by_code in zip(codes, SIZES, found.by_code, strict=True):
        np.testing.assert_allclose(by_code, np.bincount(code, residual, minlength=size), rtol=0, atol=1e-12)


def test_what_is_not_asked_for_changes_nothing():
    args = make_rows(500, weighted=True, offset=False)
    full, bare = logistic_pass(*args, residual=True, curvature=True), logistic_pass(*args)
    assert (bare.loss, bare.residual_sum) == (full.loss, full.residual_sum)
    for one, other in zip(bare.by_code, full.by_code, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_score_is_exact_to_rounding():
    scores = np.concatenate([np.linspace(-700, 700, 1401), np.random.default_rng(0).normal(size=500) * 5])
    for s in map(float, scores):
        found = logistic_pass(s, [], [], np.zeros(1, np.uint8), curvature=True)
        small = math.exp(-abs(s))
        assert found.loss == pytest.approx(max(s, 0.0) + math.log1p(small), rel=1e-14, abs=1e-306)
        assert found.residual_sum == pytest.approx((1.0 if s >= 0 else small) / (1.0 + small), rel=1e-14, abs=1e-306)
        assert found.curvature[0] == pytest.approx(small / (1.0 + small) ** 2, rel=1e-14, abs=1e-306)


def test_the_loss_of_many_rows_is_exact_to_rounding():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=256) * 4
    code, target = rng.integers(0, 256, 5000).astype(np.uint8), rng.integers(0, 2, 5000).astype(np.uint8)
    expected = math.fsum(math.log1p(math.exp(s if t == 0 else -s)) for s, t in zip(scores[code], target, strict=True))
    assert logistic_pass(0.0, [code], [scores], target).loss == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("s", [-1e300, -1e4, 1e4, 1e300])
def test_scores_beyond_reason_give_no_nonsense(s):
    found = logistic_pass(s, [], [], np.ones(1, np.uint8), curvature=True)
    assert found.loss == pytest.approx(max(-s, 0.0), abs=1e-300)
    assert found.residual_sum == pytest.approx(-1.0 if s < 0 else 0.0, abs=1e-15)
    assert found.curvature[0] == pytest.approx(0.0, abs=1e-300)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"weight": np.zeros(2)}, "one double per row"),
        ({"offset": np.zeros(2)}, "one double per row"),
        ({"residual": np.zeros(4)}, "one double per row"),
        ({"curvature": np.zeros(2)}, "one double per row"),
        ({"positive": np.zeros(3, np.int16)}, "outcomes are bytes or doubles"),
        ({"codes": [np.zeros(2, np.uint8)]}, "one unsigned integer of 1, 2 or 4 bytes per row"),
        ({"codes": [np.ones(3, np.uint8)]}, "a joint code is beyond its table"),
        ({"tables": []}, "one table per joint code"),
        ({"sums": []}, "one table per joint code"),
        ({"sums": [np.zeros(0)]}, "a joint code is beyond its table"),
    ],
)
def test_what_does_not_fit_is_refused(changed, what, in_numpy):
    byte = np.zeros(3, np.uint8)
    args = {"intercept": 0.0, "offset": None, "codes": [byte], "tables": [np.zeros(1)], "positive": byte}
    args |= {"weight": None, "sums": [np.zeros(1)], "residual": None, "curvature": None} | changed
    with pytest.raises(ValueError, match=what):
        sums.compiled.logistic(*args.values())
