"""What the tests of the reproduction share: seeded numbers, real data if there are any, and the printed tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.errors import DataError


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session")
def load() -> Callable[[str], pr.datasets.Dataset]:
    """Load a data set, or skip the test if it is not on this machine; German credit always is."""

    def load_or_skip(name: str) -> pr.datasets.Dataset:
        try:
            return pr.datasets.load(name)
        except DataError as error:
            if "is not on this machine" not in str(error):
                raise
            pytest.skip(f"{name} is not on this machine: set PLAINRISK_DATA to the folder that holds it")

    return load_or_skip


@pytest.fixture(scope="session")
def paper_folder() -> Path:
    """The folder of the paper's printed tables, which are no part of the repository."""
    given = os.environ.get("PLAINRISK_PAPER")
    if not given or not (Path(given) / "auc.csv").is_file():
        pytest.skip("the paper's printed tables are not here: set PLAINRISK_PAPER to their folder")
    return Path(given)
