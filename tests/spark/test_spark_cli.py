"""The command line on tables of Spark: what it says of the same rows in a file."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import plainrisk as pr
from plainrisk.cli.app import app
from plainrisk.cli.main import ExitCode

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning"),
]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def said(*words):
    done = run(*words, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def files(spark, loans, tmp_path_factory):
    """The rows in a file, their schema, and a model of them that Spark fitted."""
    folder = tmp_path_factory.mktemp("table")
    schema, frame = loans
    frame.write_parquet(folder / "loans.parquet")
    schema.save(folder / "loans.toml")
    there = f"spark:{folder / 'loans.parquet'}"
    words = ("--schema", folder / "loans.toml", "--model", "DirectARM1", "--weight", "weight", "--cutoff", "0.5")
    said("fit", there, *words, "-o", folder / "model.json")
    return folder, there


def test_a_fit_with_weights_and_scores(files, loans):
    folder, there = files
    schema, frame = loans
    X = frame.select("age", "income", "job")
    here = pr.make_classifier("DirectARM1", schema)
    here.fit(X, frame["bad"].to_numpy(), sample_weight=frame["weight"].to_numpy())
    found = pr.load(folder / "model.json")
    np.testing.assert_allclose(found.predict_proba(X), here.predict_proba(X), rtol=0, atol=1e-9)
    out = folder / "scored.parquet"
    assert said("score", folder / "model.json", there, "--keep", "bad", "--reasons", 2, "-o", out)["rows"] == 600
    scored = pl.read_parquet(out / "*.parquet")
    assert scored.columns == ["bad", "risk", "reason_1", "reason_2", "problem"]
    np.testing.assert_allclose(np.sort(scored["risk"]), np.sort(found.predict_proba(X)[:, 1]), rtol=0, atol=1e-12)
    again = run("score", folder / "model.json", there, "-o", out)
    assert again.exit_code == ExitCode.USAGE
    assert "the output is there already" in again.stderr


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("evaluate", ["--grades", "0.2,0.5"]),
        ("evaluate", ["--weight", "weight"]),
        ("cutoffs", ["--gain-good", "0.1", "--amount", "weight"]),
        ("drift", []),
    ],
)
def test_a_model_is_measured_as_on_a_file(files, command, own):
    folder, there = files
    one, other = (said(command, folder / "model.json", data, *own) for data in (there, folder / "loans.parquet"))
    if command == "evaluate":
        one, other = ({**found, **found["calibration"]} for found in (one, other))
        for name in ("ece", "ks", "brier", "h_measure", "log_loss", "gap"):  # their intervals are of other samples
            for found in (one, other):
                found["figures"][name] = found["figures"][name]["estimate"]
    assert one.keys() == other.keys()
    assert flat({**one, "data": ""}) == pytest.approx(flat({**other, "data": ""}), abs=1e-9, nan_ok=True)


def flat(found, path=""):
    """All numbers of plain data by their place."""
    if isinstance(found, dict | list):
        items = found.items() if isinstance(found, dict) else enumerate(found)
        return {k: v for name, one in items for k, v in flat(one, f"{path}/{name}").items()}
    return {path: found} if isinstance(found, int | float) else {}


def test_a_schema_is_drafted_and_checked(files):
    folder, there = files
    draft = run("schema", "infer", there, "--column", "bad", "-o", folder / "draft.toml")
    assert draft.exit_code == 0, draft.stderr
    run("schema", "infer", folder / "loans.parquet", "--column", "bad", "-o", folder / "here.toml")
    assert (folder / "draft.toml").read_text() == (folder / "here.toml").read_text()
    assert said("schema", "check", there, "--schema", folder / "draft.toml")["valid"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "model.json", "--by", "job"], "--against and --by need a file"),
        (["evaluate", "model.json", "--missing", "NA"], "--missing is for files"),
        (["drift", "model.json", "--column", "worse"], "no column 'worse'"),
        (["explain", "model.json"], "fit, score, evaluate, cutoffs, drift and schema work on rows where they are"),
    ],
)
def test_what_a_command_refuses(files, words, message):
    folder, there = files
    done = run(words[0], folder / words[1], there, *words[2:])
    assert done.exit_code == ExitCode.USAGE
    assert message in " ".join(done.stderr.split())


def test_a_table_that_is_not_there(files):
    folder, _ = files
    done = run("fit", "spark:no.such", "--schema", folder / "loans.toml", "-o", folder / "none.json")
    assert done.exit_code == ExitCode.USAGE
    assert "Spark, opening no.such" in done.stderr
    assert not (folder / "none.json").exists()
