"""Stress and sensitivity against the model asked row by row; data quality against a file with planted faults."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError


@pytest.fixture(scope="module")
def credit():
    made = pr.datasets.make_credit(1400, 3, backend="polars")
    model = pr.make_classifier("ARM1", made.schema).fit(made.frame[:700], made.target[:700]).annotate(cutoff=0.2)
    return model, made.frame[700:].with_columns(pl.Series("bad", made.target[700:]))


def test_a_shock_is_the_model_on_changed_rows(credit):
    model, frame = credit
    found = pr.stress(model, frame, ["income=-10%", "loan_amount=+500", "housing=rent"], by="housing")
    changed = frame.with_columns(pl.col("income") * 0.9, pl.col("loan_amount") + 500, housing=pl.lit("rent"))
    before, after = (model.predict_proba(X)[:, 1] for X in (frame, changed))
    for group in found.groups:
        rows = np.full(700, True) if group.group == "(all rows)" else (frame["housing"] == group.group).to_numpy()
        old, new = before[rows], after[rows]
        assert (group.rows, group.now_refused) == (rows.sum(), ((old < 0.2) & (new >= 0.2)).sum())
        assert group.now_approved == ((old >= 0.2) & (new < 0.2)).sum()
        expected = [old.mean(), new.mean(), (old < 0.2).mean(), (new < 0.2).mean()]
        expected += [old[old < 0.2].mean(), new[new < 0.2].mean()]
        names = ("risk", "risk_after", "approval", "approval_after", "bad_rate", "bad_rate_after")
        assert [getattr(group, name) for name in names] == pytest.approx(expected)
    assert [g.group for g in found.groups] == ["(all rows)", "family", "own", "rent"]
    assert pr.stress(model, frame, "income=+0").groups[0].now_refused == 0
    assert pr.stress(model, frame, "income=+1000000").beyond == {"income": frame["income"].count()}


def test_codes_missing_values_and_bounds_stay():
    features = {"months": {"special_values": [-9], "lower_bound": 0}}
    rng = np.random.default_rng(1)
    months = [*rng.integers(0, 60, 280).tolist(), *[-9] * 10, *[None] * 10]
    y = (rng.random(300) < 0.5).astype(int)
    model = pr.AdditiveRiskModel(pr.Schema(features=features)).fit(pl.DataFrame({"months": months}), y)
    moved = pl.DataFrame({"months": [m if m in (-9, None) else max(0, m - 20) for m in months]})
    found = pr.stress(model, {"months": months}, "months=-20", cutoff=0.5)
    assert found.groups[0].risk_after == pytest.approx(model.predict_proba(moved)[:, 1].mean())


def test_codes_with_words_are_not_multiplied():
    """A tenth more of a code means nothing; words for special values alone make no codes of the others."""
    rng = np.random.default_rng(2)
    X = pl.DataFrame({"account": rng.integers(11, 15, 300), "months": rng.integers(0, 60, 300)})
    words = {"11": "overdrawn", "12": "below 200", "13": "more", "14": "none"}
    features = {"account": {"labels": words}, "months": {"special_values": [-9], "labels": {"-9": "no record"}}}
    model = pr.AdditiveRiskModel(pr.Schema(features=features)).fit(X, (rng.random(300) < 0.5).astype(int))
    found = {one.feature: one for one in pr.sensitivity(model, X, cutoff=0.5).features}
    assert math.isnan(found["account"].up)
    assert math.isnan(found["account"].rounded)
    assert found["account"].shuffled >= 0
    assert found["months"].up >= 0


def test_what_a_shock_may_not_be(credit):
    model, frame = credit
    for text, message in {
        "income": "write a shock as income=-10%",
        "incme=-10%": "reads no feature 'incme'. Did you mean 'income'",
        "income=500": "the sign is needed",
        "income=+5x": "the sign is needed",
        "housing=boat": "feature 'housing' has no level 'boat'",
    }.items():
        with pytest.raises(DataError, match=message.replace("+", r"\+")):
            pr.stress(model, frame, text)
    with pytest.raises(DataError, match="give at least one shock"):
        pr.stress(model, frame, [])
    with pytest.raises(DataError, match="stress: give a cutoff"):
        pr.stress(model.at_base_rate(0.2), frame, "income=+1")  # which keeps no cut-off
    with pytest.raises(DataError, match="needs a model of plainrisk"):
        pr.stress(np.full(700, 0.1), None, "income=+1", cutoff=0.5)


def test_sensitivity_counts_decisions_that_change(credit):
    model, frame = credit
    found = pr.sensitivity(model, frame, change=0.2, repeats=3)
    by_name = {f.feature: f for f in found.features}
    refused = model.predict_proba(frame)[:, 1] >= 0.2
    more = model.predict_proba(frame.with_columns(pl.col("income") * 1.2))[:, 1] >= 0.2
    assert by_name["income"].up == pytest.approx((refused != more).mean())
    assert by_name["income"].approval_up == pytest.approx(refused.mean() - more.mean())
    assert by_name["income"].approval_up >= 0 >= by_name["income"].approval_down
    exchanged = []
    for k in range(3):
        order = np.random.default_rng((0, k)).permutation(700)
        rows = frame.with_columns(frame["housing"][order])
        exchanged.append(((model.predict_proba(rows)[:, 1] >= 0.2) != refused).mean())
    assert by_name["housing"].shuffled == pytest.approx(np.mean(exchanged))
    assert math.isnan(by_name["housing"].up)
    assert [f.shuffled for f in found.features[:-1]] == sorted((f.shuffled for f in found.features[:-1]), reverse=True)
    assert by_name["age"].rounding == 1
    assert by_name["(all within their rounding)"].rounded <= 0.02
    assert (
        pr.sensitivity(model, frame[:90], repeats=1).features == pr.sensitivity(model, frame[:90], repeats=1).features
    )
    rough = frame[:90].with_columns((pl.col("income") / 1000).round() * 1000)
    assert {f.feature: f for f in pr.sensitivity(model, rough, repeats=1).features}["income"].rounding == 1000


# ---- data quality


def test_every_planted_fault_is_in_the_list(credit):
    model, frame = credit
    assert [i for i in pr.quality(model, frame).issues if i.severity != "low"] == []
    row = np.arange(700)
    faulty = frame.drop("savings").with_columns(
        income=pl.when(pl.Series(row < 210)).then(None).otherwise(pl.col("income")),
        housing=pl.when(pl.Series(row % 10 == 0)).then(pl.lit("boat")).otherwise(pl.col("housing")),
        debt_ratio=pl.when(pl.Series(row < 14)).then(1e6).otherwise(pl.col("debt_ratio")),
        age=pl.when(pl.Series(row == 3)).then(pl.lit("old")).otherwise(pl.col("age").cast(pl.String)),
        late_payments=pl.lit(0),
        bad=pl.when(pl.Series(row < 7)).then(None).otherwise(pl.col("bad")),
    )
    faulty = faulty.vstack(faulty[400:])
    found = {(i.feature, i.what): i for i in pr.quality(model, faulty).issues}
    expected = {
        ("savings", "absent"): ("high", 1000),
        ("age", "type"): ("high", 1000),
        ("income", "missing"): ("moderate", None),
        ("housing", "unseen"): ("high", 100),
        ("debt_ratio", "out of range"): ("moderate", 14),
        ("late_payments", "constant"): ("moderate", 1000),
        ("", "repeated rows"): ("moderate", 300),
        ("bad", "outcome"): ("low", 7),
    }
    for key, (severity, rows) in expected.items():
        assert found[key].severity == severity, key
        assert rows in (None, found[key].rows), key
    lost = faulty["income"].null_count()
    shape = model.form_.parts[0].shapes["income"]
    trained = shape.weights[-1] / sum(shape.weights)
    assert (found["income", "missing"].rows, found["income", "missing"].trained) == (lost, pytest.approx(trained))
    severities = [i.severity for i in pr.quality(model, faulty).issues]
    assert severities == sorted(severities, key=["high", "moderate", "low"].index)
    assert {i.what for i in pr.quality(model, frame, ["x"] * 700).issues if i.severity == "high"} == {"outcome"}


def test_forbidden_fields_are_high(credit):
    _, frame = credit
    schema = pr.Schema(features={"age": {"missing": "error"}, "housing": {"kind": "categorical"}})
    model = pr.AdditiveRiskModel(schema).fit(frame.select("age", "housing"), frame["bad"])
    holes = frame.select(
        age=pl.when(pl.Series(np.arange(700) == 9)).then(None).otherwise(pl.col("age")), housing="housing"
    )
    (issue,) = (i for i in pr.quality(model, holes).issues if i.severity == "high")
    assert (issue.what, issue.feature) == ("forbidden", "age")
    with pytest.raises(DataError, match="needs a model of plainrisk"):
        pr.quality(np.zeros(3), frame)
