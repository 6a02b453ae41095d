"""What the tests of the reproduction share: real data if there are any."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import plainrisk as pr
from plainrisk.errors import DataError


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
