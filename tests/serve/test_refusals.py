"""What the service refuses: each time with the field and the remedy, never with a value or a stack."""

import io
import logging
import random

import anyio
import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from plainrisk.errors import ModelFileError, PlainriskError
from plainrisk.serve import Settings, Shelf, make_app

SECRET = "k" * 32


def refused(found, status, *words):
    assert found.status_code == status, found.text
    assert found.headers["content-type"] == "application/problem+json"
    detail = found.json()["detail"]
    for word in words:
        assert word in detail
    assert "Traceback" not in found.text
    return detail


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", ["not JSON"]),
        (b"{", ["not JSON"]),
        (b"\xff\xfe", ["not JSON"]),
        (b"[" * 100_000, ["expected `object`"]),
        (b"[]", ["expected `object`"]),
        (b"{}", ["`rows` is missing"]),
        (b'{"rows": []}', ["rows"]),
        (b'{"rows": [{}]}', ["rows[0]", "missing", "null"]),
        (b'{"rows": [1]}', ["rows[0]"]),
        (b'{"rows": [{}], "more": 1}', []),
    ],
)
def test_bodies_that_are_no_rows(client, body, words):
    refused(client.post("/score", content=body, headers={"content-type": "application/json"}), 422, *words)


def test_a_wrong_value_is_named_by_row_and_field_and_not_shown(client, rows):
    wrong = [rows[0], {**rows[1], "Credit amount": "topsecret"}]
    detail = refused(client.post("/score", json={"rows": wrong}), 422, "rows[1]", "Credit amount")
    assert "topsecret" not in detail


def test_a_missing_field_is_named_in_full(client, rows):
    row = {name: value for name, value in rows[0].items() if name != "Credit amount"}
    refused(client.post("/score", json={"rows": [row]}), 422, "rows[0]: the field `Credit amount` is missing.")


@pytest.mark.parametrize(
    ("verb", "more", "words"),
    [
        ("what-if", {"target": 0.4}, ["target", "cut-off", "0.6"]),
        ("decide", {"cutoff": 0.1}, ["unknown field `cutoff`"]),
        ("what-if", {"target": 2}, ["target"]),
        ("what-if", {"target": 0.7, "frozen": ["nobody"]}, ["nobody"]),
        ("reasons", {"k": 0}, ["k"]),
        ("explain", {"reference": "nobody"}, ["reference"]),
    ],
)
def test_options(client, rows, verb, more, words):
    refused(client.post(f"/{verb}", json={"rows": rows[:1], **more}), 422, *words)


def test_limits_of_rows_and_bytes(client, rows):
    refused(client.post("/score", json={"rows": rows[:1] * 1001}), 413, "1,001", "1,000")
    refused(client.post("/what-if", json={"rows": rows[:1] * 11, "target": 0.5}), 413, "11", "10")
    refused(client.post("/score", content=b" " * (2**20 + 1)), 413, "bytes")
    chunks = (b" " * 2**18 for _ in range(5))  # no length is told beforehand
    refused(client.post("/score", content=chunks), 413, "bytes")


def test_kinds_of_body(client):
    refused(client.post("/score", content=b"a", headers={"content-type": "text/csv"}), 415, "application/json")
    arrow = {"content-type": "application/vnd.apache.arrow.stream"}
    refused(client.post("/score", content=b"abc", headers=arrow), 422, "Arrow")
    refused(client.post("/what-if", content=b"abc", headers=arrow), 415, "JSON")


def bomb(rows, compression="zstd", batches=1, text=None):
    """Many equal rows as a stream of Arrow batches."""
    column = pa.array(np.zeros(rows) if text is None else [text] * rows)
    batch = pa.record_batch(dict.fromkeys(("a", "b"), column))
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for _ in range(batches):
            writer.write_batch(batch)
    return out.getvalue()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda: bomb(1_000_000, batches=2), ["2,000,000", "1,000"]),
        (lambda: bomb(600, batches=2), ["1,200"]),
        (lambda: bomb(900, "lz4", text="x" * 10_000), ["unpacks to more than"]),
        (lambda: bomb(900, text="x" * 10_000), ["unpacks to more than"]),
    ],
)
def test_a_small_body_that_unpacks_to_a_large_one(client, monkeypatch, body, words):
    """Defect: 161 kB became 5 million rows and 1.5 GB before they were counted."""
    content = body()
    assert len(content) < 2**20
    monkeypatch.setattr("polars.read_ipc_stream", lambda _: pytest.fail("it was unpacked"))
    arrow = {"content-type": "application/vnd.apache.arrow.stream"}
    refused(client.post("/score", content=content, headers=arrow), 413, *words)


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_packed_batches_are_read(client, rows, compression):
    table = pa.Table.from_pylist(rows)
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(out, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=20)
    arrow = {"content-type": "application/vnd.apache.arrow.stream"}
    found = client.post("/score", content=out.getvalue(), headers=arrow)
    assert found.json()["rows"] == client.post("/score", json={"rows": rows}).json()["rows"]


