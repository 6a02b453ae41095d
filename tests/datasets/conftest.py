from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"


# Read here, since every test sees a data folder of its own.
DATA = os.environ.get("PLAINRISK_DATA")
PAPER = os.environ.get("PLAINRISK_PAPER")


def _folder(variable: str, named: str | None, default: Path) -> Path:
    folder = Path(named) if named else default
    if not folder.is_dir():
        pytest.skip(f"{variable} does not name a folder, and there is no {default.name} beside the repository")
    return folder


@pytest.fixture
def paper() -> Path:
    """The folder with the paper's schemas; the test skips where there is none."""
    return _folder("PLAINRISK_PAPER", PAPER, SHARED / "paper")


@pytest.fixture
def real_data() -> Path:
    """The folder with the real files; the test skips where there is none."""
    return _folder("PLAINRISK_DATA", DATA, SHARED / "data")


@pytest.fixture
def real_file(real_data):
    def path(name: str) -> Path:
        if not (real_data / name).is_file():
            pytest.skip(f"{name} is not in the folder of real data")
        return real_data / name

    return path


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """Give every test an empty data folder and an empty cache of its own."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PLAINRISK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def data(tmp_path) -> Path:
    """The folder PLAINRISK_DATA names."""
    return tmp_path / "data"


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache" / "plainrisk"


@pytest.fixture
def german_lines() -> list[str]:
    """The 1,000 lines of german.data, blank-separated as in the public source."""
    packed = ROOT / "src" / "plainrisk" / "datasets" / "files" / "german.csv.gz"
    lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
    return [line.replace(",", " ") for line in lines[1:]]
