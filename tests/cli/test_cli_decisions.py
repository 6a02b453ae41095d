"""Risk, decision and reasons in one file; standard input and output; a cut-off in the model file."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from datetime import date

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import plainrisk as pr
from plainrisk.cli.app import app


@pytest.fixture
def model_file(credit, tmp_path):
    """A copy of the model with a cut-off."""
    pr.load(credit.model_file).save(tmp_path / "model.json", cutoff=0.3)
    return tmp_path / "model.json"


def test_risk_decision_and_reasons_stand_together(run, credit, model_file, tmp_path) -> None:
    words = ("--decision", "--reasons", "3", "--keep", "id", "-o", tmp_path / "r.parquet")
    assert run("score", credit.csv, "--model", model_file, *words).exit_code == 0
    written = pl.read_parquet(tmp_path / "r.parquet")
    assert written.columns == ["id", "risk", "decision", "reason_1", "reason_2", "reason_3"]
    reasons = pr.load(model_file).reasons(credit.frame, k=3)
    for i, row in enumerate(written.iter_rows(named=True)):
        refused = reasons.risk[i] >= 0.3
        assert row["risk"] == reasons.risk[i]
        assert row["decision"] == ("refuse" if refused else "approve")
        told = [row[f"reason_{j}"] for j in (1, 2, 3) if row[f"reason_{j}"] is not None]
        assert told == (list(reasons.words(i)) if refused else [])
    assert set(written["decision"]) == {"approve", "refuse"}


def test_a_risk_at_the_cutoff_is_refused_and_the_option_goes_before(run, credit, model_file) -> None:
    risk = float(pr.load(model_file).predict_proba(credit.frame[:1])[0, 1])
    for cutoff, adverse, decision in [
        (risk, "positive", "refuse"),
        (risk + 1e-9, "positive", "approve"),
        (risk, "negative", "approve"),
        (risk + 1e-9, "negative", "refuse"),
    ]:
        words = ("--cutoff", repr(cutoff), "--adverse", adverse, "--json")
        found = json.loads(run("score", credit.csv, "--model", model_file, *words).stdout)
        assert found["decision"] == decision


def test_reasons_without_a_decision_are_of_every_row(run, credit, tmp_path) -> None:
    words = ("--model", credit.model_file, "--reasons", "1", "-o", tmp_path / "r.csv")
    assert run("score", credit.csv, *words).exit_code == 0
    written = pl.read_csv(tmp_path / "r.csv")
    assert written.columns == ["risk", "reason_1"]
    assert written["reason_1"].to_list() == [
        pr.load(credit.model_file).reasons(r, k=1).words(0)[0] for r in rows(credit)
    ]


def rows(credit):
    return credit.frame.select(list(credit.schema.features)).to_dicts()


def test_without_a_cutoff_the_error_says_where_it_may_stand(run, credit, tmp_path) -> None:
    result = run("score", credit.csv, "--model", credit.model_file, "--decision", "-o", tmp_path / "r.csv")
    assert result.exit_code == 2
    assert "holds no cut-off to decide by. Add --cutoff RISK" in result.stderr
    assert not list(tmp_path.iterdir())


# ---- standard input and output


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_come_from_standard_input_and_go_to_standard_output(credit, kind) -> None:
    words = ["score", "-", "--model", str(credit.model_file), "-o", "-", "--keep", "id"]
    result = CliRunner().invoke(app, words, input=getattr(credit, kind).read_bytes())
    assert result.exit_code == 0
    written = pl.read_csv(io.BytesIO(result.stdout_bytes))
    assert written.columns == ["id", "risk"]
    assert written["risk"].to_list() == pr.load(credit.model_file).predict_proba(credit.frame)[:, 1].tolist()


def test_what_is_wrong_with_standard_input_is_said_of_it(credit) -> None:
    words = ["score", "-", "--model", str(credit.model_file)]
    result = CliRunner().invoke(app, words, input=b"a,b\n1\n")
    assert result.exit_code == 2
    assert "standard input" in result.output
    assert "plainrisk-" not in result.output


def test_several_files_are_scored_as_one(run, credit, tmp_path) -> None:
    for k in (0, 1):
        credit.frame[300 * k : 300 * (k + 1)].write_csv(tmp_path / f"part{k}.csv")
    assert run("score", tmp_path / "part*.csv", "--model", credit.model_file, "-o", tmp_path / "r.csv").exit_code == 0
    risk = pr.load(credit.model_file).predict_proba(credit.frame)[:, 1]
    assert pl.read_csv(tmp_path / "r.csv")["risk"].to_list() == risk.tolist()


def test_json_and_rows_do_not_share_standard_output(run, credit) -> None:
    result = run("score", credit.csv, "--model", credit.model_file, "-o", "-", "--json")
    assert result.exit_code == 2
    assert "Leave out one" in result.stderr


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("head"), reason="needs pipes and head")
def test_a_reader_that_ends_first_is_no_error(credit, tmp_path) -> None:
    pl.concat([credit.frame] * 50).write_csv(tmp_path / "many.csv")
    command = f"{sys.executable} -m plainrisk_command score many.csv --model {credit.model_file} -o - | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == ["risk", "141"]
    assert "rror" not in done.stderr


# ---- what a model file holds beside the model


def test_annotate_keeps_a_cutoff_and_texts_and_shows_them(run, model_file) -> None:
    before = pr.load(model_file)
    assert run("annotate", model_file, "--cutoff", "0.25", "--about", "owner=Retail = cards", "--date").exit_code == 0
    found = pr.load(model_file)
    assert (found.cutoff, found.form_) == (0.25, before.form_)
    assert found.about["owner"] == "Retail = cards"
    assert date.fromisoformat(found.about["date"])
    run("annotate", model_file, "--about", "date=")
    raw = model_file.read_bytes()
    shown = json.loads(run("annotate", model_file, "--json").stdout)
    assert shown == {"model": str(model_file), "cutoff": 0.25, "about": {"owner": "Retail = cards"}}
    assert model_file.read_bytes() == raw


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--cutoff", "2"), "cutoff must be None or a probability"), (("--about", "owner"), "NAME=TEXT")],
)
def test_annotate_refuses_and_leaves_the_file(run, model_file, words, message) -> None:
    raw = model_file.read_bytes()
    result = run("annotate", model_file, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert model_file.read_bytes() == raw


def test_fit_keeps_cutoff_texts_and_provenance(run, credit, tmp_path) -> None:
    words = ("--schema", credit.schema_file, "--target", "bad", "--model", "ARM1", "--cv", "0", "--provenance")
    more = ("--cutoff", "0.2", "--about", "owner=Retail")
    for name, data in (("a.json", credit.csv), ("b.json", credit.parquet)):
        assert run("fit", data, "-o", tmp_path / name, *words, *more).exit_code == 0
    model = pr.load(tmp_path / "a.json")
    assert model.cutoff == 0.2
    assert list(model.about) == ["owner", "data", "versions"]
    assert f"numpy {np.__version__}" in model.about["versions"]
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    credit.frame.reverse().write_csv(tmp_path / "other.csv")
    run("fit", tmp_path / "other.csv", "-o", tmp_path / "c.json", *words)
    assert pr.load(tmp_path / "c.json").about["data"] != model.about["data"]
    stream = run("fit", credit.csv, "-o", tmp_path / "d.json", *words, "--stream")
    assert stream.exit_code == 2
    assert "--provenance needs all rows at once" in stream.stderr


def test_verbose_says_on_stderr_what_is_done(run, credit) -> None:
    quiet, told = (run(*more, "score", credit.csv, "--model", credit.model_file) for more in ((), ("--verbose",)))
    assert quiet.stdout == told.stdout
    assert quiet.stderr == ""
    assert "read the model file" in told.stderr
    assert "600 rows" in told.stderr
    assert run("score", credit.csv, "--model", credit.model_file).stderr == ""
