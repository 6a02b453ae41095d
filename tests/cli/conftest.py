"""What the tests of the command line share: a runner, and files of synthetic credit data."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from typer.testing import CliRunner

from plainrisk import AdditiveRiskModel, Schema
from plainrisk.cli.app import app
from plainrisk.datasets import make_credit

# Older runners put stdout and stderr together by default.
_APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


class Credit(NamedTuple):
    """Synthetic credit data in files, and in memory."""

    csv: Path
    parquet: Path
    schema_file: Path
    model_file: Path
    frame: pl.DataFrame
    schema: Schema


@pytest.fixture(scope="session")
def credit(tmp_path_factory: pytest.TempPathFactory) -> Credit:
    folder = tmp_path_factory.mktemp("credit")
    made = make_credit(600, 7, backend="polars")
    frame = made.frame.with_columns(pl.Series("bad", made.target), id=pl.arange(len(made.target)) + 100)
    files = Credit(
        folder / "credit.csv",
        folder / "credit.parquet",
        folder / "credit.toml",
        folder / "model.json",
        frame,
        made.schema,
    )
    frame.write_csv(files.csv)
    frame.write_parquet(files.parquet)
    made.schema.save(files.schema_file)
    AdditiveRiskModel(made.schema).fit(made.frame, made.target).save(files.model_file)
    return files


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command line in this process; wide, so that no message is wrapped."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("PLAINRISK_DEBUG", raising=False)
    runner = CliRunner(**_APART)
    return lambda *words: runner.invoke(app, [str(word) for word in words])
