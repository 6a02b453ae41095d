"""Models that must be signed, at the start and at every reload; receipts of decisions."""

import io
import json
import os
from pathlib import Path

import msgspec
import polars as pl
import pytest
from starlette.testclient import TestClient

import plainrisk as pr
from plainrisk.errors import KeyFileError, SignatureError
from plainrisk.receipts import Receipt
from plainrisk.serve import Settings, Shelf, make_app
from plainrisk.signing import new_key, signature_path

ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    return path, new_key(path)


@pytest.fixture
def place(paths, key, tmp_path):
    """A signed model file of the test's own."""
    path = tmp_path / "model.json"
    path.write_bytes(Path(paths[0]).read_bytes())
    pr.sign(path, key[0])
    return path


@pytest.fixture(scope="module")
def signing(paths, key):
    settings = Settings(models=paths, receipt_key=str(key[0]), max_rows=1000)
    with TestClient(make_app(settings), "http://localhost") as found:
        yield found


# ---- models


def test_a_signed_model_is_served_and_others_are_not(place, key, tmp_path):
    shelf = Shelf([place], key[1])
    shelf.open()
    assert shelf.ready
    signature_path(place).unlink()
    with pytest.raises(SignatureError, match=r"model\.json is not signed"):
        Shelf([place], key[1]).open()
    with pytest.raises(KeyFileError, match="is a private key"):
        Shelf([place], key[0])


def test_an_application_asks_for_signatures_too(paths, key):
    settings = Settings(models=paths, signed_by=str(key[1]))
    with pytest.raises(SignatureError, match="is not signed"), TestClient(make_app(settings), "http://localhost"):
        pass


@pytest.mark.parametrize("first", ["model", "signature"])
def test_a_new_model_is_taken_once_it_and_its_signature_are_there_in_any_order(place, key, tmp_path, first):
    shelf = Shelf([place], key[1])
    shelf.open()
    before, new = shelf.first, tmp_path / "new.json"
    pr.load(place).annotate(cutoff=0.31).save(new)
    pr.sign(new, key[0])
    moves = [(new, place), (signature_path(new), signature_path(place))]
    one, two = moves if first == "model" else moves[::-1]
    os.replace(*one)
    ((_, error),) = shelf.refresh()
    assert "is not the file that was signed" in str(error)
    assert shelf.first is before
    assert list(shelf.refresh()) == []
    os.replace(*two)
    ((name, change),) = shelf.refresh()
    assert (name, isinstance(change, Exception)) == ("model", False)
    assert shelf.first.model.cutoff == 0.31


def test_a_reload_by_another_key_leaves_the_old_model(place, key, tmp_path):
    shelf = Shelf([place], key[1])
    shelf.open()
    before = shelf.first
    new_key(tmp_path / "other.pem")
    pr.load(place).annotate(cutoff=0.31).save(place)
    pr.sign(place, tmp_path / "other.pem")
    ((_, error),) = shelf.refresh()
    assert "is by another key" in str(error)
    assert shelf.first is before


# ---- receipts


def decide(client, rows, query="?receipt=1", **headers):
    return client.post(f"/decide{query}", json={"rows": rows}, headers=headers)


def test_every_decision_has_its_receipt(signing, model, rows, key, tmp_path):
    found = decide(signing, rows[:8])
    assert found.status_code == 200, found.text
    decided = decide(signing, rows[:8], "").json()["rows"]
    for row, answer, plain in zip(rows, found.json()["rows"], decided, strict=False):
        (tmp_path / "receipt.json").write_text(json.dumps(answer.pop("receipt")), encoding="utf-8")
        assert answer == plain
        checked = pr.verify_receipt(tmp_path / "receipt.json", key[1], model=model, inputs=row)
        assert checked.valid
        assert not checked.unchecked
        assert (checked.record.probability, checked.record.decision) == (plain["risk"], plain["decision"])


def test_receipts_in_arrow(signing, rows, key):
    found = decide(signing, rows[:3], accept=ARROW)
    texts = pl.read_ipc_stream(io.BytesIO(found.content))["receipt"].to_list()
    receipts = [msgspec.json.decode(text, type=Receipt) for text in texts]
    assert [pr.verify_receipt(receipt, key[1]).valid for receipt in receipts] == [True] * 3


def test_another_model_signs_by_its_own_hash(signing, paths, rows):
    found = signing.post("/models/mixed/decide?receipt=1", json={"rows": rows[:1]}).json()
    assert found["rows"][0]["receipt"]["receipt"]["model"] == pr.load(paths[1]).certify().form_sha256


def test_what_cannot_be_had_is_said(signing, client, rows):
    for answer, status, words in (
        (decide(signing, rows, "?receipt=yes"), 422, "receipt must be 0 or 1"),
        (decide(signing, rows[:11]), 413, "more than the 10 this service takes at once"),
        (decide(client, rows[:1]), 422, "no key to sign receipts with. Start it with --receipt-key KEY"),
    ):
        assert answer.status_code == status
        assert words in answer.json()["detail"]
    assert decide(client, rows[:1], "?receipt=0").status_code == 200


def test_the_description_names_receipts_where_there_are_some(signing, client):
    for asked, known in ((signing, True), (client, False)):
        paths = asked.get("/openapi.json").json()["paths"]
        assert ("parameters" in paths["/decide"]["post"]) == known
        assert "parameters" not in paths["/score"]["post"]


def test_a_key_that_cannot_sign_is_said_before_anything_is_served(paths, key):
    with pytest.raises(KeyFileError, match="holds no private key"):
        make_app(Settings(models=paths, receipt_key=str(key[1])))
