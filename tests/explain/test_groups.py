from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from plainrisk.errors import DataError
from plainrisk.explain.groups import compare_groups
from plainrisk.intervals import Range, impact_ratio, newcombe, normal_quantile, wilson

Z = normal_quantile(0.95)


def test_wilson_solves_its_equation():
    """Its ends are the shares p whose score statistic (x/n - p) / sqrt(p (1-p) / n) is z."""
    for x, n in [(8, 10), (1, 30), (29, 30), (500, 1000)]:
        found = wilson(x, n, Z)
        for end in (found.low, found.high):
            assert abs((x / n - end) / math.sqrt(end * (1 - end) / n)) == pytest.approx(Z)
    assert (wilson(0, 10, Z).low, wilson(10, 10, Z).high) == (0.0, 1.0)
    assert math.isnan(wilson(0, 0, Z).estimate)


def test_newcombe_published_values():
    """Newcombe (1998), method 10: 56/70 against 48/80 gives 0.0524 to 0.3339; 9/10 against 3/10 0.1705 to 0.8090."""
    found = newcombe(wilson(56, 70, Z), wilson(48, 80, Z))
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    found = newcombe(wilson(9, 10, Z), wilson(3, 10, Z))
    assert (found.low, found.high) == pytest.approx((0.1705, 0.8090), abs=5e-5)


@settings(max_examples=200, deadline=None)
@given(a=st.integers(1, 99), b=st.integers(1, 99), n=st.integers(100, 400), m=st.integers(100, 400))
def test_the_ratio_and_the_difference_agree_on_equality(a, b, n, m):
    """The ratio's interval holds 1 exactly if the difference's interval holds 0."""
    p, q = wilson(a, n, Z), wilson(b, m, Z)
    ratio, gap = impact_ratio(p, q), newcombe(p, q)
    assert ratio.low <= ratio.estimate <= ratio.high
    for end, other in ((ratio.low, gap.low), (ratio.high, gap.high)):
        if abs(other) > 1e-9:
            assert (end > 1) == (other > 0)


def test_the_interval_of_the_ratio_covers():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        a, b = rng.binomial(150, 0.4), rng.binomial(200, 0.6)
        found = impact_ratio(wilson(a, 150, Z), wilson(b, 200, Z))
        hits += found.low <= 0.4 / 0.6 <= found.high
    assert 0.935 < hits / 2000 < 0.965


def test_figures_by_hand():
    y = [0, 1, 0, 1, 0, 0]
    risk = [0.1, 0.9, 0.6, 0.4, 0.2, 0.3]
    report = compare_groups(y, risk, ["a", "a", "a", "b", "b", "b"], cutoff=0.5, reference="b")
    one = {g.group: g for g in report.groups}
    assert one["a"].approval.estimate == pytest.approx(1 / 3)
    assert one["a"].impact.estimate == pytest.approx(1 / 3)
    assert one["a"].difference.estimate == pytest.approx(-2 / 3)
    assert one["b"].impact == Range(1.0, 1.0, 1.0)
    assert one["a"].mean_risk == pytest.approx(1.6 / 3)
    assert one["a"].gap.estimate == pytest.approx(1.6 / 3 - 1 / 3)
    assert (one["a"].auc.estimate, one["b"].auc.estimate) == (1.0, 1.0)
    turned = compare_groups(y, risk, ["a", "a", "a", "b", "b", "b"], cutoff=0.5, adverse="negative", reference="b")
    assert {g.group: g.approval.estimate for g in turned.groups} == pytest.approx({"a": 2 / 3, "b": 0.0})
    assert math.isnan(turned.groups[0].impact.estimate)  # nobody in b is approved


def test_auc_and_its_interval():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 4000)
    risk = np.clip(rng.normal(0.4 + 0.1 * y, 0.2), 0, 1).round(2)
    group = np.where(rng.random(4000) < 0.3, "small", "large")
    report = compare_groups(y, risk, group, cutoff=0.5)
    for g in report.groups:
        inside = group == g.group
        assert g.auc.estimate == pytest.approx(roc_auc_score(y[inside], risk[inside]))
        draws = []
        rows = np.flatnonzero(inside)
        for _ in range(300):
            again = rng.choice(rows, len(rows))
            draws.append(roc_auc_score(y[again], risk[again]))
        assert g.auc.high - g.auc.low == pytest.approx(2 * Z * np.std(draws), rel=0.15)
        assert g.base_rate.low <= g.base_rate.estimate <= g.base_rate.high
        assert g.gap.high - g.gap.low == pytest.approx(g.base_rate.high - g.base_rate.low)
    assert [g.group for g in report.groups] == ["large", "small"]


def test_one_outcome_or_one_row_has_no_auc():
    report = compare_groups([1, 1, 0], [0.2, 0.3, 0.4], ["a", "a", "b"], cutoff=0.5)
    assert all(math.isnan(g.auc.estimate) for g in report.groups)


