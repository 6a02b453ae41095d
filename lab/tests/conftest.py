"""What the tests of the lab share: seeded numbers, the printed tables, and a runner of the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from plainrisk.cli.app import app

# Older runners put stdout and stderr together by default.
_APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20240229)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command line in this process; wide, so that no message is wrapped."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("PLAINRISK_DEBUG", raising=False)
    runner = CliRunner(**_APART)
    return lambda *words: runner.invoke(app, [str(word) for word in words])


@pytest.fixture(scope="session")
def paper_folder() -> Path:
    """The folder of the paper's printed tables, which are no part of the repository."""
    given = os.environ.get("PLAINRISK_PAPER")
    if not given or not (Path(given) / "auc.csv").is_file():
        pytest.skip("the paper's printed tables are not here: set PLAINRISK_PAPER to their folder")
    return Path(given)
