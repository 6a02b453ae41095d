from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear, minimize

import plainrisk as pr
from plainrisk.errors import DataError, SchemaError
from plainrisk.form import Alone, Bins, Linear, Logistic

N = 700
SCHEMA = pr.Schema(
    features={
        "up": {"direction": "increasing", "edges": (-0.5, 0.5), "special_values": (-9,)},
        "down": {"direction": "decreasing", "edges": (0.0, 1.0)},
        "free": {"edges": (0.0,)},
        "job": {"kind": "categorical"},
    }
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    X = pd.DataFrame({
        "up": np.where(rng.random(N) < 0.1, -9.0, rng.normal(size=N)),
        "down": rng.normal(size=N),
        "free": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
        "job": rng.choice(["a", "b", "c"], N),
    })  # fmt: skip
    score = X["up"].clip(-1) - X["down"] + (X["job"] == "b") + 2 * rng.normal(size=N)
    return X, (score > 0).to_numpy().astype(int), rng.uniform(0.2, 3.0, N)


def indicators(X):
    """The columns of Chen et al.'s Additive Risk Model, written out: (matrix, lower bounds)."""
    up, down, free = X["up"], X["down"], X["free"]
    measured = up != -9
    steps = [measured & (up > -0.5), measured & (up > 0.5), down <= 0.0, down <= 1.0]
    others = [measured, up == -9, free <= 0.0, free > 0.0, free.isna()]
    others += [X["job"] == level for level in "abc"]
    matrix = np.column_stack([*steps, *others]).astype(float)
    return matrix, np.array([0.0] * len(steps) + [-np.inf] * len(others))


def fit_by_scipy(A, y, w, ridge, lower):
    """Logistic regression under bounds by a general solver."""

    def objective(point):
        score = point[0] + A @ point[1:]
        loss = w @ (np.logaddexp(0, score) - y * score) / w.sum()
        residual = w * (1 / (1 + np.exp(-score)) - y) / w.sum()
        gradient = np.concatenate([[residual.sum()], A.T @ residual + 2 * ridge * point[1:]])
        return loss + ridge * (point[1:] ** 2).sum(), gradient

    point = np.zeros(1 + A.shape[1])
    options = {"ftol": 0.0, "gtol": 1e-13, "maxiter": 10_000, "maxfun": 100_000, "maxcor": 40}
    for _ in range(4):
        bounds = [(None, None), *((low, None) for low in lower)]
        point = minimize(objective, point, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return objective(point)[0], point


@pytest.mark.parametrize("ridge", ["auto", 0.02])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_logistic_model_is_the_one_on_indicators(data, ridge, weighted):
    X, y, w = data
    weight = w if weighted else None
    model = pr.AdditiveRiskModel(SCHEMA, ridge=ridge).fit(X, y, sample_weight=weight)
    total = w.sum() if weighted else N
    assert model.ridge_ == (1 / (2 * total) if ridge == "auto" else 0.02)
    A, lower = indicators(X)
    value, point = fit_by_scipy(A, y, w if weighted else np.ones(N), model.ridge_, lower)
    assert model.solution_.objective == pytest.approx(value, rel=1e-9)
    assert model.solution_.kkt < 1e-9
    risk = 1 / (1 + np.exp(-(point[0] + A @ point[1:])))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], risk, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, "auto", 0.02])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_direct_line_is_least_squares_on_indicators(data, ridge, weighted):
    X, y, w = data
    w = w if weighted else np.ones(N)
    model = pr.AdditiveRiskModel(SCHEMA, link="linear", ridge=ridge).fit(X, y, sample_weight=w)
    A, lower = indicators(X)
    p = A.shape[1]
    root = np.sqrt(w / w.sum())
    stacked = np.vstack([np.column_stack([np.ones(N), A]) * root[:, None], np.zeros((p, 1 + p))])
    stacked[N:, 1:] = np.sqrt(model.ridge_) * np.eye(p)
    wanted = np.concatenate([root * y, np.zeros(p)])
    # The indicators of a feature add up to the intercept; a tiny ridge leaves scipy's method a unique answer.
    keep = stacked if ridge != 0.0 else np.vstack([stacked, 1e-7 * np.eye(1 + p)])
    target = wanted if ridge != 0.0 else np.concatenate([wanted, np.zeros(1 + p)])
    bounds = (np.concatenate([[-np.inf], lower]), np.full(1 + p, np.inf))
    found = lsq_linear(keep, target, bounds, method="bvls", tol=1e-15, max_iter=10_000)
    value = ((stacked @ found.x - wanted) ** 2).sum()
    assert model.solution_.objective == pytest.approx(value, rel=1e-9)
    line = found.x[0] + A @ found.x[1:]
    np.testing.assert_allclose(model.form_.score(X), line, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], np.clip(line, 0, 1), atol=1e-6)


