from __future__ import annotations

import json
from inspect import signature

import pytest
from typer.testing import CliRunner

from plainrisk.cli.app import app

_APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    runner = CliRunner(**_APART)
    return lambda *words: runner.invoke(app, ["study", *map(str, words)])


@pytest.fixture
def plan_file(tmp_path, books):
    data = ", ".join(f'{{name = "{b.data.name}", file = "{b.data.file}", schema = "{b.data.schema}"}}' for b in books)
    path = tmp_path / "ours.toml"
    path.write_text(f'name = "ours"\nfolds = 2\ndatasets = [{data}]\nclassifiers = ["ARM1", "DirectARM1"]\n')
    return path


def test_from_run_to_report(run, plan_file, tmp_path) -> None:
    store = tmp_path / "s.db"
    first = run("run", plan_file, "--store", store, "--jobs", 0, "--json")
    assert first.exit_code == 0, first.stderr
    assert json.loads(first.stdout)["fitted"] == 8
    again = run("run", plan_file, "--store", store, "--jobs", 0)
    assert "ours: 0 fits in" in again.stdout
    assert "8 were there, 0 failed" in again.stdout
    status = run("status", "--store", store)
    assert "ours: 8 fits done" in status.stdout
    assert json.loads(run("status", "ours", "--store", store, "--json").stdout)["studies"]["ours"]["by_classifier"]
    tables = run("tables", "ours", "--store", store, "--metric", "auc", "-o", tmp_path / "out.csv")
    assert "DirectARM1" in tables.stdout
    assert (tmp_path / "out.csv").read_text().count("\n") == 5
    pairs = run("tables", "ours", "--store", store, "--metric", "auc", "--pairs")
    assert "row less column" in pairs.stdout
    values = json.loads(run("tables", "ours", "--store", store, "--json").stdout)["tables"]
    assert [t["metric"] for t in values] == ["auc", "ece"]
    assert run("report", "--store", store, "-o", tmp_path / "r.html").exit_code == 0
    assert "1. ours" in (tmp_path / "r.html").read_text()
    folder = tmp_path / "results"
    folder.mkdir()
    assert run("report", "--store", store, "-o", folder).exit_code == 0
    assert (folder / "results.csv").read_text().count("\n") == 9
    assert {p.name for p in folder.iterdir()} == {"README.md", "report.html", "report.md", "results.csv"}


def test_parts_of_a_study(run, plan_file, tmp_path) -> None:
    words = ("--data", "north", "--classifier", "ARM1", "--folds", 3, "--jobs", 0, "--json")
    result = run("run", plan_file, "--store", tmp_path / "s.db", *words)
    assert json.loads(result.stdout)["fitted"] == 3
    wrong = run("run", plan_file, "--store", tmp_path / "s.db", "--data", "nort")
    assert wrong.exit_code == 2
    assert "has no data set 'nort'. Did you mean 'north'?" in wrong.stderr


def test_beside_the_published_figures(run, tmp_path) -> None:
    store = tmp_path / "s.db"
    run("run", "paper", "--data", "german", "--classifier", "ARM1", "--folds", 2, "--jobs", 0, "--store", store)
    values = json.loads(run("tables", "paper", "--store", store, "--json").stdout)["tables"][0]["values"]
    shown = run("tables", "paper", "--store", store, "--paper", "--metric", "auc").stdout
    assert f"{values[0]['mean']:.4f} ({values[0]['mean'] - 0.7790:+.4f})" in shown


def test_messages(run, tmp_path) -> None:
    for words, message in (
        (("run", "papr"), "no study 'papr'. Did you mean 'paper'?"),
        (("status", "--store", tmp_path / "none.db"), "does not exist. Run a study first"),
        (("report", "--store", tmp_path / "none.db", "-o", tmp_path / "r.pdf"), "must end in .html or .md"),
    ):
        result = run(*words)
        assert result.exit_code == 2
        assert message in result.stderr
