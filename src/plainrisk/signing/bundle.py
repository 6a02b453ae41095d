"""Signatures of files in the format of OpenSSF model signing 1.0, for one file and a bare key.

A signature is a sigstore bundle: a DSSE envelope around an in-toto statement, which holds the SHA-256 of the file.
docs/reference/signatures.md describes every field.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from plainrisk.errors import SignatureError
from plainrisk.files import parse_json, read_text
from plainrisk.signing.keys import key_id

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

__all__ = ["SIGNATURE_LIMIT", "check_signature", "make_bundle", "signature_path"]

SIGNATURE_LIMIT = 2**20  # bytes of a signature or a receipt
MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://model_signing/signature/v1.0"


# The envelope may contain nothing unknown, so that every change is noticed; the statement may contain more.
class _PublicKey(msgspec.Struct, forbid_unknown_fields=True):
    hint: str | None = None


class _Material(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    public_key: _PublicKey
    tlog_entries: list[Any] = []


class _Signature(msgspec.Struct, forbid_unknown_fields=True):
    sig: bytes  # base64 in JSON
    keyid: str = ""


class _Envelope(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    payload: bytes
    payload_type: str
    signatures: list[_Signature]


class _Bundle(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    media_type: str
    verification_material: _Material
    dsse_envelope: _Envelope


class _Subject(msgspec.Struct):
    name: str
    digest: dict[str, str]


class _Resource(msgspec.Struct):
    name: str
    algorithm: str
    digest: str


class _Predicate(msgspec.Struct):
    resources: list[_Resource]
    serialization: dict[str, Any]


class _Statement(msgspec.Struct, rename={"type": "_type", "predicate_type": "predicateType"}):
    type: str
    subject: list[_Subject]
    predicate_type: str
    predicate: _Predicate


def signature_path(path: str | Path) -> Path:
    """Return where the signature of a file is looked for.

    >>> signature_path("model.json").as_posix()
    'model.json.sig'
    """
    return Path(f"{path}.sig")


def make_bundle(content: bytes, name: str, key: EllipticCurvePrivateKey) -> str:
    """Return the signature of a file's content as text.

    Parameters
    ----------
    content : the bytes of the file
    name : of the file, for the reader; it is not compared
    key : the private key
    """
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256

    digest = hashlib.sha256(content)
    serialization = {"method": "files", "hash_type": "sha256", "allow_symlinks": False, "ignore_paths": []}
    statement = _Statement(
        type=STATEMENT,
        subject=[_Subject(name, {"sha256": hashlib.sha256(digest.digest()).hexdigest()})],
        predicate_type=PREDICATE,
        predicate=_Predicate([_Resource(".", "sha256", digest.hexdigest())], serialization),
    )
    payload = msgspec.json.encode(statement)
    signature = key.sign(_covered(PAYLOAD_TYPE, payload), ec.ECDSA(SHA256()))
    bundle = _Bundle(
        media_type=MEDIA_TYPE,
        verification_material=_Material(_PublicKey(key_id(key.public_key()))),
        dsse_envelope=_Envelope(payload, PAYLOAD_TYPE, [_Signature(signature)]),
    )
    return msgspec.json.encode(bundle).decode() + "\n"


def _covered(payload_type: str, payload: bytes) -> bytes:
    """Return what DSSE signs: the type and the payload, each after its length."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def check_signature(
    content: bytes, path: str | Path, key: EllipticCurvePublicKey, signature: str | Path | None = None
) -> None:
    """Raise unless a file's content is signed by a key.

    Parameters
    ----------
    content : the bytes of the file
    path : its name
    key : the public key
    signature : the file of the signature; None takes the one next to the file
    """
    place = signature_path(path) if signature is None else Path(signature)
    if signature is None and not place.exists():
        raise SignatureError(f"{path} is not signed: {place} does not exist. Sign it: plainrisk sign {path} --key KEY")
    text = read_text(place, limit=SIGNATURE_LIMIT, error=SignatureError)
    bundle = parse_json(text, _Bundle, place, SignatureError, "a signature")
    for coded in (bundle.dsse_envelope.payload, *(s.sig for s in bundle.dsse_envelope.signatures)):
        if base64.b64encode(coded).decode() not in text:  # base64 can be written in several ways
            raise SignatureError(f"{place} is damaged, or was changed after it was written.")
    digest = _signed_digest(bundle, place, key)
    if hashlib.sha256(content).hexdigest() != digest:
        raise SignatureError(
            f"{path} is not the file that was signed: it was changed, or {place} is the signature of another file. "
            f"Get the signed file again, or sign this one: plainrisk sign {path} --key KEY"
        )


def _signed_digest(bundle: _Bundle, place: Path, key: EllipticCurvePublicKey) -> str:
    """Return the SHA-256 that a signature is of, after checking the signature."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256

    envelope, hint = bundle.dsse_envelope, bundle.verification_material.public_key.hint
    if (bundle.media_type, envelope.payload_type) != (MEDIA_TYPE, PAYLOAD_TYPE) or len(envelope.signatures) != 1:
        raise SignatureError(f"{place} is no signature of this kind: one by one key, in OpenSSF's format 1.0.")
    if hint is not None and hint != key_id(key):
        raise SignatureError(
            f"{place} is by another key: {hint[:12]}, not {key_id(key)[:12]}. Check by the signer's public key."
        )
    covered = _covered(envelope.payload_type, envelope.payload)
    try:
        key.verify(envelope.signatures[0].sig, covered, ec.ECDSA(SHA256()))
    except InvalidSignature:
        raise SignatureError(f"{place} is damaged or was changed: it is no signature by this key.") from None
    stated = parse_json(envelope.payload.decode(errors="replace"), _Statement, place, SignatureError, "a signature")
    if (stated.type, stated.predicate_type) != (STATEMENT, PREDICATE):
        raise SignatureError(f"{place} signs something else: {stated.predicate_type}.")
    files = stated.predicate.resources
    if len(files) != 1 or (files[0].name, files[0].algorithm) != (".", "sha256"):
        raise SignatureError(f"{place} signs a folder or another kind of hash. Sign the model file by itself.")
    return files[0].digest
