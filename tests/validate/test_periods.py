"""A model by time: each period is what the library says of its rows alone; vintages are Kaplan and Meier's."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError


@pytest.fixture(scope="module")
def later():
    """A model, and later rows: dates, months on book, outcomes that are not known yet."""
    made = pr.datasets.make_credit(1500, 4, backend="polars")
    model = pr.make_classifier("ARM1", made.schema).fit(made.frame[:800], made.target[:800]).annotate(cutoff=0.2)
    rng, rows = np.random.default_rng(5), made.frame[800:]
    days = np.array(rng.integers(0, 300, 700), "timedelta64[D]") + np.datetime64("2024-02-01")
    outcome = [
        None if day > np.datetime64("2024-10-15") else int(y) for day, y in zip(days, made.target[800:], strict=True)
    ]
    frame = rows.with_columns(pl.Series("day", days), bad=pl.Series(outcome), mob=pl.Series(rng.integers(1, 40, 700)))
    return model, frame


def test_a_period_is_what_its_rows_say_alone(later):
    model, frame = later
    found = pr.periods(model, frame, time="day", every="quarter")
    assert [p.period for p in found.periods] == ["2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4"]
    assert sum(p.rows for p in found.periods) == 700
    for p in found.periods:
        own = frame.filter(pl.col("day").dt.quarter() == int(p.period[-1]))
        known = own.filter(pl.col("bad").is_not_null())
        assert (p.rows, p.known) == (len(own), len(known))
        measured = pr.evaluate(model, known)
        assert vars(p.auc) == pytest.approx(vars(measured["auc"]))  # the sums are in another order
        assert p.slope.estimate == pytest.approx(measured["slope"].estimate)
        assert p.slope.low == pytest.approx(measured["slope"].low)
        assert p.gap.estimate == pytest.approx(measured["gap"].estimate)
        assert vars(p.base_rate) == pytest.approx(vars(measured.base_rate))
        assert p.approval == pr.cutoffs(model, known).chosen.approval if len(known) == len(own) else True
        moved = pr.drift(model, own)
        assert p.psi == moved.risk.psi
        assert p.features == {f.feature: f.psi for f in moved.features}
        assert p.mean_risk == pytest.approx(moved.new_risk)
    columns = found.columns()
    assert columns["psi of income"] == [p.features["income"] for p in found.periods]
    assert columns["auc_low"] == [p.auc.low for p in found.periods]
    assert "4 periods" in repr(found)


def test_periods_by_every_kind_of_time(later):
    model, frame = later
    months = frame["day"].dt.strftime("%Y-%m").to_list()
    by_text = pr.periods(model, frame, time=months)
    assert [p.period for p in by_text.periods] == sorted(set(months))
    assert [p.rows for p in by_text.periods] == [months.count(p.period) for p in by_text.periods]
    days = [datetime.datetime(day.year, day.month, day.day, 12) for day in frame["day"]]
    assert pr.periods(model, frame, time=days, every="month").periods == by_text.periods
    years = pr.periods(model, frame, time=frame["day"].dt.month().to_numpy())
    assert [(p.period, p.rows) for p in years.periods] == [(str(int(p.period[-2:])), p.rows) for p in by_text.periods]
    assert pr.periods(model, frame, time="day", every="year").periods[0].rows == 700
    frame_pd = frame.to_pandas()
    assert pr.periods(model, frame_pd, time=pd.to_datetime(frame_pd["day"])).periods == by_text.periods
    with pytest.raises(DataError, match="every='month' needs dates"):
        pr.periods(model, frame, time="mob", every="month")
    with pytest.raises(DataError, match=r"every must be None, 'month'.*Did you mean 'month'"):
        pr.periods(model, frame, time="day", every="mnth")
    with pytest.raises(DataError, match=r"time: row 3 .* has none"):
        pr.periods(model, frame, time=[*days[:3], None, *days[4:]])
    with pytest.raises(DataError, match="there is no column 'dya'"):
        pr.periods(model, frame, time="dya")


def test_without_a_model_of_ours_shifts_are_against_the_first_period(later):
    model, frame = later
    risk = model.predict_proba(frame)[:, 1]
    found = pr.periods(risk, None, frame["bad"], time=frame["day"].to_numpy(), every="quarter", cutoff=0.2)
    ours = pr.periods(model, frame, time="day", every="quarter")
    assert [p.auc for p in found.periods] == [p.auc for p in ours.periods]
    assert [p.approval for p in found.periods] == [p.approval for p in ours.periods]
    assert (found.against, found.periods[0].psi, found.periods[0].features) == ("2024-Q1", 0.0, {})
    first, second = (risk[(frame["day"].dt.quarter() == q).to_numpy()] for q in (1, 2))
    assert found.periods[1].psi == pr.drift(second, None, old=first).risk.psi
    nothing = pr.periods(risk, None, time=frame["day"].to_numpy(), every="quarter")
    assert all(p.known == 0 and np.isnan(p.auc.estimate) and np.isnan(p.approval.low) for p in nothing.periods)


def test_vintages_by_brute_force(later):
    model, frame = later
    found = pr.periods(model, frame, time="day", every="quarter", months="mob")
    assert {v.period for v in found.vintages} == {"2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4"}
    for v in found.vintages:
        own = frame.filter((pl.col("day").dt.quarter() == int(v.period[-1])) & pl.col("bad").is_not_null())
        age, bad = own["mob"].to_list(), own["bad"].to_list()
        good = 1.0
        for month in range(v.months + 1):
            seen = sum(a >= month for a in age)
            good *= 1 - sum(a == month and b == 1 for a, b in zip(age, bad, strict=True)) / max(seen, 1)
        assert v.bad == pytest.approx(1 - good)
        assert v.at_risk == sum(a >= v.months for a in age)
        assert v.expected == pytest.approx(model.predict_proba(own)[:, 1].mean())
    with pytest.raises(DataError, match=r"months must be 0 or more .* row 0 "):
        pr.periods(model, frame, time="day", months=[np.nan, *frame["mob"].to_list()[1:]])
    with pytest.raises(DataError, match="months must be one number for each of the 700 rows"):
        pr.periods(model, frame, time="day", months=["3"] * 700)


def test_the_picture(later):
    model, frame = later
    axes = pr.periods(model, frame, time="day").plot()
    assert [ax.get_title("left") for ax in axes] == [
        "AUC",
        "mean risk less base rate",
        "approval rate",
        "PSI of the risk",
    ]
    assert axes[0].lines[0].get_xydata().shape == (10, 2)
