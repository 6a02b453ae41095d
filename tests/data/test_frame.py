from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.data.frame import as_frame, column_of, frame_like, native_rows
from plainrisk.errors import DataError
from plainrisk.form import Categories

# ---- the same column in every library

TEXT = ["b", "a", None, "b"]
NUMBERS = [2.0, 1.5, None, -3.0]
WHOLE = [10, 9, None, 10]
TRUTH = [True, False, None, True]

TEXT_COLUMNS = {
    "pandas": pd.Series(TEXT),
    "pandas object": pd.Series(TEXT, dtype=object),
    "pandas string": pd.Series(TEXT, dtype="string"),
    "pandas arrow": pd.Series(TEXT, dtype=pd.ArrowDtype(pa.string())),
    "pandas category": pd.Series(TEXT, dtype="category"),
    "pandas wide category": pd.Series(pd.Categorical(TEXT, categories=["z", "b", "a"], ordered=True)),
    "polars": pl.Series(TEXT),
    "polars categorical": pl.Series(TEXT, dtype=pl.Categorical),
    "polars enum": pl.Series(TEXT, dtype=pl.Enum(["z", "b", "a"])),
    "arrow": pa.chunked_array([TEXT[:1], TEXT[1:]]),
    "arrow large": pa.chunked_array([pa.array(TEXT, pa.large_string())]),
    "arrow view": pa.chunked_array([pa.array(TEXT, pa.string_view())]),
    "arrow dictionary": pa.chunked_array([pa.array(TEXT).dictionary_encode()]),
    "numpy": np.array(TEXT, dtype=object),
    "list": TEXT,
}
NUMBER_COLUMNS = {
    "pandas": pd.Series(NUMBERS),
    "pandas nullable": pd.Series(NUMBERS, dtype="Float64"),
    "pandas arrow": pd.Series(NUMBERS, dtype="double[pyarrow]"),
    "pandas object": pd.Series(NUMBERS, dtype=object),
    "pandas NA": pd.Series([2.0, 1.5, pd.NA, -3], dtype=object),
    "polars": pl.Series(NUMBERS),
    "polars NaN": pl.Series([2.0, 1.5, float("nan"), -3.0]),
    "polars decimal": pl.Series(["2", "1.5", None, "-3"]).cast(pl.Decimal(10, 2)),
    "arrow": pa.chunked_array([NUMBERS]),
    "numpy": np.array([2.0, 1.5, np.nan, -3.0]),
    "numpy float32": np.array([2.0, 1.5, np.nan, -3.0], dtype=np.float32),
    "numpy object": np.array(NUMBERS, dtype=object),
    "list": NUMBERS,
}
WHOLE_COLUMNS = {
    "pandas": pd.Series(WHOLE),
    "pandas Int64": pd.Series(WHOLE, dtype="Int64"),
    "pandas arrow": pd.Series(WHOLE, dtype="int64[pyarrow]"),
    "pandas object": pd.Series(WHOLE, dtype=object),
    "pandas mixed": pd.Series([10.0, 9, None, 10], dtype=object),
    "pandas category": pd.Series(WHOLE, dtype="Int64").astype("category"),
    "pandas float category": pd.Series(WHOLE).astype("category"),
    "polars": pl.Series(WHOLE),
    "polars small": pl.Series(WHOLE, dtype=pl.UInt8),
    "arrow": pa.chunked_array([WHOLE]),
    "arrow dictionary": pa.chunked_array([pa.array(WHOLE).dictionary_encode()]),
    "numpy object": np.array(WHOLE, dtype=object),
    "list": WHOLE,
}
TRUTH_COLUMNS = {
    "pandas object": pd.Series(TRUTH, dtype=object),
    "pandas nullable": pd.Series(TRUTH, dtype="boolean"),
    "pandas arrow": pd.Series(TRUTH, dtype="bool[pyarrow]"),
    "pandas category": pd.Series(TRUTH, dtype="boolean").astype("category"),
    "polars": pl.Series(TRUTH),
    "arrow": pa.chunked_array([TRUTH]),
    "numpy object": np.array(TRUTH, dtype=object),
    "list": TRUTH,
}


def table(column):
    """The column as a table of its own library."""
    if isinstance(column, pd.Series):
        return pd.DataFrame({"x": column.to_numpy() if column.dtype == object else column})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"x": column})
    if isinstance(column, pa.ChunkedArray):
        return pa.table({"x": column})
    return {"x": column}


