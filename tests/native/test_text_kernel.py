"""Text read where it lies gives the labels and codes that sorting the values gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk._native import COMPILED
from plainrisk._native.text import text_codes

pytestmark = pytest.mark.skipif(not COMPILED, reason="the compiled loops are not installed")

STORED = {
    "polars": lambda v: pl.Series(v, dtype=pl.String),
    "pandas": lambda v: pd.Series(v, dtype="str"),
    "arrow": lambda v: pa.chunked_array([pa.array(v, pa.string())]),
    "large arrow": lambda v: pa.chunked_array([pa.array(v, pa.large_string())]),
    "arrow views": lambda v: pa.chunked_array([pa.array(v, pa.string_view())]),
}


def expected(values):
    labels = tuple(sorted({v for v in values if v is not None}))
    return [-1 if v is None else labels.index(v) for v in values], labels


def check(column, values):
    codes, labels = text_codes(column, len(values))
    wanted, wanted_labels = expected(values)
    assert labels == wanted_labels
    assert codes.tolist() == wanted


@pytest.mark.parametrize("store", STORED.values(), ids=STORED)
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.none() | st.sampled_from(["", "a", "ü", "twelve chars", "thirteen char", "thirteen chaR", "long " * 9]))
)
def test_any_text(store, values):
    check(store(values), values)


@pytest.mark.parametrize("store", STORED.values(), ids=STORED)
def test_many_rows(store):
    values = np.random.default_rng(0).choice([f"label {k}" * (1 + k % 3) for k in range(127)], 5000).tolist()
    values[7::50] = [None] * len(values[7::50])
    check(store(values), values)


def test_a_part_of_a_column_and_several_pieces():
    values = [None, "b", "a", None, "c", "a long label, not kept in place", "b"] * 11
    check(pl.Series(values)[3:40], values[3:40])
    pieces = pl.concat([pl.Series(values[:9]), pl.Series(values[9:])], rechunk=False)
    assert pieces.n_chunks() == 2
    check(pieces, values)
    check(pa.chunked_array([pa.array(values[:5]), pa.array(values[5:])]), values)
    check(pa.chunked_array([pa.array(values)]).slice(5, 50), values[5:55])


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([f"{k}" for k in range(128)]),
        pl.Series(["a" * 5000]),
        pl.Series([1, 2]),
        pl.Series(["a"], dtype=pl.Categorical),
        np.array(["a"]),
    ],
    ids=["many labels", "long text", "numbers", "categories", "an array"],
)
def test_the_rest_is_left_to_others(column):
    assert text_codes(column, len(column)) is None


def test_a_wrong_number_of_rows_is_no_reason_to_write_elsewhere():
    assert text_codes(pl.Series(["a", "b"]), 1) is None
    assert text_codes(pl.Series(["a", "b"]), 3) is None


def test_a_stream_is_read_once():
    from plainrisk._native.choice import compiled

    stream = pl.Series(["a"]).__arrow_c_stream__()
    assert compiled.text_codes(stream, np.empty(1, np.int8)) == ["a"]
    with pytest.raises(ValueError, match="read already"):
        compiled.text_codes(stream, np.empty(1, np.int8))


class Refuses:
    def __arrow_c_stream__(self):
        raise ImportError("pyarrow is not installed")


def test_a_column_that_only_promises_is_left_to_others():
    assert text_codes(Refuses(), 1) is None