def test_handing_on():
    report = compare_groups([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.7], ["a", "a", "b", None], cutoff=0.5)
    frame = report.to_frame(pd.DataFrame())
    assert list(frame["group"]) == ["a", "b", "(no group)"]
    assert {"impact_low", "approval_high", "auc", "mean_risk"} <= set(frame.columns)
    assert report.to_dict()["groups"][0]["approval"]["estimate"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0.1], ["a", "b"]), {}, "differ in length"),
        (([0, 2], [0.1, 0.2], ["a", "b"]), {}, "y must be 0 or 1"),
        (([0, 1], [0.1, 0.2], ["a", "b"]), {"reference": "c"}, "There is no group 'c'"),
        (([0, 1], [0.1, 0.2], ["a", "b"]), {"level": 95}, "level must be a finite number above 0 and below 1, not 95"),
        (([0, 1], [0.1, 0.2], ["a", "b"]), {"adverse": "no"}, "adverse must be"),
        (
            ([0, 1], [0.1, 0.2], ["a", "b"]),
            {"cutoff": math.nan},
            "cutoff must be a probability, from 0 to 1, not nan",
        ),
        (([0, 1], [0.1, 1.2], ["a", "b"]), {}, "risk must hold probabilities"),
        (([0, 1], [0.1, math.nan], ["a", "b"]), {}, "risk must hold probabilities"),
        ((["x", "y"], [0.1, 0.2], ["a", "b"]), {}, "y must hold numbers"),
        (([0, 1], [[0.1, 0.2]] * 2, ["a", "b"]), {}, "risk must have one dimension"),
        (([], [], []), {}, "there are no rows"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, options, message):
    with pytest.raises(DataError, match=message):
        compare_groups(*arguments, **{"cutoff": 0.5, **options})


def test_all_rows_are_in_the_report():
    group = np.array(["a"] * 40 + [None] * 50 + ["b"] * 6, dtype=object)
    risk = np.linspace(0.05, 0.95, 96)
    y = np.arange(96) % 2
    report = compare_groups(y, risk, group, cutoff=0.5, adverse="negative")
    assert {g.group: g.rows for g in report.groups} == {"(no group)": 50, "a": 40, "b": 6}
    assert report.reference == "a", "the largest group that has a name, not the one that does best"
    assert {g.group: g.small for g in report.groups} == {"(no group)": False, "a": False, "b": True}
    assert "small" in repr(report)
    rare = compare_groups((risk > 0.4).astype(int), risk, group, cutoff=0.5)
    assert all(g.small for g in rare.groups), "fewer than 5 rows of one outcome"
    named = compare_groups(y, risk, group, cutoff=0.5, reference="(no group)")
    assert named.reference == "(no group)"


def test_a_group_may_be_called_no_group_or_be_a_number():
    group = np.array(["(no group)", "(no group)", None], dtype=object)
    report = compare_groups([0, 1, 1], [0.1, 0.2, 0.3], group, cutoff=0.5)
    assert [(g.group, g.rows) for g in report.groups] == [("(no group)", 2), ("((no group))", 1)]
    assert compare_groups([0, 1, 1], [0.1, 0.2, 0.3], [1, 1, 2], cutoff=0.5, reference=2).reference == "2"


def test_rows_without_any_group_are_one_group():
    report = compare_groups([0, 1], [0.1, 0.2], np.array([None, None], dtype=object), cutoff=0.5)
    assert [g.group for g in report.groups] == [report.reference] == ["(no group)"]


def test_equal_opportunity_is_the_approval_of_the_good():
    y = np.array([0, 0, 0, 1, 0, 0, 1, 1])
    risk = np.array([0.1, 0.2, 0.6, 0.3, 0.1, 0.7, 0.2, 0.9])
    group = ["a"] * 4 + ["b"] * 4
    one = {g.group: g for g in compare_groups(y, risk, group, cutoff=0.5, reference="a").groups}
    assert one["a"].opportunity == wilson(2, 3, Z)  # of three good applicants two are below 0.5
    assert one["b"].opportunity == wilson(1, 2, Z)
    assert one["b"].opportunity_difference == newcombe(wilson(1, 2, Z), wilson(2, 3, Z))
    assert one["b"].below_four_fifths, "2 of 4 approved against 3 of 4"
    assert not one["a"].below_four_fifths
    turned = compare_groups(1 - y, 1 - risk, group, cutoff=0.5, adverse="negative", reference="a")
    assert {g.group: g.opportunity for g in turned.groups} == {name: g.opportunity for name, g in one.items()}


def test_without_outcomes_there_is_approval_only():
    with_outcomes = compare_groups([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.7], ["a", "a", "b", "b"], cutoff=0.5)
    report = compare_groups(None, [0.1, 0.9, 0.6, 0.7], ["a", "a", "b", "b"], cutoff=0.5)
    assert [g.approval for g in report.groups] == [g.approval for g in with_outcomes.groups]
    assert [g.impact for g in report.groups] == [g.impact for g in with_outcomes.groups]
    for g in report.groups:
        unknown = (g.base_rate, g.gap, g.auc, g.opportunity, g.opportunity_difference)
        assert all(math.isnan(figure.estimate) for figure in unknown)
