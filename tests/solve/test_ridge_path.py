from __future__ import annotations

import numpy as np
import pytest

from plainrisk.errors import DataError
from plainrisk.solve import choose_ridge, stratified_folds
from plainrisk.solve.ridge_path import RIDGE_TIMES_ROWS


def judge_by(losses, asked):
    """A fold whose held-out loss at each ridge is given; it notes what it was asked."""

    def judge(ridge):
        asked.append(ridge)
        return losses[ridge]

    return judge


def test_the_least_mean_loss_wins_and_the_path_is_kept():
    tables = [{0.1: 3.0, 0.2: 1.0, 0.4: 2.0}, {0.1: 1.0, 0.2: 2.0, 0.4: 2.5}]
    asked = []
    found = choose_ridge([judge_by(t, asked) for t in tables], total=10.0, path=(1.0, 2.0, 4.0))
    np.testing.assert_allclose(found.ridges, [0.1, 0.2, 0.4])
    np.testing.assert_allclose(found.losses, [[3.0, 1.0, 2.0], [1.0, 2.0, 2.5]])
    np.testing.assert_allclose(found.mean, [2.0, 1.5, 2.25])
    assert found.best == 0.2
    assert asked == [0.4, 0.2, 0.1] * 2, "every fold runs from the strongest ridge to the weakest"


def test_of_equals_the_stronger_ridge():
    found = choose_ridge([lambda ridge: 1.0], total=1.0, path=(0.5, 1.0, 2.0))
    assert found.best == 2.0


def test_the_default_path_holds_the_default_ridge():
    """ridge="auto" is 1/(2M); the path must offer it, and rise."""
    assert 0.5 in RIDGE_TIMES_ROWS
    assert list(RIDGE_TIMES_ROWS) == sorted(RIDGE_TIMES_ROWS)
    found = choose_ridge([lambda ridge: ridge], total=200.0)
    np.testing.assert_allclose(found.ridges, np.array(RIDGE_TIMES_ROWS) / 200)
    assert found.best == found.ridges[0]


@pytest.mark.parametrize(("n", "positives", "n_folds"), [(100, 30, 5), (103, 7, 5), (12, 6, 10), (7, 2, 3)])
def test_folds_are_stratified(n, positives, n_folds):
    y = (np.arange(n) < positives).astype(np.uint8)
    folds = stratified_folds(y, n_folds)
    for outcome in (0, 1):
        sizes = np.bincount(folds[y == outcome], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1
    for fold in np.unique(folds):
        assert set(y[folds != fold]) == {0, 1}, "every training set has both outcomes"
    np.testing.assert_array_equal(stratified_folds(y, n_folds), folds)


def test_folds_are_shuffled_by_the_seed():
    y = np.tile([0, 1], 50)
    first, other = stratified_folds(y, 5), stratified_folds(y, 5, seed=1)
    assert (first != other).any()
    assert (np.diff(first[y == 1]) != 1).any(), "not dealt out in the order of the rows"


@pytest.mark.parametrize("positives", [0, 1, 29, 30])
def test_an_outcome_that_can_not_be_in_two_folds(positives):
    y = (np.arange(30) < positives).astype(np.uint8)
    fewest = min(positives, 30 - positives)
    with pytest.raises(DataError, match=f"two rows of each outcome; of one there is {fewest}"):
        stratified_folds(y, 5)
