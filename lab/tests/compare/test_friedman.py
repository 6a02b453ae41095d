from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plainrisk_lab.compare import friedman


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 30), k=st.integers(3, 12))
def test_chi2_is_scipys_without_ties(seed, n, k):
    values = np.random.default_rng(seed).normal(size=(n, k)) + 0.3 * np.arange(k)
    expected = stats.friedmanchisquare(*values.T)
    test = friedman(values)
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert test.chi2_p_value == pytest.approx(expected.pvalue, rel=1e-7)


def test_demsars_worked_example():
    # Demsar (2006), table 6: four classifiers on fourteen data sets, chi2 = 9.28, F = 3.69, F(3, 39).
    # On the thirteenth it ranks the third classifier before the fourth, though both print as 0.975.
    rows = """
    0.763 0.768 0.771 0.798  0.599 0.591 0.590 0.569  0.954 0.971 0.968 0.967  0.628 0.661 0.654 0.657
    0.882 0.888 0.886 0.898  0.936 0.931 0.916 0.931  0.661 0.668 0.609 0.685  0.583 0.583 0.563 0.625
    0.775 0.838 0.866 0.875  1.000 1.000 1.000 1.000  0.940 0.962 0.965 0.962  0.619 0.666 0.614 0.669
    0.972 0.981 0.9751 0.975 0.957 0.978 0.946 0.970"""
    test = friedman(np.array(rows.split(), dtype=float).reshape(14, 4))
    assert test.ranks.round(3).tolist() == [3.143, 2.0, 2.893, 1.964]
    assert round(test.statistic, 2) == 9.28
    assert round(test.f_statistic, 2) == 3.69
    assert test.degrees_of_freedom == (3, 39)
    assert 0.015 < test.p_value < 0.025


def test_p_value_is_the_upper_tail_of_f():
    values = np.random.default_rng(3).normal(size=(8, 4)) + np.arange(4) * 0.5
    test = friedman(values)
    # F(3, 21) by numerical integration of its density.
    from scipy.integrate import quad

    density = lambda x: stats.f.pdf(x, 3, 21)  # noqa: E731
    assert test.p_value == pytest.approx(quad(density, test.f_statistic, np.inf)[0], rel=1e-6)


def test_direction_turns_the_ranks_round():
    values = np.random.default_rng(0).integers(0, 4, size=(9, 5)).astype(float)
    up, down = friedman(values), friedman(values, higher_is_better=False)
    np.testing.assert_array_equal(up.rank_table + down.rank_table, np.full((9, 5), 6.0))
    assert up.statistic == pytest.approx(down.statistic)


def test_ties_share_their_average():
    assert friedman([[0.5, 0.7, 0.7], [0.5, 0.5, 0.5]]).rank_table.tolist() == [
        [3.0, 1.5, 1.5],
        [2.0, 2.0, 2.0],
    ]


def test_all_alike_says_nothing():
    test = friedman(np.ones((4, 3)))
    assert (test.statistic, test.f_statistic, test.p_value) == (0.0, 0.0, 1.0)


def test_full_agreement_has_the_probability_of_full_agreement():
    test = friedman([[3.0, 2.0, 1.0]] * 4)
    assert test.statistic == pytest.approx(8.0)
    assert math.isinf(test.f_statistic)
    assert test.p_value == pytest.approx(1 / 6**3)


def test_tables():
    test = friedman({"A": [0.9, 0.8, 0.7], "B_2": [0.8, 0.7, 0.9]})
    assert test.to_frame()["classifier"].tolist() == ["A", "B_2"]
    assert "| A | 1.3333 |" in test.to_markdown()
    assert "3 data sets; Friedman F(1, 2) = 0.25, p = " in test.to_markdown()
    assert r"B\_2 & 1.6667 \\" in test.to_latex()
