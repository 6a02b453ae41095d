"""How rows are split: scikit-learn's folds, its splitters, and pairs of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from plainrisk.errors import DataError
from plainrisk.fit.splits import splits_of, stratified_folds

Y = (np.arange(60) % 4 == 0).astype(np.uint8)
GROUPS = np.arange(60) // 3 % 11


def assert_same(found, wanted):
    for (train, test), (own_train, own_test) in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(train, own_train)
        np.testing.assert_array_equal(test, own_test)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("cv", [2, 5, np.int64(3)])
def test_a_number_makes_scikit_learn_s_stratified_folds(cv, seed):
    wanted = StratifiedKFold(int(cv), shuffle=True, random_state=seed).split(np.zeros(60), Y)
    assert_same(splits_of(Y, cv, seed), wanted)


@pytest.mark.parametrize(
    "cv",
    [
        KFold(4),
        KFold(4, shuffle=True, random_state=3),
        GroupKFold(3),
        LeaveOneGroupOut(),
        TimeSeriesSplit(5),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_any_splitter(cv):
    groups = GROUPS if "Group" in type(cv).__name__ else None
    assert_same(splits_of(Y, cv, groups=groups), cv.split(np.zeros((60, 1)), Y, groups))


def test_pairs_of_positions_or_masks_in_any_order():
    first, last = np.arange(60) < 20, np.arange(60) >= 45
    pairs = [(first, last), (np.flatnonzero(last)[::-1], np.flatnonzero(first).tolist())]
    wanted = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in ((first, last), (last, first))]
    assert_same(splits_of(Y, pairs), wanted)
    assert_same(splits_of(Y, iter(pairs)), wanted)


def test_groups_stay_together():
    splits = splits_of(Y, 4, seed=1, groups=GROUPS)
    assert len(splits) == 4
    for train, test in splits:
        assert not set(GROUPS[train]) & set(GROUPS[test])
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(60))


TIMES = np.random.default_rng(5).integers(1, 10, 60)  # months 1 to 9, in no order
DATES = np.datetime64("2024-01") + (TIMES - 1)


@pytest.mark.parametrize(
    "time",
    [
        TIMES,
        TIMES.astype(object),
        DATES,
        [str(date) for date in DATES],
        pl.Series(DATES.astype("datetime64[us]")).cast(pl.Date),
        pd.Series(DATES.astype("datetime64[ns]")),
    ],
    ids=["numbers", "objects", "dates", "text", "polars", "pandas"],
)
def test_time_goes_forward(time):
    splits = splits_of(Y, 4, time=time)
    held_out = [set(TIMES[test]) for _, test in splits]
    assert held_out == [{6}, {7}, {8}, {9}]
    for train, test in splits:
        assert set(TIMES[train]) == set(range(1, min(TIMES[test])))


@pytest.mark.parametrize(
    ("time", "cv", "message"),
    [
        (TIMES, 9, "cv=9: the rows have 9 distinct times, which allow at most 8 folds"),
        (TIMES, KFold(3), "cv must be a whole number of at least 2"),
        (TIMES[:5], 3, "time: must have one entry for each of the 60 rows"),
        (["March"] * 60, 3, "time: must hold numbers, dates, or text such as 2024-03"),
        ([None, *(str(d) for d in DATES[1:])], 3, r"time: row 0 \(counting from 0\) has none"),
        (np.where(TIMES == 9, np.nan, TIMES), 3, "has none. Every row needs one"),
    ],
)
def test_times_that_cannot_be_ordered_are_refused(time, cv, message):
    with pytest.raises(DataError, match=message):
        splits_of(Y, cv, time=time)


def test_groups_and_time_are_two_questions():
    with pytest.raises(DataError, match="groups and time cannot both be given"):
        splits_of(Y, 3, groups=GROUPS, time=TIMES)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv must be 2 folds or more, not 1"),
        (-3, "cv must be 2 folds or more, not -3"),
        (16, "cv=16: the rarer outcome has only 15 rows, and every fold needs one"),
        (True, "cv must be"),
        (2.5, "cv must be a number of folds, a scikit-learn splitter or pairs of rows, not 2.5"),
        ("ten", "cv must be a number of folds"),
        (None, "cv must be a number of folds"),
        ([], "cv yields no splits"),
        ([([0, 1], [60])], "cv names a row that is not among the 60 rows"),
        ([([0, -1], [3])], "cv names a row that is not among the 60 rows"),
    ],
)
def test_impossible_splits_are_named(cv, message):
    with pytest.raises(DataError, match=message):
        splits_of(Y, cv)


# ---- the folds that choose a ridge or judge experts


@pytest.mark.parametrize(("n", "positives", "n_folds"), [(100, 30, 5), (103, 7, 5), (12, 6, 10), (7, 2, 3)])
def test_folds_are_stratified(n, positives, n_folds):
    y = (np.arange(n) < positives).astype(np.uint8)
    folds = stratified_folds(y, n_folds)
    assert len(np.unique(folds)) == min(n_folds, positives, n - positives)
    for outcome in (0, 1):
        sizes = np.bincount(folds[y == outcome], minlength=folds.max() + 1)
        assert sizes.max() - sizes.min() <= 1
    for fold in np.unique(folds):
        assert set(y[folds != fold]) == {0, 1}, "every training set has both outcomes"
    np.testing.assert_array_equal(stratified_folds(y, n_folds), folds)


def test_folds_are_shuffled_by_the_seed():
    y = np.tile([0, 1], 50)
    first, other = stratified_folds(y, 5), stratified_folds(y, 5, seed=1)
    assert (first != other).any()
    assert (np.diff(first[y == 1]) != 1).any(), "not in the order of the rows"


def test_more_folds_than_a_byte_can_count():
    assert np.bincount(stratified_folds(np.tile([0, 1], 300), 300)).tolist() == [2] * 300


@pytest.mark.parametrize("positives", [0, 1, 29, 30])
def test_an_outcome_that_can_not_be_in_two_folds(positives):
    y = (np.arange(30) < positives).astype(np.uint8)
    fewest = min(positives, 30 - positives)
    with pytest.raises(DataError, match=f"two rows of each outcome; one outcome has {fewest}"):
        stratified_folds(y, 5)


def test_dates_with_strokes_are_in_the_order_of_time():
    written = ["2018/12/1", "2018/5/1", "2018/10/1", "2017/11/30"] * 5
    plain = ["2018-12-01", "2018-05-01", "2018-10-01", "2017-11-30"] * 5
    target = np.tile([0, 1, 1, 0, 1], 4)
    for one, other in zip(*(splits_of(target, 2, time=times) for times in (written, plain)), strict=True):
        assert [rows.tolist() for rows in one] == [rows.tolist() for rows in other]
