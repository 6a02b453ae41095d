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
