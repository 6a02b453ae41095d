"""Risk, decision and reasons in one file; standard input and output; a cut-off in the model file."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from datetime import date

import msgspec
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
    assert run("score", model_file, credit.csv, *words).exit_code == 0
    written = pl.read_parquet(tmp_path / "r.parquet")
    assert written.columns == ["id", "risk", "decision", "reason_1", "reason_2", "reason_3"]
    reasons = pr.load(model_file).reasons(credit.frame, k=3)
    for i, row in enumerate(written.iter_rows(named=True)):
        refused = reasons.risk[i] >= 0.3
        assert row["risk"] == reasons.risk[i]
        assert row["decision"] == ("refused" if refused else "approved")
        told = [row[f"reason_{j}"] for j in (1, 2, 3) if row[f"reason_{j}"] is not None]
        assert told == (list(reasons.words(i)) if refused else [])
    assert set(written["decision"]) == {"approved", "refused"}


@pytest.mark.parametrize(
    ("adverse", "above", "decision"),
    [
        ("positive", 0.0, "refused"),
        ("positive", 1e-9, "approved"),
        ("negative", 0.0, "approved"),
        ("negative", 1e-9, "refused"),
    ],
)
def test_a_risk_at_the_cutoff_is_refused(run, credit, tmp_path, adverse, above, decision) -> None:
    form = pr.load(credit.model_file).form_
    model = pr.RiskModel(msgspec.structs.replace(form, schema=form.schema.replace(adverse=adverse)))
    cutoff = float(model.predict_proba(credit.frame[:1])[0, 1]) + above
    model.save(tmp_path / "without.json")
    model.save(tmp_path / "with.json", cutoff=cutoff)
    for words in (("without.json", "--cutoff", repr(cutoff)), ("with.json", "--decision")):
        result = run("score", tmp_path / words[0], credit.csv, *words[1:], "--json")
        assert json.loads(result.stdout)["decision"] == decision
    assert model.annotate(cutoff=cutoff).decide(credit.frame[:1]).to_dict(0)["decision"] == decision


@pytest.mark.parametrize("command", ["score", "reasons"])
def test_a_cutoff_of_the_file_is_not_overruled(run, credit, model_file, command) -> None:
    result = run(command, model_file, credit.csv, "--cutoff", "0.2")
    assert result.exit_code == 2
    assert f"{command}: {model_file} decides by the cut-off 0.3. Leave out --cutoff" in result.stderr
    assert f"plainrisk annotate {model_file} --cutoff 0.2" in result.stderr
    same = [run(command, model_file, credit.csv, *more) for more in (("--cutoff", "0.3"), ("--json",))]
    assert [one.exit_code for one in same] == [0, 0]


def test_no_more_reasons_than_the_policy_allows(run, credit, model_file, tmp_path) -> None:
    assert run("annotate", model_file, "--set", "policy.reasons = 2").exit_code == 0
    words = ("score", model_file, credit.csv, "--decision")
    refused = run(*words, "--reasons", "3")
    assert refused.exit_code == 2
    assert "k = 3, but the model's policy allows 2 reasons at most" in refused.stderr
    assert run(*words, "--reasons", "2", "-o", tmp_path / "r.csv").exit_code == 0
    assert pl.read_csv(tmp_path / "r.csv").columns == ["risk", "decision", "reason_1", "reason_2"]


def test_features_beyond_the_training_rows_are_named(run, credit, tmp_path) -> None:
    far = credit.frame[:2].with_columns(pl.Series("income", [1e9, credit.frame["income"][1]]), age=pl.lit(30.0))
    far.write_csv(tmp_path / "far.csv")
    words = ("score", credit.model_file, tmp_path / "far.csv", "--beyond")
    assert json.loads(run(*words, "--json").stdout)["beyond"] == ["income"]
    assert "Outside the training range: income." in run(*words).stderr
    assert run(*words, "--row", "1").stderr == ""
    assert run(*words, "-o", tmp_path / "r.csv").exit_code == 0
    assert pl.read_csv(tmp_path / "r.csv")["beyond"].to_list() == ["income", None]


def test_reasons_without_a_decision_are_of_every_row(run, credit, tmp_path) -> None:
    words = ("--reasons", "1", "-o", tmp_path / "r.csv")
    assert run("score", credit.model_file, credit.csv, *words).exit_code == 0
    written = pl.read_csv(tmp_path / "r.csv")
    assert written.columns == ["risk", "reason_1"]
    assert written["reason_1"].to_list() == [
        pr.load(credit.model_file).reasons(r, k=1).words(0)[0] for r in rows(credit)
    ]


def rows(credit):
    return credit.frame.select(list(credit.schema.features)).to_dicts()


def test_without_a_cutoff_the_error_says_where_it_may_stand(run, credit, tmp_path) -> None:
    result = run("score", credit.model_file, credit.csv, "--decision", "-o", tmp_path / "r.csv")
    assert result.exit_code == 2
    assert "has no cut-off to decide by. Add --cutoff RISK" in result.stderr
    assert not list(tmp_path.iterdir())


# ---- standard input and output


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_come_from_standard_input_and_go_to_standard_output(credit, kind) -> None:
    words = ["score", str(credit.model_file), "-", "-o", "-", "--keep", "id"]
    result = CliRunner().invoke(app, words, input=getattr(credit, kind).read_bytes())
    assert result.exit_code == 0
    written = pl.read_csv(io.BytesIO(result.stdout_bytes))
    assert written.columns == ["id", "risk"]
    assert written["risk"].to_list() == pr.load(credit.model_file).predict_proba(credit.frame)[:, 1].tolist()


def test_what_is_wrong_with_standard_input_is_said_of_it(credit) -> None:
    words = ["score", str(credit.model_file), "-"]
    result = CliRunner().invoke(app, words, input=b"a,b\n1\n")
    assert result.exit_code == 2
    assert "standard input" in result.output
    assert "plainrisk-" not in result.output


def test_several_files_are_scored_as_one(run, credit, tmp_path) -> None:
    for k in (0, 1):
        credit.frame[300 * k : 300 * (k + 1)].write_csv(tmp_path / f"part{k}.csv")
    assert run("score", credit.model_file, tmp_path / "part*.csv", "-o", tmp_path / "r.csv").exit_code == 0
    risk = pr.load(credit.model_file).predict_proba(credit.frame)[:, 1]
    assert pl.read_csv(tmp_path / "r.csv")["risk"].to_list() == risk.tolist()


def test_json_and_rows_do_not_share_standard_output(run, credit) -> None:
    result = run("score", credit.model_file, credit.csv, "-o", "-", "--json")
    assert result.exit_code == 2
    assert "Leave out one" in result.stderr


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("head"), reason="needs pipes and head")
def test_a_reader_that_ends_first_is_no_error(credit, tmp_path) -> None:
    pl.concat([credit.frame] * 50).write_csv(tmp_path / "many.csv")
    command = f"{sys.executable} -m plainrisk_command score {credit.model_file} many.csv -o - | head -n 1"
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
    assert (before.cutoff, found.cutoff) == (0.3, 0.25)
    assert found.form_ == before.annotate(cutoff=0.25).form_
    assert (found.form_.parts, found.fit_record_) == (before.form_.parts, before.fit_record_)
    assert found.about["owner"] == "Retail = cards"
    assert date.fromisoformat(found.about["date"])
    run("annotate", model_file, "--about", "date=")
    raw = model_file.read_bytes()
    shown = json.loads(run("annotate", model_file, "--json").stdout)
    stated = {"model": str(model_file), "cutoff": 0.25, "about": {"owner": "Retail = cards"}}
    assert shown == stated | found.form_.schema.annotations
    assert shown["policy"] == {"cutoff": 0.25}
    assert model_file.read_bytes() == raw


def test_annotate_sets_entries_written_as_in_a_schema(run, credit, model_file) -> None:
    before = pr.load(model_file)
    changes = ("policy.reasons = 2", 'policy.order = "subscale"', 'features.age = {label = "Age", protected = true}')
    result = run("annotate", model_file, *(word for change in changes for word in ("--set", change)))
    assert result.exit_code == 0
    assert 'order = "subscale"' in result.stdout
    found = pr.load(model_file)
    expected = {
        "policy": {"reasons": 2, "order": "subscale"},
        "features": {"age": {"label": "Age", "protected": True}},
    }
    assert found.form_ == before.annotate(expected).form_
    assert (found.cutoff, found.form_.schema.protected) == (0.3, ("age",))
    assert (found.predict_proba(credit.frame) == before.predict_proba(credit.frame)).all()
    assert run("certify", model_file).exit_code == 0


def test_annotate_takes_words_and_policy_from_a_schema(run, credit, model_file, tmp_path) -> None:
    words = {"policy": {"cutoff": 0.15, "inquiries": ["inquiries"]}, "features": {"income": {"label": "Your income"}}}
    credit.schema.annotate(words).save(tmp_path / "words.toml")
    assert run("annotate", model_file, "--schema", tmp_path / "words.toml").exit_code == 0
    found = pr.load(model_file)
    assert (found.cutoff, found.form_.schema.policy.inquiries) == (0.15, ("inquiries",))
    assert found.form_.schema.title("income") == "Your income"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--cutoff", "2"), "cutoff must be None or a probability"),
        (("--about", "owner"), "NAME=TEXT"),
        (("--set", "policy.cutof = 0.2"), "Did you mean 'cutoff'"),
        (("--set", "policy.cutoff = 2"), "cutoff must be a probability from 0 to 1, not 2"),
        (("--set", "policy.inquiries = ['agee']"), "inquiries names 'agee', which is not among the features"),
        (("--set", "features.agee.protected = true"), "there is no feature 'agee'. Did you mean 'age'"),
        (("--set", "features.age.direction = 'none'"), "is part of the fit"),
        (("--set", "target = 'other'"), "'target' is part of the fit"),
        (
            ("--set", "policy.letter.opening="),
            "policy.letter has no entry 'opening'. It may hold 'refused', 'unexplained'",
        ),
        (("--set", "policy.drift.huge="), "policy.drift has no entry 'huge'. It may hold 'moderate'"),
        (("--set", "policy.cutoff"), "--set"),
        (("--schema", "nothing.toml"), "nothing.toml"),
    ],
)
def test_annotate_refuses_and_leaves_the_file(run, model_file, words, message) -> None:
    raw = model_file.read_bytes()
    result = run("annotate", model_file, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert model_file.read_bytes() == raw


def test_fit_keeps_cutoff_texts_and_provenance(run, credit, tmp_path) -> None:
    words = ("--schema", credit.schema_file, "--column", "bad", "--model", "ARM1", "--cv", "0", "--provenance")
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
    quiet, told = (run(*more, "score", credit.model_file, credit.csv) for more in ((), ("--verbose",)))
    assert quiet.stdout == told.stdout
    assert quiet.stderr == ""
    assert "read the model file" in told.stderr
    assert "600 rows" in told.stderr
    assert run("score", credit.model_file, credit.csv).stderr == ""
