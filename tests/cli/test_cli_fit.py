from __future__ import annotations

import json
import re
import shutil

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

import plainrisk as pr
from plainrisk.explain import Certificate, Check


def test_the_figures_are_those_of_the_library(run, credit, tmp_path) -> None:
    words = ("fit", credit.csv, "--schema", credit.schema_file, "--model", "ARM1", "--cv", "4", "--seed", "3")
    result = run(*words, "-o", tmp_path / "m.json", "--json")
    assert result.exit_code == 0
    cv = json.loads(result.stdout)["cv"]
    X, y = credit.frame.select(list(credit.schema.features)), credit.frame["bad"].to_numpy()
    risks = [
        (y[test], pr.AdditiveRiskModel(credit.schema).fit(X[train], y[train]).predict_proba(X[test])[:, 1])
        for train, test in StratifiedKFold(4, shuffle=True, random_state=3).split(y, y)
    ]
    for name, metric in (("auc", roc_auc_score), ("brier", brier_score_loss), ("log_loss", log_loss)):
        expected = [metric(outcome, risk) for outcome, risk in risks]
        np.testing.assert_allclose(cv[name]["values"], expected, atol=1e-12)
        np.testing.assert_allclose(cv[name]["mean"], np.mean(expected), atol=1e-12)
        np.testing.assert_allclose(cv[name]["sd"], np.std(expected, ddof=1), atol=1e-12)
    pooled = pr.metrics.expected_calibration_error(*(np.concatenate(side) for side in zip(*risks, strict=True)))
    assert cv["pooled_ece"] == pytest.approx(pooled, abs=1e-12)


def test_the_model_file_is_the_librarys(run, credit, tmp_path) -> None:
    words = ("--schema", credit.schema_file, "--model", "ARM1", "--cv", "0")
    run("fit", credit.parquet, *words, "-o", tmp_path / "m.json")
    assert (tmp_path / "m.json").read_bytes() == credit.model_file.read_bytes()


@pytest.mark.parametrize(
    ("name", "estimator", "link"),
    [
        ("BandARM1", "AdditiveRiskModel", "bands"),
        ("LinARM1", "Linearised(AdditiveRiskModel)", "linear"),
        ("ARM2", "TwoLayerRiskModel", "logistic"),
        ("DirectARM1", "AdditiveRiskModel", "linear"),
        ("NNLR", "NonnegativeLogisticRegression", "logistic"),
    ],
)
def test_models_by_name(run, credit, tmp_path, name, estimator, link) -> None:
    words = ("--schema", credit.schema_file, "--model", name, "--ridge", "0.001", "--cv", "2")
    result = run("fit", credit.csv, *words, "-o", tmp_path / "m.json")
    assert result.exit_code == 0
    assert "Solved to the optimum." in result.stdout
    assert "in 9 of 9 features with a direction" in result.stdout
    model = pr.load(tmp_path / "m.json")
    assert model.fit_record_.estimator == estimator
    assert model.fit_record_.parameters["ridge"] == "0.001"
    assert type(model.form_.last_link).__name__.lower() == link


def test_the_default_speaks_in_probability_and_clips_nothing(run, credit, tmp_path) -> None:
    result = run("fit", credit.csv, "--schema", credit.schema_file, "--cv", "0", "-o", tmp_path / "m.json", "--json")
    assert json.loads(result.stdout)["solver"]["clipped"] == 0
    assert pr.load(tmp_path / "m.json").form_.speaks_probability


def test_a_data_set_by_name(run, tmp_path) -> None:
    words = ("fit", "german", "--max-bins", "3", "--cv", "0", "-o", tmp_path / "m.json", "--json")
    result = run(*words, "--model", "BandARM1")
    facts = json.loads(result.stdout)
    assert (facts["rows"], facts["features"], facts["target"], facts["base_rate"]) == (1000, 20, "good", 0.7)
    assert facts["certificate"]["valid"] is True
    edges = pr.load(tmp_path / "m.json").form_.parts[0].shapes["Credit amount"].levels.edges
    assert len(edges) == 4  # the built-in schema says five bins, and the schema takes precedence over the option


@pytest.mark.parametrize("name", ["ARM1", "SmoothARM1"])
def test_bins_hold_as_many_rows_as_asked(run, credit, tmp_path, name) -> None:
    words = ("fit", credit.csv, "--schema", credit.schema_file, "--model", name, "--cv", "0", "-o", tmp_path / "m.json")
    smallest = {}
    for asked in (1, 90):
        assert run(*words, "--min-bin-rows", asked).exit_code == 0
        shapes = pr.load(tmp_path / "m.json").form_.parts[0].shapes
        bins = {f: shapes[f].weights[: len(shapes[f].levels.edges) + 1] for f in ("utilization", "income", "age")}
        smallest[asked] = min(min(rows) for rows in bins.values())
    assert smallest[1] < 90 <= smallest[90]


