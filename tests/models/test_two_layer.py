from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear, minimize
from sklearn.base import clone

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.form import Layer, Linear, Logistic

FEATURES = {
    "income": {"direction": "decreasing"},
    "debt": {"direction": "increasing"},
    "age": {},
    "job": {"kind": "categorical"},
    "noise": {},
}
SUBSCALES = {"money": ("income", "debt"), "person": ("age", "job", "debt")}  # they overlap; noise is in none
SCHEMA = pr.Schema(features=FEATURES, subscales=SUBSCALES)
N = 600


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(6)
    X = pd.DataFrame({
        "income": rng.gamma(2, size=N).round(2),
        "debt": rng.normal(size=N).round(2),
        "age": rng.integers(18, 70, N).astype(float),
        "job": rng.choice(["a", "b", "c"], N),
        "noise": rng.normal(size=N),
    })  # fmt: skip
    score = X["debt"] - X["income"] + (X["job"] == "b") + 3 * rng.normal(size=N)
    return X, (score > -1).to_numpy().astype(int), rng.uniform(0.5, 2.0, N)


@pytest.mark.parametrize("link", ["logistic", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_part_is_the_one_layer_model_of_its_subscale(data, link, weighted):
    X, y, w = data
    weight = w if weighted else None
    model = pr.TwoLayerRiskModel(schema=SCHEMA, link=link, max_bins=4).fit(X, y, sample_weight=weight)
    assert [p.name for p in model.form_.parts] == ["money", "person"]
    assert list(model.estimators_) == ["money", "person"]
    for k, members in enumerate(SUBSCALES.values()):
        alone = pr.AdditiveRiskModel(SCHEMA.select(members), link=link, max_bins=4).fit(X, y, sample_weight=weight)
        assert tuple(model.form_.parts[k].shapes) == members
        np.testing.assert_allclose(model.form_.part_risks(X)[:, k], alone.predict_proba(X)[:, 1], atol=1e-12)


@pytest.mark.parametrize("ridge", ["auto", 0.01])
def test_the_second_layer_is_nonnegative_logistic_regression_on_the_risks(data, ridge):
    X, y, w = data
    model = pr.TwoLayerRiskModel(schema=SCHEMA, ridge=ridge).fit(X, y, sample_weight=w)
    risks = model.form_.part_risks(X)

    def objective(point):
        score = point[0] + risks @ point[1:]
        residual = w * (1 / (1 + np.exp(-score)) - y) / w.sum()
        loss = w @ (np.logaddexp(0, score) - y * score) / w.sum() + model.ridge_ * (point[1:] ** 2).sum()
        return loss, np.concatenate([[residual.sum()], risks.T @ residual + 2 * model.ridge_ * point[1:]])

    options = {"ftol": 0.0, "gtol": 1e-12, "maxiter": 5000}
    bounds = [(None, None), (0, None), (0, None)]
    found = minimize(objective, np.zeros(3), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert model.solution_.objective == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(list(model.weights_.values()), found.x[1:], rtol=1e-4)
    pool = model.form_.pool
    assert pool == Layer(model.solution_.intercept, tuple(model.weights_.values()), Logistic())


@pytest.mark.parametrize("ridge", [0.0, "auto", 0.01])
def test_the_second_layer_of_lines_is_nonnegative_least_squares(data, ridge):
    X, y, w = data
    model = pr.TwoLayerRiskModel(schema=SCHEMA, link="linear", ridge=ridge).fit(X, y, sample_weight=w)
    risks = model.form_.part_risks(X)
    root = np.sqrt(w / w.sum())
    A = np.vstack([np.column_stack([np.ones(N), risks]) * root[:, None], np.zeros((2, 3))])
    A[N:, 1:] = np.sqrt(model.ridge_) * np.eye(2)
    b = np.concatenate([root * y, [0.0, 0.0]])
    found = lsq_linear(A, b, ([-np.inf, 0, 0], [np.inf] * 3), method="bvls", tol=1e-15)
    assert model.solution_.objective == pytest.approx(((A @ found.x - b) ** 2).sum(), rel=1e-9)
    np.testing.assert_allclose(list(model.weights_.values()), found.x[1:], atol=1e-7)
    assert model.form_.pool.link == Linear()
    assert model.form_.speaks_probability


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_a_subscale_that_would_count_backward_counts_nothing(link):
    rng = np.random.default_rng(0)
    u = rng.normal(size=2000)
    v = u + 0.5 * rng.normal(size=2000)
    y = (4 * u - 2.4 * v + 2 * rng.normal(size=2000) > 0).astype(int)
    X = {"u": u, "v": v}
    model = pr.TwoLayerRiskModel(link=link, ridge=0.0, min_bin_rows=100).fit(X, y)
    risks = model.form_.part_risks(X)
    free = np.linalg.lstsq(np.column_stack([np.ones(2000), risks]), y, rcond=None)[0]
    assert free[2] < -0.1, "the case is not what it says"
    assert model.weights_["v"] == 0.0
    assert model.weights_["u"] > 0.5


def test_the_subscales_decide_which_features_are_used(data):
    X, y, _ = data
    model = pr.TwoLayerRiskModel(schema=SCHEMA).fit(X, y)
    risk = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X.assign(noise=99.0)), risk)
    np.testing.assert_array_equal(model.predict_proba(X.drop(columns="noise")), risk)


def test_without_subscales_every_feature_is_one(data):
    X, y, _ = data
    model = pr.TwoLayerRiskModel(schema=pr.Schema(features=FEATURES)).fit(X, y)
    assert list(model.estimators_) == list(FEATURES)
    assert list(pr.TwoLayerRiskModel().fit(X, y).estimators_) == list(X.columns)


def test_any_one_layer_model_can_be_the_expert(data):
    X, y, _ = data
    expert = pr.NonnegativeLogisticRegression(ridge=0.001)
    model = pr.TwoLayerRiskModel(expert, SCHEMA).fit(X, y)
    assert not hasattr(expert, "form_"), "the given estimator is cloned, not fitted"
    for k, members in enumerate(SUBSCALES.values()):
        alone = pr.NonnegativeLogisticRegression(SCHEMA.select(members), ridge=0.001).fit(X, y)
        np.testing.assert_allclose(model.form_.part_risks(X)[:, k], alone.predict_proba(X)[:, 1], atol=1e-12)
    assert model.certify().valid
    assert model.set_params(estimator__ridge=0.5).estimator.ridge == 0.5


def test_a_model_of_several_layers_is_no_expert(data):
    X, y, _ = data
    with pytest.raises(DataError, match="TwoLayerRiskModel"):
        pr.TwoLayerRiskModel(pr.TwoLayerRiskModel(), SCHEMA).fit(X, y)


def test_the_record_covers_all_problems_solved(data):
    X, y, _ = data
    model = pr.TwoLayerRiskModel(schema=SCHEMA).fit(X, y)
    record = model.fit_record_
    assert len(record.objective) == len(record.kkt) == len(record.iterations) == 3
    assert max(record.kkt) < 1e-9
    assert record.objective[-1] == model.solution_.objective
    assert record.estimator == "TwoLayerRiskModel"


def test_a_wrong_link_is_named(data):
    X, y, _ = data
    with pytest.raises(DataError, match="link must be 'logistic' or 'linear', not 'probit'"):
        pr.TwoLayerRiskModel(schema=SCHEMA, link="probit").fit(X, y)


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_training_scores_are_those_the_form_gives(data, link):
    X, y, w = data
    model = pr.TwoLayerRiskModel(schema=SCHEMA, link=link)
    scores = model._fit_rows(model._read(X, y, w))
    for _ in range(2):  # they can be gone through again
        (found,) = scores.sum(lambda rows: ((rows.scores,),))
        np.testing.assert_allclose(np.vstack(found), model.form_.part_scores(X), rtol=0, atol=1e-12)


def test_many_subscales_are_weighed_to_the_optimum(data):
    X, y, _ = data
    many = pd.DataFrame({f"x{k}": np.roll(X["debt"].to_numpy(), k) for k in range(18)})
    model = pr.TwoLayerRiskModel(max_bins=3).fit(many, y)
    assert len(model.weights_) == 18
    risks, weights = model.form_.part_risks(many), np.array(list(model.weights_.values()))
    p = 1 / (1 + np.exp(-model.solution_.intercept - risks @ weights))
    np.testing.assert_allclose(model.predict_proba(many)[:, 1], p, atol=1e-12)
    slope = risks.T @ (p - y) / N + 2 * model.ridge_ * weights
    assert np.abs(slope[weights > 0]).max() < 1e-9
    assert (slope[weights == 0] > -1e-9).all()


def test_a_feature_of_one_value_beside_one_of_256(data):
    rng, n = np.random.default_rng(0), 30_000
    X = pd.DataFrame({"one": np.ones(n), "many": np.arange(n) % 256.0, "z": rng.normal(size=n)})
    y = (rng.random(n) < 0.2 + 0.002 * X["many"]).astype(int)
    schema = pr.Schema(features={name: {} for name in X}, subscales={"a": ("one", "many"), "b": ("z",)})
    model = pr.TwoLayerRiskModel(schema=schema, max_bins=300).fit(X, y)
    risks, weights = model.form_.part_risks(X), np.array(list(model.weights_.values()))
    slope = risks.T @ (model.predict_proba(X)[:, 1] - y) / n + 2 * model.ridge_ * weights
    assert np.abs(slope[weights > 0]).max() < 1e-9


def test_experts_stand_in_the_order_of_their_subscales(data, monkeypatch):
    X, y, _ = data
    names = {"few": ("debt",), "most": ("age", "job", "income"), "some": ("noise", "debt")}
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    model = pr.TwoLayerRiskModel(schema=pr.Schema(features=FEATURES, subscales=names)).fit(X, y)
    assert list(model.estimators_) == list(model.weights_) == list(names)
    assert [tuple(part.shapes) for part in model.form_.parts] == list(names.values())


@pytest.mark.parametrize("model", [pr.TwoLayerRiskModel(), pr.SubscaleMixture(cv=3)])
def test_features_in_no_subscale_are_named_once(rng, model):
    X = {name: rng.normal(size=200) for name in "abcd"}
    y = (X["a"] + X["d"] + rng.normal(size=200) > 0).astype(int)
    schema = pr.Schema(features={name: {} for name in X}, subscales={"S": ["a"], "T": ["b"]})
    with pytest.warns(PlainriskWarning, match="leaves out 2 features in no subscale: 'c', 'd'. Add them") as said:
        clone(model).set_params(schema=schema).fit(X, y)
    assert sum("in no subscale" in str(one.message) for one in said) == 1
