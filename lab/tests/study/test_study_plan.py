from __future__ import annotations

from datetime import date

import msgspec
import numpy as np
import pytest

from plainrisk import Feature, Schema
from plainrisk.data.frame import as_frame
from plainrisk.errors import DataError, MissingExtraError
from plainrisk.validate.challengers import RivalModel
from plainrisk_lab.study import METRICS, ClassifierSpec, DataSpec, Metric, Plan, load_plan
from plainrisk_lab.study.challengers import build

SCHEMA = Schema(features={"age": Feature()}, subscales={"all": ("age",)})


def test_options_reach_our_classifiers() -> None:
    one = build(ClassifierSpec(name="mine", make="ARM1", options={"ridge": 0.25}), SCHEMA)
    assert one.ridge == 0.25
    paper = build(ClassifierSpec(name="MixARM1", options={"paper": True}), SCHEMA)
    assert (paper.class_weight, paper.estimator.ridge) == ("balanced", 0.0)


def test_equal_fits_have_equal_keys() -> None:
    xgb, named = ClassifierSpec(name="XGB"), ClassifierSpec(name="trees", make="XGB")
    assert xgb.key == named.key
    assert xgb.key != ClassifierSpec(name="XGB", options={"max_depth": 3}).key
    first, second = ({"c": 1, "d": 2}, {"d": 2, "c": 1})
    assert ClassifierSpec(name="x", options=first).key == ClassifierSpec(name="x", options=second).key


def test_a_plan_survives_json() -> None:
    own = DataSpec(name="book", file="a.csv", schema="a.toml")
    spec = ClassifierSpec(name="x", make="a:b", options={"c": [1, 2]})
    plan = Plan(name="p", datasets=("german", own), classifiers=("ARM1", spec), cv=4, seed=3, metrics=("auc",))
    assert Plan.from_json(plan.to_json()) == plan


def test_a_plan_from_a_file(tmp_path) -> None:
    (tmp_path / "ours.toml").write_text(
        'name = "ours"\ncv = 5\n'
        'datasets = ["german", {name = "book", file = "a.csv", schema = "b.toml"}]\n'
        'classifiers = ["ARM1", {name = "x", make = "pkg.mod:make", options = {depth = 3}}]\n'
    )
    plan = load_plan(tmp_path / "ours.toml")
    assert plan.data[0] == DataSpec(name="german")
    assert plan.data[1].file == str((tmp_path / "a.csv").resolve())
    assert plan.lineup[1].options == {"depth": 3}
    assert plan.cv == 5


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"datasets": ("germn",)}, "no data set 'germn'. Did you mean 'german'"),
        ({"classifiers": ("ARM3",)}, "no classifier 'ARM3'. Did you mean 'ARM"),
        ({"metrics": ("auk",)}, "no metric 'auk'. Did you mean 'auc'"),
        ({"cv": 1}, "cv must be from 2 to 255, not 1"),
        ({"metrics": ()}, "it has no metrics. Known: auc"),
        ({"seed": -1}, "seed must be from 0 to 4294967295, not -1"),
        ({"seed": 2**32}, "seed must be from 0 to 4294967295"),
        ({"classifiers": (ClassifierSpec(name="ARM1", options={"ridge": 10**5000}),)}, "'ARM1': its options must be"),
        ({"classifiers": (ClassifierSpec(name="ARM1", options={"ridge": object}),)}, "'ARM1': its options must be"),
        # JSON, by which equal options are known, would hold a text and nothing.
        ({"classifiers": (ClassifierSpec(name="ARM1", options={"a": [date(2026, 1, 1)]}),)}, "its options must be"),
        ({"classifiers": (ClassifierSpec(name="ARM1", options={"a": {"b": float("nan")}}),)}, "its options must be"),
        ({"classifiers": ("ARM1", "ARM1")}, "classifier 'ARM1' appears 2 times"),
        ({"datasets": ()}, "it has no data sets"),
        ({"datasets": (DataSpec(name="a", file="a.csv"),)}, "needs both a file and a schema"),
    ],
)
def test_what_is_wrong_is_said(changes, match) -> None:
    good = Plan(name="p", datasets=("german",), classifiers=("ARM1",))
    with pytest.raises(DataError, match=match):
        msgspec.structs.replace(good, **changes)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("name = ", "not valid TOML"),
        ('name = "x"\n', "missing required field"),
        ('name = "x"\nfolds = 3\ndatasets = []\nclassifiers = []\n', "unknown field"),
        ('name = "x"\ndatasets = ["germn"]\nclassifiers = ["ARM1"]\n', "Did you mean 'german'"),
        ('name = "x"\nmetrics = []\ndatasets = ["german"]\nclassifiers = ["ARM1"]\n', "it has no metrics"),
        ("name = " + "[" * 500 + "]" * 500, "nested too deep"),
        (".".join("a" * 9000) + " = 1", "nested too deep"),
        ("cv = " + "9" * 5000, "a whole number has too many digits"),
        ("", "is empty"),
    ],
    ids=range(9),
)
def test_a_bad_file(tmp_path, text, match) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(DataError, match=match):
        load_plan(tmp_path / "bad.toml")


