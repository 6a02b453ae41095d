from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.errors import SchemaError
from plainrisk.schema import Feature, Schema, label_of
from plainrisk.schema.toml import schema_to_toml

# ---- any schema at all

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
odd_names = st.sampled_from(["", " ", "a.b", 'say "x"', "it's", "\\", "Größe", "年", "🙂", "\x7f\x00\t\n", "[x]"])
any_name = names | odd_names
finite = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**18), 10**18).map(float)
text = st.none() | any_name
words = st.none() | any_name.filter(str.strip)


@st.composite
def continuous(draw):
    fields = {
        "direction": draw(st.sampled_from(["increasing", "decreasing", "none"])),
        "special_values": tuple(draw(st.lists(finite, max_size=3, unique=True))),
        "lower_bound": draw(st.none() | finite),
        "reason": draw(words),
        "note": draw(text),
        "unseen": draw(st.sampled_from(["neutral", "error"])),
    }
    if draw(st.booleans()):
        fields["max_bins"] = draw(st.none() | st.integers(2, 10**6))
    else:
        fields["edges"] = tuple(sorted(draw(st.sets(finite, max_size=4))))
    return Feature(**fields)


@st.composite
def categorical(draw):
    labels = draw(st.lists(any_name | finite, max_size=5, unique_by=label_of))
    cut = draw(st.integers(0, len(labels)))
    return Feature(
        kind="categorical",
        direction=draw(st.sampled_from(["increasing", "none"])),
        special_values=tuple(labels[:cut]),
        categories=draw(st.sampled_from([None, tuple(labels[cut:])])),
        reason=draw(words),
    )


@st.composite
def schemas(draw):
    features = draw(st.dictionaries(any_name, continuous() | categorical(), max_size=4))
    members = st.lists(st.sampled_from(sorted(features)), min_size=1, unique=True) if features else st.nothing()
    return Schema(
        target=draw(st.none() | any_name.filter(lambda name: name not in features)),
        positive=draw(st.none() | any_name | finite | st.booleans()),
        features=features,
        subscales=draw(st.dictionaries(any_name, members, max_size=3)) if features else {},
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(schema=schemas())
def test_every_schema_comes_back_from_dict_toml_and_json(schema, tmp_path):
    assert Schema.from_dict(schema.to_dict()) == schema
    for suffix in (".toml", ".json"):
        path = tmp_path / f"schema{suffix}"
        schema.save(path)
        back = Schema.load(path)
        assert back == schema
        assert list(back.features) == list(schema.features)
        assert list(back.subscales) == list(schema.subscales)
        assert label_of(back.positive) == label_of(schema.positive)  # True equals 1, but is another label


@settings(deadline=None)
@given(schema=schemas())
def test_the_written_toml_says_what_the_dict_says(schema):
    # tomllib is the oracle: it knows nothing of schemas. JSON turns tuples into lists on both sides.
    plain = json.loads(json.dumps(schema.to_dict()))
    assert tomllib.loads(schema_to_toml(schema.to_dict())) == plain


def test_the_written_toml_is_pleasant_to_edit():
    schema = Schema(
        target="bad",
        positive=1,
        features={
            "age": Feature(direction="decreasing", special_values=(-9, 0.5), max_bins=4),
            "pay day": Feature(kind="categorical", categories=("a", 2)),
        },
        subscales={"Who": ["age", "pay day"]},
    )
    assert schema_to_toml(schema.to_dict()) == (
        'target = "bad"\npositive = 1\n'
        '\n[features.age]\ndirection = "decreasing"\nspecial_values = [-9, 0.5]\nmax_bins = 4\n'
        '\n[features."pay day"]\nkind = "categorical"\ncategories = ["a", 2]\n'
        '\n[subscales]\nWho = ["age", "pay day"]\n'
    )


def test_numpy_numbers_become_plain_ones(tmp_path):
    feature = Feature(special_values=tuple(np.array([-9, -8])), lower_bound=np.float64(0.5), max_bins=np.int64(3))
    schema = Schema(positive=np.int64(1), features={"a": feature, "b": {"edges": np.array([1.0, 2.0])}})
    schema.save(tmp_path / "s.toml")
    back = Schema.load(tmp_path / "s.toml")
    assert back == schema
    assert back.features["a"] == Feature(special_values=(-9, -8), lower_bound=0.5, max_bins=3)
    assert back.features["b"].edges == (1.0, 2.0)


# ---- what is known of a feature


def test_sign_and_labels():
    assert [Feature(direction=d).sign for d in ("increasing", "decreasing", "none")] == [1, -1, 0]
    assert Feature().category_labels is None
    assert Feature(kind="categorical", categories=("low", 2, 2.5)).category_labels == ("low", "2", "2.5")


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (2, "2"),
        (2.0, "2"),
        (np.int8(2), "2"),
        (np.float32(2), "2"),
        (np.float64(0.1), "0.1"),
        (True, "True"),
        (np.bool_(False), "False"),
        ("2.0", "2.0"),
        (np.str_("x"), "x"),
        (-0.0, "0"),
        (1e300, "1e+300"),
    ],
)
def test_labels_do_not_depend_on_the_type(value, label):
    assert label_of(value) == label
    assert type(label_of(value)) is str


