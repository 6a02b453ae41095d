"""Joint codes: a bijection between combinations of levels and small numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk.bins import JointCode, code_type, joint_codes

sizes_of = st.lists(st.integers(1, 40), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_a_code_stands_for_one_combination_of_levels(sizes, seed):
    rng = np.random.default_rng(seed)
    joint = JointCode(tuple(range(len(sizes))), tuple(sizes))
    levels = [rng.integers(0, size, 50).astype(np.uint8) for size in sizes]
    code = joint.encode(levels)
    assert joint.size == math.prod(sizes)
    assert code.dtype == code_type(joint.size)
    assert code.max() < joint.size
    for given_level, table in zip(levels, joint.levels, strict=True):
        np.testing.assert_array_equal(table[code], given_level)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_margins_are_sums_by_level(sizes, seed):
    rng = np.random.default_rng(seed)
    joint = JointCode(tuple(range(len(sizes))), tuple(sizes))
    levels = [rng.integers(0, size, 80).astype(np.uint8) for size in sizes]
    values = rng.integers(-8, 9, 80).astype(float)
    by_code = np.bincount(joint.encode(levels), values, minlength=joint.size)
    for level, size, found in zip(levels, sizes, joint.margins(by_code), strict=True):
        np.testing.assert_array_equal(found, np.bincount(level, values, minlength=size))


def test_the_levels_given_are_left_alone():
    level = np.array([1, 0, 1], np.uint8)
    JointCode((0, 1), (2, 2)).encode([level, level])
    assert level.tolist() == [1, 0, 1]


def test_many_levels_need_wide_codes():
    wide = JointCode((0, 1), (300, 400))
    levels = [np.array([299, 0], np.uint16), np.array([399, 1], np.uint16)]
    assert wide.encode(levels).tolist() == [299 * 400 + 399, 1]
    assert wide.encode(levels).dtype == np.uint32


@pytest.mark.parametrize(
    ("size", "kind"),
    [(1, np.uint8), (256, np.uint8), (257, np.uint16), (65_536, np.uint16), (65_537, np.uint32)],
)
def test_the_smallest_type_that_holds_the_codes(size, kind):
    assert code_type(size) is kind
    assert np.iinfo(kind).max >= size - 1


@settings(max_examples=200, deadline=None)
@given(sizes_of, st.integers(1, 10**7), st.booleans())
def test_features_are_joined_in_order_while_there_are_few_codes(sizes, n_rows, split):
    features = range(len(sizes))
    groups = [features[::2], features[1::2]] if split else [features]
    found = joint_codes(sizes, groups, n_rows)
    limit = max(16, min(256, math.isqrt(n_rows)))
    assert [j for joint in found for j in joint.features] == [j for group in groups for j in group]
    for joint in found:
        assert joint.sizes == tuple(sizes[j] for j in joint.features)
        assert joint.size <= limit or len(joint.features) == 1
        assert any(set(joint.features) <= set(group) for group in groups)
    for one, other in itertools.pairwise(found):
        together = any({one.features[-1], other.features[0]} <= set(group) for group in groups)
        assert not together or one.size * other.sizes[0] > limit, "the next feature would have fitted"


def test_no_features_no_codes():
    assert joint_codes([], [[]], 100) == ()
