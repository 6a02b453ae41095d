"""scikit-learn's own checks over the wrappers, the mixture and the trees, and the tools that people use them with."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import plainrisk as pr

pytestmark = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")

ESTIMATORS = {
    "Linearised ARM1": pr.Linearised(pr.AdditiveRiskModel()),
    "banded ARM1": pr.Linearised(pr.AdditiveRiskModel(), pieces=3),
    "Linearised LogisticRegression": pr.Linearised(LogisticRegression()),
    "SubscaleMixture": pr.SubscaleMixture(),
    "SubscaleMixture of LogisticRegression": pr.SubscaleMixture(LogisticRegression()),
    "BoostedRiskModel": pr.BoostedRiskModel(),
}
NEUTRAL = (
    "LogisticRegression refuses missing values in fit, and so do these. Once fitted they are risk forms, which score "
    "what training never saw as neutral (the schema's unseen = 'neutral')"
)


def expected_failures(estimator):
    """Which checks may fail, and why."""
    found = {}
    if isinstance(estimator.get_params().get("estimator"), LogisticRegression):
        found["check_estimators_nan_inf"] = NEUTRAL
    return found


@parametrize_with_checks(
    [pr.Linearised(LogisticRegression()), pr.SubscaleMixture(LogisticRegression())],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_a_wrapper_takes_missing_values_where_the_model_inside_does():
    def takes(model):
        return get_tags(model).input_tags.allow_nan

    assert takes(pr.Linearised(pr.AdditiveRiskModel()))
    assert takes(pr.SubscaleMixture())
    assert takes(pr.SubscaleMixture({"a": pr.AdditiveRiskModel(), "b": pr.BoostedRiskModel()}))
    assert not takes(pr.Linearised(LogisticRegression()))
    assert not takes(pr.SubscaleMixture(LogisticRegression()))
    assert not takes(pr.SubscaleMixture({"a": pr.AdditiveRiskModel(), "b": LogisticRegression()}))


# ---- tools

every_kind = pytest.mark.parametrize("model", ESTIMATORS.values(), ids=ESTIMATORS.keys())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(17)
    X = pd.DataFrame(rng.normal(size=(250, 3)), columns=["a", "b", "c"])
    return X, (X["a"] - X["b"] + 2 * rng.normal(size=250) > 0).astype(int)


@every_kind
def test_pipelines_and_cross_validation(model, data):
    X, y = data
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, clone(model)).fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipeline.predict_proba(X).shape == (250, 2)
    assert cross_val_score(clone(model), X, y, cv=3, scoring="roc_auc").mean() > 0.6
    assert np.isfinite(cross_val_predict(clone(model), X, y, cv=3, method="predict_proba")).all()


@every_kind
def test_names_and_positions_score_alike(model, data):
    X, y = data
    named, plain = clone(model).fit(X, y), clone(model).fit(X.to_numpy(), y)
    np.testing.assert_allclose(named.predict_proba(X), plain.predict_proba(X.to_numpy()), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(named.predict_proba(X[["c", "a", "b"]]), named.predict_proba(X))


@every_kind
def test_clone_pickle_and_refit(model, data):
    X, y = data
    fitted = clone(model).fit(X, y)
    copy = clone(fitted)
    assert not hasattr(copy, "form_")
    assert repr(copy) == repr(model)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.form_ == fitted.form_
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    turned = fitted.fit(X[["c", "a"]], 1 - y)
    assert turned is fitted
    np.testing.assert_array_equal(
        fitted.predict_proba(X[["c", "a"]]), clone(model).fit(X[["c", "a"]], 1 - y).predict_proba(X[["c", "a"]])
    )


@every_kind
def test_labels_of_all_kinds(model, data):
    X, y = data
    risk = clone(model).fit(X, y).predict_proba(X)
    for labels in (["good", "bad"], [False, True], [1.0, 2.0]):
        named = clone(model).fit(X, np.array(labels)[y.to_numpy()])
        wanted = risk if labels != ["good", "bad"] else risk[:, ::-1]  # the last in sorted order is the positive one
        np.testing.assert_allclose(named.predict_proba(X), wanted, rtol=0, atol=1e-6)
        assert named.classes_.tolist() == sorted(labels)
        assert set(named.predict(X)) <= set(labels)


def test_searches_reach_every_depth(data):
    X, y = data
    model = pr.SubscaleMixture(pr.Linearised(pr.AdditiveRiskModel()))
    grid = {"learning_rate": ["paper", "hedge"], "estimator__alpha": [2.6, 5.0], "estimator__estimator__ridge": [0.01]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    best = search.best_estimator_
    assert best.estimator.estimator.ridge == 0.01
    assert best.experts_["a"].model.alpha == search.best_params_["estimator__alpha"]
    assert best.certify().valid


@every_kind
def test_before_fit_every_method_says_so(model, data, tmp_path):
    X, _ = data
    fresh = clone(model)
    for call in (
        lambda: fresh.predict(X),
        lambda: fresh.predict_proba(X),
        lambda: fresh.explain(X),
        lambda: fresh.certify(),
        lambda: fresh.save(tmp_path / "m.json"),
        lambda: fresh.at_base_rate(0.1),
    ):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            call()
