from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from plainrisk.errors import DataError, SchemaError
from plainrisk.explain import certify, explain
from plainrisk.extract import extract_form
from plainrisk.form import Line, read_model, write_model
from plainrisk.schema import Schema


@pytest.fixture(scope="module")
def rows(credit):
    return credit.X[["age", "income", "delays", "job"]]


@pytest.fixture(scope="module")
def model(credit, rows):
    """A line, a table of bins, a curve and a table of categories."""
    bins = KBinsDiscretizer(4, strategy="uniform")
    parts = make_column_transformer(
        (StandardScaler(), ["age", "delays"]), (bins, ["income", "delays"]), (OneHotEncoder(), ["job"])
    )
    return make_pipeline(parts, LogisticRegression()).fit(rows, credit.y)


def test_every_shape_is_centered_and_counted(credit, rows, model):
    form = extract_form(model, rows, y=credit.y)
    part = form.parts[0]
    kinds = {name: type(shape).__name__ for name, shape in part.shapes.items()}
    assert kinds == {"age": "Line", "income": "Table", "delays": "Curve", "job": "Table"}
    for name, values in part.terms(form.align(rows), form.schema).items():
        assert values.mean() == pytest.approx(0.0, abs=1e-12), name
    assert part.intercept == pytest.approx(model.decision_function(rows).mean(), abs=1e-10)
    for shape in part.shapes.values():
        assert sum(shape.weights) == len(rows)
        assert sum(shape.positives) == credit.y.sum()
    jobs = part.shapes["job"]
    counts = pd.Series(credit.y).groupby(rows.job).agg(["size", "sum"]).loc[list(jobs.levels.categories)]
    assert list(jobs.weights[:3]) == counts["size"].tolist()
    assert list(jobs.positives[:3]) == counts["sum"].tolist()


def test_weights_count_as_repeated_rows(credit, rows, model, rng):
    times = rng.integers(0, 4, len(rows))
    weighted = extract_form(model, rows, y=credit.y, sample_weight=times.astype(float))
    repeated = extract_form(model, rows.loc[rows.index.repeat(times)], y=np.repeat(credit.y, times))
    np.testing.assert_allclose(weighted.score(rows), repeated.score(rows), rtol=0, atol=1e-12)
    for name, shape in weighted.parts[0].shapes.items():
        other = repeated.parts[0].shapes[name]
        np.testing.assert_allclose(shape.weights, other.weights)
        np.testing.assert_allclose(shape.positives, other.positives)
        np.testing.assert_allclose(shape.scores, other.scores, rtol=0, atol=1e-12)


def test_without_rows_the_levels_of_a_model_count_as_seen_and_the_values_of_a_line_do_not(rows, model):
    form = extract_form(model)
    part = form.parts[0]
    assert part.shapes["age"].weights == (0.0, 0.0)
    assert part.shapes["job"].weights == (1.0, 1.0, 1.0, 0.0, 0.0)
    assert set(part.shapes["job"].positives) == {0.0}
    with pytest.raises(DataError, match=r"'age' has no training counts\. Pass portfolio=rows"):
        explain(form, rows)  # where a line is 0 is no typical applicant
    found, known = explain(form, rows, portfolio=rows), explain(extract_form(model, rows), rows)
    np.testing.assert_allclose(found.contributions, known.contributions, rtol=0, atol=1e-10)


def test_the_form_can_be_explained_certified_and_saved(rows, model, tmp_path):
    form = extract_form(model, rows)
    explanation = explain(form, rows, unit="log odds")
    np.testing.assert_allclose(explanation.total, model.decision_function(rows), rtol=0, atol=1e-10)
    assert certify(form).valid
    write_model(tmp_path / "model.json", form, None)
    assert read_model(tmp_path / "model.json").form == form


def test_the_schema_gives_directions_reasons_and_subscales(credit, rows, model):
    schema = Schema(
        features={
            "age": {"direction": "decreasing", "reason": "too young"},
            "delays": {"direction": "increasing"},
            "job": {"kind": "categorical"},
            "shoe size": {},
        },
        subscales={"person": ["age", "job"], "clothes": ["shoe size"]},
    )
    form = extract_form(model, rows, schema=schema)
    assert list(form.schema.features) == ["age", "income", "delays", "job"]
    assert form.schema.features["age"] == schema.features["age"]
    assert form.schema.features["income"].direction == "none"
    assert form.schema.subscales == {"person": ("age", "job")}
    names = [check.name for check in certify(form).checks]
    assert names[:2] == ["monotone in age", "monotone in delays"]


