from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from plainrisk.errors import ExtractionError
from plainrisk.extract import extract_form
from plainrisk.form import Curve, Line, Table

NUMBERS = ["age", "income", "delays"]


def bins(**parameters):
    return KBinsDiscretizer(4, strategy="uniform", **parameters)


def logistic():
    return LogisticRegression(max_iter=2000)


def agree(model, X, atol=1e-12):
    """The form is the model, with and without the training rows; return the form."""
    form = extract_form(model, X)
    expected = model.decision_function(X)
    np.testing.assert_allclose(form.score(X), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(extract_form(model).score(X), expected, rtol=0, atol=atol)
    return form


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((-1, 2)),
        MaxAbsScaler(),
        RobustScaler(),
        RobustScaler(with_centering=False),
        "passthrough",
        FunctionTransformer(),
        SelectKBest(k=2),
    ],
    ids=str,
)
def test_scalers_and_selectors(credit, scaler):
    X = credit.numbers / [1, 1000, 1]
    model = Pipeline([("first", scaler), ("last", logistic())]).fit(X, credit.y)
    assert all(isinstance(s, Line) for s in agree(model, X).parts[0].shapes.values())


def test_bins_put_their_edges_on_the_right(credit):
    for encode in ("onehot", "onehot-dense", "ordinal"):
        model = make_pipeline(bins(encode=encode), logistic()).fit(credit.numbers, credit.y)
        form = agree(model, credit.numbers)
        edges = model[0].bin_edges_[0]
        at = credit.numbers.iloc[: 2 * len(edges)].copy()
        at["age"] = [*edges, *np.nextafter(edges, -np.inf)]
        np.testing.assert_allclose(form.score(at), model.decision_function(at), rtol=0, atol=1e-12)
        assert isinstance(form.parts[0].shapes["age"], Table)


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_imputers(credit, strategy):
    X = credit.X[["age", "debt"]]
    imputer = SimpleImputer(strategy=strategy, fill_value=3.0, add_indicator=True)
    form = agree(make_pipeline(imputer, StandardScaler(), logistic()).fit(X, credit.y), X)
    debt = form.parts[0].shapes["debt"]
    assert debt.weights == (float(X.debt.notna().sum()), float(X.debt.isna().sum()))


def test_an_imputer_may_come_after_the_scaler_and_replace_a_code(credit):
    X = credit.X[["age", "debt"]].fillna(-9.0)
    coded = SimpleImputer(missing_values=-9.0, strategy="median")
    form = agree(make_pipeline(coded, bins(), logistic()).fit(X, credit.y), X)
    assert form.parts[0].shapes["debt"].levels.special_values == (-9.0,)
    X = credit.X[["age", "debt"]]
    agree(make_pipeline(StandardScaler(), SimpleImputer(), logistic()).fit(X, credit.y), X)


def test_an_imputer_of_whole_numbers_cuts_its_mean(credit):
    X = credit.X[["region"]].assign(delays=credit.X.delays.astype(int))
    X.loc[X.index[:100], "region"] = -1
    agree(make_pipeline(SimpleImputer(missing_values=-1), logistic()).fit(X, credit.y), X)


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("drop", [None, "first", "if_binary", ["clerk", 3]])
@pytest.mark.parametrize("unknown", ["ignore", "error"])
def test_one_hot(credit, drop, unknown):
    X = credit.X[["job", "region"]]
    encoder = OneHotEncoder(drop=drop, handle_unknown=unknown)
    model = make_pipeline(encoder, logistic()).fit(X, credit.y)
    form = agree(model, X)
    assert form.parts[0].shapes["region"].levels.categories == ("1", "2", "3", "4")
    strange = pd.DataFrame({"job": ["actor"], "region": [9]})
    if unknown == "ignore":
        np.testing.assert_allclose(form.score(strange), model.decision_function(strange), rtol=0, atol=1e-12)
    else:
        assert form.score(strange).tolist() == [form.parts[0].intercept]  # neutral in both