def test_the_direct_line_is_right_on_average(data):
    X, y, w = data
    model = pr.AdditiveRiskModel(SCHEMA, link="linear").fit(X, y, sample_weight=w)
    assert np.average(model.form_.score(X), weights=w) == pytest.approx(np.average(y, weights=w), abs=1e-12)


def test_the_form_holds_what_was_counted(data):
    X, y, w = data
    model = pr.AdditiveRiskModel(SCHEMA).fit(X, y, sample_weight=w)
    form = model.form_
    assert form.pool == Alone()
    (part,) = form.parts
    assert part.link == Logistic()
    assert list(part.shapes) == list(SCHEMA.features)
    up = part.shapes["up"]
    assert up.levels == Bins(edges=(-0.5, 0.5), special_values=(-9.0,))
    x = X["up"]
    masks = [(x != -9) & (x <= -0.5), (x > -0.5) & (x <= 0.5), x > 0.5, x == -9, x.isna()]
    np.testing.assert_allclose(up.weights, [w[m].sum() for m in masks], rtol=1e-12)
    np.testing.assert_allclose(up.positives, [(w * y)[m].sum() for m in masks], rtol=1e-12)
    for shape in part.shapes.values():
        assert np.dot(shape.weights, shape.scores) == pytest.approx(0, abs=1e-9)
    assert pr.AdditiveRiskModel(SCHEMA, link="linear").fit(X, y).form_.parts[0].link == Linear()


def test_the_record_says_how_it_was_fitted(data):
    X, y, w = data
    model = pr.AdditiveRiskModel(SCHEMA, max_bins=7).fit(X, y, sample_weight=w)
    record = model.fit_record_
    assert record.estimator == "AdditiveRiskModel"
    assert record.parameters["max_bins"] == "7"
    assert "schema" not in record.parameters
    assert record.rows == N
    assert record.weight == pytest.approx(w.sum())
    assert record.positive_weight == pytest.approx(w @ y)
    assert record.base_rate == pytest.approx(w @ y / w.sum())
    assert record.objective == (model.solution_.objective,)
    assert record.converged
    assert record.clipped == 0.0
    assert model.n_iter_ == record.iterations[0] == model.solution_.iterations


def test_clipping_is_counted_and_told(data):
    X, _, _ = data
    y = (X["down"] < 0.3).astype(int)
    with pytest.warns(pr.errors.PlainriskWarning, match=r"cut off at 0 or 1 for \d+% of the training rows") as caught:
        model = pr.AdditiveRiskModel(SCHEMA, link="linear", ridge=0.0).fit(X, y)
    assert len(caught) == 1
    line = model.form_.score(X)
    share = ((line < -1e-12) | (line > 1 + 1e-12)).mean()
    assert model.fit_record_.clipped == pytest.approx(share)
    assert share > 0.1


def test_levels_that_training_never_saw():
    """In the order they follow their neighbors; elsewhere they are neutral."""
    schema = pr.Schema(
        features={
            "up": {"direction": "increasing", "edges": (0.0, 1.0, 2.0, 3.0), "special_values": (-9, -8)},
            "free": {"edges": (0.0, 1.0)},
        }
    )
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"up": rng.choice([0.5, 2.5, -9.0], 300), "free": rng.choice([-1.0, 2.0], 300)})
    y = (rng.random(300) < np.where(X["up"] == 2.5, 0.7, 0.3)).astype(int)
    shapes = pr.AdditiveRiskModel(schema).fit(X, y).form_.parts[0].shapes
    a, b, c, d, e, special, never, missing = shapes["up"].scores
    assert a == b < c < d == e
    assert c == pytest.approx((b + d) / 2)
    assert special != 0.0
    assert never == missing == 0.0
    assert shapes["free"].scores[1] == 0.0
    assert shapes["free"].scores[0] != 0.0


def test_all_rows_special_leave_the_measured_levels_neutral():
    schema = pr.Schema(features={"u": {"direction": "increasing", "edges": (0.0,), "special_values": (-9, -8)}})
    X = {"u": [-9.0] * 60 + [-8.0] * 20}
    model = pr.AdditiveRiskModel(schema).fit(X, [0, 0, 1] * 20 + [1] * 19 + [0])
    low, high, nine, eight, missing = model.form_.parts[0].shapes["u"].scores
    assert low == high == missing == 0.0
    assert nine < 0 < eight


