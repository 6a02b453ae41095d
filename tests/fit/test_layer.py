"""The driver of one-layer fits: the problem it solves, against scipy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear, minimize, nnls

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.fit.basis import LineBounds
from plainrisk.fit.coding import code_rows, learn_levels
from plainrisk.fit.layer import fit_layer, resolve_ridge
from plainrisk.fit.parameters import LayerSettings
from plainrisk.fit.plan import Plan, fit_plan
from plainrisk.fit.training import read_training

N = 260
SCHEMA = pr.Schema(
    features={
        "up": {"direction": "increasing", "edges": (-0.5, 0.5), "special_values": (-9,)},
        "free": {"edges": (-0.7, 0.0, 0.7)},
        "job": {"kind": "categorical"},
    },
    subscales={"numbers": ("up", "free"), "words": ("job",)},
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(31)
    X = pd.DataFrame({
        "up": np.where(rng.random(N) < 0.1, -9.0, rng.normal(size=N)),
        "free": rng.normal(size=N),
        "job": rng.choice(["a", "b", "c"], N),
    })  # fmt: skip
    score = X["up"].clip(-1) + X["free"] ** 2 + (X["job"] == "b") + 1.5 * rng.normal(size=N)
    return X, (score > 1.2).to_numpy().astype(int), rng.uniform(0.2, 3.0, N)


def indicators(X):
    """The columns of the model written out, and their lower bounds."""
    up, free = X["up"], X["free"]
    measured = up != -9
    columns = [measured & (up > -0.5), measured & (up > 0.5), measured, ~measured]
    lower = [0.0, 0.0, -np.inf, -np.inf]
    edges = (-0.7, 0.0, 0.7)
    columns += [(free > a) & (free <= b) for a, b in zip((-np.inf, *edges), (*edges, np.inf), strict=True)]
    columns += [X["job"] == level for level in "abc"]
    matrix = np.column_stack(columns).astype(float)
    return matrix, np.array(lower + [-np.inf] * (matrix.shape[1] - 4))


def least_squares(A, y, w, ridge, lower):
    """Mean squared error + ridge ||beta||^2 under bounds: (intercept, beta)."""
    root = np.sqrt(w / w.sum())
    p = A.shape[1]
    stacked = np.vstack([np.column_stack([np.ones(len(A)), A]) * root[:, None], np.eye(1 + p) * np.sqrt(ridge)])
    stacked[len(A), 0] = 0.0  # the intercept is free
    bounds = (np.concatenate([[-np.inf], lower]), np.full(1 + p, np.inf))
    found = lsq_linear(stacked, np.concatenate([root * y, np.zeros(1 + p)]), bounds, method="bvls", tol=1e-15)
    return found.x[0], found.x[1:]


def logistic_regression(A, y, w, ridge, lower):
    """Mean log loss + ridge ||beta||^2 under bounds: (intercept, beta)."""

    def objective(point):
        score = point[0] + A @ point[1:]
        residual = w * (1 / (1 + np.exp(-score)) - y) / w.sum()
        gradient = np.concatenate([[residual.sum()], A.T @ residual + 2 * ridge * point[1:]])
        return w @ (np.logaddexp(0, score) - y * score) / w.sum() + ridge * (point[1:] ** 2).sum(), gradient

    point = np.zeros(1 + A.shape[1])
    bounds = [(None, None), *((low, None) for low in lower)]
    for _ in range(3):
        options = {"ftol": 0.0, "gtol": 1e-12, "maxiter": 5000, "maxcor": 40}
        point = minimize(objective, point, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return point[0], point[1:]


def weighted_ridge(A, y, w, ridges, lower):
    """As `logistic_regression`, with a ridge per coefficient: columns divided by its root."""
    scale = np.sqrt(ridges / ridges.mean())
    intercept, beta = logistic_regression(A / scale, y, w, ridges.mean(), lower)
    return intercept, beta / scale


@pytest.mark.parametrize("link", ["logistic", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.001, 0.05])
def test_the_fit_is_scipy_s(data, link, weighted, ridge):
    X, y, w = data
    w = w if weighted else np.ones(N)
    model = pr.AdditiveRiskModel(SCHEMA, link=link, ridge=ridge).fit(X, y, sample_weight=w)
    A, lower = indicators(X)
    fit = logistic_regression if link == "logistic" else least_squares
    intercept, beta = fit(A, y, w, ridge, lower)
    np.testing.assert_allclose(model.form_.score(X), intercept + A @ beta, rtol=0, atol=1e-6)


def test_raw_features_pay_the_ridge_in_their_own_units(data):
    """NNLR: the ridge is in the features' own units, whatever they are scaled to inside."""
    X, y, _ = data
    X = pd.DataFrame({"u": 100.0 * X["free"], "v": X["up"]})
    schema = pr.Schema(features={"u": {}, "v": {"direction": "increasing"}})
    model = pr.NonnegativeLogisticRegression(schema, ridge=0.02).fit(X, y)
    # scipy's method needs columns of one size: a coefficient of u / 100 pays 1e-4 of the ridge.
    A, ridges = np.column_stack([X["u"] / 100.0, X["v"]]), 0.02 * np.array([1e-4, 1.0])
    intercept, beta = weighted_ridge(A, y, np.ones(N), ridges, np.array([-np.inf, 0.0]))
    np.testing.assert_allclose(model.form_.score(X), intercept + A @ beta, rtol=0, atol=1e-6)


