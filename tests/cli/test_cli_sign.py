"""`plainrisk sign` and `plainrisk verify`: keys, signatures, --json, and errors that leave nothing behind."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import plainrisk as pr
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
    assert "Wrote key.pem, the private key: keep it secret" in done.stdout
    done = run("sign", "model.json", "--key", "key.pem")
    assert done.exit_code == 0, done.stderr
    assert "Wrote model.json.sig, by the key " in done.stdout
    assert names(place) == ["key.pem", "key.pub.pem", "model.json", "model.json.sig"]
    done = run("verify", "model.json", "--key", "key.pub.pem")
    assert done.exit_code == 0, done.stderr
    assert "holds   signature: model.json is as the owner of the key signed it" in done.stdout


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
    assert "BROKEN  signature: model.json.sig is by another key" in done.stdout
    run("annotate", "model.json", "--cutoff", 0.3)
    done = run("verify", "model.json", "--key", "key.pub.pem", "--json")
    assert done.exit_code == ExitCode.FAILED_CERTIFICATE
    found = json.loads(done.stdout)
    assert found["valid"] is False
    assert "is not the file that was signed" in found["checks"][0]["detail"]


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


# ---- receipts


@pytest.fixture
def receipt(run, credit, place):
    """The receipt of a refused applicant, and the applicant, both in files."""
    run("annotate", "model.json", "--cutoff", 0.05)
    run("sign", "--new-key", "key.pem")
    model = pr.load("model.json")
    row = int(model.decide(credit.frame).refused.argmax())
    applicant = {name: credit.frame[name][row] for name in model.form_.features}
    made = model.receipt(applicant, key="key.pem")
    made.save("receipt.json")
    Path("applicant.json").write_text(json.dumps(applicant), encoding="utf-8")
    return made


def test_a_receipt_is_checked_alone_and_with_the_model(run, receipt):
    done = run("verify", "receipt.json", "--key", "key.pub.pem")
    assert done.exit_code == 0, done.stderr
    assert "holds   signature: the receipt is as the key " in done.stdout
    assert "not checked: the inputs, which were not given" in done.stdout
    assert ": refused; probability that " in done.stdout
    words = ("verify", "receipt.json", "--key", "key.pub.pem", "--model", "model.json", "--inputs", "applicant.json")
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("holds ") == 7
    assert receipt.record.reasons[0].words in done.stdout
    found = json.loads(run(*words, "--json").stdout)
    assert found["valid"] is True
    assert found["record"] == json.loads(json.dumps(receipt.to_dict()["receipt"]))
    assert [check["holds"] for check in found["checks"]] == [True] * 7


def test_a_changed_receipt_ends_with_4(run, receipt):
    path = Path("receipt.json")
    path.write_text(path.read_text("utf-8").replace("refused", "approved"), encoding="utf-8")
    done = run("verify", "receipt.json", "--key", "key.pub.pem")
    assert done.exit_code == ExitCode.FAILED_CERTIFICATE
    assert "BROKEN  signature: the receipt was changed, or is damaged" in done.stdout
    assert "probability" not in done.stdout.replace("not checked: probability", ""), "nothing of it is to be believed"


def test_other_inputs_end_with_4_and_are_named_not_shown(run, receipt):
    path = Path("applicant.json")
    applicant = json.loads(path.read_text("utf-8"))
    applicant["utilization"] = 0.123456789
    path.write_text(json.dumps(applicant), encoding="utf-8")
    done = run("verify", "receipt.json", "--key", "key.pub.pem", "--inputs", "applicant.json")
    assert done.exit_code == ExitCode.FAILED_CERTIFICATE
    assert "BROKEN  inputs: not what the decision was made on: utilization" in done.stdout
    assert "0.123456789" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("receipt.json", "--signature", "s.sig"), "a receipt contains its signature. Leave out --signature"),
        (("model.json", "--inputs", "applicant.json"), "--model and --inputs are for receipts, and model.json is none"),
        (("receipt.json", "--inputs", "none.json"), "none.json does not exist"),
        (("receipt.json", "--inputs", "key.pem"), "key.pem is damaged: it is not valid JSON"),
        (("receipt.json", "--model", "receipt.json"), "receipt.json is not a plainrisk model"),
    ],
)
def test_errors_of_receipts(run, receipt, words, message):
    done = run("verify", *words, "--key", "key.pub.pem")
    assert done.exit_code == ExitCode.USAGE
    assert message in done.stderr
