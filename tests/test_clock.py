"""A clock that jumps changes no file and no limit."""

from __future__ import annotations

import itertools
import time

import polars as pl
import pytest

import plainrisk as pr
from plainrisk.cli.tables import write_lazy
from plainrisk.files import write_text
from plainrisk.serve.keys import Rate


@pytest.fixture
def jumping(monkeypatch):
    """Let the clock go back to 1980 and forward to 2096 at every look."""

    def jump():
        times = itertools.cycle([4e9, 3.2e8, 1.7e9])
        monkeypatch.setattr(time, "time", lambda: next(times))
        monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * next(times)))

    return jump


def written(folder, model):
    """What is written, in every format that could hold a date."""
    folder.mkdir()
    model.save(folder / "model.json")
    rows = pl.DataFrame({"a": [1, 2], "b": ["x", None]}).lazy()
    for name in ("rows.csv", "rows.csv.gz", "rows.parquet", "rows.xlsx", "rows.jsonl"):
        write_lazy(rows, folder / name)
    for name in ("score.xlsx", "score.onnx", "score.py"):
        model.export(folder / name)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_the_same_files_whatever_the_clock_says(tmp_path, jumping):
    pytest.importorskip("onnx")
    pytest.importorskip("xlsxwriter")
    made = pr.datasets.make_credit(300, 1)
    model = pr.AdditiveRiskModel(made.schema).fit(made.frame, made.target)
    before = written(tmp_path / "before", model)
    jumping()
    after = written(tmp_path / "after", model)
    assert len(before) == 9
    assert [name for name in before if before[name] != after[name]] == []


def test_writing_does_not_ask_for_the_time(tmp_path, monkeypatch):
    """Whether a temporary file is held is told by its lock, not by its age."""
    monkeypatch.setattr(time, "time", lambda: pytest.fail("the clock was asked"))
    left = tmp_path / ".plainrisk-0123456789abcdef-a.json"
    left.write_text("half")
    write_text(tmp_path / "a.json", "{}")
    assert (tmp_path / "a.json").read_text() == "{}"


def test_a_limit_of_requests_counts_by_a_clock_that_nobody_sets(monkeypatch, jumping):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    jumping()
    rate = Rate(2.0)
    assert [rate.allows("key") for _ in range(3)] == [True, True, False]
    now[0] += 0.5
    assert [rate.allows("key") for _ in range(2)] == [True, False]
