"""What many tests share: seeded numbers, and where real data lie if there are any."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def _folder(variable: str, beside: str) -> Path:
    given = os.environ.get(variable)
    folder = Path(given) if given else ROOT.parent / "shared" / beside
    if not folder.is_dir():
        pytest.skip(f"no folder {folder.name!r}: set {variable} to run this test")
    return folder


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real credit data."""
    return _folder("PLAINRISK_DATA", "data")


@pytest.fixture(scope="session")
def paper_folder() -> Path:
    """The folder of the paper's tables and schemas."""
    return _folder("PLAINRISK_PAPER", "paper")


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20240229)