def test_missing_as_a_category(credit):
    X = credit.X[["job"]].copy()
    X.loc[X.index[::7], "job"] = None
    form = agree(make_pipeline(OneHotEncoder(), logistic()).fit(X, credit.y), X)
    assert form.parts[0].shapes["job"].weights[3] == len(X.index[::7])
    filled = SimpleImputer(strategy="constant", fill_value="baker", missing_values=None)
    texts = pd.DataFrame({"job": [None if pd.isna(v) else v for v in X.job]}, dtype=object)
    agree(make_pipeline(filled, OneHotEncoder(), logistic()).fit(texts, credit.y), texts)


def test_ordinal_codes(credit):
    X = credit.X[["job", "region"]].copy()
    X.loc[X.index[::7], "job"] = None
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    model = make_pipeline(encoder, StandardScaler(), logistic()).fit(X, credit.y)
    form = agree(model, X)
    strange = pd.DataFrame({"job": ["actor"], "region": [9]})
    np.testing.assert_allclose(form.score(strange), model.decision_function(strange), rtol=0, atol=1e-12)


@pytest.mark.parametrize("remainder", ["drop", "passthrough"])
def test_column_transformer(credit, remainder):
    X = credit.X.drop(columns="debt")
    parts = ColumnTransformer(
        [
            ("scaled", make_pipeline(SimpleImputer(), RobustScaler()), ["income", "age"]),
            ("coded", OneHotEncoder(), make_column_selector(dtype_include=["object", "string"])),
            ("binned", bins(), [0]),
            ("nothing", StandardScaler(), []),
            ("gone", "drop", ["region"]),
        ],
        remainder=remainder,
        transformer_weights={"coded": 2.0},
    )
    form = agree(Pipeline([("parts", parts), ("last", logistic())]).fit(X, credit.y), X)
    used = {"age", "income", "job"} | ({"delays"} if remainder == "passthrough" else set())
    assert set(form.schema.features) == used
    assert form.columns == tuple(X)
    # A line and steps on the same feature: pieces of lines that jump, exact at the edges too.
    assert isinstance(form.parts[0].shapes["age"], Curve)


def test_a_sum_of_line_and_steps_is_exact_at_the_edges(credit):
    both = FeatureUnion([("line", StandardScaler()), ("steps", bins())])
    model = make_pipeline(both, logistic()).fit(credit.numbers, credit.y)
    form = agree(model, credit.numbers)
    edges = model[0].transformer_list[1][1].bin_edges_[0]
    at = credit.numbers.iloc[: 2 * len(edges)].copy()
    at["age"] = [*edges, *np.nextafter(edges, -np.inf)]
    np.testing.assert_allclose(form.score(at), model.decision_function(at), rtol=0, atol=1e-12)


def test_arrays_are_read_by_position(credit):
    X = credit.numbers.to_numpy()
    model = make_pipeline(make_column_transformer((StandardScaler(), [2, 0])), logistic()).fit(X, credit.y)
    form = extract_form(model, X)
    np.testing.assert_allclose(form.score(X), model.decision_function(X), rtol=0, atol=1e-12)
    assert list(form.schema.features) == ["x0", "x2"]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (PCA(2), "PCA cannot be read: it may mix features"),
        (PolynomialFeatures(2), "PolynomialFeatures cannot be read"),
        (MinMaxScaler(clip=True), "clip=True"),
        (FunctionTransformer(np.log1p), "what log1p does"),
        (make_pipeline(StandardScaler(), bins()), "scaled before a step that bins it"),
        (make_pipeline(StandardScaler(), OneHotEncoder(handle_unknown="ignore")), "Encode the feature as it is"),
        (make_pipeline(StandardScaler(), SimpleImputer(missing_values=0.0)), "Put the imputer first"),
        (OneHotEncoder(max_categories=3, handle_unknown="ignore"), "infrequent"),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), "unknown_value is NaN"),
        (
            FeatureUnion([("a", StandardScaler()), ("b", OneHotEncoder(handle_unknown="ignore"))]),
            "as a number in one place and as a category in another",
        ),
    ],
    ids=lambda v: type(v).__name__,
)
def test_steps_that_are_refused(credit, step, reason):
    X = credit.numbers / [1, 1000, 1]
    model = make_pipeline(step, LogisticRegression(max_iter=2000, tol=0.1)).fit(X, credit.y)
    with pytest.raises(ExtractionError, match=reason):
        extract_form(model, X)
