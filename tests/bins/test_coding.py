"""Joint codes are a bijection; contrasts give ordered shapes only, and every ordered shape can be reached."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from plainrisk._native import code_type
from plainrisk.bins import (
    Anchor,
    JointCode,
    joint_codes,
    level_contrast,
    outside_contrast,
    smooth_contrast,
)

INF = np.inf

# ---- joint codes

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
@given(sizes_of, st.integers(1, 10**7))
def test_features_are_joined_in_order_while_there_are_few_codes(sizes, n_rows):
    found = joint_codes(sizes, n_rows)
    limit = max(16, min(256, math.isqrt(n_rows)))
    assert [j for joint in found for j in joint.features] == list(range(len(sizes)))
    for joint in found:
        assert joint.sizes == tuple(sizes[j] for j in joint.features)
        assert joint.size <= limit or len(joint.features) == 1
    for one, other in itertools.pairwise(found):
        assert one.size * other.sizes[0] > limit, "the next feature would have fitted"


def test_no_features_no_codes():
    assert joint_codes([], 100) == ()


# ---- contrasts


@st.composite
def features(draw):
    """Training weights per level (0: never seen), how many levels are ordered, and the direction."""
    n_ordered = draw(st.integers(1, 6))
    n_outside = draw(st.integers(0, 3))
    weights = draw(st.lists(st.sampled_from([0.0, 1e-9, 0.1, 1.0, 1e9]), min_size=1, max_size=9))
    weights = (weights * 9)[: n_ordered + n_outside]
    return np.array(weights), n_ordered, draw(st.sampled_from([-1, 1]))


@settings(max_examples=200, deadline=None)
@given(features(), st.integers(0, 2**32 - 1))
def test_any_allowed_coefficients_give_an_ordered_shape(feature, seed):
    weights, n_ordered, sign = feature
    contrast = level_contrast(weights, n_ordered, sign)
    beta = np.random.default_rng(seed).normal(size=len(contrast.lower))
    beta = np.where(contrast.lower == 0, np.abs(beta), beta)
    scores = contrast.matrix @ beta
    assert (sign * np.diff(scores[:n_ordered]) >= -1e-12).all()


@settings(max_examples=200, deadline=None)
@given(features(), st.integers(0, 2**32 - 1))
def test_every_ordered_shape_of_the_seen_levels_can_be_reached(feature, seed):
    weights, n_ordered, sign = feature
    rng = np.random.default_rng(seed)
    wanted = rng.normal(size=len(weights))
    wanted[:n_ordered] = np.sort(wanted[:n_ordered])[::sign]
    seen = weights > 0
    contrast = level_contrast(weights, n_ordered, sign)
    # Up to the intercept, which every model has.
    A = np.column_stack([np.ones(len(weights)), contrast.matrix])[seen]
    lower = np.concatenate([[-INF], contrast.lower])
    if A.size:
        found = lsq_linear(A, wanted[seen], (lower, np.full(len(lower), INF)), method="bvls", tol=1e-14)
        np.testing.assert_allclose(A @ found.x, wanted[seen], atol=1e-8)


@settings(max_examples=200, deadline=None)
@given(features())
def test_no_column_is_idle(feature):
    """Every column tells training rows apart: none is the same for all of them, the intercept aside."""
    weights, n_ordered, sign = feature
    contrast = level_contrast(weights, n_ordered, sign)
    seen = contrast.matrix[weights > 0]
    for j in range(contrast.matrix.shape[1]):
        assert seen[:, j].any()
        assert len(seen) == 1 or not seen[:, j].all()


def test_contrasts_by_hand():
    # Three ordered levels, special (seen), missing (never seen); increasing.
    contrast = level_contrast(np.array([3.0, 2.0, 4.0, 5.0, 0.0]), n_ordered=3, sign=1)
    np.testing.assert_array_equal(
        contrast.matrix, [[0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(contrast.lower, [0, 0, -INF, -INF])
    down = level_contrast(np.array([3.0, 2.0, 4.0]), n_ordered=3, sign=-1)
    np.testing.assert_array_equal(down.matrix, [[1, 1], [0, 1], [0, 0]])


def test_without_a_direction_each_seen_level_is_free():
    contrast = level_contrast(np.array([1.0, 0.0, 2.0]), n_ordered=2, sign=0)
    np.testing.assert_array_equal(contrast.matrix, [[1, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(contrast.lower, [-INF, -INF])


def test_unseen_levels_at_the_ends_follow_their_neighbor():
    contrast = level_contrast(np.array([0.0, 1.0, 1.0, 0.0]), n_ordered=4, sign=1)
    np.testing.assert_array_equal(contrast.matrix, [[0], [0], [1], [1]])


@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_nothing_seen_gives_no_coefficients(sign):
    assert level_contrast(np.zeros(4), n_ordered=3, sign=sign).matrix.shape == (4, 0)


def test_rounding_of_weights_makes_no_coefficients():
    # Added up one by one, ten tenths are less than added up at once.
    weights = np.array([0.1] * 10 + [0.0])
    assert level_contrast(weights, n_ordered=11, sign=1).matrix.shape == (11, 9)
    # A weight too small to change a sum is still a weight.
    assert level_contrast(np.array([1.0, 1e-20]), n_ordered=2, sign=1).matrix.shape == (2, 1)


def test_a_line_has_coefficients_outside_the_order_only():
    contrast = outside_contrast(np.array([9.0, 2.0, 0.0, 1.0]), n_ordered=1)
    np.testing.assert_array_equal(contrast.matrix, [[0, 0], [1, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(contrast.lower, [-INF, -INF])
    assert outside_contrast(np.array([9.0, 0.0]), n_ordered=1).matrix.shape == (2, 0)


@settings(max_examples=200, deadline=None)
@given(features(), st.integers(0, 2**32 - 1))
def test_scores_are_exactly_ordered_and_those_of_the_matrix(feature, seed):
    """A step of 0 leaves two levels equal to the last bit, whatever the other coefficients are."""
    weights, n_ordered, sign = feature
    contrast = level_contrast(weights, n_ordered, sign)
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=len(contrast.lower)) * 10.0 ** rng.uniform(-9, 3, len(contrast.lower))
    beta = np.where(contrast.lower == 0, np.maximum(beta, 0.0), beta)
    scores = contrast.scores(beta)
    assert (sign * np.diff(scores[:n_ordered]) >= 0).all()
    np.testing.assert_allclose(scores, contrast.matrix @ beta, rtol=0, atol=1e-12 * (1 + np.abs(beta).sum()))


# ---- levels that a rule holds


@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_a_level_held_at_another_has_its_score_exactly(sign):
    weights = np.array([3.0, 2.0, 4.0, 5.0, 1.0])
    held = {4: Anchor("at", 2)}
    rng = np.random.default_rng(0)
    for contrast in (
        level_contrast(weights, 3, sign, anchors=held),
        smooth_contrast(weights, 3, sign, ordered=True, anchors=held),
        smooth_contrast(weights, 3, 0, ordered=False, anchors=held),
    ):
        scores = contrast.scores(rng.normal(size=contrast.matrix.shape[1]))
        assert scores[4] == scores[2] != scores[3]
        assert contrast.matrix.shape[1] == len(contrast.lower)
        assert sum(size for _, size in contrast.groups) in (0, contrast.matrix.shape[1])


@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_a_level_held_at_the_mean_has_that_of_the_measured_rows(sign):
    weights = np.array([3.0, 2.0, 5.0, 4.0])
    rng = np.random.default_rng(0)
    for contrast in (
        level_contrast(weights, 3, sign, anchors={3: Anchor("mean")}),
        smooth_contrast(weights, 3, sign, ordered=True, anchors={3: Anchor("mean")}),
        smooth_contrast(weights, 3, 0, ordered=False, anchors={3: Anchor("mean")}),
    ):
        scores = contrast.scores(rng.normal(size=contrast.matrix.shape[1]))
        assert scores[3] == pytest.approx(np.average(scores[:3], weights=weights[:3]), abs=1e-12)


@pytest.mark.parametrize("side", [-1, 1])
def test_a_level_beyond_a_line_is_on_its_side(side):
    contrast = outside_contrast(np.array([9.0, 2.0, 1.0]), 1, {2: Anchor("beyond", 0, side)})
    np.testing.assert_array_equal(contrast.matrix, [[0, 0], [1, 0], [0, side]])
    np.testing.assert_array_equal(contrast.lower, [-np.inf, 0])


def test_without_free_levels_outside_nothing_stands_beside_the_intercept():
    contrast = level_contrast(np.array([3.0, 2.0, 4.0]), 2, 1, anchors={2: Anchor("at", 0)})
    np.testing.assert_array_equal(contrast.matrix, [[0], [1], [0]])
