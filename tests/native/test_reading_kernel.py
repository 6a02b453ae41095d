"""Columns are read, coded and counted alike by the compiled loops, by numpy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk._native import reading
from plainrisk.form import Bins, Categories

FULL = Bins(edges=(-1.0, 0.5, 2.0), special_values=(-9.0, 7.0), lower_bound=-2.0)
CATEGORIES = Categories(("3", "1", "-9", "x"), 2)
HALF = 1.0 + 2.0**-24  # halfway between two float32
NUMBERS = [0.0, -0.0, 0.5, 0.500001, -1.0, 2.0, 2.5, -2.0, -2.1, -9.0, 7.0, 1.0, 3.0, math.nan, 1e300, HALF, math.inf]


def singles_by_hand(x, levels):
    """Measurements, and for other rows which level after the bins they have."""
    code = Bins((), levels.special_values, levels.lower_bound).code_numbers(x).astype(int)
    return np.where(code == 0, x, np.nan).astype(np.float32), code


def rule(levels):
    return reading.rule_of(reading.steps_of(levels))


def read(x, steps, dtype):
    out = np.empty(len(x), dtype)
    return reading.read_levels([x], [steps], [out])[0], out


@pytest.mark.parametrize("levels", [FULL, CATEGORIES, Bins()], ids=["bins", "categories", "one bin"])
@pytest.mark.parametrize("stored", [np.float64, np.float32])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("n", [0, 1, 511, 513, 3000])
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_reading_in_c_is_reading_in_numpy(levels, stored, dtype, n, in_numpy):
    rng = np.random.default_rng(n)
    matrix = rng.choice(NUMBERS, (n, 7)).astype(stored)
    for x in (matrix[:, 3], matrix[::-2, 0], np.ascontiguousarray(matrix[:, 1])):
        flags, out = read(x, rule(levels), dtype)
        expected_flags, expected = in_numpy(reading, read, x, rule(levels), dtype)
        assert flags == expected_flags
        size = np.dtype(dtype).itemsize
        np.testing.assert_array_equal(out.view(f"u{size}"), expected.view(f"u{size}"))


@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("stored", [np.float64, np.float32])
def test_columns_read_together_are_columns_read_alone(count, stored):
    """Neighbours in a matrix stored by rows are copied in groups."""
    matrix = np.random.default_rng(count).normal(size=(700, 12)).astype(stored)
    together = [matrix[:, k] for k in range(count)] + [np.ascontiguousarray(matrix[:, -1])]
    outs = [np.empty(700, np.float32 if k % 2 else np.uint8) for k in range(count + 1)]
    reading.read_levels(together, [rule(FULL)] * (count + 1), outs)
    for column, out in zip(together, outs, strict=True):
        np.testing.assert_array_equal(out, read(column.copy(), rule(FULL), out.dtype)[1])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(NUMBERS[:-1]), st.floats(-1e9, 1e9)), min_size=1, max_size=40))
def test_codes_are_those_of_the_levels(values):
    x = np.array(values)
    np.testing.assert_array_equal(read(x, rule(FULL), np.uint8)[1], FULL.code_numbers(x))
    if np.abs(x[~np.isnan(x)]).max(initial=0.0) < 1e38:
        singles, code = singles_by_hand(x, FULL)
        found = read(x, rule(Bins((), FULL.special_values, FULL.lower_bound)), np.float32)[1]
        np.testing.assert_array_equal(found, singles)
        codes = np.empty(len(x), np.uint8)
        reading.code_singles([found], [FULL.edges], [len(FULL)], np.zeros(len(x), np.uint8), [codes])
        expected = np.where(code == 0, np.searchsorted(FULL.edges, singles), code + 3)
        np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize(
    ("number", "flag"),
    [
        (1.5, 0),
        (math.nan, 0),
        (-math.inf, reading.HAS_INFINITY | reading.TOO_LARGE),
        (3.5e38, reading.TOO_LARGE),
        (float(np.finfo(np.float32).max), 0),
        (HALF, reading.HALFWAY),
        (-HALF, reading.HALFWAY),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_what_needs_care_is_flagged(number, flag):
    x = np.full(600, 0.25)
    x[-1] = number
    assert read(x, rule(Bins()), np.float32)[0] == flag
    # What is no measurement need not fit a float32.
    assert read(x, rule(Bins(lower_bound=1e300)), np.float32)[0] == flag & ~reading.TOO_LARGE


@pytest.mark.parametrize("n", [0, 1, 1023, 1025, 5000])
@pytest.mark.parametrize("n_edges", [0, 1, 4, 7, 32, 33, 400])
def test_coding_in_c_is_coding_in_numpy(n, n_edges, in_numpy):
    rng = np.random.default_rng(n + n_edges)
    x = rng.integers(-50, 500, n) / 2 + rng.choice([0.0, 1e-9], n)
    x[rng.random(n) < 0.2] = rng.choice([np.nan, -100.0, 777.0])
    flags, singles = read(x, rule(Bins((), (777.0,), -30.0)), np.float32)
    edges = np.unique(rng.choice(1200, n_edges, replace=False)) / 4 - 30.1
    target = rng.integers(0, 2, n).astype(np.uint8)

    def code():
        codes, other = np.empty(n, np.uint8 if n_edges < 250 else np.uint16), np.empty(n, np.uint8)
        sizes = [5, n_edges + 4]
        counts = reading.code_singles([singles[::-1].copy(), singles], [[0.5], edges], sizes, target, [other, codes])
        np.testing.assert_array_equal(counts[:5], reading.count_codes(other, 5, target))
        return codes, counts[5:]

    codes, counts = code()
    plain = in_numpy(reading, code)
    np.testing.assert_array_equal(codes, plain[0])
    np.testing.assert_array_equal(counts, plain[1])
    np.testing.assert_array_equal(counts[:, 1], np.bincount(codes[target == 1], minlength=n_edges + 4))
    assert counts.sum() == n
    assert not flags & ~reading.HALFWAY


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_counts(dtype, in_numpy):
    rng = np.random.default_rng(0)
    codes, target = rng.integers(0, 200, 4001).astype(dtype), rng.integers(0, 2, 4001).astype(np.uint8)
    for one, other in ((codes, target), (codes[::3], target[::3]), (codes[:0], target[:0])):
        found = reading.count_codes(one, 200, other)
        assert found.tolist() == [[((one == k) & (other == y)).sum() for y in (0, 1)] for k in range(200)]
        np.testing.assert_array_equal(found, in_numpy(reading, reading.count_codes, one, 200, other))


ROWS, BYTES, COUNTS = np.zeros(3, np.float32), np.zeros(3, np.uint8), np.zeros((2, 2), np.int64)
EDGE, RULE = np.zeros(1, np.float32), np.zeros((1, 3))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda c: c.read_levels([np.zeros(3, "c8")], [RULE], [BYTES], BYTES[:1]), "one number per row, of a type"),
        (lambda c: c.read_levels([np.zeros((3, 1))], [RULE], [BYTES], BYTES[:1]), "one number per row"),
        (lambda c: c.read_levels([np.zeros(4)], [RULE], [BYTES], BYTES[:1]), "one number per row"),
        (lambda c: c.read_levels([ROWS, ROWS], [RULE, RULE], [BYTES, BYTES[:2]], BYTES[:2]), "array for the result"),
        (lambda c: c.read_levels([np.zeros(3)], [np.zeros((1, 2))], [BYTES], BYTES[:1]), "a rule"),
        (lambda c: c.read_levels([np.zeros(3)], [RULE], [np.zeros(3)], BYTES[:1]), "array for the result"),
        (lambda c: c.read_levels([np.zeros(3)], [RULE], [BYTES], BYTES[:0]), "a flag"),
        (lambda c: c.read_levels([np.zeros(3)], [], [BYTES], BYTES[:1]), "a rule"),
        (lambda c: c.code_singles([ROWS], [EDGE], BYTES[:2], [BYTES], [COUNTS]), "an outcome per row"),
        (lambda c: c.code_singles([ROWS], [EDGE], BYTES, [BYTES[:2]], [COUNTS]), "small code"),
        (lambda c: c.code_singles([ROWS], [EDGE], BYTES, [np.zeros(3, np.int64)], [COUNTS]), "small code"),
        (lambda c: c.code_singles([ROWS], [EDGE], BYTES, [BYTES], [COUNTS[:1]]), "more levels than edges"),
        (lambda c: c.code_singles([ROWS], [EDGE], BYTES, [BYTES], [np.zeros((300, 2), np.int64)]), "can hold them"),
        (lambda c: c.code_singles([ROWS], [], BYTES, [BYTES], [COUNTS]), "for every column"),
        (lambda c: c.code_singles([ROWS], [np.zeros(1)], BYTES, [BYTES], [COUNTS]), "floats are needed"),
        (lambda c: c.count_codes(BYTES, BYTES[:2], COUNTS), "an outcome per row"),
        (lambda c: c.count_codes(BYTES, BYTES, COUNTS[:0]), "two counts per level"),
    ],
)
def test_what_does_not_fit_is_refused(call, what, in_numpy):
    with pytest.raises(ValueError, match=what):
        call(reading.compiled)


def test_codes_without_a_level_do_no_harm(in_numpy):
    """Not what anybody should pass, but the loops stay inside their arrays."""
    counts, codes = np.zeros((2, 2), np.int64), np.array([0, 1, 255], np.uint8)
    reading.compiled.count_codes(codes, np.array([0, 1, 255], np.uint8), counts)
    assert counts.tolist() == [[1, 0], [0, 2]]
    counts, odd = np.zeros((2, 2), np.int64), np.array([1.0, np.nan], np.float32)
    odd.view(np.uint32)[1] = 0x7FFFFFFF
    reading.compiled.code_singles([odd], [EDGE], np.zeros(2, np.uint8), [codes[:2]], [counts])
    assert counts.tolist() == [[0, 0], [2, 0]]
