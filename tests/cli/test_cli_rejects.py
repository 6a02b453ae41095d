"""Rows that cannot be used are set aside with their errors, and the others get the results that they get alone."""

from __future__ import annotations

import json

import msgspec
import polars as pl
import pytest

import plainrisk as pr


@pytest.fixture(scope="module")
def spoiled(credit, tmp_path_factory):
    """A model that refuses unseen kinds of housing, rows of which three are wrong, and the others alone."""
    folder = tmp_path_factory.mktemp("rejects")
    form = pr.load(credit.model_file).form_
    features = dict(form.schema.features)
    features["housing"] = msgspec.structs.replace(features["housing"], unseen="error")
    schema = msgspec.structs.replace(form.schema, features=features)
    pr.RiskModel(msgspec.structs.replace(form, schema=schema)).save(folder / "model.json")
    number = next(name for name, feature in features.items() if feature.kind == "continuous")
    texts = credit.frame.with_columns(pl.col(number).cast(pl.String))
    at = pl.arange(credit.frame.height)
    wrong = texts.with_columns(
        pl.when(at == 7)
        .then(pl.lit("lots"))
        .when(at == 400)
        .then(pl.lit("inf"))
        .otherwise(pl.col(number))
        .alias(number),
        pl.when(at == 399).then(pl.lit("boat")).otherwise(pl.col("housing")).alias("housing"),
    )
    wrong.write_csv(folder / "wrong.csv")
    wrong.write_parquet(folder / "wrong.parquet", row_group_size=90)
    credit.frame.filter(~at.is_in([7, 399, 400])).write_csv(folder / "right.csv")
    return folder, number


@pytest.mark.parametrize("source", ["wrong.csv", "wrong.parquet"])
@pytest.mark.parametrize("command", ["score", "reasons"])
def test_the_others_get_what_they_get_alone(run, spoiled, tmp_path, source, command):
    folder, number = spoiled
    model, out = folder / "model.json", ["--keep", "id", "--json", "-o"]
    words = [*out, tmp_path / "out.csv", "--rejects", tmp_path / "rejects.csv"]
    result = run(command, model, folder / source, *words)
    assert result.exit_code == 0, result.stderr
    run(command, model, folder / "right.csv", *out, tmp_path / "alone.csv")
    found, alone = (pl.read_csv(tmp_path / name) for name in ("out.csv", "alone.csv"))
    numbers = [name for name in found.columns if name == "row"]  # of reasons, in the file
    assert found.drop(numbers).equals(alone.drop(numbers))
    assert all((found[name] == found["id"] - 100).all() for name in numbers)
    told = pl.read_csv(tmp_path / "rejects.csv")
    assert told.columns == ["row", "id", "error"]
    assert told["row"].to_list() == [7, 399, 400]
    assert told["id"].to_list() == [107, 499, 500]
    for error, words in zip(told["error"], (repr(number), "'housing', row 399", repr(number)), strict=True):
        assert words in error
    facts = json.loads(result.stdout)
    assert (facts["rows"], facts["unusable"], facts["scored"]) == (600, 3, 597)
    assert facts["rejects"] == str(tmp_path / "rejects.csv")


def test_without_it_one_row_refuses_all(run, spoiled, tmp_path):
    folder, _ = spoiled
    result = run("score", folder / "model.json", folder / "wrong.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "row 7" in result.stderr
    assert not list(tmp_path.iterdir())


def test_where_nothing_is_wrong_the_file_of_rejects_is_empty(run, credit, tmp_path):
    (tmp_path / "rejects.csv").write_text("of the day before")
    words = ("-o", tmp_path / "out.csv", "--keep", "id", "--rejects", tmp_path / "rejects.csv")
    result = run("score", credit.model_file, credit.csv, *words)
    assert result.exit_code == 0
    assert "0 unusable, 600 scored" in result.stdout
    assert (tmp_path / "rejects.csv").read_text() == "row,id,error\n"


def test_a_file_of_wrong_rows_is_refused(run, spoiled, tmp_path, monkeypatch):
    folder, _ = spoiled
    monkeypatch.setattr("plainrisk.cli.rejects.MOST", 2)
    words = ("-o", tmp_path / "out.csv", "--rejects", tmp_path / "rejects.csv")
    result = run("score", folder / "model.json", folder / "wrong.csv", *words)
    assert result.exit_code == 2
    assert "More than 2 rows cannot be used" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rejects", "r.csv"], "Add -o FILE"),
        (["-o", "r.csv", "--rejects", "r.csv"], "the same file"),
        (["-o", "r.csv", "--rejects", "r.pdf"], "cannot write this kind of file"),
    ],
)
def test_what_cannot_be_done_is_said_first(run, credit, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    result = run("score", credit.model_file, credit.csv, *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not list(tmp_path.iterdir())
