from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import spence

from plainrisk.errors import DataError
from plainrisk.form import ALPHA_STAR
from plainrisk.form.links import best_bands
from plainrisk_lab.paper.alpha import (
    PAPER_ALPHA,
    PROBIT_ALPHA_STAR,
    best_alpha,
    cloglog_line,
    squared_error,
    squared_error_curvature,
    squared_error_quadrature,
    squared_error_slope,
)

# Computed with 40 digits by integrating the definition; derivatives by differentiating at that precision.
LOGISTIC = [  # alpha, SE, SE', SE''
    (0.001, 0.3859611111198885355, -0.3331666666749999994048, 0.1666666416666696428568),
    (0.01, 0.3829693610990573847, -0.3316666749999404766589, 0.1666641666964282435),
    (0.1, 0.3537941528857051142, -0.3166749940522999121364, 0.1664169639581312980461),
    (0.5, 0.2403323470502612016, -0.2510234240467623463996, 0.1605976876611343108206),
    (1.0, 0.1343047407079887435, -0.1744480323382097420649, 0.1443465552697625759655),
    (1.5, 0.06424673839822322925, -0.1076134549551456068359, 0.1224727970872745774798),
    (2.6, 0.009894015060880095279, 0.00002385982351007700008827, 0.07500337423062290139543),
    (4.0, 0.06878395889373176295, 0.07521230756880526277342, 0.03673407456788492293322),
    (8.0, 0.5388662330647859792, 0.1410589057934590281366, 0.006318102685685290106546),
    (20.0, 2.415580036469629293, 0.1625543317159672307138, 0.0004112332889545817762657),
    (50.0, 7.366232014670297862, 0.1660086930399273760921, 0.00002631894506957162297553),
]
PROBIT = [
    (0.001, 0.2333617769025292204, -0.3330673718396618607252, 0.2659614404791799529435),
    (0.1, 0.2016907870939148580, -0.3067637489890848433031, 0.2651650586556098287033),
    (1.0, 0.02713729977513962669, -0.0913626088141899835355, 0.1987480430987991975748),
    (1.5, 0.003912409368942964323, -0.006325603594326662704208, 0.1415800919895136844885),
    (4.0, 0.2274763105668845054, 0.1354204324338893380784, 0.01560728149547210433349),
    (50.0, 7.779143749785577046, 0.1664666666666666666667, 0.000008),
]
CASES = [("logistic", *row) for row in LOGISTIC] + [("probit", *row) for row in PROBIT]
ALPHAS = st.floats(1e-3, 50.0)


@pytest.mark.parametrize(("sigmoid", "alpha", "error", "slope", "curvature"), CASES)
def test_closed_forms_hold_to_the_last_digits(sigmoid, alpha, error, slope, curvature):
    assert squared_error(alpha, sigmoid) == pytest.approx(error, abs=1e-15)
    assert squared_error_slope(alpha, sigmoid) == pytest.approx(slope, abs=1e-15)
    assert squared_error_curvature(alpha, sigmoid) == pytest.approx(curvature, abs=3e-15)


@pytest.mark.parametrize("sigmoid", ["logistic", "probit"])
@pytest.mark.parametrize("alpha", [1e-3, 0.3, 0.999999, 1.0, 1.7, 2.6, 7.0, 50.0])
def test_closed_form_agrees_with_quadrature(sigmoid, alpha):
    assert squared_error(alpha, sigmoid) == pytest.approx(squared_error_quadrature(alpha, sigmoid), abs=1e-12)


def test_series_and_closed_form_meet_at_one():
    below, above = math.nextafter(1.0, 0.0), 1.0
    for function in (squared_error, squared_error_slope, squared_error_curvature):
        assert function(below) == pytest.approx(function(above), abs=1e-15)


def test_closed_form_is_the_papers():
    def paper(a: float) -> float:
        soft_minus, soft_plus = math.log1p(math.exp(-a)), math.log1p(math.exp(a))
        li_minus, li_plus = spence(1 + math.exp(-a)), spence(1 + math.exp(a))
        top = 7 * a * a + 6 * a * soft_minus - 6 * a * soft_plus + 3 * a - 3 * li_minus + 3 * li_plus
        return -top / (3 * a)

    for alpha in (0.5, 1.0, 2.6, 5.0):
        assert squared_error(alpha) == pytest.approx(paper(alpha), abs=1e-13)