# ---- what a feature may not say

CATEGORICAL = {"kind": "categorical"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "contnuous"}, "kind must be one of 'continuous', 'categorical', not 'contnuous'"),
        ({"direction": "up"}, "direction must be one of 'increasing', 'decreasing', 'none', not 'up'"),
        ({"unseen": "x"}, "unseen must be one of 'neutral', 'error', not 'x'"),
        ({"diretion": "none"}, "unknown field `diretion`. Did you mean 'direction'?"),
        ({"max_bins": 2.5}, "Expected `int | null`, got `float`"),
        ({"special_values": 3}, "Expected `array`, got `int`"),
        ({"special_values": [None]}, "Expected `float | str`, got `null`"),
        ({"special_values": [{1, 2}]}, "Expected `float | str`"),
        ({"special_values": [object()]}, "got `object`"),
        ({"special_values": ["x"]}, "special values of a continuous feature are numbers, not 'x'."),
        ({"special_values": [np.nan]}, "special values must be finite; missing values have their own level"),
        ({"special_values": [-9, -9.0]}, "special values repeat: [-9.0, -9.0]."),
        ({"lower_bound": np.inf}, "lower_bound must be finite, not inf. Leave it out for no bound."),
        ({"categories": ["a"]}, "categories are for categorical features."),
        ({"max_bins": 1}, "max_bins must be at least 2, not 1."),
        ({"max_bins": 3, "edges": [1]}, "has both edges and max_bins. Keep one."),
        ({"edges": [1, 1]}, "edges must be finite and strictly increasing, not [1.0, 1.0]."),
        ({"edges": [2, 1]}, "edges must be finite and strictly increasing, not [2.0, 1.0]."),
        ({"edges": [1, np.inf]}, "edges must be finite and strictly increasing, not [1.0, inf]."),
        ({**CATEGORICAL, "lower_bound": 0}, "lower_bound is for continuous features."),
        ({**CATEGORICAL, "max_bins": 3}, "max_bins is for continuous features."),
        ({**CATEGORICAL, "edges": [1]}, "edges is for continuous features."),
        ({**CATEGORICAL, "categories": [2, "2"]}, "category '2' is listed twice."),
        ({**CATEGORICAL, "categories": [np.nan]}, "categories must be text or finite numbers, not nan."),
        ({**CATEGORICAL, "special_values": ["a", "a"]}, "special values repeat: ['a', 'a']."),
        (
            {**CATEGORICAL, "categories": ["a", "?"], "special_values": ["?"]},
            "'?' is both a category and a special value. Keep one.",
        ),
    ],
)
def test_a_feature_that_contradicts_itself_is_named(fields, message):
    for build in (
        lambda f: Schema(features={"pay": f}),
        lambda f: Schema.from_dict({"features": {"pay": f}}),
    ):
        with pytest.raises(SchemaError, match=r"^Schema: feature 'pay': ") as raised:
            build(fields)
        assert message in str(raised.value)


