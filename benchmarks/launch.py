"""Start a task in a fresh process and wait for its end or its time limit; whatever happens is a result."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def environment(threads: int) -> dict[str, str]:
    """Return this process's environment with the number of threads that all libraries read."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS", "LOKY_MAX_CPU_COUNT")
    return {**os.environ, **dict.fromkeys(names, str(threads))}


def run_task(task: dict[str, Any], limit: float, threads: int, module: str = "benchmarks.worker") -> dict[str, Any]:
    """Run a task for at most `limit` seconds and return what it measured; `error` says what went wrong."""
    with tempfile.TemporaryDirectory(prefix="plainrisk-bench-") as folder:
        given, record = Path(folder) / "task.json", Path(folder) / "record.json"
        given.write_text(json.dumps(task))
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(given), str(record)],
            cwd=ROOT,
            env=environment(threads),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        ended: dict[str, Any] = {}
        try:
            if process.wait(limit) != 0:
                ended = {"error": f"ended with code {process.returncode}"}
        except subprocess.TimeoutExpired:
            ended = {"error": f"not done in {limit:.0f} s", "over": limit}
        finally:
            with contextlib.suppress(ProcessLookupError):  # its own session: its workers end with it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        known = json.loads(record.read_text()) if record.exists() else {}
        return {**ended, **known} if "seconds" in known else {**known, **ended}


def make_data(folder: Path, name: str) -> str | None:
    """Make rows in a process of their own, unless they are there; return why that failed, or None."""
    if (folder / "ready").exists():
        return None
    call = [sys.executable, "-m", "benchmarks.data", str(folder), name]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)
    return (done.stderr.strip().splitlines() or ["failed"])[-1][:200] if done.returncode else None
