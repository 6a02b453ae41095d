"""Pairs are found where they are, and nowhere else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import plainrisk as pr
from plainrisk.bins import coarse_axis
from plainrisk.fit.pair_search import _log_factor, _threshold
from plainrisk.solve import log_factors


def test_bayes_factors_are_those_of_normal_models(rng):
    """With normal errors of variance 1 the second order is exact."""
    Z, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    found = log_factors(Z.T @ Z, Z.T @ y, np.array([0.5, 3.0]))
    without = multivariate_normal(np.zeros(30), np.eye(30)).logpdf(y)
    for factor, precision in zip(found, (0.5, 3.0), strict=True):
        covariance = np.eye(30) + Z @ Z.T / precision
        assert factor == pytest.approx(multivariate_normal(np.zeros(30), covariance).logpdf(y) - without, abs=1e-9)


def test_what_one_feature_can_say_alone_is_no_evidence_for_a_pair(rng):
    u, v = (coarse_axis(np.ones(6), 6, 0, ordered=True) for _ in range(2))
    weight = np.full((6, 6), 20.0)
    alone = 20.0 * np.linspace(-1, 1, 6)[:, None] * np.ones(6)
    together = 20.0 * np.outer(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6))
    assert _log_factor(u, v, alone, weight) < 0
    assert _log_factor(u, v, together, weight) > 10


def test_the_threshold_falls_where_more_pairs_are_real():
    chance = np.full(100, -1.5)
    none = _threshold(chance)
    assert none == pytest.approx(np.sqrt(2 * np.log(3 * 99)))
    # A Bayes factor of 20 is not enough for the best of a hundred, but likely real among many that are.
    weak = np.sqrt(2 * np.log(20))
    assert _threshold(np.append(chance[1:], np.log(20))) == pytest.approx(none)
    assert weak < none
    assert weak > _threshold(np.concatenate([chance[31:], np.full(30, 30.0), [np.log(20)]]))
    # Whatever the others say, a pair that the residuals speak against is not taken.
    assert _threshold(np.array([50.0, 40.0, 30.0, -0.1])) == 0.0


def _rows(seed, n=4000, interact=0.0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{j}": rng.normal(size=n) for j in range(9)})
    X["job"] = rng.choice(list("abcdefgh"), n)
    X.loc[rng.random(n) < 0.1, "x1"] = np.nan
    X.loc[rng.random(n) < 0.3, "x2"] = 0.0
    # A strip in the middle of one feature, which three bins would hardly see.
    strip = (X["x4"].abs() < 0.3) & (X["x5"] > 0)
    score = 0.8 * X["x0"] + np.sin(2 * X["x2"]) + 0.5 * X["x1"].fillna(1) + interact * (strip - strip.mean()) - 1.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


def _fitted(X, y, pairs="auto"):
    schema = pr.Schema(features={name: {"kind": "categorical"} if name == "job" else {} for name in X})
    return pr.AdditiveRiskModel(schema, shapes="smooth", pairs=pairs).fit(X, y)


def test_no_pair_is_found_where_features_add_up():
    """The best of 45 pairs needs a Bayes factor of 132, which chance hardly ever reaches."""
    found = [len(_fitted(*_rows(seed)).form_.parts[0].pairs) for seed in range(12)]
    assert sum(found) == 0


@pytest.mark.parametrize("seed", range(3))
def test_narrow_pairs_are_found(seed):
    X, y = _rows(seed, interact=2.5)
    model = _fitted(X, y)
    assert [pair.features for pair in model.form_.parts[0].pairs] == [("x4", "x5")]
    first = model.pair_evidence_[0]
    assert first.is_evident
    assert first.gain > 0.003


def test_found_pairs_leave_where_others_speak_for_them_but_those_asked_for_stay(rng):
    """A copy of a feature makes another pair of the same say: one of the two is enough."""
    X, y = _rows(1, interact=2.5)
    X["copy"] = X["x5"] + rng.normal(scale=0.1, size=len(X))
    found = _fitted(X, y)
    evident = {one.features for one in found.pair_evidence_ if one.is_evident}
    assert {("x4", "x5"), ("x4", "copy")} <= evident
    assert [pair.features for pair in found.form_.parts[0].pairs] == [("x4", "x5")]
    # Weak evidence is enough for a pair that was asked for.
    asked = _fitted(X, y, pairs=[("x4", "x5"), ("x0", "x5")])
    assert {pair.features for pair in asked.form_.parts[0].pairs} == {("x4", "x5"), ("x0", "x5")}
