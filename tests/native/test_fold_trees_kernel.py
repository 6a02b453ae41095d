"""The compiled trees without each fold in turn are those of the rows outside it, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk import _native as kernels
from plainrisk._native import fold_trees, tree
from plainrisk.bins.edges import split_edges
from plainrisk.bins.histogram import sorted_histogram
from plainrisk.bins.tree import midway

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")

# Rows from which segments are cut, and their least size: all rows sorted; segments as small as can be; some rows each.
WAYS = [(1 << 30, 1), (1, 1), (1, 50)]
SHAPES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "income": lambda rng, n: np.exp(10 + rng.standard_normal(n)),
    "nearer than the gap": lambda rng, n: 0.5 + rng.random(n) * 1e-4,
    "half are zero": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, rng.random(n)),
    "few values": lambda rng, n: np.round(rng.exponential(3, n), 1),
    "whole numbers": lambda rng, n: rng.integers(-9, 300, n).astype(float),
    "wide whole numbers": lambda rng, n: rng.integers(0, 4 * n, n).astype(float),
    "one value": lambda rng, n: np.full(n, 3.3),
    "huge": lambda rng, n: rng.choice([-3e38, 3e38, 1.0], n) * rng.random(n),
}


def same_cuts(patch, x, bad, fold, n_folds, max_bins, criterion="gini", min_rows=1):
    """Whether every way gives the edges of trees in numpy on the rows outside each fold."""
    outside = [(fold != k) & (x == x) for k in range(n_folds)]
    expected = [split_edges(sorted_histogram(x[o], bad[o]), max_bins, criterion, min_rows) for o in outside]
    for many, few in WAYS:
        patch.setattr(fold_trees, "MANY_ROWS", many)
        patch.setattr(fold_trees, "SEGMENT_ROWS", few)
        found = fold_trees.fold_cuts(x, bad, fold, n_folds, max_bins, criterion, min_rows)
        for cuts, edges in zip(found, expected, strict=True):
            if not np.array_equal(midway(*cuts).view(np.int64), edges.view(np.int64)):
                return False
    return True


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("shape", SHAPES)
def test_cuts_are_those_of_the_rows_outside(monkeypatch, shape, criterion):
    rng = np.random.default_rng(len(shape))
    for n, n_folds in ((5, 2), (400, 3), (4000, 5)):
        x = SHAPES[shape](rng, n).astype(np.float32)
        bad = rng.random(n) < 0.1 + 0.6 * np.argsort(np.argsort(x)) / n
        x[rng.random(n) < 0.1] = np.nan
        fold = rng.integers(0, n_folds, n).astype(np.uint8)
        for max_bins, min_rows in ((5, 1), (40, 7), (6, n // 3 + 1), (1, 1)):
            assert same_cuts(monkeypatch, x, bad, fold, n_folds, max_bins, criterion, min_rows)


def test_a_fold_may_hold_all_rows_of_a_range(monkeypatch):
    """So that segments are empty without it; also folds of two bytes, and one without rows."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.standard_normal(3000)).astype(np.float32)
    bad = rng.random(3000) < 0.2 + 0.4 * (x > 0.3) * (x < 1.0)
    fold = (np.arange(3000) // 500).astype(np.uint16)
    assert same_cuts(monkeypatch, x, bad, fold, 7, 6)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-20, 20), st.booleans(), st.integers(0, 2)), min_size=1, max_size=60),
    st.sampled_from([1.0, 0.125, 3e-8]),
    st.integers(1, 12),
    st.sampled_from([1, 2, 5]),
)
def test_cuts_with_ties_are_those_of_the_rows_outside(rows, unit, max_bins, min_rows):
    x = (np.array([v for v, _, _ in rows]) * unit).astype(np.float32)
    bad, fold = np.array([b for _, b, _ in rows]), np.array([k for _, _, k in rows], np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        for criterion in ("gini", "entropy"):
            assert same_cuts(patch, x, bad, fold, 3, max_bins, criterion, min_rows)


@pytest.mark.parametrize("n", [20_000, 300_000])
def test_many_rows_in_segments_of_the_usual_size(n):
    rng = np.random.default_rng(n)
    x, fold = rng.standard_normal(n).astype(np.float32), rng.integers(0, 4, n).astype(np.uint8)
    bad = rng.random(n) < 1 / (1 + np.exp(1 - x))
    for k, cuts in enumerate(fold_trees.fold_cuts(x, bad, fold, 4, 8, "gini", 1)):
        lower, upper, (found,) = tree.tree_cuts([x[fold != k]], bad[fold != k], [8], "gini", 1)
        np.testing.assert_array_equal(cuts, (lower[0, :found], upper[0, :found]))


@pytest.mark.parametrize("x", [[], [np.nan, np.nan], [1.0], [np.nan, 2.0]])
def test_no_cut_without_two_values(x):
    found = fold_trees.fold_cuts(
        np.array(x, np.float32), np.ones(len(x), np.bool_), np.zeros(len(x), np.uint8), 2, 5, "gini", 1
    )
    assert [cuts[0].size for cuts in found] == [0, 0]


@pytest.mark.parametrize(
    ("x", "bad", "fold", "upper", "min_rows"),
    [
        (np.zeros(3, np.float64), np.zeros(3, np.uint8), np.zeros(3, np.uint8), np.zeros((2, 2), np.float32), 1),
        (np.zeros(3, np.float32), np.zeros(2, np.uint8), np.zeros(3, np.uint8), np.zeros((2, 2), np.float32), 1),
        (np.zeros(3, np.float32), np.zeros(3, np.uint8), np.zeros(3, np.int64), np.zeros((2, 2), np.float32), 1),
        (np.zeros(3, np.float32), np.zeros(3, np.uint8), np.full(3, 2, np.uint8), np.zeros((2, 2), np.float32), 1),
        (np.zeros(3, np.float32), np.zeros(3, np.uint8), np.zeros(3, np.uint8), np.zeros(2, np.float32), 1),
        (np.zeros(3, np.float32), np.zeros(3, np.uint8), np.zeros(3, np.uint8), np.zeros((2, 2), np.float32), 0),
    ],
)
def test_what_does_not_fit_is_refused(x, bad, fold, upper, min_rows):
    lower, found = np.zeros((2, 2), np.float32), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="a float, an outcome and a fold per row"):
        fold_trees.compiled.fold_cuts(x, bad, fold, lower, upper, found, min_rows, False, 1, 1)