def test_a_study_is_a_toml_file() -> None:
    with pytest.raises(DataError, match=r"paper: a study is a \.toml file"):
        load_plan("paper")
    with pytest.raises(DataError, match=r"is not the name of a file"):
        load_plan("a\0b.toml")


def test_a_dotted_name_that_leads_nowhere() -> None:
    with pytest.raises(MissingExtraError, match="no_such_module is not installed"):
        build(ClassifierSpec(name="x", make="no_such_module:make"), SCHEMA)
    with pytest.raises(DataError, match=r"'sklearn\.svm:make' cannot be found"):
        build(ClassifierSpec(name="x", make="sklearn.svm:make"), SCHEMA)


def test_any_classifier_of_scikit_learn_reads_the_schema_s_features() -> None:
    features = {
        "age": Feature(lower_bound=0.0),
        "job": Feature(kind="categorical"),
        "grade": Feature(kind="categorical", categories=("C", "B", "A"), direction="decreasing"),
    }
    spec = ClassifierSpec(name="tree", make="sklearn.tree:DecisionTreeClassifier", options={"max_depth": 1})
    model = build(spec, Schema(features=features))
    assert isinstance(model, RivalModel)
    rows = {"age": [30.0, 0.0, np.nan, 41.0], "job": ["b", "a", None, "b"], "grade": ["A", "B", "C", None]}
    risk = model.fit(rows, [1, 0, 0, 1]).predict_proba(rows)
    # age, then an indicator per job and per grade
    expected = [[30, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1, 0], [np.nan, 0, 0, 0, 0, 1], [41, 0, 1, 0, 0, 0]]
    np.testing.assert_array_equal(model._matrix(as_frame(rows)), expected)
    assert model.estimator_.get_depth() == 1
    assert risk.shape == (4, 2)


def test_a_metric_of_one_s_own(monkeypatch) -> None:
    monkeypatch.setitem(METRICS, "cost", Metric("cost", "cost", False, lambda y, p: float(np.mean(y * (1 - p)))))
    assert Plan(name="p", datasets=("german",), classifiers=("ARM1",), metrics=("auc", "cost")).metrics[1] == "cost"


def test_every_metric_is_a_number_between_its_bounds(rng) -> None:
    y, p = rng.integers(0, 2, 200), np.clip(rng.random(200) * 1.2 - 0.1, 0, 1)
    for metric in METRICS.values():
        assert 0 <= metric.of(y, p) < np.inf


def test_a_certain_and_wrong_prediction_costs_the_clip() -> None:
    assert METRICS["log_loss"].of(np.array([1, 0]), np.array([0.0, 0.0])) == pytest.approx(-np.log(1e-15) / 2)
