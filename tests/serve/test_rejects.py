"""Rows that cannot be answered for come back with their errors, if asked; the others are answered as ever."""

import json

import msgspec
import pytest
from starlette.testclient import TestClient

import plainrisk as pr
from plainrisk.serve import Settings, make_app

from .test_refusals import refused


@pytest.fixture(scope="module")
def strict(model, tmp_path_factory):
    """A service whose model refuses categories that training never saw."""
    form = model.form_
    housing = msgspec.structs.replace(form.schema.features["Housing"], unseen="error")
    schema = msgspec.structs.replace(form.schema, features={**form.schema.features, "Housing": housing})
    folder = tmp_path_factory.mktemp("strict")
    pr.RiskModel(msgspec.structs.replace(form, schema=schema)).annotate(cutoff=0.6).save(folder / "strict.json")
    with TestClient(
        make_app(Settings(models=(str(folder / "strict.json"),), audit=str(folder))), "http://localhost"
    ) as c:
        c.log = folder / "worker0.jsonl"
        yield c


def spoiled(rows):
    """Rows of which four are wrong, each in another way."""
    lacking = {name: value for name, value in rows[2].items() if name != "Purpose"}
    wrong = {0: {**rows[0], "Credit amount": "secret"}, 2: lacking, 5: 7, 6: {**rows[6], "Housing": "secret"}}
    return [wrong.get(i, row) for i, row in enumerate(rows)], sorted(wrong)


@pytest.mark.parametrize("verb", ["score", "decide", "explain", "reasons", "what-if"])
@pytest.mark.parametrize("n", [8, 40])
def test_wrong_rows_come_back_with_their_errors(strict, rows, verb, n):
    given, wrong = spoiled(rows[:n])
    usual = strict.post(f"/{verb}", json={"rows": [row for i, row in enumerate(rows[:n]) if i not in wrong]}).json()
    found = strict.post(f"/{verb}", json={"rows": given, "rejects": True})
    assert found.status_code == 200, found.text
    told = found.json()["rows"]
    assert [i for i, row in enumerate(told) if "error" in row] == wrong
    assert [row for row in told if "error" not in row] == usual["rows"]
    assert found.json()["values"] == usual["values"]
    for i, words in zip(
        wrong,
        ["rows[0].Credit amount: expected", "rows[2]: the field `Purpose` is missing", "rows[5]", "row 6"],
        strict=True,
    ):
        assert words in told[i]["error"]
    assert "Housing" in told[6]["error"]
    assert "secret" not in found.text


def test_without_asking_one_wrong_row_refuses_all(strict, rows):
    given, _ = spoiled(rows[:8])
    for more in ({}, {"rejects": False}):
        refused(strict.post("/score", json={"rows": given, **more}), 422, "rows[0].Credit amount")


def test_what_is_not_a_matter_of_rows_refuses_all(strict, rows):
    given, _ = spoiled(rows[:8])
    refused(strict.post("/score", json={"rows": given, "rejects": True, "more": 1}), 422)
    refused(strict.post("/reasons", json={"rows": given, "rejects": True, "k": 0}), 422)
    refused(strict.post("/score", content=b'{"rejects": true, "rows": [{]}'), 422, "not JSON")
    for damaged in ('{"Purpose": "\xff"}', "[" * 10_000 + "]" * 10_000, '{"a" 1}'):
        body = f'{{"rejects": true, "rows": [7, {damaged}, {json.dumps(rows[0])}]}}'.encode("latin-1")
        refused(strict.post("/score", content=body), 422, "rows[0]")
    refused(strict.post("/score", json={"rows": [7, 8], "rejects": True}), 422, "No row can be scored", "rows[0]")
    arrow = {"accept": "application/vnd.apache.arrow.stream"}
    refused(strict.post("/score", json={"rows": rows[:1], "rejects": True}, headers=arrow), 415, "JSON")


def test_rejects_are_counted_and_the_audit_log_has_the_places_of_the_others(strict, rows):
    given, wrong = spoiled(rows[:8])
    before = strict.log.read_text()
    counted = strict.get("/metrics").text
    strict.post("/score", json={"rows": given, "rejects": True})
    entries = [json.loads(line) for line in strict.log.read_text()[len(before) :].splitlines()]
    assert [entry["row"] for entry in entries] == [i for i in range(8) if i not in wrong]

    def count(text, name):
        lines = [
            line
            for line in text.splitlines()
            if line.startswith(f'plainrisk_{name}_total{{model="strict",verb="score"')
        ]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    after = strict.get("/metrics").text
    assert count(after, "rejects") - count(counted, "rejects") == len(wrong)
    assert count(after, "rows") - count(counted, "rows") == 8 - len(wrong)
