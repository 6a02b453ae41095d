"""`plainrisk sign` and `plainrisk verify`: keys, signatures, --json, and errors that leave nothing behind."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from plainrisk.cli.main import ExitCode


@pytest.fixture
def place(credit, tmp_path, monkeypatch):
    """The current folder, with a model file."""
    monkeypatch.delenv("PLAINRISK_KEY_PASSWORD", raising=False)
    shutil.copy(credit.model_file, tmp_path / "model.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(place):
    return sorted(path.name for path in place.iterdir())


def test_a_key_a_signature_and_a_check(run, place):
    done = run("sign", "--new-key", "key.pem")
    assert done.exit_code == 0, done.stderr
    assert "Wrote key.pem, which signs: keep it secret" in done.stdout
    done = run("sign", "model.json", "--key", "key.pem")
    assert done.exit_code == 0, done.stderr
    assert "Wrote model.json.sig, by the key " in done.stdout
    assert names(place) == ["key.pem", "key.pub.pem", "model.json", "model.json.sig"]
    done = run("verify", "model.json", "--key", "key.pub.pem")
    assert done.exit_code == 0, done.stderr
    assert "holds   model.json is as the key " in done.stdout


def test_json_and_other_places(run, place):
    made = json.loads(run("sign", "model.json", "--new-key", "k.pem", "-o", "s.sig", "--json").stdout)
    assert made["signature"] == "s.sig"
    assert made["new_key"] == {"private": "k.pem", "public": "k.pub.pem"}
    found = json.loads(run("verify", "model.json", "--key", "k.pub.pem", "--signature", "s.sig", "--json").stdout)
    assert found["valid"] is True
    assert (found["key"], found["signature"]) == (made["key"], "s.sig")


def test_what_does_not_hold_ends_with_4(run, place):
    run("sign", "model.json", "--new-key", "key.pem")
    run("sign", "--new-key", "other.pem")
    done = run("verify", "model.json", "--key", "other.pub.pem")
    assert done.exit_code == ExitCode.FAILED_CERTIFICATE
    assert "BROKEN  model.json.sig is by another key" in done.stdout
    run("annotate", "model.json", "--cutoff", 0.3)
    done = run("verify", "model.json", "--key", "key.pub.pem", "--json")
    assert done.exit_code == ExitCode.FAILED_CERTIFICATE
    found = json.loads(done.stdout)
    assert found["valid"] is False
    assert "is not the file that was signed" in found["reason"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sign", "model.json"), "name the model and one key: plainrisk sign MODEL --key KEY"),
        (("sign", "--key", "key.pem"), "name the model and one key"),
        (("sign", "model.json", "--key", "a", "--new-key", "b"), "name the model and one key"),
        (("sign", "loans.csv", "--new-key", "new.pem"), "loans.csv is not a model file"),
        (("sign", "none.json", "--new-key", "new.pem"), "none.json does not exist"),
        (("sign", "model.json", "--key", "none.pem"), "none.pem does not exist"),
        (("sign", "model.json", "--key", "model.json"), "it cannot be read as a private key"),
        (("verify", "model.json", "--key", "none.pem"), "none.pem does not exist"),
        (("verify", "none.json", "--key", "model.json"), "it cannot be read as a public key"),
    ],
)
def test_errors_leave_nothing_behind(run, place, words, message):
    done = run(*words)
    assert done.exit_code == ExitCode.USAGE
    assert message in done.stderr
    assert names(place) == ["model.json"]


def test_without_the_package_the_exit_code_is_that_of_a_missing_extra(run, place, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    done = run("sign", "--new-key", "key.pem")
    assert done.exit_code == ExitCode.MISSING_EXTRA
    assert "pip install 'plainrisk[sign]'" in done.stderr
    assert names(place) == ["model.json"]
