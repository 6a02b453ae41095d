import numpy as np
import pytest

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


@pytest.mark.parametrize("signs", SIGNS)
def test_cells_differ_as_freely_as_directions_allow(rng, signs):
    """With all cells inside the order, an interaction of the directions' kind can be written exactly."""
    u, v = (coarse_axis(np.ones(4), 4, sign, ordered=True) for sign in signs)
    beyond = [np.arange(4) >= 2 if sign >= 0 else np.arange(4) < 2 for sign in signs]
    wanted = np.outer(*beyond).astype(float).ravel()
    contrast = pair_contrast(u, v, np.ones(16))
    # Features alone say the rest.
    alone = np.hstack([np.repeat(np.eye(4), 4, axis=0), np.tile(np.eye(4), (4, 1))])
    columns = np.hstack([contrast.matrix, alone])
    left = wanted - columns @ np.linalg.lstsq(columns, wanted, rcond=None)[0]
    assert np.abs(left).max() < 1e-9


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
