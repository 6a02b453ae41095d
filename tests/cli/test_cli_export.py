"""`plainrisk export`: files, --check, --json, and errors that leave nothing behind."""

from __future__ import annotations

import json

import pytest

from plainrisk import datasets, make_classifier
from plainrisk.exports import read_facts


def test_export_writes_and_checks(run, credit, tmp_path):
    path = tmp_path / "score.sql"
    done = run(
        "export", "sql", credit.model_file, "--dialect", "sqlite", "-o", path, "--keep", "id", "--check", "-k", 2
    )
    assert done.exit_code == 0, done.stderr
    assert "SQLite agrees with the model on 100 rows" in " ".join(done.stdout.split())
    assert path.exists()
    assert (tmp_path / "score.test.sql").exists()


def test_json(run, credit, tmp_path):
    done = run("export", "python", credit.model_file, "-o", tmp_path / "score.py", "--check", "--json")
    found = json.loads(done.stdout)
    assert found["files"] == [str(tmp_path / "score.py")]
    assert found["check"]["agrees"] is True
    assert found["check"]["engine"] == "Python"


def test_the_schema_says_which_outcome_is_adverse(run, tmp_path):
    german = datasets.load("german")
    assert german.schema.adverse == "negative"
    make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target).save(tmp_path / "german.json")
    for given in ((), ("--adverse", "negative"), ("--adverse", "positive")):
        path = tmp_path / f"score{len(list(tmp_path.iterdir()))}.py"
        done = run("export", "python", tmp_path / "german.json", "-o", path, "--check", *given)
        assert done.exit_code == 0, done.stderr
        assert read_facts(path)["adverse"] == (given[-1] if given else "negative")
    implied, told, other = (path.read_text() for path in sorted(tmp_path.glob("*.py")))
    assert implied == told != other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cobol", "-o", "score.cob"), "target must be 'sql'"),
        (("sql", "-o", "score.sql"), "dialect must be"),
        (("python", "-o", "score.txt"), "must end in .py"),
    ],
)
def test_errors(run, credit, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    target, *rest = arguments
    done = run("export", target, credit.model_file, *rest)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
