from __future__ import annotations

import numpy as np
import pytest

from plainrisk.errors import ExtractionError
from plainrisk.extract import extract_form
from plainrisk.form import Categories, Table

glassbox = pytest.importorskip("interpret.glassbox")

# It warns that its own plots do not show missing values.
pytestmark = pytest.mark.filterwarnings("ignore:Missing values detected")

SMALL = {"interactions": 0, "outer_bags": 1, "max_rounds": 30, "n_jobs": 1}


@pytest.fixture(scope="module")
def model(credit):
    kinds = ["continuous"] * 4 + ["nominal", "nominal"]
    X = credit.X.copy()
    X.loc[X.index[::9], "job"] = None
    return glassbox.ExplainableBoostingClassifier(feature_types=kinds, **SMALL).fit(X, credit.y)


def test_the_score_is_its_decision_function(credit, model):
    form = extract_form(model, credit.X)
    np.testing.assert_allclose(form.score(credit.X), model.decision_function(credit.X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        extract_form(model).score(credit.X), model.decision_function(credit.X), rtol=0, atol=1e-12
    )
    assert all(isinstance(shape, Table) for shape in form.parts[0].shapes.values())
    assert isinstance(form.parts[0].shapes["region"].levels, Categories)


def test_cuts_missing_and_unknown(credit, model):
    form = extract_form(model, credit.X)
    cuts = model.bins_[0][0]
    X = credit.X.iloc[: 2 * len(cuts)].copy() if 2 * len(cuts) <= len(credit.X) else credit.X.copy()
    X["age"] = np.resize(np.r_[cuts, np.nextafter(cuts, -np.inf)], len(X))
    X.loc[X.index[:5], "debt"] = np.nan
    X.loc[X.index[5:9], "job"] = "actor"
    X.loc[X.index[9:12], "job"] = None
    X.loc[X.index[9:12], "region"] = 77
    np.testing.assert_allclose(form.score(X), model.decision_function(X), rtol=0, atol=1e-12)


def test_arrays_have_no_names(credit):
    X = credit.numbers.to_numpy()
    model = glassbox.ExplainableBoostingClassifier(**SMALL).fit(X, credit.y)
    form = extract_form(model, credit.numbers)
    assert form.columns == ("age", "income", "delays")
    np.testing.assert_allclose(form.score(credit.numbers), model.decision_function(X), rtol=0, atol=1e-12)


def test_interactions_are_pairs(credit):
    kinds = ["continuous"] * 4 + ["nominal", "nominal"]
    X = credit.X.copy()
    X.loc[X.index[::9], "job"] = None
    X.loc[X.index[::7], "age"] = np.nan
    job = list(X.columns).index("job")
    options = {**SMALL, "interactions": [(0, 1), (0, job)], "feature_types": kinds}
    model = glassbox.ExplainableBoostingClassifier(**options).fit(X, credit.y)
    odd = X.copy()
    odd["job"] = ["never seen", *X["job"][1:]]
    for form in (extract_form(model, X), extract_form(model)):
        assert len(form.parts[0].pairs) == 2
        for rows in (X, odd):
            np.testing.assert_allclose(form.score(rows), model.decision_function(rows), rtol=0, atol=1e-12)
    for pair in extract_form(model, X).parts[0].pairs:
        assert np.sum(pair.weights) == len(X)
        assert np.vdot(pair.weights, pair.scores) == pytest.approx(0.0, abs=1e-9)


def test_many_classes_are_refused(credit):
    many = glassbox.ExplainableBoostingClassifier(**SMALL).fit(credit.numbers, credit.X.region)
    with pytest.raises(ExtractionError, match="multi-class"):
        extract_form(many)
    with pytest.raises(ExtractionError, match="not fitted"):
        extract_form(glassbox.ExplainableBoostingClassifier())
