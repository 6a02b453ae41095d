"""Frames, columns and single rows of every type, at fitting and at scoring; numbers at the ends of their range."""

from __future__ import annotations

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import plainrisk as pr

N = 40
NUMBERS = np.linspace(0.0, 9.0, N)
SECRET = 987654321.125


def fitted(model):
    return np.isfinite(model.form_.parts[0].intercept)


def learned(model):
    """Whether the model tells the lowest of the column's values from the highest."""
    shape = model.form_.parts[0].shapes["a"]
    return len(set(shape.scores)) > 1


def scored(risk):
    return ((risk >= 0) & (risk <= 1)).all()


def ladder(column, **feature):
    """Fit to a column whose upper half is bad."""
    return lambda w: w.fit_column(column, np.arange(len(column)) >= len(column) // 2, **feature)


TYPES = {
    "big-endian floats": (ladder(NUMBERS.astype(">f8")), learned),
    "big-endian integers": (ladder(np.arange(N).astype(">i4")), learned),
    "float16": (ladder(NUMBERS.astype(np.float16)), learned),
    "long double": (ladder(pd.Series(NUMBERS.astype(np.longdouble))), learned),
    "sparse": (ladder(pd.arrays.SparseArray(NUMBERS)), learned),
    "nullable integers": (ladder(pd.array([*range(N - 1), None], dtype="Int64")), learned),
    "nullable floats": (ladder(pd.array([*NUMBERS[:-1], None], dtype="Float64")), learned),
    "nullable booleans": (ladder(pd.array([False] * 20 + [True] * 19 + [None], dtype="boolean")), learned),
    "arrow-backed numbers": (ladder(pd.Series(NUMBERS, dtype="float64[pyarrow]")), learned),
    "a categorical of numbers": (ladder(pd.Categorical(np.arange(N) // 10)), learned),
    "booleans": (ladder(NUMBERS > 4), learned),
    "objects that are numbers": (ladder(pd.Series(list(NUMBERS), dtype=object)), learned),
    "decimals": (ladder(pd.Series([decimal.Decimal(k) for k in range(N)])), learned),
    "fractions": (ladder(pd.Series([fractions.Fraction(k, 7) for k in range(N)])), "(Schema|Data)Error: 'a'"),
    "complex numbers": (ladder(NUMBERS + SECRET * 1j), "(Schema|Data)Error: 'a'.*complex"),
    "dates": (ladder(pd.date_range("2020-01-01", periods=N)), "(Schema|Data)Error: 'a'.*(date|time)"),
    "periods": (ladder(pd.period_range("2020-01", periods=N, freq="M")), "(Schema|Data)Error: 'a'"),
    "durations": (ladder(pd.to_timedelta(np.arange(N), unit="D")), "(Schema|Data)Error: 'a'.*(duration|time)"),
    "intervals": (ladder(pd.interval_range(0, N)), "(Schema|Data)Error: 'a'"),
    "lists": (ladder(pd.Series([[SECRET]] * N)), "(Schema|Data)Error: 'a'"),
    "dicts": (ladder(pd.Series([{"k": SECRET}] * N)), "(Schema|Data)Error: 'a'"),
    "bytes": (ladder(pd.Series([b"SECRET-7"] * N)), "(Schema|Data)Error: 'a'"),
    "text among numbers": (
        ladder(pd.Series([*range(N - 1), "SECRET-7"], dtype=object)),
        "(Schema|Data)Error: 'a'.*row 39",
    ),
    "numbers as text": (ladder(pd.Series([str(k) for k in range(N)])), "(Schema|Data)Error: 'a'.*text"),
    "infinity": (ladder(np.append(NUMBERS[:-1], np.inf)), "(Schema|Data)Error: 'a'.*infinit.*row 39"),
    "all missing": (ladder(np.full(N, np.nan)), fitted),
    "all None": (ladder(pd.Series([None] * N, dtype=object)), fitted),
    "constant": (ladder(np.full(N, 7.0)), fitted),
    "polars Int128": (ladder(pl.DataFrame({"a": pl.Series(range(N), dtype=pl.Int128)})), learned),
    "polars Decimal": (ladder(pl.DataFrame({"a": pl.Series(range(N)).cast(pl.Decimal(12, 2))})), learned),
    "polars UInt8": (ladder(pl.DataFrame({"a": pl.Series(range(N), dtype=pl.UInt8)})), learned),
    "polars List": (ladder(pl.DataFrame({"a": [[SECRET]] * N})), "(Schema|Data)Error: 'a'.*[Ll]ist"),
    "polars Struct": (ladder(pl.DataFrame({"a": [{"k": SECRET}] * N})), "(Schema|Data)Error: 'a'.*[Ss]truct"),
    "polars Object": (
        ladder(pl.DataFrame({"a": pl.Series([{SECRET}] * N, dtype=pl.Object)})),
        "(Schema|Data)Error: 'a'",
    ),
    "polars Date": (ladder(pl.DataFrame({"a": [datetime.date(2020, 1, 1)] * N})), "(Schema|Data)Error: 'a'.*[Dd]ate"),
    "polars Time": (ladder(pl.DataFrame({"a": [datetime.time(1)] * N})), "(Schema|Data)Error: 'a'.*[Tt]ime"),
    "polars Duration": (
        ladder(pl.DataFrame({"a": [datetime.timedelta(1)] * N})),
        "(Schema|Data)Error: 'a'.*[Dd]uration",
    ),
    "polars Null": (ladder(pl.DataFrame({"a": [None] * N})), fitted),
    "polars Categorical of words": (
        ladder(pl.DataFrame({"a": pl.Series(["x"] * 20 + ["y"] * 20, dtype=pl.Categorical)}), kind="categorical"),
        learned,
    ),
    "a category per row": (ladder(pd.Series([f"k{k}" for k in range(N)]), kind="categorical"), fitted),
    "categories that are numbers and their texts": (
        ladder(pd.Series([2, "2", 2.0, "3"] * 10, dtype=object), kind="categorical"),
        lambda m: m.form_.parts[0].shapes["a"].levels.categories == ("2", "3"),
    ),
    "categories that are lists": (ladder(pd.Series([["SECRET-7"]] * N), kind="categorical"), "(Schema|Data)Error: 'a'"),
    "categories in control characters": (
        ladder(pd.Series(["\x1b[2J", "y"] * 20), kind="categorical"),
        lambda m: "\x1b" not in str(m.overview()),
    ),
}


@pytest.mark.parametrize(("call", "expected"), TYPES.values(), ids=TYPES)
def test_columns_of_every_type(judge, call, expected):
    judge(call, expected)


def arrow(w):
    return pa.table({"a": w.X["a"], "b": w.X["b"], "c": w.X["c"]})


class Nothing:
    """An object that is no table."""


TABLES = {
    "an arrow table": (lambda w: w.fit(arrow(w)), fitted),
    "a dict of lists": (lambda w: w.fit({k: list(v) for k, v in w.X.items()}), fitted),
    "a list of dicts": (
        lambda w: w.score([{"a": SECRET, "b": 1.0, "c": "x"}, {"a": 3.0, "b": 1.0, "c": "x"}]),
        lambda r: scored(r) and len(r) == 2,
    ),
    "a list of dicts with other keys": (
        lambda w: w.score([{"a": SECRET, "b": 1.0, "c": "x"}, {"a": 3.0}]),
        "DataError: ('b'|row 1|column)",
    ),
    "a list of texts": (lambda w: w.score(["SECRET-7"]), "DataError: "),
    "a text": (lambda w: w.score("SECRET-7"), "DataError: "),
    "bytes": (lambda w: w.score(b"SECRET-7"), "DataError: "),
    "None": (lambda w: w.score(None), "DataError: "),
    "a number": (lambda w: w.score(SECRET), "DataError: "),
    "a set": (lambda w: w.score({SECRET}), "DataError: "),
    "a generator": (lambda w: w.model("ARM1").predict_proba(x for x in [SECRET]), "DataError: "),
    "an object": (lambda w: w.score(Nothing()), "DataError: "),
    "a class": (lambda w: w.model("ARM1").predict_proba(pd.DataFrame), "DataError: "),
    "a lazy frame": (lambda w: w.model("ARM1").predict_proba(pl.from_pandas(w.X).lazy())[:, 1], "DataError: .*collect"),
    "a series": (lambda w: w.score(w.X["a"]), "DataError: "),
    "an empty dict": (lambda w: w.score({}), "DataError: 'a'"),
    "no columns": (lambda w: w.score(pd.DataFrame(index=range(3))), "DataError: 'a'"),
    "columns of unequal length": (lambda w: w.score({"a": [1.0, 2.0], "b": [1.0], "c": ["x", "y"]}), "DataError: "),
    "a column of two dimensions": (
        lambda w: w.score({"a": np.ones((2, 2)), "b": [1.0, 2.0], "c": ["x", "y"]}),
        "DataError: 'a'",
    ),
    "a column of none": (lambda w: w.score({"a": np.float64(3), "b": 1.0, "c": "x"}), scored),
    "two columns of one name": (
        lambda w: w.score(pd.concat([w.X, w.X[["a"]]], axis=1)),
        "DataError: .*'a'",
    ),
    "columns named by numbers": (lambda w: w.score(w.X.set_axis([0, 1, 2], axis=1)), "DataError: 'a'"),
    "columns with several levels": (
        lambda w: w.score(w.X.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("b", 1), ("c", 1)]), axis=1)),
        "DataError: ",
    ),
    "a missing column": (lambda w: w.score(w.X.drop(columns="b")), "DataError: feature 'b' is not in the data"),
    "a column misspelled": (lambda w: w.score(w.X.rename(columns={"b": "B"})), "DataError: feature 'b'"),
    "more columns than the model reads": (lambda w: w.score(w.X.assign(z="SECRET-7")), scored),
    "columns in another order": (
        lambda w: (w.score(w.X[["c", "b", "a"]]), w.score(w.X)),
        lambda two: (two[0] == two[1]).all(),
    ),
    "an index that repeats": (lambda w: w.score(w.X.set_axis([0] * len(w.X))), scored),
    "no rows": (lambda w: w.score(w.X.head(0)), lambda r: r.shape == (0,)),
    "no rows to fit": (lambda w: w.fit(w.X.head(0), w.y[:0]), "DataError: "),
    "one row to fit": (lambda w: w.fit(w.X.head(1), w.y[:1]), "(Schema|Data)Error: (outcome|positive)"),
    "two rows to fit": (lambda w: w.fit(w.X.head(2), [0, 1]), fitted),
    "an array of one dimension": (lambda w: w.score(w.X["a"].to_numpy()), "DataError: "),
    "an array of three dimensions": (lambda w: w.score(np.zeros((2, 3, 1))), "DataError: "),
    "an array with too few columns": (
        lambda w: w.score(np.zeros((2, 2))),
        "DataError: the model knows its features by name",
    ),
    "an array for columns known by name": (
        lambda w: w.score(np.array([[1.0, 2.0, np.nan]])),
        "DataError: the model knows its features by name",
    ),
    "a masked array": (
        lambda w: w.model("LinNNLR").predict_proba(
            np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[1, 0], [0, 0]]), columns=["a", "b"]
        ),
        scored,
    ),
    "a masked column": (
        lambda w: w.fit(
            {"a": np.ma.masked_array(NUMBERS, mask=NUMBERS > 7)}, np.arange(N) % 2, schema=pr.Schema(features={"a": {}})
        ),
        lambda m: m.form_.parts[0].shapes["a"].weights[-1] == (NUMBERS > 7).sum(),
    ),
    "a structured array": (
        lambda w: w.score(np.array([(1.0, 2.0, "x")], dtype=[("a", "f8"), ("b", "f8"), ("c", "O")])),
        "DataError: ",
    ),
    "a record of complex numbers": (lambda w: w.score(np.zeros((2, 3), complex)), "DataError: [Cc]omplex"),
    "an array of text": (lambda w: w.score(np.array([["SECRET-7", "1", "x"]])), "DataError: "),
    "an array of dates": (lambda w: w.score(np.zeros((2, 3), "M8[D]")), "DataError: "),
}