# ---- the driver


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_the_driver_s_fit_is_the_model_s(data, link):
    X, y, w = data
    fitted = fit_layer(read_training(X, y, SCHEMA, w, None), LayerSettings(link=link, ridge=0.01))
    model = pr.AdditiveRiskModel(SCHEMA, link=link, ridge=0.01).fit(X, y, sample_weight=w)
    assert (fitted.part,) == model.form_.parts
    assert fitted.ridge == 0.01
    assert fitted.solution.objective == model.solution_.objective
    (scores,) = fitted.scores.sum(lambda rows: ((rows.scores[:, 0],),))
    scores = np.concatenate(scores)
    np.testing.assert_allclose(scores, model.form_.score(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_cells_give_the_solution_of_rows(data, link):
    """Where distinct rows are few they are fitted as weighted cells: fewer rows, the same sums."""
    X, y, w = data
    schema = SCHEMA.select(("up", "free"))
    training = read_training(X, y, schema, w, None)
    plan = Plan(code_rows(training, learn_levels(training)), schema, link, "steps", ridge=0.01)
    cells, rows = (fit_plan(some) for some in (plan, replace(plan, weighted=plan.coded.rows)))
    assert cells.basis.rows.totals[0] <= 5 * 5 < N == rows.basis.rows.totals[0]
    assert cells.basis.rows.totals[1:] == pytest.approx(rows.basis.rows.totals[1:], rel=1e-12)
    np.testing.assert_allclose(cells.point, rows.point, rtol=0, atol=1e-9)
    assert cells.solution.objective == pytest.approx(rows.solution.objective, rel=1e-12)


def test_a_scale_multiplies_the_ridge_of_each_slope(data):
    X, y, w = data
    A, lower = indicators(X)
    scale = np.linspace(0.5, 3.0, A.shape[1])
    schema = SCHEMA.select(("free",))
    training = read_training(X, y, schema, w, None)
    coded = code_rows(training, learn_levels(training, lines=True), lambda batch: A)
    lines = LineBounds(lower, np.full(len(lower), np.inf), scale)
    found = fit_plan(Plan(coded, schema, "linear", "lines", ridge=0.02, lines=lines)).solution
    line = found.intercept + A @ found.coefficients
    slope = 2 * A.T @ (w * (line - y)) / w.sum() + 2 * 0.02 * scale * found.coefficients
    bound = found.coefficients <= lower
    assert np.abs(slope[~bound]).max() < 1e-10
    assert (slope[bound] > -1e-10).all()


def test_auto_is_half_a_row():
    assert resolve_ridge("auto", 50.0) == 0.01
    assert resolve_ridge(0.2, 50.0) == 0.2


@pytest.mark.parametrize("ridge", [-1.0, np.inf, np.nan, "cv", None])
def test_a_ridge_that_is_none_is_named(data, ridge):
    X, y, _ = data
    with pytest.raises(DataError, match="ridge must be 'auto' or a finite number of at least 0, not"):
        pr.AdditiveRiskModel(SCHEMA, ridge=ridge).fit(X, y)


def test_without_ridge_the_second_direct_layer_is_nonnegative_least_squares(data):
    X, y, _ = data
    model = pr.TwoLayerRiskModel(schema=SCHEMA, link="linear", ridge=0.0).fit(X, y)
    centered = model.form_.part_risks(X) - model.form_.part_risks(X).mean(axis=0)
    found, _ = nnls(centered, y - y.mean())
    np.testing.assert_allclose(list(model.weights_.values()), found, atol=1e-9)
