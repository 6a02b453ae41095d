from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from plainrisk.errors import DataError, PlainriskWarning, SchemaError
from plainrisk.schema import Feature, Schema
from plainrisk.schema.check import suspicious_codes
from plainrisk.schema.findings import by_feature, in_words


def seen_in(schema, name):
    """What the draft says of a feature, by the kind of finding."""
    return {finding.kind: finding.text for finding in schema.findings if finding.feature == name}


def codes(*values, **counted):
    """The suspicious codes of a column, from its values and further values with their counts."""
    column = [*values, *(v for v, n in counted.get("more", {}).items() for _ in range(n))]
    return suspicious_codes(*np.unique(np.array(column, dtype=float), return_counts=True))


# ---- codes

AGES = [age for age in range(18, 91) for _ in range(90 - age + 2)]


@pytest.mark.parametrize(
    ("values", "more", "expected"),
    [
        ([*range(20)] * 5, {-9: 9}, (-9,)),
        ([*range(20)] * 5, {-9: 9, -8: 1, -7: 40}, (-9, -8, -7)),
        ([*range(2, 800)], {-9: 9, -8: 5}, (-9, -8)),
        ([0, 1] * 50, {-9: 9}, (-9,)),
        ([*range(20)] * 5, {-1: 9}, (-1,)),
        (list(np.linspace(0, 1, 50)), {-1: 9}, (-1,)),
        ([*range(20)] * 5, {-999: 9}, (-999,)),
        ([*range(18)] * 5, {96: 3, 98: 60}, (96, 98)),
        ([1, 2, 3, 4, 5] * 40, {99: 10}, (99,)),
        ([*range(98)] * 5, {999: 10}, (999,)),
        ([*range(50_000)], {99_999_999: 10}, (99_999_999,)),
        (AGES, {999: 20}, (999,)),
        (AGES, {99: 300}, (99,)),
        ([*range(-40, 50)] * 3, {-999: 10}, (-999,)),
        ([*range(20)] * 5, {-9: 9, 99: 9}, (-9, 99)),
        ([*range(18)] * 5, {995: 60}, (995,)),
        ([*range(-17912, 0, 7)], {365243: 500}, (365243,)),  # days employed
    ],
)
def test_codes_that_must_be_found(values, more, expected):
    assert codes(*values, more=more) == expected


@pytest.mark.parametrize(
    ("values", "more"),
    [
        ([-2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8] * 30, {}),  # months behind with a payment
        ([-1, 0, 1] * 30, {}),  # a short scale
        ([-1, 1] * 30, {}),
        ([*range(-50, 200)] * 3, {-1: 40, -9: 20}),  # a balance
        ([*range(20)] * 5, {-9: 1}),  # seen once: an outlier
        ([*range(20)] * 5, {-9: 2}),
        ([*range(20)] * 5, {-35: 40}),  # not written like a code
        ([*range(0, 101, 5)] * 3, {-5: 40}),  # the next step of the scale
        ([*range(21, 110)] * 3, {}),  # ages with 96 to 99 among their neighbors
        ([*range(21, 98)] * 3, {98: 2, 99: 1}),
        ([*range(21, 95)] * 3, {96: 3, 97: 2, 98: 2, 99: 9}),
        ([*range(101)] * 3, {99: 50}),  # a percentage
        ([*range(18)] * 5, {98: 1}),
        ([*range(18)] * 5, {95: 60}),
        ([*range(18)] * 5, {89: 60}),
        ([*range(0, 90_000, 7)], {99_999: 3}),  # a large income among large ones
        (list(np.linspace(0, 20, 50)), {98.5: 60}),
        ([*range(-17912, 0, 7)], {365243: 2}),  # an outlier
        ([*range(-17912, 0, 7)], {36524: 500}),  # apart, but not far out
        ([98] * 20, {}),
        ([0, 98] * 20, {}),  # no scale to stand apart from
    ],
)
def test_measurements_that_must_not_be_called_codes(values, more):
    assert codes(*values, more=more) == ()


