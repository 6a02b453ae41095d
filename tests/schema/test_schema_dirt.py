"""What a schema says of dirt, and what a draft finds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import PlainriskWarning, SchemaError
from plainrisk.explain import SeenRows
from plainrisk.schema import Feature, Schema
from plainrisk.schema.formats import text_format


def texts_of(schema, name, kind):
    return [finding.text for finding in schema.findings if finding.feature == name and finding.kind == kind]


# ---- rules


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"read": "percnt"}, "feature 'x': read must be one of 'number', 'percent', 'amount', 'decimal_comma'"),
        ({"kind": "categorical", "read": "percent"}, "feature 'x': read is for continuous features"),
        ({"null_values": ["NA", " NA"]}, "feature 'x': null_values lists 'NA' twice"),
        ({"null_values": ["-9"]}, "feature 'x': null_values holds the number '-9'.*is a special value"),
        ({"read": "amount", "null_values": ["$0"]}, r"null_values holds the number '\$0'"),
        ({"kind": "categorical", "categories": ["?", "a"], "null_values": ["?"]}, r"'\?' is in null_values, and so no"),
    ],
)
def test_rules_that_contradict_themselves(fields, message):
    with pytest.raises(SchemaError, match=message):
        Schema(features={"x": fields})


def test_rules_survive_every_file(tmp_path):
    fields = {
        "x": {"read": "decimal_comma", "null_values": ["", "NA"]},
        "job": {"kind": "categorical", "null_values": ["?"]},
    }
    schema = Schema(features=fields)
    for name in ("s.toml", "s.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema
    assert Feature() == Feature(read=None, null_values=())
    assert schema.kinds == {"x": "text", "job": "categorical"}


def test_a_rule_is_part_of_the_fit_and_cannot_be_annotated():
    with pytest.raises(SchemaError, match="read"):
        Schema(features={"x": {}}).annotate({"features": {"x": {"read": "percent"}}})


# ---- drafts


@pytest.mark.parametrize(
    ("labels", "read", "nulls"),
    [
        (["1", "2", "NA"], "number", ("NA",)),
        (["1", "2", "None"], "number", ("None",)),
        (["a", "b", "none"], None, ()),  # an answer, among categories
        (["a", "b", "n/a", "."], None, (".", "n/a")),
        (["+", "-"], None, ()),
        (["True", "False", "NA"], None, ("NA",)),
        (["01", "02", "NA"], None, ("NA",)),  # codes
        (["1%", "2.5%"], "percent", ()),
        (["€ 5", "1,000"], "amount", ()),
        (["1,5", "2"], "decimal_comma", ()),
        ([*map(str, range(60)), "refused"], "number", ("refused",)),
        ([*map(str, range(20)), "refused"], None, ()),
        ([*map(str, range(60)), "a", "b", "c", "d"], None, ()),
    ],
)
def test_how_texts_are_written(labels, read, nulls):
    found = text_format(labels)
    assert (found.read, found.nulls) == (read, nulls)


def test_numbers_with_gaps_are_never_left_out_for_their_many_categories(rng):
    n = 6000
    income = [f"{x:.2f}" for x in np.exp(rng.normal(8, 1, n))]
    income[::7] = ["NA"] * len(income[::7])
    schema = Schema.infer({"income": income, "bad": rng.integers(0, 2, n)}, "bad")
    assert schema.features == {"income": Feature(null_values=("NA",))}
    assert texts_of(schema, "income", "text") == ["'NA' read as missing"]
    assert "# 'NA' read as missing; " in schema.to_toml()
    assert 'null_values = ["NA"]' in schema.to_toml()


def test_texts_that_the_caller_says_are_missing():
    frame = {"x": ["1", "2", "nothing"] * 5, "job": ["a", "b", "nothing"] * 5}
    schema = Schema.infer(frame, missing=["nothing"])
    assert schema.features["x"] == Feature(null_values=("nothing",))
    assert schema.features["job"] == Feature(kind="categorical", null_values=("nothing",))


def test_thousands_that_could_be_decimals_are_said():
    schema = Schema.infer({"x": ["1,100", "2,200", "300"] * 5})
    assert schema.features["x"].read == "amount"
    assert "if its commas are decimal commas, read = 'decimal_comma'" in texts_of(schema, "x", "text")


@pytest.mark.filterwarnings("ignore:Schema.infer. assumed to be protected")  # a zip code
def test_codes_that_look_like_numbers_are_suspected(rng):
    n = 300
    frame = {
        "ZipCode": rng.integers(10000, 99999, n),
        "naics": rng.choice([441, 722, 531], n),
        "loan_type": rng.integers(0, 5, n),
        "UrbanRural": rng.choice([0, 1, 2], n),
        "flag": rng.choice([0, 1], n),
        "income": rng.integers(1000, 9000, n),
        "rate": rng.random(n),
    }
    schema = Schema.infer(frame)
    found = {f.feature: f.text for f in schema.findings if f.kind == "category"}
    assert list(found) == ["ZipCode", "naics", "loan_type", "UrbanRural"]
    assert found["naics"] == "may be codes, since its name suggests 'naics': if so, kind = 'categorical'"
    assert found["UrbanRural"] == "0, 1, 2 may be codes and not counts: if so, kind = 'categorical'"


def test_dates_with_holes_are_named_and_left_out():
    with pytest.warns(PlainriskWarning, match="left out because it holds dates as text; make them numbers.*'opened'"):
        schema = Schema.infer({"opened": ["2018-12-31", "2017-01-02", "NA"] * 5, "x": [1, 5, 7] * 5})
    assert list(schema.features) == ["x"]


def test_identifiers_are_commented_out(rng):
    numbers = rng.permutation(20_000)[:6000] + 100
    with pytest.warns(PlainriskWarning, match="left out: whole numbers that differ in every row"):
        schema = Schema.infer({"account": numbers, "x": rng.random(6000)})
    assert list(schema.features) == ["x"]
    assert "# [features.account]\n# left out: whole numbers that differ in every row" in schema.to_toml()
    anyway = Schema(features={"account": {}})
    assert "Is it an identifier?" in anyway.check({"account": numbers})[0].message


# ---- rows of the training set


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_evaluate_knows_the_rows_of_training():
    german = pr.datasets.load("german")
    model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame[:600], german.target[:600])
    before = "These seem to be the rows that the model was fitted to."
    seen = pr.evaluate(model, german.frame[:600], german.target[:600])
    assert seen.seen_before
    assert seen.notes[0].startswith(before)
    assert seen.to_dict()["notes"] == list(seen.notes)
    assert before in repr(seen)
    other = pr.evaluate(model, german.frame[400:], german.target[400:])
    assert not other.seen_before
    assert before not in repr(other)


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", pr.CLASSIFIERS)
def test_every_model_knows_the_rows_of_training(name, weighted, tmp_path, rng):
    if "XGB" in name:
        pytest.importorskip("xgboost")
    credit = pr.datasets.make_credit(1000, seed=3)
    first, second = (credit.frame[:500], credit.target[:500]), (credit.frame[500:], credit.target[500:])
    weight = {"sample_weight": rng.uniform(0.5, 2, 500)} if weighted else {}
    fitted = pr.make_classifier(name, credit.schema).fit(*first, **weight)
    fitted.save(tmp_path / "m.json")
    for model in (fitted, pr.load(tmp_path / "m.json")):
        assert pr.evaluate(model, *first).seen_before
        assert not pr.evaluate(model, *second).seen_before  # as many rows
        assert not pr.evaluate(model, credit.frame[:499], credit.target[:499]).seen_before


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_rows_without_a_record_are_known_by_their_counts():
    german = pr.datasets.load("german")
    form = pr.make_classifier("ARM1", german.schema).fit(german.frame, german.target).form_
    assert SeenRows(form, None).add(german.frame[:300]).add(german.frame[300:]).are_all
    assert not SeenRows(form, None).add(german.frame[:300]).are_all


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_an_auc_that_is_too_good_is_suspicious(rng):
    bad = rng.integers(0, 2, 400)
    frame = pl.DataFrame({"knows": bad + 0.1 * rng.random(400), "x": rng.random(400)})
    model = pr.make_classifier("ARM1").fit(frame[:200], bad[:200])
    notes = pr.evaluate(model, frame[200:], bad[200:]).notes
    assert "An AUC above 0.99 is suspicious: a feature may know the outcome." in notes
