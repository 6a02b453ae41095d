from __future__ import annotations

import json
import shutil

import pytest

from plainrisk import datasets


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("PLAINRISK_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_list_names_every_data_set(run) -> None:
    listed = json.loads(run("data", "list", "--json").stdout)["data_sets"]
    assert [s["name"] for s in listed] == list(datasets.names())
    german = listed[0]
    assert (german["rows"], german["positive_rate"], german["license"]) == (1000, 0.7, "CC BY 4.0")
    assert {s["status"] for s in listed[1:]} == {"absent"}
    text = run("data", "list").stdout
    assert "lc_0 ... lc_12" in text
    assert "Give Me Some Credit" in text


def test_show_says_how_to_get_it(run) -> None:
    result = run("data", "show", "heloc")
    assert result.exit_code == 0
    assert "heloc_dataset_v1.csv" in result.stdout
    assert "PLAINRISK_DATA" in result.stdout
    german = json.loads(run("data", "show", "german", "--json").stdout)
    assert german["status"] == "present"
    assert len(german["features"]) == 20


def test_a_misspelled_name(run) -> None:
    for words in (("show", "germn"), ("check", "germn")):
        result = run("data", *words)
        assert result.exit_code == 2
        assert "there is no data set 'germn'. Did you mean 'german'?" in result.stderr


def test_check_ends_with_1_if_a_file_is_wrong(run, tmp_path) -> None:
    fine = run("data", "check", "german", "taiwan", "--json")
    assert fine.exit_code == 0
    assert [r["status"] for r in json.loads(fine.stdout)["data_sets"]] == ["present", "absent"]
    (tmp_path / "german.data").write_text("A11 6 A34\n")
    wrong = run("data", "check", "german")
    assert wrong.exit_code == 1
    assert "wrong" in wrong.stdout


def test_a_file_comes_before_a_data_set_of_its_name(run, credit, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(credit.csv, "german")
    result = run("schema", "check", "german", "--schema", credit.schema_file)
    assert result.exit_code == 2
    assert "The name must end in .csv" in result.stderr