def each(columns):
    return pytest.mark.parametrize("column", columns.values(), ids=columns.keys())


@each(TEXT_COLUMNS)
def test_text_has_the_same_labels_everywhere(column):
    for labels in (
        as_frame(table(column)).labels("x"),
        as_frame({"x": column}).labels("x"),
        column_of(column),
    ):
        assert labels.labels == ("a", "b")
        assert labels.codes.tolist() == [1, 0, -1, 1]
        assert np.issubdtype(labels.codes.dtype, np.signedinteger)
    assert not as_frame(table(column)).is_numeric("x")


@each(NUMBER_COLUMNS)
def test_numbers_are_the_same_everywhere(column):
    frame = as_frame(table(column))
    assert frame.is_numeric("x")
    values = frame.numbers("x")
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, [2.0, 1.5, np.nan, -3.0])
    labels = frame.labels("x")
    assert labels.labels == ("-3", "1.5", "2")
    assert labels.codes.tolist() == [2, 1, -1, 0]


@each(WHOLE_COLUMNS)
def test_whole_numbers_have_the_same_labels_everywhere(column):
    frame = as_frame(table(column))
    assert frame.labels("x").labels == ("9", "10")  # in the order of numbers, not of text
    assert frame.labels("x").codes.tolist() == [1, 0, -1, 1]
    np.testing.assert_array_equal(frame.numbers("x"), [10, 9, np.nan, 10])


@each(TRUTH_COLUMNS)
def test_truth_has_the_same_labels_everywhere(column):
    frame = as_frame(table(column))
    assert frame.labels("x").labels == ("False", "True")
    assert frame.labels("x").codes.tolist() == [1, 0, -1, 1]
    assert not frame.is_numeric("x")


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, False]),
        pl.Series([True, False]),
        pa.chunked_array([[True, False]]),
        np.array([True, False]),
    ],
)
def test_truth_is_read_as_one_and_zero_where_numbers_are_asked_for(column):
    np.testing.assert_array_equal(as_frame(table(column)).numbers("x"), [1.0, 0.0])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([None, None], dtype=object),
        pd.Series([None, None], dtype="string"),
        pd.Series([np.nan, np.nan]),
        pl.Series([None, None]),
        pl.Series([None, None], dtype=pl.String),
        pa.chunked_array([pa.nulls(2)]),
        np.array([None, None]),
        [None, np.nan],
    ],
)
def test_a_column_that_is_missing_altogether(column):
    frame = as_frame(table(column))
    assert np.isnan(frame.numbers("x")).tolist() == [True, True]
    assert frame.labels("x").labels == ()
    assert frame.labels("x").codes.tolist() == [-1, -1]


@settings(deadline=None, max_examples=60)
@given(values=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=8))
def test_any_text_is_read_alike_and_can_be_had_back(values):
    read = [
        as_frame(pd.DataFrame({"x": pd.Series(values, dtype="string")})).labels("x"),
        as_frame(pl.DataFrame({"x": pl.Series(values, dtype=pl.String)})).labels("x"),
        as_frame(pa.table({"x": pa.array(values, pa.string())})).labels("x"),
        as_frame({"x": np.array(values, dtype=object)}).labels("x"),
    ]
    for labels in read:
        assert [labels.labels[c] if c >= 0 else None for c in labels.codes] == values
        assert labels.labels == read[0].labels == tuple(sorted({v for v in values if v is not None}))


# ---- text and infinity where numbers should be


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, "old", "new"], dtype=object),
        pd.Series(["1", "old", "new"]),
        pd.Series(["1", "old", "new"], dtype="category"),
        pl.Series(["1", "old", "new"]),
        pl.Series(["1", "old", "new"], dtype=pl.Categorical),
        pa.chunked_array([["1", "old", "new"]]),
        np.array([1, "old", "new"], dtype=object),
        [1, "old", "new"],
    ],
)
def test_text_among_numbers_is_named_with_its_row(column):
    with pytest.raises(DataError, match=r"feature 'x' is continuous but holds text in row 1\."):
        as_frame(table(column)).numbers("x")