def test_an_ordered_category_with_a_special_one():
    """The special category has no place in the order, whatever its effect."""
    schema = pr.Schema(
        features={
            "g": {"kind": "categorical", "direction": "increasing", "categories": ("1", "2"), "special_values": ("0",)}
        }
    )
    X = {"g": ["1"] * 100 + ["2"] * 100 + ["0"] * 100}
    y = [1] * 40 + [0] * 60 + [1] * 60 + [0] * 40 + [1] * 10 + [0] * 90
    for model in (pr.AdditiveRiskModel(schema), pr.NonnegativeLogisticRegression(schema)):
        risk = model.fit(X, y).predict_proba({"g": ["1", "2", "0"]})[:, 1]
        np.testing.assert_allclose(risk, [0.4, 0.6, 0.1], atol=0.01)
        assert model.certify().valid


def test_a_direction_against_the_data_gives_a_flat_shape(data):
    X, y, _ = data
    wrong = pr.Schema(features={"down": {"direction": "increasing"}})
    model = pr.AdditiveRiskModel(wrong).fit(X, y)
    scores = np.array(model.form_.parts[0].shapes["down"].scores)
    np.testing.assert_allclose(scores[:-1], 0.0, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], y.mean(), atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"link": "logit"}, "link must be 'logistic', 'bands' or 'linear', not 'logit'"),
        ({"ridge": -1.0}, "ridge must be"),
        ({"ridge": float("nan")}, "ridge must be"),
        ({"ridge": "none"}, "ridge must be"),
        ({"ridge": None}, "ridge must be"),
        ({"max_bins": 0}, "max_bins must be"),
        ({"max_bins": 2.5}, "max_bins must be"),
        ({"min_bin_rows": 0}, "min_bin_rows must be 'auto' or a whole number of at least 1, not 0"),
        ({"criterion": "gin"}, "criterion must be .*, not 'gin'. Did you mean 'gini'"),
        ({"schema": {"features": {}}}, "expected plainrisk.Schema, got dict"),
        ({"schema": pr.Schema()}, "it lists no features"),
        ({"schema": pr.Schema(features={"upp": {}})}, "'upp' is not in the data. Did you mean 'up'"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_named(data, parameters, message):
    X, y, _ = data
    with pytest.raises((DataError, SchemaError), match=message):
        pr.AdditiveRiskModel(**parameters).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*may be a leak")
def test_a_model_with_bins_of_equal_shares():
    """The outcome moves no edge, special values are left out, and the schema's own settings go before."""
    rng = np.random.default_rng(5)
    schema = pr.Schema(features={"u": {"special_values": (-9,)}, "v": {"max_bins": 3}, "w": {"edges": (0.25,)}})
    X = pd.DataFrame({"u": np.where(rng.random(900) < 0.3, -9.0, rng.random(900)), "v": rng.random(900)})
    X["w"] = rng.random(900)
    first = pr.AdditiveRiskModel(schema, criterion="quantile", max_bins=10).fit(X, (X["v"] > 0.5).astype(int))
    other = pr.AdditiveRiskModel(schema, criterion="quantile", max_bins=10).fit(X, (X["u"] > 0.9).astype(int))
    levels = {name: shape.levels for name, shape in first.form_.parts[0].shapes.items()}
    assert levels == {name: shape.levels for name, shape in other.form_.parts[0].shapes.items()}
    measured = X["u"][X["u"] != -9]
    assert len(levels["u"].edges) == 9
    np.testing.assert_allclose(levels["u"].edges, np.quantile(measured, np.arange(1, 10) / 10), atol=0.005)
    assert len(levels["v"].edges) == 2
    assert levels["w"].edges == (0.25,)
    thick = pr.AdditiveRiskModel(schema, criterion="quantile", max_bins=10, min_bin_rows=100)
    shape = thick.fit(X, (X["v"] > 0.5).astype(int)).form_.parts[0].shapes["u"]
    assert min(shape.weights[: shape.levels.n_ordered]) >= 100


def test_criteria_are_offered_by_name():
    with pytest.raises(DataError, match=r"criterion must be .*, not 'quantiles'\. Did you mean 'quantile'"):
        pr.AdditiveRiskModel(criterion="quantiles").fit(np.arange(8.0)[:, None], [0, 1] * 4)