def test_a_feature_object_is_checked_like_its_fields():
    with pytest.raises(SchemaError, match="feature 'a': direction must be one of"):
        Schema(features={"a": Feature(direction="up")})
    assert Schema(features={"a": Feature(special_values=[-9])}).features["a"].special_values == (-9.0,)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target": "a", "features": {"a": {}}}, "Schema: 'a' is both the target and a feature. Remove it"),
        ({"target": 3}, "Schema: target must be the name of a column, not 3."),
        ({"positive": ["x"]}, "Schema: positive must be one label of the target, not ['x']."),
        ({"positive": np.nan}, "Schema: positive must be text or a finite number, not nan."),
        ({"features": ["a"]}, "Schema: 'features' must be a table of names, not list."),
        ({"features": {1: {}}}, "Schema: the names in 'features' must be text, not 1."),
        ({"features": {"a": None}}, "Schema: feature 'a': Expected `object`, got `null`."),
        ({"subscales": ["a"]}, "Schema: 'subscales' must be a table of names, not list."),
        ({"features": {"a": {}}, "subscales": {"S": []}}, "Schema: subscale 'S' is empty. Remove it"),
        (
            {"features": {"a": {}}, "subscales": {"S": "a"}},
            "subscale 'S' must be a list of features, not 'a'.",
        ),
        ({"features": {"a": {}}, "subscales": {"S": 3}}, "subscale 'S' must be a list of features, not 3."),
        ({"features": {"a": {}}, "subscales": {"S": ["a", "a"]}}, "subscale 'S' lists feature 'a' twice."),
        (
            {"features": {"income": {}}, "subscales": {"Capacity": ["incme"]}},
            "feature 'incme' in subscale 'Capacity' is not among the features. Did you mean 'income'?",
        ),
    ],
)
def test_a_schema_that_contradicts_itself(fields, message):
    with pytest.raises(SchemaError, match=r"^Schema: ") as raised:
        Schema(**fields)
    assert message in str(raised.value)


def test_all_problems_are_told_at_once():
    with pytest.raises(SchemaError, match="Schema: 3 problems") as raised:
        Schema(target="a", features={"a": {"max_bins": 1}}, subscales={"S": ["b"]})
    assert str(raised.value).splitlines()[1:] == [
        "  - 'a' is both the target and a feature. Remove it from the features.",
        "  - feature 'a': max_bins must be at least 2, not 1.",
        "  - feature 'b' in subscale 'S' is not among the features. Known: 'a'.",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"feature": {}}, "unknown field `feature`. Did you mean 'features'?"),
        ({"target": 3}, r"Expected `str | null`, got `int` - at `$.target`."),
        ({"defaults": 3}, "Schema: defaults: Expected `object`, got `int`."),
        ({"defaults": {"max_binz": 3}}, "Schema: defaults: Object contains unknown field `max_binz`."),
        ([1], "Schema: a table with 'features' is needed, not list."),
        (
            {"features": {"a": {}}, "subscales": {"S": "a"}},
            "subscale 'S' must be a list of features, not 'a'.",
        ),
    ],
)
def test_plain_data_that_is_no_schema(data, message):
    with pytest.raises(SchemaError, match=r"^Schema: ") as raised:
        Schema.from_dict(data)
    assert message in str(raised.value)


# ---- defaults


def test_defaults_fill_what_a_feature_leaves_out_and_fit_its_kind():
    schema = Schema.from_dict(
        {
            "defaults": {"max_bins": 4, "special_values": [-9], "direction": "increasing"},
            "features": {
                "plain": {},
                "own": {"max_bins": 7, "direction": "none"},
                "cut": {"edges": [1, 2]},
                "job": {"kind": "categorical"},
            },
        }
    )
    assert schema.features == {
        "plain": Feature(max_bins=4, special_values=(-9.0,), direction="increasing"),
        "own": Feature(max_bins=7, special_values=(-9.0,)),
        "cut": Feature(edges=(1.0, 2.0), special_values=(-9.0,), direction="increasing"),
        "job": Feature(kind="categorical", direction="increasing"),
    }