def test_numbers_written_as_text_are_not_guessed():
    with pytest.raises(DataError, match="feature 'x' holds numbers as text"):
        as_frame({"x": ["1", "2"]}).numbers("x")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_infinity_is_named_with_its_row(make, sign):
    with pytest.raises(DataError, match=r"feature 'x' holds infinity \(row 2\)"):
        as_frame(make({"x": [0.0, None, sign * np.inf]})).numbers("x")
    with pytest.raises(DataError, match=r"infinity \(row 0\)"):  # whose sum is not a number
        as_frame(make({"x": [np.inf, -np.inf]})).numbers("x")


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Int32, pl.Int64])
def test_missing_numbers_of_many_rows_are_missing_too(dtype):
    values = [None if k % 7 == 0 else k % 1000 for k in range(40_000)]
    expected = [np.nan if v is None else float(v) for v in values]
    frame = as_frame(pl.DataFrame({"x": pl.Series(values, dtype=dtype)}))
    np.testing.assert_array_equal(frame.numbers("x"), expected)
    np.testing.assert_array_equal(frame.array("x"), expected)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([-3.0, 0.0, -0.0, 1.0, 2.5, 7.0, 40_000.0, -32_767.0, 32_767.0, np.nan]), min_size=1))
def test_numbers_that_are_labels(values):
    text = [None if v != v else str(int(v)) if v.is_integer() else str(v) for v in values]
    matrix = np.column_stack([values, values])
    read = as_frame(matrix).labels("x0")
    assert [None if code < 0 else read.labels[code] for code in read.codes] == text
    assert list(read.labels) == sorted({t for t in text if t is not None}, key=float)
    np.testing.assert_array_equal(matrix[:, 0], values)  # and the data are as they were


def test_a_sum_that_overflows_is_not_infinity():
    np.testing.assert_array_equal(as_frame({"x": [1e308, 1e308]}).numbers("x"), [1e308, 1e308])


# ---- shapes and names


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_names_and_order(make):
    frame = as_frame(make({"b": [1, 2], "a": ["x", "y"]}))
    assert frame.names == ("b", "a")
    assert frame.n_rows == 2
    assert frame.named
    assert as_frame(frame) is frame


def test_a_dict_of_one_row():
    frame = as_frame({"age": 31, "job": "clerk", "pay": None, "gap": pd.NA, "ok": True, "n": np.float64(2)})
    assert frame.n_rows == 1
    assert frame.numbers("age").tolist() == [31.0]
    assert frame.labels("job").labels == ("clerk",)
    assert np.isnan(frame.numbers("pay")).all()
    assert np.isnan(frame.numbers("gap")).all()
    assert frame.labels("ok").labels == ("True",)
    assert frame.numbers("n").tolist() == [2.0]


def test_a_dict_of_any_columns():
    columns = {
        "a": range(2),
        "b": (v for v in (3, 4)),
        "c": pl.Series([5, 6]),
        "d": pd.Series([7, 8]),
        "e": (9, 0),
    }
    frame = as_frame(columns)
    assert [frame.numbers(name).tolist() for name in frame.names] == [[0, 1], [3, 4], [5, 6], [7, 8], [9, 0]]
    assert as_frame({"a": np.array(3.0)}).numbers("a").tolist() == [3.0]


def test_numpy_arrays_have_made_up_names():
    frame = as_frame(np.array([[1.0, np.nan], [2.0, 3.0]]))
    assert frame.names == ("x0", "x1")
    assert not frame.named
    np.testing.assert_array_equal(frame.numbers("x1"), [np.nan, 3.0])
    renamed = frame.renamed(["age", "pay"])
    assert renamed.named
    assert renamed.numbers("age").tolist() == [1.0, 2.0]


def test_numpy_objects_hold_numbers_and_text():
    frame = as_frame(np.array([[1, "a"], [None, "b"]], dtype=object))
    np.testing.assert_array_equal(frame.numbers("x0"), [1.0, np.nan])
    assert frame.labels("x1").labels == ("a", "b")
    with pytest.raises(TypeError, match="column x0, row 0: argument must be a string or a real number, not dict"):
        as_frame(np.array([[{}]], dtype=object))


@pytest.mark.parametrize(
    "repeated",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.table([[1], [2]], names=["a", "a"]),
        pd.DataFrame([[1, 2, 3]], columns=["b", "a", "a"]),
    ],
)
def test_a_name_that_appears_twice(repeated):
    with pytest.raises(DataError, match=r"column 'a' appears 2 times\. Rename one\."):
        as_frame(repeated)


