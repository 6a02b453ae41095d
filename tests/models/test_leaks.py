"""Every fit warns of a feature that separates the outcomes by itself, once, at the line of the caller."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import plainrisk as pr

WORDS = "Data: feature 'knows' may be a leak: AUC "


@pytest.fixture(scope="module")
def leaking():
    """Credit data, with a number and a category that know the outcome but for a little noise."""
    credit = pr.datasets.make_credit(2000, seed=5)
    rng = np.random.default_rng(0)
    y = np.asarray(credit.target)
    told = np.where(rng.random(len(y)) < 0.01, 1 - y, y)
    frame = pl.DataFrame(credit.frame).with_columns(
        knows=y + rng.normal(0, 0.3, len(y)), status=pl.Series(told).cast(str)
    )
    features = {**credit.schema.features, "knows": {}, "status": {"kind": "categorical"}}
    first = next(iter(credit.schema.subscales))
    subscales = {**credit.schema.subscales, first: (*credit.schema.subscales[first], "knows", "status")}
    return frame, y, credit.schema.replace(features=features, subscales=subscales)


def leaks_told(fit):
    """The warnings of leaks that a call gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert {w.filename for w in caught if "leak" in str(w.message)} <= {__file__}
    return [str(w.message) for w in caught if "leak" in str(w.message)]


@pytest.mark.parametrize("name", pr.CLASSIFIERS)
def test_every_model_tells_a_leak_once(name, leaking):
    X, y, schema = leaking
    told = leaks_told(lambda: pr.make_classifier(name, schema).fit(X, y))
    assert [words.split("'")[1] for words in told] == ["knows", "status"]
    assert told[0].startswith(WORDS)


def test_without_a_schema_and_without_names(leaking):
    X, y, _ = leaking
    assert len(leaks_told(lambda: pr.AdditiveRiskModel().fit(X, y))) == 2
    told = leaks_told(lambda: pr.AdditiveRiskModel().fit(X.select("knows", "income").to_numpy(), y))
    assert len(told) == 1
    assert "feature 'x0' may be a leak" in told[0]


@pytest.mark.parametrize("name", ["SmoothARM1", "ARM2", "NNLR", "XGB"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_in_batches(name, kind, leaking, tmp_path):
    X, y, schema = leaking
    path = tmp_path / f"rows.{kind}"
    getattr(X.with_columns(bad=y), f"write_{kind}")(path)
    rows = getattr(pr.rows, kind)(path)
    told = leaks_told(lambda: pr.make_classifier(name, schema).fit(rows, y="bad"))
    assert [words.split("'")[1] for words in told] == ["knows", "status"]


@pytest.mark.parametrize("name", ["ARM1", "NNLR"])
def test_weights_do_not_hide_a_leak(name, leaking):
    X, y, schema = leaking
    model = pr.make_classifier(name, schema, class_weight="balanced")
    assert len(leaks_told(lambda: model.fit(X, y, sample_weight=np.full(len(y), 1e-3)))) == 2


def test_which_outcome_is_bad_does_not_matter(leaking):
    X, y, schema = leaking
    turned = schema.replace(outcome={"adverse": "negative"})
    assert len(leaks_told(lambda: pr.make_classifier("ARM1", turned).fit(X, 1 - y))) == 2


def test_folds_and_refits_say_nothing(leaking):
    X, y, schema = leaking
    model = pr.make_classifier("ARM1", schema)
    assert not leaks_told(lambda: pr.cross_validate(model, X, y, cv=3))
    assert len(leaks_told(lambda: model.fit(X, y))) == 2
    assert not leaks_told(lambda: pr.bootstrap(model, X, y, n=3))


@pytest.mark.parametrize("name", pr.CLASSIFIERS)
def test_credit_data_have_no_leak(name):
    german = pr.datasets.load("german")
    assert not leaks_told(lambda: pr.make_classifier(name, german.schema).fit(german.frame, german.target))
    credit = pr.datasets.make_credit(2000, seed=5)
    assert not leaks_told(lambda: pr.make_classifier(name, credit.schema).fit(credit.frame, credit.target))


def test_a_few_rows_and_names_of_rows_are_no_leak():
    few = pl.DataFrame({"u": np.arange(50.0)})
    assert not leaks_told(lambda: pr.AdditiveRiskModel().fit(few, np.arange(50) >= 25))
    each = pl.DataFrame({"id": [f"n{k}" for k in range(400)], "u": np.arange(400) % 7.0})
    assert not leaks_told(lambda: pr.AdditiveRiskModel(ridge="auto").fit(each, np.arange(400) % 3 == 0))
