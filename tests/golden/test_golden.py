"""Model files written by an earlier version are read for ever, and give the answers they gave then.

scripts/golden.py wrote the files; it runs by explicit command only. On 2026-11-17 contributions became pieces of the
probability at the mean rate between reference and row. That changed them in models with a clipped, curved or inner
logistic link, and the reasons of models with clipped lines (an applicant whose risk is that of the best levels is given
none); risks and certificates are still those of the first day. Files of formats 1 and 2 state neither the adverse
outcome nor the order of reasons, which were options of the call: the test says both, as the calls did then.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

import plainrisk as pr
from plainrisk.form.file import FORMAT

polars = pytest.importorskip("polars")
FOLDER = Path(__file__).parent
NAMES = sorted(path.name.removesuffix(".model.json") for path in FOLDER.glob("*.model.json"))
WITH_POLICY = [name for name in NAMES if name.endswith(".format3")]


def read(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def applicants():
    return read("rows.json")


@pytest.fixture(scope="module", params=NAMES)
def golden(request):
    """A model, and its answers when its file was written."""
    return pr.load(FOLDER / f"{request.param}.model.json"), read(f"{request.param}.answers.json")


def test_every_classifier_of_the_paper_has_a_golden_file():
    assert {name for name, classifier in pr.CLASSIFIERS.items() if classifier.in_paper} <= set(NAMES)


def test_every_format_has_golden_files():
    assert {read(f"{name}.model.json")["format"] for name in NAMES} == set(range(1, FORMAT + 1))


def test_risks_are_the_same(golden, applicants):
    model, answers = golden
    risk = model.predict_proba(polars.DataFrame(applicants))[:, 1]
    np.testing.assert_allclose(risk, answers["risk"], rtol=0, atol=1e-12)


def test_risks_of_one_applicant_are_the_same(golden, applicants):
    model, answers = golden
    risk = [model.predict_proba(applicant)[0, 1] for applicant in applicants[:5]]
    np.testing.assert_allclose(risk, answers["risk"][:5], rtol=0, atol=1e-12)


def test_contributions_are_the_same(golden, applicants):
    model, answers = golden
    found = model.explain(polars.DataFrame(applicants), reference=applicants[0])
    assert found.unit == answers["unit"]
    assert list(found.names) == list(answers["contributions"])
    wanted = np.column_stack(list(answers["contributions"].values()))
    np.testing.assert_allclose(found.contributions, wanted, rtol=0, atol=1e-12)


def test_reasons_name_the_same_features(golden, applicants):
    model, answers = golden
    frame = polars.DataFrame(applicants)
    if "words" not in answers:
        schema = model.form_.schema.replace(adverse="negative", policy={"order": "subscale"})
        model = pr.RiskModel(msgspec.structs.replace(model.form_, schema=schema))
    found = model.reasons(frame, portfolio=frame)
    assert [list(found.named(i)) for i in range(len(applicants))] == answers["reasons"]


@pytest.mark.parametrize("name", WITH_POLICY)
def test_reasons_decisions_and_letters_say_the_same(name, applicants):
    model, answers = pr.load(FOLDER / f"{name}.model.json"), read(f"{name}.answers.json")
    frame = polars.DataFrame(applicants)
    found = model.decide(frame, portfolio=frame)
    ranked = model.reasons(frame, portfolio=frame)
    assert [list(ranked.words(i)) for i in range(len(ranked))] == answers["words"]
    assert ranked.withheld.tolist() == answers["withheld"]
    reasons = [words if refused else [] for words, refused in zip(answers["words"], answers["refused"], strict=True)]
    assert [list(found.words(i)) for i in range(len(found))] == reasons
    assert found.refused.tolist() == answers["refused"]
    assert set(answers["refused"]) == {True, False}
    assert [found.letter(i) for i in range(len(found))] == answers["letters"]
    named = {feature for row in answers["reasons"] for feature in row}
    assert not named & set(model.form_.schema.protected)


def test_files_of_format_3_hold_words_and_policy():
    for name in WITH_POLICY:
        schema = pr.load(FOLDER / f"{name}.model.json").form_.schema
        assert schema.protected, name
        assert schema.adverse == "negative"
        assert schema.title("Duration in month") == "Duration of the loan"
    policy = pr.load(FOLDER / "Policy.format3.model.json").form_.schema.policy
    default = type(policy)()
    assert all(getattr(policy, field) != getattr(default, field) for field in policy.__struct_fields__)


def test_certificates_come_to_the_same_verdicts(golden):
    model, answers = golden
    assert {check.name: check.holds for check in model.certify().checks} == answers["certificate"]
