from __future__ import annotations

import json
import tomllib

import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import PlainriskWarning


def test_infer_prints_toml(run, credit) -> None:
    result = run("schema", "infer", credit.csv, "--column", "bad")
    assert result.exit_code == 0
    schema = pr.Schema.from_dict(tomllib.loads(result.stdout))
    assert schema.target == "bad"
    assert schema.features["income"].kind == "continuous"
    assert schema.features["housing"].kind == "categorical"
    assert "left out because its name says that it is a row number: 'id'" in result.stderr


def test_infer_writes_a_draft_that_fits(run, credit, tmp_path) -> None:
    path = tmp_path / "s.toml"
    result = run("schema", "infer", credit.parquet, "--column", "bad", "-o", path)
    assert result.exit_code == 0
    assert "candidate direction: decreasing" in result.stdout
    assert run("schema", "check", credit.csv, "--schema", path).exit_code == 0


def test_infer_does_not_replace_an_edited_schema(run, credit, tmp_path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("# mine")
    result = run("schema", "infer", credit.csv, "-o", path)
    assert result.exit_code == 2
    assert "--force replaces it" in result.stderr
    assert path.read_text() == "# mine"
    assert run("schema", "infer", credit.csv, "-o", path, "--force").exit_code == 0
    assert "income" in pr.Schema.load(path).features


def test_infer_json_is_the_librarys_draft(run, credit) -> None:
    result = run("schema", "infer", credit.parquet, "--column", "bad", "--positive", "0", "--json")
    drafted = pr.Schema.from_dict(json.loads(result.stdout)["schema"])
    frame = credit.frame.drop("id")
    with pytest.warns(
        PlainriskWarning, match="assumed to be protected because of their names, so never given as a reason: 'age'"
    ):
        assert drafted == pr.Schema.infer(frame, "bad", positive=0)
    assert drafted.protected == ("age",)


def test_infer_tells_all_findings_in_json_and_twenty_features_on_screen(run, credit, tmp_path) -> None:
    frame = credit.frame.with_columns(pl.lit(k).alias(f"x{k}") + pl.arange(600) % (k + 2) for k in range(25))
    frame = frame.with_columns(knows=pl.col("bad") + 0.1 * (pl.arange(600) % 7))
    frame.write_parquet(tmp_path / "wide.parquet")
    words = ("schema", "infer", tmp_path / "wide.parquet", "--column", "bad")
    found = json.loads(run(*words, "--json").stdout)["findings"]
    assert {f["feature"] for f in found if f["kind"] == "leak"} == {"knows"}
    assert {f["feature"] for f in found if f["kind"] == "value"} == {*frame.columns} - {"bad", "id"}
    shown = run(*words, "-o", tmp_path / "s.toml")
    lines = shown.stdout.splitlines()
    assert next(line for line in lines if "──" not in line and line and "feature" not in line).startswith("age")
    assert "The file has 17 more" in shown.stdout
    assert "left out: may be a leak" in shown.stderr
    assert "# [features.knows]\n# left out: may be a leak" in (tmp_path / "s.toml").read_text()
    assert "Subscales that the names suggest" in shown.stdout
    assert '# x = ["x0", "x1",' in (tmp_path / "s.toml").read_text()


def test_check_lists_every_problem(run, credit, tmp_path) -> None:
    text = credit.schema_file.read_text().replace("income", "incme").replace("[features.housing]", "[features.hous]")
    (tmp_path / "s.toml").write_text(text.replace('"housing"', '"hous"'))
    result = run("schema", "check", credit.csv, "--schema", tmp_path / "s.toml")
    assert result.exit_code == 1
    assert "Did you mean 'income'?" in result.stdout
    assert "Did you mean 'housing'?" in result.stdout
    listed = json.loads(run("schema", "check", credit.csv, "--schema", tmp_path / "s.toml", "--json").stdout)
    assert listed["valid"] is False
    errors = {p["feature"] for p in listed["problems"] if p["severity"] == "error"}
    assert errors == {"incme", "hous"}


def test_check_of_a_good_schema(run, credit) -> None:
    result = run("schema", "check", credit.csv, "--schema", credit.schema_file, "--json")
    assert result.exit_code == 0
    checked = json.loads(result.stdout)
    assert checked["valid"] is True
    assert [p["severity"] for p in checked["problems"]] == ["note"]  # id is not in the schema
    assert "A model can be fitted" in run("schema", "check", credit.csv, "--schema", credit.schema_file).stdout


def test_a_data_set_brings_its_own_schema(run, credit) -> None:
    assert run("schema", "check", "german").exit_code == 0
    result = run("schema", "check", credit.csv)
    assert result.exit_code == 2
    assert "which schema? Add --schema FILE" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[features.income]\ndirektion = 'increasing'", "Did you mean 'direction'?"),
        (
            "[features.income]\ndirection = 'up'",
            "must be one of 'increasing', 'decreasing', 'none', not 'up'",
        ),
        ("features =", "is not valid TOML"),
    ],
)
def test_a_wrong_schema_file_ends_with_2(run, credit, tmp_path, text, message) -> None:
    (tmp_path / "s.toml").write_text(text)
    result = run("schema", "check", credit.csv, "--schema", tmp_path / "s.toml")
    assert result.exit_code == 2
    assert message in result.stderr
