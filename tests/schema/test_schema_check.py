from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from plainrisk.errors import SchemaError
from plainrisk.schema import Schema
from plainrisk.schema.check import MOST_CATEGORIES, Problem, check_schema, require_valid


def errors(schema, frame, **options):
    return [p.message for p in check_schema(schema, frame, **options) if p.severity == "error"]


def notes(schema, frame, **options):
    return [p.message for p in check_schema(schema, frame, **options) if p.severity == "note"]


def one(fields, values, target=False):
    """The problems of one feature x with these fields and values."""
    return check_schema(Schema(features={"x": fields}), {"x": values}, target=target)


CLEAN = Schema(
    target="bad",
    positive=1,
    features={"age": {"direction": "decreasing"}, "job": {"kind": "categorical"}},
    subscales={"Who": ["age", "job"]},
)
ROWS = {"age": [20, 30, 40, None], "job": ["clerk", None, "cook", "cook"], "bad": [0, 1, 0, 1]}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_what_fits_has_no_problems(make):
    assert CLEAN.check(make(ROWS)) == []
    require_valid(CLEAN, make(ROWS), target=True)


# ---- errors


def test_a_missing_feature_has_the_nearest_column_that_is_left_over():
    schema = Schema(features={"income": {}, "incme2": {}, "zip": {}})
    assert errors(schema, {"income": [1, 2], "income2": [1, 2]}, target=False) == [
        "feature 'incme2' is not in the data. Did you mean 'income2'?",
        "feature 'zip' is not in the data. Known: 'income2'.",
    ]


def test_a_missing_feature_where_every_column_is_taken():
    schema = Schema(features={"income": {}, "incme": {}})
    assert errors(schema, {"income": [1, 2]}, target=False) == [
        "feature 'incme' is not in the data. Did you mean 'income'?"
    ]


def test_text_and_infinity_among_numbers():
    assert one({}, [1, "old", "new"]) == [
        Problem(
            "error",
            "x",
            "feature 'x' is continuous but holds text in row 1. Make it missing, or set kind = 'categorical'.",
        )
    ]
    (problem,) = one({}, [1, 2, -np.inf])
    assert (problem.severity, problem.feature) == ("error", "x")
    assert problem.message.startswith("feature 'x' holds infinity (row 2).")


@pytest.mark.parametrize("fields", [{}, {"kind": "categorical"}])
@pytest.mark.parametrize("values", [[None, None], [np.nan, np.nan]])
def test_a_column_without_values(fields, values):
    message = "feature 'x' is missing in every row, so it has no effect."
    assert one(fields, values) == [Problem("note", "x", message)]


def test_no_rows_and_missing_columns_are_told_together():
    schema = Schema(features={"x": {}, "y": {}})
    assert errors(schema, {"x": []}, target=False) == [
        "the data have no rows.",
        "feature 'y' is not in the data. Known: 'x'.",
    ]


def test_a_direction_needs_an_order():
    fields = {"kind": "categorical", "direction": "increasing"}
    values = ["low", "mid", "top", "x"]
    (problem,) = one(fields, values)
    assert problem.severity == "error"
    assert problem.message == (
        "feature 'x' is increasing, but its categories are not numbers: 'low', 'mid', 'top' and 1 more. "
        "List them in order in 'categories'."
    )
    assert one({**fields, "categories": values}, values) == []
    assert one({**fields, "special_values": ["?"]}, ["1", "2.5", "?"]) == []
    assert one(fields, [1, 2, 3]) == []
    assert [p.severity for p in one(fields, ["1", "nan"])] == ["error"]


def test_too_many_categories():
    values = [f"c{i}" for i in range(MOST_CATEGORIES + 1)]
    found = one({"kind": "categorical"}, values)
    assert found[0].severity == "error"
    assert found[0].message == (
        "feature 'x' has 5,001 categories, at most 5,000 are possible. Group them, or leave it out."
    )
    assert [p.severity for p in one({"kind": "categorical"}, values[:-1])] == ["note"]


@pytest.mark.parametrize(
    ("values", "positive", "expected"),
    [
        ([0, None, 1, None, np.nan], None, "target 'bad' is missing in row 1 and 2 more. Drop such rows."),
        ([0, 1, None], None, "target 'bad' is missing in row 2. Drop such rows."),
        ([1, 1, 1], None, "target 'bad' is '1' in every row. Both outcomes are needed."),
        (["a", "b", "c"], None, "target 'bad' has 3 labels: 'a', 'b', 'c'. Make two of them first."),
        ([0, 1, 1], "Bad", "positive label 'Bad' is not among those of 'bad': '0', '1'."),
        ([0, 1, 1], 2, "positive label '2' is not among those of 'bad': '0', '1'."),
    ],
)
def test_targets_that_cannot_be_learned(values, positive, expected):
    schema = Schema(target="bad", positive=positive, features={"x": {}})
    frame = {"x": range(len(values)), "bad": values}
    assert errors(schema, frame) == [expected]
    assert errors(schema, frame, target=False) == []


def test_a_target_that_is_not_there_is_looked_for_only_where_it_is_needed():
    schema = Schema(target="bda", features={"x": {}})
    frame = {"x": [1, 2], "bad": [0, 1]}
    assert errors(schema, frame) == ["target 'bda' is not in the data. Did you mean 'bad'?"]
    require_valid(schema, {"x": [1, 2]})
    with pytest.raises(SchemaError, match=r"Schema: target 'bda' is not in the data\. Did you mean 'bad'\?"):
        require_valid(schema, frame, target=True)


