"""The content of a receipt, the signed bytes, and the commitments to inputs; see docs/reference/signatures.md.

The signed bytes are canonical JSON (RFC 8785). The record contains only a salted hash of each input. Each hash has its
own salt, derived from the receipt's salt, so that one input can be revealed without the others.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from plainrisk.errors import DataError, SignatureError, missing_extra
from plainrisk.files import SIZE_LIMIT, parse_json, read_text, write_text
from plainrisk.schema import label_of
from plainrisk.signing import SIGNATURE_LIMIT, key_id
from plainrisk.text import visible

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

__all__ = [
    "Move",
    "Named",
    "Receipt",
    "Record",
    "canonical",
    "commitment",
    "is_receipt",
    "salt_of",
    "sha256_of",
    "text_of",
]

FORMAT: Final = 1
HALF = 32  # bytes of each of the two numbers of a signature


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reason: the feature and the words for it."""

    feature: str
    words: str


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change: the feature and the value to reach."""

    feature: str
    to: float | str | None


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signed content.

    Attributes
    ----------
    format : of the receipt
    plainrisk : the version that wrote it
    time : of the decision, in UTC
    model : the hash of the model's form
    outcome : what the probability is of, in words
    probability, cutoff : the two numbers that decide
    adverse : "positive" if a high probability hurts the applicant
    decision : which follows from them
    reference : with which the reasons compare the applicant
    reasons : of a refusal, in order; protected features are never named
    changes : of a refusal, the cheapest changes that lead to approval, each a list of values that must change together
    inputs : salted hashes of the model's inputs, sorted
    salt_sha256 : the hash of the salt
    """

    format: Literal[1]
    plainrisk: str
    time: str
    model: str
    outcome: str
    probability: float
    cutoff: float
    adverse: Literal["positive", "negative"]
    decision: Literal["approved", "refused"]
    reference: str
    reasons: tuple[Named, ...]
    changes: tuple[tuple[Move, ...], ...]
    inputs: tuple[str, ...]
    salt_sha256: str


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """ECDSA on P-256 with SHA-256: the numbers r and s, 32 bytes each, in base64; and the hash of the public key."""

    algorithm: Literal["ES256"]
    key: str
    value: str


class Receipt(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename={"record": "receipt"}
):
    """A signed record of one decision.

    Attributes
    ----------
    record : what is signed
    signature : of the record
    salt : opens the hashes of the inputs; the applicant keeps it, and a receipt without it can still be checked
    """

    record: Record
    signature: Signature
    salt: str | None = None

    @classmethod
    def sign(cls, record: Record, key: EllipticCurvePrivateKey, salt: str | None = None) -> Receipt:
        """Return a record with its signature."""
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        numbers = decode_dss_signature(key.sign(canonical(record), ec.ECDSA(SHA256())))
        value = base64.b64encode(b"".join(number.to_bytes(HALF, "big") for number in numbers)).decode()
        return cls(record, Signature("ES256", key_id(key.public_key()), value), salt)

    @classmethod
    def read(cls, path: str | Path) -> Receipt:
        """Read a receipt from a file, without checking it."""
        text = read_text(path, limit=SIGNATURE_LIMIT, error=SignatureError)
        return parse_json(text, cls, path, SignatureError, "a receipt")

    def save(self, path: str | Path) -> None:
        """Write the receipt to a file."""
        write_text(path, msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def is_signed_by(self, key: EllipticCurvePublicKey) -> bool:
        """Whether the record is unchanged since the owner of the key signed it."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        try:
            raw = base64.b64decode(self.signature.value, validate=True)
        except binascii.Error:
            return False
        if len(raw) != 2 * HALF or base64.b64encode(raw).decode() != self.signature.value:
            return False
        numbers = (int.from_bytes(half, "big") for half in (raw[:HALF], raw[HALF:]))
        try:
            key.verify(encode_dss_signature(*numbers), canonical(self.record), ec.ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return self.signature.key == key_id(key)

    def reveal(self, inputs: Mapping[str, Any], features: Iterable[str]) -> dict[str, dict[str, str | None]]:
        """Return some inputs with the salts that open their hashes, and no others.

        Parameters
        ----------
        inputs : the applicant, by feature
        features : those to show

        Returns
        -------
        dict of dicts with value and salt, by feature
        """
        if self.salt is None:
            raise DataError("reveal: the receipt has no salt, so nothing can be opened. Take the applicant's copy.")
        if missing := [name for name in features if name not in inputs]:
            raise DataError(f"reveal: there is no input {missing[0]!r}.")
        return {name: {"value": text_of(inputs[name]), "salt": salt_of(self.salt, name)} for name in features}

    def __repr__(self) -> str:
        record = self.record
        what = f"{record.decision}, probability {record.probability:.4g}, {record.time}"
        return visible(f"Receipt({what}, key {self.signature.key[:12]})")


class _Kind(msgspec.Struct):
    receipt: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def is_receipt(path: str | Path) -> bool:
    """Whether a file is a receipt, judged by its top level."""
    text = read_text(path, limit=SIZE_LIMIT, error=DataError)
    try:
        return msgspec.json.decode(text, type=_Kind).receipt is not msgspec.UNSET
    except (msgspec.DecodeError, RecursionError):
        return False


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of RFC 8785: sorted keys, no spaces, numbers as JavaScript writes them, UTF-8.

    >>> canonical({"b": [1500.0, 1e-07], "a": "ü"}).decode()
    '{"a":"ü","b":[1500,1e-7]}'
    """
    try:
        import rfc8785
    except ImportError:
        raise missing_extra("rfc8785", "sign") from None
    try:
        return rfc8785.dumps(msgspec.to_builtins(value))
    except rfc8785.CanonicalizationError as error:
        raise SignatureError(f"This cannot be signed: {error}.") from None


def sha256_of(value: Any) -> str:
    """Return the SHA-256 of canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def salt_of(salt: str, feature: str) -> str:
    """Return the salt of one feature: the HMAC of its name by the receipt's salt."""
    return hmac.digest(salt.encode(), feature.encode(), "sha256").hex()


def text_of(value: Any) -> str | None:
    """Return an input as it is hashed: a number with the fewest digits, a label, or None for missing.

    >>> text_of(1500.0), text_of("own"), text_of(float("nan"))
    ('1500', 'own', None)
    """
    if value is None or value != value:
        return None
    if isinstance(value, str | bool) or not isinstance(value, Real):
        return label_of(value)
    return canonical(float(value)).decode()


def commitment(salt: str, feature: str, text: str | None) -> str:
    """Return the salted hash of one input.

    Parameters
    ----------
    salt : of the feature
    feature : its name
    text : of the value
    """
    return sha256_of([salt, feature, text])
