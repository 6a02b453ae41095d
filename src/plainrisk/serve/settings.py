"""The settings of the service: models, address, key and limits."""

from __future__ import annotations

import ipaddress
from typing import Any

import msgspec

from plainrisk.errors import PlainriskError

__all__ = ["KEY_LENGTH", "Settings"]

KEY_LENGTH = 16  # characters of an API key, at least


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a worker process needs to know.

    Attributes
    ----------
    models : paths of the model files; the first is the one that answers where no model is named
    host, port : the address; with port 0, any free port
    key : the API key; any address but loopback needs a key
    keys : a file of names and the SHA-256 of their keys, which is read again when it changes
    certificate, certificate_key : files for TLS
    rate : the most requests of a key in a second
    audit : a folder for logs of what was answered; `audit_values` puts the values into it
    max_bytes, max_rows : of one request; what-if, a search per row, answers for a hundredth of the rows
    seconds : the time limit for working on a request, and again for the client to receive its answer
    patience : seconds for a client to send the body of a request; slow headers are a proxy's concern
    signed_by : the file of the public key that must have signed every model, at the start and at every reload
    receipt_key : the file of the private key that signs receipts of decisions
    drain_seconds : how long the service keeps answering after a signal to stop, while it reports that it is not ready
    """

    models: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    key: str | None = None
    keys: str | None = None
    certificate: str | None = None
    certificate_key: str | None = None
    rate: float | None = None
    audit: str | None = None
    audit_values: bool = False
    max_bytes: int = 8 * 2**20
    max_rows: int = 10_000
    seconds: float = 30.0
    patience: float = 10.0
    drain_seconds: float = 1.0
    signed_by: str | None = None
    receipt_key: str | None = None

    def __post_init__(self) -> None:
        if not self.models:
            raise PlainriskError("serve: name at least one model file.")
        if self.key is not None and len(self.key) < KEY_LENGTH:
            raise PlainriskError(f"serve: the API key is too short. Take at least {KEY_LENGTH} random characters.")
        if not self.needs_key and not self.is_local:
            raise PlainriskError(
                f"serve: {self.host} can be reached from other machines, which needs an API key. Put one into the "
                "environment variable PLAINRISK_API_KEY, give a file of keys, or listen on 127.0.0.1."
            )
        if (self.certificate is None) != (self.certificate_key is None):
            raise PlainriskError("serve: TLS needs both, the certificate and its key.")

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key."""
        return self.key is not None or self.keys is not None

    def replaced(self, **changes: Any) -> Settings:
        """Return settings with other values."""
        return msgspec.structs.replace(self, **changes)

    @property
    def is_local(self) -> bool:
        """Whether the address can be reached only from this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names that requests may use; without a key, a web page from elsewhere must not reach the service."""
        return ("*",) if self.needs_key else ("localhost", "127.0.0.1", "[::1]", self.host)
