"""Rows taken at random: the same both ways, and as many as the chances say."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk._native import sampling


@pytest.mark.parametrize("n", [0, 1, 1023, 5000])
def test_both_ways_take_the_same_rows(n, rng, in_numpy):
    packs = [rng.integers(0, size, n).astype(dtype) for size, dtype in ((5, np.uint8), (700, np.uint16))]
    args = (packs, [rng.random(5), rng.random(700)], 0.2, n, 7)
    for one, other in zip(sampling.sample_rows(*args), in_numpy(sampling, sampling.sample_rows, *args), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_chance_is_a_share_of_the_rows(rng):
    n = 200_000
    pack = rng.integers(0, 3, n).astype(np.uint8)
    rows, weights = sampling.sample_rows([pack], [np.array([0.0, 0.5, 1.0])], 0.1, n)
    taken = np.bincount(pack[rows]) / np.bincount(pack)
    np.testing.assert_allclose(taken, [0.1, 0.5, 1.0], atol=0.01)
    np.testing.assert_allclose(weights, np.array([10.0, 2.0, 1.0])[pack[rows]])


def test_rows_are_taken_by_their_numbers():
    whole = sampling.sample_rows([], [], 0.3, 1000)[0]
    later = sampling.sample_rows([], [], 0.3, 400, 600)[0]
    np.testing.assert_array_equal(later + 600, whole[whole >= 600])


@pytest.mark.parametrize(
    ("packs", "floors", "weights", "what"),
    [
        ([np.zeros(2, np.uint8)], [np.zeros(1)], np.zeros(3), "one small integer per row"),
        ([np.zeros(3, np.uint8)], [], np.zeros(3), "as many floors as packs"),
        ([], [], np.zeros(2), "room for every row"),
    ],
)
def test_what_does_not_fit_is_refused(packs, floors, weights, what, in_numpy):
    with pytest.raises(ValueError, match=what):
        sampling.compiled.sample(packs, floors, 0.5, 0, np.zeros(3, np.int64), weights)
