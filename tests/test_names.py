"""Columns are known by name, never by position: through pipelines, at fit, and everywhere a fitted model reads rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import plainrisk as pr
from plainrisk.errors import DataError

NAMES = ["late", "income", "age"]
SCHEMA = pr.Schema(features={"late": {"direction": "increasing"}, "income": {"direction": "decreasing"}, "age": {}})
NAMELESS = r"knows its features by name.*columns=\[\.\.\.\].*set_output\(transform=\"pandas\"\)"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"late": rng.integers(0, 5, 400), "income": rng.normal(30, 8, 400)})
    X["age"] = rng.integers(20, 70, 400)
    y = (rng.random(400) < 1 / (1 + np.exp(3 - X["late"] + (X["income"] - 30) / 10))).astype(int)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def model(data):
    return pr.AdditiveRiskModel(SCHEMA).fit(*data)


def shuffled():
    return ColumnTransformer([("b", "passthrough", ["age", "income"]), ("a", "passthrough", ["late"])])


def test_a_column_transformer_with_numpy_output_is_refused_and_with_pandas_output_is_right(data, model):
    X, y = data
    with pytest.raises(DataError, match=NAMELESS):
        make_pipeline(shuffled(), pr.AdditiveRiskModel(SCHEMA)).fit(X, y)
    steps = make_pipeline(shuffled(), pr.AdditiveRiskModel(pr.Schema(features=renamed(SCHEMA))))
    steps.set_output(transform="pandas").fit(X, y)
    np.testing.assert_allclose(steps.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-9)
    steps.set_output(transform="default")
    with pytest.raises(DataError, match=NAMELESS):
        steps.predict_proba(X)


def renamed(schema):
    return {("a__" if name == "late" else "b__") + name: feature for name, feature in schema.features.items()}


@pytest.mark.parametrize("order", [NAMES, ["age", "income", "late"]])
@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["schema", "names of a frame"])
def test_an_array_is_refused_in_any_order_unless_its_columns_are_named(data, schema, order):
    X, y = data
    fitted = pr.AdditiveRiskModel(schema).fit(X, y)
    array = X[order].to_numpy(dtype=float)
    with pytest.raises(DataError, match=NAMELESS):
        fitted.predict_proba(array)
    np.testing.assert_array_equal(fitted.predict_proba(array, columns=order), fitted.predict_proba(X))


def test_a_renamed_column_is_refused_and_a_further_one_ignored(data, model):
    X, _ = data
    with pytest.raises(DataError, match=r"feature 'late' is not in the data\. Did you mean 'Late'"):
        model.predict_proba(X.rename(columns={"late": "Late"}))
    np.testing.assert_array_equal(model.predict_proba(X.assign(zip=1)[["zip", *NAMES[::-1]]]), model.predict_proba(X))
    with pytest.raises(DataError, match="feature 'late' is not in the data"):
        model.predict_proba(X.to_numpy(), columns=["Late", "income", "age"])


@pytest.mark.parametrize(
    "build",
    [
        lambda: pr.AdditiveRiskModel(SCHEMA),
        lambda: pr.NonnegativeLogisticRegression(SCHEMA),
        lambda: pr.TwoLayerRiskModel(schema=SCHEMA),
        lambda: pr.SubscaleMixture(schema=SCHEMA),
        lambda: pr.Linearised(pr.AdditiveRiskModel(SCHEMA), pieces=3),
        lambda: pr.Linearised(LogisticRegression(), pieces=3),
    ],
    ids=["ARM", "NNLR", "two layers", "mixture", "bands", "foreign"],
)
def test_columns_say_which_is_which_at_fit(data, build):
    X, y = data
    order = ["income", "age", "late"]
    named = build().fit(X[order], y)
    found = build().fit(X[order].to_numpy(dtype=float), y, columns=order)
    np.testing.assert_allclose(found.predict_proba(X), named.predict_proba(X), rtol=0, atol=1e-12)
    assert found.feature_names_in_.tolist() == order


READS = {
    "predict_proba": lambda m, X, **o: m.predict_proba(X, **o),
    "predict": lambda m, X, **o: m.predict(X, **o),
    "score": lambda m, X, **o: m.score(X, np.arange(len(X)) % 2, **o),
    "explain": lambda m, X, **o: m.explain(X, **o).contributions,
    "reasons": lambda m, X, **o: m.reasons(X, **o).codes,
    "what_if": lambda m, X, **o: str(m.what_if(X[:1], 0.2, **o)),
    "what_ifs": lambda m, X, **o: str(m.what_ifs(X[:5], 0.2, **o)),
    "overview": lambda m, X, **o: m.overview(X, **o).importance,
    "drift": lambda m, X, **o: m.drift(X, X, **o).features,
}


@pytest.mark.parametrize("verb", READS)
def test_every_verb_refuses_rows_without_names_and_takes_columns(data, model, verb):
    X, read = data[0], READS[verb]
    for known in (model, pr.RiskModel(model.form_)):
        with pytest.raises(DataError, match=NAMELESS):
            read(known, X.to_numpy(dtype=float))
        found, expected = read(known, X.to_numpy(dtype=float), columns=NAMES), read(known, X)
        np.testing.assert_array_equal(np.asarray(found, dtype=object), np.asarray(expected, dtype=object))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["late", "income"], "columns lists 2 names, but the rows have 3 columns"),
        (["late", "late", "age"], "column 'late' appears 2 times"),
        ("late", "columns must be a list of column names"),
        ([1, 2, 3], "columns must be a list of column names"),
    ],
)
def test_columns_that_can_not_be_meant_are_refused(data, model, columns, message):
    with pytest.raises(DataError, match=message):
        model.predict_proba(data[0].to_numpy(), columns=columns)


def test_rows_with_names_keep_them(data, model):
    X, _ = data
    with pytest.raises(DataError, match="for rows without names, but these have other names"):
        model.predict_proba(X, columns=NAMES[::-1])
    np.testing.assert_array_equal(model.predict_proba(X, columns=NAMES), model.predict_proba(X))


def test_a_model_fitted_without_names_scores_arrays_also_from_a_file(data, tmp_path):
    X, y = data
    array = X.to_numpy(dtype=float)
    fitted = pr.AdditiveRiskModel().fit(array, y)
    fitted.save(tmp_path / "m.json")
    np.testing.assert_array_equal(pr.load(tmp_path / "m.json").predict_proba(array), fitted.predict_proba(array))
    with pytest.raises(DataError, match="X has 2 features, but RiskForm is expecting 3 features"):
        fitted.predict_proba(array[:, :2])
