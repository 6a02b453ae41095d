from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import GridSearchCV

from plainrisk.extract import extract_form
from plainrisk.form import Line, Logistic, Part
from plainrisk.model import RiskModel
from plainrisk.models.arm import AdditiveRiskModel


@pytest.fixture(scope="module")
def scaled(credit):
    return (credit.numbers - credit.numbers.mean()) / credit.numbers.std()


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=0.3),
        LogisticRegression(fit_intercept=False),
        LogisticRegressionCV(Cs=3, cv=3, l1_ratios=(0.0,), scoring="neg_log_loss", use_legacy_attributes=False),
        SGDClassifier(loss="log_loss", random_state=0),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    ],
    ids=lambda m: type(m).__name__,
)
def test_the_score_is_the_models_own_log_odds(model, scaled, credit):
    model.fit(scaled, credit.y)
    form = extract_form(model, scaled)
    np.testing.assert_allclose(form.score(scaled), model.decision_function(scaled), rtol=0, atol=1e-12)
    np.testing.assert_allclose(form.risk(scaled), model.predict_proba(scaled)[:, 1], rtol=0, atol=1e-12)
    assert form.columns == ("age", "income", "delays")


def test_a_line_keeps_the_coefficient_and_is_zero_at_the_mean(credit, scaled):
    model = LogisticRegression().fit(scaled, credit.y)
    part = extract_form(model, scaled).parts[0]
    assert isinstance(part, Part)
    assert isinstance(part.link, Logistic)
    for name, coefficient in zip(scaled, model.coef_[0], strict=True):
        line = part.shapes[name]
        assert isinstance(line, Line)
        assert line.slope == coefficient
        assert line.center == pytest.approx(scaled[name].mean(), abs=1e-12)
        # A linear model has no answer for a missing value: neutral, and never seen.
        assert (line.scores[-1], line.weights[-1]) == (0.0, 0.0)
        assert line.weights[0] == len(scaled)


def test_sparse_coefficients(credit, scaled):
    model = LogisticRegression(solver="liblinear", l1_ratio=1.0, C=0.02).fit(scaled, credit.y)
    expected = model.decision_function(scaled)
    np.testing.assert_allclose(extract_form(model.sparsify(), scaled).score(scaled), expected, rtol=0, atol=1e-12)


def test_names_come_from_the_rows_where_the_model_has_none(credit, scaled):
    model = LogisticRegression().fit(scaled.to_numpy(), credit.y)
    expected = model.decision_function(scaled.to_numpy())
    named = extract_form(model, pl.from_pandas(scaled))
    assert named.columns == ("age", "income", "delays")
    np.testing.assert_allclose(named.score(scaled[["delays", "age", "income"]]), expected, rtol=0, atol=1e-12)
    bare = extract_form(model)
    assert bare.columns == ("x0", "x1", "x2")
    np.testing.assert_allclose(bare.score(scaled.to_numpy()), expected, rtol=0, atol=1e-12)


def test_text_classes_are_kept(credit, scaled):
    model = LogisticRegression().fit(scaled, np.where(credit.y == 1, "yes", "no"))
    assert extract_form(model).classes == ("no", "yes")


def test_our_own_models_are_their_form(credit):
    model = AdditiveRiskModel().fit(credit.numbers, credit.y)
    assert extract_form(model) is model.form_
    assert extract_form(RiskModel(model.form_)) is model.form_
    assert extract_form(model.form_) is model.form_
