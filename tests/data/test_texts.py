"""Numbers as people write them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainrisk.data.frame import as_frame
from plainrisk.data.texts import Reading, parse, read_texts
from plainrisk.errors import DataError

CENTS = st.integers(-(10**12), 10**12)


@pytest.mark.parametrize(
    ("text", "read", "number"),
    [
        ("1", "number", 1.0),
        (" -1.5e3 ", "number", -1500.0),
        ("TRUE", "number", 1.0),
        ("35.5%", "percent", 35.5),
        ("35.5 %", "percent", 35.5),
        ("-3", "percent", -3.0),
        ("$1,100.00", "amount", 1100.0),
        ("-$1,100", "amount", -1100.0),
        ("$-5", "amount", -5.0),
        ("(1,100.50)", "amount", -1100.5),
        ("($7)", "amount", -7.0),
        ("EUR 12", "amount", 12.0),
        ("12 €", "amount", 12.0),
        ("US$ 1,234,567.", "amount", 1234567.0),
        ("1100.5", "amount", 1100.5),
        ("1.100,50", "decimal_comma", 1100.5),
        ("1 100,5", "decimal_comma", 1100.5),
        ("1.100,50 €", "decimal_comma", 1100.5),
        ("35,5 %", "decimal_comma", 35.5),
        ("-7", "decimal_comma", -7.0),
    ],
)
def test_numbers_are_read(text, read, number):
    assert parse(text, read) == number


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1,5", "number"),
        ("1_000", "number"),
        ("inf", "number"),
        ("35.5%", "number"),
        ("%", "percent"),
        ("3%%", "percent"),
        ("$5", "percent"),
        ("1,10", "amount"),
        ("11,00.5", "amount"),
        ("(-5)", "amount"),
        ("--5", "amount"),
        ("5%", "amount"),
        ("$", "amount"),
        ("1.5", "decimal_comma"),
        ("1,100.50", "decimal_comma"),
        ("1,2,3", "decimal_comma"),
    ],
)
def test_what_is_written_otherwise_is_refused_and_not_guessed(text, read):
    assert parse(text, read) is None


@given(CENTS)
def test_amounts_and_decimal_commas_are_read_back(cents):
    number = cents / 100
    english = f"{number:,.2f}"
    swapped = english.translate(str.maketrans(",.", ".,"))
    assert parse(english, "amount") == parse(swapped, "decimal_comma") == pytest.approx(number, abs=0)
    assert parse(f"${abs(number):,.2f}", "amount") == abs(number)
    assert parse(repr(number) + "%", "percent") == number


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table, dict])
def test_columns_of_every_library_and_numbers_that_stay(make):
    readings = {
        "rate": Reading(True, "percent", frozenset({"NA"})),
        "job": Reading(False, null_values=frozenset({"?"})),
        "age": Reading(True, null_values=frozenset({"NA"})),
    }
    frame = as_frame(make({"rate": ["5%", " NA ", None], "job": ["a", " ?", "b"], "age": [1.5, 2.0, 3.0]}))
    found = read_texts(frame, readings)
    np.testing.assert_array_equal(found.numbers("rate"), [5.0, math.nan, math.nan])
    assert found.labels("job").labels == ("a", "b")
    assert found.labels("job").codes.tolist() == [0, -1, 1]
    assert found.column("age") is frame.column("age")
    again = read_texts(found, readings)
    np.testing.assert_array_equal(again.numbers("rate"), found.numbers("rate"))
    assert again.labels("job").labels == ("a", "b")


def test_numbers_among_texts_are_not_read_as_texts():
    frame = as_frame({"x": [1.5, "2,5", None]})
    found = read_texts(frame, {"x": Reading(True, "decimal_comma")})
    np.testing.assert_array_equal(found.numbers("x"), [1.5, 2.5, math.nan])


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, dict])
def test_the_error_names_feature_row_and_rule(make):
    frame = as_frame(make({"x": ["1%", "NA", "one"]}))
    message = r"feature 'x' is continuous but holds text in row 2 .*\(read = 'percent'; missing is 'NA'\)"
    with pytest.raises(DataError, match=message):
        read_texts(frame, {"x": Reading(True, "percent", frozenset({"NA"}))})
