from __future__ import annotations

import hashlib
import json

import pytest


def test_a_document_and_its_numbers_with_hashes_of_all_files(run, credit, tmp_path) -> None:
    path = tmp_path / "model.md"
    result = run("document", credit.model_file, credit.csv, "-o", path, "--json")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    numbers = json.loads((tmp_path / "model.md.json").read_text(encoding="utf-8"))
    assert said["numbers"] == str(tmp_path / "model.md.json")
    assert said["gaps"] == numbers["gaps"]
    (file,) = numbers["data"]["test"]["files"]
    assert file["sha256"] == hashlib.sha256(credit.csv.read_bytes()).hexdigest()
    assert file["rows"] == 600
    assert numbers["model"]["file"]["sha256"] == hashlib.sha256(credit.model_file.read_bytes()).hexdigest()
    assert "`plainrisk evaluate model.json credit.csv`" in path.read_text(encoding="utf-8")


def test_another_model_is_compared_with(run, credit, tmp_path) -> None:
    result = run("document", credit.model_file, credit.parquet, "--against", credit.model_file, "-o", tmp_path / "m.md")
    assert result.exit_code == 0
    assert "limitations found" in result.stdout
    numbers = json.loads((tmp_path / "m.md.json").read_text(encoding="utf-8"))
    assert numbers["against"]["is_model"]
    assert numbers["against"]["diff"]["moved"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "m.pdf"), "must end in .docx, .md or .html"),
        (("-o", "m.docx", "--profile", "ai-akt"), "Did you mean 'ai-act'"),
        (("-o", "m.docx", "--time", "month"), "there is no column 'month'"),
        (("-o", "m.docx", "--against", "old.json"), "old.json does not exist"),
        (("-o", "m.docx", "--column", "good"), "no column of outcomes 'good'"),
        (("-o", "m.docx", "--train", "none.csv"), "none.csv"),
    ],
)
def test_what_is_wrong_is_said_and_no_file_is_written(run, credit, tmp_path, monkeypatch, words, message) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("document", credit.model_file, credit.csv, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())
