"""Curves: evaluated against the formula by hand, certified against a dense grid, refused if damaged."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

import plainrisk as pr
from plainrisk.data.frame import as_frame
from plainrisk.errors import DataError, ModelFileError
from plainrisk.form import Alone, Bins, Curve, Logistic, Part, RiskForm
from plainrisk.form.links import LARGEST

LEVELS = Bins(special_values=(-9.0,), lower_bound=0.0)  # the curve, -9, below 0, missing
OUTSIDE = {"scores": (0.0, 0.25, -0.5, 0.75), "weights": (90.0, 5.0, 5.0, 0.0), "positives": (9.0, 1.0, 1.0, 0.0)}


def curve(breaks=(0.0, 1.0, 3.0), coefficients=((0.0, 2.0, 0.0), (2.0, 0.0, -0.5)), **change):
    return Curve(**{"breaks": breaks, "coefficients": coefficients, "levels": LEVELS, **OUTSIDE, **change})


def form(shape, direction="increasing"):
    feature = {"direction": direction, "special_values": (-9,), "lower_bound": 0.0}
    return RiskForm(
        schema=pr.Schema(features={"u": feature}),
        columns=("u",),
        classes=(0, 1),
        parts=(Part(name="all", intercept=0.5, shapes={"u": shape}, link=Logistic()),),
        pool=Alone(),
    )


def by_hand(shape, x):
    """The polynomial of the piece x lies on; the outer pieces run on."""
    piece = max((k for k in range(len(shape.coefficients)) if x >= shape.breaks[k]), default=0)
    t = x - shape.breaks[piece]
    return sum(c * t**m for m, c in enumerate(shape.coefficients[piece]))


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), pieces=st.integers(1, 5), degree=st.integers(0, 4))
def test_the_curve_is_the_polynomial_of_its_piece(seed, pieces, degree):
    rng = np.random.default_rng(seed)
    breaks = np.cumsum(rng.uniform(0.1, 2.0, pieces + 1)).round(3)
    table = rng.normal(size=(pieces, degree + 1))
    shape = curve(tuple(breaks.tolist()), tuple(map(tuple, table.tolist())))
    x = np.concatenate([breaks, rng.uniform(breaks[0] - 2, breaks[-1] + 2, 30)])
    np.testing.assert_allclose(shape.at(x), [by_hand(shape, v) for v in x], rtol=1e-11, atol=1e-11)


def test_what_is_no_measurement_has_its_own_score():
    frame = as_frame({"u": [0.0, 0.5, 2.0, 4.0, -9.0, -3.0, np.nan]})
    expected = [0.0, 1.0, 1.5, 2.0 - 0.5 * 9, 0.25, -0.5, 0.75]
    np.testing.assert_allclose(curve().values(frame, "u"), expected)
    with pytest.raises(DataError, match="feature 'u', row 6: level 'missing' was not in the training data"):
        curve().values(frame, "u", refuse_unseen=True)


def test_far_out_the_score_stays_a_number():
    frame = as_frame({"u": [1e200, 1.7e308]})
    np.testing.assert_array_equal(curve().values(frame, "u"), [-LARGEST, -LARGEST])
    rising = curve(coefficients=((0.0, 2.0, 0.0), (2.0, 1.0, 0.5)))
    assert form(rising).risk({"u": [1.7e308]}).tolist() == [1.0]


def test_a_spline_of_scipy_is_a_curve(rng):
    knots = np.sort(rng.uniform(0, 10, 6))
    spline = CubicSpline(knots, rng.normal(size=6), bc_type="natural")
    shape = curve(tuple(knots.tolist()), tuple(map(tuple, spline.c[::-1].T.tolist())))
    x = rng.uniform(0, 12, 200)
    np.testing.assert_allclose(shape.at(x), spline(x), rtol=1e-10, atol=1e-10)


def test_saved_and_loaded(tmp_path):
    pr.RiskModel(form(curve())).save(tmp_path / "m.json")
    again = pr.load(tmp_path / "m.json")
    rows = pd.DataFrame({"u": [0.3, 2.9, 7.0, -9.0, -1.0, np.nan]})
    assert again.form_ == form(curve())
    np.testing.assert_array_equal(again.predict_proba(rows)[:, 1], form(curve()).risk(rows))
    assert again.explain(rows).features == ("u",)


@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
def test_the_certificate_agrees_with_a_dense_grid(direction):
    sign = 1 if direction == "increasing" else -1
    x = np.concatenate([[-1e4, -50.0], np.linspace(-8, 10, 9001), [50.0, 1e4]])
    outcomes = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        degree = int(rng.integers(1, 4))
        table = rng.normal(loc=[0.0, 2.0, 0.0, 0.3][: degree + 1], size=(2, degree + 1))
        table[1, 0] = sum(table[0])  # the pieces meet
        shape = curve((0.0, 1.0, 2.5), tuple(map(tuple, (sign * table).tolist())))
        worst = (sign * np.diff(shape.at(x))).min()
        holds = pr.RiskModel(form(shape, direction)).certify().checks[0].holds
        assert holds == (worst >= -1e-12), f"seed {seed}: the worst step is {worst:g}"
        outcomes.append(holds)
    assert 5 < sum(outcomes) < 75


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"breaks": (0.0, 3.0, 1.0)}, "rising breaks"),
        ({"breaks": (0.0, 1.0, 1.0)}, "rising breaks"),
        ({"breaks": (0.0, math.nan, 3.0)}, "rising breaks"),
        ({"breaks": (0.0, 1.0, math.inf)}, "finite coefficients"),
        ({"coefficients": ((0.0, 2.0), (math.nan, 1.0))}, "finite coefficients"),
        ({"coefficients": ((0.0, 2.0), (math.inf, 1.0))}, "finite coefficients"),
        ({"coefficients": ((0.0, 2.0),)}, "one polynomial of one degree per piece"),
        ({"coefficients": ((0.0, 2.0), (1.0,))}, "one polynomial of one degree per piece"),
        ({"coefficients": ((), ())}, "one polynomial of one degree per piece"),
        ({"breaks": (), "coefficients": ()}, "one polynomial of one degree per piece"),
        ({"breaks": (1.0,), "coefficients": ()}, "one polynomial of one degree per piece"),
        ({"scores": (0.0, 0.25, -0.5)}, "a shape with 4 levels has 3 scores"),
        ({"weights": (1.0,)}, "a shape with 4 levels has 1 weights"),
        ({"positives": ()}, "a shape with 4 levels has 0 positives"),
        ({"scores": (0.0, math.nan, 0.0, 0.0)}, "the scores of a shape must be within"),
        ({"weights": (0.0, math.inf, 0.0, 0.0)}, "the weights of a shape must be within"),
        ({"levels": Bins(edges=(1.0,), lower_bound=0.0)}, "no bin edges"),
    ],
)
def test_no_damaged_curve_is_made(change, message):
    with pytest.raises(ModelFileError, match=message):
        msgspec.structs.replace(curve(), **change)


@pytest.mark.parametrize("coefficients", [((0.0, 0.0, 0.0),) * 2, ((0.0, 1e300, -1e-300),) * 2])
def test_a_curve_at_the_ends_of_numbers_is_a_number(coefficients):
    shape = curve((-1.7e308, 0.0, 1.7e308), coefficients, levels=Bins(), **{k: v[:2] for k, v in OUTSIDE.items()})
    assert np.isfinite(shape.of_numbers(np.array([-1.7e308, 0.0, 5e-324, 1.7e308]))).all()


@pytest.mark.parametrize(
    ("coefficients", "holds"),
    [
        (((0.0, 1.0, 0.0), (1.0, 1e-300, 1e300)), True),
        (((0.0, 1.0, 0.0, 1e-300), (1.0, 1e300, 0.0, -1e-300)), False),
    ],
)
def test_huge_and_tiny_coefficients_are_certified_like_others(coefficients, holds):
    shape = curve((0.0, 1.0, 2.0), coefficients)
    assert pr.RiskModel(form(shape)).certify().checks[0].holds is holds
