"""Codes and counts of rows read once are those of every feature read by itself, in every kind of table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plainrisk.bins import learn_levels
from plainrisk.errors import DataError
from plainrisk.form import Bins, Categories
from plainrisk.models import encoding
from plainrisk.models.encoding import encode_rows, encode_with
from plainrisk.models.training import read_training
from plainrisk.schema import Feature, Schema

HALF = 3.0 + 2.0**-23  # halfway between two float32 that a bin's edge may separate
FEATURES = {
    "plain": Feature(),
    "coded": Feature(special_values=(-9, -8), lower_bound=0.0),
    "bounded": Feature(lower_bound=0.1),
    "edges": Feature(edges=(0.0, 1.5)),
    "many": Feature(max_bins=20),
    "listed": Feature(kind="categorical", categories=(0, 1, 2)),
    "found": Feature(kind="categorical"),
}


def matrix_of(rng, n):
    x = rng.normal(1.0, 1.0, (n, len(FEATURES)))
    x[:, 1] = rng.choice([-9.0, -8.0, -1.0, np.nan, 0.0, 1.0, 2.5, 4.0], n)
    x[:, 2] = np.abs(x[:, 2])
    x[:, 5:] = rng.integers(0, 4, (n, 2))
    x[rng.random(n) < 0.1, 0] = np.nan
    x[rng.random(n) < 0.1, 5] = np.nan
    return x, (rng.random(n) < 0.1 + 0.2 * (x[:, 4] > 1) + 0.2 * (x[:, 2] > 1)).astype(int)


def by_feature(training, **options):
    """Levels, codes and counts of one feature after the other, from the rows as they are."""
    target, weight = training.target, training.weight
    mass = np.ones(len(target)) if weight is None else weight
    for name, feature in training.schema.features.items():
        levels = learn_levels(training.frame, name, feature, target, weight, **options)
        codes = levels.codes(training.frame, name)
        total = [mass[codes == k].sum() for k in range(len(levels))]
        positive = [mass[(codes == k) & (target == 1)].sum() for k in range(len(levels))]
        yield levels, codes, total, positive


def check(encoded, expected):
    found = zip(encoded.levels, encoded.codes, encoded.weights, encoded.positives, strict=True)
    for (levels, codes, weights, positives), (own, own_codes, total, positive) in zip(found, expected, strict=True):
        assert levels == own
        assert codes.dtype == own_codes.dtype
        np.testing.assert_array_equal(codes, own_codes)
        np.testing.assert_allclose(weights, total, rtol=1e-12)
        np.testing.assert_allclose(positives, positive, rtol=1e-12)


TABLES = {
    "matrix by rows": lambda x: x,
    "matrix by columns": np.asfortranarray,
    "float32": lambda x: x.astype(np.float32),
    "big endian": lambda x: x.astype(">f8"),
    "pandas": lambda x: pd.DataFrame(x, columns=list(FEATURES)),
    "polars": lambda x: pl.DataFrame(x, schema=list(FEATURES), nan_to_null=True),
    "whole numbers": lambda x: pl.DataFrame(np.nan_to_num(x * 4).astype(np.int32), schema=list(FEATURES)),
}


@pytest.mark.parametrize("criterion", ["gini", "entropy", "quantile"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("table", TABLES)
def test_rows_read_together_are_rows_read_by_feature(rng, table, weighted, criterion):
    x, y = matrix_of(rng, 700)
    weight = rng.integers(1, 4, 700) / 2 if weighted else None
    training = read_training(TABLES[table](x), y, Schema(features=FEATURES), weight, None)
    options = {"max_bins": 4, "criterion": criterion, "min_rows": 3}
    encoded = encode_rows(training, **options)
    check(encoded, by_feature(training, **options))
    assert sum(len(levels.edges) for levels in encoded.levels if isinstance(levels, Bins)) > 10
    again = encode_with(training, encoded.names, encoded.levels)
    check(again, zip(encoded.levels, encoded.codes, encoded.weights, encoded.positives, strict=True))


@pytest.mark.parametrize("values", [1, 1200, 1 << 20])
def test_what_is_read_together_and_by_how_many_threads_changes_nothing(rng, monkeypatch, values):
    x, y = matrix_of(rng, 500)
    training = read_training(x, y, Schema(features=FEATURES), None, None)
    expected = list(by_feature(training, max_bins=5))
    monkeypatch.setattr(encoding, "_VALUES", values)
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        monkeypatch.setattr("plainrisk.threads.MANY_ROWS", 1)
        check(encode_rows(training, max_bins=5), expected)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([HALF, -HALF, 3.0, 3.0 + 2**-22, 1.0, -9.0, 2.0**25 + 3]), st.booleans()), min_size=4
    )
)
def test_a_number_that_is_rounded_stays_on_its_side_of_an_edge(rows):
    """An edge may lie where float32 has no number; numbers halfway between two are compared as they are."""
    x, y = np.array([[v, 1.0] for v, _ in rows]), np.array([b for _, b in rows]).astype(int)
    assume(len(set(y)) == 2)
    features = {"u": Feature(special_values=(-9,)), "v": Feature()}
    training = read_training(x, y, Schema(features=features), None, None)
    check(encode_rows(training, max_bins=5), by_feature(training, max_bins=5))


def test_a_number_on_an_edge_goes_left():
    """Rounded to float32 it would go right: it lies halfway between two of them, of which the upper one is even."""
    low, high = np.float32(3 + 2**-22), np.float32(3 + 2**-21)
    on_edge = float(low) / 2 + float(high) / 2
    assert np.float32(on_edge) == high
    x = np.array([low, low, low, high, high, on_edge], np.float64)[:, None]
    encoded = encode_rows(read_training(x, [0, 0, 0, 1, 1, 1], None, None, None), max_bins=2)
    assert encoded.levels[0].edges == (on_edge,)
    assert encoded.codes[0].tolist() == [0, 0, 0, 1, 1, 0]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (np.inf, r"feature 'x0' holds infinity \(row 5\)"),
        (-np.inf, r"feature 'x0' holds infinity \(row 5\)"),
        (1e39, r"feature 'x0': .* 1e\+39 is too large for float32"),
    ],
)
def test_numbers_that_cannot_be_used_are_named(rng, number, message, columns):
    x = rng.normal(size=(50, columns))
    x[5, 0] = x[3, -1] = number
    x[3, 0] = 0.0
    training = read_training(x, np.arange(50) % 2, None, None, None)
    with pytest.raises(DataError, match=message):
        encode_rows(training, max_bins=5)


def test_given_edges_take_large_numbers_but_not_infinity():
    x = np.array([[1.0], [1e39], [-1e39], [2.0]])
    schema = Schema(features={"u": Feature(edges=(0.0, 1.5))})
    assert encode_rows(read_training(x, [0, 1, 0, 1], schema, None, None), max_bins=5).codes[0].tolist() == [1, 2, 0, 2]
    x[1] = np.inf
    with pytest.raises(DataError, match=r"feature 'u' holds infinity \(row 1\)"):
        encode_rows(read_training(x, [0, 1, 0, 1], schema, None, None), max_bins=5)


def test_infinity_is_an_unseen_category():
    x = np.array([[0.0], [np.inf], [1.0], [np.nan]])
    schema = Schema(features={"u": Feature(kind="categorical", categories=(0, 1))})
    encoded = encode_rows(read_training(x, [0, 1, 0, 1], schema, None, None), max_bins=5)
    assert encoded.levels[0] == Categories(("0", "1"), 2)
    assert encoded.codes[0].tolist() == [0, 3, 1, 2]
