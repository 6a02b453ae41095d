"""For every test: no time limits, the same random cases in CI, no open figures; for doctests a folder and a model."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows

# Real data and the paper's tables may lie beside the project; tests that need them are skipped where they are not.
for _variable, _folder in (("PLAINRISK_DATA", "data"), ("PLAINRISK_PAPER", "paper")):
    _beside = Path(__file__).parent.parent / "shared" / _folder
    if _beside.is_dir():
        os.environ.setdefault(_variable, str(_beside))


@pytest.fixture(autouse=True)
def _doctest_folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _figures_closed() -> Iterator[None]:
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


@functools.cache
def _fitted() -> dict[str, Any]:
    import plainrisk as pr

    german = pr.datasets.load("german")
    model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    mixture = pr.SubscaleMixture(pr.AdditiveRiskModel(), german.schema).fit(german.frame, german.target)
    return {"pr": pr, "german": german, "model": model, "mixture": mixture}


@pytest.fixture(autouse=True)
def _doctest_model(request: pytest.FixtureRequest) -> None:
    # The methods of a model share what their class says in its own docstring.
    methods = ("FormMethods.", "SubscaleMixture.")
    if isinstance(request.node, pytest.DoctestItem) and any(name in request.node.name for name in methods):
        request.node.dtest.globs.update(_fitted())
