"""scikit-learn's own checks over every model, and the tools that people use models with."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data, parametrize_with_checks

import plainrisk as pr
from plainrisk.errors import PlainriskWarning

# One for every class and every way of a fit: the other names differ in parameters, not in what these checks look at.
CHECKED = ("SmoothARM1", "DirectARM1", "NNLR", "ARM2", "LinARM1", "MixLinARM1")


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
@parametrize_with_checks([pr.make_classifier(name) for name in CHECKED])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_every_class_is_checked():
    checked = {type(pr.make_classifier(name)) for name in (*CHECKED, "MonoXGB")}
    assert checked == {type(pr.make_classifier(name)) for name in pr.CLASSIFIERS}


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
@parametrize_with_checks([pr.make_classifier("MonoXGB")])
def test_scikit_learns_checks_of_trees(estimator, check):
    pytest.importorskip("xgboost")
    check(estimator)


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_weights_that_are_counts_are_repeated_rows(link):
    model = pr.AdditiveRiskModel(shapes="smooth", link=link, weights="counts", min_bin_rows=1)
    check_sample_weight_equivalence_on_dense_data("AdditiveRiskModel", model)


# ---- tools

KINDS = {
    "ARM1": pr.AdditiveRiskModel(),
    "direct ARM1": pr.AdditiveRiskModel(link="linear", ridge=0.05),
    "NNLR": pr.NonnegativeLogisticRegression(),
    "ARM2": pr.TwoLayerRiskModel(),
    "direct ARM2": pr.TwoLayerRiskModel(link="linear", ridge=0.05),
}
every_kind = pytest.mark.parametrize("model", KINDS.values(), ids=KINDS.keys())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    return X, (X["a"] - X["b"] + 3 * rng.normal(size=300) > 0).astype(int)


@every_kind
def test_pipeline_and_set_output(model, data):
    X, y = data
    upstream = make_pipeline(SimpleImputer(), StandardScaler()).set_output(transform="pandas")
    pipeline = make_pipeline(upstream, clone(model)).fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipeline.predict_proba(X).shape == (300, 2)
    assert pipeline.score(X, y) > 0.55
    plain = make_pipeline(SimpleImputer(), StandardScaler(), clone(model)).fit(X, y)
    np.testing.assert_allclose(pipeline.predict_proba(X), plain.predict_proba(X), atol=1e-12)


def test_a_schema_holds_behind_a_transformer_that_keeps_names(data):
    X, y = data
    schema = pr.Schema(features={"a": {"direction": "increasing"}, "b": {"direction": "decreasing"}})
    scale = ColumnTransformer([("scale", StandardScaler(), ["a", "b"])], verbose_feature_names_out=False)
    pipeline = make_pipeline(scale.set_output(transform="pandas"), pr.AdditiveRiskModel(schema)).fit(X, y)
    assert pipeline[-1].certify().valid
    low, high = pipeline.predict_proba(pd.DataFrame({"a": [-9.0, 9.0], "b": 0.0, "c": 0.0}))[:, 1]
    assert low < high


@every_kind
def test_cross_validation(model, data):
    X, y = data
    scores = cross_val_score(clone(model), X, y, cv=3, scoring="roc_auc")
    assert scores.mean() > 0.6
    risk = cross_val_predict(clone(model), X, y, cv=3, method="predict_proba")
    assert risk.shape == (300, 2)
    assert np.isfinite(risk).all()


def test_grid_search_finds_parameters_at_every_depth(data):
    X, y = data
    search = GridSearchCV(pr.AdditiveRiskModel(), {"max_bins": [2, 5], "ridge": ["auto", 0.1]}, cv=3).fit(X, y)
    assert set(search.best_params_) == {"max_bins", "ridge"}
    assert search.best_estimator_.certify().valid
    nested = pr.TwoLayerRiskModel(pr.NonnegativeLogisticRegression())
    deep = GridSearchCV(nested, {"estimator__ridge": [0.0, 0.1], "ridge": ["auto"]}, cv=3).fit(X, y)
    assert deep.best_estimator_.estimators_["a"].ridge == deep.best_params_["estimator__ridge"]


@every_kind
def test_clone_and_parameters(model, data):
    X, y = data
    fitted = clone(model).fit(X, y)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "form_")
    assert clone(model).set_params(ridge=0.25).ridge == 0.25
    with pytest.raises(ValueError, match="Invalid parameter 'rigde'"):
        copy.set_params(rigde=1.0)
    before = {k: repr(v) for k, v in model.get_params().items()}
    model.fit(X, y)
    assert {k: repr(v) for k, v in model.get_params().items()} == before, "fit changed a parameter"


@every_kind
def test_pickling(model, data):
    X, y = data
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.form_ == fitted.form_
    assert pickle.loads(pickle.dumps(pr.RiskModel(fitted.form_))).form_ == fitted.form_


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


@every_kind
def test_refitting_forgets_the_first_fit(model, data):
    X, y = data
    fitted = clone(model).fit(X, y)
    fitted.fit(X[["c", "a"]].to_numpy(), 1 - y)
    assert fitted.n_features_in_ == 2
    assert not hasattr(fitted, "feature_names_in_")
    fresh = clone(model).fit(X[["c", "a"]].to_numpy(), 1 - y)
    np.testing.assert_array_equal(
        fitted.predict_proba(X[["c", "a"]].to_numpy()), fresh.predict_proba(X[["c", "a"]].to_numpy())
    )


def test_other_tools_take_the_models(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        calibrated = CalibratedClassifierCV(pr.AdditiveRiskModel(), cv=3).fit(X, y)
        model = pr.AdditiveRiskModel().fit(X, y)
    assert calibrated.predict_proba(X).shape == (300, 2)
    importance = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean[0] > importance.importances_mean[2]


def test_feature_importances(data):
    X, y = data
    model = pr.make_classifier("SmoothARM1").fit(X, y)
    shares = model.feature_importances_
    assert shares.sum() == pytest.approx(1)
    assert shares[2] < min(shares[:2]), "c is noise"
    chosen = SelectFromModel(clone(model), max_features=2, threshold=-np.inf).fit(X, y)
    assert chosen.get_support().tolist() == [True, True, False]
    ranks = RFE(clone(model), n_features_to_select=2).fit(X, y)
    assert ranks.support_.tolist() == [True, True, False]
    pairs = pr.make_classifier("SmoothARM1", pairs=[("a", "b")]).fit(X, y)
    assert pairs.feature_importances_.sum() == pytest.approx(1)
    assert pr.NonnegativeLogisticRegression().fit(X, y).feature_importances_.sum() == pytest.approx(1)


def test_the_default_has_flat_parameters(data):
    X, y = data
    found = GridSearchCV(pr.make_classifier("SmoothARM1"), {"max_bins": [2, 8], "pieces": [3, "auto"]}, cv=3).fit(X, y)
    assert found.best_estimator_.max_bins == found.best_params_["max_bins"]
    with pytest.raises(pr.errors.DataError, match="pieces"):
        pr.AdditiveRiskModel(link="bands", pieces=1).fit(X, y)


def test_bands_by_themselves_are_those_of_the_wrapper(data):
    X, y = data
    for shapes in ("steps", "smooth"):
        own = pr.AdditiveRiskModel(link="bands", shapes=shapes).fit(X, y)
        wrapped = pr.Linearised(pr.AdditiveRiskModel(shapes=shapes), pieces="auto").fit(X, y)
        assert own.form_ == wrapped.form_
        assert own.fit_record_.clipped == wrapped.fit_record_.clipped
