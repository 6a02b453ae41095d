"""Keys of several kinds, and a model of German credit in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

import plainrisk as pr
from plainrisk.signing import new_key


class Keys(NamedTuple):
    """Files of keys."""

    private: Path
    public: Path
    other_private: Path
    other_public: Path
    locked: Path
    p384: Path
    ed25519: Path


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    public, other = (new_key(folder / name) for name in ("key.pem", "other.pem"))

    def write(name: str, key: Any, lock: Any = None) -> Path:
        pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock or form.NoEncryption())
        (folder / name).write_bytes(pem)
        return folder / name

    locked = form.load_pem_private_key((folder / "key.pem").read_bytes(), None)
    return Keys(
        folder / "key.pem",
        public,
        folder / "other.pem",
        other,
        write("locked.pem", locked, form.BestAvailableEncryption(b"open sesame")),
        write("p384.pem", ec.generate_private_key(ec.SECP384R1())),
        write("ed25519.pem", ed25519.Ed25519PrivateKey.generate()),
    )


@pytest.fixture(scope="session")
def german() -> Any:
    return pr.datasets.load("german")


@pytest.fixture(scope="session")
def model(german: Any) -> Any:
    return pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)


@pytest.fixture(scope="session")
def saved(model: Any, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("saved") / "model.json"
    model.save(path)
    return path.read_bytes()


@pytest.fixture
def signed(saved: bytes, keys: Keys, tmp_path: Path) -> Path:
    """A model file of the test's own, with its signature beside it."""
    path = tmp_path / "model.json"
    path.write_bytes(saved)
    pr.sign(path, keys.private)
    return path
