"""The compiled sums are those of numpy, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk._native import sums

SIZES = [5, 125, 256, 3, 700, 2, 90, 70_000, 11, 4, 6]


@pytest.fixture(params=[0, 1, 1023, 5000])
def rows(request):
    rng = np.random.default_rng(request.param)
    n = request.param
    packs = [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in SIZES]
    return packs, rng.normal(size=n)


def test_look_up(rows, in_numpy):
    packs, values = rows
    rng = np.random.default_rng(1)
    tables = [rng.normal(size=size) for size in SIZES]
    args = (0.3, packs, tables, len(values))
    np.testing.assert_array_equal(sums.look_up(*args), in_numpy(sums, sums.look_up, *args))


@pytest.mark.parametrize("weighted", [False, True])
def test_level_sums(rows, weighted, in_numpy):
    packs, values = rows
    args = (values if weighted else None, packs, SIZES)
    for one, other in zip(sums.level_sums(*args), in_numpy(sums, sums.level_sums, *args), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_that_are_not_in_one_piece(in_numpy):
    rng = np.random.default_rng(0)
    packs = [np.asfortranarray(rng.integers(0, 9, (200, 3), dtype=np.uint8))[::2, k] for k in range(3)]
    values = rng.normal(size=200)[::2]
    args = (values, packs, [9, 9, 9])
    np.testing.assert_array_equal(sums.level_sums(*args), in_numpy(sums, sums.level_sums, *args))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda c: c.look_up(np.zeros(3), [np.zeros(2, np.uint8)], [np.zeros(1)]), "one small integer per row"),
        (lambda c: c.look_up(np.zeros(3), [np.zeros(3, np.int64)], [np.zeros(1)]), "one small integer per row"),
        (lambda c: c.look_up(np.zeros(3), [np.zeros(3, np.uint8)], []), "as many tables as packs"),
        (lambda c: c.level_sums(np.zeros(3), [], [np.zeros(1)]), "as many sums as packs"),
    ],
)
def test_what_does_not_fit_is_refused(call, what, in_numpy):
    with pytest.raises(ValueError, match=what):
        call(sums.compiled)
