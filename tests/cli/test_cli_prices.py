"""`plainrisk fit --prices`, and what `fit` says where a rule binds."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.cli import validation

N = 900


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rows in which an empty field is better than every measured one, and a schema that does not allow it."""
    folder, rng = tmp_path_factory.mktemp("prices"), np.random.default_rng(1)
    late, empty = rng.integers(0, 6, N).astype(float), rng.random(N) < 0.3
    bad = (rng.random(N) < 1 / (1 + np.exp(1.5 - np.where(empty, -4, 0.6 * late)))).astype(int)
    columns = {"late": pl.Series(late).set(pl.Series(empty), None), "age": rng.normal(40, 8, N).round(), "bad": bad}
    columns |= {"customer": np.arange(N) // 3, "month": np.arange(N) // 100, "w": rng.uniform(0.5, 2, N)}
    frame = pl.DataFrame(columns)
    frame.write_csv(folder / "rows.csv")
    schema = pr.Schema(target="bad", features={"late": {"direction": "increasing"}, "age": {}})
    schema.save(folder / "schema.toml")
    return folder, frame, schema


@pytest.fixture
def fit(run, files, tmp_path):
    def call(*words, model="ARM1", schema="schema.toml"):
        rows, stated = files[0] / "rows.csv", files[0] / schema
        return run("fit", rows, "--schema", stated, "-o", tmp_path / "m.json", "--model", model, *words)

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
def test_the_table_is_the_librarys(fit, files, words, options):
    result = fit("--prices", "--cv", "3", "--seed", "2", *words, "--json")
    assert result.exit_code == 0, result.stderr
    _, frame, schema = files
    named = {name: frame[column].to_numpy() for name, column in options.items()}
    if "groups" in named:
        named["groups"] = named["groups"].astype(str)  # as a file says it
    model = pr.AdditiveRiskModel(schema)
    expected = pr.prices(model, frame.select("late", "age"), frame["bad"].to_numpy(), cv=3, seed=2, **named).to_dict()
    found = json.loads(result.stdout)["prices"]
    assert [line["what"] for line in found["prices"]] == ["empty late not better", "direction of late (increasing)"]
    for ours, theirs in zip(found["prices"], expected["prices"], strict=True):
        assert ours["log_loss"] == pytest.approx(theirs["log_loss"], abs=1e-9)
        assert ours["auc"] == pytest.approx(theirs["auc"], abs=1e-9)
        assert ours["clear"] == theirs["clear"]
    assert found["verdict"] == expected["verdict"]


def test_what_a_person_sees(fit):
    shown = fit("--prices", "--cv", "2").stdout
    assert "Prices of rules: all 900 held-out risks together, the same 2 folds" in shown
    assert "Positive: the rule costs accuracy" in shown
    assert "What costs accuracy beyond chance: empty late not better" in shown
    assert "Rules for empty and special fields are binding" in shown
    assert "--prices says" not in shown


def test_prices_are_those_of_the_first_model(fit):
    first = json.loads(fit("--prices", "--cv", "2", "--json").stdout)["prices"]
    both = json.loads(fit("--prices", "--cv", "2", "--json", "--model", "NNLR").stdout)["prices"]
    assert both == first


@pytest.mark.parametrize("model", ["ARM1", "SmoothARM1", "BandARM1", "DirectARM1", "NNLR", "LinARM1"])
def test_a_rule_that_binds_is_said_in_one_line(fit, files, model):
    result = fit("--cv", "0", model=model)
    empty = files[1]["late"].null_count()
    line = f"'late' missing ({empty} rows, at the best measured level). --prices says what that costs in accuracy."
    assert result.stdout.count("Rules for empty and special fields are binding: " + line) == 1


def test_a_rule_that_does_not_bind_is_not_spoken_of(fit, files, tmp_path):
    schema = files[2].edit("late", missing="free")
    schema.save(files[0] / "free.toml")
    result = fit("--cv", "0", "--json", schema="free.toml")
    assert json.loads(result.stdout)["binding"] == []
    assert "bind" not in fit("--cv", "0", schema="free.toml").stdout
    # An empty field that is worse than some measured ones is no better than the best, rule or not.
    frame = files[1].with_columns(bad=pl.when(pl.col("late").is_null()).then(1).otherwise("bad"))
    model = pr.AdditiveRiskModel(files[2]).fit(frame.select("late", "age"), frame["bad"].to_numpy())
    assert pr.explain.outside.binding_levels(model.form_) == []


def test_levels_that_count_as_the_worst_are_bound_and_named_once_for_all_parts(files):
    _, frame, schema = files
    stated = schema.edit("late", missing="worst").replace(subscales={"A": ["late"], "B": ["late", "age"]})
    model = pr.make_classifier("MixARM1", stated, link="linear").fit(
        frame.select("late", "age"), frame["bad"].to_numpy()
    )
    (level,) = pr.explain.outside.binding_levels(model.form_)
    assert (level.feature, level.level, level.rule) == ("late", "missing", "worst")
    assert level.rows == frame["late"].null_count()


def test_without_folds_prices_are_refused(fit, tmp_path):
    for words in (("--cv", "0"), ("--cv", "1")):
        result = fit("--prices", *words)
        assert result.exit_code != 0
        assert "--prices compares on the folds of the cross validation. Add --cv 2, or more." in result.stderr
    result = fit("--prices", "--stream")
    assert result.exit_code != 0
    assert "--prices needs all rows at once, which --stream does not. Leave out one" in result.stderr
    assert not (tmp_path / "m.json").exists()


def test_an_interrupt_leaves_no_model(fit, monkeypatch, tmp_path):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(validation, "price_changes", interrupt)
    assert fit("--prices", "--cv", "2").exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_no_rules_are_said_in_a_sentence(fit, files):
    pr.Schema(target="bad", features={"late": {}, "age": {}}).save(files[0] / "none.toml")
    result = fit("--prices", "--cv", "2", schema="none.toml")
    assert result.exit_code == 0
    assert "There is nothing to price" in result.stdout
    assert "Positive: the rule" not in result.stdout