@pytest.mark.parametrize(
    ("values", "positive"), [([True, False], True), ([1.0, 0.0], 1), (["1", "0"], 1), (["y", "n"], "y")]
)
def test_positive_labels_are_compared_as_labels(values, positive):
    schema = Schema(target="bad", positive=positive, features={"x": {}})
    assert errors(schema, {"x": [1, 2], "bad": values}) == []


# ---- all at once


def test_errors_come_first_and_in_the_order_of_the_schema():
    schema = Schema(target="bad", features={"a": {"special_values": [-9]}, "b": {}, "c": {}}, subscales={"S": ["a"]})
    found = schema.check({"a": [1, 2], "c": ["x", "y"], "bad": [1, 1]})
    assert [(p.severity, p.feature) for p in found] == [
        ("error", None),
        ("error", "b"),
        ("error", "c"),
        ("note", "a"),
        ("note", None),
    ]


def test_require_valid_raises_one_error_that_lists_all():
    schema = Schema(features={"age": {}, "job": {}, "extra": {"special_values": [-9]}})
    with pytest.raises(SchemaError, match=r"^Schema: 2 problems\n") as raised:
        require_valid(schema, {"job": ["cook"], "extra": [1]})
    _, first, second = str(raised.value).splitlines()
    assert first == "  - feature 'age' is not in the data. Known: 'job', 'extra'."
    assert second.startswith("  - feature 'job' is continuous but holds text in row 0.")


def test_require_valid_does_not_mind_notes():
    schema = Schema(features={"x": {"special_values": [-9]}})
    assert notes(schema, {"x": [1, 1], "y": [1, 2]}, target=False) != []
    require_valid(schema, {"x": [1, 1], "y": [1, 2]})


# ---- notes


def test_notes_on_the_whole():
    schema = Schema(features={"a": {}, "b": {}, "c": {}, "d": {}}, subscales={"S": ["a", "b"], "T": ["b"], "U": ["a"]})
    frame = {name: [1, 2] for name in "abcdef"}
    assert notes(schema, frame) == [
        "the schema names no target, so the outcome was not checked.",
        "2 features in more than one subscale: 'a' (S, U), 'b' (S, T).",
        "2 features in no subscale: 'c', 'd'.",
        "2 columns of the data are not in the schema: 'e', 'f'.",
    ]


def test_long_lists_are_cut():
    frame = {f"c{i}": [1, 2] for i in range(30)}
    (note,) = notes(Schema(features={"c0": {}}), frame, target=False)
    assert note.startswith("29 columns of the data are not in the schema: 'c1', ")
    assert note.endswith("'c12' and 17 more.")


@pytest.mark.parametrize(
    ("fields", "values", "message"),
    [
        ({"special_values": [-9, -8]}, [1, 2, -8], "special value never seen: -9."),
        ({"special_values": [-9, -8]}, [1, 2, 3], "special values never seen: -9, -8."),
        ({"special_values": [-9]}, [-9, -9, None], "holds special values only, no measurement."),
        ({"lower_bound": 0}, [-1, -2, None], "holds special values only, no measurement."),
        ({}, [5, 5, 5], "is '5' in every row, so it cannot distinguish risks."),
        ({"kind": "categorical"}, ["a", "a"], "is 'a' in every row, so it cannot distinguish risks."),
        ({"kind": "categorical", "special_values": ["?"]}, ["a", "b"], "special value never seen: '?'."),
        (
            {"kind": "categorical", "categories": ["a", "b", "c"]},
            ["a", "b"],
            "listed category never seen: 'c'.",
        ),
        (
            {"kind": "categorical", "categories": [1, 2, 3, 4]},
            [1, 2],
            "listed categories never seen: '3', '4'.",
        ),
        (
            {"kind": "categorical", "categories": ["a"], "special_values": ["?"]},
            ["a", "b", "?", "c"],
            "not listed, so treated like one never seen: 'b', 'c'.",
        ),
        (
            {"kind": "categorical", "categories": ["a"], "unseen": "error"},
            ["a", "b"],
            "not listed, so an error: 'b'.",
        ),
    ],
)
def test_notes_on_one_feature(fields, values, message):
    (problem,) = one(fields, values)
    assert (problem.severity, problem.feature) == ("note", "x")
    assert problem.message.startswith("feature 'x'")
    assert problem.message.endswith(message)


@pytest.mark.parametrize("fields", [{}, {"kind": "categorical"}])
def test_one_row_or_one_value_beside_missing_ones_is_not_constant(fields):
    assert one(fields, [5]) == []
    assert one(fields, [5, 5, None]) == []


def test_undeclared_codes_are_noted_until_they_are_declared():
    values = [0, 1, 2, 3] * 25 + [98] * 5
    (problem,) = one({}, values)
    assert problem.severity == "note"
    assert problem.message == "feature 'x': 98 may be no measurement. If so, add special_values = [98]."
    assert one({"special_values": [98]}, values) == []
    below = [0, 1, 2, 3] * 25 + [-9] * 5
    assert [p.severity for p in one({}, below)] == ["note"]
    assert one({"lower_bound": 0}, below) == []


def test_a_value_at_the_lower_bound_is_a_measurement():
    assert one({"lower_bound": 0}, [0, -1, None]) == []


def test_a_categorical_feature_that_looks_like_a_name():
    half = [f"n{i // 2}" for i in range(20)]
    assert one({"kind": "categorical"}, half) == []
    (problem,) = one({"kind": "categorical"}, ["extra", *half])
    assert one({"kind": "categorical"}, ["a", "b", "c"]) == []  # too few rows to say
    assert (
        problem.message == "feature 'x' has 11 categories in 21 rows. Is it an identifier, or a number stored as text?"
    )
