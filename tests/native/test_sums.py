"""Sums by joint code: the compiled ones are those of numpy to the last bit, and both those of the definition."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk._native import sums

SIZES = [5, 125, 256, 3, 700, 2, 90, 70_000, 11, 4, 6]


def make_codes(n, sizes=SIZES):
    rng = np.random.default_rng(n)
    return [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in sizes], rng.normal(size=n)


@pytest.fixture(params=[0, 1, 1023, 5000])
def rows(request):
    return make_codes(request.param)


def test_look_up(rows, in_numpy):
    codes, values = rows
    rng = np.random.default_rng(1)
    tables = [rng.normal(size=size) for size in SIZES]
    args = (0.3, codes, tables, len(values))
    np.testing.assert_array_equal(sums.look_up(*args), in_numpy(sums, sums.look_up, *args))


@pytest.mark.parametrize("weighted", [False, True])
def test_level_sums(rows, weighted, in_numpy):
    codes, values = rows
    args = (values if weighted else None, codes, SIZES)
    for one, other in zip(sums.level_sums(*args), in_numpy(sums, sums.level_sums, *args), strict=True):
        assert one.dtype == other.dtype == np.float64
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", [3, 256, 700])
def test_pair_sums(rows, first, weighted, in_numpy):
    codes, values = rows
    at = SIZES.index(first)
    others = [k for k in range(len(SIZES)) if k != at and SIZES[k] < 1000]
    args = (values if weighted else None, codes[at], [codes[k] for k in others], first, [SIZES[k] for k in others])
    for one, other in zip(sums.pair_sums(*args), in_numpy(sums, sums.pair_sums, *args), strict=True):
        assert one.dtype == other.dtype == np.float64
        np.testing.assert_array_equal(one, other)


def test_sums_are_those_of_a_plain_loop():
    (a, b), values = make_codes(60, [4, 7])
    by_code, by_pair = np.zeros(4), np.zeros((4, 7))
    for i in range(60):
        by_code[a[i]] += values[i]
        by_pair[a[i], b[i]] += values[i]
    np.testing.assert_array_equal(sums.level_sums(values, [a], [4])[0], by_code)
    np.testing.assert_array_equal(sums.pair_sums(values, a, [b], 4, [7])[0], by_pair)
    np.testing.assert_allclose(by_pair.sum(axis=1), by_code, atol=1e-12)
    table = np.arange(4.0)
    np.testing.assert_array_equal(sums.look_up(1.0, [a], [table], 60), 1.0 + table[a])


def test_no_codes():
    assert sums.level_sums(np.ones(3), [], []) == []
    assert sums.pair_sums(None, np.zeros(3, np.uint8), [], 1, []) == []
    np.testing.assert_array_equal(sums.look_up(2.0, [], [], 3), np.full(3, 2.0))


def test_rows_that_are_not_contiguous(in_numpy):
    rng = np.random.default_rng(0)
    codes = [np.asfortranarray(rng.integers(0, 9, (200, 3), dtype=np.uint8))[::2, k] for k in range(3)]
    values = rng.normal(size=200)[::2]
    args = (values, codes, [9, 9, 9])
    np.testing.assert_array_equal(sums.level_sums(*args), in_numpy(sums, sums.level_sums, *args))
    pairs = (values, codes[0], codes[1:], 9, [9, 9])
    np.testing.assert_array_equal(sums.pair_sums(*pairs), in_numpy(sums, sums.pair_sums, *pairs))


BYTES, CODES = np.zeros(3, np.uint8), "one unsigned integer of 1, 2 or 4 bytes per row"


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda c: c.look_up(np.zeros(3), [np.zeros(2, np.uint8)], [np.zeros(1)]), CODES),
        (lambda c: c.look_up(np.zeros(3), [np.zeros(3, np.int64)], [np.zeros(1)]), CODES),
        (lambda c: c.look_up(np.zeros(3), [BYTES], []), "one table per joint code"),
        (lambda c: c.look_up(np.zeros(3), [BYTES], [np.zeros(1, np.float32)]), "a table must hold doubles"),
        (lambda c: c.look_up(np.zeros(3), [BYTES + 1], [np.zeros(1)]), "a joint code is beyond its table"),
        (lambda c: c.level_sums(np.zeros(3), [], 3, [np.zeros(1)]), "one table per joint code"),
        (lambda c: c.level_sums(np.zeros(2), [BYTES], 3, [np.zeros(1)]), "one double per row"),
        (lambda c: c.level_sums(None, [BYTES], 4, [np.zeros(1)]), CODES),
        (lambda c: c.level_sums(None, [BYTES + 5], 3, [np.zeros(5)]), "a joint code is beyond its table"),
        (lambda c: c.pair_sums(None, [BYTES], [BYTES], 3, 1, []), "one table per pair"),
        (lambda c: c.pair_sums(None, [BYTES], [BYTES], 3, 2, [np.zeros((1, 3))]), "as many rows of doubles"),
        (lambda c: c.pair_sums(None, [], [BYTES], 3, 1, [np.zeros((1, 1))]), "one first joint code"),
        (lambda c: c.pair_sums(None, [BYTES + 1], [BYTES], 3, 1, [np.zeros((1, 1))]), "a joint code is beyond"),
        (lambda c: c.pair_sums(None, [BYTES], [BYTES + 1], 3, 1, [np.zeros((1, 1))]), "a joint code is beyond"),
        (lambda c: c.pair_sums(np.zeros(2), [BYTES], [BYTES], 3, 1, [np.zeros((1, 1))]), "one double per row"),
    ],
)
def test_what_does_not_fit_is_refused(call, what, in_numpy):
    with pytest.raises(ValueError, match=what):
        call(sums.compiled)