def test_damaged_batches(client, rows):
    arrow = {"content-type": "application/vnd.apache.arrow.stream"}
    content, pick = bomb(20), random.Random(0)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(pick.randint(1, 4)):
            damaged[pick.randrange(len(damaged))] = pick.choice((0, 1, 127, 128, 255))
        assert client.post("/score", content=bytes(damaged), headers=arrow).status_code in (413, 422)


def test_a_packed_body_is_told_apart(client):
    packed = {"content-type": "application/json", "content-encoding": "gzip"}
    refused(client.post("/score", content=b"abc", headers=packed), 415, "as it is")


@pytest.mark.parametrize("path", ["/score/", "/score/?caf%E9", "/models/german/"])
def test_a_path_is_as_it_is_written(client, path):
    """No redirect, which would repeat the words of the request, and failed where they are no UTF-8."""
    refused(client.post(path, content=b"{}", follow_redirects=False), 404)


def test_a_query_that_is_no_text(paths):
    app = make_app(Settings(models=paths))
    app.state.service.shelf.open()
    said = []

    async def receive():
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message):
        said.append(message)

    scope = {"type": "http", "method": "POST", "path": "/score/", "query_string": b"caf\xe9", "headers": []}
    scope |= {"http_version": "1.1", "scheme": "http", "server": ("localhost", 80), "root_path": ""}
    scope["headers"] = [(b"host", b"localhost")]
    anyio.run(app, scope, receive, send)
    assert said[0]["status"] == 404


def test_paths_and_methods(client):
    refused(client.get("/nowhere"), 404)
    refused(client.get("/score"), 405)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda inputs: inputs[1:], "no input"),
        (lambda inputs: [*inputs, inputs[0]], "same name"),
        (lambda inputs: [{**inputs[0], "shape": [7]}, *inputs[1:]], "shape"),
        (lambda inputs: [{**one, "shape": [0], "data": []} for one in inputs], "no rows"),
        (lambda inputs: [{**one, "data": ["x"]} for one in inputs], "FP64"),
        (lambda inputs: [{**inputs[0], "datatype": "NONE"}], "datatype"),
    ],
)
def test_inference_requests(client, change, words):
    path = "/v2/models/german/infer"
    described = client.get("/openapi.json").json()["paths"][path]["post"]
    example = described["requestBody"]["content"]["application/json"]["example"]
    refused(client.post(path, json={"inputs": change(example["inputs"])}), 422, words)


def test_another_host_name_is_refused(client):
    """A web page elsewhere may point its own name at this machine; without a key the name must be local."""
    assert client.get("/model", headers={"host": "evil.example"}).status_code == 400


def test_an_error_inside_shows_nothing(paths, rows, monkeypatch):
    monkeypatch.setattr("plainrisk.serve.app.answer", lambda *_: 1 / 0)
    with TestClient(make_app(Settings(models=paths)), "http://localhost") as client:
        detail = refused(client.post("/score", json={"rows": rows[:1]}), 500, "log")
        assert "division" not in detail


# ---- keys


@pytest.fixture(scope="module")
def locked(paths):
    with TestClient(make_app(Settings(models=paths, host="0.0.0.0", key=SECRET)), "http://anywhere") as found:
        yield found


@pytest.mark.parametrize("headers", [{}, {"authorization": f"Bearer {SECRET[:-1]}"}, {"authorization": SECRET}])
def test_without_the_key_nothing_is_told(locked, headers):
    for path in ("/model", "/metrics", "/openapi.json", "/nowhere", "/v2/models/german"):
        refused(locked.get(path, headers=headers), 401, "API key")


def test_with_the_key(locked):
    for scheme in ("Bearer", "bearer"):
        assert locked.get("/model", headers={"authorization": f"{scheme} {SECRET}"}).status_code == 200
    assert locked.get("/health/ready").status_code == 200


def test_another_address_needs_a_key():
    with pytest.raises(PlainriskError, match="PLAINRISK_API_KEY"):
        Settings(models=("m.json",), host="0.0.0.0")
    with pytest.raises(PlainriskError, match="too short"):
        Settings(models=("m.json",), key="short")
    assert Settings(models=("m.json",), host="::1").is_local


# ---- models


def test_a_model_whose_certificate_does_not_hold_is_not_served(paths, tmp_path, monkeypatch):
    from plainrisk.form import Certificate, Check

    broken = Certificate((Check("monotone", holds=False, detail=""),), ())
    monkeypatch.setattr("plainrisk.serve.served.certify", lambda form: broken)
    with pytest.raises(ModelFileError, match=r"german\.json.*monotone"):
        Shelf(paths[:1]).open()


def test_two_models_of_one_name(tmp_path):
    with pytest.raises(PlainriskError, match="same name"):
        Shelf([tmp_path / "a" / "m.json", tmp_path / "b" / "m.json"])


def test_the_log_holds_no_applicants_data(client, rows, caplog):
    with caplog.at_level(logging.INFO, "plainrisk.serve"):
        client.post("/score", json={"rows": [{**rows[0], "Credit amount": 987654}]})
        client.get("/nowhere?name=topsecret")
    said = [record.getMessage() for record in caplog.records]
    assert any("POST /score 200 1 rows" in line for line in said)
    assert not any("987654" in line or "topsecret" in line for line in said)
