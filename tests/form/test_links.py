"""The contract of links, over all of them: a new link joins by standing in LINKS."""

from __future__ import annotations

from typing import get_args

import msgspec
import numpy as np
import pytest

from plainrisk.errors import ModelFileError
from plainrisk.form import Bands, Linear, Link, Logistic
from plainrisk.form.links import BASE_RATE_ERROR, at_odds

LINKS = {
    "logistic": Logistic(),
    "identity": Linear(),
    "linearised": Linear.from_alpha(2.599681908314322),
    "linearised, clipped early": Linear.from_alpha(1.3, epsilon=0.05),
    "steep": Linear(slope=37.0, offset=-0.3, low=0.1, high=0.7),
    "two knots": Bands((-4.0, 3.0), (0.01, 0.9)),
    "three bands": Bands((-4.0, -1.0, 1.1, 4.0), (0.02, 0.25, 0.8, 0.98)),
    "ends outside": Bands((-1.0, 0.0, 1e-3, 2.0), (-0.5, 1 / 3, 0.7, 1.5)),
}
every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())


def kinks(link):
    """The scores at which a straight link bends."""
    if isinstance(link, Linear):
        return [(end - link.offset) / link.slope for end in link.range]
    if isinstance(link, Bands):
        rates = link.rates
        ends = [link.knots[0] - link.values[0] / rates[0], link.knots[-1] + (1 - link.values[-1]) / rates[-1]]
        return [*link.knots, *ends]
    return [0.0]


@pytest.fixture
def scores(rng):
    near, wide = rng.uniform(-0.01, 0.01, 500), 50 * rng.normal(size=500)
    return np.concatenate([3 * rng.normal(size=3000), near, wide])


def test_every_kind_of_link_is_here():
    assert {type(link) for link in LINKS.values()} == set(get_args(Link))


@every_link
def test_neighboring_scores_keep_their_order_exactly(link, scores):
    close = [k + np.arange(-50, 51) * np.spacing(abs(k)) for k in kinks(link)]
    scores = np.concatenate([scores, *close])
    value = link.value(scores)
    for units in (1, 2, 3, 1000):
        assert (link.value(scores + units * np.spacing(np.abs(scores))) >= value).all()
    ordered = np.sort(scores)
    assert (np.diff(link.value(ordered)) >= 0).all()


def test_the_sigmoid_keeps_the_order_of_a_million_neighbors(rng):
    scores = rng.uniform(-2.0, 2.0, 1_000_000)
    assert (Logistic().value(np.nextafter(scores, np.inf)) >= Logistic().value(scores)).all()


@every_link
def test_values_stay_inside_the_range_however_far_the_score(link, scores):
    low, high = link.range
    assert 0 <= low < high <= 1
    far = np.array([0.0, -0.0, 5e-324, 745.0, 1e5, 1e100])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value = link.value(np.concatenate([scores, far, -far]))
    assert ((value >= low) & (value <= high)).all()
    assert link.value(np.array([-1e5]))[0] == pytest.approx(low, abs=1e-300)
    assert link.value(np.array([1e5]))[0] == high


@every_link
def test_derivative_is_the_slope_of_the_value(link, scores):
    h = 1e-6
    away = np.min([np.abs(scores - k) for k in kinks(link)], axis=0) > 2 * h
    s = scores[away]
    numerical = (link.value(s + h) - link.value(s - h)) / (2 * h)
    np.testing.assert_allclose(link.derivative(s), numerical, atol=1e-8)
    assert (link.derivative(s) >= 0).all()


@every_link
def test_a_straight_link_is_the_line_it_says_it_is(link, scores):
    lines = link.line(scores)
    if isinstance(link, Logistic):
        assert lines is None
        return
    offset, slope = lines
    assert offset.shape == slope.shape == scores.shape
    np.testing.assert_allclose(
        np.clip(offset + slope * scores, *link.range), link.value(scores), rtol=1e-13, atol=1e-14
    )
    assert (slope > 0).all()