def test_without_a_schema_it_says_what_was_inferred(run, credit, tmp_path) -> None:
    result = run("fit", credit.csv, "--column", "bad", "--cv", "0", "-o", tmp_path / "m.json")
    assert result.exit_code == 0
    assert "note: no --schema: kinds were inferred" in result.stderr
    assert "left out because its name says that it is a row number: 'id'" in result.stderr
    assert "the schema states no direction" in result.stdout
    form = pr.load(tmp_path / "m.json").form_
    assert form.schema.features["housing"].kind == "categorical"
    assert "id" not in form.schema.features
    assert not any(feature.note for feature in form.schema.features.values())


def test_labels_may_be_words(run, tmp_path) -> None:
    n = 200
    words = ["good" if i % 3 else "poor" for i in range(n)]
    pl.DataFrame({"x": [i % 3 + i % 7 for i in range(n)], "end": words}).write_csv(tmp_path / "w.csv")
    pr.Schema(target="end", features={"x": {"label": "X"}}).save(tmp_path / "s.toml")
    shared = ("fit", tmp_path / "w.csv", "--schema", tmp_path / "s.toml", "--cv", "0", "--json")
    larger = run(*shared, "-o", tmp_path / "a.json")
    assert "the risk is the probability that 'end' is 'poor'" in larger.stderr
    assert json.loads(larger.stdout)["base_rate"] == words.count("poor") / n
    chosen = run(*shared, "-o", tmp_path / "b.json", "--positive", "good")
    assert "note" not in chosen.stderr
    assert pr.load(tmp_path / "b.json").form_.classes == ("poor", "good")


def test_features_without_words_are_told_of(run, tmp_path) -> None:
    rows = {name: [(i * k) % 11 for i in range(200)] for k, name in enumerate(("x", "v", "w"), 2)}
    pl.DataFrame({**rows, "bad": [int(i % 5 == 0) for i in range(200)]}).write_csv(tmp_path / "d.csv")
    features = {"x": {}, "v": {"label": "V"}, "w": {"reason": "Too much W"}}
    pr.Schema(target="bad", features=features).save(tmp_path / "s.toml")
    words = ("--schema", tmp_path / "s.toml", "--cv", "0", "--model", "ARM1", "-o", tmp_path / "m.json")
    result = run("fit", tmp_path / "d.csv", *words)
    assert result.exit_code == 0
    assert "without a label or a reason, so people would read the column's name: 'x'." in result.stderr


def test_truth_values_as_outcome(run, tmp_path) -> None:
    pl.DataFrame({"x": list(range(100)), "late": [i > 60 for i in range(100)]}).write_parquet(tmp_path / "t.parquet")
    pr.Schema(target="late", features={"x": {}}).save(tmp_path / "s.toml")
    words = ("fit", tmp_path / "t.parquet", "--schema", tmp_path / "s.toml", "--cv", "0", "--positive", "false")
    assert run(*words, "-o", tmp_path / "m.json").exit_code == 0
    risk = pr.load(tmp_path / "m.json").form_.risk({"x": [5, 95]})
    assert risk[0] > 0.9 > 0.1 > risk[1]


def test_turning_the_outcome_round_is_said(run, tmp_path) -> None:
    result = run("fit", "german", "--positive", "0", "--cv", "0", "-o", tmp_path / "m.json")
    assert "note: --positive reverses the outcome" in result.stderr


