"""Results print as a short table or line, and become plain data."""

from __future__ import annotations

import json

import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain import Profile
from plainrisk.explain.groups import compare_groups
from plainrisk.tables import text_table
from plainrisk.validate.bootstrap import bootstrap


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(1200, 5)


@pytest.fixture(scope="module")
def model(credit):
    return pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)


@pytest.fixture(scope="module")
def results(model, credit):
    risk = model.predict_proba(credit.frame)[:, 1]
    refits = bootstrap(model, credit.frame, credit.target, 3)
    return {
        "explanation": model.explain(credit.frame),
        "reasons": model.reasons(credit.frame),
        "what_if": model.what_if(credit.frame[int(risk.argmax()) : int(risk.argmax()) + 1], 0.1),
        "what_ifs": model.what_ifs(credit.frame[:20], 0.1),
        "overview": model.overview(),
        "drift": model.drift(credit.frame[:300]),
        "certificate": model.certify(),
        "groups": compare_groups(credit.target, risk, credit.frame["housing"], cutoff=0.2),
        "refits": refits,
        "interval": refits.risk(credit.frame),
        "profile": Profile(model.form_).add(credit.frame),
    }


NAMES = [
    "certificate",
    "drift",
    "explanation",
    "groups",
    "interval",
    "overview",
    "profile",
    "reasons",
    "refits",
    "what_if",
    "what_ifs",
]


def test_all_results_are_looked_at(results):
    assert sorted(results) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_results_print_shortly(results, name):
    text = repr(results[name])
    assert len(text.splitlines()) <= 12
    assert all(len(line) <= 200 for line in text.splitlines())
    assert "array(" not in text


def test_what_is_printed(results, model, credit):
    lines = repr(results["explanation"]).splitlines()
    assert lines[0] == "Explanation of 1,200 rows in probability, compared with 'typical'"
    assert lines[1].split()[:3] == ["row", "risk", "constant"]
    assert lines[2].split()[1] == f"{results['explanation'].risk[0]:.4g}"
    assert lines[-1] == "  ... 1,192 more rows"
    assert repr(results["certificate"]).startswith("Certificate: valid, ")
    most = results["drift"].features[0]
    assert repr(results["drift"]).splitlines()[2].split()[0] == most.feature
    assert repr(results["overview"]).splitlines()[2].split()[1] == results["overview"].importance[0].feature
    assert (
        repr(results["reasons"]).splitlines()[0] == "Reasons against 1,200 applicants, at most 4, compared with 'best'"
    )


def test_wide_tables_leave_columns_out():
    text = text_table("wide", {f"column {j}": [1.0] for j in range(30)}, width=40)
    assert max(map(len, text.splitlines())) <= 40
    assert text.endswith("more columns")


@pytest.mark.parametrize("name", ["explanation", "reasons", "what_ifs"])
def test_results_of_rows_become_plain_data_row_by_row(results, name):
    found = results[name]
    everything = json.loads(json.dumps(found.to_dict()))
    assert len(everything) == len(found)
    assert json.loads(json.dumps(found.to_dict(3))) == everything[3]
    assert found.to_dict(-1) == found.to_dict(len(found) - 1)
    with pytest.raises(DataError, match=f"There is no row {len(found)}"):
        found.to_dict(len(found))


@pytest.mark.parametrize(
    "name",
    ["certificate", "drift", "groups", "interval", "overview", "refits", "what_if"],
)
def test_other_results_become_plain_data_as_a_whole(results, name):
    plain = results[name].to_dict()
    assert isinstance(plain, dict)
    json.dumps(plain)
