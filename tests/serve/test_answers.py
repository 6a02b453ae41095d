"""The service gives what the model gives."""

import io

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient

import plainrisk as pr
from plainrisk.serve import Settings, make_app

ARROW = "application/vnd.apache.arrow.stream"


def post(client, path, rows, **more):
    found = client.post(path, json={"rows": rows, **more})
    assert found.status_code == 200, found.text
    return found.json()


def test_the_service_gives_the_models_risks_to_the_last_bit(client, model, rows):
    found = post(client, "/score", rows)
    assert [row["risk"] for row in found["rows"]] == model.predict_proba(rows)[:, 1].tolist()
    assert [post(client, "/score", [row])["rows"][0]["risk"] for row in rows[:5]] == [
        row["risk"] for row in found["rows"][:5]
    ]


@pytest.mark.parametrize("unit_and_reference", [{}, {"reference": "best"}])
def test_explanations_are_the_models(client, model, rows, unit_and_reference):
    found = post(client, "/explain", rows, **unit_and_reference)
    assert found["rows"] == model.explain(rows, **unit_and_reference).to_dict()


def test_reasons_are_the_models(client, model, rows):
    found = post(client, "/reasons", rows, k=2)
    assert found["rows"] == model.reasons(rows, k=2).to_dict()


def test_decisions_are_the_models_with_letters(client, model, rows):
    """Defect: there were letters of refusal for whoever was approved."""
    found = post(client, "/decide", rows)["rows"]
    decided = model.decide(rows)
    assert 0 < decided.refused.sum() < len(rows)
    for i, row in enumerate(found):
        assert row == {**decided.to_dict(i), "letter": decided.letter(i)}
        approved = row["decision"] == "approved"
        assert ("is approved" in row["letter"]) == approved == (row["reasons"] == [])


def test_values_beyond_training_are_marked(client, rows):
    far = {**rows[0], "Credit amount": 10.0**6, "Purpose": "A99"}
    assert post(client, "/score", [rows[0], far], beyond=True)["rows"][1]["beyond"] == ["Purpose", "Credit amount"]
    assert post(client, "/score", [rows[0]], beyond=True)["rows"][0]["beyond"] == []
    assert "beyond" not in post(client, "/score", [far])["rows"][0]
    assert post(client, "/explain", [far])["rows"][0]["beyond"] == ["Purpose", "Credit amount"]


def test_what_if_is_the_models(client, model, rows):
    found = post(client, "/what-if", rows[:2], target=0.7, answers=2, frozen=["Purpose"])
    wanted = model.what_ifs(rows[:2], target=0.7, answers=2, frozen=["Purpose"]).to_dict()
    assert [row["reached"] for row in found["rows"]] == [row["reached"] for row in wanted]
    assert found["rows"][1]["answers"][0]["risk"] == wanted[1]["answers"][0]["risk"]
    assert post(client, "/what-if", rows[:1])["rows"][0]["target"] == model.cutoff


def test_every_answer_carries_the_models_hash(client, model, rows):
    wanted = model.certify().form_sha256
    for verb, more in (("score", {}), ("explain", {}), ("reasons", {}), ("decide", {}), ("what-if", {})):
        found = client.post(f"/{verb}", json={"rows": rows[:1], **more})
        assert found.headers["x-model-sha256"] == wanted
        assert found.json()["model"] == {"name": "german", "sha256": wanted}


def test_another_model_answers_by_its_name(client, paths, rows):
    found = post(client, "/models/mixed/score", rows)
    assert [row["risk"] for row in found["rows"]] == pr.load(paths[1]).predict_proba(rows)[:, 1].tolist()
    missing = client.post("/models/other/score", json={"rows": rows})
    assert missing.status_code == 404
    assert "german, mixed" in missing.json()["detail"]


@pytest.mark.parametrize("verb", ["score", "decide", "explain", "reasons"])
def test_arrow_goes_in_and_comes_out(client, model, rows, verb):
    body = io.BytesIO()
    pl.DataFrame(rows).write_ipc_stream(body)
    found = client.post(f"/{verb}", content=body.getvalue(), headers={"content-type": ARROW, "accept": ARROW})
    assert found.headers["content-type"] == ARROW
    table = pl.read_ipc_stream(io.BytesIO(found.content))
    assert table["risk"].to_list() == model.predict_proba(rows)[:, 1].tolist()
    assert table.height == len(rows)


def test_missing_values_are_null(client, model, rows):
    empty = dict.fromkeys(rows[0])
    assert post(client, "/score", [empty])["rows"][0]["risk"] == model.predict_proba(empty)[0, 1]


def test_the_open_inference_protocol(client, model, rows):
    meta = client.get("/v2/models/german").json()
    inputs = [
        {"name": i["name"], "shape": [len(rows)], "datatype": i["datatype"], "data": [r[i["name"]] for r in rows]}
        for i in meta["inputs"]
    ]
    found = client.post("/v2/models/german/infer", json={"id": "a", "inputs": inputs}).json()
    assert found["id"] == "a"
    assert found["model_version"] == model.certify().form_sha256
    assert np.array_equal(found["outputs"][0]["data"], model.predict_proba(rows)[:, 1])
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2/models/german/ready").json()["ready"]
    assert client.get("/v2").json()["name"] == "plainrisk"


def test_the_description_has_examples_that_can_be_sent(client):
    described = client.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    for path, item in described["paths"].items():
        for method, operation in item.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            found = client.request(method, path, json=body) if body else client.request(method, path)
            assert found.status_code == 200, (path, found.text)
            wanted = operation["responses"]["200"]["content"].get("application/json", {}).get("example")
            if wanted is not None:
                assert found.json() == wanted


def test_the_model_tells_what_it_is(client, model):
    found = client.get("/model").json()
    assert found["certificate"]["valid"]
    assert found["features"] == list(model.form_.features)
    assert found["fit"]["rows"] == 1000


def test_counters_count_rows_and_name_no_applicant(client, rows):
    post(client, "/score", rows)
    text = client.get("/metrics").text
    assert 'plainrisk_rows_total{model="german",verb="score"}' in text
    assert 'plainrisk_requests_total{path="/score",status="200"}' in text
    assert not any(f'"{row["Purpose"]}"' in text for row in rows)


def test_workers_let_connections_go_now_and_then(paths, monkeypatch):
    """Defect: a few connections that were kept for long could all stay with one worker."""
    monkeypatch.setattr("plainrisk.serve.watch.TURN", 3)
    app = make_app(Settings(models=paths[:1]))
    with TestClient(app, "http://localhost") as alone:
        assert {alone.get("/v2").headers.get("connection") for _ in range(6)} == {None}
        app.state.service.several = True
        said = [alone.get("/v2").headers.get("connection") for _ in range(6)]
    assert said == [None, None, "close", None, None, "close"]
