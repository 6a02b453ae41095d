"""DeLong against a direct implementation over all pairs, and against the bootstrap where rows have weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from plainrisk.intervals import Placement, Range, is_small, normal_quantile, wilson

Z = normal_quantile(0.95)


def delong(bad, *risks):
    """AUCs and their covariance as DeLong, DeLong and Clarke-Pearson (1988) write them: every pair is looked at."""
    aucs, placed_bad, placed_good = [], [], []
    for risk in risks:
        wins = (risk[bad][:, None] > risk[~bad]) + 0.5 * (risk[bad][:, None] == risk[~bad])
        aucs.append(wins.mean())
        placed_bad.append(wins.mean(axis=1))
        placed_good.append(wins.mean(axis=0))
    return np.array(aucs), np.cov(placed_bad) / bad.sum() + np.cov(placed_good) / (~bad).sum()


def sample(seed, n=200, digits=2):
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.3
    a = np.clip(rng.normal(0.4 + 0.15 * bad, 0.2), 0, 1).round(digits)
    b = np.clip(a + rng.normal(0, 0.1, n), 0, 1).round(digits)
    return bad, a, b


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), digits=st.integers(1, 6))
def test_delong_is_that_of_all_pairs(seed, digits):
    bad, a, b = sample(seed, 60, digits)
    if min(bad.sum(), (~bad).sum()) < 2:
        return
    aucs, covariance = delong(bad, a, b)
    one, two = Placement.of(bad, a), Placement.of(bad, b)
    assert (one.auc, two.auc) == pytest.approx(tuple(aucs), abs=1e-12)
    assert one.error**2 == pytest.approx(covariance[0, 0], abs=1e-12)
    assert one.influence @ two.influence == pytest.approx(covariance[0, 1], abs=1e-12)


def test_the_test_of_two_models_is_delongs():
    bad, a, b = sample(3)
    aucs, covariance = delong(bad, a, b)
    error = math.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    gap, p = Placement.of(bad, a).less(Placement.of(bad, b), Z)
    assert gap.estimate == pytest.approx(aucs[0] - aucs[1])
    assert (gap.low, gap.high) == pytest.approx((gap.estimate - Z * error, gap.estimate + Z * error))
    assert p == pytest.approx(2 * norm.sf(abs(gap.estimate) / error))
    assert Placement.of(bad, a).less(Placement.of(bad, a), Z) == (Range(0.0, 0.0, 0.0), 1.0)


def test_the_interval_is_on_the_logit_scale():
    bad, a, _ = sample(4)
    found, placed = Placement.of(bad, a).range(Z), Placement.of(bad, a)
    logit, half = math.log(placed.auc / (1 - placed.auc)), Z * placed.error / (placed.auc * (1 - placed.auc))
    assert math.log(found.low / (1 - found.low)) == pytest.approx(logit - half)
    assert math.log(found.high / (1 - found.high)) == pytest.approx(logit + half)


def test_weighted_placements():
    bad, a, _ = sample(5, 400)
    weight = np.random.default_rng(0).uniform(0.2, 3, 400)
    found = Placement.of(bad, a, weight)
    assert found.auc == pytest.approx(roc_auc_score(bad, a, sample_weight=weight))
    scaled = Placement.of(bad, a, 7 * weight)
    assert scaled.error == pytest.approx(found.error), "weights have no unit"
    rng, draws = np.random.default_rng(1), []
    for _ in range(500):
        rows = rng.integers(400, size=400)
        draws.append(roc_auc_score(bad[rows], a[rows], sample_weight=weight[rows]))
    assert found.error == pytest.approx(np.std(draws), rel=0.12)


def test_one_outcome_has_no_auc_and_one_row_of_an_outcome_no_interval():
    assert math.isnan(Placement.of(np.array([True, True]), np.array([0.1, 0.2])).auc)
    few = Placement.of(np.array([True, False, False]), np.array([0.5, 0.2, 0.7])).range(Z)
    assert few.estimate == 0.5
    assert math.isnan(few.low)
    perfect = Placement.of(np.array([True, True, False, False]), np.array([0.9, 0.8, 0.2, 0.1])).range(Z)
    assert perfect.estimate == 1.0
    assert math.isnan(perfect.high)


def test_wilson_at_the_ends_and_for_weighted_rows():
    """0 of n has the upper end z²/(n + z²)."""
    assert wilson(0, 10, Z).high == pytest.approx(Z**2 / (10 + Z**2))
    effective = wilson(2.5, 7.5, Z)
    assert effective.estimate == pytest.approx(1 / 3)
    assert effective.low < 1 / 3 < effective.high


def test_what_is_small():
    assert is_small(29)
    assert not is_small(30)
    assert is_small(1000, 4)
    assert is_small(1000, 996)
    assert not is_small(1000, 5)
