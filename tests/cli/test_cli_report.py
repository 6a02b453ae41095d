from __future__ import annotations

import json
import re

import pytest

import plainrisk as pr


def payload(path):
    return json.loads(re.search(r'id="payload">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1])


def test_the_page_holds_the_model_and_no_row(run, credit, tmp_path) -> None:
    page = tmp_path / "page.html"
    result = run("report", credit.model_file, "-o", page)
    assert result.exit_code == 0
    assert "with no rows" in result.stdout
    found = payload(page)
    assert found["title"] == "model"
    assert found["applicants"] == []
    assert found["models"][0]["form"] == json.loads(credit.model_file.read_text(encoding="utf-8"))["form"]


def test_data_a_second_model_and_examples(run, credit, tmp_path) -> None:
    page = tmp_path / "page.html"
    words = (credit.parquet, "--against", credit.model_file, "--applicants", "3", "--title", "Loans")
    result = run("report", credit.model_file, *words, "-o", page, "--json")
    said, found = json.loads(result.stdout), payload(page)
    assert said["bytes"] == page.stat().st_size
    assert said["applicants"] == len(found["applicants"]) == 3
    assert found["title"] == "Loans"
    assert len(found["models"]) == 2
    assert found["models"][0]["data"]["rows"] == len(credit.frame)
    assert found["models"][0]["data"]["bad"] == credit.frame["bad"].sum()


def test_who_can_read_the_examples_is_said(run, credit, tmp_path) -> None:
    result = run("report", credit.model_file, credit.csv, "--applicants", "2", "-o", tmp_path / "page.html")
    assert "everybody who has the page can read" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "page.pdf"), "must end in .html"),
        (("-o", "page.html", "--applicants", "2"), "Pass data, too"),
        (("-o", "page.html", "--adverse", "negative"), "No such option: --adverse"),
        (("-o", "page.html", "--cutoff", "2"), "cutoff must be None or a probability"),
        (("-o", "page.html", "--against", "none.json"), "none.json does not exist"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(run, credit, tmp_path, monkeypatch, words, message) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("report", credit.model_file, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_loaded_model_writes_the_same_page(run, credit, tmp_path) -> None:
    run("report", credit.model_file, "--title", "One", "-o", tmp_path / "a.html")
    pr.load(credit.model_file).report(tmp_path / "b.html", title="One")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