def test_a_default_kind_does_not_bind_the_others():
    schema = Schema.from_dict(
        {
            "defaults": {"kind": "categorical", "categories": ["a", "b"]},
            "features": {"x": {}, "y": {"kind": "continuous"}},
        }
    )
    assert schema.features == {
        "x": Feature(kind="categorical", categories=("a", "b")),
        "y": Feature(),
    }


def test_default_edges_yield_to_a_feature_with_max_bins():
    schema = Schema.from_dict({"defaults": {"edges": [1]}, "features": {"x": {"max_bins": 3}, "y": {}}})
    assert schema.features == {"x": Feature(max_bins=3), "y": Feature(edges=(1.0,))}


# ---- files


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.toml", "target = ", "is not valid TOML"),
        ("s.json", "{", "is not valid JSON"),
        ("s.json", "[1, 2]", "must hold a table with 'features', not list"),
        ("s.toml", "[features.a]\nkind = 'x'", r"s\.toml: Schema: feature 'a': kind must be one of"),
        ("s.toml", "targte = 'x'", r"unknown field `targte`\. Did you mean 'target'\?"),
        ("s.json", '{"features": {"a": {"max_bins": 1}}}', "feature 'a': max_bins must be at least 2"),
        ("s.json", '{"features": {"a": ' + "[" * 500 + "]" * 500 + "}}", "feature 'a': "),
        ("s.json", '{"features": {"a": ' + '{"reasons": ' * 900 + "1" + "}" * 902, "feature 'a': "),
        ("s.json", "[" * 9000, "it is nested too deep"),
        ("s.toml", "x = " + "[" * 500 + "]" * 500, "is nested too deep"),
        ("s.json", '{"positive": ' + "9" * 5000 + "}", "is not a schema: Integer value out of range"),
        ("s.toml", "positive = " + "9" * 5000, "a whole number has too many digits"),
        ("s.json", '{"features": {"a": {"lower_bound": ' + "9" * 400 + "}}}", "feature 'a': "),
    ],
    ids=range(13),
)
def test_damaged_files_are_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(SchemaError, match=message) as raised:
        Schema.load(path)
    assert str(path) in str(raised.value)


def test_files_that_are_not_there_not_text_or_too_large(tmp_path):
    with pytest.raises(SchemaError, match=r"gone\.toml does not exist"):
        Schema.load(tmp_path / "gone.toml")
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(SchemaError, match="is not a text file"):
        Schema.load(tmp_path / "s.toml")
    with (tmp_path / "big.toml").open("wb") as file:
        file.truncate(16 * 2**20 + 1)
    with pytest.raises(SchemaError, match="is too large"):
        Schema.load(tmp_path / "big.toml")


LOOP: dict[str, object] = {}
LOOP["a"] = LOOP
ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "table",
    [
        LOOP,
        {"features": LOOP},
        {"features": {"a": LOOP}},
        {"features": {"a": {"categories": ENDLESS}}},
        {"features": {"a": {"lower_bound": 10**400}}},
        {"features": {}, "defaults": LOOP},
        {"features": {}, "positive": ENDLESS},
        {"features": {}, "positive": 10**400},
        {"features": {"a": {}}, "subscales": LOOP},
        {"features": {"a": {}}, "subscales": {"s": ENDLESS}},
    ],
    ids=range(10),
)
def test_tables_that_hold_themselves_or_numbers_beyond_all_bounds(table):
    with pytest.raises(SchemaError, match="Schema: ") as raised:
        Schema.from_dict(table)
    assert len(str(raised.value)) < 500


