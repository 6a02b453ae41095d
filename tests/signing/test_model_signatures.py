"""Signed model files: what a key signed is read, anything else is refused with the reason and the remedy."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys

import msgspec
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, KeyFileError, MissingExtraError, OutputError, SignatureError
from plainrisk.signing import (
    PASSWORD,
    bundle,
    check_signature,
    key_id,
    new_key,
    read_private_key,
    read_public_key,
    signature_path,
)


def reference(*words):
    """Run the reference implementation of the format."""
    command = [sys.executable, "-m", "model_signing", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_a_signed_model_is_read_and_is_the_model(signed, keys, german, model):
    loaded = pr.load(signed, key=keys.public)
    assert (loaded.predict_proba(german.frame) == model.predict_proba(german.frame)).all()


def test_the_reference_implementation_takes_our_signature(signed, keys):
    arguments = ("--signature", signature_path(signed), signed)
    done = reference("verify", "key", "--public_key", keys.public, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert reference("verify", "key", "--public_key", keys.other_public, *arguments).returncode != 0


def test_we_take_a_signature_of_the_reference_implementation(signed, keys, tmp_path):
    theirs = tmp_path / "theirs.sig"
    done = reference("sign", "key", "--private_key", keys.private, "--signature", theirs, signed)
    assert done.returncode == 0, done.stdout + done.stderr
    pr.load(signed, key=keys.public, signature=theirs)
    with pytest.raises(SignatureError, match=r"theirs\.sig is by another key"):
        pr.load(signed, key=keys.other_public, signature=theirs)


def test_every_byte_of_the_signature_counts(signed, keys):
    content, key, place = signed.read_bytes(), read_public_key(keys.public), signature_path(signed)
    text = place.read_bytes()
    check_signature(content, signed, key)
    for position in range(len(text)):
        for bit in (0, 1, 6):
            place.write_bytes(text[:position] + bytes([text[position] ^ (1 << bit)]) + text[position + 1 :])
            with pytest.raises(SignatureError, match=r"model\.json"):
                check_signature(content, signed, key)
    for length in range(0, len(text) - 1, 7):
        place.write_bytes(text[:length])
        with pytest.raises(SignatureError, match=r"model\.json\.sig"):
            check_signature(content, signed, key)


def test_every_byte_of_the_model_counts(signed, keys):
    content, key = signed.read_bytes(), read_public_key(keys.public)
    for position in range(0, len(content), 97):
        changed = content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        with pytest.raises(SignatureError, match=r"is not the file that was signed.* plainrisk sign"):
            check_signature(changed, signed, key)
    for changed in (content[:-1], content + b" ", b""):
        with pytest.raises(SignatureError, match="is not the file that was signed"):
            check_signature(changed, signed, key)


def test_a_changed_model_with_right_hashes_is_refused(signed, keys):
    """Its own hashes can be written again by anybody; the signature cannot."""
    pr.load(signed).annotate(cutoff=0.9).save(signed)
    assert pr.load(signed).cutoff == 0.9
    with pytest.raises(SignatureError, match="is not the file that was signed"):
        pr.load(signed, key=keys.public)


def test_another_key_is_named(signed, keys):
    with pytest.raises(
        SignatureError, match=r"is by another key: [0-9a-f]{12}, not [0-9a-f]{12}\. Check by the signer"
    ):
        pr.load(signed, key=keys.other_public)


def test_a_hint_that_is_changed_helps_nobody(signed, keys):
    """The name of the key stands outside of what is signed."""
    place = signature_path(signed)
    pr.sign(signed, keys.other_private)
    found = json.loads(place.read_text("utf-8"))
    for hint in (key_id(read_public_key(keys.public)), None):
        found["verificationMaterial"]["publicKey"]["hint"] = hint
        place.write_text(json.dumps(found), encoding="utf-8")
        with pytest.raises(SignatureError, match="it is no signature by this key"):
            pr.load(signed, key=keys.public)


def test_a_model_without_a_signature_is_refused(signed, keys):
    signature_path(signed).unlink()
    with pytest.raises(SignatureError, match=r"is not signed: .*model\.json\.sig does not exist\. Sign it: plainrisk"):
        pr.load(signed, key=keys.public)
    with pytest.raises(SignatureError, match=r"other\.sig does not exist"):
        pr.load(signed, key=keys.public, signature=signed.with_name("other.sig"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predicateType": "https://example.com/other"}, "signs something else: https://example.com/other"),
        ({"_type": "https://in-toto.io/Statement/v0.1"}, "signs something else"),
        ({"predicate": {"resources": [], "serialization": {}}}, "signs a folder or another kind of hash"),
        ({"predicate": None}, "not a signature"),
    ],
)
def test_what_a_key_signed_for_another_purpose_is_no_signature_of_a_model(signed, keys, monkeypatch, change, message):
    encode = msgspec.json.encode

    def other(value):
        plain = encode(value)
        return encode({**json.loads(plain), **change}) if type(value).__name__ == "_Statement" else plain

    with monkeypatch.context() as patched:
        patched.setattr(bundle.msgspec.json, "encode", other)
        text = bundle.make_bundle(signed.read_bytes(), "model.json", read_private_key(keys.private))
    signature_path(signed).write_text(text, encoding="utf-8")
    with pytest.raises(SignatureError, match=message):
        pr.load(signed, key=keys.public)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"mediaType": 3}', "{" * 10_000, "\xff"])
def test_what_is_no_signature(signed, keys, text):
    signature_path(signed).write_text(text, encoding="latin-1")
    with pytest.raises(SignatureError, match=r"model\.json\.sig is"):
        pr.load(signed, key=keys.public)


def test_two_signatures_in_one_are_refused(signed, keys):
    place = signature_path(signed)
    found = json.loads(place.read_text("utf-8"))
    found["dsseEnvelope"]["signatures"] *= 2
    place.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(SignatureError, match="is no signature of this kind"):
        pr.load(signed, key=keys.public)


def test_a_payload_of_another_kind_is_refused(signed, keys):
    place = signature_path(signed)
    found = json.loads(place.read_text("utf-8"))
    found["dsseEnvelope"]["payload"] = base64.b64encode(b"{}").decode()
    place.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(SignatureError, match="it is no signature by this key"):
        pr.load(signed, key=keys.public)


def test_only_models_are_signed_and_nothing_is_written_otherwise(tmp_path, keys, saved):
    path = tmp_path / "model.json"
    path.write_bytes(saved[:-100])
    with pytest.raises(pr.errors.ModelFileError, match="is damaged"):
        pr.sign(path, keys.private)
    assert list(tmp_path.iterdir()) == [path]


def test_a_signature_alone_says_nothing(signed):
    with pytest.raises(DataError, match="a signature needs a key to check it"):
        pr.load(signed, signature=signature_path(signed))


# ---- keys


def test_keys_that_cannot_be_used(signed, keys, tmp_path, monkeypatch):
    monkeypatch.delenv(PASSWORD, raising=False)
    damaged = tmp_path / "damaged.pem"
    damaged.write_bytes(keys.private.read_bytes().replace(b"M", b"N", 3))
    text = tmp_path / "text.pem"
    text.write_text("no key", encoding="utf-8")
    for path, message in (
        (keys.public, r"key\.pub\.pem holds no private key, which signing needs.*plainrisk sign --new-key"),
        (keys.locked, f"locked.pem is protected by a password. Put it into the environment variable {PASSWORD}"),
        (keys.p384, r"p384\.pem is a key of another kind \(secp384r1\); a key on the curve P-256 is needed"),
        (keys.ed25519, r"ed25519\.pem is a key of another kind \(Ed25519PrivateKey\)"),
        (damaged, r"damaged\.pem is damaged: it cannot be read as a private key"),
        (text, r"text\.pem is damaged"),
        (tmp_path / "none.pem", r"none\.pem does not exist"),
    ):
        with pytest.raises(KeyFileError, match=message):
            pr.sign(signed, path)
    for path, message in (
        (keys.private, r"key\.pem is a private key, and checking needs the public one.*openssl pkey -in .*key\.pem"),
        (keys.locked, r"locked\.pem is a private key"),
        (text, r"text\.pem is damaged: it cannot be read as a public key"),
        (tmp_path / "none.pem", r"none\.pem does not exist"),
    ):
        with pytest.raises(KeyFileError, match=message):
            pr.load(signed, key=path)


def test_a_key_with_a_password(signed, keys, monkeypatch):
    monkeypatch.setenv(PASSWORD, "open sesame")
    pr.load(pr.sign(signed, keys.locked).with_suffix(""), key=keys.public)
    pr.sign(signed, keys.private)  # a password that is not needed does no harm
    monkeypatch.setenv(PASSWORD, "open poppy")
    with pytest.raises(KeyFileError, match=f"or the password in {PASSWORD} is another"):
        pr.sign(signed, keys.locked)


def test_a_new_key_is_private_and_never_replaces_one(tmp_path, monkeypatch):
    monkeypatch.setenv(PASSWORD, "open sesame")
    public = new_key(tmp_path / "key.pem")
    assert b"ENCRYPTED" in (tmp_path / "key.pem").read_bytes()
    assert public == tmp_path / "key.pub.pem"
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    with pytest.raises(OutputError, match=r"key\.pem is there already, and keys are not replaced"):
        new_key(tmp_path / "key.pem")
    (tmp_path / "key.pem").unlink()
    with pytest.raises(OutputError, match=r"key\.pub\.pem is there already"):
        new_key(tmp_path / "key.pem")


def test_openssl_makes_keys_that_we_take(signed, tmp_path):
    private, public = tmp_path / "o.pem", tmp_path / "o.pub.pem"
    for words in (
        ("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(private)),
        ("pkey", "-in", str(private), "-pubout", "-out", str(public)),
    ):
        try:
            subprocess.run(["openssl", *words], check=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip("no openssl")
    pr.sign(signed, private)
    pr.load(signed, key=public)


def test_without_the_package_it_is_said_how_to_install_it(signed, keys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for action in (
        lambda: pr.sign(signed, keys.private),
        lambda: pr.load(signed, key=keys.public),
        lambda: new_key(signed.with_name("new.pem")),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'plainrisk\[sign\]'"):
            action()


def test_loading_without_a_key_loads_no_cryptography(signed):
    code = f"import sys, plainrisk as pr; pr.load({str(signed)!r}); print('cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
