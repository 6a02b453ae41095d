from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from plainrisk.bins import feature_columns

INF = np.inf


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
    columns = feature_columns(weights, n_ordered, sign)
    beta = np.random.default_rng(seed).normal(size=len(columns.lower))
    beta = np.where(columns.lower == 0, np.abs(beta), beta)
    scores = columns.matrix @ beta
    assert (sign * np.diff(scores[:n_ordered]) >= -1e-12).all()


@settings(max_examples=200, deadline=None)
@given(features(), st.integers(0, 2**32 - 1))
def test_every_ordered_shape_of_the_seen_levels_can_be_reached(feature, seed):
    weights, n_ordered, sign = feature
    rng = np.random.default_rng(seed)
    wanted = rng.normal(size=len(weights))
    wanted[:n_ordered] = np.sort(wanted[:n_ordered])[::sign]
    seen = weights > 0
    columns = feature_columns(weights, n_ordered, sign)
    # Up to the intercept, which every model has.
    A = np.column_stack([np.ones(len(weights)), columns.matrix])[seen]
    lower = np.concatenate([[-INF], columns.lower])
    if A.size:
        found = lsq_linear(A, wanted[seen], (lower, np.full(len(lower), INF)), method="bvls", tol=1e-14)
        np.testing.assert_allclose(A @ found.x, wanted[seen], atol=1e-8)


@settings(max_examples=200, deadline=None)
@given(features())
def test_no_column_is_idle(feature):
    """Every column tells training rows apart: none is the same for all of them, the intercept aside."""
    weights, n_ordered, sign = feature
    columns = feature_columns(weights, n_ordered, sign)
    seen = columns.matrix[weights > 0]
    for j in range(columns.matrix.shape[1]):
        assert seen[:, j].any()
        assert len(seen) == 1 or not seen[:, j].all()


def test_columns_by_hand():
    # Three ordered levels, special (seen), missing (never seen); increasing.
    columns = feature_columns(np.array([3.0, 2.0, 4.0, 5.0, 0.0]), n_ordered=3, sign=1)
    np.testing.assert_array_equal(
        columns.matrix, [[0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(columns.lower, [0, 0, -INF, -INF])
    down = feature_columns(np.array([3.0, 2.0, 4.0]), n_ordered=3, sign=-1)
    np.testing.assert_array_equal(down.matrix, [[1, 1], [0, 1], [0, 0]])


def test_without_a_direction_each_seen_level_is_free():
    columns = feature_columns(np.array([1.0, 0.0, 2.0]), n_ordered=2, sign=0)
    np.testing.assert_array_equal(columns.matrix, [[1, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(columns.lower, [-INF, -INF])


def test_unseen_levels_at_the_ends_follow_their_neighbour():
    columns = feature_columns(np.array([0.0, 1.0, 1.0, 0.0]), n_ordered=4, sign=1)
    np.testing.assert_array_equal(columns.matrix, [[0], [0], [1], [1]])


@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_nothing_seen_gives_no_columns(sign):
    assert feature_columns(np.zeros(4), n_ordered=3, sign=sign).matrix.shape == (4, 0)


def test_rounding_of_weights_makes_no_columns():
    # Added up one by one, ten tenths are less than added up at once.
    weights = np.array([0.1] * 10 + [0.0])
    assert feature_columns(weights, n_ordered=11, sign=1).matrix.shape == (11, 9)
    # A weight too small to change a sum is still a weight.
    assert feature_columns(np.array([1.0, 1e-20]), n_ordered=2, sign=1).matrix.shape == (2, 1)


def test_columns_that_look_alike_are_kept_and_can_not_be_changed():
    weights = np.array([3.0, 2.0, 4.0, 0.0])
    one, same = (feature_columns(w, n_ordered=3, sign=1) for w in (weights, 2 * weights))
    assert one is same
    for array in (one.matrix, one.lower):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0.0
    others = [
        feature_columns(weights, n_ordered=3, sign=-1),
        feature_columns(weights, n_ordered=2, sign=1),
        feature_columns(weights, n_ordered=3, sign=0),
        feature_columns(weights, n_ordered=3, sign=0, steps=True),
        feature_columns(weights[::-1], n_ordered=3, sign=1),
    ]
    assert len({other.matrix.tobytes() + other.lower.tobytes() for other in [one, *others]}) == 6
