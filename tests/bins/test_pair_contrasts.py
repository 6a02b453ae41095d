import numpy as np
import pytest
from scipy.optimize import lsq_linear

from plainrisk.bins import coarse_axis, pair_contrast

SIGNS = [(0, 0), (1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1)]


def axes_of(rng, signs):
    return [coarse_axis(rng.uniform(1, 3, 6), 5, sign, ordered=True) for sign in signs]


@pytest.mark.parametrize("signs", SIGNS)
def test_any_coefficients_within_the_bounds_are_monotone(rng, signs):
    u, v = axes_of(rng, signs)
    contrast = pair_contrast(u, v, rng.uniform(1, 3, u.size * v.size))
    for _ in range(50):
        beta = np.where(
            np.isneginf(contrast.lower), rng.normal(size=len(contrast.lower)), rng.exponential(size=len(contrast.lower))
        )
        cells = contrast.scores(beta).reshape(u.size, v.size)
        if signs[0]:
            assert (signs[0] * np.diff(cells[: u.n_ordered], axis=0) >= 0).all()
        if signs[1]:
            assert (signs[1] * np.diff(cells[:, : v.n_ordered], axis=1) >= 0).all()


def beyond_bounds(wanted, u, v):
    """Return how far cells are from all that a pair and its features alone can say within their bounds."""
    contrast = pair_contrast(u, v, np.ones(u.size * v.size))
    rows, columns = np.repeat(np.eye(u.size), v.size, axis=0), np.tile(np.eye(v.size), (u.size, 1))
    parts = [(contrast.matrix, contrast.lower)]
    for axis, own in ((u, rows), (v, columns)):
        steps = own @ axis.beyond.T if axis.sign else own
        parts.append((steps, np.full(steps.shape[1], 0.0 if axis.sign else -np.inf)))
    parts.append((np.ones((wanted.size, 1)), np.array([-np.inf])))
    matrix, lower = (np.concatenate(one, axis=-1) for one in zip(*parts, strict=True))
    found = lsq_linear(matrix, wanted.ravel(), (lower, np.full(len(lower), np.inf)), method="bvls", tol=1e-12)
    return np.abs(matrix @ found.x - wanted.ravel()).max()


@pytest.mark.parametrize("signs", [(0, 0), (1, 0), (0, -1)])
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_every_table_that_obeys_one_direction_or_none_can_be_written(rng, signs, size):
    u, v = (coarse_axis(np.ones(size), size, sign, ordered=True) for sign in signs)
    cells = rng.normal(size=(size, size))
    for axis, sign in enumerate(signs):
        cells = np.sort(cells, axis=axis) if sign > 0 else -np.sort(-cells, axis=axis) if sign < 0 else cells
    assert beyond_bounds(cells, u, v) < 1e-6


def test_a_risk_that_rises_for_a_middle_range_of_the_other_feature_alone():
    u, v = (coarse_axis(np.ones(8), 8, sign, ordered=True) for sign in (1, 0))
    assert beyond_bounds(np.outer(np.arange(8) >= 4, np.isin(np.arange(8), [3, 4])).astype(float), u, v) < 1e-6


@pytest.mark.parametrize("signs", [(1, 1), (-1, 1), (-1, -1)])
@pytest.mark.parametrize("rise", [np.exp, np.sqrt])
def test_with_two_directions_risk_builds_up_or_saturates(signs, rise):
    u, v = (coarse_axis(np.ones(5), 5, sign, ordered=True) for sign in signs)
    worse = [np.arange(5)[::sign] for sign in signs]
    assert beyond_bounds(rise(np.add.outer(*worse) / 2), u, v) < 1e-6


def test_without_directions_nothing_is_left_for_one_feature_alone(rng):
    u, v = (coarse_axis(rng.uniform(1, 3, 5), 5, 0, ordered=True) for _ in range(2))
    row, column = rng.uniform(1, 3, u.size), rng.uniform(1, 3, v.size)
    weights = np.outer(row, column)
    contrast = pair_contrast(u, v, weights.ravel())
    cells = contrast.scores(rng.normal(size=len(contrast.lower))).reshape(u.size, v.size)
    assert np.abs((weights * cells).sum(axis=0)).max() < 1e-9
    assert np.abs((weights * cells).sum(axis=1)).max() < 1e-9


def test_categories_without_an_order_have_an_effect_by_cell(rng):
    u = coarse_axis(np.array([5.0, 3.0, 2.0]), 3, 0, ordered=False)
    v = coarse_axis(np.array([4.0, 4.0, 2.0]), 2, 0, ordered=False)
    contrast = pair_contrast(u, v, rng.uniform(1, 2, 9))
    assert (u.n_ordered, v.n_ordered) == (0, 0)
    assert np.array_equal(contrast.indicators, np.eye(9))


def test_coefficients_that_no_row_has_are_left_out():
    u, v = (coarse_axis(np.ones(3), 3, 0, ordered=True) for _ in range(2))
    everywhere = pair_contrast(u, v, np.ones(9))
    nowhere = pair_contrast(u, v, np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0]))
    assert everywhere.matrix.shape[1] == 4
    assert nowhere.matrix.shape[1] == 0
