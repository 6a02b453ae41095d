from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plainrisk.errors import DataError
from plainrisk_lab.compare import holm, wilcoxon_holm

ZERO_METHODS = ["pratt", "zsplit", "wilcox"]


def test_holm_by_hand():
    # Sorted: 0.005*5, 0.011*4, 0.02*3, 0.04*2 = 0.08, 0.13*1; then no value may fall below the one before.
    given_p = [0.02, 0.13, 0.005, 0.04, 0.011]
    assert holm(given_p) == pytest.approx([0.06, 0.13, 0.025, 0.08, 0.044])


def test_holm_is_a_running_maximum_and_stops_at_one():
    # 0.03*3 = 0.09, 0.04*2 = 0.08 is lifted to 0.09, 0.5*1; and 0.6*2 is cut to 1.
    assert holm([0.03, 0.04, 0.5]) == pytest.approx([0.09, 0.09, 0.5])
    assert holm([0.7, 0.6]) == pytest.approx([1.0, 1.0])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_rule_rejects(p, alpha):
    rejected = set()
    for step, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        # The same product as the adjusted value's, so that rounding cannot decide.
        if p[i] * (len(p) - step) > alpha:
            break
        rejected.add(i)
    assert {i for i, value in enumerate(holm(p)) if value <= alpha} == rejected


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("n", [6, 9, 20, 60])
def test_p_values_are_scipys(zero_method, n):
    # Whole numbers: zeros and ties in plenty, and no rounding.
    values = np.random.default_rng(n).integers(0, 6, size=(n, 3)).astype(float)
    test = wilcoxon_holm(values, zero_method)
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        expected = stats.wilcoxon(values[:, i], values[:, j], zero_method=zero_method).pvalue
        assert test.p_values[i, j] == test.p_values[j, i] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [8, 13, 14, 30, 51])
def test_p_values_are_scipys_without_ties(n):
    values = np.random.default_rng(n).normal(size=(n, 2))
    expected = stats.wilcoxon(values[:, 0], values[:, 1]).pvalue
    assert wilcoxon_holm(values).p_values[0, 1] == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=8), st.sampled_from(ZERO_METHODS))
def test_small_samples_count_all_signs(difference, zero_method):
    d = np.array(difference, dtype=float)
    kept = d[d != 0] if zero_method == "wilcox" else d
    ranks = stats.rankdata(np.abs(kept)) if kept.size else kept
    sums = [ranks[(np.array(s) * kept) > 0].sum() for s in product([-1, 1], repeat=kept.size)]
    seen = ranks[kept > 0].sum()
    expected = min(1.0, 2 * min(np.mean(np.array(sums) <= seen), np.mean(np.array(sums) >= seen)))
    test = wilcoxon_holm(np.column_stack([d, np.zeros_like(d)]), zero_method)
    assert test.p_values[0, 1] == pytest.approx(expected)


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
def test_decimals_and_whole_numbers_agree(zero_method):
    whole = np.random.default_rng(5).integers(7000, 7012, size=(25, 4))
    decimal = np.array([[float(f"0.{v}") for v in row] for row in whole])
    exact = wilcoxon_holm(whole.astype(float), zero_method).p_values
    np.testing.assert_allclose(wilcoxon_holm(decimal, zero_method).p_values, exact, rtol=1e-12)
    # The trap is real: plain subtraction gives other p-values.
    plain = stats.wilcoxon(decimal[:, 0], decimal[:, 1], zero_method=zero_method).pvalue
    assert plain != pytest.approx(exact[0, 1], rel=1e-6)


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
def test_equal_columns_are_not_different(zero_method):
    values = np.random.default_rng(0).normal(size=(20, 1)) * np.ones((1, 3))
    test = wilcoxon_holm(values, zero_method)
    assert (test.p_values == 1.0).all()
    assert test.cliques == (("C1", "C2", "C3"),)


def _three_levels():
    """A beats B and C, which are alike; D loses to all."""
    rng = np.random.default_rng(1)
    base = rng.normal(size=20)
    noise = rng.normal(scale=0.1, size=(20, 4))
    return base[:, None] + noise + np.array([2.0, 0.0, 0.01, -2.0])


def test_groups_and_singles():
    test = wilcoxon_holm(_three_levels())
    assert {frozenset(c) for c in test.cliques} == {frozenset({"C2", "C3"})}
    assert test.singles == ("C1", "C4")
    assert test.significant.sum() == 10  # five of six pairs, both ways


def test_members_and_singles_are_in_order_of_rank():
    values = np.random.default_rng(2).normal(size=(15, 6))
    for higher_is_better in (True, False):
        test = wilcoxon_holm(values, higher_is_better=higher_is_better)
        rank = dict(zip(test.classifiers, test.ranks, strict=True))
        for clique in test.cliques:
            assert [rank[m] for m in clique] == sorted(rank[m] for m in clique)
    assert wilcoxon_holm(_three_levels(), higher_is_better=False).singles == ("C4", "C1")


def test_every_pair_in_a_clique_is_joined_and_no_clique_can_grow():
    test = wilcoxon_holm(np.random.default_rng(8).normal(size=(30, 9)) + 0.25 * np.arange(9))
    at = {name: i for i, name in enumerate(test.classifiers)}
    for clique in test.cliques:
        inside = [at[m] for m in clique]
        assert not test.significant[np.ix_(inside, inside)].any()
        outside = set(range(9)) - set(inside)
        assert all(test.significant[o, inside].any() for o in outside)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"zero_method": "prat"},
            "zero_method must be 'pratt', 'zsplit' or 'wilcox', not 'prat'.*Did you mean 'pratt'",
        ),
        ({"alpha": 5}, "alpha must be a finite number above 0 and below 1, not 5"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(DataError, match=message):
        wilcoxon_holm(np.eye(3), **options)


def test_tables_show_adjusted_values_with_the_significant_ones_bold():
    test = wilcoxon_holm(_three_levels())
    assert test.to_frame()["C2"].tolist()[0] == test.adjusted[0, 1]
    markdown = test.to_markdown().splitlines()
    assert markdown[2].startswith("| C1 |  | **<0.0001** |") or markdown[2].startswith("| C1 |  | **\\<0.0001** |")
    assert r"\textbf{\textless{}0.0001}" in test.to_latex()
    assert test.to_latex().count(r"\textbf") == 10
