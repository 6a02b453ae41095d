"""Failures, time-outs and deaths of a task are rows."""

from __future__ import annotations

import sys

import pytest

from benchmarks import launch

LIMITS = launch.Limits(seconds=1.0, megabytes=100_000.0, threads=1)
WRITE = "import json, os, sys, time; put = lambda **v: open(sys.argv[2], 'w').write(json.dumps(v)); "


def run(code, limits=LIMITS):
    return launch.run_task({}, limits, [sys.executable, "-c", WRITE + code])


def test_measurements_come_back_without_the_bookkeeping():
    found = run("put(stage='seconds', since=time.time(), seconds=0.5, peak_mb=3.0, done=True)")
    assert found == {"seconds": 0.5, "peak_mb": 3.0}


def test_a_fit_over_the_limit_is_a_row_with_the_limit():
    found = run("put(stage='seconds', since=time.time()); time.sleep(60)")
    assert found == {"error": "not done in 1 s (seconds)", "over": 1.0}


def test_preparing_has_a_longer_limit():
    found = run("put(stage='prepare', since=time.time()); time.sleep(1.5); put(seconds=2.0, done=True)")
    assert found == {"seconds": 2.0}


def test_what_was_measured_before_a_limit_is_kept():
    found = run("put(stage='judge', since=time.time(), seconds=0.25); time.sleep(60)")
    assert found == {"seconds": 0.25, "note": "not done in 1 s (judge)"}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("sys.exit(3)", "ended with code 3"),
        ("os.kill(os.getpid(), 9)", "ended by the system, probably out of memory"),
        ("put(error='ValueError: no such thing')", "ValueError: no such thing"),
    ],
)
def test_failures_are_rows(code, error):
    assert run(code) == {"error": error}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is watched on Linux")
def test_too_much_memory_is_a_row():
    found = run("time.sleep(60)", launch.Limits(seconds=60.0, megabytes=1.0, threads=1))
    assert found == {"error": "needs more than 0 GB of memory"}


def test_a_worker_turns_any_error_into_a_row():
    found = launch.run_task({"part": "fit", "method": "no such method"}, LIMITS)
    assert found == {"error": "KeyError: 'no such method'"}


def test_threads_reach_every_library():
    given = launch.environment(3)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    assert [given[n] for n in names] == ["3"] * 4
    assert given["POLARS_MAX_THREADS"] == "3"


def test_imports_that_fail_are_rows(monkeypatch):
    monkeypatch.setattr(launch, "IMPORT_ROUNDS", 1)
    found = launch.import_times(["json", "no_such_module"], 1)
    assert found["json"]["seconds"] > 0
    assert found["no_such_module"] == {"error": "ModuleNotFoundError: No module named 'no_such_module'"}
