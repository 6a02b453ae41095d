"""Schemas that are changed, and the schema of a fitted model."""

import pytest

import plainrisk as pr
from plainrisk.errors import SchemaError


@pytest.fixture
def schema():
    return pr.Schema(
        target="bad",
        features={
            "loan": {"edges": [10, 20, 30], "direction": "increasing"},
            "job": {"kind": "categorical", "categories": ["a", "b", "c", "d"]},
            "age": {"max_bins": 4},
        },
        subscales={"money": ["loan"], "person": ["job", "age"]},
    )


def test_bins_are_merged_by_number_from_0(schema):
    assert schema.edit("loan", merge=[(0, 1)]).features["loan"].edges == (20.0, 30.0)
    assert schema.edit("loan", merge=[(0, 1), (2, 3)]).features["loan"].edges == (20.0,)
    assert schema.edit("loan", merge=[(3, 1, 2)]).features["loan"].edges == (10.0,)
    assert schema.edit("loan", edges=[1, 2], merge=[(1, 2)]).features["loan"].edges == (1.0,)
    assert schema.edit("loan", merge=[(0, 1)]).subscales == schema.subscales
    assert schema.features["loan"].edges == (10.0, 20.0, 30.0), "the schema itself is not changed"


def test_edges_and_max_bins_take_each_others_place(schema):
    assert schema.edit("age", edges=[30]).features["age"].max_bins is None
    assert schema.edit("loan", max_bins=3).features["loan"].edges is None


def test_categories_are_merged_into_groups(schema):
    once = schema.edit("job", merge=[("a", "c")])
    assert once.features["job"].groups == {"a + c": ("a", "c")}
    assert once.features["job"].categories == ("a + c", "b", "d")
    twice = once.edit("job", merge=[("a + c", "b")])
    assert twice.features["job"].groups == {"a + c + b": ("a", "c", "a + c", "b")}
    assert pr.Schema.from_dict(twice.to_dict()) == twice


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("loan", {"merge": [(0, 2)]}, "bins \\[0, 2\\] are not neighbors"),
        ("loan", {"merge": [(3, 4)]}, "has the bins 0 to 3"),
        ("loan", {"merge": [(-1, 0)]}, "has the bins 0 to 3"),
        ("loan", {"merge": [1, 2]}, "merge needs runs of two or more"),
        ("loan", {"merge": [(1,)]}, "merge needs runs of two or more"),
        ("loan", {"edge": [1]}, "a feature has no field 'edge'\\. Did you mean 'edges'"),
        ("loan", {"edges": [2, 1]}, "edges must be finite and strictly increasing"),
        ("loan", {"direction": "up"}, "direction must be one of"),
        ("age", {"merge": [(0, 1)]}, "feature 'age' has no edges to merge bins of"),
        ("job", {"merge": [("a", "z")]}, "feature 'job' has no category 'z'"),
        ("lon", {}, "no feature 'lon'\\. Did you mean 'loan'"),
    ],
)
def test_wrong_edits(schema, name, change, message):
    with pytest.raises(SchemaError, match=message):
        schema.edit(name, **change)


def test_a_category_in_a_group_is_merged_with_its_group(schema):
    grouped = schema.edit("job", groups={"ab": ["a", "b"]})
    with pytest.raises(SchemaError, match=r"category 'a' is in group 'ab'\. Merge the group"):
        grouped.edit("job", merge=[("a", "c")])


def test_replace_drop_and_rename(schema):
    assert schema.replace(positive=1).positive == 1
    assert schema.replace(subscales={}).subscales == {}
    assert schema.drop("loan", "age").subscales == {"person": ("job",)}
    renamed = schema.rename({"loan": "amount", "bad": "default"})
    assert list(renamed.features) == ["amount", "job", "age"]
    assert renamed.target == "default"
    assert renamed.subscales["money"] == ("amount",)
    assert schema.rename({"loan": "age", "age": "loan"}).features["age"].edges == (10.0, 20.0, 30.0)


def test_wrong_replacements(schema):
    with pytest.raises(SchemaError, match="a schema has no field 'feature'"):
        schema.replace(feature={})
    with pytest.raises(SchemaError, match="no feature 'lone'\\. Did you mean 'loan'"):
        schema.drop("lone")
    with pytest.raises(SchemaError, match="no feature 'lone'"):
        schema.rename({"lone": "x"})
    with pytest.raises(SchemaError, match="two features one name: 'age'"):
        schema.rename({"loan": "age"})
    with pytest.raises(SchemaError, match="both the target and a feature"):
        schema.rename({"loan": "bad"})
    with pytest.raises(SchemaError, match="must be text"):
        schema.rename({"loan": 3})


@pytest.mark.parametrize("name", ["ARM1", "ARM2"])
def test_a_refit_with_the_found_bins_is_the_same_model(name):
    german = pr.datasets.load("german")
    schema = german.schema.edit("Purpose", rare=0.05)
    model = pr.make_classifier(name, schema).fit(german.frame, german.target)
    found = model.schema_with_bins()
    assert found.target == schema.target
    assert found.features["Purpose"].groups.keys() == {"(rare)"}
    again = pr.make_classifier(name, found).fit(german.frame, german.target)
    for old, new in zip(model.form_.parts, again.form_.parts, strict=True):
        assert {n: s.levels for n, s in old.shapes.items()} == {n: s.levels for n, s in new.shapes.items()}
        assert old == new


def test_lines_stay_lines():
    german = pr.datasets.load("german")
    model = pr.NonnegativeLogisticRegression(german.schema).fit(german.frame, german.target)
    assert model.schema_with_bins().features["Duration in month"].edges is None


def test_words_for_a_category_never_seen_keep_the_list_open():
    rows = {"job": ["a", "b"] * 20, "x": [0, 1, 2, 3] * 10}
    words = {"job": {"kind": "categorical", "reasons": {"c": "C"}}, "x": {}}
    model = pr.AdditiveRiskModel(pr.Schema(features=words)).fit(rows, [0, 1, 1, 0, 1] * 8)
    assert model.schema_with_bins().features["job"].categories is None
