"""Start a task in a fresh process and watch it: time, memory, failure; whatever happens is a row."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import memory

ROOT = Path(__file__).resolve().parents[1]
PREPARING = 900.0  # seconds, for reading and shaping rows
EVERY = 0.5  # seconds between looks at it: each takes a little of a core from the method that is timed
IMPORT_ROUNDS = 5


@dataclass(frozen=True)
class Limits:
    """What a task may take.

    Attributes
    ----------
    seconds : of each timed stage
    megabytes : of the process and those it starts
    threads : that every library is given
    """

    seconds: float
    megabytes: float
    threads: int


def environment(threads: int) -> dict[str, str]:
    """Return this process's environment with the thread count that all libraries read."""
    names = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    counts = {f"{name}_NUM_THREADS" if name != "VECLIB_MAXIMUM" else f"{name}_THREADS": str(threads) for name in names}
    return {**os.environ, **counts, "POLARS_MAX_THREADS": str(threads), "LOKY_MAX_CPU_COUNT": str(threads)}


def run_task(task: dict[str, Any], limits: Limits, command: Sequence[str] | None = None) -> dict[str, Any]:
    """Run a task and return its measurements; `error` says what went wrong, `over` the time limit that it passed."""
    with tempfile.TemporaryDirectory(prefix="plainrisk-bench-") as folder:
        given, record = Path(folder) / "task.json", Path(folder) / "record.json"
        given.write_text(json.dumps(task))
        call = [*(command or [sys.executable, "-m", "benchmarks.worker"]), str(given), str(record)]
        process = subprocess.Popen(
            call,
            cwd=ROOT,
            env=environment(limits.threads),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            ended = _watch(process, record, limits)
        finally:
            _end(process)
        return _outcome(_read(record), ended, process.returncode)


def _watch(process: subprocess.Popen[bytes], record: Path, limits: Limits) -> dict[str, Any]:
    """Wait for the end of a process, or a limit."""
    started = time.time()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(EVERY)
            return {}
        known = _read(record)
        timed = known.get("stage") not in (None, "prepare")
        allowed = limits.seconds if timed else PREPARING
        if time.time() - known.get("since", started) > allowed:
            return {"error": f"not done in {allowed:.0f} s ({known.get('stage', 'start')})", "over": allowed}
        if memory.held(process.pid) > limits.megabytes:
            return {"error": f"needs more than {limits.megabytes / 1024:.0f} GB of memory"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process of ours and the workers that it started: they are a session of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(record: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(record.read_text())
    except (OSError, json.JSONDecodeError):
        return {}
    return found


def _outcome(known: dict[str, Any], ended: dict[str, Any], code: int | None) -> dict[str, Any]:
    """Join what was measured and how it ended. A fit that was timed stays so if a later stage fails."""
    found = {k: v for k, v in known.items() if k not in ("stage", "since", "done")}
    if "error" in ended:
        found |= ended
    elif not known.get("done") and "error" not in found:
        found["error"] = "ended by the system, probably out of memory" if code == -9 else f"ended with code {code}"
    if "error" in found and "seconds" in found:
        found["note"] = found.pop("error")
        found.pop("over", None)
    return found


def import_times(modules: Sequence[str], threads: int) -> dict[str, dict[str, Any]]:
    """Return the seconds of each import statement in fresh processes, best of five rounds through all of them."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(IMPORT_ROUNDS):
        for module in modules:
            code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                check=False,
                env=environment(threads),
                cwd=ROOT,
            )
            if done.returncode:
                found[module] = {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:200]}
            else:
                seconds = float(done.stdout.split()[-1])
                found[module] = {"seconds": min(seconds, found.get(module, {}).get("seconds", seconds))}
    return found


def make_data(folder: Path, name: str) -> str | None:
    """Make rows in a process of their own, unless they are there; return why that failed, or None."""
    if (folder / "ready").exists():
        return None
    call = [sys.executable, "-m", "benchmarks.data", str(folder), name]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)
    return (done.stderr.strip().splitlines() or ["failed"])[-1][:200] if done.returncode else None
