"""One task in a fresh process: python -m benchmarks.worker TASK RECORD (both JSON files).

The record is rewritten whenever something is known, so that a task that is ended at its time limit keeps it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import memory
from benchmarks.data import Data
from benchmarks.methods import METHODS

WARM_ROWS = 500
LONG = 10.0  # seconds; a call that takes longer is timed once
SPENT = 1.0  # seconds; a shorter call is repeated until this much is spent, since its noise is as large as it is
LATENCY_CALLS = 2000
INTERRUPTED = (0.5, 2.0, 5.0)  # seconds into a fit
# With one thread CPU seconds are counted: what else the machine does then hardly matters.
CLOCK = time.process_time if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter


def seconds_of(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the best time of a call, and its last result."""
    times: list[float] = []
    result = None
    while not times or (times[-1] < LONG and (len(times) < repeats or sum(times) < SPENT)):
        result = None  # its memory is not the next one's
        begin = CLOCK()
        result = call()
        times.append(CLOCK() - begin)
    return min(times), result


def measure_fit(method: Any, data: Data, task: dict[str, Any], note: Callable[..., None]) -> None:
    """Time the fit; memory is the peak of the first one, beyond what was held before it."""
    method.fit(method.prepare(data.head(WARM_ROWS)))  # what is loaded or started once is not in the clock
    rows = method.prepare(data)
    before = memory.reset_peak()
    method.fit(rows)
    note(peak_mb=memory.peak() - before, coded_mb=data.matrix.size / 2**20)
    seconds, model = seconds_of(lambda: method.fit(rows), task["repeats"])
    note(seconds=seconds)
    note(auc=auc(rows.y, method.predict(model, rows)))
    if method.reads_rows:
        held_out = method.prepare(data.held_out)
        note(log_loss=log_loss(held_out.y, method.predict(model, held_out)))


def measure_score(method: Any, data: Data, task: dict[str, Any], note: Callable[..., None]) -> None:
    """Time scoring all rows, and one applicant, by a model of the first rows."""
    model = method.fit(method.prepare(data.head(task["train_rows"])))
    rows = method.prepare(data)
    seconds, _ = seconds_of(lambda: method.predict(model, rows), task["repeats"])
    note(seconds=seconds, rows=len(rows.y))
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # threads only delay a single row
        note(latency_us=latency(method.single(model, rows)))


def measure_wide(method: Any, data: Data, task: dict[str, Any], note: Callable[..., None]) -> None:
    """Time how long a fit of many features goes on after an interrupt, at three points of it, and the fit itself."""
    rows = method.prepare(data)
    delays: list[float] = []
    for after in INTERRUPTED:
        delays.append(interrupt_delay(lambda: method.fit(rows), after))
        note(interrupt_seconds=max(delays))  # known even if the fit then takes too long
    seconds, _ = seconds_of(lambda: method.fit(rows), 1)
    note(seconds=seconds)


def measure_parquet(method: Any, data: Data, task: dict[str, Any], note: Callable[..., None]) -> None:
    """Fit from Parquet files; memory is that of the whole process."""
    import plainrisk as pr

    rows = pr.rows.parquet(str(data.folder / "*.parquet"))
    schema = data.schema
    seconds, _ = seconds_of(lambda: pr.make_classifier(method.name, schema).fit(rows, y=schema.target), 1)
    note(seconds=seconds, whole_mb=memory.peak())


def measure_pairs(method: Any, data: Data, task: dict[str, Any], note: Callable[..., None]) -> None:
    """Time fits with pairs and without, to the same rows."""
    import plainrisk as pr

    frame, target, schema = data.frame, data.target, data.schema
    pr.make_classifier(method.name, schema).fit(frame.head(WARM_ROWS), target[:WARM_ROWS])
    for name, options in (("alone", {}), ("seconds", method.options)):
        seconds, _ = seconds_of(
            lambda given=options: pr.make_classifier(method.name, schema, **given).fit(frame, target), task["repeats"]
        )
        note(**{name: seconds})


def measure_commands(method: Any, data: Data, task: dict[str, Any], note: Callable[..., None]) -> None:
    """Measure the CPU seconds of commands that do little, and how long the reasons of one applicant take."""
    import plainrisk as pr

    model = pr.make_classifier(method.name, data.schema).fit(data.frame, data.target)
    applicant = data.frame.row(0, named=True)
    note(reasons_us=latency(lambda: model.reasons(applicant)))
    with tempfile.TemporaryDirectory() as folder:
        path, rows = f"{folder}/model.json", f"{folder}/rows.csv"
        model.save(path)
        data.frame.head(3).write_csv(rows)
        commands = {
            "version": ["--version"],
            "certify": ["certify", path],
            "explain": ["explain", path, rows, "--row=1"],
        }
        for name, arguments in commands.items():
            note(**{f"{name}_cpu": min(cpu_seconds(arguments) for _ in range(2 + task["repeats"]))})


def cpu_seconds(arguments: list[str]) -> float:
    """Return the CPU seconds of a command, from start to end."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    subprocess.run([sys.executable, "-m", "plainrisk_command", *arguments], check=True, stdout=subprocess.DEVNULL)
    return spent() - before


def interrupt_delay(call: Callable[[], Any], after: float) -> float:
    """Return the seconds from an interrupt to the end of the call, answered or not; 0 if the call ended before."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is born deaf to it
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        call()
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:
        pass
    return time.perf_counter() - sent[0] if sent else 0.0


def latency(call: Callable[[], Any]) -> float:
    """Return the median microseconds of a call."""
    call()
    times = []
    for _ in range(LATENCY_CALLS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e6


def log_loss(y: Any, risk: Any) -> float:
    from sklearn.metrics import log_loss

    return float(log_loss(y, risk))


def auc(y: Any, risk: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, risk))


PARTS = {
    "fit": measure_fit,
    "score": measure_score,
    "wide": measure_wide,
    "growth": measure_fit,
    "pairs": measure_pairs,
    "commands": measure_commands,
    "stream": measure_parquet,
    "parquet": measure_parquet,
}


def main() -> None:
    warnings.simplefilter("ignore")
    task, record = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    known: dict[str, Any] = {}

    def note(**values: Any) -> None:
        known.update(values)
        draft = record.with_suffix(".draft")
        draft.write_text(json.dumps(known))
        draft.replace(record)

    try:
        PARTS[task["part"]](METHODS[task["method"]], Data(Path(task["folder"])), task, note)
    except BaseException as error:  # whatever a library raises is a result
        note(error=f"{type(error).__name__}: {error}".replace("\n", " ")[:200])


if __name__ == "__main__":
    main()