@pytest.mark.parametrize(("call", "expected"), TABLES.values(), ids=TABLES)
def test_what_is_taken_for_a_table(judge, call, expected):
    judge(call, expected)


def one(**cells):
    return lambda w: w.score({"a": 10.0, "b": 1.0, "c": "x", **cells})


ROWS = {
    "a dict": (one(), scored),
    "None in it": (one(a=None, b=None, c=None), scored),
    "NaN for a category": (one(c=float("nan")), scored),
    "pandas' missing": (one(a=pd.NA, c=pd.NaT), scored),
    "a category never seen": (one(c="SECRET-7"), scored),
    "a category that is a number": (one(c=7), scored),
    "text for a number": (one(a="SECRET-7"), "DataError: 'a'"),
    "a number as text": (one(a="987654321.125"), "DataError: 'a'.*text"),
    "infinity": (one(a=float("inf")), "DataError: 'a'.*infinit"),
    "minus infinity": (one(a=float("-inf")), "DataError: 'a'.*infinit"),
    "a boolean": (one(a=True), scored),
    "a complex number": (one(a=SECRET * 1j), "DataError: 'a'"),
    "a list of one number": (one(a=[10.0]), scored),
    "a list of two": (one(a=[SECRET, 2.0]), "DataError: "),
    "a dict inside": (one(a={"k": SECRET}), "DataError: "),
    "an array of nothing": (one(a=np.array([])), "DataError: "),
    "bytes for a category": (one(c=b"SECRET-7"), scored),
    "a whole number of 400 digits": (one(a=10**400), "DataError: 'a'"),
    "a whole number beyond 2**53": (one(a=2**53 + 1), scored),
    "a decimal": (one(a=decimal.Decimal("3.5")), scored),
    "a date": (one(a=datetime.date(2020, 1, 1)), "DataError: 'a'"),
    "the largest number": (one(a=1.7976931348623157e308), scored),
    "the smallest number": (one(a=5e-324), scored),
    "minus zero": (one(a=-0.0), scored),
    "a key that is no text": (lambda w: w.score({"a": 10.0, "b": 1.0, "c": "x", 3: "SECRET-7"}), scored),
    "a missing key": (lambda w: w.score({"a": SECRET, "c": "x"}), "DataError: feature 'b'"),
    "a line far out": (
        lambda w: w.model("LinNNLR").explain({"a": 1e20, "b": 1.0}, unit="probability"),
        lambda e: abs(e.total[0] - e.risk[0]) < 1e-12 and e.risk[0] == 1.0,
    ),
    "a line at the end of numbers": (
        lambda w: w.model("LinNNLR").explain({"a": [-1.7e308, 1.7e308, 1e10], "b": [1.7e308] * 3}, unit="probability"),
        lambda e: np.abs(e.total - e.risk).max() < 1e-12,
    ),
}