@settings(deadline=None)
@given(
    st.lists(st.integers(-50, 150), min_size=1, max_size=60),
    st.integers(1, 40),
)
def test_codes_are_values_of_the_column_and_never_all_of_it(values, times):
    distinct, counts = np.unique(np.array(values * times, dtype=float), return_counts=True)
    found = suspicious_codes(distinct, counts)
    assert list(found) == sorted(set(found) & set(distinct))
    assert len(distinct) - len(found) >= min(2, len(distinct))


# ---- kinds


def test_kinds_come_from_types_whatever_the_library():
    columns = {
        "whole": [1, 2] * 10,
        "real": [0.5, None] * 10,
        "word": ["a", "b"] * 10,
        "truth": [True, False] * 10,
    }
    expected = {"whole": "continuous", "real": "continuous", "word": "categorical", "truth": "categorical"}
    for frame in (columns, pd.DataFrame(columns), pl.DataFrame(columns)):
        schema = Schema.infer(frame)
        assert {name: f.kind for name, f in schema.features.items()} == expected
        assert schema.target is None
        assert schema.positive is None
        assert schema.subscales == {}
        assert [(f.feature, f.text) for f in schema.findings] == [("real", "50.0% missing")]  # no target, no rates


def test_categorical_types_are_categorical_even_if_they_hold_numbers():
    frame = pd.DataFrame({"code": pd.Series([1, 2, 3] * 5).astype("category")})
    assert Schema.infer(frame).features["code"].kind == "categorical"
    frame = pl.DataFrame({"code": pl.Series(["1", "2"] * 5, dtype=pl.Enum(["1", "2"]))})
    assert Schema.infer(frame).features["code"].kind == "categorical"


