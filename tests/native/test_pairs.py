"""Sums by pairs of columns: the compiled way and numpy agree, and both with the definition."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk._native import LevelMap, level_sums, pairs

# Levels of the features of every pack; the fourth pack needs two bytes.
FEATURES = [(3, 4), (6,), (2, 3, 5), (300,), (4, 2), (5,)]


@pytest.fixture(params=[0, 1, 1023, 5000])
def rows(request):
    """Packs, their levels, and the dense matrix that they stand for."""
    rng = np.random.default_rng(request.param)
    packs, members, features, columns = [], [], [], []
    for sizes in FEATURES:
        levels = [rng.integers(0, size, request.param) for size in sizes]
        grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes))
        code = np.ravel_multi_index(levels, sizes)
        packs.append(code.astype(np.uint8 if len(grid) <= 256 else np.uint16))
        members.append(grid)
        own = [rng.integers(0, 3, (size, 1 + size // 2)).astype(np.float64) for size in sizes]
        columns += [matrix[level] for matrix, level in zip(own, levels, strict=True)]
        features += own
    return packs, LevelMap(tuple(features), tuple(members)), np.hstack(columns)


def summed(values, packs, levels, room=None):
    out = np.zeros((levels.n_columns, levels.n_columns))
    room = pairs.table_room(levels) if room is None else room
    for first, own in enumerate(level_sums(values, packs, levels.sizes)):
        pairs.add_pair_sums(values, packs, levels, first, own, out, room)
    return out


def test_whole_numbers_are_exact_both_ways(rows, in_numpy):
    *args, X = rows
    np.testing.assert_array_equal(summed(None, *args), X.T @ X)
    np.testing.assert_array_equal(in_numpy(pairs, summed, None, *args), X.T @ X)


def test_room_that_is_not_enough_is_no_error(rows, in_numpy):
    *args, X = rows
    np.testing.assert_array_equal(summed(None, *args, np.empty(3)), X.T @ X)


def test_values(rows, in_numpy):
    *args, X = rows
    values = np.random.default_rng(1).normal(size=len(X))
    expected = (X.T * values) @ X
    np.testing.assert_allclose(summed(values, *args), expected, atol=1e-10)
    np.testing.assert_allclose(in_numpy(pairs, summed, values, *args), expected, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_are_the_pairs_of_every_pack_with_itself(rows, in_numpy, weighted):
    packs, levels, X = rows
    values = np.random.default_rng(2).integers(0, 5, len(X)).astype(np.float64) if weighted else None
    every = X.T @ (X if values is None else X * values[:, None])
    for sums, blocks in (
        pairs.block_sums(values, packs, levels),
        in_numpy(pairs, pairs.block_sums, values, packs, levels),
    ):
        np.testing.assert_array_equal(sums, X.sum(axis=0) if values is None else values @ X)
        for block, columns in zip(blocks, levels.columns, strict=True):
            np.testing.assert_array_equal(block, every[columns, columns])


def test_a_block_has_room_for_columns_that_no_code_reaches():
    levels = LevelMap((np.eye(3), np.eye(2)), (np.array([[0], [1]]), np.array([[1]])))
    sums, blocks = pairs.block_sums(None, [np.array([0, 1, 1], np.uint8), np.zeros(3, np.uint8)], levels)
    assert sums.tolist() == [1, 2, 0, 0, 3]
    assert [block.tolist() for block in blocks] == [[[1, 0, 0], [0, 2, 0], [0, 0, 0]], [[0, 0], [0, 3]]]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"values": np.zeros(2)}, "one value per row"),
        ({"packs": []}, "no such pack"),
        ({"sums": np.zeros(1)}, "a column is beyond"),
        ({"widths": np.zeros(2, np.int64)}, "one width per pack"),
        ({"widths": np.array([-1])}, "beyond the columns"),
        ({"widths": np.array([3])}, "beyond the columns"),
        ({"widths": np.array([1])}, "beyond its width"),
        ({"blocks": np.zeros(3)}, "a square for every pack"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(changed, what, in_numpy):
    map = ([np.array([[0], [1]], np.int32)], np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32), np.ones(2))
    args = {"values": None, "packs": [np.zeros(3, np.uint8)], "map": map}
    args |= {"sums": np.zeros(2), "widths": np.array([2]), "blocks": np.zeros(4)}
    with pytest.raises(ValueError, match=what):
        pairs.compiled.block_sums(*(args | changed).values())


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"values": np.zeros(2)}, "one value per row"),
        ({"packs": [np.zeros(3, np.int64)]}, "one small integer per row"),
        ({"first": 1}, "no such pack"),
        ({"first": -1}, "no such pack"),
        ({"own": np.zeros(3)}, "one sum per code"),
        ({"out": np.zeros((2, 3))}, "a square of doubles"),
        ({"out": np.zeros((1, 1))}, "a column is beyond"),
        ({"members": []}, "as many members as packs"),
        ({"members": [np.zeros((2, 1))]}, "32-bit integers"),
        ({"members": [np.full((2, 1), 2, np.int32)]}, "a level is beyond"),
        ({"members": [np.full((2, 1), -1, np.int32)]}, "a level is beyond"),
        ({"starts": np.zeros(0, np.int32)}, "do not fit"),
        ({"starts": np.array([0, 2, 1, 2], np.int32)}, "must not go down"),
        ({"starts": np.array([0, 1, 3], np.int32)}, "from 0 to the number of weights"),
        ({"starts": np.arange(3)}, "32-bit integers"),
        ({"columns": np.array([0, -1], np.int32)}, "a column is beyond"),
        ({"weights": np.ones(3)}, "do not fit"),
    ],
)
def test_what_does_not_fit_is_refused(changed, what, in_numpy):
    map = {"members": [np.zeros((2, 1), np.int32)], "starts": np.arange(3, dtype=np.int32)}
    map |= {"columns": np.arange(2, dtype=np.int32), "weights": np.ones(2)}
    args = {"values": None, "packs": [np.zeros(3, np.uint8)], "map": None, "first": 0}
    args |= {"own": np.zeros(2), "out": np.zeros((2, 2)), "room": np.zeros(9)}
    args |= {key: value for key, value in changed.items() if key not in map}
    args["map"] = tuple((map | {key: value for key, value in changed.items() if key in map}).values())
    with pytest.raises(ValueError, match=what):
        pairs.compiled.pair_sums(*args.values())


def test_the_map_is_the_same_for_many_entries(rows, monkeypatch):
    _, levels, _ = rows
    few = levels.compiled
    monkeypatch.setattr("plainrisk._native.levels._MANY_ENTRIES", 0)
    many = LevelMap(levels.features, levels.members).compiled
    for one, other in zip(few[1:], many[1:], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_feature_without_columns_has_no_place_in_the_map():
    alone = np.arange(2)[:, None]
    levels = LevelMap((np.eye(2), np.zeros((2, 0)), np.eye(2)), (alone, alone, alone))
    _, starts, columns, weights = levels.compiled
    assert (starts.tolist(), columns.tolist(), weights.tolist()) == ([0, 1, 2, 2, 2, 3, 4], [0, 1, 2, 3], [1.0] * 4)
    packs = [np.array([0, 1, 1], np.uint8)] * 3
    sums, blocks = pairs.block_sums(None, packs, levels)
    assert sums.tolist() == [1, 2, 1, 2]
    assert [block.shape for block in blocks] == [(2, 2), (0, 0), (2, 2)]
    members, starts, columns, weights = LevelMap((), ()).compiled
    assert (members, starts.tolist(), len(columns), len(weights)) == ([], [0], 0, 0)
