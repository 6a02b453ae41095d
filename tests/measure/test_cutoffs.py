"""Cut-off tables against brute force: every cut-off is applied to every row."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.intervals import normal_quantile, wilson

Z = normal_quantile(0.95)
ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), st.integers(1, 4), st.integers(0, 50)),
    min_size=1,
    max_size=25,
)


def brute(rows, cutoff, adverse):
    """Weights of the approved, of the bad among them, and the profit at gain 0.3 and cost 0.8 of the amount."""
    approved = bad = profit = 0.0
    for positive, risk, weight, amount in rows:
        is_bad = positive == (adverse == "positive")
        if (risk < cutoff) if adverse == "positive" else (risk >= cutoff):
            approved += weight
            bad += weight * is_bad
            profit += weight * amount * (-0.8 if is_bad else 0.3)
    return approved, bad, profit


@settings(max_examples=80, deadline=None)
@given(rows=ROWS, adverse=st.sampled_from(["positive", "negative"]), asked=st.floats(0, 1))
def test_every_cutoff_is_that_of_brute_force(rows, adverse, asked):
    y, risk, weight, amount = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    options = {"sample_weight": weight, "amount": amount, "cost_bad": 0.8, "gain_good": 0.3}
    found = pr.cutoffs(risk, None, y, adverse=adverse, **options)
    total = weight.sum()
    bads = weight[(y == 1) == (adverse == "positive")].sum()
    assert set(found.cutoff) == {*risk, 1.0}
    checked = [found[k] for k in range(len(found))] + [found.at(cutoff=asked)]
    for one in checked:
        approved, bad, profit = brute(rows, one.cutoff, adverse)
        assert one.approval.estimate == pytest.approx(approved / total)
        assert one.profit.estimate == pytest.approx(profit)
        if approved:
            assert one.bad_rate.estimate == pytest.approx(bad / approved)
        else:
            assert math.isnan(one.bad_rate.estimate)
        if bads:
            assert one.bads_refused.estimate == pytest.approx(1 - bad / bads)
        for figure in (one.approval, one.profit):
            assert figure.low - 1e-9 <= figure.estimate <= figure.high + 1e-9
    assert found.best.profit.estimate == pytest.approx(max(brute(rows, c, adverse)[2] for c in found.cutoff))


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, wanted=st.floats(0, 1))
def test_at_approves_as_many_as_allowed(rows, wanted):
    y, risk, weight, _ = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found, total = pr.cutoffs(risk, None, y, sample_weight=weight), weight.sum()
    each = [brute(rows, c, "positive") for c in found.cutoff]
    most = max(a / total for a, _, _ in each if a / total <= wanted + 1e-12)
    assert found.at(approval=wanted).approval.estimate == pytest.approx(most)
    most = max(a / total for a, b, _ in each if a == 0 or b / a <= wanted + 1e-12)
    assert found.at(bad_rate=wanted).approval.estimate == pytest.approx(most)


def data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    risk = rng.beta(1, 4, n)
    return (rng.random(n) < risk).astype(int), risk


def test_intervals_are_wilsons_and_that_of_a_sum():
    y, risk = data()
    one = pr.cutoffs(risk, None, y, cost_bad=1, gain_good=0.2).at(cutoff=0.3)
    approved = risk < 0.3
    assert vars(one.approval) == pytest.approx(vars(wilson(approved.sum(), len(y), Z)))
    assert vars(one.bad_rate) == pytest.approx(vars(wilson(y[approved].sum(), approved.sum(), Z)))
    assert vars(one.bads_refused) == pytest.approx(vars(wilson((y * ~approved).sum(), y.sum(), Z)))
    brings = approved * np.where(y == 1, -1, 0.2)
    half = Z * brings.std(ddof=1) * math.sqrt(len(y))
    assert (one.profit.low, one.profit.high) == pytest.approx((brings.sum() - half, brings.sum() + half))


def test_the_best_cutoff_of_a_calibrated_risk_is_where_a_loan_pays():
    """An applicant pays while risk · cost < (1 - risk) · gain: below gain / (gain + cost)."""
    y, risk = data(200_000, 1)
    assert pr.cutoffs(risk, None, y, cost_bad=1, gain_good=0.25).best.cutoff == pytest.approx(0.2, abs=0.03)


def test_it_prints_about_twenty_lines_and_goes_into_json():
    y, risk = data()
    found = pr.cutoffs(risk, None, y, gain_good=0.2)
    shown = found.shown()
    assert 15 <= len(shown) <= 20
    assert [round(one.approval.estimate, 3) for one in shown] == [pytest.approx(k / 20, abs=1e-3) for k in range(1, 21)]
    assert "Approved: a risk below the cut-off" in repr(found)
    assert json.loads(json.dumps(found.to_dict()))["best"]["profit"]["estimate"] == found.best.profit.estimate
    assert "from the cut-off on" in repr(pr.cutoffs(risk, None, y, adverse="negative"))
    assert "profit" not in repr(pr.cutoffs(risk, None, y))


def test_turning_the_outcome_round_turns_the_cutoffs_round():
    y, risk = data(300)
    risk = risk.round(2)
    one = pr.cutoffs(risk, None, y, gain_good=0.2)
    other = pr.cutoffs(1 - risk, None, 1 - y, gain_good=0.2, adverse="negative")
    for share in (0.2, 0.5, 0.9):
        a, b = one.at(approval=share), other.at(approval=share)
        assert (a.approval, a.bad_rate, a.profit.estimate) == (b.approval, b.bad_rate, pytest.approx(b.profit.estimate))


def test_plot():
    pytest.importorskip("matplotlib").use("Agg")
    y, risk = data(200)
    assert len(pr.cutoffs(risk, None, y, gain_good=0.2).plot().lines) == 4  # three curves and the best cut-off
    assert len(pr.cutoffs(risk, None, y).plot().lines) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost_bad": -1}, "cost_bad must be a finite number of at least 0, not -1"),
        ({"gain_good": math.inf}, "gain_good must be"),
        ({"adverse": "bad"}, "adverse must be 'positive' or 'negative'"),
        ({"level": 95}, "level must be"),
        ({"amount": [1.0]}, "amount: has 1 rows where y_true has 2"),
        ({"amount": [1.0, -2.0]}, r"amount: must be finite and not negative, and row 1 \(counting from 0\)"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(DataError, match=message):
        pr.cutoffs([0.1, 0.2], None, [0, 1], **options)


def test_questions_that_have_no_answer():
    found = pr.cutoffs([0.1, 0.2], None, [0, 1])
    with pytest.raises(DataError, match="a profit needs gain_good"):
        _ = found.best
    for asked in ({}, {"approval": 0.5, "cutoff": 0.1}):
        with pytest.raises(DataError, match="name one of approval, bad_rate and cutoff"):
            found.at(**asked)
    with pytest.raises(DataError, match="approval must be None or a probability"):
        found.at(approval=70)
    with pytest.raises(DataError, match=r"every one approves at least 50\.00%"):
        pr.cutoffs([0.1, 1.0], None, [0, 1], adverse="negative").at(approval=0.2)
