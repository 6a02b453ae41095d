"""Keys in PEM files: elliptic curve P-256, which OpenSSF model signing, browsers and openssl all know."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plainrisk.errors import KeyFileError, OutputError, missing_extra
from plainrisk.files import read_text, replacing, write_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

__all__ = [
    "PASSWORD",
    "key_id",
    "new_key",
    "public_path",
    "read_private_key",
    "read_public_key",
    "require_cryptography",
]

PASSWORD = "PLAINRISK_KEY_PASSWORD"  # an environment variable, since other users can see the arguments of a command
KEY_LIMIT = 64 * 2**10  # bytes of a key file
MAKE = "Make a key: plainrisk sign --new-key key.pem"


def require_cryptography() -> None:
    """Raise if the package that signs is not installed."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise missing_extra("cryptography", "sign") from None


def read_private_key(path: str | Path) -> EllipticCurvePrivateKey:
    """Read the key to sign with; a protected key needs its password in the environment."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pem = read_text(path, limit=KEY_LIMIT, error=KeyFileError).encode()
    if b"PRIVATE KEY" not in pem and b"-----BEGIN" in pem:
        raise KeyFileError(f"{path} holds no private key, which signing needs. Give the file made with it. {MAKE}")
    password = os.environ.get(PASSWORD)
    if b"ENCRYPTED" not in pem:
        password = None
    elif not password:
        raise KeyFileError(f"{path} is protected by a password. Put it into the environment variable {PASSWORD}.")
    try:
        key: Any = load_pem_private_key(pem, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = "is damaged" if password is None else f"is damaged, or the password in {PASSWORD} is another"
        raise KeyFileError(f"{path} {wrong}: it cannot be read as a private key in PEM. {MAKE}") from None
    _check_curve(path, key)
    return key  # type: ignore[no-any-return]


def read_public_key(path: str | Path) -> EllipticCurvePublicKey:
    """Read the key to check by. A private key is refused: a verifier must not be able to sign."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    pem = read_text(path, limit=KEY_LIMIT, error=KeyFileError).encode()
    if b"PRIVATE KEY" in pem:
        raise KeyFileError(
            f"{path} is a private key, and checking needs the public one. Keep this file secret, and write the "
            f"public key: openssl pkey -in {path} -pubout -out {public_path(path)}"
        )
    try:
        key: Any = load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyFileError(f"{path} is damaged: it cannot be read as a public key in PEM. {MAKE}") from None
    _check_curve(path, key)
    return key  # type: ignore[no-any-return]


def _check_curve(path: str | Path, key: Any) -> None:
    curve = getattr(getattr(key, "curve", None), "name", type(key).__name__)
    if curve != "secp256r1":
        raise KeyFileError(f"{path} is a key of another kind ({curve}); a key on the curve P-256 is needed. {MAKE}")


def public_path(path: str | Path) -> Path:
    """Return the path for the public key of a private one.

    >>> public_path("keys/key.pem").as_posix()
    'keys/key.pub.pem'
    """
    path = Path(path)
    return path.with_name(f"{path.stem}.pub{path.suffix}")


def new_key(path: str | Path) -> Path:
    """Write a new private key and its public key, and return the path of the latter.

    The password in the environment, if there is one, protects the private key. An existing file is never replaced,
    because nobody could sign with the lost key again.
    """
    require_cryptography()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec

    for place in (Path(path), public_path(path)):
        if os.path.lexists(place):
            raise OutputError(f"{place} is there already, and keys are not replaced. Give another name.")
    key, password = ec.generate_private_key(ec.SECP256R1()), os.environ.get(PASSWORD)
    lock = form.BestAvailableEncryption(password.encode()) if password else form.NoEncryption()
    with replacing(path) as temporary:
        temporary.chmod(0o600)
        temporary.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock))
    write_text(public_path(path), public_pem(key.public_key()).decode())
    return public_path(path)


def public_pem(key: EllipticCurvePublicKey) -> bytes:
    """Return a public key in the format of its file."""
    from cryptography.hazmat.primitives import serialization as form

    return key.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)


def key_id(key: EllipticCurvePublicKey) -> str:
    """Return the SHA-256 of the public key's PEM text, by which signatures identify their key."""
    return hashlib.sha256(public_pem(key)).hexdigest()
