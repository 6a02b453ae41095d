"""Hosmer-Lemeshow, Spiegelhalter and Jeffreys against scipy and simulation; the H-measure against its integral."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.measure.metrics import calibration_tests, h_measure, hosmer_lemeshow, spiegelhalter


@pytest.fixture
def sample(rng):
    p = rng.beta(1, 4, 3000)
    return (rng.random(3000) < p).astype(int), p


def test_hosmer_lemeshow_by_hand(sample):
    y, p = sample
    order = np.argsort(p)
    groups = np.array_split(order, 10)
    observed, expected = (np.array([v[g].sum() for g in groups]) for v in (y, p))
    # Pearson's statistic of both outcomes, as scipy has it.
    counts = np.concatenate([observed, 300 - observed]), np.concatenate([expected, 300 - expected])
    statistic, _ = stats.chisquare(*counts, ddof=9)
    found = hosmer_lemeshow(y, p)
    assert found.statistic == pytest.approx(statistic)
    assert found.p_value == pytest.approx(stats.chi2.sf(statistic, 10))
    assert hosmer_lemeshow(y, p, fitted=True).p_value == pytest.approx(stats.chi2.sf(statistic, 8))
    assert hosmer_lemeshow([0, 1, 1], [0.0, 1.0, 1.0]).statistic == 0
    assert hosmer_lemeshow([1, 1, 1], [0.0, 1.0, 1.0]).p_value == 0


def test_spiegelhalter_is_the_standardized_brier_score(sample, rng):
    y, p = sample
    score = ((y - p) ** 2).mean()
    drawn = ((rng.random((4000, 3000)) < p) - p) ** 2
    brier = drawn.mean(axis=1)
    found = spiegelhalter(y, p)
    assert found.statistic == pytest.approx((score - brier.mean()) / brier.std(), abs=0.08)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(found.statistic)))


def test_p_values_are_uniform_where_all_is_right(rng):
    """And small where the probabilities are half of what they should be."""
    p = rng.beta(1, 4, 800)
    found = [calibration_tests(rng.random(800) < p, p) for _ in range(300)]
    for pick in (lambda t: t.hosmer_lemeshow.p_value, lambda t: t.spiegelhalter.p_value):
        assert stats.kstest([pick(t) for t in found], "uniform").pvalue > 0.001
    wrong = calibration_tests(rng.random(800) < p, p / 2)
    assert max(wrong.hosmer_lemeshow.p_value, wrong.spiegelhalter.p_value) < 1e-6


def test_grades_have_jeffreys_interval_and_test(sample):
    y, p = sample
    found = calibration_tests(y, p, [0.05, 0.2, 0.5], level=0.9)
    assert [(g.lower, g.upper) for g in found.grades] == [(0.0, 0.05), (0.05, 0.2), (0.2, 0.5), (0.5, 1.0)]
    for g in found.grades:
        rows = (p >= g.lower) & (p < g.upper)
        posterior = stats.beta(y[rows].sum() + 0.5, (1 - y[rows]).sum() + 0.5)
        assert (g.rows, g.positives) == (rows.sum(), y[rows].sum())
        assert (g.low, g.high) == pytest.approx(posterior.interval(0.9))
        assert g.p_value == pytest.approx(posterior.cdf(p[rows].mean()))
    none = calibration_tests([0, 0, 1], [0.1, 0.2, 0.9], [0.5, 0.8]).grades  # an empty grade is left out
    assert [(g.rows, g.low) for g in none] == [(2, 0.0), (1, none[1].low)]
    tenths = calibration_tests(y, p).grades
    assert [g.rows for g in tenths] == [300] * 10
    with pytest.raises(DataError, match=r"grades must be probabilities between 0 and 1 that rise"):
        calibration_tests(y, p, [0.2, 0.1])


def brute(y, p, a, b):
    """The H-measure as Hand defines it: the least loss over all thresholds, integrated over costs."""
    pi1, thresholds = y.mean(), np.r_[-1, np.unique(p)]
    f0, f1 = (np.array([(p[y == k] <= t).mean() for t in thresholds]) for k in (0, 1))

    def least(c):
        return (c * (1 - pi1) * (1 - f0) + (1 - c) * pi1 * f1).min()

    grid = np.linspace(0, 1, 4001)
    weight = stats.beta(a, b).pdf(grid)
    loss = integrate.simpson([least(c) * w for c, w in zip(grid, weight, strict=True)], x=grid)
    worst = integrate.simpson(np.minimum(grid * (1 - pi1), (1 - grid) * pi1) * weight, x=grid)
    return 1 - loss / worst


@pytest.mark.parametrize("decimals", [1, 6])  # with many ties, and with none
def test_h_measure_is_the_integral_of_the_least_loss(rng, decimals):
    p = rng.beta(2, 3, 250)
    y = (rng.random(250) < 0.5 * p).astype(int)
    p = p.round(decimals)
    share = y.mean()
    assert h_measure(y, p) == pytest.approx(brute(y, p, 2, 2), abs=1e-5)
    assert h_measure(y, p, severity="class ratio") == pytest.approx(brute(y, p, 1 + share, 2 - share), abs=1e-5)
    weight = rng.integers(1, 4, 250)
    again = h_measure(np.repeat(y, weight), np.repeat(p, weight))
    assert h_measure(y, p, weight) == pytest.approx(again)


def test_h_measure_ends():
    assert h_measure([0, 0, 1], [0.1, 0.2, 0.9]) == 1
    assert h_measure([1, 1, 0], [0.1, 0.2, 0.9]) == pytest.approx(0, abs=1e-12)
    with pytest.raises(DataError, match="severity must be 'symmetric' or 'class ratio'"):
        h_measure([0, 1], [0.1, 0.2], severity="beta")


def test_evaluate_has_the_tests_and_the_measure(sample):
    y, p = sample
    found = pr.evaluate(p, None, y, grades=[0.1, 0.3])
    assert found.tests == calibration_tests(y, p, [0.1, 0.3])
    assert found["h_measure"].estimate == pytest.approx(h_measure(y, p))
    assert found["h_measure"].low < found["h_measure"].estimate < found["h_measure"].high
    assert "Hosmer-Lemeshow" in repr(found)
    assert found.to_dict()["tests"]["grades"][0]["rows"] == (p < 0.1).sum()
    assert math.isnan(pr.evaluate([0.1, 0.2], None, [0, 0])["h_measure"].estimate)
    weighted = pr.evaluate(p, None, y, sample_weight=np.ones(3000))
    assert weighted.tests is None
    assert weighted["h_measure"] == found["h_measure"]
    with pytest.raises(DataError, match="the tests of grades count rows"):
        pr.evaluate(p, None, y, grades=[0.1], sample_weight=np.ones(3000))
