"""Receipts: what they say is what the model decides, they show no inputs, and whatever is changed in one is noticed."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
import rfc8785

import plainrisk as pr
from plainrisk.errors import DataError, MissingExtraError, SignatureError
from plainrisk.receipts import Receipt, ReceiptMaker
from plainrisk.receipts.record import canonical, text_of

REFUSED, APPROVED = 1, 0  # rows of German credit


@pytest.fixture(scope="module")
def applicants(german):
    columns = german.frame
    return [{name: columns[name][i] for name in german.schema.features} for i in range(60)]


@pytest.fixture(scope="module")
def plain_applicants(applicants):
    """The same as JSON has them."""
    return [json.loads(json.dumps({n: getattr(v, "item", lambda v=v: v)() for n, v in a.items()})) for a in applicants]


@pytest.fixture(scope="module")
def receipt(model, applicants, keys):
    return model.receipt(applicants[REFUSED], key=keys.private, time=datetime(2026, 11, 19, 2, 30, tzinfo=UTC))


def holding(found):
    return {check.name: check.holds for check in found.checks}


ALL = {*("signature", "inputs", "model", "probability", "decision", "reasons", "changes")}


def test_a_receipt_says_what_the_model_decides(model, receipt, applicants, keys):
    decided = model.decide([applicants[REFUSED]]).to_dict(0)
    record = receipt.record
    assert (record.probability, record.decision, record.cutoff) == (decided["risk"], "refused", model.cutoff)
    assert [r.words for r in record.reasons] == [reason["reason"] for reason in decided["reasons"]]
    wanted = model.what_if(applicants[REFUSED]).answers
    assert [[(m.feature, m.to) for m in c] for c in record.changes] == [
        [(m.feature, m.to_value) for m in a.changes] for a in wanted
    ]
    assert record.model == model.certify().form_sha256
    assert record.time == "2026-11-19T02:30:00Z"
    assert record.outcome == "the applicant repays the loan"
    approved = model.receipt(applicants[APPROVED], key=keys.private).record
    assert (approved.decision, approved.reasons, approved.changes) == ("approved", (), ())


def test_every_check_holds(model, plain_applicants, applicants, keys, tmp_path):
    maker = ReceiptMaker.of(model.form_, keys.private)
    for applicant, plain, receipt in zip(applicants, plain_applicants, maker.receipts(applicants), strict=True):
        found = pr.verify_receipt(receipt, keys.public, model=model, inputs=applicant)
        assert holding(found) == dict.fromkeys(ALL, True)
        assert found.valid
        assert not found.unchecked
        receipt.save(tmp_path / "receipt.json")
        again = Receipt.read(tmp_path / "receipt.json")
        assert again == receipt
        assert pr.verify_receipt(again, keys.public, inputs=plain).valid, "JSON commits to the same, without the model"


@pytest.mark.parametrize("name", ["MixLinARM1", "SmoothARM1", "ARM2"])
def test_every_kind_of_model(name, german, keys, applicants):
    made = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
    for row in (APPROVED, REFUSED):
        receipt = made.receipt(applicants[row], key=keys.private)
        assert pr.verify_receipt(receipt, keys.public, model=made, inputs=applicants[row]).valid


def test_frames_and_dicts_commit_to_the_same(model, german, applicants, keys):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([applicants[REFUSED]]).astype({"Purpose": "category"})
    receipt = model.receipt(frame, key=keys.private)
    assert pr.verify_receipt(receipt, keys.public, model=model, inputs=applicants[REFUSED]).valid
    assert pr.verify_receipt(receipt, keys.public, model=model, inputs=frame.iloc[0].to_dict()).valid


def test_no_receipt_shows_an_input_or_names_a_protected_feature(model, applicants, german, keys):
    protected = [name for name, feature in german.schema.features.items() if feature.protected]
    assert protected
    for applicant, receipt in zip(
        applicants, ReceiptMaker.of(model.form_, keys.private).receipts(applicants), strict=True
    ):
        record = receipt.to_dict()["receipt"]
        text = json.dumps(record)  # the signature beside it is random letters, among which "Age" stands now and then
        for name in protected:
            assert name not in text
            assert german.schema.title(name) not in text
        named = {r["feature"] for r in record["reasons"]} | {m["feature"] for c in record["changes"] for m in c}
        for name, value in applicant.items():
            if isinstance(value, str):  # numbers such as 4 stand everywhere
                assert f'"{value}"' not in text or name in named
        assert len(set(record["inputs"])) == len(model.form_.features)


def test_two_receipts_of_one_applicant_have_no_hash_in_common(model, applicants, keys):
    one, two = (model.receipt(applicants[REFUSED], key=keys.private) for _ in range(2))
    assert not set(one.record.inputs) & set(two.record.inputs)


# ---- tampering


def leaves(value, path=()):
    """Yield the path of everything in a JSON value."""
    yield path, value
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))


def changed(plain, path, to):
    """Return plain data with one entry replaced."""
    if not path:
        return to
    copy = list(plain) if isinstance(plain, list) else dict(plain)
    copy[path[0]] = changed(plain[path[0]], path[1:], to)
    return copy


def others(value):
    """Yield values that could stand in a place instead of another."""
    yield None
    if isinstance(value, bool | int | float):
        yield from (value + 1, value * 1.0000001, -value, str(value))
    elif isinstance(value, str):
        yield from (value[:-1], value + "0", value.swapcase(), "", ("0" if value[:1] != "0" else "1") + value[1:])
    elif isinstance(value, list):
        yield from (value[1:], value[::-1], [*value, *value[-1:]], [])
    else:
        yield from ({**value, "more": 1}, {}, {k: v for k, v in value.items() if k != next(iter(value))})


def test_every_field_of_a_receipt_counts(receipt, keys, tmp_path):
    plain, path, tried = json.loads(json.dumps(receipt.to_dict())), tmp_path / "receipt.json", 0
    for place, value in leaves(plain):
        for other in others(value):
            if msgspec.json.encode(other) == msgspec.json.encode(value) or (place == ("salt",) and other is None):
                continue
            path.write_text(json.dumps(changed(plain, place, other)), encoding="utf-8")
            with contextlib.suppress(SignatureError):  # it is no receipt any more
                assert not pr.verify_receipt(path, keys.public).valid, (place, other)
            tried += 1
    assert tried > 200


def test_every_byte_of_a_receipt_counts(receipt, keys, tmp_path):
    path = tmp_path / "receipt.json"
    receipt.save(path)
    text = path.read_bytes()
    for position in range(0, len(text) - 1, 3):
        path.write_bytes(text[:position] + bytes([text[position] ^ 1]) + text[position + 1 :])
        try:
            found = pr.verify_receipt(path, keys.public)
        except SignatureError:
            continue
        # What is changed may be white space, or the number as which a letter is written.
        assert not found.valid or Receipt.read(path) == receipt, position


def test_a_receipt_is_of_one_key(receipt, keys):
    found = pr.verify_receipt(receipt, keys.other_public)
    assert not found.valid
    assert "it is by the key " in found.checks[0].detail
    hint = msgspec.structs.replace(receipt.signature, key=hashlib.sha256(keys.other_public.read_bytes()).hexdigest())
    found = pr.verify_receipt(msgspec.structs.replace(receipt, signature=hint), keys.other_public)
    assert "was changed, or is damaged" in found.checks[0].detail


def test_a_receipt_of_another_model_is_noticed(receipt, model, applicants, keys):
    other = model.annotate(cutoff=0.2)
    found = holding(pr.verify_receipt(receipt, keys.public, model=other, inputs=applicants[REFUSED]))
    assert found["signature"]
    assert not found["model"]
    assert not found["decision"]


def test_a_record_that_the_model_does_not_give_is_noticed(receipt, model, applicants, keys):
    """Whoever has the key can sign what is wrong; with the model it does not pass."""
    from plainrisk.signing import read_private_key

    key, record = read_private_key(keys.private), receipt.record
    for change, name in (
        ({"probability": record.probability + 1e-6}, "probability"),
        ({"decision": "approved"}, "decision"),
        ({"cutoff": record.cutoff - 0.1}, "decision"),
        ({"reference": "typical"}, "decision"),
        ({"reasons": record.reasons[::-1]}, "reasons"),
        ({"changes": ((),)}, "changes"),
        ({"inputs": record.inputs[1:]}, "inputs"),
        ({"inputs": (*record.inputs, "0" * 64)}, "inputs"),
    ):
        wrong = Receipt.sign(msgspec.structs.replace(record, **change), key, receipt.salt)
        found = holding(pr.verify_receipt(wrong, keys.public, model=model, inputs=applicants[REFUSED]))
        assert found["signature"]
        assert not found[name], change


# ---- inputs


def test_every_input_counts(receipt, plain_applicants, keys, german):
    own = plain_applicants[REFUSED]
    for name, value in own.items():
        other = value + 1 if isinstance(value, int | float) else f"{value}x"
        found = pr.verify_receipt(receipt, keys.public, inputs={**own, name: other})
        assert not found.valid
        assert found.checks[1].detail == f"not what the decision was made on: {name}"
        swapped = {**own, name: None}
        assert not pr.verify_receipt(receipt, keys.public, inputs=swapped).valid


def test_one_input_can_be_shown_and_no_other(receipt, plain_applicants, keys):
    own = plain_applicants[REFUSED]
    shown = receipt.reveal(own, ["Credit amount"])
    assert shown["Credit amount"]["value"] == "5951"
    closed = msgspec.structs.replace(receipt, salt=None)
    found = pr.verify_receipt(closed, keys.public, inputs=shown)
    assert found.valid
    assert found.checks[1].detail == "1 of 20 inputs are those that the decision was made on"
    other = {"Credit amount": {**shown["Credit amount"], "value": "5952"}}
    assert not pr.verify_receipt(closed, keys.public, inputs=other).valid
    moved = {"Duration in month": shown["Credit amount"]}
    assert not pr.verify_receipt(closed, keys.public, inputs=moved).valid
    with pytest.raises(DataError, match="the receipt has no salt, so 'Credit amount' needs its own"):
        pr.verify_receipt(closed, keys.public, inputs={"Credit amount": 5951})
    with pytest.raises(DataError, match="the receipt has no salt, so nothing can be opened"):
        closed.reveal(own, ["Credit amount"])
    with pytest.raises(DataError, match="there is no input 'amount'"):
        receipt.reveal(own, ["amount"])


def test_what_is_not_checked_is_said(receipt, plain_applicants, model, keys):
    found = pr.verify_receipt(receipt, keys.public)
    assert [what.partition(",")[0] for what in found.unchecked] == ["the inputs", "probability"]
    some = {"Credit amount": plain_applicants[REFUSED]["Credit amount"]}
    found = pr.verify_receipt(receipt, keys.public, model=model, inputs=some)
    assert found.valid
    assert "which need all inputs of the model" in found.unchecked[0]
    assert repr(found).splitlines()[0].startswith("holds   signature: ")


def test_texts_of_inputs():
    assert [text_of(v) for v in (None, float("nan"), 1500, 1500.0, 1e-7, 1e21, "own", True, -0.0)] == [
        *(None, None, "1500", "1500", "1e-7", "1e+21", "own", "True", "0")
    ]


# ---- without us


def test_a_receipt_can_be_checked_by_the_page_of_the_docs_alone(receipt, keys, tmp_path, plain_applicants):
    """What docs/reference/signatures.md says, by packages that are not ours."""
    import hmac

    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    receipt.save(tmp_path / "receipt.json")
    found = json.loads((tmp_path / "receipt.json").read_text("utf-8"))
    raw = base64.b64decode(found["signature"]["value"])
    signature = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public = load_pem_public_key(keys.public.read_bytes())
    public.verify(signature, rfc8785.dumps(found["receipt"]), ec.ECDSA(SHA256()))
    assert found["signature"]["key"] == hashlib.sha256(keys.public.read_bytes()).hexdigest()
    hashes = set()
    for name, value in plain_applicants[REFUSED].items():
        text = None if value is None else value if isinstance(value, str) else rfc8785.dumps(value).decode()
        salt = hmac.new(found["salt"].encode(), name.encode(), "sha256").hexdigest()
        hashes.add(hashlib.sha256(rfc8785.dumps([salt, name, text])).hexdigest())
    assert sorted(hashes) == found["receipt"]["inputs"]


# ---- errors


def test_errors(model, applicants, keys, receipt, tmp_path):
    row = applicants[REFUSED]
    with pytest.raises(DataError, match="receipt answers for one row, not 2"):
        model.receipt(applicants[:2], key=keys.private)
    with pytest.raises(DataError, match="time must be a datetime with a time zone"):
        model.receipt(row, key=keys.private, time=datetime(2026, 11, 19))
    with pytest.raises(DataError, match="decide: the model has no cut-off to decide by"):
        model.annotate({"policy": {"cutoff": None}}).receipt(row, key=keys.private)
    with pytest.raises(DataError, match="inputs must be a dict by feature"):
        pr.verify_receipt(receipt, keys.public, inputs=[row])
    with pytest.raises(SignatureError, match=r"none\.json does not exist"):
        pr.verify_receipt(tmp_path / "none.json", keys.public)
    with pytest.raises(SignatureError, match="This cannot be signed"):
        canonical({"probability": float("nan")})


def test_times_are_written_in_utc(model, applicants, keys):
    east = datetime(2026, 1, 1, 1, 30, 15, 999, tzinfo=timezone(timedelta(hours=5)))
    assert model.receipt(applicants[0], key=keys.private, time=east).record.time == "2025-12-31T20:30:15Z"
    now = model.receipt(applicants[0], key=keys.private).record.time
    assert abs(datetime.fromisoformat(now) - datetime.now(UTC)) < timedelta(minutes=10)


def test_without_the_packages_it_is_said_how_to_install_them(model, applicants, keys, monkeypatch):
    for package in ("rfc8785", "cryptography"):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, package, None)
            with pytest.raises(MissingExtraError, match=r"pip install 'plainrisk\[sign\]'"):
                model.receipt(applicants[0], key=keys.private)


def test_deciding_loads_no_cryptography():
    code = "import sys, plainrisk as pr; pr.RiskModel.decide; print({'cryptography', 'rfc8785'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