@every_link
def test_a_row_has_the_same_risk_in_any_company(link, scores):
    value = link.value(scores)
    for part in (slice(0, 1), slice(1, 4), slice(7, 1000), slice(None, None, 3)):
        np.testing.assert_array_equal(link.value(np.ascontiguousarray(scores[part])), value[part])


@every_link
def test_the_file_gives_the_same_link(link):
    assert msgspec.json.decode(msgspec.json.encode(link), type=Link) == link


def test_known_values():
    np.testing.assert_allclose(Logistic().value(np.array([0.0, np.log(3), -np.log(3)])), [0.5, 0.75, 0.25], rtol=1e-15)
    # Small risks keep their digits.
    low = np.array([-40.0, -600.0])
    np.testing.assert_allclose(Logistic().value(low), np.exp(low), rtol=1e-12)
    # Multiplying the odds by 5 adds 1.61 / (2 alpha) for everybody (NOTES: the illustrative example).
    line = Linear.from_alpha(2.599681908314322)
    jump = line.value(np.array([np.log(5) - 1.0])) - line.value(np.array([-1.0]))
    assert jump[0] == pytest.approx(0.3095444, abs=1e-6)
    bands = LINKS["three bands"]
    np.testing.assert_allclose(bands.value(np.array(bands.knots)), bands.values, rtol=1e-15)
    assert bands.band(np.array([-9.0, -2.0, 0.0, 2.0, 9.0])).tolist() == [0, 0, 1, 2, 2]


BAD = {
    "flat": (Linear, {"slope": 0.0}),
    "falling": (Linear, {"slope": -1.0}),
    "upside down": (Linear, {"low": 0.9, "high": 0.1}),
    "beyond one": (Linear, {"high": 1.5}),
    "not a number": (Linear, {"offset": float("nan")}),
    "infinite": (Linear, {"slope": float("inf")}),
    "steeper than a product may be": (Linear, {"slope": 1e101}),
    "one knot": (Bands, {"knots": (0.0,), "values": (0.5,)}),
    "no knots": (Bands, {"knots": (), "values": ()}),
    "knots that fall": (Bands, {"knots": (1.0, 0.0), "values": (0.1, 0.9)}),
    "values that fall": (Bands, {"knots": (0.0, 1.0, 2.0), "values": (0.1, 0.9, 0.8)}),
    "values that stay": (Bands, {"knots": (0.0, 1.0), "values": (0.5, 0.5)}),
    "too few values": (Bands, {"knots": (0.0, 1.0, 2.0), "values": (0.1, 0.9)}),
    "inner values beyond one": (Bands, {"knots": (0.0, 1.0, 2.0), "values": (0.1, 3.0, 5.0)}),
    "an infinite knot": (Bands, {"knots": (0.0, float("inf")), "values": (0.1, 0.9)}),
    "a rate that overflows": (Bands, {"knots": (0.0, 5e-324), "values": (0.1, 0.9)}),
}


@pytest.mark.parametrize(("kind", "fields"), BAD.values(), ids=BAD.keys())
def test_no_link_is_made_that_breaks_the_contract(kind, fields):
    with pytest.raises(ModelFileError, match=r"Model: .*(link|bands)"):
        kind(**fields)


@pytest.mark.parametrize("factor", [0.2, 3.0])
def test_bands_at_other_odds_have_the_odds_multiplied(factor):
    """By definition, at every score, from 0 to 1."""
    link = Bands((-1.0, 0.0, 2.0), (0.1, 0.4, 0.95))
    moved = at_odds(link, factor)
    scores = np.linspace(-3.0, 4.0, 2001)
    risk = link.value(scores)
    assert moved.value(scores) == pytest.approx(factor * risk / (1 + (factor - 1) * risk), abs=BASE_RATE_ERROR)
    assert moved.values[0] == 0.0
    assert moved.values[-1] == 1.0
