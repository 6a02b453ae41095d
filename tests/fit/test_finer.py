"""Finer bins: where a shape bends or jumps, and nowhere on noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import plainrisk as pr
from plainrisk.fit.choices import FEW_BINS, FINE_BINS
from plainrisk.fit.finer import blurred, code_fine_rows, finer_cuts, halvings, some_cuts
from plainrisk.fit.layer import fit_layer
from plainrisk.fit.parameters import LayerSettings
from plainrisk.fit.training import read_training

LEVELS, BINS = 64, 8
CUTS = set(range(BINS, LEVELS, BINS))
FINER = set(range(2, LEVELS, 2))


def residuals(rng, shape, weight=50.0):
    """Sums of residuals and curvatures by fine level, at a fit of the bins' means, with noise as rows have it."""
    curvature = np.full(LEVELS, weight)
    mean = np.repeat(shape.reshape(-1, BINS).mean(axis=1), BINS)
    return weight * (shape - mean) + np.sqrt(weight) * rng.normal(size=LEVELS), curvature


def test_noise_asks_for_nothing():
    asked = [bool(finer_cuts(*residuals(np.random.default_rng(k), np.zeros(LEVELS)), CUTS, FINER)) for k in range(100)]
    assert sum(asked) <= 5


def test_a_jump_in_one_bin_cuts_that_bin(rng):
    shape = np.where(np.arange(LEVELS) >= 20, 1.5, 0.0)
    asked = finer_cuts(*residuals(rng, shape), CUTS, FINER)
    assert 20 in asked
    assert asked <= set(range(17, 24))  # the bin of the levels 16 to 23


@pytest.mark.parametrize("level", [16, 19, 23])
def test_one_level_unlike_its_neighbors_gets_a_bin_of_its_own(rng, level):
    shape = np.where(np.arange(LEVELS) == level, 1.5, 0.0)
    asked = finer_cuts(*residuals(rng, shape), CUTS, FINER)
    assert asked == {level, level + 1} - {16, 24}


def test_a_bin_that_wanders_is_cut_level_by_level(rng):
    shape = np.zeros(LEVELS)
    shape[16:24] = 0.45 * np.array([1, -1, 1, -1, 1, -1, 1, -1])
    assert finer_cuts(*residuals(rng, shape), CUTS, FINER) == set(range(17, 24))


def test_a_shape_that_moves_the_score_is_blurred_by_few_bins():
    """A line from 0 to 1 over equal rows has a variance of 1/12; within ten bins, of 1/1200."""
    line, curvature = (np.arange(1000) + 0.5) / 1000, np.full(1000, 2.0)
    within = line - np.repeat(line.reshape(10, 100).mean(axis=1), 100)
    assert blurred(line, curvature, 10) == pytest.approx(0.5 * curvature @ within**2, rel=1e-3)


def test_a_small_jump_leaves_the_other_bins_alone(rng):
    """What is evident in one bin is not in the feature as a whole, where most bins speak against it."""
    level, wave = np.full(LEVELS, 50.0), np.zeros(LEVELS)
    wave[16:24] = np.repeat([-20.0, 20.0], 4)
    asked = finer_cuts(wave, level, CUTS, FINER, least=0.0)
    assert asked == {20}


def test_a_shape_that_bends_everywhere_gets_the_next_bins(rng):
    """Too little in each bin to be sure of it; evident in all together."""
    shape = 0.15 * np.where(np.arange(LEVELS) % 8 < 4, 1.0, -1.0)
    weight = 50.0 * np.ones(LEVELS)
    asked = finer_cuts(weight * shape, weight, CUTS, FINER)
    assert asked == FINER - CUTS


def test_a_gain_that_merging_would_undo_is_not_asked_for(rng):
    found = residuals(rng, np.where(np.arange(LEVELS) >= 20, 1.5, 0.0))
    assert finer_cuts(*found, CUTS, FINER)
    assert not finer_cuts(*found, CUTS, FINER, least=1e6)


def test_bins_of_one_level_are_as_fine_as_can_be(rng):
    found = residuals(rng, rng.normal(size=LEVELS))
    assert finer_cuts(*found, set(range(1, LEVELS)), FINER) == set()


def test_levels_without_rows_ask_for_nothing():
    assert finer_cuts(np.zeros(8), np.zeros(8), {4}, {2, 4, 6}) == set()


# ---- of a fit


def fitted(y_of, n=6000, **feature):
    rng = np.random.default_rng(11)
    x = rng.uniform(0.0, 1.0, n)
    y = (rng.random(n) < expit(y_of(x))).astype(int)
    training = read_training({"x": x}, y, pr.Schema(features={"x": feature}), None, None)
    return training, fit_layer(training, LayerSettings(shapes="smooth"))


@pytest.mark.parametrize("direction", ["none", "increasing"])
def test_a_step_is_found_where_it_is(direction):
    _, found = fitted(lambda x: np.where(x > 0.4217, 1.5, -1.5), direction=direction)
    edges = np.array(found.part.shapes["x"].levels.edges)
    assert np.abs(edges - 0.4217).min() < 0.005  # bins of equal shares are 0.06 wide
    scores = np.array(found.part.shapes["x"].scores)
    jump = scores[np.searchsorted(edges, 0.44)] - scores[np.searchsorted(edges, 0.40)]
    assert jump > 2.4


def test_a_line_needs_few_bins_and_a_wave_more():
    cuts = [len(fitted(y_of)[1].chosen.cuts["x"]) for y_of in (lambda x: x - 0.5, lambda x: 1.5 * np.sin(60 * x))]
    assert cuts[0] <= 3 * FEW_BINS < cuts[1] <= FINE_BINS + 2 * halvings(FINE_BINS)


def test_some_cuts_are_about_so_many_and_finer_toward_the_ends(rng):
    x = rng.normal(size=5000)
    X = {"x": x, "word": rng.choice(["a", "b"], 5000)}
    coded = code_fine_rows(read_training(X, rng.integers(0, 2, 5000), None, None, None))
    weights = coded.weights[0][: coded.levels[0].n_ordered]
    for bins in (8, 16, 64):
        found = some_cuts(coded, bins)
        assert set(found) == {"x"}
        cuts = sorted(found["x"])
        assert cuts[0] > 0
        assert cuts[-1] < len(weights)
        assert bins - 2 <= len(cuts) <= bins + 2 * halvings(bins)
        shares = np.add.reduceat(weights, [0, *cuts]) / 5000
        assert shares.max() < 1.5 / bins
        assert shares[0] < 4.0 / bins**2  # the finer the bins, the finer the ends
        assert shares[-1] < 4.0 / bins**2


def test_some_cuts_of_few_values_are_all():
    X = {"x": np.arange(300.0) % 5}
    coded = code_fine_rows(read_training(X, np.arange(300) % 2, None, None, None))
    assert some_cuts(coded, 16) == {"x": frozenset({1, 2, 3, 4})}
