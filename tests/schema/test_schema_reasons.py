"""Words per level, allowed moves and step costs in the schema."""

from __future__ import annotations

import pytest

import plainrisk as pr
from plainrisk.errors import SchemaError


def test_words_moves_and_costs_survive_files(tmp_path):
    schema = pr.Schema(
        target="bad",
        features={
            "months since": {
                "special_values": [-9, -8],
                "reason": "Too recent",
                "reasons": {"-9": 'No "record"', "= -8": "Not asked", "missing": "Missing", "x <= 10": "Very recent"},
                "actionable": "up",
                "step_cost": 2.5,
            },
            "job": {"kind": "categorical", "categories": ["a", "b"], "reasons": {"b": "Unstable", "unseen": "Unknown"}},
            "age": {"actionable": "fixed"},
        },
    )
    for name in ("s.toml", "s.json"):
        schema.save(tmp_path / name)
        assert pr.Schema.load(tmp_path / name) == schema
    text = (tmp_path / "s.toml").read_text()
    assert '[features."months since".reasons]\n-9 = "No \\"record\\""' in text
    assert "reasons" not in text.split("[features.age]")[1]  # what is left at its default is not written


def test_what_stands_at_its_default_leaves_no_trace():
    assert pr.Feature() == pr.Feature(reasons={}, actionable="free", step_cost=1.0)
    assert pr.Schema(features={"a": {}}).to_dict() == {"features": {"a": {}}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"special_values": [-9], "reasons": {"-8": "x"}}, "reasons has words for '-8', which is no level. .*'-9'"),
        ({"kind": "categorical", "categories": ["a"], "reasons": {"b": "x"}}, "words for 'b', which is no level"),
        ({"reasons": {"low": "x"}}, "words for 'low', which is no level"),
        ({"actionable": "sideways"}, "actionable must be one of 'free', 'up', 'down', 'fixed', not 'sideways'"),
        ({"step_cost": -1.0}, "step_cost must be finite and not negative"),
        ({"step_cost": float("inf")}, "step_cost must be finite"),
        ({"kind": "categorical", "actionable": "up"}, "actionable = 'up' needs an order"),
        ({"reasons": {"missing": 3}}, "Expected `str`, got `int`"),
    ],
)
def test_contradictions_are_refused(fields, message):
    with pytest.raises(SchemaError, match=message):
        pr.Schema(features={"u": fields})


@pytest.mark.parametrize("key", ["x <= 10", "10 < x <= 20", "x > 1e-05", "x < 0", "missing", "any value"])
def test_labels_of_bins_are_allowed_before_the_bins_are_known(key):
    assert pr.Schema(features={"u": {"reasons": {key: "words"}}}).features["u"].reasons == {key: "words"}


def test_defaults_give_their_words_to_continuous_features_only():
    schema = pr.Schema.from_dict({
        "defaults": {"special_values": [-9], "reasons": {"-9": "No record"}},
        "features": {"a": {}, "job": {"kind": "categorical", "categories": ["u"]}},
    })  # fmt: skip
    assert schema.features["a"].reasons == {"-9": "No record"}
    assert schema.features["job"].reasons == {}
