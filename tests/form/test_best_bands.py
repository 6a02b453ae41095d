from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit

from plainrisk.form import ALPHA_STAR
from plainrisk.form.links import best_bands


def error_of(knots, values) -> float:
    """Squared error by adaptive quadrature, piece by piece."""
    ends = [-60.0, *knots, 60.0]
    return sum(
        quad(lambda x: (np.interp(x, knots, values) - expit(x)) ** 2, a, b, epsabs=1e-15, epsrel=1e-12)[0]
        for a, b in pairwise(ends)
    )


def test_one_piece_is_the_best_clipped_line():
    bands = best_bands(1)
    assert bands.knots == pytest.approx((-ALPHA_STAR, ALPHA_STAR), abs=1e-13)
    assert bands.values == (0.0, 1.0)


@pytest.mark.parametrize("pieces", range(1, 31))
def test_shape_of_the_answer(pieces):
    bands = best_bands(pieces)
    knots, values = np.array(bands.knots), np.array(bands.values)
    assert len(knots) == len(values) == pieces + 1
    assert (np.diff(knots) > 0).all()
    assert (np.diff(values) > 0).all()
    assert (values[0], values[-1]) == (0.0, 1.0)
    assert knots + knots[::-1] == pytest.approx(0.0, abs=0)
    assert values + values[::-1] == pytest.approx(1.0, abs=1e-16)


@pytest.mark.parametrize("pieces", range(1, 9))
def test_squared_error_is_that_of_the_line(pieces):
    bands = best_bands(pieces)
    assert bands.squared_error == pytest.approx(error_of(bands.knots, bands.values), abs=1e-13)


def test_error_falls_with_every_two_pieces():
    errors = [best_bands(pieces).squared_error for pieces in range(1, 31)]
    assert (np.diff(errors[::2]) < 0).all()
    assert errors[1::2] == errors[::2]  # a knot at 0 bends nothing in an antisymmetric line
    # In the limit of many pieces the error falls with the fourth power of their number.
    assert errors[28] * 29**4 == pytest.approx(errors[18] * 19**4, rel=0.2)


def test_even_number_cuts_the_middle_piece_at_zero():
    odd, even = best_bands(3), best_bands(4)
    assert even.knots == (*odd.knots[:2], 0.0, *odd.knots[2:])
    assert even.values == (*odd.values[:2], 0.5, *odd.values[2:])


@pytest.mark.parametrize("pieces", [3, 5, 7])
def test_no_random_search_does_better(pieces):
    """Minimize the error on a fine grid from many starts: nothing is found below the answer."""
    half = (pieces + 1) // 2
    x = np.linspace(0.0, 30.0, 6001)
    left = expit(-x)
    bands = best_bands(pieces)

    def line(parameters):
        t = np.cumsum(np.exp(parameters[:half]))
        g = 0.5 * np.cumprod(expit(parameters[half:]))
        return np.interp(x, [0.0, *t], [0.5, *g, 0.0])

    def error(parameters):
        return 2e3 * np.trapezoid((line(parameters) - left) ** 2, x)

    rng = np.random.default_rng(pieces)
    found = [minimize(error, rng.normal(0.0, 0.7, 2 * half - 1), method="BFGS") for _ in range(4)]
    best = min(found, key=lambda result: result.fun)
    assert best.fun / 1e3 == pytest.approx(bands.squared_error, rel=2e-3)
    assert best.fun / 1e3 > bands.squared_error * (1 - 2e-3)
    assert np.cumsum(np.exp(best.x[:half])) == pytest.approx(bands.knots[-half:], abs=0.02)


@pytest.mark.parametrize("pieces", [1, 2, 3, 8])
def test_moving_any_knot_or_value_makes_it_worse(pieces):
    bands = best_bands(pieces)
    knots, values = np.array(bands.knots), np.array(bands.values)
    best = error_of(knots, values)
    half = (pieces + 1) // 2
    for k in range(half):
        for move in (-1e-3, 1e-3):
            moved = knots.copy()
            moved[k] -= move
            moved[-1 - k] += move
            assert error_of(moved, values) > best
            if k > 0:
                raised = values.copy()
                raised[k] -= move
                raised[-1 - k] += move
                assert error_of(knots, raised) > best


def test_answer_is_the_same_each_time():
    first = best_bands(5)
    assert best_bands(np.int64(5)) == first
