from __future__ import annotations

import msgspec
import pytest

from plainrisk import Feature, Schema
from plainrisk.errors import DataError
from plainrisk.study import STUDIES, ClassifierSpec, DataSpec, Plan, load_plan
from plainrisk.study.build import build

SCHEMA = Schema(features={"age": Feature()}, subscales={"all": ("age",)})


def test_the_named_studies() -> None:
    paper = STUDIES["paper"]
    assert (len(paper.data), len(paper.lineup), paper.folds, paper.seed) == (24, 12, 10, 0)
    assert paper.n_cells == 24 * 12 * 10
    product = {spec.name for spec in STUDIES["product"].lineup}
    assert product >= {"BandARM1", "DirectARM1", "DirectARM2", "MixDirectARM1", "EBM", "Optbinning", "TunedXGB"}


@pytest.mark.parametrize(
    ("conventions", "ridge", "class_weight", "clip"),
    [("paper", 0.0, "balanced", 1e-15), ("balanced", "auto", "balanced", 1e-15), ("product", "auto", None, "auto")],
)
def test_conventions_set_our_classifiers(conventions, ridge, class_weight, clip) -> None:
    one = build(ClassifierSpec(name="ARM1"), SCHEMA, conventions)
    assert (one.ridge, one.class_weight) == (ridge, class_weight)
    pool = build(ClassifierSpec(name="MixARM1"), SCHEMA, conventions)
    assert (pool.clip, pool.class_weight, pool.estimator.ridge) == (clip, class_weight, ridge)


def test_options_go_before_conventions() -> None:
    spec = ClassifierSpec(name="mine", make="ARM1", options={"ridge": 0.25})
    assert build(spec, SCHEMA, "paper").ridge == 0.25


def test_equal_fits_have_equal_keys() -> None:
    xgb, named = ClassifierSpec(name="XGB"), ClassifierSpec(name="trees", make="XGB")
    assert xgb.key("paper") == named.key("balanced")
    assert xgb.key("paper") != xgb.key("product")
    arm = ClassifierSpec(name="ARM1")
    assert arm.key("paper") != arm.key("balanced")


def test_a_plan_survives_json() -> None:
    for plan in STUDIES.values():
        assert Plan.from_json(plan.to_json()) == plan


def test_a_plan_from_a_file(tmp_path) -> None:
    (tmp_path / "ours.toml").write_text(
        'name = "ours"\nfolds = 5\nconventions = "balanced"\n'
        'datasets = ["german", {name = "book", file = "a.csv", schema = "b.toml"}]\n'
        'classifiers = ["ARM1", {name = "x", make = "pkg.mod:make", options = {depth = 3}}]\n'
    )
    plan = load_plan(tmp_path / "ours.toml")
    assert plan.data[0] == DataSpec(name="german")
    assert plan.data[1].file == str((tmp_path / "a.csv").resolve())
    assert plan.lineup[1].options == {"depth": 3}
    assert (plan.folds, plan.conventions) == (5, "balanced")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"datasets": ("germn",)}, "no data set 'germn'. Did you mean 'german'"),
        ({"classifiers": ("ARM3",)}, "no classifier 'ARM3'. Did you mean 'ARM"),
        ({"metrics": ("auk",)}, "no metric 'auk'. Did you mean 'auc'"),
        ({"folds": 1}, "folds must be from 2"),
        ({"seed": -1}, "seed must not be negative"),
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
        ('name = "x"\nfold = 3\ndatasets = []\nclassifiers = []\n', "unknown field"),
        ('name = "x"\ndatasets = ["germn"]\nclassifiers = ["ARM1"]\n', "Did you mean 'german'"),
    ],
)
def test_a_bad_file(tmp_path, text, match) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(DataError, match=match):
        load_plan(tmp_path / "bad.toml")


def test_an_unknown_study() -> None:
    with pytest.raises(DataError, match=r"no study 'papr'\. Did you mean 'paper'"):
        load_plan("papr")


def test_a_dotted_name_that_leads_nowhere() -> None:
    with pytest.raises(DataError, match="'no_such_module:make' cannot be found"):
        build(ClassifierSpec(name="x", make="no_such_module:make"), SCHEMA, "product")
