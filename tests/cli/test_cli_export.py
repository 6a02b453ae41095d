"""`plainrisk export`: files, --check, --json, and errors that leave nothing behind."""

from __future__ import annotations

import json

import pytest

from plainrisk import datasets, make_classifier
from plainrisk.exports import read_facts


def test_export_writes_and_checks(run, credit, tmp_path):
    path = tmp_path / "score.sql"
    done = run("export", credit.model_file, "--dialect", "sqlite", "-o", path, "--keep", "id", "--check", "-k", 2)
    assert done.exit_code == 0, done.stderr
    assert "SQLite agrees with the model on 100 rows" in " ".join(done.stdout.split())
    assert path.exists()
    assert (tmp_path / "score.test.sql").exists()


def test_json(run, credit, tmp_path):
    done = run("export", credit.model_file, "-o", tmp_path / "score.py", "--check", "--json")
    found = json.loads(done.stdout)
    assert found["files"] == [str(tmp_path / "score.py")]
    assert found["check"]["agrees"] is True
    assert found["check"]["engine"] == "Python"


def test_a_check_that_ran_nothing_does_not_agree(run, credit, tmp_path):
    arguments = ("export", credit.model_file, "--dialect", "snowflake", "-o", tmp_path / "score.sql", "--check")
    done = run(*arguments)
    assert done.exit_code == 4
    assert "Nothing was run" in done.stdout
    assert json.loads(run(*arguments, "--json").stdout)["check"]["agrees"] is None


def test_the_schema_says_which_outcome_is_adverse(run, tmp_path):
    german = datasets.load("german")
    assert german.schema.adverse == "negative"
    make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target).save(tmp_path / "german.json")
    done = run("export", tmp_path / "german.json", "-o", tmp_path / "score.py", "--check")
    assert done.exit_code == 0, done.stderr
    assert read_facts(tmp_path / "score.py")["adverse"] == "negative"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "score.cob"), "score.cob must end in .sql, .py"),
        (("-o", "score.sql"), "which SQL? Choose the dialect of your database (duckdb, "),
        (("-o", "score.sql"), "plainrisk export MODEL --dialect duckdb -o score.sql"),
        (("-o", "score.sql", "--dialect", "access"), "dialect must be"),
    ],
)
def test_errors(run, credit, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = run("export", credit.model_file, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