def test_only_two_formats_are_written(tmp_path):
    with pytest.raises(SchemaError, match=r"the name must end in \.toml or \.json"):
        Schema().save(tmp_path / "schema.yaml")
    assert not (tmp_path / "schema.yaml").exists()


# ---- subscales

THREE = Schema(
    target="bad",
    features={"a": {}, "b": {"max_bins": 3}, "c": {}, "d": {}},
    subscales={"S": ["a", "b"], "T": ["b", "c"]},
)


def test_overlaps_and_unassigned():
    assert THREE.overlaps == {"b": ("S", "T")}
    assert THREE.unassigned == ("d",)
    assert Schema(features={"a": {}}).unassigned == ()  # without subscales nothing is left over
    assert Schema(features={"a": {}}).overlaps == {}


def test_select_keeps_order_target_and_what_is_left_of_subscales():
    chosen = THREE.select(["c", "a"])
    assert list(chosen.features) == ["c", "a"]
    assert chosen.subscales == {"S": ("a",), "T": ("c",)}
    assert chosen.target == "bad"
    assert THREE.select(["a", "b"]).subscales == {"S": ("a", "b"), "T": ("b",)}
    assert THREE.select(["a"]).subscales == {"S": ("a",)}  # an empty subscale goes


def test_select_of_an_unknown_feature():
    with pytest.raises(SchemaError, match=r"there is no feature 'incme'\. Did you mean 'income'\?"):
        Schema(features={"income": {}}).select(["incme"])


def test_a_part_knows_its_features_and_nothing_else():
    features = {"a": Feature(direction="increasing"), "b": Feature(special_values=(-9,)), "c": Feature()}
    schema = Schema(target="y", positive=1, features=features, subscales={"s": ("a", "b"), "t": ("c",)})
    assert schema.part(["b", "a"]) == Schema(features={"b": features["b"], "a": features["a"]})
    assert list(schema.part(["b", "a"]).features) == ["b", "a"]
    assert schema.target == "y"
    assert schema.select(["c"]) == Schema(
        target="y", positive=1, features={"c": features["c"]}, subscales={"t": ("c",)}
    )


@pytest.mark.parametrize("field", ["categories", "special_values"])
def test_large_whole_numbers_that_are_listed_stay_apart(field, tmp_path):
    big = [2**53, 2**53 + 1, 2**53 + 2]
    features = {"a": {"kind": "categorical", field: big}}
    Schema(features=features).save(tmp_path / "s.json")
    (tmp_path / "s.toml").write_text(f"[features.a]\nkind = 'categorical'\n{field} = {big}\n")
    for schema in (
        Schema(features=features),
        Schema.from_dict({"features": features}),
        Schema.load(tmp_path / "s.json"),
        Schema.load(tmp_path / "s.toml"),
        Schema(features={"a": Feature(kind="categorical", **{field: tuple(big)})}),
    ):
        assert [label_of(v) for v in getattr(schema.features["a"], field)] == [str(v) for v in big]


def test_a_large_special_value_of_a_number_is_not_told_from_its_neighbors():
    with pytest.raises(SchemaError, match=r"feature 'a': 9.0072e\+15 is beyond 2\*\*53.*kind = 'categorical'"):
        Schema(features={"a": {"special_values": [2**53 + 1]}})
    schema = Schema(features={"a": {}})
    notes = [note.message for note in schema.check({"a": [2**60, 1, 5, 3, 2]})]
    assert notes[0].startswith("feature 'a' has values beyond 2**53, where neighboring whole numbers become one")


def test_a_model_file_is_read_as_its_schema(tmp_path):
    made = pr.datasets.make_credit(300, 1, backend="polars")
    model = pr.make_classifier("ARM1", made.schema).fit(made.frame, made.target)
    model.save(tmp_path / "model.json")
    assert Schema.load(tmp_path / "model.json") == model.form_.schema
    (tmp_path / "other.json").write_text('{"form": {"parts": []}}')
    with pytest.raises(SchemaError, match="unknown field `form`"):
        Schema.load(tmp_path / "other.json")
