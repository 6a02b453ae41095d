"""Maps of levels, and the scores of levels and codes: the compiled way and numpy give the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from plainrisk._native import LevelMap, levels

# Levels and columns of the features of every pack; one feature has no column, one pack one code.
FEATURES = [((3, 2), (4, 4)), ((6, 0),), ((1, 1),), ((2, 1), (3, 12), (5, 9))]


def grid(sizes):
    return np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes))


@pytest.fixture
def level_map(rng):
    matrices = [rng.integers(0, 3, shape).astype(np.float64) for shape in itertools.chain(*FEATURES)]
    return LevelMap(tuple(matrices), tuple(grid([size for size, _ in pack]) for pack in FEATURES))


def test_a_map_lists_what_is_not_zero(level_map, in_numpy):
    members, starts, columns, weights = level_map.compiled
    assert len(weights) == sum(np.count_nonzero(m) for m in level_map.features)
    first_level = first_column = 0
    for matrix in level_map.features:
        for level, row in enumerate(matrix, first_level):
            some = slice(starts[level], starts[level + 1])
            assert (columns[some] - first_column).tolist() == np.flatnonzero(row).tolist()
            assert weights[some].tolist() == row[row != 0].tolist()
        first_level, first_column = first_level + len(matrix), first_column + matrix.shape[1]
    other = in_numpy(levels, lambda: LevelMap(level_map.features, level_map.members).compiled)
    for one, two in zip((*members, starts, columns, weights), (*other[0], *other[1:]), strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)


def test_scores_are_added_from_left_to_right(level_map, rng, in_numpy):
    beta = rng.normal(size=2 * level_map.n_columns)[::2]
    by_level, by_code = level_map.scores(beta)
    left = iter(beta.tolist())
    for scores, matrix in zip(by_level, level_map.features, strict=True):
        mine = [next(left) for _ in range(matrix.shape[1])]
        for score, row in zip(scores, matrix, strict=True):
            assert score == sum((w * b for w, b in zip(row.tolist(), mine, strict=True)), 0.0)
    each = iter(by_level)
    for table, pack in zip(by_code, level_map.members, strict=True):
        parts = [next(each)[level] for level in pack.T]
        np.testing.assert_array_equal(table, sum(parts, np.zeros(len(pack))))
    for one, two in zip((by_level, by_code), in_numpy(levels, level_map.scores, beta), strict=True):
        for scores, others in zip(one, two, strict=True):
            np.testing.assert_array_equal(scores, others)
    np.testing.assert_array_equal(np.concatenate(level_map.tables(beta)), np.concatenate(by_code))


@pytest.mark.parametrize("kernels", ["compiled", "numpy"])
def test_levels_with_no_step_between_them_are_the_same_to_the_last_bit(kernels, rng, in_numpy):
    n = 40
    steps = rng.random(n - 1) * 10.0 ** rng.integers(-12, 3, n - 1)
    steps[::3] = 0.0
    for matrix in np.tri(n)[:, 1:], 1 - np.tri(n)[:, 1:]:
        some = LevelMap((matrix,), (np.arange(n)[:, None],))
        (scores,), _ = some.scores(steps) if kernels == "compiled" else in_numpy(levels, some.scores, steps)
        going_up = np.diff(scores) if matrix[-1, 0] else -np.diff(scores)
        assert (going_up >= 0).all()
        assert (going_up[::3] == 0).all()


def test_nothing_has_no_scores(in_numpy):
    for scores in LevelMap((), ()).scores, lambda beta: in_numpy(levels, LevelMap((), ()).scores, beta):
        assert scores(np.zeros(0)) == ([], [])


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"features": [np.zeros(2)]}, "do not fit the map"),
        ({"features": [np.eye(2, dtype=np.float32)]}, "do not fit the map"),
        ({"features": [np.eye(3)]}, "do not fit the map"),
        ({"features": [np.ones((2, 2))]}, "no room"),
        ({"given": []}, "do not fit the map"),
        ({"given": [np.arange(3)[:, None]]}, "do not fit the map"),
        ({"given": [np.arange(2)]}, "do not fit the map"),
        ({"given": [np.arange(2, dtype=np.int32)[:, None]]}, "do not fit the map"),
        ({"given": [np.zeros((2, 2), np.int64)], "members": [np.zeros((2, 2), np.int32)]}, "more features"),
        ({"given": [np.array([[0], [2]])]}, "a level is beyond"),
        ({"given": [np.array([[0], [-1]])]}, "a level is beyond"),
        ({"members": [np.zeros((2, 1))]}, "do not fit the map"),
        ({"starts": np.zeros(2, np.int32)}, "do not fit the map"),
        ({"starts": np.zeros(3)}, "do not fit the map"),
        ({"columns": np.zeros(3, np.int32)}, "do not fit the map"),
        ({"columns": np.zeros(2)}, "do not fit the map"),
        ({"weights": np.zeros(1)}, "do not fit the map"),
    ],
)
def test_maps_that_do_not_fit_are_refused(changed, what, in_numpy):
    args = {"features": [np.eye(2)], "given": [np.arange(2)[:, None]], "members": [np.zeros((2, 1), np.int32)]}
    args |= {"starts": np.zeros(3, np.int32), "columns": np.zeros(2, np.int32), "weights": np.zeros(2)}
    assert levels.compiled.level_map(*args.values()) == 2
    with pytest.raises(ValueError, match=what):
        levels.compiled.level_map(*(args | changed).values())


def test_scores_that_do_not_fit_are_refused(in_numpy):
    some = LevelMap((np.eye(2),), (np.arange(2)[:, None],)).compiled
    for beta, by_level, by_code, what in [
        (np.zeros(1), np.zeros(2), np.zeros(2), "a column is beyond"),
        (np.zeros(2), np.zeros(3), np.zeros(2), "for every level and every code"),
        (np.zeros(2), np.zeros(2), np.zeros(1), "for every level and every code"),
    ]:
        with pytest.raises(ValueError, match=what):
            levels.compiled.code_scores(beta, some, by_level, by_code)
