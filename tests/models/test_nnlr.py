from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import plainrisk as pr
from plainrisk.form import Line, Table

N = 500


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, 3)) * [1.0, 20.0, 0.05] + [0.0, 300.0, 1.0]
    score = X[:, 0] - 0.04 * (X[:, 1] - 300) + 15 * (X[:, 2] - 1) + rng.normal(size=N)
    return X, (score > 0.3).astype(int), rng.uniform(0.5, 2.0, N)


def named(X):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def signed(*directions):
    return pr.Schema(features={f"x{j}": {"direction": d} for j, d in enumerate(directions)})


@pytest.mark.parametrize("weighted", [False, True])
def test_without_signs_it_is_logistic_regression(data, weighted):
    X, y, w = data
    weight = w if weighted else None
    ours = pr.NonnegativeLogisticRegression().fit(X, y, sample_weight=weight)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky").fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    assert ours.solution_.converged
    assert ours.solution_.kkt < 1e-9


def test_the_ridge_is_in_the_users_units(data):
    X, y, _ = data
    ours = pr.NonnegativeLogisticRegression(ridge=0.003).fit(X, y)
    # scikit-learn minimizes C * sum of losses + ||beta||^2 / 2.
    theirs = LogisticRegression(C=1 / (2 * 0.003 * N), tol=1e-10, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    "directions", [("decreasing", "increasing", "increasing"), ("increasing", "none", "decreasing")]
)
def test_signs_are_kept_and_the_rest_is_optimal(data, directions):
    X, y, _ = data
    model = pr.NonnegativeLogisticRegression(signed(*directions)).fit(named(X), y)
    allowed = {"increasing": (0, None), "decreasing": (None, 0), "none": (None, None)}
    Z = (X - X.mean(axis=0)) / X.std(axis=0)

    def objective(point):
        score = point[0] + Z @ point[1:]
        residual = (1 / (1 + np.exp(-score)) - y) / N
        return (np.logaddexp(0, score) - y * score).mean(), np.concatenate([[residual.sum()], Z.T @ residual])

    bounds = [(None, None), *(allowed[d] for d in directions)]
    options = {"ftol": 0.0, "gtol": 1e-12, "maxiter": 5000}
    found = minimize(objective, np.zeros(4), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert model.solution_.objective == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(model.coef_[0], found.x[1:] / X.std(axis=0), rtol=1e-4, atol=1e-6)
    signs = np.array([{"increasing": 1, "decreasing": -1, "none": 0}[d] for d in directions])
    assert (signs * model.coef_[0] >= 0).all()
    assert (model.coef_[0] == 0).any()


@pytest.mark.parametrize("factor", [1e-170, 1e-12, 1e-6, 1e6, 1e12, 1e200, 1e307])
def test_units_do_not_matter_without_ridge(data, factor):
    X, y, _ = data
    plain = pr.NonnegativeLogisticRegression().fit(X, y)
    units = np.array([factor, 1.0, 1.0])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        scaled = pr.NonnegativeLogisticRegression().fit(X * units, y)
        risk = scaled.predict_proba(X * units)
    assert scaled.solution_.converged
    np.testing.assert_allclose(scaled.coef_[0] * units, plain.coef_[0], rtol=1e-7)
    np.testing.assert_allclose(risk, plain.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("factor", [1e-170, 1e-9, 1e-6, 1e6, 1e200])
def test_a_ridge_on_one_feature_in_tiny_units_leaves_the_others_alone(data, factor):
    X, y, _ = data
    X = X * [factor, 1.0, 1.0]
    model = pr.NonnegativeLogisticRegression(ridge="auto").fit(X, y)
    assert model.solution_.converged
    if factor < 1:
        # In such units any slope worth having is huge, and the ridge forbids it.
        rest = pr.NonnegativeLogisticRegression(ridge="auto").fit(X[:, 1:], y)
        np.testing.assert_allclose(model.coef_[0, 1:], rest.coef_[0], rtol=1e-4)
    assert np.isfinite(model.predict_proba(X)).all()


def test_what_is_not_measured_has_an_effect_of_its_own():
    rng = np.random.default_rng(1)
    n = 4000
    x = rng.normal(size=n)
    code = rng.choice(["line", "special", "below", "missing"], n, p=[0.7, 0.1, 0.1, 0.1])
    value = np.select([code == "special", code == "below", code == "missing"], [-99.0, -50.0, np.nan], x)
    rate = np.select([code == "special", code == "below", code == "missing"], [0.9, 0.1, 0.5], 1 / (1 + np.exp(-x)))
    y = (rng.random(n) < rate).astype(int)
    schema = pr.Schema(features={"u": {"direction": "increasing", "special_values": (-99,), "lower_bound": -20.0}})
    model = pr.NonnegativeLogisticRegression(schema, rules="free").fit({"u": value}, y)
    risk = model.predict_proba({"u": [-99.0, -50.0, np.nan, -1000.0]})[:, 1]
    seen = [y[code == "special"].mean(), y[code == "below"].mean(), y[code == "missing"].mean()]
    np.testing.assert_allclose(risk, [*seen, seen[1]], atol=1e-8)
    alone = pr.NonnegativeLogisticRegression().fit(x[code == "line", None], y[code == "line"])
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, alone.intercept_, atol=1e-6)


def test_coefficients_give_the_score(data):
    X, y, _ = data
    model = pr.NonnegativeLogisticRegression(signed("increasing", "decreasing", "none")).fit(named(X), y)
    np.testing.assert_allclose(model.form_.score(named(X)), X @ model.coef_[0] + model.intercept_[0], atol=1e-9)
    (part,) = model.form_.parts
    assert all(isinstance(shape, Line) for shape in part.shapes.values())
    np.testing.assert_allclose([s.center for s in part.shapes.values()], X.mean(axis=0), rtol=1e-12)


def test_categories_are_tables(data):
    X, y, _ = data
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"u": X[:, 0], "job": rng.choice(["a", "b"], N)})
    model = pr.NonnegativeLogisticRegression().fit(frame, y)
    assert isinstance(model.form_.parts[0].shapes["job"], Table)
    assert model.coef_.shape == (1, 1)
    only = pr.NonnegativeLogisticRegression(ridge="auto").fit(frame[["job"]], y)
    assert only.coef_.shape == (1, 0)
    rates = frame.assign(y=y).groupby("job")["y"].mean()
    np.testing.assert_allclose(only.predict_proba({"job": ["a", "b"]})[:, 1], rates, atol=2e-3)


def test_constant_features_are_left_alone(data):
    X, y, _ = data
    with_constants = np.column_stack([X, np.full(N, 7.3e8), np.zeros(N), 1e9 + 1e-7 * X[:, 0]])
    model = pr.NonnegativeLogisticRegression().fit(with_constants, y)
    assert model.coef_[0, 3:].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(
        model.predict_proba(with_constants), pr.NonnegativeLogisticRegression().fit(X, y).predict_proba(X), atol=1e-9
    )
