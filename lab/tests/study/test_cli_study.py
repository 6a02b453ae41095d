from __future__ import annotations

import json

import pytest


@pytest.fixture
def study(run):
    return lambda *words: run("study", *words)


@pytest.fixture
def plan_file(tmp_path, books):
    data = ", ".join(f'{{name = "{b.data.name}", file = "{b.data.file}", schema = "{b.data.schema}"}}' for b in books)
    path = tmp_path / "ours.toml"
    path.write_text(f'name = "ours"\ncv = 2\ndatasets = [{data}]\nclassifiers = ["ARM1", "DirectARM1"]\n')
    return path


def test_from_run_to_report(study, plan_file, tmp_path) -> None:
    store = tmp_path / "s.db"
    first = study("run", plan_file, "--store", store, "--jobs", 0, "--json")
    assert first.exit_code == 0, first.stderr
    assert json.loads(first.stdout)["fitted"] == 8
    again = study("run", plan_file, "--store", store, "--jobs", 0)
    assert "ours: 0 fits in" in again.stdout
    assert "8 were there, 0 failed" in again.stdout
    status = study("status", "--store", store)
    assert "ours: 8 fits done" in status.stdout
    assert json.loads(study("status", "ours", "--store", store, "--json").stdout)["studies"]["ours"]["by_classifier"]
    assert "| DirectARM1 |" in study("report", "ours", "--store", store, "--metric", "auc").stdout
    found = json.loads(study("report", "--store", store, "--metric", "ece", "--json").stdout)["studies"]
    assert [t["metric"] for t in found[0]["tables"]] == ["ece"]
    assert study("report", "--store", store, "-o", tmp_path / "folds.csv").exit_code == 0
    assert (tmp_path / "folds.csv").read_text().count("\n") == 9
    for ending in ("json", "html", "xlsx"):
        assert study("report", "--store", store, "-o", tmp_path / f"folds.{ending}").exit_code == 0
    assert len(json.loads((tmp_path / "folds.json").read_text())) == 8
    assert study("report", "--store", store, "-o", tmp_path / "r.md").exit_code == 0
    assert "## Brier score" in (tmp_path / "r.md").read_text()


def test_what_failed_is_told(study, plan_file, tmp_path) -> None:
    store = tmp_path / "s.db"
    own = '{name = "own", make = "no_such_package:make"}'
    plan_file.write_text(plan_file.read_text().replace('"DirectARM1"', own))
    assert "study status ours" in study("run", plan_file, "--store", store, "--jobs", 0).stderr
    shown = study("status", "--store", store).stdout
    assert "own skipped on north (fold 0, 1): no_such_package is not installed." in shown


def test_messages(study, tmp_path) -> None:
    for words, message in (
        (("run", "paper"), "paper: a study is a .toml file"),
        (("status", "--store", tmp_path / "none.db"), "does not exist. Run a study first"),
        (("report", "--store", tmp_path / "none.db", "-o", tmp_path / "r.pdf"), "must end in"),
    ):
        result = study(*words)
        assert result.exit_code == 2
        assert message in result.stderr
