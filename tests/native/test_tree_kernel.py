"""The compiled tree cuts where the tree in numpy does, which is scikit-learn's, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk import _native as kernels
from plainrisk._native import tree
from plainrisk.bins.edges import split_edges
from plainrisk.bins.histogram import sorted_histogram
from plainrisk.bins.tree import midway

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")

# Rows from which segments are cut, and their least size: all rows sorted; segments as small as can be; some rows each.
WAYS = [(1 << 30, 1), (1, 1), (1, 50)]
SHAPES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "income": lambda rng, n: np.exp(10 + rng.standard_normal(n)),
    "far out": lambda rng, n: rng.standard_cauchy(n),
    "nearer than the gap": lambda rng, n: 0.5 + rng.random(n) * 1e-4,
    "half are zero": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, rng.random(n)),
    "few values": lambda rng, n: np.round(rng.exponential(3, n), 1),
    "whole numbers": lambda rng, n: rng.integers(-9, 300, n).astype(float),
    "large whole numbers": lambda rng, n: 1e8 + 64 * rng.integers(0, 40, n),
    "whole but for one": lambda rng, n: np.append(rng.integers(0, 50, n - 1), 0.5),
    "one value": lambda rng, n: np.full(n, 3.3),
    "huge": lambda rng, n: rng.choice([-3e38, 3e38, 1.0], n) * rng.random(n),
    "tiny": lambda rng, n: rng.random(n) * 1e-42,
}


def cuts_of(x, bad, max_bins, criterion, min_rows):
    """The values below and above the cuts of one column, which has another one beside it."""
    lower, upper, found = tree.tree_cuts([np.sort(x), x], bad, [max_bins + 3, max_bins], criterion, min_rows)
    assert np.isinf(lower[1, found[1] :]).all()
    return lower[1, : found[1]], upper[1, : found[1]]


def same_cuts(monkeypatch, x, bad, max_bins, criterion, min_rows):
    """Whether every way gives the edges of the tree in numpy."""
    expected = split_edges(sorted_histogram(x, bad), max_bins, criterion, min_rows)
    for many, few in WAYS:
        with monkeypatch.context() as patch:
            patch.setattr(tree, "MANY_ROWS", many)
            patch.setattr(tree, "SEGMENT_ROWS", few)
            found = midway(*cuts_of(x, bad, max_bins, criterion, min_rows))
        if not np.array_equal(found.view(np.int64), expected.view(np.int64)):
            return False
    return True


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("shape", SHAPES)
def test_cuts_are_those_of_numpy(monkeypatch, shape, criterion):
    rng = np.random.default_rng(len(shape))
    for n in (3, 400, 6000):
        x = SHAPES[shape](rng, n).astype(np.float32)
        rank = np.argsort(np.argsort(x)) / n
        for signal in (0.0, 0.6):
            bad = rng.random(n) < 0.1 + signal * rank
            for max_bins, min_rows in ((5, 1), (2, 1), (40, 7), (6, n // 3 + 1), (1, 1)):
                assert same_cuts(monkeypatch, x, bad, max_bins, criterion, min_rows)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-30, 30), st.booleans()), min_size=1, max_size=60),
    st.sampled_from([1.0, 0.125, 3e-8]),
    st.integers(1, 12),
    st.sampled_from([1, 2, 5]),
)
def test_cuts_with_ties_are_those_of_numpy(rows, unit, max_bins, min_rows):
    x = (np.array([v for v, _ in rows]) * unit).astype(np.float32)
    bad = np.array([b for _, b in rows])
    with pytest.MonkeyPatch.context() as patch:
        for criterion in ("gini", "entropy"):
            assert same_cuts(patch, x, bad, max_bins, criterion, min_rows)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(width=32, allow_nan=False, allow_infinity=False), st.booleans()), min_size=1))
def test_cuts_of_any_numbers_are_those_of_numpy(rows):
    x, bad = np.array([v for v, _ in rows], np.float32), np.array([b for _, b in rows])
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        assert same_cuts(patch, x, bad, 5, "gini", 1)


@pytest.mark.parametrize("many", [1, 1 << 30])
@pytest.mark.parametrize("unit", [1.0, 0.1])
def test_what_is_not_a_number_is_left_out(monkeypatch, many, unit):
    monkeypatch.setattr(tree, "MANY_ROWS", many)
    monkeypatch.setattr(tree, "SEGMENT_ROWS", 4)
    rng = np.random.default_rng(0)
    x = (rng.integers(0, 100, 801) * unit).astype(np.float32)
    bad = rng.random(801) < x / x.max()
    missing = rng.random(801) < 0.3
    expected = cuts_of(x[~missing], bad[~missing], 6, "gini", 1)
    x[missing], bad[missing] = np.nan, True
    np.testing.assert_array_equal(cuts_of(x, bad, 6, "gini", 1), expected)
    assert expected[0].size == 5


@pytest.mark.parametrize("x", [[], [np.nan], [np.nan, np.nan], [1.0], [np.nan, 2.0]])
def test_no_cut_without_two_values(x):
    lower, upper = cuts_of(np.array(x, np.float32), np.ones(len(x), np.bool_), 5, "gini", 1)
    assert lower.size == upper.size == 0


def test_many_rows_in_segments_of_the_usual_size():
    """So many that every size of grid is taken."""
    rng = np.random.default_rng(3)
    for n in (40_000, 270_000):
        x = rng.standard_normal(n).astype(np.float32)
        bad = rng.random(n) < 1 / (1 + np.exp(1 - x))
        expected = split_edges(sorted_histogram(x, bad), 8)
        np.testing.assert_array_equal(midway(*cuts_of(x, bad, 8, "gini", 1)), expected)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"x": np.zeros(3, np.float64)}, "one float and one outcome per row"),
        ({"bad": np.zeros(2, np.uint8)}, "one float and one outcome per row"),
        ({"bad": np.zeros(3, np.int64)}, "one float and one outcome per row"),
        ({"upper": np.zeros(1, np.float32)}, "room for the cuts"),
        ({"splits": np.array([3])}, "room for the cuts"),
        ({"splits": np.array([-1])}, "room for the cuts"),
        ({"splits": np.array([1, 1])}, "room for the cuts"),
        ({"splits": np.array([2.0], np.float32)}, "room for the cuts"),
        ({"min_rows": 0}, "at least one row"),
    ],
)
def test_what_does_not_fit_is_refused(changed, what):
    room = np.zeros(2, np.float32)
    good = {"x": np.zeros(3, np.float32), "bad": np.zeros(3, np.uint8), "lower": room.copy(), "upper": room}
    x, *rest = ({**good, "splits": np.array([2]), "min_rows": 1} | changed).values()
    with pytest.raises(ValueError, match=what):
        tree.compiled.tree_cuts([x], *rest, False, 1, 1)


def test_strange_outcomes_and_numbers_do_no_harm():
    """Not what anybody should pass, but the loops stay inside their arrays."""
    rng = np.random.default_rng(4)
    x = np.append(rng.standard_normal(5000), [np.inf, -np.inf]).astype(np.float32)
    bad = rng.integers(0, 255, x.size, dtype=np.uint8)
    for many in (1, 1 << 30):
        lower, upper = np.zeros(4, np.float32), np.zeros(4, np.float32)
        splits = np.array([4])
        tree.compiled.tree_cuts([x], bad, lower, upper, splits, 1, False, many, 1)
        assert splits[0] == 4
        assert (lower < upper).all()
