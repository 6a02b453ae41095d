from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainrisk.errors import ExtractionError
from plainrisk.extract.effects import LabelEffect, NumberEffect, Piece
from plainrisk.extract.reading import Additive, TreeSum
from plainrisk.extract.tree_sums import Split, collapse, float32_edge_at_most, float32_edge_below, tree_from
from plainrisk.form import TreeInput

SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30)


@given(SINGLES)
def test_the_largest_number_below_a_single(threshold):
    edge = float32_edge_below(threshold)
    assert float(np.float32(edge)) < threshold
    assert float(np.float32(math.nextafter(edge, math.inf))) >= threshold


@given(DOUBLES)
def test_the_largest_number_that_is_a_single_at_most(threshold):
    edge = float32_edge_at_most(threshold)
    assert float(np.float32(edge)) <= threshold
    assert float(np.float32(math.nextafter(edge, math.inf))) > threshold


def test_both_ways_to_break_a_tie():
    # The last bit of 1 + 2^-23 is 1, so the number half way below it goes down to 1, and the one above up.
    one = 1.0 + 2.0**-23
    assert float32_edge_below(one) == 1.0 + 2.0**-24
    assert float32_edge_at_most(one) == math.nextafter(one + 2.0**-24, 0.0)


def test_children_come_after_all_their_parents():
    shared = {"leaf": 3.0}
    below = Split(0, 1.0, False, {"leaf": 1.0}, shared)
    tree = tree_from(Split(0, 2.0, True, below, Split(0, 3.0, False, {"leaf": 2.0}, shared)), lambda n: n["leaf"])
    assert len(tree.inputs) == 6
    x = np.array([0.0, 1.5, 2.5, 9.0, np.nan])
    assert tree.values_at([x]).tolist() == [1.0, 3.0, 2.0, 3.0, 3.0]


def stump(j, edge, low, high, missing_left=False):
    return tree_from(Split(j, edge, missing_left, 1, 2), {1: low, 2: high}.__getitem__)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.sampled_from([-1.0, 0.0, 2.5]), st.floats(-3, 3), st.floats(-3, 3), st.booleans()
        ),
        max_size=8,
    )
)
def test_stumps_add_up_to_tables(stumps):
    trees = tuple(stump(*s) for s in stumps)
    inputs = (TreeInput(feature="a"), TreeInput(feature="b", missing=2.5))
    read = TreeSum(intercept=0.25, inputs=inputs, trees=trees, columns=("a", "b"))
    table = collapse(read)
    assert isinstance(table, Additive)
    points = [-2.0, -1.0, -0.5, 0.0, 1.0, 2.5, 3.0, math.nan]
    for a in points:
        for b in points:
            seen = [np.array([a]), np.array([math.nan if b == 2.5 else b])]
            expected = 0.25 + sum(float(t.values_at(seen)[0]) for t in trees)
            total = table.intercept + table.effects["a"].at(a) + table.effects["b"].at(b)
            assert total == pytest.approx(expected, abs=1e-12)


def test_a_deep_tree_of_one_feature_is_a_table_and_of_two_is_not():
    inner = Split(0, 5.0, False, 2, 3)
    deep = tree_from(Split(0, 1.0, False, 1, inner), {1: 1.0, 2: 2.0, 3: 3.0}.__getitem__)
    mixed = tree_from(Split(1, 1.0, False, 1, inner), {1: 1.0, 2: 2.0, 3: 3.0}.__getitem__)
    only_leaf = tree_from(7, lambda node: 0.5)
    inputs = (TreeInput(feature="a"), TreeInput(feature="b"))
    sums = [
        collapse(TreeSum(intercept=0.0, inputs=inputs, trees=(t, only_leaf), columns=("a", "b"))) for t in (deep, mixed)
    ]
    assert sums[0].effects["a"] == NumberEffect.steps([1.0, 5.0], [1.0, 2.0, 3.0], missing=3.0)
    assert sums[0].intercept == 0.5
    assert isinstance(sums[1], TreeSum)


@given(st.floats(-50, 50), st.floats(-5, 5), st.floats(-5, 5))
def test_effects_add_and_scale(x, factor, constant):
    first = NumberEffect((0.0, 3.0), (Piece((1.0, 2.0), 4.0), Piece((0.5,)), Piece((1.0, 0.0, 0.1), 3.0)))
    second = NumberEffect.steps([-1.0, 3.0], [4.0, 5.0, 6.0], missing=1.0)
    both = first.scaled(factor, constant).plus(second)
    assert both.at(x) == pytest.approx(constant + factor * first.at(x) + second.at(x), abs=1e-9)
    assert both.missing is None


def test_labels_without_an_effect_stay_without():
    known = LabelEffect({"a": 1.0}, missing=2.0, unseen=0.0)
    strict = LabelEffect({"b": 5.0})
    both = known.plus(strict)
    assert both == LabelEffect({"b": 5.0})
    assert known.scaled(2.0, 1.0) == LabelEffect({"a": 3.0}, missing=5.0, unseen=1.0)


def test_an_effect_needs_a_piece_per_interval():
    with pytest.raises(ExtractionError, match="one more piece"):
        NumberEffect((1.0,), (Piece((0.0,)),))
