"""Signatures of model files and receipts by a key of one's own, made and checked offline."""

from plainrisk.signing.bundle import SIGNATURE_LIMIT, check_signature, make_bundle, signature_path
from plainrisk.signing.keys import (
    PASSWORD,
    key_id,
    new_key,
    public_path,
    read_private_key,
    read_public_key,
)

__all__ = [
    "PASSWORD",
    "SIGNATURE_LIMIT",
    "check_signature",
    "key_id",
    "make_bundle",
    "new_key",
    "public_path",
    "read_private_key",
    "read_public_key",
    "signature_path",
]