def test_the_positive_outcome_may_be_the_models_first_class(credit, rows, model):
    words = np.where(credit.y == 1, "bad", "good")
    turned = clone(model).fit(rows, words)
    assert turned.classes_.tolist() == ["bad", "good"]
    schema = Schema(target="outcome", positive="bad")
    form = extract_form(turned, rows, schema=schema, y=words)
    assert form.classes == ("good", "bad")
    np.testing.assert_allclose(form.risk(rows), turned.predict_proba(rows)[:, 0], rtol=0, atol=1e-12)
    assert sum(form.parts[0].shapes["age"].positives) == credit.y.sum()
    assert extract_form(turned, rows).classes == ("bad", "good")
    with pytest.raises(SchemaError, match="positive label 'awful' is not an outcome"):
        extract_form(turned, rows, schema=Schema(positive="awful"))


def test_turned_trees(credit):
    X, words = credit.numbers, np.where(credit.y == 1, "bad", "good")
    trees = HistGradientBoostingClassifier(max_iter=5).fit(X, words)
    form = extract_form(trees, X, schema=Schema(positive="bad"))
    np.testing.assert_allclose(form.risk(X), trees.predict_proba(X)[:, 0], rtol=0, atol=1e-12)


def test_a_coded_outcome_is_left_as_it_is(credit):
    trees = HistGradientBoostingClassifier(max_iter=5).fit(credit.numbers, credit.y)
    form = extract_form(trees, credit.numbers, schema=Schema(positive="Bad"))
    np.testing.assert_allclose(form.score(credit.numbers), trees.decision_function(credit.numbers), rtol=0, atol=1e-12)


def test_special_values_become_levels_with_the_effect_they_have(credit):
    X = credit.numbers.assign(delays=np.where(credit.numbers.delays > 2, -9.0, credit.numbers.delays))
    model = LogisticRegression(max_iter=5000).fit(X / [1, 1000, 1], credit.y)
    schema = Schema(features={"delays": {"special_values": [-9]}})
    form = extract_form(model, X / [1, 1000, 1], schema=schema)
    line = form.parts[0].shapes["delays"]
    assert isinstance(line, Line)
    assert line.levels.special_values == (-9.0,)
    assert line.weights[1] == (X.delays == -9).sum()
    assert line.center == pytest.approx(X.delays[X.delays != -9].mean())
    np.testing.assert_allclose(
        form.score(X / [1, 1000, 1]), model.decision_function(X / [1, 1000, 1]), rtol=0, atol=1e-12
    )


def test_categories_in_the_order_of_the_schema(credit):
    X = credit.X[["job", "region"]]
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X, credit.y)
    features = {
        "job": {"kind": "categorical", "categories": ["miner", "clerk"], "special_values": ["none"]},
        "region": {"direction": "increasing"},
    }
    form = extract_form(model, X, schema=Schema(features=features))
    assert form.parts[0].shapes["job"].levels.categories == ("miner", "clerk", "none", "baker")
    assert form.parts[0].shapes["job"].levels.n_ordered == 2
    # The schema says a number, the model reads categories: still a direction, over the numbers in order.
    assert form.schema.features["region"].kind == "categorical"
    assert form.schema.features["region"].direction == "increasing"
    np.testing.assert_allclose(form.score(X), model.decision_function(X), rtol=0, atol=1e-12)
    no_order = Schema(features={"job": {"kind": "categorical", "direction": "increasing", "categories": ["x"]}})
    assert extract_form(model, schema=no_order).schema.features["job"].direction == "increasing"
    words = Schema(features={"job": {"direction": "increasing"}})
    with pytest.raises(SchemaError, match="'job' has a direction, but its categories are not numbers"):
        extract_form(model, schema=words)


def test_outcomes_and_weights_are_checked(credit, rows, model):
    with pytest.raises(DataError, match="X has 600 rows, y 10"):
        extract_form(model, rows, y=credit.y[:10])
    with pytest.raises(DataError, match="outcome that the model does not know; the model's outcomes are '0' and '1'"):
        extract_form(model, rows, y=np.where(credit.y == 1, 7, 0))
    with pytest.raises(DataError, match="sample_weight must be finite and not negative; row 0 is not"):
        extract_form(model, rows, sample_weight=np.full(600, -1.0))


def test_an_unseen_level_may_be_an_error(rows, model):
    schema = Schema(features={"job": {"kind": "categorical", "unseen": "error"}})
    form = extract_form(model, rows, schema=schema)
    with pytest.raises(DataError, match="level 'unseen' was not in the training data"):
        form.score(rows.iloc[:1].assign(job="actor"))
