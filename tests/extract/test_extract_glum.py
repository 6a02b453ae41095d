from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from plainrisk.errors import ExtractionError
from plainrisk.extract import extract_form

glum = pytest.importorskip("glum")

LIGHT = {"family": "binomial", "alpha": 0.01}


@pytest.fixture(scope="module")
def rows(credit):
    X = credit.X.drop(columns="debt")
    return X.assign(income=X.income / 1000, job=X.job.astype("category"), region=X.region.astype("category"))


@pytest.mark.parametrize("drop_first", [False, True])
@pytest.mark.parametrize("model", ["one", "cv"])
def test_numbers_and_categories(credit, rows, drop_first, model):
    made = {
        "one": glum.GeneralizedLinearRegressor(drop_first=drop_first, **LIGHT),
        "cv": glum.GeneralizedLinearRegressorCV(
            family="binomial", drop_first=drop_first, n_alphas=3, cv=2, l1_ratio=0.5
        ),
    }[model].fit(rows, credit.y)
    form = extract_form(made, rows)
    np.testing.assert_allclose(form.score(rows), made.linear_predictor(rows), rtol=0, atol=1e-12)
    np.testing.assert_allclose(extract_form(made).score(rows), made.linear_predictor(rows), rtol=0, atol=1e-12)
    assert form.columns == ("age", "income", "delays", "job", "region")
    assert form.parts[0].shapes["region"].levels.categories == ("1", "2", "3", "4")


@pytest.mark.parametrize("method", ["zero", "convert"])
@pytest.mark.parametrize("drop_first", [False, True])
def test_missing_categories(credit, rows, method, drop_first):
    X = rows.copy()
    X.loc[X.index[::6], "job"] = None
    model = glum.GeneralizedLinearRegressor(cat_missing_method=method, drop_first=drop_first, **LIGHT)
    model.fit(X, credit.y)
    np.testing.assert_allclose(extract_form(model, X).score(X), model.linear_predictor(X), rtol=0, atol=1e-12)


def test_arrays_and_polars(credit, rows):
    X = rows[["age", "income", "delays"]]
    model = glum.GeneralizedLinearRegressor(**LIGHT).fit(X.to_numpy(), credit.y)
    np.testing.assert_allclose(extract_form(model, X).score(X), model.linear_predictor(X), rtol=0, atol=1e-12)
    frame = pl.from_pandas(X)
    model = glum.GeneralizedLinearRegressor(**LIGHT).fit(frame, credit.y)
    np.testing.assert_allclose(
        extract_form(model, frame).score(frame), model.linear_predictor(frame), rtol=0, atol=1e-12
    )


def test_refusals(credit, rows):
    with pytest.raises(ExtractionError, match="not fitted"):
        extract_form(glum.GeneralizedLinearRegressor(**LIGHT))
    poisson = glum.GeneralizedLinearRegressor(family="poisson", alpha=0.1).fit(rows, credit.y)
    with pytest.raises(ExtractionError, match="PoissonDistribution with LogLink"):
        extract_form(poisson)
    cloglog = glum.GeneralizedLinearRegressor(link="cloglog", **LIGHT).fit(rows, credit.y)
    with pytest.raises(ExtractionError, match="BinomialDistribution with CloglogLink"):
        extract_form(cloglog)
    formula = glum.GeneralizedLinearRegressor(formula="age + income", **LIGHT).fit(rows, credit.y)
    with pytest.raises(ExtractionError, match="formula"):
        extract_form(formula)
