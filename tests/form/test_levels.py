from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk.data.frame import as_frame
from plainrisk.errors import ModelFileError
from plainrisk.form import Bins, Categories

numbers = st.one_of(
    st.integers(-12, 12).map(float),
    st.floats(allow_nan=False, allow_infinity=False, width=64),
)


def level_of(bins: Bins, x: float) -> int:
    """Which level a number falls into, as the documentation says it."""
    n = len(bins.edges) + 1
    if math.isnan(x):
        return n + len(bins.special_values) + (bins.lower_bound is not None)
    for k, special in enumerate(bins.special_values):
        if x == special:
            return n + k
    if bins.lower_bound is not None and x < bins.lower_bound:
        return n + len(bins.special_values)
    for j, edge in enumerate(bins.edges):
        if x <= edge:
            return j
    return n - 1


@settings(max_examples=300, deadline=None)
@given(
    st.lists(numbers, max_size=20, unique=True),
    st.lists(numbers, max_size=3, unique=True),
    st.none() | numbers,
    st.lists(st.one_of(numbers, st.just(float("nan"))), max_size=20),
)
def test_bins_code_every_number_as_documented(edges, special, bound, values):
    edges = sorted(set(np.array(edges, dtype=np.float64).tolist()))
    bins = Bins(edges=tuple(edges), special_values=tuple(special), lower_bound=bound)
    x = np.array([*values, *edges, *special, *([] if bound is None else [bound]), -0.0])
    x = np.concatenate([x, np.nextafter(x, 0.0)])
    codes = bins.code_numbers(x)
    assert codes.tolist() == [level_of(bins, v) for v in x.tolist()]
    assert len(bins.labels) == len(bins) > codes.max()
    assert [bins.level_of(v) for v in x.tolist()] == codes.tolist()


def test_codes_are_small_and_wide_bins_are_right():
    few, many = Bins(edges=(1.0,)), Bins(edges=tuple(map(float, range(300))))
    assert few.code_numbers(np.array([0.0])).dtype == np.uint8
    x = np.array([-5.0, 0.0, 0.5, 298.0, 299.0, 1e9, np.nan])
    codes = many.code_numbers(x)
    assert codes.dtype == np.uint16
    assert codes.tolist() == [level_of(many, v) for v in x] == [0, 0, 1, 298, 299, 300, 301]


def test_the_order_holds_the_bins_alone():
    bins = Bins(edges=(0.0, 1.0), special_values=(-9.0,), lower_bound=-5.0)
    assert (bins.n_ordered, bins.missing, len(bins)) == (3, 5, 6)
    assert (Bins().n_ordered, len(Bins()), Bins().labels) == (1, 2, ("any value", "missing"))


# ---- categories


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(max_size=3), max_size=6, unique=True),
    st.lists(st.none() | st.text(max_size=3), min_size=1, max_size=12),
)
def test_categories_code_every_label(known, values):
    levels = Categories(tuple(known), len(known))
    frame = as_frame({"u": values})
    expected = [len(known) if v is None else known.index(v) if v in known else len(known) + 1 for v in values]
    assert levels.codes(frame, "u").tolist() == expected


def test_the_type_of_a_column_does_not_change_its_categories():
    levels = Categories(("1", "2", "10"), 3)
    for column in (
        [1, 2, 10],
        [1.0, 2.0, 10.0],
        ["1", "2", "10"],
        pd.Categorical([1, 2, 10]),
        pd.array([1, 2, 10], dtype="Int64"),
    ):
        assert levels.codes(as_frame(pd.DataFrame({"u": column})), "u").tolist() == [0, 1, 2]


def test_codes_do_not_depend_on_whether_labels_were_read_before():
    x = np.array([[1.0], [2.0], [-3.0], [np.nan], [7.0], [-0.0], [2.5]])
    categories = Categories(("-3", "0", "1", "2.5", "word"), 3)
    expected = [2, 6, 0, 5, 6, 1, 3]
    frame = as_frame(x)
    assert categories.codes(frame, "x0").tolist() == expected
    frame.labels("x0")
    assert categories.codes(frame, "x0").tolist() == expected


