from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plainrisk.errors import DataError
from plainrisk_lab.compare import effect_sizes, hodges_lehmann, hodges_lehmann_table, wilcoxon_holm

differences = st.lists(st.integers(-50, 50), min_size=2, max_size=12)


def median_of(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@settings(max_examples=60, deadline=None)
@given(differences)
def test_hodges_lehmann_by_listing_the_walsh_averages(d):
    n = len(d)
    zeros = [0.0] * n
    every = [(d[i] + d[j]) / 2 for i in range(n) for j in range(i, n)]
    strict = [(d[i] + d[j]) / 2 for i in range(n) for j in range(i + 1, n)]
    assert hodges_lehmann(d, zeros) == pytest.approx(median_of(every))
    assert hodges_lehmann(d, zeros, pairs="strict") == pytest.approx(median_of(strict))


@settings(max_examples=30, deadline=None)
@given(differences, st.integers(-9, 9))
def test_hodges_lehmann_moves_with_the_data(d, shift):
    a, zeros = np.array(d, dtype=float), np.zeros(len(d))
    assert hodges_lehmann(a + shift, zeros) == pytest.approx(hodges_lehmann(a, zeros) + shift)
    assert hodges_lehmann(zeros, a) == pytest.approx(-hodges_lehmann(a, zeros))


def test_hodges_lehmann_errors():
    with pytest.raises(DataError, match=r"pairs must be 'all' or 'strict', not 'strickt'. Did you mean 'strict'"):
        hodges_lehmann([1.0], [2.0], pairs="strickt")
    with pytest.raises(DataError, match="needs at least 2 values; got 1"):
        hodges_lehmann([1.0], [2.0], pairs="strict")


def test_hodges_lehmann_table_is_row_minus_column():
    values = np.random.default_rng(0).normal(size=(20, 4)) + np.array([0.0, 0.1, 2.0, 2.1])
    table = hodges_lehmann_table(values, pairs="strict")
    for i in range(4):
        for j in range(4):
            expected = hodges_lehmann(values[:, i], values[:, j], pairs="strict")
            assert table.differences[i, j] == pytest.approx(expected, abs=1e-12)
    assert table.differences[2, 0] > 1
    np.testing.assert_array_equal(table.significant, wilcoxon_holm(values).significant)


def test_hodges_lehmann_latex_has_minus_signs_and_bold_cells():
    base = np.linspace(0.5, 0.8, 12)
    table = hodges_lehmann_table({"A": base, "B": base + 0.125})
    assert r"A &  & \textbf{$-$0.125} \\" in table.to_latex()
    assert "| B | **0.125** |  |" in table.to_markdown()
    assert table.to_frame()["A"].tolist()[1] == pytest.approx(0.125)


def test_rank_biserial_by_hand():
    # |d| = 3, 1, 2, 4 with the 1 negative and a zero left out: (3 + 2 + 4 - 1) / 10.
    sizes = effect_sizes({"A": [3.0, -1.0, 2.0, 4.0, 0.0], "B": [0.0] * 5})
    assert sizes.rank_biserial[0, 1] == pytest.approx(0.8)
    assert sizes.rank_biserial[1, 0] == pytest.approx(-0.8)


def test_rank_biserial_is_linear_in_wilcoxons_statistic():
    values = np.random.default_rng(4).normal(size=(17, 2))
    smaller_sum = stats.wilcoxon(values[:, 0], values[:, 1]).statistic
    assert abs(effect_sizes(values).rank_biserial[0, 1]) == pytest.approx(1 - 2 * smaller_sum / (17 * 18 / 2))


def test_d_z_is_the_paired_t_over_root_n():
    values = np.random.default_rng(5).normal(size=(23, 3))
    t = stats.ttest_rel(values[:, 0], values[:, 2]).statistic
    assert effect_sizes(values).d_z[0, 2] == pytest.approx(t / math.sqrt(23))


def test_effects_without_spread():
    sizes = effect_sizes({"A": [0.3, 0.2], "B": [0.2, 0.1], "C": [0.3, 0.2]})
    assert sizes.d_z[0].tolist() == [0.0, math.inf, 0.0]
    assert sizes.d_z[1, 0] == -math.inf
    assert sizes.rank_biserial[0].tolist() == [0.0, 1.0, 0.0]


def test_effects_table_lists_every_pair_once():
    frame = effect_sizes(np.random.default_rng(0).normal(size=(5, 4))).to_frame()
    assert list(frame.columns) == ["classifier", "against", "rank_biserial", "d_z"]
    assert len(frame) == 6
