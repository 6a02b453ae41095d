"""`plainrisk bins` and `plainrisk diff`."""

from __future__ import annotations

import json

import pytest

import plainrisk as pr


def test_bins_are_written_as_a_schema(run, credit, tmp_path) -> None:
    path = tmp_path / "bins.toml"
    assert run("bins", credit.model_file, "-o", path).exit_code == 0
    expected = pr.load(credit.model_file).schema_with_bins()
    assert pr.Schema.load(path) == expected
    found = json.loads(run("bins", credit.model_file, "--json").stdout)
    assert pr.Schema.from_dict(found["schema"]) == expected
    assert "edges = [" in run("bins", credit.model_file).stdout
    again = run("bins", credit.model_file, "-o", path)
    assert again.exit_code == 2
    assert "--force replaces it" in again.stderr


@pytest.mark.parametrize("name", ["bins.csv", "bins"])
def test_bins_refuse_another_kind_of_file(run, credit, tmp_path, name) -> None:
    assert run("bins", credit.model_file, "-o", tmp_path / name).exit_code == 2
    assert not (tmp_path / name).exists()


@pytest.fixture
def merged(credit, tmp_path):
    schema = pr.load(credit.model_file).schema_with_bins()
    model = pr.AdditiveRiskModel(schema.edit("income", merge=[range(4)]))
    model.fit(credit.frame.drop("bad", "id"), credit.frame["bad"]).save(tmp_path / "merged.json")
    return tmp_path / "merged.json"


def test_diff_shows_the_largest_moves_and_the_rows(run, credit, merged) -> None:
    result = run("diff", credit.model_file, merged, credit.csv, "--cutoff", "0.3")
    assert result.exit_code == 0, result.stderr
    assert "income" in result.stdout
    assert "cut-off 0.3" in result.stdout
    found = json.loads(run("diff", credit.model_file, merged, credit.csv, "--cutoff", "0.3", "--json").stdout)
    change = pr.diff(pr.load(credit.model_file), pr.load(merged), credit.frame, cutoff=0.3)
    assert found["rows"]["rose"] == change.rows.rose
    assert found["terms"][0]["feature"] == change.terms[0].feature


def test_diff_without_rows_has_no_cut_off(run, credit, merged) -> None:
    assert run("diff", credit.model_file, merged).exit_code == 0
    result = run("diff", credit.model_file, merged, "--cutoff", "0.3")
    assert result.exit_code == 2
    assert "cutoff needs rows" in result.stderr
