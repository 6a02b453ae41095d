"""`plainrisk fit --challengers`, and several models of which one cannot be fitted."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.cli import validation
from plainrisk.validate import challengers as module


@pytest.fixture(autouse=True)
def logistic(monkeypatch):
    """Challenge by logistic regression alone, which takes no time, and by one that is not there."""

    def missing(_):
        raise ImportError

    rivals = {
        "absent": module.Rival("", "pip install absent", missing),
        "logistic regression": module.RIVALS["logistic regression"],
    }
    monkeypatch.setattr(module, "RIVALS", rivals)
    monkeypatch.setattr(validation, "RIVALS", rivals)


@pytest.fixture(scope="module")
def rows(credit, tmp_path_factory):
    path, n = tmp_path_factory.mktemp("challengers") / "rows.csv", credit.frame.height
    rng = np.random.default_rng(6)
    columns = {"customer": np.arange(n) // 3, "month": np.arange(n) // 100, "w": rng.uniform(0.5, 2, n)}
    frame = credit.frame.with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    frame.write_csv(path)
    return path, frame


@pytest.fixture
def fit(run, credit, rows, tmp_path):
    def call(*words, schema=credit.schema_file, model="ARM1"):
        return run("fit", rows[0], "--schema", schema, "-o", tmp_path / "m.json", "--model", model, *words)

    return call


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ((), {}),
        (("--group", "customer"), {"groups": "customer"}),
        (("--time", "month"), {"time": "month"}),
        (("--weight", "w"), {"sample_weight": "w"}),
    ],
    ids=["plain", "group", "time", "weight"],
)
def test_the_table_is_the_librarys(fit, credit, rows, words, options):
    result = fit("--challengers", "--cv", "3", "--seed", "2", *words, "--json")
    assert result.exit_code == 0, result.stderr
    found, frame = json.loads(result.stdout)["challengers"], rows[1]
    named = {name: frame[column].to_numpy() for name, column in options.items()}
    if "groups" in named:
        named["groups"] = named["groups"].astype(str)  # as a file says it
    X, y, model = frame.select(list(credit.schema.features)), frame["bad"].to_numpy(), {"ARM1": pr.AdditiveRiskModel()}
    model["ARM1"].set_params(schema=credit.schema)
    expected = json.loads(json.dumps(pr.challengers(model, X, y, cv=3, seed=2, **named).to_dict()))
    assert found["verdict"] == expected["verdict"]
    assert found["rivals"][0]["note"] == "not installed: pip install absent"
    for key in ("ours", "rivals"):
        for ours, theirs in zip(found[key], expected[key], strict=True):
            assert ours["figures"] == pytest.approx(theirs["figures"])
            for name, gap in ours["differences"].items():
                assert gap == pytest.approx(theirs["differences"][name])


def test_what_a_person_sees(fit):
    result = fit("--challengers", "--cv", "2")
    assert result.exit_code == 0
    assert "Challengers: all 600 held-out risks together, the same 2 folds" in result.stdout
    assert "Less that of ARM1: paired intervals of 95%" in result.stdout
    assert "absent: not installed: pip install absent" in result.stdout
    assert "scikit-learn's, on standardized and one-hot columns" in result.stdout
    assert "ahead" in result.stdout
    assert "ahead" not in fit("--cv", "2").stdout


def test_without_folds_challengers_are_refused(fit, tmp_path):
    for words in (("--cv", "0"), ("--cv", "1")):
        result = fit("--challengers", *words)
        assert result.exit_code != 0
        assert "Add --cv 2, or more." in result.stderr
    result = fit("--challengers", "--stream")
    assert result.exit_code != 0
    assert "--challengers needs all rows at once, which --stream does not. Leave out one" in result.stderr
    assert not (tmp_path / "m.json").exists()


# ---- several models


@pytest.fixture(scope="module")
def with_rare(credit, tmp_path_factory):
    """A schema that joins rare categories, which trees do not read."""
    pytest.importorskip("xgboost")
    path = tmp_path_factory.mktemp("rare") / "rare.toml"
    name = next(n for n, f in credit.schema.features.items() if f.kind == "categorical" and not f.sign)
    credit.schema.edit(name, rare=0.05).save(path)
    return path


@pytest.mark.parametrize("challengers", [(), ("--challengers",)], ids=["alone", "challengers"])
def test_one_model_that_can_not_be_fitted_is_a_line(fit, with_rare, tmp_path, challengers):
    words = ("--model", "XGB", "--model", "NNLR", "--cv", "2", *challengers)
    result = fit(*words, schema=with_rare)
    assert result.exit_code == 0, result.stderr
    line = next(line for line in result.stdout.splitlines() if line.startswith("XGB "))
    assert line.split() == ["XGB", "not", "fitted"]
    assert "XGB: not fitted: BoostedRiskModel: trees read categories one by one" in result.stdout
    assert (tmp_path / "m.json").exists()
    found = json.loads(fit(*words, "--json", schema=with_rare).stdout)
    assert list(found["models"]["XGB"]) == ["error"]
    assert found["models"]["NNLR"]["cv"]["folds"] == 2
    if challengers:
        assert found["challengers"]["ours"][1]["note"] == found["models"]["XGB"]["error"]


def test_the_first_model_must_be_fitted(fit, with_rare, tmp_path):
    result = fit("--model", "ARM1", "--cv", "2", schema=with_rare, model="XGB")
    assert result.exit_code != 0
    assert "trees read categories one by one" in result.stderr
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize("cv", ["0", "2"])
def test_a_test_file_measures_the_models_that_were_fitted(fit, with_rare, credit, cv):
    words = ("--model", "XGB", "--model", "NNLR", "--cv", cv, "--test", credit.csv)
    found = json.loads(fit(*words, "--json", schema=with_rare).stdout)
    assert list(found["models"]) == ["ARM1", "XGB", "NNLR"]
    assert [name for name, one in found["models"].items() if "test" in one] == ["ARM1", "NNLR"]
    assert found["models"]["XGB"]["error"].startswith("not fitted: ")
    assert "XGB: not fitted: " in fit(*words, schema=with_rare).stdout


def test_the_papers_trees_are_called_what_they_are(fit, run):
    pytest.importorskip("xgboost")
    shown = fit("--model", "MonoXGB", "--cv", "2").stdout
    assert "MonoXGB: The paper's boosted trees: 50 trees of depth 2, under the schema's directions." in shown
    assert "For XGBoost at its default settings: --challengers." in shown
    assert "50 trees of depth 2" in " ".join(run("fit", "--help").stdout.replace("│", " ").split())
    for name, one in pr.CLASSIFIERS.items():
        assert ("50 trees of depth 2" in one.description) == ("XGB" in name)
        assert "XGBoost" not in one.description
