"""Sums by pairs of columns: the compiled way and numpy agree, and both with the definition."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk.kernels import pairs

# Levels of the features of every pack; the fourth pack needs two bytes.
FEATURES = [(3, 4), (6,), (2, 3, 5), (300,), (4, 2), (5,)]


@pytest.fixture(params=[0, 1, 1023, 5000])
def rows(request):
    """Packs, their members, their maps, and the dense matrix that they stand for."""
    rng = np.random.default_rng(request.param)
    packs, members, maps, columns = [], [], [], []
    for sizes in FEATURES:
        levels = [rng.integers(0, size, request.param) for size in sizes]
        starts = np.cumsum([0, *sizes[:-1]])
        grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes))
        code = np.ravel_multi_index(levels, sizes)
        packs.append(code.astype(np.uint8 if len(grid) <= 256 else np.uint16))
        members.append((grid + starts).astype(np.int32))
        maps.append(rng.integers(0, 3, (sum(sizes), 4)).astype(np.float64))
        columns.append(sum(maps[-1][start + level] for start, level in zip(starts, levels, strict=True)))
    return packs, members, maps, np.hstack(columns)


def summed(values, packs, members, maps):
    out = np.zeros((4 * len(FEATURES), 4 * len(FEATURES)))
    for first in range(len(packs)):
        pairs.add_pair_sums(values, packs, members, maps, first, out)
    return out


def test_whole_numbers_are_exact_both_ways(rows, in_numpy):
    *args, X = rows
    np.testing.assert_array_equal(summed(None, *args), X.T @ X)
    np.testing.assert_array_equal(in_numpy(pairs, summed, None, *args), X.T @ X)


def test_values(rows, in_numpy):
    *args, X = rows
    values = np.random.default_rng(1).normal(size=len(X))
    expected = (X.T * values) @ X
    np.testing.assert_allclose(summed(values, *args), expected, atol=1e-10)
    np.testing.assert_allclose(in_numpy(pairs, summed, values, *args), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"values": np.zeros(2)}, "one value per row"),
        ({"packs": [np.zeros(3, np.int64)]}, "one small integer per row"),
        ({"members": []}, "do not fit"),
        ({"maps": []}, "do not fit"),
        ({"first": 1}, "do not fit"),
        ({"out": np.zeros((2, 3))}, "do not fit"),
        ({"out": np.zeros((3, 3))}, "for every column"),
        ({"members": [np.zeros((2, 1))]}, "32-bit integers"),
        ({"members": [np.full((2, 1), 2, np.int32)]}, "beyond the map"),
        ({"members": [np.full((2, 1), -1, np.int32)]}, "beyond the map"),
    ],
)
def test_what_does_not_fit_is_refused(changed, what, in_numpy):
    args = {"values": None, "packs": [np.zeros(3, np.uint8)], "members": [np.zeros((2, 1), np.int32)]}
    args |= {"maps": [np.eye(2)], "first": 0, "out": np.zeros((2, 2))} | changed
    with pytest.raises(ValueError, match=what):
        pairs.compiled.pair_sums(*args.values())