@given(alpha=ALPHAS, sigmoid=st.sampled_from(["logistic", "probit"]))
def test_slope_is_the_derivative_and_the_error_is_convex(alpha, sigmoid):
    step = 1e-4 * alpha
    rise = squared_error(alpha + step, sigmoid) - squared_error(alpha - step, sigmoid)
    assert squared_error_slope(alpha, sigmoid) == pytest.approx(rise / (2 * step), abs=1e-8)
    rise = squared_error_slope(alpha + step, sigmoid) - squared_error_slope(alpha - step, sigmoid)
    assert squared_error_curvature(alpha, sigmoid) == pytest.approx(rise / (2 * step), abs=1e-7)
    assert squared_error_curvature(alpha, sigmoid) > 0


def test_newton_finds_the_constants():
    assert best_alpha() == pytest.approx(2.59968190831432226616, abs=1e-14)
    assert best_alpha("probit") == pytest.approx(1.54548158410913209800, abs=1e-14)
    assert pytest.approx(best_alpha(), abs=1e-14) == ALPHA_STAR
    assert pytest.approx(best_alpha("probit"), abs=1e-14) == PROBIT_ALPHA_STAR
    assert squared_error(ALPHA_STAR) == pytest.approx(0.00989401126597501468, abs=1e-15)
    assert squared_error(PROBIT_ALPHA_STAR, "probit") == pytest.approx(0.00376941966645416014, abs=1e-15)


def test_the_papers_rational_is_near_and_no_better():
    assert Fraction(80000, 30773) == PAPER_ALPHA
    assert pytest.approx(ALPHA_STAR - PAPER_ALPHA, rel=1e-2) == 3.69e-7
    assert squared_error(float(PAPER_ALPHA)) >= squared_error(ALPHA_STAR)


def test_illustrative_example_of_the_paper():
    assert math.log(5.0) / (2 * ALPHA_STAR) == pytest.approx(0.310, abs=5e-4)


def test_quadrature_takes_any_sigmoid():
    def uniform(x: float) -> float:
        return min(max((x + 2.0) / 4.0, 0.0), 1.0)

    assert squared_error_quadrature(2.0, uniform) == pytest.approx(0.0, abs=1e-15)
    # Alpha 1 against alpha 2: twice the integrals of (x/4)^2 on [0, 1] and (1/2 - x/4)^2 on [1, 2].
    assert squared_error_quadrature(1.0, uniform) == pytest.approx(2 * (1 / 48 + 1 / 48), abs=1e-12)


def test_cloglog_line_is_the_optimum_over_both_ends():
    line = cloglog_line()
    assert line.lower == pytest.approx(-2.273673125085088965755, abs=1e-12)
    assert line.upper == pytest.approx(1.309070608701265545088, abs=1e-12)
    assert line.squared_error == pytest.approx(0.009750399360899157548, abs=1e-12)


def test_cloglog_line_beats_a_derivative_free_search():
    x = np.linspace(-25.0, 6.0, 20001)
    sigmoid = -np.expm1(-np.exp(x))

    def error(ends):
        return np.trapezoid((np.clip((x - ends[0]) / (ends[1] - ends[0]), 0, 1) - sigmoid) ** 2, x)

    found = minimize(error, [-1.0, 3.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12})
    line = cloglog_line()
    assert found.x == pytest.approx([line.lower, line.upper], abs=1e-3)
    assert found.fun == pytest.approx(line.squared_error, abs=1e-6)


def test_symmetric_cloglog_line_is_far_worse():
    line = cloglog_line(symmetric=True)
    assert line.upper == pytest.approx(1.80234216906559348, abs=1e-12)
    assert line.lower == -line.upper
    assert line.squared_error == pytest.approx(0.0663230461147475026, abs=1e-12)
    assert line.squared_error == pytest.approx(squared_error_quadrature(line.upper, "cloglog"), abs=1e-15)
    assert line.squared_error / cloglog_line().squared_error == pytest.approx(6.8, abs=0.01)


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("function", [squared_error, squared_error_slope, squared_error_quadrature])
def test_alpha_must_be_positive_and_finite(function, alpha):
    with pytest.raises(DataError, match="alpha: must be positive and finite, got"):
        function(alpha)


def test_unknown_sigmoid_is_named():
    with pytest.raises(DataError, match=r"sigmoid 'logit'\. Did you mean 'logistic'"):
        squared_error(1.0, "logit")
    with pytest.raises(DataError, match="Did you mean 'probit'"):
        best_alpha("probbit")
    with pytest.raises(DataError, match="Did you mean 'cloglog'"):
        squared_error_quadrature(1.0, "clolog")


def test_one_band_is_the_best_line():
    assert best_bands(1).squared_error == pytest.approx(squared_error(ALPHA_STAR), abs=1e-15)
