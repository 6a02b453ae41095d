"""What the commands say of leaks, of figures that are too good, of rows of training and of texts that mean missing."""

from __future__ import annotations

import json

import polars as pl
import pytest

import plainrisk as pr


@pytest.fixture(scope="module")
def leaking(credit, tmp_path_factory):
    """Credit data with a column that knows the outcome, and a schema that takes it."""
    folder = tmp_path_factory.mktemp("leaking")
    knows = pl.col("bad") + 0.1 * (pl.int_range(pl.len()) % 7)
    credit.frame.with_columns(knows=knows).write_csv(folder / "rows.csv")
    schema = credit.schema.replace(features={**credit.schema.features, "knows": {}}, subscales={})
    schema.save(folder / "s.toml")
    return folder


def test_check_and_fit_repeat_the_warning_of_a_leak(run, leaking, tmp_path) -> None:
    checked = run("schema", "check", leaking / "rows.csv", "--schema", leaking / "s.toml")
    assert checked.exit_code == 0
    assert "feature 'knows' may be a leak: AUC 1.000 by itself" in checked.stdout
    words = ("fit", leaking / "rows.csv", "--schema", leaking / "s.toml", "--cv", "3", "-o", tmp_path / "m.json")
    fitted = run(*words)
    assert "feature 'knows' may be a leak: AUC 1.000 by itself" in fitted.stderr
    assert "is suspicious: a feature may know the outcome; the strongest is 'knows'." in fitted.stderr
    told = json.loads(run(*words, "--json").stdout)["warnings"]
    assert sum("may be a leak" in warning for warning in told) == 1  # not by the fit again
    assert any(warning.startswith("the cross-validated AUC of 1.0000 is suspicious") for warning in told)
    evaluated = run("evaluate", tmp_path / "m.json", leaking / "rows.csv")
    assert "An AUC above 0.99 is suspicious: a feature may know the outcome." in evaluated.stdout


def test_a_stream_tells_a_leak(run, leaking, tmp_path) -> None:
    pl.read_csv(leaking / "rows.csv").write_parquet(tmp_path / "rows.parquet")
    for rows in (leaking / "rows.csv", tmp_path / "rows.parquet"):
        fitted = run("fit", rows, "--stream", "--schema", leaking / "s.toml", "--cv", "0", "-o", tmp_path / "m.json")
        assert fitted.exit_code == 0
        assert fitted.stderr.count("feature 'knows' may be a leak: AUC 1.000 by itself") == 1


def test_a_test_file_that_is_foretold_is_suspicious_too(run, leaking, tmp_path) -> None:
    words = ("fit", leaking / "rows.csv", "--schema", leaking / "s.toml", "--cv", "0")
    fitted = run(*words, "--test", leaking / "rows.csv", "-o", tmp_path / "m.json")
    assert "the test AUC of 1.0000 is suspicious" in fitted.stderr


def test_a_draft_without_the_leak_is_fitted_without_a_warning_of_it(run, leaking, tmp_path) -> None:
    run("schema", "infer", leaking / "rows.csv", "--column", "bad", "-o", tmp_path / "s.toml")
    words = ("fit", leaking / "rows.csv", "--schema", tmp_path / "s.toml", "--cv", "3", "-o", tmp_path / "m.json")
    fitted = run(*words)
    assert fitted.exit_code == 0
    assert "may be a leak" not in fitted.stderr
    assert "suspicious" not in fitted.stderr
    assert "knows" not in pr.load(tmp_path / "m.json").form_.features


def test_evaluate_says_that_it_sees_the_rows_of_training(run, credit, tmp_path) -> None:
    before = "These seem to be the rows that the model was fitted to."
    words = ("evaluate", credit.model_file, credit.csv)
    assert before in run(*words).stdout
    assert json.loads(run(*words, "--json").stdout)["notes"][0].startswith(before)
    credit.frame.head(400).write_csv(tmp_path / "some.csv")
    assert before not in run("evaluate", tmp_path / "some.csv", "--model", credit.model_file).stdout


@pytest.mark.parametrize("drafted", [True, False])
def test_texts_given_as_missing_are_kept_for_scoring(run, credit, tmp_path, drafted) -> None:
    text = pl.col("income").cast(pl.String)
    income = pl.when(pl.int_range(pl.len()) % 9 == 0).then(pl.lit("n.b.")).otherwise(text)
    credit.frame.with_columns(income=income).write_csv(tmp_path / "rows.csv")
    schema = ["--column", "bad", "--missing", "n.b."]
    if drafted:
        run("schema", "infer", tmp_path / "rows.csv", *schema, "-o", tmp_path / "s.toml")
        schema = ["--schema", tmp_path / "s.toml"]
    assert run("fit", tmp_path / "rows.csv", *schema, "--cv", "0", "-o", tmp_path / "m.json").exit_code == 0
    assert pr.load(tmp_path / "m.json").form_.schema.features["income"].null_values == ("n.b.",)
    scored = run("score", tmp_path / "m.json", tmp_path / "rows.csv", "-o", tmp_path / "r.csv")
    assert scored.exit_code == 0
    empty = (pl.int_range(pl.len()) % 9 == 0) | pl.col("income").is_null()
    assert f"income: {credit.frame.select(empty.sum()).item()} missing" in scored.stdout
