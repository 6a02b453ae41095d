"""Data that break solvers: every fit converges, or stops on its rule with one warning, and the model is usable."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import PlainriskWarning, StoppedEarly

RNG = np.random.default_rng(11)
N = 240
U, V = RNG.normal(size=N), RNG.normal(size=N)
NOISY = (U + RNG.normal(size=N) > 0).astype(int)
UP = {"direction": "increasing"}
TEXT = {"kind": "categorical"}


def one_of_each(n):
    """As many categories as rows."""
    return np.array([f"c{j:03d}" for j in range(n)])


CASES = {
    # name: (columns, outcome, features, sample weight)
    "separable": ({"u": U, "v": V}, (U > 0).astype(int), {"u": UP, "v": {}}, None),
    "separable by two features": ({"u": U, "v": V}, (U + V > 0).astype(int), {"u": UP, "v": UP}, None),
    "quasi-separable": (
        {"u": np.repeat([0.0, 1.0], N // 2)},
        np.where(np.arange(N) >= N // 2, 1, np.arange(N) % 2),
        {"u": {}},
        None,
    ),
    "pure levels": (
        {"job": np.repeat(["a", "b", "c", "d"], N // 4), "u": U},
        np.concatenate([np.zeros(N // 4), np.ones(N // 4), NOISY[: N // 2]]).astype(int),
        {"job": TEXT, "u": {}},
        None,
    ),
    "pure levels against the direction": ({"u": U}, (U < 0).astype(int), {"u": UP}, None),
    "constant columns": (
        {"u": U, "c": np.full(N, 7.0), "k": np.repeat("x", N)},
        NOISY,
        {"u": {}, "c": UP, "k": TEXT},
        None,
    ),
    "nothing but constants": ({"c": np.full(N, 7.0), "k": np.repeat("x", N)}, NOISY, {"c": {}, "k": TEXT}, None),
    "duplicate columns": (
        {"u": U, "twin": U, "mirror": -U},
        NOISY,
        {"u": UP, "twin": UP, "mirror": {"direction": "decreasing"}},
        None,
    ),
    "one-row levels": ({"id": one_of_each(N), "u": U}, NOISY, {"id": TEXT, "u": {}}, None),
    "one-row bins": ({"u": U}, NOISY, {"u": {"edges": tuple(np.sort(U)[:-1].tolist())}}, None),
    "300 categories": (
        {"town": one_of_each(300)[np.arange(900) % 300], "u": np.tile(U, 4)[:900]},
        np.tile(NOISY, 4)[:900],
        {"town": TEXT, "u": UP},
        None,
    ),
    "weights from nothing to much": ({"u": U, "v": V}, NOISY, {"u": UP, "v": {}}, 10.0 ** RNG.uniform(-9, 9, N)),
    "weights of 0": ({"u": U, "v": V}, NOISY, {"u": UP, "v": {}}, (np.arange(N) % 3 == 0).astype(float)),
    "one row carries all weight but one": (
        {"u": U},
        NOISY,
        {"u": {}},
        np.where(np.arange(N) == NOISY.argmax(), 1e12, 1.0),
    ),
    "scales apart by 10^6": (
        {"u": U * 1e6, "v": V, "w": RNG.normal(size=N) * 1e-6, "x": 1e6 + RNG.normal(size=N)},
        NOISY,
        {"u": UP, "v": {}, "w": UP, "x": {}},
        None,
    ),
    "twins but for rounding": ({"u": U, "twin": 1e6 + U}, NOISY, {"u": {}, "twin": {}}, None),
    "a heavy tail": ({"u": np.exp(20 * U)}, NOISY, {"u": UP}, None),
    "very large numbers": ({"u": np.sign(U) * 3e38, "v": V}, NOISY, {"u": {}, "v": {}}, None),
    "all missing but one": (
        {"u": np.where(np.arange(N) == 5, 1.0, np.nan), "v": V},
        NOISY,
        {"u": UP, "v": {}},
        None,
    ),
    "all rows special": (
        {"u": np.where(np.arange(N) % 3, -9.0, -8.0)},
        NOISY,
        {"u": {**UP, "special_values": (-9, -8)}},
        None,
    ),
    "all rows below the bound": ({"u": U - 100}, NOISY, {"u": {**UP, "lower_bound": 0.0}}, None),
    "a single feature": ({"u": U}, NOISY, {"u": {}}, None),
    "heavy ties": ({"u": np.where(RNG.random(N) < 0.95, 0.0, U)}, NOISY, {"u": UP}, None),
    "two rows": ({"u": np.array([0.0, 1.0])}, np.array([0, 1]), {"u": UP}, None),
    "two equal rows": ({"u": np.array([3.0, 3.0])}, np.array([0, 1]), {"u": UP}, None),
    "one positive outcome": ({"u": U, "v": V}, (np.arange(N) == 17).astype(int), {"u": UP, "v": {}}, None),
    "no signal": ({"u": np.tile([0.0, 1.0], N // 2)}, np.repeat([0, 1], N // 2), {"u": UP}, None),
}
MODELS = {
    "ARM1": lambda s, r: pr.AdditiveRiskModel(s, ridge=r),
    "direct ARM1": lambda s, r: pr.AdditiveRiskModel(s, ridge=r, link="linear"),
    "NNLR": lambda s, r: pr.NonnegativeLogisticRegression(s, ridge=r),
    "ARM2": lambda s, r: pr.TwoLayerRiskModel(schema=s, ridge=r),
    "direct ARM2": lambda s, r: pr.TwoLayerRiskModel(schema=s, ridge=r, link="linear"),
}


def fit(kind, name, ridge):
    columns, y, features, weight = CASES[name]
    X = pd.DataFrame(columns)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MODELS[kind](pr.Schema(features=features), ridge).fit(X, y, sample_weight=weight)
    return model, X, y, weight, caught


# The experts of a second layer are the models above it, which meet both ridges.
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("kind", "ridge"), [*((kind, "auto") for kind in MODELS), *((k, 0.0) for k in ("ARM1", "direct ARM1", "NNLR"))]
)
def test_it_converges_or_says_so_once_and_is_usable(kind, name, ridge, tmp_path):
    model, X, y, weight, caught = fit(kind, name, ridge)
    stops = [w for w in caught if w.category is StoppedEarly]
    # Where a feature separates the outcomes, it is taken for a leak.
    others = [w for w in caught if w.category is not StoppedEarly and "may be a leak" not in str(w.message)]
    assert all(w.category is PlainriskWarning and "cut off" in str(w.message) for w in others), [
        str(w.message) for w in others
    ]
    assert len(stops) <= 1
    assert len(others) <= 1
    if ridge == "auto":
        assert not stops, str(stops[0].message)
        assert model.fit_record_.converged
        assert max(model.fit_record_.kkt) < 1e-7
    if not model.fit_record_.converged:
        assert len(stops) == 1

    risk = model.predict_proba(X)
    assert np.isfinite(risk).all()
    assert ((risk >= 0) & (risk <= 1)).all()
    assert model.certify().valid
    found = model.explain(X)
    whole = model.form_.risk(X) if found.unit == "probability" else model.form_.score(X)
    size = max(1.0, np.abs(found.contributions).max(initial=0.0))
    np.testing.assert_allclose(found.total, whole, rtol=0, atol=1e-12 * size)
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(pr.load(tmp_path / "m.json").predict_proba(X), risk)
    if "direct" not in kind and kind != "ARM2":
        # The intercept is free, so the mean risk is the base rate.
        assert np.average(risk[:, 1], weights=weight) == pytest.approx(np.average(y, weights=weight), abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ARM1", "separable"),
        ("ARM1", "quasi-separable"),
        ("ARM1", "pure levels"),
        ("ARM1", "one-row levels"),
        ("ARM1", "300 categories"),
        ("ARM1", "two rows"),
        ("NNLR", "separable"),
        ("NNLR", "separable by two features"),
        ("NNLR", "quasi-separable"),
        ("ARM2", "separable"),
    ],
)  # fmt: skip
def test_without_a_finite_optimum_the_user_is_told_and_given_the_cure(kind, name):
    model, X, y, _, caught = fit(kind, name, 0.0)
    stops = [w for w in caught if w.category is StoppedEarly]
    assert len(stops) == 1
    assert "ridge='auto'" in str(stops[0].message)
    assert type(model).__name__ in str(stops[0].message)
    if "separable" in name and "quasi" not in name:
        assert (model.predict(X) == y).mean() > 0.8


def test_duplicate_columns_fit_as_well_as_one():
    """Without ridge the twins share the effect of one; the risks are the same."""
    model, X, y, _, _ = fit("ARM1", "duplicate columns", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        alone = pr.AdditiveRiskModel(pr.Schema(features={"u": UP}), ridge=0.0).fit(X, y)
    assert model.solution_.objective == pytest.approx(alone.solution_.objective, rel=1e-7)


def test_wide_codes_are_fitted_right():
    """A category of 300 levels: each level's risk is the ridge estimate of its own rate."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 300, 30_000)
    rates = rng.uniform(0.1, 0.9, 300)
    y = (rng.random(30_000) < rates[codes]).astype(int)
    names = one_of_each(300)
    model = pr.AdditiveRiskModel(ridge=1e-9).fit({"zip": names[codes]}, y)
    seen = np.array([y[codes == k].mean() for k in range(300)])
    np.testing.assert_allclose(model.predict_proba({"zip": names})[:, 1], seen, atol=1e-3)
    assert model.form_.parts[0].shapes["zip"].levels.categories == tuple(names)


def test_a_column_of_missing_values_is_one_level():
    X = {"u": U, "nothing": np.full(N, np.nan)}
    for model in (pr.AdditiveRiskModel(), pr.NonnegativeLogisticRegression()):
        assert np.isfinite(model.fit(X, NOISY).predict_proba(X)).all()


@pytest.mark.parametrize("model", [pr.AdditiveRiskModel(), pr.NonnegativeLogisticRegression()])
def test_the_largest_numbers_there_are_can_be_fitted(model):
    model.fit({"big": np.sign(U) * 1.7e308}, NOISY)
    assert np.isfinite(model.predict_proba({"big": [-1.7e308, 0.0, 1.7e308]})).all()