def test_notes_on_text_that_is_nearly_numbers_and_on_many_categories(rng):
    n = 40
    frame = {
        "income": [str(i % 20) for i in range(n - 1)] + ["NA"],
        "amount": [f"{i * 7 % 20 + i % 3}" for i in range(n)],
        "branch": [f"{i % 15:02d}" for i in range(n)],
        "name": [f"n{i // 1.5:.0f}" for i in range(n)],
        "word": ["a", "b"] * (n // 2),
        "same": [3] * n,
    }
    with pytest.warns(PlainriskWarning, match="left out because it is the same in every row: 'same'"):
        schema = Schema.infer(frame)
    assert seen_in(schema, "income") == {"text": "'NA' read as missing", "missing": "2.5% missing"}
    assert schema.features["income"] == Feature(null_values=("NA",))
    assert seen_in(schema, "amount") == {"text": "numbers as text"}
    assert schema.features["amount"] == Feature(read="number")
    why = "text, since '00' has a leading zero, as codes have: a number needs kind = 'continuous'"
    assert seen_in(schema, "branch") == {"text": why}
    assert re.fullmatch(r"\d+ categories in 40 rows: group them, or leave it out", seen_in(schema, "name")["many"])
    assert seen_in(schema, "word") == {}


# ---- directions


def note_of(values, bad, **options):
    return seen_in(Schema.infer({"x": values, "bad": bad}, "bad", **options), "x")["direction"]


def test_a_rising_risk_and_its_mirror(rng):
    x = rng.normal(size=4000)
    bad = (rng.random(4000) < 1 / (1 + np.exp(1 - x))).astype(int)
    auc = roc_auc_score(bad, x)
    assert auc > 0.65
    rising = f"candidate direction: increasing (AUC {auc:.2f}, bad rate rises in 9 of 9 steps)"
    assert note_of(x, bad) == rising
    assert note_of(-x, bad) == rising.replace("increasing", "decreasing").replace("rises", "falls")
    assert note_of(x, 1 - bad) == rising.replace("increasing", "decreasing").replace("rises", "falls")
    assert note_of(np.exp(x), bad) == rising  # only the order of the values matters
    holes = np.where(np.arange(4000) % 7 == 0, np.nan, x)
    seen = ~np.isnan(holes)
    assert f"AUC {roc_auc_score(bad[seen], x[seen]):.2f}" in note_of(holes, bad)


def test_no_relation_a_valley_and_too_few_rows_have_no_direction(rng):
    x = rng.normal(size=4000)
    noise = (rng.random(4000) < 0.3).astype(int)
    assert note_of(x, noise).startswith("no clear direction (AUC 0.5")
    valley = (rng.random(4000) < np.where(np.abs(x + 0.3) > 1, 0.6, 0.1)).astype(int)
    assert roc_auc_score(valley, x) > 0.55  # beyond noise, and yet not monotone
    assert note_of(x, valley).startswith("no clear direction")
    assert note_of([1, 2, 5, 3, 4, 6], [0, 0, 0, 1, 1, 1]).startswith("no clear direction (AUC 0.78")


def test_codes_do_not_count_for_the_direction(rng):
    x = rng.integers(0, 15, size=3000).astype(float)
    bad = (rng.random(3000) < 0.1 + 0.04 * x).astype(int)
    x[:300], bad[:300] = -9, 1
    schema = Schema.infer({"x": x, "bad": bad}, "bad")
    feature, seen = schema.features["x"], seen_in(schema, "x")
    auc = roc_auc_score(bad[300:], x[300:])
    assert feature.special_values == (-9.0,)
    assert feature.direction == "none"
    assert seen["direction"].startswith(f"candidate direction: increasing (AUC {auc:.2f}, ")
    assert seen["code"] == "-9 may be a code: check"
    assert seen["leak"].startswith("may be a leak: 100.0% bad of 300 rows where it is -9")


def test_a_feature_with_measurements_of_one_outcome_only():
    x = [*range(20)] * 5 + [-9] * 50
    bad = [0] * 100 + [1] * 50
    with pytest.warns(PlainriskWarning, match="left out: may be a leak: AUC 1.000 by itself"):
        assert note_of(x, bad).startswith("no clear direction (one outcome only)")


def test_a_binary_column_stays_continuous_with_one_step():
    schema = Schema.infer({"x": [0, 1] * 100, "bad": [0, 1] * 90 + [1, 0] * 10}, "bad")
    assert schema.features["x"] == Feature()
    seen = seen_in(schema, "x")
    assert seen["direction"] == "candidate direction: increasing (AUC 0.90, bad rate rises in 1 of 1 steps)"
    assert seen["flag"] == "a flag, 1 in 50.0% of its rows"


# ---- the outcome


@pytest.mark.parametrize(
    ("values", "expected", "warned"),
    [
        ([0, 1, 1, 1], 1, None),
        ([0.0, 1.0, 1.0, 1.0], 1, None),
        (["0", "1", "1", "1"], "1", None),
        ([False, True, True, True], True, None),
        (["Bad", "Good", "Bad", "Bad"], "Bad", "'Bad' of 'y' was assumed to be the bad outcome, because of its name"),
        ([1, 2, 1, 1], 2, "'2' of 'y' was assumed to be the bad outcome, because it is rarer"),
        (["b", "a", "b", "b"], "a", "'a' of 'y' was assumed to be the bad outcome, because it is rarer"),
        (["b", "a", "b", "a"], "b", "'b' of 'y' was assumed to be the bad outcome, because it is rarer"),
    ],
)
def test_the_bad_outcome_is_known_or_guessed_aloud(values, expected, warned):
    frame = {"x": [1, 5, 2, 2], "y": values}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schema = Schema.infer(frame, "y")
    assert schema.positive == expected
    assert type(schema.positive) is not bool or expected is True
    assert [w.category for w in caught] == ([PlainriskWarning] if warned else [])
    assert warned is None or warned in str(caught[0].message)
    assert [p for p in schema.check(frame) if p.severity == "error"] == []


def test_a_given_outcome_is_kept_and_turns_the_direction(rng):
    frame = {"x": [1, 2, 3, 4] * 50, "y": ["no", "no", "yes", "yes"] * 45 + ["yes", "yes", "no", "no"] * 5}
    up, down = (Schema.infer(frame, "y", positive=p) for p in ("yes", "no"))
    assert (up.positive, down.positive) == ("yes", "no")
    assert "increasing" in seen_in(up, "x")["direction"]
    assert "decreasing" in seen_in(down, "x")["direction"]
    assert "y" not in up.features


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (
            {"x": [1, 2], "bad": [0, 1]},
            {"target": "bda"},
            "target 'bda' is not in the data. Did you mean 'bad'",
        ),
        ({"x": [1, 2, 3], "y": ["a", "b", "c"]}, {"target": "y"}, "target 'y' has 3 labels"),
        ({"x": [1, 2], "y": [1, 1]}, {"target": "y"}, "target 'y' is '1' in every row"),
        ({"x": [1, 2, 3], "y": [0, 1, None]}, {"target": "y"}, "target 'y' is missing in row 2"),
        ({"x": [1, 2], "y": [0, 1]}, {"target": "y", "positive": 2}, "positive label '2' is not among those"),
    ],
)
def test_outcomes_that_cannot_be_used(frame, options, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        Schema.infer(frame, **options)


def test_no_rows_no_draft():
    with pytest.raises(DataError, match="there are no rows, or no columns, to draft a schema from"):
        Schema.infer({"x": []})


# ---- what is left out


def test_columns_that_are_no_features_are_left_out_with_one_warning():
    n = 12
    frame = pl.DataFrame(
        {
            "": [3] * n,
            "ID": [7, 5] * (n // 2),
            "Unnamed: 0": list(range(n)),
            "counter": list(range(100, 100 + n)),
            "company_id": [i * i for i in range(n)],
            "person": [f"p{i}" for i in range(n)],
            "nothing": [None] * n,
            "nor_this": pl.Series([None] * n, dtype=pl.Float64),
            "opened": pl.Series(["2020-01-01", "2021-01-01"] * (n // 2)).str.to_date(),
            "list": [[1, 2]] * n,
            "years": [20, 30, 40] * (n // 3),
            "branch_id": [1, 2, 3] * (n // 3),
            "job": ["a", "b", "c"] * (n // 3),
        }
    )
    with pytest.warns(PlainriskWarning, match=r"^Schema\.infer: 7 remarks\n") as caught:
        schema = Schema.infer(frame)
    assert list(schema.features) == ["years", "branch_id", "job"]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert str(caught[0].message).splitlines()[1:] == [
        "  - left out because its name says that it is a row number: '', 'ID', 'Unnamed: 0'.",
        "  - left out because it rises by 1 from row to row: 'counter'.",
        "  - left out because its name and its values say that it is a row number: 'company_id'.",
        "  - left out because it differs in every row: 'person'.",
        "  - left out because it is missing in every row: 'nothing', 'nor_this'.",
        "  - left out because it holds dates; make them numbers, such as months until today: 'opened'.",
        "  - left out because it holds more than one value per row: 'list'.",
    ]


def test_text_with_one_repeat_is_kept_with_a_note():
    schema = Schema.infer({"x": ["p0", *(f"p{i}" for i in range(11))]})
    assert seen_in(schema, "x") == {"many": "11 categories in 12 rows: group them, or leave it out"}


def test_a_few_rows_prove_no_numbering():
    schema = Schema.infer({"x": [1, 2, 3], "y": ["a", "b", "c"]})
    assert list(schema.features) == ["x", "y"]


def test_numpy_dates_are_left_out_too():
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    with pytest.warns(PlainriskWarning, match="it holds dates"):
        assert list(Schema.infer({"x": [1, 2], "d": dates}).features) == ["x"]


@pytest.mark.parametrize(
    "dates",
    [
        ["2018-12-31", "2017-01-02"],
        ["2018-12-31", " "],
        ["2018-12-31 10:11:12", "2017-01-02T00:00:00"],
        ["31.12.2018", "1.2.17"],
        ["12/31/2018", "01/02/2017"],
        ["Dec-2018", "Jan-2017"],
        ["31-Dec-18", "1-jan-17"],
        ["December 31, 2018", "May 2, 2017"],
    ],
)
def test_dates_as_text_are_left_out(dates):
    with pytest.warns(PlainriskWarning, match="it holds dates as text; make them numbers.*'d'"):
        assert list(Schema.infer({"x": [1, 2] * 10, "d": dates * 10}).features) == ["x"]


def test_words_and_versions_are_no_dates():
    frame = {"a": ["Mayor", "Decent"] * 10, "b": ["1.2", "3.4"] * 10, "c": ["12-2018-x", "A1"] * 10}
    assert list(Schema.infer(frame).features) == ["a", "b", "c"]


def test_numbers_that_name_rows_or_dates_are_left_out(rng):
    n = 40
    frame = {
        "shuffled": rng.permutation(np.arange(500, 500 + n)),
        "day": np.tile(20181201 + np.arange(20), 2),
        "amount": rng.integers(0, 10**7, n),
    }
    with pytest.warns(PlainriskWarning, match="2 remarks") as caught:
        schema = Schema.infer(frame)
    assert list(schema.features) == ["amount"]
    message = str(caught[0].message)
    assert "it is a row number, in another order: 'shuffled'" in message
    assert "it holds dates as numbers (20181231); make them months until today: 'day'" in message


# ---- what else is seen


def outcomes(rng, n=3000):
    x = rng.normal(size=n)
    return x, (rng.random(n) < 1 / (1 + np.exp(2 - x))).astype(int)


def test_leaks(rng):
    x, bad = outcomes(rng)
    noise = rng.normal(size=len(x))
    frame = {
        "fair": x,
        "knows": bad + 0.3 * noise,
        "valley": np.where(bad == 1, rng.uniform(-1, 1, len(x)), np.where(noise > 0, 3 + noise, -3 + noise)),
        "only_bads": np.where((bad == 1) & (noise > 0), noise, np.nan),
        "status": np.where(bad == 1, "lost", np.where(noise > 0, "paid", "open")),
        "recoveries": noise,
        "bad": bad,
    }
    with pytest.warns(PlainriskWarning, match=r"left out: may be a leak: AUC 0\.99. by itself .*'knows'"):
        schema = Schema.infer(frame, "bad")
    assert list(schema.features) == ["fair"]
    assert "\n# [features.knows]\n# left out: may be a leak: AUC 0.99" in schema.to_toml()
    assert "# [features.status]\n# left out: may be a leak: AUC 1.000 by itself" in schema.to_toml()
    assert '# kind = "categorical"' in schema.to_toml()
    anyway = schema.replace(features={**schema.features, "knows": {}, "status": {"kind": "categorical"}})
    notes = {problem.feature: problem.message for problem in anyway.check(frame) if problem.severity == "note"}
    assert notes["knows"].startswith("feature 'knows' may be a leak: AUC 0.99")
    assert notes["status"].startswith("feature 'status' may be a leak: AUC 1.000")
    assert "fair" not in notes
    leaks = {f.feature: f for f in schema.findings if f.kind == "leak"}
    assert list(leaks) == ["knows", "valley", "only_bads", "status", "recoveries"]
    assert leaks["knows"].figures["auc"] == pytest.approx(roc_auc_score(bad, frame["knows"]))
    assert leaks["only_bads"].figures["where"] == "not missing"
    assert leaks["recoveries"].text.startswith("may be a leak by its name")
    assert list(by_feature(schema.findings))[-1] == "fair", "alarms come first"


def test_a_few_rows_are_no_leak():
    schema = Schema.infer({"x": [0, 0, 0, 1, 1, 1] * 4, "bad": [0, 0, 0, 1, 1, 1] * 4}, "bad")
    assert "leak" not in seen_in(schema, "x")


def test_near_duplicates(rng):
    x, _ = outcomes(rng)
    holes = rng.random(len(x)) < 0.9
    frame = {
        "a": x,
        "copy": x,
        "minus": -np.exp(x),
        "like": x + 0.01 * rng.normal(size=len(x)),
        "other": x + rng.normal(size=len(x)),
        "sparse": np.where(holes, np.nan, rng.normal(size=len(x))),
        "as_sparse": np.where(holes, np.nan, rng.normal(size=len(x))),
        "job": np.where(x > 0, "a", np.where(x > -1, "b", "c")),
        "relabeled": np.where(x > 0, "z", np.where(x > -1, "m", "n")),
    }
    schema = Schema.infer(frame)
    found = {f.feature: f for f in schema.findings if f.kind == "duplicate"}
    assert {name: f.figures["other"] for name, f in found.items()} == {
        "copy": "a",
        "minus": "a",
        "like": "a",
        "relabeled": "job",
    }
    assert found["copy"].text == "the same as 'a'"
    assert found["minus"].figures["rank_correlation"] == pytest.approx(-1.0)


def test_missing_share_rates_and_information_value(rng):
    x, bad = outcomes(rng)
    holes = rng.random(len(x)) < 0.2
    schema = Schema.infer({"x": np.where(holes, np.nan, np.round(x)), "bad": bad}, "bad")
    figures = {f.kind: f.figures for f in schema.findings}
    assert figures["missing"] == {
        "share": holes.mean(),
        "rows": holes.sum(),
        "bad_rate": pytest.approx(bad[holes].mean()),
        "bad_rate_of_others": pytest.approx(bad[~holes].mean()),
    }
    text = Schema.infer({"x": np.where(x > 0.5, "up", "down"), "bad": bad}, "bad")
    good_up, bad_up = ((x > 0.5)[bad == k].mean() for k in (0, 1))
    expected = (good_up - bad_up) * np.log(good_up / bad_up)
    expected += (bad_up - good_up) * np.log((1 - good_up) / (1 - bad_up))
    value = next(f for f in text.findings if f.kind == "value")
    assert value.figures["information_value"] == pytest.approx(expected)


def test_subscales_by_name():
    names = ["debt", "PAY_0", "PAY_2", "BILL_AMT1", "BILL_AMT2", "mths_since_a", "mths_since_b", "mths_open"]
    schema = Schema.infer({name: [k, 1, 2, 3] for k, name in enumerate(names)})
    found = {f.feature: f.figures["features"] for f in schema.findings if f.kind == "subscale"}
    assert found == {"PAY": names[1:3], "BILL_AMT": names[3:5], "mths": names[5:]}
    assert schema.subscales == {}
    alike = Schema.infer({f"Attr{k}": [k, 1, 2, 3] for k in range(5)})
    assert [f for f in alike.findings if f.kind == "subscale"] == []


def test_findings_are_comments_in_the_file_and_no_part_of_the_schema(rng, tmp_path):
    x, bad = outcomes(rng, 300)
    frame = {"late_1": x, "late_2": bad + x, "a\nb = 1": x**2, "id": x, "bad": bad}
    with pytest.warns(PlainriskWarning, match="'id'"):
        schema = Schema.infer(frame, "bad")
    schema.save(tmp_path / "s.toml")
    text = (tmp_path / "s.toml").read_text()
    for name, own in by_feature(schema.findings).items():
        assert f"# {in_words(own)}\n" in text, name
    assert '# late = ["late_1", "late_2"]' in text
    assert "# left out because its name says that it is a row number: 'id'" in text
    loaded = Schema.load(tmp_path / "s.toml")
    assert loaded == schema
    assert loaded.findings == ()
    assert schema.edit("late_1", direction="increasing").findings == ()
    schema.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == schema


def test_large_tables_are_sampled_the_same_way_each_time(rng, monkeypatch):
    monkeypatch.setattr("plainrisk.schema.draft.MOST_ROWS", 1000)
    monkeypatch.setattr("plainrisk.schema.evidence.MOST_ROWS", 1000)
    x, bad = outcomes(rng)
    with pytest.warns(PlainriskWarning, match="figures are those of 1,000 of 3,000 rows"):
        schema = Schema.infer({"x": x, "bad": bad}, "bad")
    rows = np.arange(1000) * 3
    assert schema.findings == Schema.infer({"x": x[rows], "bad": bad[rows]}, "bad").findings


# ---- real data


def read(folder, file):
    return pl.read_csv(folder / file, infer_schema_length=None, null_values=["NA", "?"])


def infer(frame, target, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return Schema.infer(frame, target, **options)


def special(schema):
    return {name: f.special_values for name, f in schema.features.items() if f.special_values}


def test_heloc(data_folder, paper_folder):
    schema = infer(read(data_folder, "heloc.csv.gz"), "RiskPerformance")
    paper = json.loads((paper_folder / "schemas.json").read_text())["heloc"]
    assert schema.positive == "Bad"
    assert sorted(schema.features) == sorted(paper["features"])
    found = special(schema)
    assert len(found) == 23
    assert {v for values in found.values() for v in values} == {-9.0, -8.0, -7.0}
    assert found["MSinceMostRecentDelq"] == (-9.0, -8.0, -7.0)
    assert found["NumTotalTrades"] == (-9.0,)
    # Experts gave the paper's directions; where the draft names one, it must not contradict them.
    words = {1: "increasing", -1: "decreasing"}
    candidates = {name: seen_in(schema, name)["direction"] for name, sign in paper["monotone"].items() if sign}
    clear = {name: note for name, note in candidates.items() if note.startswith("candidate")}
    assert len(clear) >= 0.9 * len(candidates)
    agreeing = [name for name, note in clear.items() if words[paper["monotone"][name]] in note]
    assert agreeing == list(clear)


def test_give_me_some_credit(data_folder):
    frame = read(data_folder, "give_me_some_credit.csv.gz")
    with pytest.warns(PlainriskWarning, match="is a row number: ''"):
        schema = Schema.infer(frame, "SeriousDlqin2yrs")
    counters = [name for name in frame.columns if "PastDue" in name or "DaysLate" in name]
    assert len(counters) == 3
    assert special(schema) == dict.fromkeys(counters, (96.0, 98.0))
    age = "candidate direction: decreasing (AUC 0.64, bad rate falls in 9 of 9 steps)"
    assert seen_in(schema, "age")["direction"] == age
    assert seen_in(schema, "MonthlyIncome")["missing"] == "19.8% missing, bad rate 5.6% (others 6.9%)"
    assert schema.positive == 1


def test_taiwan_has_scales_and_no_codes(data_folder):
    schema = infer(read(data_folder, "taiwan_credit_default.csv.gz"), "default.payment.next.month")
    assert special(schema) == {}
    assert "ID" not in schema.features
    assert len(schema.features) == 23


def test_lending_club_has_leaks_and_copies(data_folder):
    schema = infer(pl.read_parquet(data_folder / "lending_club_2018_sample.parquet"), "loan_status")
    found = {kind: {f.feature for f in schema.findings if f.kind == kind} for kind in ("leak", "duplicate", "left out")}
    assert found["leak"] == {"last_pymnt_amnt", "last_pymnt_amnt.1", "total_rec_late_fee"}
    assert found["duplicate"] == {"grade.1", "sub_grade.1", "title"}
    assert found["left out"] == {"id", "issue_d", "emp_title"} | found["leak"]


def test_polish_companies_that_fail_do_not_report(data_folder):
    schema = infer(read(data_folder, "polish_bankruptcy_5year.csv.gz"), "class")
    leaks = [f for f in schema.findings if f.kind == "leak"]
    assert [(f.feature, f.figures["where"]) for f in leaks] == [("Attr21", "missing")]
    assert {f.figures["other"] for f in schema.findings if f.kind == "duplicate"} == {"Attr7", "Attr8", "Attr16"}
    assert [f for f in schema.findings if f.kind == "subscale"] == []


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("heloc.csv.gz", "RiskPerformance"),
        ("german_credit.csv.gz", "class"),
        ("australian_credit.csv.gz", "A15"),
        ("japanese_credit_crx.csv.gz", "A16"),
        ("taiwan_credit_default.csv.gz", "default.payment.next.month"),
        ("polish_bankruptcy_1year.csv.gz", "class"),
        ("polish_bankruptcy_5year.csv.gz", "class"),
        ("lending_club_2018_sample.parquet", "loan_status"),
    ],
)
def test_a_draft_fits_the_data_it_was_drawn_from_and_comes_back_from_a_file(data_folder, tmp_path, file, target):
    frame = pl.read_parquet(data_folder / file) if file.endswith("parquet") else read(data_folder, file)
    schema = infer(frame, target)
    assert [p.message for p in schema.check(frame) if p.severity == "error"] == []
    assert not any("may be no measurement" in p.message for p in schema.check(frame))
    schema.save(tmp_path / "draft.toml")
    assert Schema.load(tmp_path / "draft.toml") == schema
