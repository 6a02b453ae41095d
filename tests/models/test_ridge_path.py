"""The path of ridges and the choice on it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from plainrisk.models.arm import RIDGE_TIMES_ROWS, choose_ridge


def fold(losses, asked):
    """A fold whose held-out losses along the path are given; it notes what it was asked to fit."""
    left = iter(losses[::-1])

    def fit(ridge, start):
        asked.append((ridge, None if start is None else float(start[0])))
        return SimpleNamespace(point=np.array([ridge]))

    return fit, lambda point: next(left)


def test_the_least_mean_loss_wins_and_the_path_is_kept():
    first = [3.0, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    second = [1.0, 2.0, 2.5, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    asked = []
    found = choose_ridge([fold(first, asked), fold(second, asked)], total=10.0)
    np.testing.assert_allclose(found.ridges, np.array(RIDGE_TIMES_ROWS) / 10, rtol=1e-12)
    np.testing.assert_allclose(found.losses, [first, second])
    np.testing.assert_allclose(found.mean, np.mean([first, second], axis=0))
    assert found.best == found.ridges[1]
    assert repr(found) == "RidgePath(best 0.015 of 9, held-out loss 1.5)"


def test_every_fold_runs_from_the_strongest_ridge_and_starts_where_the_last_ended():
    asked = []
    found = choose_ridge([fold([1.0] * 9, asked), fold([1.0] * 9, asked)], total=1.0)
    strongest_first = found.ridges[::-1].tolist()
    assert [ridge for ridge, _ in asked] == strongest_first * 2
    assert [start for _, start in asked] == [None, *strongest_first[:-1]] * 2


def test_of_equals_the_stronger_ridge():
    found = choose_ridge([fold([1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 2.0, 2.0, 2.0], [])], total=1.0)
    assert found.best == RIDGE_TIMES_ROWS[4]


def test_the_path_holds_the_default_ridge():
    """ridge="auto" is 1/(2M); the path must offer it, and rise."""
    assert 0.5 in RIDGE_TIMES_ROWS
    assert list(RIDGE_TIMES_ROWS) == sorted(RIDGE_TIMES_ROWS)
