"""What a schema says of empty and special fields, and of which outcome is bad."""

from __future__ import annotations

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, SchemaError
from plainrisk.schema.check import refuse_forbidden

FULL = """
target = "bad"
adverse = "negative"

[features.late]
direction = "increasing"
special_values = [-9, -8.5]
lower_bound = 0
missing = "worst"
below_bound = "neutral"
[features.late.special_rules]
-9 = "not_better"
"-8.5" = "error"

[features.job]
kind = "categorical"
special_values = ["none"]
special_rules = { none = "free" }
"""


@pytest.mark.parametrize("name", ["again.toml", "again.json"])
def test_rules_are_read_and_written(tmp_path, name):
    (tmp_path / "schema.toml").write_text(FULL)
    schema = pr.Schema.load(tmp_path / "schema.toml")
    late = schema.features["late"]
    assert (late.missing, late.below_bound) == ("worst", "neutral")
    assert late.special_rules == {"-9": "not_better", "-8.5": "error"}
    assert schema.features["job"].special_rules == {"none": "free"}
    assert (schema.adverse, schema.worse) == ("negative", -1)
    schema.save(tmp_path / name)
    assert pr.Schema.load(tmp_path / name) == schema
    assert pr.Schema.from_dict(schema.to_dict()) == schema


def test_special_values_may_be_numbers_in_python():
    schema = pr.Schema(features={"late": {"special_values": [-9], "special_rules": {-9: "worst"}}})
    assert schema.features["late"].special_rules == {"-9": "worst"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"missing": "best"}, "missing must be one of 'free', 'not_better', 'worst', 'neutral', 'error', not 'best'"),
        ({"below_bound": "low", "lower_bound": 0}, "below_bound must be one of 'free'"),
        ({"special_values": [-9], "special_rules": {"-9": "bad"}}, "special_rules must be one of 'free'"),
        ({"special_values": [-9], "special_rules": {"-8": "worst"}}, "special_rules has a rule for '-8', which is no"),
        ({"below_bound": "worst"}, "below_bound = 'worst' needs a lower_bound"),
        ({"kind": "categorical", "below_bound": "worst"}, "below_bound = 'worst' needs a lower_bound"),
    ],
)
def test_rules_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(SchemaError, match=message):
        pr.Schema(features={"late": fields})


def test_which_outcome_is_adverse_is_one_of_two():
    for make in (lambda: pr.Schema(adverse="good"), lambda: pr.Schema.from_dict({"adverse": "good"})):
        with pytest.raises(SchemaError, match="adverse must be one of 'positive', 'negative', not 'good'"):
            make()
    assert pr.Schema().worse == 1
    assert pr.datasets.load("german").schema.adverse == "negative"


def test_the_default_goes_by_the_direction():
    features = {"up": {"direction": "increasing"}, "plain": {}, "said": {"direction": "increasing", "missing": "free"}}
    schema = pr.Schema(features={**features, "code": {"special_values": [-9], "special_rules": {"-9": "worst"}}})
    kept = schema.with_rules().features
    assert {name: feature.missing for name, feature in kept.items()} == {
        "up": "not_better",
        "plain": None,
        "said": "free",
        "code": None,
    }
    assert kept["code"].special_rules == {"-9": "worst"}
    assert schema.with_rules().with_rules() == schema.with_rules()
    free = schema.with_rules(free=True).features
    assert free["up"].missing == "free"
    assert free["code"].special_rules == {"-9": "free"}


def test_lifting_rules_keeps_what_is_refused():
    feature = pr.Feature(missing="error", special_values=(-9.0, -8.0), special_rules={"-9": "error", "-8": "worst"})
    assert feature.with_rules(free=True).missing == "error"
    assert feature.with_rules(free=True).special_rules == {"-9": "error", "-8": "free"}


# ---- refused


STRICT = {
    "late": {
        "missing": "error",
        "special_values": [-9, -8],
        "special_rules": {"-9": "error"},
        "lower_bound": 0,
        "below_bound": "error",
    },
    "job": {"kind": "categorical", "missing": "error", "special_values": ["none"], "special_rules": {"none": "error"}},
}


@pytest.mark.parametrize(
    ("late", "job", "what", "rule"),
    [
        ([1, 2, None], ["a", "b", "c"], "feature 'late', row 2: the value is missing", "missing"),
        ([1, -9, 3], ["a", "b", "c"], "feature 'late', row 1: the value is a special value", "special_rules"),
        ([-3, -8, 3], ["a", "b", "c"], "feature 'late', row 0: the value is below the bound", "below_bound"),
        ([1, 2, 3], ["a", None, "c"], "feature 'job', row 1: the value is missing", "missing"),
        ([1, 2, 3], ["a", "b", "none"], "feature 'job', row 2: the value is a special value", "special_rules"),
    ],
)
def test_what_is_forbidden_is_named_with_its_row(late, job, what, rule):
    schema = pr.Schema(features=STRICT)
    frame = pr.form.form.as_frame({"late": np.array(late, float), "job": job})
    with pytest.raises(DataError, match=f"{what}, and the schema says {rule} = 'error'"):
        refuse_forbidden(schema, frame)
    (problem,) = [one for one in schema.check(frame) if one.severity == "error"]
    assert " in 1 rows, and the schema says" in problem.message


def test_what_is_not_forbidden_passes():
    refuse_forbidden(pr.Schema(features=STRICT), pr.form.form.as_frame({"late": [1.0, -8.0], "job": ["a", "b"]}))
