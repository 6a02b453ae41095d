"""The driver of one-layer fits: the problem it solves, and ridge="cv" against refits fold by fold with scipy."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear, minimize, nnls
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.models.arm import RIDGE_TIMES_ROWS, LayerSettings, Problem, fit_layer, solve_layer
from plainrisk.models.crossval import stratified_folds
from plainrisk.models.training import read_training
from plainrisk.solve import Block, Layout, Rows

N = 260
SCHEMA = pr.Schema(
    features={
        "up": {"direction": "increasing", "edges": (-0.5, 0.5), "special_values": (-9,)},
        "free": {"edges": (-0.7, 0.0, 0.7)},
        "job": {"kind": "categorical"},
    },
    subscales={"numbers": ("up", "free"), "words": ("job",)},
)
MODELS = {
    "ARM1": pr.AdditiveRiskModel(SCHEMA, ridge="cv"),
    "DirectARM1": pr.AdditiveRiskModel(SCHEMA, link="linear", ridge="cv"),
    "NNLR": pr.NonnegativeLogisticRegression(SCHEMA, ridge="cv"),
    "ARM2": pr.TwoLayerRiskModel(schema=SCHEMA, ridge="cv"),
    "DirectARM2": pr.TwoLayerRiskModel(schema=SCHEMA, link="linear", ridge="cv"),
}
every_model = pytest.mark.parametrize("name", MODELS)


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


def indicators(X, penalty):
    """The columns of the model written out, and their lower bounds."""
    up, free = X["up"], X["free"]
    measured = up != -9
    columns = [measured & (up > -0.5), measured & (up > 0.5), measured, ~measured]
    lower = [0.0, 0.0, -np.inf, -np.inf]
    edges = (-0.7, 0.0, 0.7)
    if penalty == "steps":
        columns += [free > e for e in edges]
    else:
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


def squares(y, score):
    return (y - score) ** 2


def log_loss(y, score):
    return np.logaddexp(0, score) - y * score


def path_by_refitting(A, y, w, lower, fit, loss, ridges, n_folds=5):
    folds = stratified_folds(y, n_folds)
    losses = np.empty((n_folds, len(ridges)))
    for k in range(n_folds):
        train, held = folds != k, folds == k
        for j, ridge in enumerate(ridges):
            intercept, beta = fit(A[train], y[train], w[train], ridge, lower)
            losses[k, j] = np.average(loss(y[held], intercept + A[held] @ beta), weights=w[held])
    return losses


@pytest.mark.parametrize("penalty", ["levels", "steps"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_line_s_path_is_that_of_refits(data, penalty, weighted):
    X, y, w = data
    w = w if weighted else np.ones(N)
    model = pr.AdditiveRiskModel(SCHEMA, link="linear", ridge="cv", penalty=penalty).fit(X, y, sample_weight=w)
    path = model.ridge_path_
    np.testing.assert_allclose(path.ridges, np.array(RIDGE_TIMES_ROWS) / w.sum(), rtol=1e-12)
    A, lower = indicators(X, penalty)
    wanted = path_by_refitting(A, y, w, lower, least_squares, squares, path.ridges, n_folds=10)
    np.testing.assert_allclose(path.losses, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("penalty", "weighted"), [("levels", False), ("steps", True)])
def test_the_logistic_path_is_that_of_refits(data, penalty, weighted):
    X, y, w = data
    w = w if weighted else np.ones(N)
    model = pr.AdditiveRiskModel(SCHEMA, ridge="cv", penalty=penalty).fit(X, y, sample_weight=w)
    path = model.ridge_path_
    np.testing.assert_allclose(path.ridges, np.array(RIDGE_TIMES_ROWS) / w.sum(), rtol=1e-12)
    A, lower = indicators(X, penalty)
    wanted = path_by_refitting(A, y, w, lower, logistic_regression, log_loss, path.ridges)
    np.testing.assert_allclose(path.losses, wanted, rtol=0, atol=1e-8)


def test_the_path_of_raw_features_is_that_of_refits(data):
    """NNLR: the ridge is in the features' own units, whatever they are scaled to inside."""
    X, y, _ = data
    X = pd.DataFrame({"u": 100.0 * X["free"], "v": X["up"]})
    schema = pr.Schema(features={"u": {}, "v": {"direction": "increasing"}})
    model = pr.NonnegativeLogisticRegression(schema, ridge="cv").fit(X, y)
    lower = np.array([-np.inf, 0.0])
    # scipy's method needs columns of one size: a coefficient of u / 100 pays 1e-4 of the ridge.
    ridges = model.ridge_path_.ridges

    def fit(A, y, w, ridge, lower):
        return weighted_ridge(A, y, w, ridge * np.array([1e-4, 1.0]), lower)

    A = np.column_stack([X["u"] / 100.0, X["v"]])
    wanted = path_by_refitting(A, y, np.ones(N), lower, fit, log_loss, ridges)
    np.testing.assert_allclose(model.ridge_path_.losses, wanted, rtol=0, atol=1e-8)


