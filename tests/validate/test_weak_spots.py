"""Weak spots: statistics by brute force, nothing named in noise, a planted slice found; scripts/ has 100 seeds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy.sparse import csr_array
from scipy.special import expit, logit

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.validate.followed import Line, Moments, followed
from plainrisk.validate.weak_spots import promised_auc


def sample(seed, n=1500):
    """Rows whose probabilities are right."""
    rng = np.random.default_rng(seed)
    X = pl.DataFrame({"age": rng.integers(18, 70, n), "region": rng.choice(["north", "south", "east"], n)})
    X = X.with_columns(income=pl.Series(rng.lognormal(10, 0.5, n)), job=pl.Series(rng.choice(list("abcd"), n)))
    p = expit(rng.normal(-1, 1, n))
    return X, p, (rng.random(n) < p).astype(int), rng


def test_nothing_is_named_in_noise():
    named = [bool(pr.weak_spots(p, X, y, seed=s).spots) for s in range(40) for X, p, y, _ in [sample(s)]]
    assert sum(named) <= 5  # more of 40 have a chance of 1.4% at 5%


@pytest.mark.parametrize("weakness", ["calibration", "ranking"])
def test_a_planted_slice_is_found(weakness):
    found = 0
    for seed in range(10):
        X, p, y, rng = sample(100 + seed, 2500)
        inside = ((X["region"] == "south") & (X["age"] < 36)).to_numpy()
        right = expit(logit(p) + 1.2) if weakness == "calibration" else np.full(len(p), p[inside].mean())
        y[inside] = (rng.random(len(p)) < right)[inside]
        spots = pr.weak_spots(p, X, y, seed=seed).spots
        found += any({"region", "age"} >= set(s.columns) and s.weakness == weakness for s in spots)
    assert found >= 9


def weighted_share(design, v, direction):
    """Return the R squared, not centered, of a weighted least squares fit to a direction."""
    left = sm.WLS(direction, design, weights=v).fit().resid
    return 1 - (v * left**2).sum() / (v * direction**2).sum()


def test_what_a_line_and_the_levels_of_a_model_can_follow():
    """By weighted least squares, slice by slice."""
    rng, n = np.random.default_rng(5), 400
    s = rng.normal(-1, 1, n)
    v = expit(s) * (1 - expit(s))
    one, two = rng.integers(0, 3, n), rng.integers(0, 4, n)
    levels = np.column_stack([np.eye(3)[one], np.eye(4)[two]])
    slices = [one == 0, (one == 1) & (two < 2), (two == 3) & (s > -1)]
    members, line = csr_array(np.array(slices, dtype=float)), np.column_stack([np.ones(n), s])
    sizes, found = Moments.of(members, v, s), followed(members, csr_array(levels), v, s)
    taken, residuals = Line.of(v, s).taken(sizes), rng.normal(size=n)
    after = Line.of(v, s).without(residuals[:, None])[:, 0]
    np.testing.assert_allclose(after, v * sm.WLS(residuals / v, line, weights=v).fit().resid, atol=1e-10)
    for k, inside in enumerate(slices):
        center = np.average(s[inside], weights=v[inside])
        for side, direction in enumerate((inside * 1.0, inside * (s - center))):
            of_line = weighted_share(line, v, direction)
            np.testing.assert_allclose(sizes.sizes[side][k], (v * direction**2).sum())
            np.testing.assert_allclose(taken[side][k], of_line)
            share = (weighted_share(levels[:, 1:], v, direction) - of_line) / (1 - of_line)
            np.testing.assert_allclose(found[side][k], np.clip(share, 0, 1), atol=1e-6)
    assert found[0][0] == pytest.approx(1)  # a level of the model's own


def test_a_spot_says_what_its_rows_say():
    X, p, y, rng = sample(7, 3000)
    south = (X["region"] == "south").to_numpy()
    y[south] = (rng.random(3000) < expit(logit(p) + 1))[south]
    found = pr.weak_spots(p, X, y)
    spot = found.spots[0]
    assert (spot.columns, spot.groups, spot.slice) == (("region",), ("south",), "region: south")
    alone = pr.evaluate(p[south], None, y[south])
    assert (spot.rows, spot.share) == (south.sum(), pytest.approx(south.mean()))
    assert vars(spot.observed) == pytest.approx(vars(alone.base_rate))
    assert spot.gap.estimate == pytest.approx(alone["gap"].estimate)
    assert spot.auc == alone["auc"]
    assert spot.p_value == found.p_value == 0.002  # none of 499 samples
    assert all("region: south" not in other.slice for other in found.spots[1:])
    assert found.columns()["slice"] == [s.slice for s in found.spots]
    assert "weak spots among" in repr(found)


def test_a_model_that_is_wrong_everywhere_alike_has_no_weak_spot():
    X, p, y, _ = sample(3)
    assert pr.weak_spots(expit(1.5 * logit(p) + 1), X, y).spots == ()


def test_thepromised_auc_is_that_of_many_outcomes(rng):
    p = rng.beta(2, 3, 60).round(1).clip(0.05, 0.95)
    weight = [(a * (1 - b), (a > b) + (a == b) / 2) for i, a in enumerate(p) for j, b in enumerate(p) if i != j]
    total = np.array(weight)
    assert promised_auc(p) == pytest.approx((total[:, 0] @ total[:, 1]) / total[:, 0].sum())


def test_a_model_of_ours_and_further_columns():
    made = pr.datasets.make_credit(1500, 2, backend="polars")
    model = pr.make_classifier("ARM1", made.schema).fit(made.frame[:700], made.target[:700])
    region = pl.Series(["north", "south"] * 400)
    frame, y = made.frame[700:].with_columns(region=region), made.target[700:].astype(float)
    y[::2] = 1  # the north
    found = pr.weak_spots(model, frame, np.where(np.arange(800) < 20, np.nan, y), columns=["region"])
    assert found.spots[0].slice in ("region: north", "region: south")
    assert found.rows == 780
    assert pr.weak_spots(model, made.frame[700:], made.target[700:], pairs=False).tested < found.tested / 4
    with pytest.raises(DataError, match="no outcome is known"):
        pr.weak_spots(model, frame, np.full(800, np.nan))
    with pytest.raises(DataError, match="there is no column 'regon'"):
        pr.weak_spots(model, frame, y, columns=["regon"])