def test_names_that_are_equal_as_text():
    with pytest.raises(DataError, match="column '1' appears 2 times"):
        as_frame(pd.DataFrame([[1, 2]], columns=["1", 1]))
    with pytest.raises(DataError, match="column '1' appears 2 times"):
        as_frame({"1": [1], 1: [2]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pl.LazyFrame({"a": [1]}), r"a lazy frame was given\. Call \.collect\(\)"),
        ({"a": [1, 2], "b": [1]}, r"different lengths: \[1, 2\]"),
        ({"a": [[1], [1, 2]]}, "not lists in a list"),
        ({"a": np.ones((2, 2))}, "column 'a' must be one value or a flat list"),
    ],
)
def test_tables_that_cannot_be_read(given, message):
    with pytest.raises(DataError, match=message):
        as_frame(given)


@pytest.mark.parametrize("given", [np.ones(3), pd.Series([1, 2]), "abc", None])
def test_what_is_no_table(given):
    with pytest.raises(ValueError, match=r"Expected (2D array|a 2-dimensional container)"):
        as_frame(given)


def test_an_unknown_column_has_a_near_name():
    with pytest.raises(DataError, match=r"there is no column 'incme'\. Did you mean 'income'\?"):
        as_frame({"income": [1]}).numbers("incme")


@pytest.mark.parametrize(
    "empty",
    [
        pd.DataFrame({"x": pd.Series([], dtype="string")}),
        pl.DataFrame({"x": []}),
        {"x": []},
        pa.table({"x": []}),
    ],
)
def test_empty_tables(empty):
    frame = as_frame(empty)
    assert frame.n_rows == 0
    assert frame.numbers("x").shape == (0,)
    assert frame.labels("x").labels == ()


def test_tables_without_columns():
    assert as_frame(pd.DataFrame()).names == ()
    assert as_frame({}).n_rows == 0
    assert as_frame(np.empty((0, 2))).n_rows == 0


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_rows_are_taken_by_position(make):
    frame = as_frame(make({"x": [1, 2, 3], "y": ["a", "b", "c"]}))
    part = frame.take(1, 9)
    assert part.n_rows == 2
    assert part.numbers("x").tolist() == [2, 3]
    assert part.labels("y").labels == ("b", "c")
    assert frame.take(5, 9).n_rows == 0


def test_a_pandas_index_does_not_matter():
    frame = as_frame(pd.DataFrame({"x": [1, 2, 3], "y": ["a", None, "b"]}, index=[7, 7, 0]))
    assert frame.numbers("x").tolist() == [1, 2, 3]
    assert frame.labels("y").codes.tolist() == [0, -1, 1]
    assert frame.take(1, 3).numbers("x").tolist() == [2, 3]


@pytest.mark.parametrize(
    "values",
    [
        [1, 0, 1],
        np.array([[1], [0], [1]]),
        pd.Series([1, 0, 1]),
        pl.Series([1, 0, 1]),
        np.array([1.0, 0.0, 1.0]),
    ],
)
def test_one_column_read_as_labels(values):
    labels = column_of(values)
    assert labels.labels == ("0", "1")
    assert labels.codes.tolist() == [1, 0, 1]
    assert column_of([1, "b"]).labels == ("1", "b")


@pytest.mark.parametrize(
    ("like", "kind"),
    [
        (pd.DataFrame({"a": [1]}), pd.DataFrame),
        (pl.DataFrame({"a": [1]}), pl.DataFrame),
        (pa.table({"a": [1]}), pa.Table),
        (np.ones((1, 1)), pd.DataFrame),
        (None, pd.DataFrame),
    ],
)
def test_results_come_in_the_library_of_the_question(like, kind):
    result = frame_like({"risk": np.array([0.25, 0.5]), "id": ["a", "b"]}, like)
    assert isinstance(result, kind)
    assert as_frame(result).numbers("risk").tolist() == [0.25, 0.5]
    assert as_frame(result).labels("id").labels == ("a", "b")


@pytest.mark.parametrize("dtype", [object, "str"])
@pytest.mark.parametrize("text", [["a\0", None], ["\0", None, ""], [None, "b", "b\0"]])
def test_text_that_ends_in_nothing_is_kept(text, dtype):
    found = as_frame(pd.DataFrame({"x": pd.Series(text, dtype=dtype)})).labels("x")
    assert [None if code < 0 else found.labels[code] for code in found.codes] == text


