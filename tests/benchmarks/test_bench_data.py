"""The rows that are timed, and what is measured on them, on very few."""

from __future__ import annotations

import numpy as np
import pytest

import plainrisk as pr
from benchmarks import worker
from benchmarks.adapters import METHODS
from benchmarks.data import Data, make


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "credit-600x12"
    make(path, "credit-600x12")
    return path


def test_frame_and_matrix_hold_the_same_rows(folder):
    data = Data(folder)
    assert data.frame.shape == data.matrix.shape == (600, 12)
    assert data.frame["income"].to_numpy() == pytest.approx(data.matrix[:, 2], nan_ok=True)
    words = data.schema.features["purpose"].categories
    places = [None if np.isnan(k) else words[int(k)] for k in data.matrix[:, 7]]
    assert data.frame["purpose"].to_list() == places


def test_a_model_of_the_matrix_is_that_of_the_frame(folder):
    data = Data(folder)
    one = pr.AdditiveRiskModel(data.schema).fit(data.frame, data.target)
    other = pr.AdditiveRiskModel(data.matrix_schema).fit(data.matrix, data.target)
    assert one.solution_.objective == pytest.approx(other.solution_.objective, abs=1e-12)


def test_limits(folder):
    data = Data(folder, rows=50, features=6, subscales=3)
    assert data.frame.shape == data.matrix.shape == (50, 6)
    assert [len(v) for v in data.schema.subscales.values()] == [2, 2, 2]
    assert data.head(10).matrix.shape == (10, 6)


def test_codes_are_missing_for_trees(folder):
    X = Data(folder).tree_matrix()
    assert X.dtype == np.float32
    assert not (X == -9).any()


@pytest.mark.parametrize("method", ["ARM1", "ARM1 (matrix)", "glum", "SLSQP (default)", "HistGradientBoosting"])
def test_fits_are_measured(folder, tmp_path, method):
    record = worker.Record(tmp_path / "record.json")
    worker.measure_fit(METHODS[method].make(), Data(folder, features=4), 2, record)
    found = record.values
    assert found["seconds"] > 0
    assert found["bytes"] > 1000
    assert 0.5 < found["auc"] < 1
    if method in ("ARM1", "ARM1 (matrix)", "glum"):
        assert found["kkt"] < 1e-6


def test_the_same_problem_has_the_same_optimum(folder, tmp_path):
    found = {}
    for method in ("ARM1", "glum", "SLSQP"):
        record = worker.Record(tmp_path / "record.json")
        worker.measure_fit(METHODS[method].make(), Data(folder, features=4), 1, record)
        found[method] = record.values["objective"]
    assert found["glum"] == pytest.approx(found["ARM1"], abs=1e-9)
    assert found["SLSQP"] == pytest.approx(found["ARM1"], abs=1e-7)


def test_scoring_is_measured(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "LATENCY_CALLS", 5)
    record = worker.Record(tmp_path / "record.json")
    worker.measure_score(METHODS["ARM1"].make(), Data(folder, as_matrix=True), 300, 100, record)
    assert record.values["explain_rows"] == 100
    assert record.values["latency_us"] > 0
    assert record.values["pass_seconds"] > 0


def test_ten_folds_are_measured(folder, tmp_path):
    record = worker.Record(tmp_path / "record.json")
    worker.measure_cv(METHODS["HistGradientBoosting"].make(), Data(folder, features=4), 1, record)
    assert 0.4 < record.values["auc"] < 1


def test_what_takes_little_is_run_until_a_second_is_spent(tmp_path, monkeypatch):
    clock = iter([0.0, 5.0, 10.0, 13.0, 20.0, 24.0, 30.0, 32.0, 40.0, 41.0])
    monkeypatch.setattr(worker.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(worker, "ENOUGH", 14.0)
    record, calls, first = worker.Record(tmp_path / "record.json"), [], []
    worker.best(lambda: calls.append(1), 3, record, "seconds", after_first=lambda: first.append(len(calls)))
    assert (len(calls), first) == (4, [1])
    assert record.values["seconds"] == 2.0
    assert record.values["seconds_at_first"] == [5.0, 3.0, 4.0]


def test_what_takes_long_is_run_once(tmp_path, monkeypatch):
    clock = iter([0.0, 31.0])
    monkeypatch.setattr(worker.time, "perf_counter", lambda: next(clock))
    record = worker.Record(tmp_path / "record.json")
    worker.best(lambda: None, 3, record, "seconds")
    assert record.values["seconds"] == 31.0
