"""Folds are dealt, ordered and counted alike by the compiled loops, by numpy and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk import _native as kernels
from plainrisk._native import dealing


@pytest.mark.parametrize(("n_rows", "n_folds", "dtype"), [(0, 2, np.uint8), (7, 3, np.uint8), (5000, 300, np.uint16)])
def test_rows_of_a_fold_stand_together_in_their_order(in_numpy, n_rows, n_folds, dtype):
    fold = np.random.default_rng(0).integers(0, n_folds, n_rows).astype(dtype)
    order, ends = dealing.fold_order(fold, n_folds)
    np.testing.assert_array_equal(order, sorted(range(n_rows), key=lambda row: fold[row]))
    assert ends.tolist() == [int((fold <= k).sum()) for k in range(n_folds)]
    for ours, plain in zip((order, ends), in_numpy(dealing, dealing.fold_order, fold, n_folds), strict=True):
        np.testing.assert_array_equal(ours, plain)


@pytest.mark.skipif(not kernels.COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")
@pytest.mark.parametrize(
    ("fold", "order"),
    [
        (np.zeros(3, np.uint8), np.zeros(2, np.int64)),
        (np.zeros(3, np.uint8), np.zeros(3, np.int32)),
        (np.zeros(3, np.uint32), np.zeros(3, np.int64)),
        (np.full(3, 2, np.uint8), np.zeros(3, np.int64)),
        (np.full(3, 2, np.uint16), np.zeros(3, np.int64)),
    ],
)
def test_what_does_not_fit_is_refused(fold, order):
    with pytest.raises(ValueError, match="a fold and a place in the order per row"):
        dealing.compiled.fold_order(fold, order, np.zeros(2, np.int64))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 64, 65, 1000, 5000])
def test_cards_are_shuffled_as_by_numpy(n, dtype):
    ours, theirs = np.arange(n).astype(dtype), np.arange(n).astype(dtype)
    rng, plain = np.random.RandomState(n), np.random.RandomState(n)
    for _ in range(2):  # the second time from what the first has left
        dealing.shuffle(ours, rng)
        plain.shuffle(theirs)
        np.testing.assert_array_equal(ours, theirs)
    assert rng.randint(1 << 30) == plain.randint(1 << 30)


@pytest.mark.skipif(not kernels.COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")
@pytest.mark.parametrize(
    ("cards", "words", "used"),
    [(np.zeros(3), 624, 0), (np.zeros(3, np.uint8), 623, 0), (np.zeros(3, np.uint8), 624, 625)],
)
def test_what_is_no_twister_is_refused(cards, words, used):
    with pytest.raises(ValueError, match="state of a Mersenne twister"):
        dealing.compiled.shuffle(cards, np.zeros(words, np.uint32), used)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_counts_by_fold_are_those_of_every_fold(in_numpy, dtype):
    rng = np.random.default_rng(0)
    n_levels = 200 if dtype == np.uint8 else 900
    codes = rng.integers(0, n_levels, 3000).astype(dtype)
    outcome = rng.integers(0, 2, 3000).astype(np.uint8)
    ends = np.array([0, 1, 1400, 1400, 3000])
    found = dealing.fold_counts(codes, n_levels, outcome, ends)
    assert found.shape == (5, n_levels, 2)
    for k, start in enumerate([0, 0, 1, 1400, 1400]):
        for bad in (0, 1):
            inside = codes[start : ends[k]][outcome[start : ends[k]] == bad]
            np.testing.assert_array_equal(found[k, :, bad], np.bincount(inside, minlength=n_levels))
    np.testing.assert_array_equal(in_numpy(dealing, dealing.fold_counts, codes, n_levels, outcome, ends), found)


@pytest.mark.skipif(not kernels.COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")
@pytest.mark.parametrize(
    ("codes", "outcome", "ends", "levels"),
    [
        (np.zeros(3, np.uint64), 3, [3], 2),
        (np.zeros(3, np.uint8), 2, [3], 2),
        (np.zeros(3, np.uint8), 3, [2], 2),
        (np.zeros(3, np.uint8), 3, [4, 3], 2),
        (np.zeros(3, np.uint8), 3, [3], 0),
        (np.zeros(0, np.uint8), 0, [], 2),
    ],
)
def test_counts_by_fold_refuse_what_does_not_fit(codes, outcome, ends, levels):
    counts = np.zeros((len(ends), levels, 2), np.int64)
    with pytest.raises(ValueError, match="two counts per fold and level"):
        dealing.compiled.fold_counts(codes, np.zeros(outcome, np.uint8), np.array(ends, np.int64), counts)


@pytest.mark.skipif(not kernels.COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_codes_beyond_the_last_level_are_counted_with_it(dtype):
    counts = np.zeros((1, 2, 2), np.int64)
    dealing.compiled.fold_counts(np.array([0, 7, 200], dtype), np.zeros(3, np.uint8), np.array([3]), counts)
    assert counts[0, :, 0].tolist() == [1, 2]
