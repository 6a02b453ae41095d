"""What a command shows when names are hostile, and what it says in JSON when it fails."""

from __future__ import annotations

import json

import polars as pl
import pytest

from plainrisk import Schema
from plainrisk.errors import missing_extra

HOSTILE = "a\x1b[2J\x9b\u202e[red]b[/]"
COMMANDS = set("\x1b\x9b\u202e")


@pytest.fixture
def hostile(tmp_path, run):
    """A data file, a schema and a model whose names and labels hold terminal commands and markup."""
    bad = [int(k % 5 in (2, 3) or k > 150) for k in range(200)]
    rows = pl.DataFrame({HOSTILE: range(200), "c": [HOSTILE, "x"] * 100, "bad": bad})
    rows.write_csv(tmp_path / "d.csv")
    features = {HOSTILE: {"direction": "increasing"}, "c": {"kind": "categorical"}}
    Schema(features=features, target="bad").save(tmp_path / "s.json")
    fitted = run("fit", tmp_path / "d.csv", "--schema", tmp_path / "s.json", "-o", tmp_path / "m.json", "--cv", 2)
    assert fitted.exit_code == 0, fitted.stderr
    return tmp_path


@pytest.mark.parametrize("json_too", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("command", ["explain", "reasons", "what-if", "drift", "certify", "score"])
def test_names_are_shown_as_text(run, hostile, command, json_too):
    words = [hostile / "m.json"] if command == "certify" else [hostile / "m.json", hostile / "d.csv"]
    more = {"what-if": ["--cutoff", 0.1], "reasons": ["--cutoff", 0.1]}.get(command, [])
    row = [] if command in ("certify", "drift") else ["--row", 170]
    done = run(command, *words, *more, *row, *json_too)
    assert done.exit_code == 0, done.stderr
    assert not COMMANDS & set(done.stdout + done.stderr)
    if command in ("explain", "drift", "reasons"):
        assert "[red]b[/]" in done.stdout
    if json_too:
        assert isinstance(json.loads(done.stdout), dict)


def test_a_hostile_file_commands_nothing(run, tmp_path):
    path = tmp_path / "b.json"
    path.write_text('{"format": 99, "plainrisk": "\\u001b]0;pwned\\u001b[2J"}', encoding="utf-8")
    done = run("certify", path)
    assert done.exit_code == 2
    assert "\\u001b]0;pwned\\u001b[2J" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (("certify", "nothing.json"), "ModelFileError", 2),
        (("score", "nothing.json", "nothing.csv"), "ModelFileError", 2),
        (("certify",), "UsageError", 2),
        (("certify", "--no-such\x1b[2J"), "UsageError", 2),
        (("certfy", "x"), "UsageError", 2),
        (("score", "m.json", "x.csv", "--row", "x"), "UsageError", 2),
    ],
)
def test_with_json_a_failure_is_json(run, tmp_path, monkeypatch, words, kind, code):
    monkeypatch.chdir(tmp_path)
    done = run(*words, "--json")
    assert done.exit_code == code
    error = json.loads(done.stdout)["error"]
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert error["message"]
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr, "a person reads the same on stderr"


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (KeyboardInterrupt(), "Interrupted", 130),
        (missing_extra("matplotlib", "plot"), "MissingExtraError", 3),
        (OSError(28, "No space left on device", "out.csv"), "OSError", 2),
        (RuntimeError("seven is not eight"), "RuntimeError", 1),
    ],
)
def test_with_json_every_end_is_json(run, credit, monkeypatch, error, kind, code):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("plainrisk.cli.source.open_source", fail)
    done = run("schema", "infer", credit.csv, "--json")
    assert done.exit_code == code
    found = json.loads(done.stdout)["error"]
    assert (found["kind"], found["exit_code"]) == (kind, code)
    assert "error" in done.stderr


# ---- numbers on the command line


@pytest.mark.parametrize("words", [("--cutoff", "nan"), ("--cutoff", "2"), ("--min-rows", "nan"), ("-k", "0")])
def test_reasons_refuse_numbers_that_mean_nothing(run, credit, tmp_path, words):
    done = run("reasons", credit.model_file, credit.csv, "-o", tmp_path / "r.csv", *words)
    assert done.exit_code == 2
    assert f"{words[0].strip('-').replace('-', '_')} must be" in done.stderr
    assert not (tmp_path / "r.csv").exists()


def test_as_many_reasons_as_features(run, credit):
    few, many = (
        json.loads(run("reasons", credit.model_file, credit.csv, "--cutoff", 0.1, "-k", k, "--json").stdout)
        for k in (12, 10**9)
    )
    assert few == many
    assert few["reasons"]


def test_a_row_beyond_all_rows_is_refused(run, credit):
    for row in (600, 2**62, 2**63, 10**30):
        done = run("score", credit.model_file, credit.csv, "--row", row)
        assert done.exit_code == 2, done.stderr
        assert "bug" not in done.stderr


def test_seeds_of_any_size(run, credit, tmp_path):
    words = ("fit", credit.csv, "--schema", credit.schema_file, "--column", "bad", "-o", tmp_path / "m.json", "--cv", 2)
    first, second = (run(*words, "--seed", 2**32, "--json") for _ in range(2))
    assert first.exit_code == 0, first.stderr
    assert json.loads(first.stdout)["cv"] == json.loads(second.stdout)["cv"]
    assert run(*words, "--seed", -1).exit_code == 2