def test_an_infinite_log_loss_is_null_in_json(run, credit, tmp_path) -> None:
    words = (
        "fit",
        credit.csv,
        "--schema",
        credit.schema_file,
        "--model",
        "DirectARM1",
        "-o",
        tmp_path / "m.json",
    )
    cv = json.loads(run(*words, "--json", "--cv", "3").stdout)["cv"]
    assert cv["log_loss"]["mean"] is None
    text = run(*words, "--cv", "3")
    assert "infinite ±" not in text.stdout
    assert re.search(r"[1-9]\d* rows of the positive outcome got probability 0, and", cv["certain_and_wrong"])
    assert cv["certain_and_wrong"] in " ".join(text.stdout.split())
    # Every fold warns of clipping with another figure: it is said once.
    assert text.stderr.count("the line is cut off") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "ARM3"), "There is no classifier 'ARM3'. Did you mean 'ARM2'?"),
        (("--model", "directarm1"), "Did you mean 'DirectARM1'?"),
        (("--ridge", "strong"), "--ridge must be 'auto' or a finite number of at least 0, not 'strong'"),
        (("--model", "NNLR", "--max-bins", "4"), "NNLR has no option 'max_bins'"),
        (("--column", "bda"), "target 'bda' is not in the data. Did you mean 'bad'?"),
        (("--positive", "7"), "positive label '7' is not among those of 'bad'"),
        (("--cv", "300"), "cv=300: the rarer outcome has only"),
        (("--cv", "1"), "cv must be 2 folds or more, not 1. Or leave out cross validation: --cv 0."),
    ],
)
def test_wrong_options_end_with_2_and_write_nothing(run, credit, tmp_path, words, message) -> None:
    result = run("fit", credit.csv, "--schema", credit.schema_file, "-o", tmp_path / "m.json", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_misspelled_feature(run, credit, tmp_path) -> None:
    text = credit.schema_file.read_text().replace("income", "incme")
    (tmp_path / "s.toml").write_text(text)
    result = run("fit", credit.csv, "--schema", tmp_path / "s.toml", "-o", tmp_path / "m.json")
    assert result.exit_code == 2
    assert "feature 'incme' is not in the data. Did you mean 'income'?" in result.stderr


def test_text_in_a_numeric_column(run, credit, tmp_path) -> None:
    frame = credit.frame.with_columns(pl.col("income").cast(pl.String))
    frame[17, "income"] = "n/a"
    frame.write_csv(tmp_path / "t.csv")
    words = ("fit", tmp_path / "t.csv", "--schema", credit.schema_file, "--cv", "0", "-o", tmp_path / "m.json")
    result = run(*words)
    assert result.exit_code == 2
    assert "feature 'income' is continuous but holds text in row 17" in result.stderr
    assert "--missing TEXT" in result.stderr
    assert run(*words, "--missing", "n/a").exit_code == 0


@pytest.mark.parametrize("name", ["nowhere/m.json", "file/m.json", "folder.json", "m.txt"])
def test_the_output_is_looked_at_before_any_work(run, credit, tmp_path, monkeypatch, name) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.json").mkdir()
    monkeypatch.setattr("plainrisk.cli.source.open_source", lambda *_: pytest.fail("it went to work"))
    result = run("fit", credit.csv, "--schema", credit.schema_file, "-o", tmp_path / name)
    assert result.exit_code == 2
    assert name.rpartition("/")[2] in result.stderr


def test_a_failed_certificate_ends_with_4_and_writes_nothing(run, credit, tmp_path, monkeypatch) -> None:
    checks = (
        Check("monotone in age", False, "the score moves the wrong way"),
        Check("weights", True, "one part"),
    )
    monkeypatch.setattr("plainrisk.model.FormMethods.certify", lambda self: Certificate(checks, ()))
    words = ("fit", credit.csv, "--schema", credit.schema_file, "--cv", "0", "-o", tmp_path / "m.json")
    result = run(*words)
    assert result.exit_code == 4
    assert "in 0 of 1 features with a direction" in result.stdout
    assert "BROKEN" in result.stdout
    assert "the score moves the wrong way" in result.stdout
    assert list(tmp_path.iterdir()) == []
    assert json.loads(run(*words, "--json").stdout)["certificate"]["valid"] is False


def test_an_interrupted_save_keeps_the_old_model(run, credit, tmp_path, monkeypatch) -> None:
    shutil.copy(credit.model_file, tmp_path / "m.json")
    monkeypatch.setattr("pathlib.Path.replace", _interrupt)
    words = ("--schema", credit.schema_file, "--model", "NNLR", "--cv", "0", "-o", tmp_path / "m.json")
    result = run("fit", credit.csv, *words)
    assert result.exit_code == 130
    assert "error: interrupted" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]
    assert (tmp_path / "m.json").read_bytes() == credit.model_file.read_bytes()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_stream_gives_the_model_of_the_rows_in_memory(run, credit, tmp_path) -> None:
    words = ("--schema", credit.schema_file, "--model", "ARM1")
    for k in range(2):
        half = credit.frame.height // 2
        credit.frame[k * half : (k + 1) * half if k == 0 else None].write_parquet(tmp_path / f"part{k}.parquet")
    whole = pr.load(credit.model_file)
    for data in (credit.csv, credit.parquet, tmp_path / "*.parquet"):
        result = run("fit", data, *words, "--stream", "-o", tmp_path / "m.json", "--json")
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["rows"] == credit.frame.height
        streamed = pr.load(tmp_path / "m.json")
        np.testing.assert_allclose(streamed.form_.risk(credit.frame), whole.form_.risk(credit.frame), atol=1e-9)


def test_a_stream_needs_a_schema_with_a_target(run, credit, tmp_path) -> None:
    result = run("fit", credit.csv, "--stream", "-o", tmp_path / "m.json")
    assert result.exit_code != 0
    assert "--stream needs --schema" in result.stderr
    bare = tmp_path / "bare.toml"
    pr.Schema(features=credit.schema.features).save(bare)
    result = run("fit", credit.csv, "--stream", "--schema", bare, "-o", tmp_path / "m.json")
    assert result.exit_code != 0
    assert "which column is the outcome?" in result.stderr
    assert not (tmp_path / "m.json").exists()


def test_trees_have_no_solver_to_tell_of(run, credit, tmp_path) -> None:
    pytest.importorskip("xgboost")
    words = ("--schema", credit.schema_file, "--model", "MonoXGB", "--cv", "0")
    result = run("fit", credit.csv, *words, "-o", tmp_path / "m.json")
    assert result.exit_code == 0
    assert "Solved to the optimum" not in result.stdout
    assert "in 9 of 9 features with a direction" in result.stdout
