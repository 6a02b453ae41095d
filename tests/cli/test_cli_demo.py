from __future__ import annotations

import json

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.cli.validation import Validation
from plainrisk.explain import Certificate, Check


@pytest.fixture
def hasty(monkeypatch) -> None:
    """A demonstration with two folds, where figures do not matter."""
    monkeypatch.setattr("plainrisk.cli.demo.Validation", lambda cv: Validation(2))


def test_demo(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("demo", "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["models"]["ARM1"]["cv"]["auc"]["mean"] == pytest.approx(0.79, abs=0.01)
    assert told["models"]["ARM2"]["cv"]["auc"]["mean"] == pytest.approx(0.77, abs=0.015)
    assert all(model["certificate"]["valid"] for model in told["models"].values())
    one = told["applicant"]
    parts = [part["contribution"] for part in one["subscales"]]
    np.testing.assert_allclose(one["constant"] + sum(parts), one["risk"], atol=1e-12)
    told_no = told["decision"]
    german = pr.datasets.load("german")
    cutoff = german.schema.policy.cutoff
    assert told_no["risk"] == one["risk"] < cutoff == told_no["cutoff"] == 0.6
    assert told_no["decision"] == "refused"
    assert 1 <= len(told_no["reasons"]) <= 4
    assert german.schema.protected
    assert not {r["feature"] for r in told_no["reasons"]} & set(german.schema.protected)
    assert all(f"{i}. {r['reason']}" in told_no["letter"] for i, r in enumerate(told_no["reasons"], 1))
    answers = told_no["what_if"]["answers"]
    assert answers[0]["risk"] >= cutoff
    assert not {c["feature"] for answer in answers for c in answer["changes"]} & set(german.schema.protected)
    for name, file in (("SmoothARM1", "smooth"), ("ARM2", "arm2")):
        saved = pr.load(tmp_path / "demo" / f"{file}.json")
        fitted = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
        assert (saved.predict_proba(german.frame) == fitted.predict_proba(german.frame)).all()
    assert pr.Schema.load(tmp_path / "demo" / "german.toml") == german.schema
    assert "German credit" in (tmp_path / told["files"]["page"]).read_text(encoding="utf-8")


@pytest.mark.usefixtures("hasty")
def test_demo_fits_a_terminal_of_80_columns(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    text = run("demo").stdout
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "70% of them ended well",
        "Every model passes its certificate",
        "each line is a piece of the probability that the applicant repays the loan, and the pieces add up",
        "Checking account below 200 DM",
        "(protected)",
        "never a reason and nobody is advised to change them: Personal status and sex, Age, Foreign worker.",
        "Principal reasons for this decision: 1. Duration of the loan",
        "The smallest changes that would lead to approval",
        "probability that the applicant repays the loan; approved if at least 60.0%",
        "Duration of the loan 48 months 14 months",
        "demo/smooth.json",
        "demo/german.html",
    ):
        assert words in " ".join(text.split())


@pytest.mark.usefixtures("hasty")
def test_a_failed_certificate_ends_with_4(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("plainrisk.cli.demo.MODELS", ("SmoothARM1",))
    broken = Certificate((Check("monotone in age", False, "it is not"),), ())
    monkeypatch.setattr("plainrisk.model.FormMethods.certify", lambda self: broken)
    result = run("demo", "--folder", tmp_path)
    assert result.exit_code == 4
    assert "fails its certificate, so nothing was written" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way(run, tmp_path) -> None:
    (tmp_path / "demo").write_text("")
    result = run("demo", "--folder", tmp_path / "demo")
    assert result.exit_code == 2
    assert "a file of this name is in the way" in result.stderr
