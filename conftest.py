"""For every test: no time limits, the same random cases in CI, and a folder of its own for each doctest."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# A busy machine is no failure, and a submission is judged on cases that do not change.
hypothesis.settings.register_profile(
    "plainrisk",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("plainrisk")


@pytest.fixture(autouse=True)
def _doctest_folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
