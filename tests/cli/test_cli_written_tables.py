"""-o wherever there is a table: every ending holds the same figures, and an unknown one is refused before any work."""

from __future__ import annotations

import json

import polars as pl
import pytest

from plainrisk.cli import tables

COMMANDS = {
    "evaluate": ("evaluate", "MODEL", "DATA", "--against", "MODEL"),
    "evaluate by": ("evaluate", "MODEL", "DATA", "--by", "housing"),
    "cutoffs": ("cutoffs", "MODEL", "DATA", "--gain-good", "0.2"),
    "fairness": ("fairness", "MODEL", "DATA", "--by", "housing", "--cutoff", "0.3"),
    "drift": ("drift", "MODEL", "DATA"),
    "certify": ("certify", "MODEL"),
    "diff": ("diff", "MODEL", "MODEL"),
    "scorecard": ("scorecard", "MODEL"),
    "compare": ("compare", "RESULTS"),
}


@pytest.fixture
def words(credit, tmp_path):
    results = tmp_path / "results.csv"
    names = [f"d{i}" for i in range(8)]
    pl.DataFrame({"data": names, "A": [0.7 + i / 100 for i in range(8)], "B": [0.6] * 8, "C": [0.65] * 8}).write_csv(
        results
    )
    known = {"MODEL": credit.model_file, "DATA": credit.csv, "RESULTS": results}
    return lambda name: [known.get(word, word) for word in COMMANDS[name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_ending_is_written(run, words, tmp_path, name):
    for ending in tables.TABLE:
        output = tmp_path / f"table{ending}"
        result = run(*words(name), "-o", output)
        assert result.exit_code == 0, result.stderr
        assert output.stat().st_size > 0
    if name == "diff":  # two equal models: nothing moved
        return
    written = json.loads((tmp_path / "table.json").read_text("utf-8"))
    read = pl.read_parquet(tmp_path / "table.parquet")
    assert len(written) == read.height > 0
    assert list(written[0]) == read.columns
    assert (tmp_path / "table.html").read_text("utf-8").count("<tr>") == read.height + 1
    if name != "scorecard":  # which has facts below, and bases
        assert (tmp_path / "table.md").read_text("utf-8").count("\n") == read.height + 2


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_ending_is_refused_before_any_work(run, tmp_path, name):
    absent = {"MODEL": "none.json", "DATA": "none.csv", "RESULTS": "none.csv"}
    result = run(*(absent.get(word, word) for word in COMMANDS[name]), "-o", tmp_path / "table.docx")
    assert result.exit_code == 2
    assert "cannot write this kind of file. The name must end in .csv, .xlsx, .md, .html, .json" in result.stderr


def test_a_missing_package_is_said_before_any_work(run, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    result = run("cutoffs", "none.json", "none.csv", "-o", tmp_path / "t.xlsx")
    assert result.exit_code == 3
    assert "pip install 'plainrisk[export]'" in result.stderr


def test_texts_are_escaped_and_numbers_are_plain(tmp_path):
    columns = {"a|b": ["<i>", "x|y"], "n": [3158290.0, float("nan")], "k": [1200, None], "ok": [True, False]}
    tables.write_table(columns, tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text("utf-8")
    assert "&lt;i&gt;" in page
    assert "3,158,290" in page
    tables.write_table(columns, tmp_path / "t.md")
    text = (tmp_path / "t.md").read_text("utf-8")
    assert text.splitlines()[0] == "| a\\|b | n | k | ok |"
    assert text.splitlines()[2] == "| <i> | 3,158,290 | 1,200 | yes |"
    tables.write_table(columns, tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text("utf-8"))[1] == {"a|b": "x|y", "n": None, "k": None, "ok": False}
