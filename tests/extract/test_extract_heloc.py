"""Every library on real data: the form's score against the model's own log odds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from plainrisk.extract import extract_form
from plainrisk.form import Part, TreePart

CODES = ["MaxDelq2PublicRecLast12M", "MaxDelqEver"]


def compare(model, own, X, far=None, atol=1e-9):
    form = extract_form(model, X)
    np.testing.assert_allclose(form.score(X), own(X), rtol=0, atol=atol)
    if far is not None:
        np.testing.assert_allclose(form.score(far), own(far), rtol=0, atol=atol)
    return form


def test_sklearn(heloc, far):
    X, y = heloc.X, heloc.y
    for last in (LogisticRegression(), SGDClassifier(loss="log_loss", random_state=0)):
        model = make_pipeline(StandardScaler(), last).fit(X, y)
        compare(model, model.decision_function, X, far)
    numbers = [c for c in X if c not in CODES]
    scaled = make_pipeline(SimpleImputer(missing_values=-9.0, add_indicator=True), StandardScaler())
    parts = make_column_transformer(
        (scaled, numbers[:12]),
        (KBinsDiscretizer(5, strategy="uniform"), numbers[8:]),
        (OneHotEncoder(), CODES),
    )
    model = make_pipeline(parts, LogisticRegression(max_iter=1000)).fit(X, y)
    compare(model, model.decision_function, X)


def test_statsmodels(heloc, far):
    sm = pytest.importorskip("statsmodels.api")
    X = sm.add_constant(heloc.X)
    glm = sm.GLM(heloc.y, X, family=sm.families.Binomial())
    for results in (sm.Logit(heloc.y, X).fit(disp=0), glm.fit()):
        form = compare(results, lambda Z, r=results: np.asarray(r.predict(Z, which="linear")), X)
        expected = results.predict(sm.add_constant(far), which="linear")
        np.testing.assert_allclose(form.score(far), expected, rtol=0, atol=1e-9)


def test_ebm(heloc, far):
    glassbox = pytest.importorskip("interpret.glassbox")
    kinds = ["nominal" if c in CODES else "continuous" for c in heloc.X]
    model = glassbox.ExplainableBoostingClassifier(
        interactions=0, outer_bags=1, max_rounds=40, n_jobs=1, feature_types=kinds
    ).fit(heloc.X, heloc.y)
    compare(model, model.decision_function, heloc.X, far)


def test_pygam(heloc, far):
    pygam = pytest.importorskip("pygam")
    terms = pygam.l(0)
    for j, name in enumerate(heloc.X):
        terms += pygam.f(j) if name in CODES else pygam.s(j, n_splines=6 + j % 4, spline_order=1 + j % 4)
    rows = slice(None, None, 3)
    model = pygam.LogisticGAM(terms, max_iter=8, tol=1e-2).fit(heloc.X.to_numpy()[rows], heloc.y[rows])
    beyond = far.assign(**{c: heloc.X[c].to_numpy()[: 3 * len(far) : 3] for c in CODES})
    compare(model, lambda Z: model._linear_predictor(Z.to_numpy()), heloc.X, beyond)


def test_glum(heloc, far):
    glum = pytest.importorskip("glum")
    X = heloc.X.assign(**{c: heloc.X[c].astype(int).astype(str).astype("category") for c in CODES})
    model = glum.GeneralizedLinearRegressor(family="binomial", alpha=0.001).fit(X, heloc.y)
    compare(model, model.linear_predictor, X)


@pytest.mark.parametrize("depth", [1, 3])
def test_xgboost(heloc, far, depth):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=depth, missing=-9.0, n_jobs=1)
    model.fit(heloc.X, heloc.y)
    # XGBoost adds up in single precision.
    form = compare(model, lambda Z: model.predict(Z, output_margin=True), heloc.X, far, atol=1e-5)
    assert isinstance(form.parts[0], Part if depth == 1 else TreePart)


@pytest.mark.parametrize("depth", [1, 3])
def test_lightgbm(heloc, far, depth):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=60, max_depth=depth, verbose=-1, n_jobs=1)
    model.fit(heloc.X, heloc.y)
    form = compare(model, lambda Z: model.predict(Z, raw_score=True), heloc.X, far)
    assert isinstance(form.parts[0], Part if depth == 1 else TreePart)


@pytest.mark.parametrize("depth", [1, 3])
def test_sklearn_trees(heloc, far, depth):
    fast = HistGradientBoostingClassifier(max_iter=40, max_depth=depth)
    slow = GradientBoostingClassifier(n_estimators=8, max_depth=depth, random_state=0)
    for model in (fast, slow):
        model.fit(heloc.X, heloc.y)
        form = compare(model, model.decision_function, heloc.X, far)
        assert isinstance(form.parts[0], Part if depth == 1 else TreePart)