def weighted_ridge(A, y, w, ridges, lower):
    """As `logistic_regression`, with a ridge per coefficient: columns divided by its root."""
    scale = np.sqrt(ridges / ridges.mean())
    intercept, beta = logistic_regression(A / scale, y, w, ridges.mean(), lower)
    return intercept, beta / scale


def test_the_second_layer_s_path_is_that_of_refits(data):
    X, y, _ = data
    model = pr.TwoLayerRiskModel(schema=SCHEMA, link="linear", ridge="cv").fit(X, y)
    risks = model.form_.part_risks(X)
    lower = np.zeros(2)
    wanted = path_by_refitting(risks, y, np.ones(N), lower, least_squares, squares, model.ridge_path_.ridges, 10)
    np.testing.assert_allclose(model.ridge_path_.losses, wanted, rtol=0, atol=1e-9)
    logistic = pr.TwoLayerRiskModel(schema=SCHEMA, ridge="cv").fit(X, y)
    risks = logistic.form_.part_risks(X)
    wanted = path_by_refitting(risks, y, np.ones(N), lower, logistic_regression, log_loss, logistic.ridge_path_.ridges)
    np.testing.assert_allclose(logistic.ridge_path_.losses, wanted, rtol=0, atol=1e-8)
    assert set(logistic.estimators_) == {"numbers", "words"}
    assert all(one.ridge_path_.losses.shape == (5, 9) for one in logistic.estimators_.values())


# ---- the choice


@every_model
def test_the_chosen_ridge_is_the_best_and_the_model_is_its_fit(data, name):
    X, y, _ = data
    model = clone(MODELS[name]).fit(X, y)
    path = model.ridge_path_
    assert path.losses.shape == (10 if name.startswith("Direct") else 5, len(RIDGE_TIMES_ROWS))
    assert path.best == model.ridge_ == path.ridges[np.argmin(path.mean)]
    assert path.mean.min() < path.mean.max()
    if "2" not in name:  # in two layers every layer chooses its own
        plain = clone(MODELS[name]).set_params(ridge=model.ridge_).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=0, atol=1e-9)


@every_model
def test_the_choice_is_the_same_every_time(data, name):
    X, y, w = data
    one, two = (clone(MODELS[name]).fit(X, y, sample_weight=w) for _ in range(2))
    np.testing.assert_array_equal(one.ridge_path_.losses, two.ridge_path_.losses)
    assert one.form_ == two.form_


def test_noise_is_shrunk_and_signal_is_not():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(500, 6)))
    noise, signal = rng.integers(0, 2, 500), (X[0] > 0).astype(int)
    for link in ("logistic", "linear"):
        model = pr.AdditiveRiskModel(link=link, ridge="cv", criterion="quantile", max_bins=20)
        times_rows = [500 * clone(model).fit(X, y).ridge_ for y in (noise, signal ^ (rng.random(500) < 0.1))]
        assert times_rows[0] >= 10 * times_rows[1]