# ---- some columns of rows in memory, and back to their library


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_some_columns_are_taken_as_they_were_read(make):
    frame = as_frame(make({"x": [1, 2], "y": ["a", "b"], "z": [0.5, None]}))
    frame.labels("y")
    part = frame.select(["y", "x", "y"])
    assert part.names == ("y", "x")
    assert part.n_rows == 2
    assert part.labels("y").labels == ("a", "b")
    with pytest.raises(DataError, match=r"there is no column 'w'"):
        frame.select(["w"])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_go_back_to_their_library(make):
    table = make({"x": [1, 2], "y": ["a", "b"], "z": [0.5, 1.5]})
    some = native_rows(as_frame(table), ("z", "y"))
    assert type(some) is type(table)
    assert as_frame(some).names == ("z", "y")
    assert as_frame(some).numbers("z").tolist() == [0.5, 1.5]


def test_arrays_become_a_matrix_again():
    frame = as_frame(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert native_rows(frame, ("x2", "x0")).tolist() == [[3.0, 1.0], [6.0, 4.0]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_numbers_as_they_are_stored(make):
    frame = as_frame(make({"i": [1, 2], "f": [0.5, 1.5], "b": [True, False], "t": ["1", "2"]}))
    assert frame.array("i").dtype.kind == "i"
    assert frame.array("f").dtype == np.float64
    assert frame.array("b").dtype == np.bool_
    assert frame.array("t") is None


@pytest.mark.parametrize("values", [[2**53, 2**53 + 1, 2**53], [-(2**62), 5, -(2**62) + 1]])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_large_whole_numbers_stay_exact(make, values):
    frame = as_frame(make({"i": values}))
    labels = frame.labels("i")
    assert [labels.labels[code] for code in labels.codes] == [str(v) for v in values]


# ---- unusual storage

D = Decimal
SPARSE = pd.arrays.SparseArray([1.0, 2.0, np.nan, 2.0])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(np.array([1, 2, np.nan, 2], ">f8")),
        pd.Series(SPARSE),
        pd.Series(np.array([1, 2, np.nan, 2], np.longdouble)),
        pd.Series(np.array([1, 2, np.nan, 2], np.float16)),
        pd.Series([1, 2, None, 2], dtype="Int64"),
        pd.Series([1, 2, None, 2], dtype="int64[pyarrow]"),
        pd.Series([D(1), D(2), None, D(2)], dtype=object),
        pd.Series([D(1), D(2), None, D(2)], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        pd.Series(pd.Categorical([1, 2, None, 2])),
        pl.Series([1, 2, None, 2], dtype=pl.Int128),
        pl.Series([1, 2, None, 2], dtype=pl.Object),
        pl.Series([D(1), D(2), None, D(2)]),
        pa.chunked_array([pa.array([D(1), D(2), None, D(2)])]),
        pa.chunked_array([pa.array([1, 2, None, 2]).dictionary_encode()]),
        np.array([1, 2, np.nan, 2], ">f8"),
        np.array([1, 2, np.nan, 2], np.longdouble),
        np.ma.array([1.0, 2.0, 9.0, 2.0], mask=[0, 0, 1, 0]),
        np.ma.array([1, 2, 9, 2], mask=[0, 0, 1, 0]),
    ],
)
def test_numbers_in_unusual_storage(column):
    frame = as_frame({"x": column})
    np.testing.assert_array_equal(frame.numbers("x"), [1, 2, np.nan, 2])
    found = frame.labels("x")
    assert (found.codes.tolist(), found.labels) == ([0, 1, -1, 1], ("1", "2"))


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([D("0.50"), None, D("2.00")]),
        pa.chunked_array([pa.array([D("0.50"), None, D("2.00")])]),
        pd.Series([D("0.50"), None, D("2.00")], dtype=object),
        pd.Series([D("0.50"), None, D("2.00")], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        np.array([D("0.50"), None, D("2.00")], dtype=object),
    ],
)
def test_decimals_with_a_fraction_are_numbers_and_no_categories(column):
    """A file of text writes 0.50, where the label of a decimal is 0.5."""
    frame = as_frame({"rate": column})
    np.testing.assert_array_equal(frame.numbers("rate"), [0.5, np.nan, 2])
    message = r"categorical feature 'rate' holds decimals with a fraction, .* Convert the column to text"
    with pytest.raises(DataError, match=message):
        pr.AdditiveRiskModel(pr.Schema(features={"rate": {"kind": "categorical"}})).fit({"rate": column}, [0, 1, 1])
    levels = Categories(("0.50", "2"), 2)
    assert levels.codes(as_frame({"rate": ["0.50", None, "2"]}), "rate").tolist() == [0, 2, 1]
    with pytest.raises(DataError, match=message):
        levels.codes(frame, "rate")


