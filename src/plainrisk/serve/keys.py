"""Named API keys, kept as hashes in a file that is read again when it changes, and a limit of requests per key."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path

from plainrisk.errors import PlainriskError
from plainrisk.files import parse_toml, read_text
from plainrisk.serve.served import stamp_of
from plainrisk.serve.settings import Settings

__all__ = ["Keys", "Rate"]

LOG = logging.getLogger("plainrisk.serve")

FILE_LIMIT = 2**20
ONLY = "key"  # the name of the key from the environment


class Keys:
    """The keys that are in force.

    Parameters
    ----------
    settings : with the key of the environment and the file of further keys, lines of `name = "SHA-256 in hex"`
    """

    def __init__(self, settings: Settings) -> None:
        self._path = None if settings.keys is None else Path(settings.keys)
        self._from_environment = {} if settings.key is None else {ONLY: _digest(settings.key.encode())}
        self._stamp = None if self._path is None else stamp_of(self._path)
        self._hashes = self._from_environment if self._path is None else {**self._from_environment, **_read(self._path)}

    @property
    def wanted(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._from_environment) or self._path is not None

    def refresh(self) -> None:
        """Read the file again if it changed; a damaged file changes nothing."""
        stamp = None if self._path is None else stamp_of(self._path)
        if self._path is None or stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._hashes = {**self._from_environment, **_read(self._path)}
            LOG.info("keys read again: %s", ", ".join(self._hashes))
        except PlainriskError as error:
            LOG.error("the keys stay as they were: %s", error)

    def name_of(self, authorization: bytes) -> str | None:
        """Return the name of the key in a request, or None if it has no key or an unknown one."""
        scheme, _, sent = authorization.partition(b" ")
        # RFC 9110: the name of a scheme is read without regard to case.
        if scheme.lower() == b"basic":  # browsers send a user name, which is ignored, and the key
            try:
                sent = base64.b64decode(sent, validate=True).partition(b":")[2]
            except binascii.Error:
                return None
        elif scheme.lower() != b"bearer":
            return None
        digest, name_found = _digest(sent.strip()), None
        for name, known in self._hashes.items():
            if hmac.compare_digest(digest, known):
                name_found = name
        return name_found


def _digest(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def _read(path: Path) -> Mapping[str, str]:
    keys = parse_toml(read_text(path, limit=FILE_LIMIT, error=PlainriskError), path, PlainriskError)
    for name, known in keys.items():
        if not isinstance(known, str) or not re.fullmatch("[0-9a-f]{64}", known):
            raise PlainriskError(f"{path}: {name!r} must be the SHA-256 of a key, 64 digits of 0-9 and a-f in quotes.")
    if not keys:
        raise PlainriskError(f'{path} holds no key. Add a line: name = "SHA-256 of the key in hex".')
    return keys


class Rate:
    """A limit of requests per second and key; the requests of one second may come at once."""

    def __init__(self, per_second: float | None) -> None:
        self.per_second = per_second
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, name: str) -> bool:
        """Count one request of a key, if it has one left."""
        if self.per_second is None:
            return True
        most, now = max(1.0, self.per_second), time.monotonic()
        left, then = self._left.get(name, (most, now))
        left = min(most, left + (now - then) * self.per_second)
        self._left[name] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0