# ---- the driver


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_the_driver_s_fit_is_the_model_s(data, link):
    X, y, w = data
    fitted = fit_layer(read_training(X, y, SCHEMA, w, None), LayerSettings(link=link, ridge=0.01))
    model = pr.AdditiveRiskModel(SCHEMA, link=link, ridge=0.01).fit(X, y, sample_weight=w)
    assert (fitted.part,) == model.form_.parts
    assert (fitted.ridge, fitted.ridge_path) == (0.01, None)
    assert fitted.solution.objective == model.solution_.objective
    scores = np.concatenate(list(fitted.design.scores(fitted.solution)))
    np.testing.assert_allclose(scores, model.form_.score(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_cells_give_the_solution_of_rows(data, link):
    """Where distinct rows are few they are fitted as weighted cells: fewer rows, the same sums."""
    X, y, w = data
    schema = SCHEMA.select(("up", "free"))
    design = fit_layer(read_training(X, y, schema, w, None), LayerSettings(link=link)).design
    assert design.cells.totals[0] <= 5 * 5 < N
    assert design.cells.totals[1:] == pytest.approx(design.coded.rows.totals[1:], rel=1e-12)
    cells, rows = (
        Problem(link, design.layout, design.coded.rows, some, lower=design.lower).solve(0.01)
        for some in (design.cells, None)
    )
    np.testing.assert_allclose(cells.point, rows.point, rtol=0, atol=1e-9)
    assert cells.objective == pytest.approx(rows.objective, rel=1e-12)


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_a_problem_of_some_rows_is_that_of_these_rows_alone(data, rng, link):
    X, y, w = data
    A, lower = indicators(X, "levels")
    mask = rng.random(N) < 0.6
    whole = Problem(link, Layout((), A.shape[1]), Rows([Block((), w * y, w, A)]), lower=lower, scale=2.0)
    alone = replace(whole, rows=Rows([Block((), (w * y)[mask], w[mask], A[mask])]))
    np.testing.assert_allclose(whole.where(mask).solve(0.01).point, alone.solve(0.01).point, rtol=0, atol=1e-9)
    point = rng.normal(size=1 + A.shape[1])
    score = point[0] + A[mask] @ point[1:]
    wanted = np.average((log_loss if link == "logistic" else squares)(y[mask], score), weights=w[mask])
    assert whole.where(mask).loss(point) == pytest.approx(wanted, rel=1e-11)


def test_a_scale_multiplies_the_ridge_of_each_coefficient(data):
    X, y, w = data
    A, lower = indicators(X, "levels")
    scale = np.linspace(0.5, 3.0, A.shape[1])
    problem = Problem("linear", Layout((), A.shape[1]), Rows([Block((), w * y, w, A)]), lower=lower, scale=scale)
    found = problem.solve(0.02)
    line = found.intercept + A @ found.coefficients
    slope = 2 * A.T @ (w * (line - y)) / w.sum() + 2 * 0.02 * scale * found.coefficients
    bound = found.coefficients <= lower
    assert np.abs(slope[~bound]).max() < 1e-10
    assert (slope[bound] > -1e-10).all()


def test_auto_is_half_a_row(data):
    X, y, w = data
    training = read_training(X, y, SCHEMA, w, None)
    problem = Problem("linear", Layout(()), Rows([Block((), w * y, w)]))
    assert solve_layer(problem, "auto", training)[1] == pytest.approx(1 / (2 * w.sum()))


@pytest.mark.parametrize("ridge", [-1.0, np.inf, np.nan, "always", None])
def test_a_ridge_that_is_none_is_named(data, ridge):
    X, y, _ = data
    with pytest.raises(DataError, match="ridge must be 'auto', 'cv' or a finite number of at least 0, not"):
        pr.AdditiveRiskModel(SCHEMA, ridge=ridge).fit(X, y)


# ---- inside other tools


def test_the_path_is_kept_and_forgotten(data):
    X, y, _ = data
    model = clone(MODELS["DirectARM1"]).fit(X, y)
    assert not hasattr(clone(model), "ridge_path_")
    model.set_params(ridge="auto").fit(X, y)
    assert not hasattr(model, "ridge_path_")
    assert model.ridge_ == 1 / (2 * N)


def test_the_choice_inside_wrappers_and_searches(data):
    X, y, _ = data
    line = pr.Linearised(pr.AdditiveRiskModel(SCHEMA, ridge="cv"), pieces=3).fit(X, y)
    own = pr.AdditiveRiskModel(SCHEMA, ridge="cv").fit(X, y)
    assert line.estimator_.ridge_path_.best == own.ridge_
    mixture = pr.make_classifier("MixDirectARM1", SCHEMA, ridge="cv").fit(X, y)
    assert {n: e.model.ridge_path_.losses.shape for n, e in mixture.experts_.items()} == {
        "numbers": (10, 9),
        "words": (10, 9),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        search = GridSearchCV(MODELS["DirectARM1"], {"ridge": ["auto", "cv"], "max_bins": [2, 5]}, cv=3).fit(X, y)
        assert set(search.best_params_) == {"ridge", "max_bins"}
        assert cross_val_score(MODELS["DirectARM1"], X, y, cv=3, scoring="roc_auc").mean() > 0.6


@every_model
def test_few_rows(name):
    """As long as every outcome is there twice, a ridge is chosen; else the user is told why not."""
    X = pd.DataFrame({"up": [0.0, 1.0, 0.0, 1.0, 2.0], "free": [1.0, 0.0, 2.0, 0.0, 1.0], "job": list("abcab")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        model = clone(MODELS[name]).fit(X, [0, 1, 0, 1, 0])
    assert np.isfinite(model.ridge_path_.losses).all()
    assert np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(DataError, match="cross validation needs two rows of each outcome; of one there is 1"):
        clone(MODELS[name]).fit(X, [0, 1, 0, 0, 0])


def test_without_ridge_the_second_direct_layer_is_nonnegative_least_squares(data):
    X, y, _ = data
    model = pr.TwoLayerRiskModel(schema=SCHEMA, link="linear", ridge=0.0).fit(X, y)
    centred = model.form_.part_risks(X) - model.form_.part_risks(X).mean(axis=0)
    found, _ = nnls(centred, y - y.mean())
    np.testing.assert_allclose(list(model.weights_.values()), found, atol=1e-9)