@pytest.mark.parametrize(("call", "expected"), ROWS.values(), ids=ROWS)
def test_one_applicant(judge, call, expected):
    judge(call, expected)


def categories_apart(first, second, *, nulls=False, listed=False):
    values = [first, second] * 20 + [None] * (2 if nulls else 0)
    column = pd.array(values, dtype="Int64") if nulls else np.array(values, dtype=np.int64)
    feature = {"kind": "categorical", **({"categories": (first, second)} if listed else {})}
    return lambda w: w.fit_column(column, np.arange(len(values)) % 2, **feature)


def special_apart(w):
    column = np.array([2**53, 2**53 + 1] * 20, dtype=np.int64)
    return w.fit_column(column, np.arange(40) % 2, special_values=(2**53, 2**53 + 1))


def apart(model):
    shape = model.form_.parts[0].shapes["a"]
    return sum(w > 0 for w in shape.weights) >= 2 and len(set(shape.scores)) > 1


def separates(model):
    """Whether the bins tell the lower half of the column from the upper."""
    shape = model.form_.parts[0].shapes["a"]
    return max(shape.scores) - min(shape.scores) > 1


def offset(by, name="ARM1"):
    column = by + np.arange(N, dtype=np.float64)
    return lambda w: w.fit_column(column, np.arange(N) >= N // 2, name=name)


SIZES = {
    "an offset of 2e8": (offset(2e8), separates),
    "an offset of 1e9": (offset(1e9), separates),
    "an offset of 1e15": (offset(1e15), separates),
    "bands at an offset of 1e9": (offset(1e9, "BandARM1"), separates),
    "trees at an offset of 1e9": (offset(1e9, "MonoXGB"), lambda m: fitted(m)),
    "a scale of 1e-300": (ladder(NUMBERS * 1e-300), separates),
    "a scale of 1e300": (ladder(NUMBERS * 1e300), separates),
    "subnormal numbers": (ladder(np.arange(N) * 5e-324), separates),
    "both ends of numbers": (ladder(np.array([-1.7e308, 1.7e308] * 20)), fitted),
    "neighbors in the last digit": (ladder(np.where(np.arange(N) < 20, 1.0, np.nextafter(1.0, 2.0))), separates),
    "neighbors beyond 2**53": (
        ladder(np.where(np.arange(N) < 20, 2**60, 2**60 + 256).astype(np.int64)),
        separates,
    ),
    "values beyond single precision for trees": (
        lambda w: w.fit_column(NUMBERS * 1e200, np.arange(N) >= 20, name="MonoXGB"),
        "DataError: 'a'.*(single|float32|large)",
    ),
    "a line through numbers of 1e200": (lambda w: w.fit_column(NUMBERS * 1e200, name="NNLR"), fitted),
    "a line through numbers of 1e-200": (lambda w: w.fit_column(NUMBERS * 1e-200, name="NNLR"), fitted),
    "a line through numbers at an offset of 1e15": (lambda w: w.fit_column(NUMBERS + 1e15, name="LinNNLR"), fitted),
    "categories beyond 2**53": (categories_apart(2**53, 2**53 + 1), apart),
    "categories beyond 2**53 with nulls": (categories_apart(2**53, 2**53 + 1, nulls=True), apart),
    "categories beyond 2**53 in the schema": (categories_apart(2**53, 2**53 + 1, listed=True), apart),
    "categories beyond 2**53 in the schema, with nulls": (
        categories_apart(2**53, 2**53 + 1, nulls=True, listed=True),
        apart,
    ),
    "categories beyond 64 bits as text": (
        ladder(pd.Series([str(2**70), str(2**70 + 1)] * 20), kind="categorical"),
        lambda m: len(m.form_.parts[0].shapes["a"].levels.categories) == 2,
    ),
    "special values beyond 2**53": (special_apart, "(SchemaError|DataError): .*'a'.*(2\\*\\*53|apart|same)"),
    "more features than rows": (
        lambda w: w.fit(
            pd.DataFrame(np.random.default_rng(0).normal(size=(40, 200))).add_prefix("f"),
            np.arange(40) % 2,
            schema=pr.Schema(features={f"f{k}": {} for k in range(200)}),
        ),
        fitted,
    ),
}


@pytest.mark.parametrize(("call", "expected"), SIZES.values(), ids=SIZES)
def test_numbers_of_every_size(judge, call, expected):
    judge(call, expected)