def test_categories_called_missing_and_unseen_are_categories():
    levels = Categories(("missing", "unseen"), 2)
    codes = levels.codes(as_frame({"u": ["missing", "unseen", None, "other"]}), "u")
    assert codes.tolist() == [0, 1, 2, 3]


def test_many_categories_need_wide_codes():
    names = [f"c{j}" for j in range(300)]
    levels = Categories(tuple(names), 300)
    codes = levels.codes(as_frame({"u": [*names, None, "?"]}), "u")
    assert codes.dtype == np.uint16
    assert codes.tolist() == list(range(302))


# ---- one value


CELLS = [0, 7, -9, 2.5, 1e300, 2**52, math.nan, None, np.float64(2.5)]
UNUSUAL = [math.inf, -math.inf, 2**53, -(10**400), True, np.int8(3), np.float32(1.5), b"7", [7], object()]


@pytest.mark.parametrize("value", CELLS, ids=repr)
@pytest.mark.parametrize("levels", [Bins((0.5, 7.0), (-9.0,), 0.0), Categories(("7", "2.5", "1e+300", "-9"), 2)])
def test_one_value_has_the_level_of_a_column(levels, value):
    level = levels.level_of(value)
    if level is not None:  # which is what numpy's own floats are to categories, and large ones
        assert [level] == levels.codes(as_frame({"u": [value]}), "u").tolist()
    else:
        assert isinstance(levels, Categories)
        assert type(value) is np.float64 or value == 1e300


@pytest.mark.parametrize("value", UNUSUAL, ids=lambda value: f"{type(value).__name__} {str(value)[:9]}")
def test_an_unusual_value_is_left_to_the_column(value):
    assert Bins((0.5,)).level_of(value) is None
    assert Categories(("7",), 1).level_of(value) is None


def test_text_is_a_category_and_no_number():
    assert Bins((0.5,)).level_of("7") is None
    assert [Categories(("7", ""), 1).level_of(text) for text in ("7", "", "7.0", "missing")] == [0, 1, 3, 3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, object])
def test_labels_of_odd_numbers(dtype):
    """Infinity is a number with a label; NaN is missing even if a category has its name."""
    levels = Categories(("inf", "-inf", "nan", "0", "5e-324"), 0)
    x = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1.0], dtype)
    assert levels.codes(as_frame({"u": x}), "u").tolist() == [0, 1, 5, 3, 3, 6]


def test_whole_numbers_that_a_float_can_not_hold():
    levels = Categories((str(2**53 + 1), str(2**53), "1"), 0)
    x = np.array([2**53, 2**53 + 1, 2**53 + 2, 1])
    assert levels.codes(as_frame({"u": x}), "u").tolist() == [1, 0, 4, 2]
    assert levels.codes(as_frame({"u": x.astype(object)}), "u")[3] == 2


# ---- what may not be


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"edges": (1.0, 1.0)}, "strictly increasing"),
        ({"edges": (2.0, 1.0)}, "strictly increasing"),
        ({"edges": (float("nan"),)}, "finite"),
        ({"special_values": (float("inf"),)}, "finite"),
        ({"lower_bound": float("-inf")}, "finite"),
        ({"edges": tuple(map(float, range(2**16)))}, "65,536 levels"),
    ],
)
def test_bins_refuse_what_can_not_be_coded(fields, message):
    with pytest.raises(ModelFileError, match=message):
        Bins(**fields)


@pytest.mark.parametrize(
    ("categories", "n_ordered", "message"),
    [
        (("a", "a"), 2, "twice"),
        (("a",), 2, "an invalid number"),
        (("a",), -1, "an invalid number"),
        (tuple(map(str, range(2**16))), 0, "an invalid number"),
    ],
)
def test_categories_refuse_what_can_not_be_coded(categories, n_ordered, message):
    with pytest.raises(ModelFileError, match=message):
        Categories(categories, n_ordered)
