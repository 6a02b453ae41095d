from __future__ import annotations

import json
import zipfile

import polars as pl
import pytest

import plainrisk as pr


def test_the_card_is_shown_with_its_facts(run, credit) -> None:
    result = run("scorecard", credit.model_file, "--pdo", "40")
    assert result.exit_code == 0
    card = pr.load(credit.model_file).scorecard(pdo=40)
    shown = [line.split() for line in result.stdout.splitlines()]
    points = [line[-1] for line in shown if len(line) > 2 and line[0] == "age"]
    assert points == [f"{row.points:g}" for row in card.rows if row.feature == "age"]
    assert "40 points more double the odds" in result.stdout


def test_json_holds_all_of_it(run, credit) -> None:
    result = run("scorecard", credit.model_file, "--json")
    card = pr.load(credit.model_file).scorecard()
    found = json.loads(result.stdout)
    assert [row["points"] for row in found["rows"]] == [row.points for row in card.rows]
    assert found["rounding"] == card.rounding
    assert found["information_values"] == card.information_values
    assert found["file"] is None


def test_the_ending_says_how_it_is_written(run, credit, tmp_path) -> None:
    pytest.importorskip("xlsxwriter")
    card = pr.load(credit.model_file).scorecard(decimals=1)
    for name in ("card.csv", "card.md", "card.xlsx"):
        assert run("scorecard", credit.model_file, "--decimals", "1", "-o", tmp_path / name).exit_code == 0
    assert pl.read_csv(tmp_path / "card.csv")["points"].to_list() == [row.points for row in card.rows]
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == card.to_markdown()
    again = tmp_path / "again.xlsx"
    assert run("scorecard", credit.model_file, "--decimals", "1", "-o", again).exit_code == 0
    assert (tmp_path / "card.xlsx").read_bytes() == again.read_bytes()
    with zipfile.ZipFile(again) as book:
        assert b"<f>" not in book.read("xl/worksheets/sheet1.xml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "card.pdf"), "must end in .csv, .xlsx, .md, .html, .json"),
        (("--pdo", "0"), "pdo must be a finite number above 0"),
        (("--adverse", "negative"), "No such option: --adverse"),
    ],
)
def test_what_is_wrong_is_said(run, credit, words, message) -> None:
    result = run("scorecard", credit.model_file, *words)
    assert result.exit_code == 2
    assert message in result.stderr
