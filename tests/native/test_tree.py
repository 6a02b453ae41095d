"""The tree on one feature: the compiled one and the one in numpy cut alike, and as scikit-learn's, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from plainrisk import _native
from plainrisk._native import tree, tree_cuts

needs_compiled = pytest.mark.skipif(not _native.COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")
both_criteria = pytest.mark.parametrize("criterion", ["gini", "entropy"])


def running(*columns):
    """Running sums below each cut, from 0 to all."""
    return [np.concatenate([np.zeros(1, np.asarray(c).dtype), np.cumsum(c)]) for c in columns]


def numpy_cuts(*args):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "compiled", None)
        return tree_cuts(*args)


def sklearn_cuts(good, bad, splits, min_rows, criterion):
    """The cuts of scikit-learn's tree on the positions 0, 1, ...; counts are whole numbers of rows."""
    x = np.concatenate([np.repeat(np.arange(len(good)), good), np.repeat(np.arange(len(bad)), bad)])
    y = np.repeat([0, 1], [good.sum(), bad.sum()])
    grown = DecisionTreeClassifier(
        criterion=criterion, max_leaf_nodes=splits + 1, min_samples_leaf=min_rows, random_state=0
    )
    t = grown.fit(x[:, None], y).tree_
    return sorted(np.ceil(t.threshold[t.children_left >= 0]).astype(int).tolist())


counts = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(any), min_size=2, max_size=40)


@settings(max_examples=300, deadline=None)
@given(counts, st.integers(1, 12), st.sampled_from([1, 2, 5]), st.sampled_from(["gini", "entropy"]))
def test_cuts_are_scikit_learn_s_both_ways(levels, splits, min_rows, criterion):
    good, bad = np.array(levels).T
    args = (*running(good + bad, good.astype(float), bad.astype(float)), splits, min_rows, criterion)
    wanted = sklearn_cuts(good, bad, splits, min_rows, criterion)
    assert sorted(tree_cuts(*args)) == wanted
    assert sorted(numpy_cuts(*args)) == wanted


@needs_compiled
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 4)), min_size=1, max_size=40),
    st.integers(0, 12),
    st.sampled_from([1, 2, 5, 99]),
    st.sampled_from(["gini", "entropy"]),
)
def test_any_weights_are_cut_alike_and_in_the_same_order(levels, splits, min_rows, criterion):
    good, bad, rows = (np.array(column) for column in zip(*levels, strict=True))
    args = (*running(rows, good, bad), splits, min_rows, criterion)
    assert tree_cuts(*args) == numpy_cuts(*args)


@needs_compiled
@both_criteria
@pytest.mark.parametrize("signal", [0.0, 0.6])
def test_many_levels_are_cut_alike(criterion, signal):
    rng = np.random.default_rng(3)
    for n in (400, 20_000):
        bad = rng.random(n) < 0.1 + signal * np.arange(n) / n
        args = running(np.ones(n, np.int64), (~bad).astype(float), bad.astype(float))
        for splits, min_rows in ((4, 1), (1, 1), (39, 7), (5, n // 3 + 1)):
            found = tree_cuts(*args, splits, min_rows, criterion)
            assert found == numpy_cuts(*args, splits, min_rows, criterion)
            assert len(found) <= splits


@both_criteria
def test_the_cuts_come_in_the_order_in_which_they_are_made(criterion):
    """With fewer splits the first of them are made."""
    rng = np.random.default_rng(0)
    bad = rng.random(300) < np.linspace(0.1, 0.8, 300)
    args = running(np.ones(300, np.int64), (~bad).astype(float), bad.astype(float))
    all_cuts = tree_cuts(*args, 20, 3, criterion)
    assert len(set(all_cuts)) == 20
    for splits in (1, 2, 7):
        assert tree_cuts(*args, splits, 3, criterion) == all_cuts[:splits]


@both_criteria
def test_both_sides_of_a_cut_hold_enough_rows(criterion):
    rng = np.random.default_rng(1)
    rows = rng.integers(1, 9, 100)
    bad = rng.binomial(rows, 0.3)
    upto, good, hits = running(rows, (rows - bad).astype(float), bad.astype(float))
    for min_rows in (1, 10, 50, int(rows.sum())):
        cuts = sorted(tree_cuts(upto, good, hits, 30, min_rows, criterion))
        sizes = np.diff([0, *upto[cuts], upto[-1]])
        assert not cuts or sizes.min() >= min_rows
        assert cuts == [] or min_rows < rows.sum() // 2


@pytest.mark.parametrize("n", [1, 2])
def test_no_cut_without_two_levels_or_without_a_split(n):
    args = running(np.ones(n, np.int64), np.ones(n), np.arange(float(n)))
    assert tree_cuts(*args, 0, 1, "gini") == []
    assert len(tree_cuts(*args, 5, 1, "gini")) == (n == 2)


def test_pure_nodes_are_left_alone():
    args = running(np.ones(5, np.int64), np.ones(5), np.zeros(5))
    assert tree_cuts(*args, 4, 1, "gini") == []
    assert tree_cuts(*args, 4, 1, "entropy") == []


@needs_compiled
@pytest.mark.parametrize(
    "changed",
    [
        {"good": np.zeros(3)},
        {"bad": np.zeros(5)},
        {"rows": np.arange(4, dtype=np.int32)},
        {"cuts": np.zeros(0, np.int64)},
        {"min_rows": 0},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_does_not_fit_is_refused(changed):
    args = {"rows": np.arange(4), "good": np.arange(4.0), "bad": np.arange(4.0), "cuts": np.zeros(2, np.int64)}
    args |= {"min_rows": 1} | changed
    with pytest.raises(ValueError, match="running sums of one length"):
        tree.compiled.tree_cuts(*args.values(), False)
