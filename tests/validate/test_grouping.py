"""Groups by bands and intersections, in evaluate and fairness; a challenger as a column."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.intervals import wilson
from plainrisk.validate.grouping import groups_by


@pytest.fixture(scope="module")
def credit():
    made = pr.datasets.make_credit(1200, 3, backend="polars")
    model = pr.make_classifier("ARM1", made.schema).fit(made.frame[:600], made.target[:600]).annotate(cutoff=0.2)
    rows = made.frame[600:]
    other = np.clip(model.predict_proba(rows)[:, 1] + np.linspace(-0.05, 0.05, 600), 0, 1)
    return model, rows.with_columns(pl.Series("bad", made.target[600:]), pl.Series("other", other))


def members(labels):
    return {name: rows.tolist() for name, rows in labels.groups().items()}


def test_bands_by_hand(credit):
    _, frame = credit
    age = frame["age"].to_numpy()
    found = members(groups_by("fairness", frame, "age", [25, 35, 65]))
    expected = {
        "below 25": age < 25,
        "25 to 34": (age >= 25) & (age < 35),
        "35 to 64": (age >= 35) & (age < 65),
        "65 and over": age >= 65,
    }
    assert found == {name: np.flatnonzero(rows).tolist() for name, rows in expected.items() if rows.any()}
    thirds = members(groups_by("fairness", frame, "income", 3))
    known = frame["income"].is_not_null().to_numpy()
    sizes = [len(rows) for name, rows in thirds.items() if name != "(no group)"]
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) <= 5  # rounded incomes stay together
    assert len(thirds.get("(no group)", [])) == (~known).sum()
    assert len(members(groups_by("fairness", frame, "debt_ratio"))) >= 5  # many numbers are in bands unless asked
    assert list(members(groups_by("fairness", frame, "inquiries"))) == list(
        map(str, sorted(frame["inquiries"].unique()))
    )


def test_codes_are_groups_of_their_own():
    schema = pr.Schema(features={"months": {"special_values": [-9]}})
    rng = np.random.default_rng(1)
    X = pl.DataFrame({"months": [*rng.integers(0, 60, 290).tolist(), *[-9] * 10]})
    model = pr.AdditiveRiskModel(schema).fit(X, rng.integers(0, 2, 300))
    found = members(groups_by("evaluate", X, "months", [12], model.form_))
    assert list(found) == ["below 12", "12 and over", "code -9"]
    assert found["code -9"] == list(range(290, 300))


def test_intersections_are_compared_like_any_groups(credit):
    model, frame = credit
    found = pr.fairness(model, frame, by=("age", "housing"), bands={"age": [30]})
    for group in found.groups:
        band, _, housing = group.group.partition(", ")
        own = frame.filter((pl.col("age") < 30) == (band == "below 30"), pl.col("housing") == housing)
        approved = int((model.predict_proba(own)[:, 1] < 0.2).sum())
        assert group.rows == len(own)
        assert vars(group.approval) == pytest.approx(vars(wilson(approved, len(own))))
        assert group.small == (len(own) < 30 or min(own["bad"].sum(), len(own) - own["bad"].sum()) < 5)
    assert sum(group.rows for group in found.groups) == 600
    measured = pr.evaluate(model, frame, by=("age", "housing"), bands={"age": [30]})
    assert {name: one.rows for name, one in measured.groups.items()} == {g.group: g.rows for g in found.groups}
    assert pr.evaluate(model, frame, by=frame["age"], bands=[30]).groups["below 30"].rows == (frame["age"] < 30).sum()


def test_bands_that_can_not_be_meant(credit):
    model, frame = credit
    with pytest.raises(DataError, match="bands must be a number of bands, or rising numbers"):
        pr.fairness(model, frame, by="age", bands=[35, 25])
    with pytest.raises(DataError, match="there may be 2 to 100 bands, not 1"):
        pr.evaluate(model, frame, by="age", bands=1)
    with pytest.raises(DataError, match="bands are of numbers, and the groups are texts"):
        pr.evaluate(model, frame, by="housing", bands=[2])
    with pytest.raises(DataError, match=r"bands are of \['income'\], and by names \['age'\]"):
        pr.evaluate(model, frame, by="age", bands={"income": [2]})
    with pytest.raises(DataError, match=r"there is no column 'agee'.*'age'"):
        pr.fairness(model, frame, by=("agee", "housing"))


def test_a_challenger_may_be_a_column(credit):
    model, frame = credit
    found = pr.evaluate(model, frame, against="other")
    assert found.p_value == pr.evaluate(model, frame, against=frame["other"].to_numpy()).p_value
    assert found.against["auc"] == pr.evaluate(frame["other"].to_numpy(), None, frame["bad"])["auc"]
    with pytest.raises(DataError, match="there is no column 'othr'"):
        pr.evaluate(model, frame, against="othr")