@pytest.mark.parametrize("dtype", [">i4", ">f8", np.longdouble])
def test_pandas_frames_in_unusual_storage(dtype):
    frame = as_frame(pd.DataFrame({"x": np.array([3, 1, 2], dtype)}))
    assert frame.is_numeric("x")
    assert frame.numbers("x").tolist() == [3, 1, 2]


def test_masked_arrays_are_read_through_no_mask():
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_frame(masked).numbers("x1"), [np.nan, 4])
    whole = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_frame(whole).numbers("x1"), [np.nan, 4])
    text = as_frame({"x": np.ma.array(["a", "hidden"], mask=[False, True])}).labels("x")
    assert (text.codes.tolist(), text.labels) == ([0, -1], ("a",))


BIG = [2**53, 2**53 + 1, None, 2]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(BIG),
        pl.Series(BIG, dtype=pl.Int128),
        pd.Series(BIG, dtype="Int64"),
        pd.Series(BIG, dtype=object),
        pd.Series(pd.Categorical.from_codes([1, 2, -1, 0], categories=[2, 2**53, 2**53 + 1])),
        pa.chunked_array([BIG]),
        pa.chunked_array([pa.array(BIG).dictionary_encode()]),
        pl.Series([None if v is None else D(v) for v in BIG]),
        np.ma.array([2**53, 2**53 + 1, 0, 2], mask=[0, 0, 1, 0]),
        BIG,
    ],
)
def test_large_whole_numbers_stay_apart_beside_missing_ones(column):
    frame = as_frame({"x": column})
    found = frame.labels("x")
    assert (found.codes.tolist(), found.labels) == ([1, 2, -1, 0], ("2", "9007199254740992", "9007199254740993"))
    np.testing.assert_array_equal(frame.numbers("x"), [2.0**53, 2.0**53, np.nan, 2])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pl.Series([[1], [2]]), r"List\(Int64\)"),
        (pl.Series([{"s": 1}, {"s": 2}]), "Struct"),
        (pl.Series([timedelta(1), timedelta(2)]), "Duration"),
        (pl.Series([b"secret", b"\xff"]), "Binary"),
        (pa.chunked_array([[[1], [2]]]), "List"),
        (pd.Series(["secret", ["secret"]], dtype=object), "list"),
        (pd.Series(["secret", {"secret": 1}], dtype=object), "dict"),
        (pd.Series(["secret", np.ones(2)], dtype=object), "ndarray"),
        (pd.Series([object(), object()]), "object"),
        (pd.Series([1 + 1j, 2]), "complex128"),
        (np.array([1 + 1j, 2]), "complex128"),
        (np.zeros(2, "V4"), "void32"),
    ],
)
def test_what_is_neither_number_nor_text_is_refused_by_its_type(column, kind):
    frame = as_frame({"x": column, "y": [1, 2]})
    assert frame.numbers("y").tolist() == [1, 2]  # a column that nobody reads does no harm
    for read in (frame.numbers, frame.labels):
        with pytest.raises(DataError, match=rf"column 'x' holds values of type {kind}") as error:
            read("x")
        assert "secret" not in str(error.value)


def test_dates_are_refused_as_numbers_by_their_type():
    with pytest.raises(DataError, match="is continuous but holds Date in row 0"):
        as_frame(pl.DataFrame({"x": [date(2020, 1, 1)]})).numbers("x")


def test_a_list_of_dicts_is_rows():
    frame = as_frame([{"age": 31, "job": "clerk"}, {"job": None, "age": 40}])
    assert frame.numbers("age").tolist() == [31, 40]
    assert frame.labels("job").codes.tolist() == [0, -1]
    with pytest.raises(DataError, match=r"row 1 and row 0 differ in column 'job'\. All rows need the same columns"):
        as_frame([{"age": 31, "job": "clerk"}, {"age": 40}])


@pytest.mark.parametrize("given", ["secret", ["secret"] * 3, {"secret", "x"}, iter(["secret"]), [["secret"], [1, 2]]])
def test_what_is_no_table_is_refused_without_its_values(given):
    with pytest.raises(DataError, match=r"2D array|inhomogeneous") as error:
        as_frame(given)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("value", [{"secret": 1}, {"secret"}])
def test_a_column_is_one_value_or_a_list(value):
    with pytest.raises(DataError, match="column 'a' must be one value or a flat list") as error:
        as_frame({"a": value})
    assert "secret" not in str(error.value)
