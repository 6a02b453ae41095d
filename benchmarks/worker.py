"""One task in a fresh process: python -m benchmarks.worker TASK.json RECORD.json

The record is rewritten as the work goes on: which stage began when, and all that is known so far, so that whoever
started this process can end it at a time-out and keep what was measured before.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import memory
from benchmarks.adapters import METHODS
from benchmarks.adapters.base import Adapter
from benchmarks.data import Data

ONCE = 30.0  # seconds; what takes longer is run once
ENOUGH, MOST_RUNS = 1.0, 200  # seconds; what takes little is run until so many are spent: noise is as long as it is
LITTLE = 1.0  # seconds; a record written between shorter runs would disturb them, and nothing is lost without it
LATENCY_CALLS, LATENCY_SECONDS = 2000, 3.0
FOLDS = 10


class Record:
    """What is known so far, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {}

    def stage(self, name: str) -> None:
        """Say what begins now."""
        self.values |= {"stage": name, "since": time.time()}
        self._write()

    def add(self, **values: Any) -> None:
        """Keep measurements."""
        self.values |= values
        self._write()

    def _write(self) -> None:
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps(self.values))
        os.replace(draft, self.path)


def best(
    call: Callable[[], Any],
    repeats: int,
    record: Record,
    name: str,
    once: float = ONCE,
    after_first: Callable[[], None] = lambda: None,
) -> Any:
    """Time a call, best of several or of as many as a second has room for, and return its last result.

    The times of the first ones are kept beside.
    """
    result: Any = None
    times: list[float] = []
    while len(times) < repeats or (sum(times) < ENOUGH and len(times) < MOST_RUNS):
        del result  # its memory is not the next one's
        if not times or times[-1] > LITTLE:
            record.stage(name)
        started = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - started)
        if len(times) == 1:
            after_first()
        if times[-1] > LITTLE:
            record.add(**{name: min(times), f"{name}_at_first": times[:repeats]})
        if times[-1] > once:
            break
    record.add(**{name: min(times), f"{name}_at_first": times[:repeats]})
    return result


def measure_fit(adapter: Adapter, data: Data, repeats: int, record: Record, *, brief: bool = False) -> None:
    """Time the fit, and say how good it is."""
    record.stage("prepare")
    adapter.warm(data)
    rows = adapter.prepare(data)
    before = memory.reset_peak()

    def note_memory() -> None:
        record.add(peak_mb=memory.peak() - before, held_mb=before)

    model = best(lambda: adapter.fit(rows), repeats, record, "seconds", after_first=note_memory)
    if brief:
        return
    record.stage("judge")
    record.add(auc=auc(rows.y, adapter.predict(model, rows)))
    record.add(**adapter.certificate(model, rows), bytes=adapter.size(model))


def measure_cv(adapter: Adapter, data: Data, repeats: int, record: Record) -> None:
    """Time ten folds."""
    record.stage("prepare")
    adapter.warm(data)
    rows = adapter.prepare(data)
    risk = best(lambda: adapter.cross_validate(rows, FOLDS), repeats, record, "seconds", ONCE / 3)
    record.add(auc=auc(rows.y, risk))


def measure_score(adapter: Adapter, data: Data, train_rows: int, explain_rows: int, record: Record) -> None:
    """Time scoring and explaining many rows, and scoring one."""
    record.stage("prepare")
    rows = adapter.prepare(data)
    record.stage("train")
    model = adapter.fit(adapter.prepare(data.head(train_rows)))
    record.add(bytes=adapter.size(model), rows=len(rows.y))
    best(data.matrix.sum, 7, record, "pass_seconds")
    best(lambda: adapter.predict(model, rows), 5, record, "seconds")
    record.stage("latency")
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # threads only delay a single row
        record.add(latency_us=latency(adapter.single(model, rows)))
    few = rows.take(np.arange(min(explain_rows, len(rows.y))))
    with contextlib.suppress(NotImplementedError):
        best(lambda: adapter.explain(model, few), 3, record, "explain_seconds")
        record.add(explain_rows=len(few.y))


def measure_parquet(method: str, pieces: str, schema: Any, record: Record) -> None:
    """Fit from Parquet files; memory is that of the whole process."""
    import plainrisk as pr
    import plainrisk.data.rows

    rows = pr.rows.parquet(pieces)
    model = best(lambda: pr.make_classifier(method, schema).fit(rows, y=schema.target), 1, record, "seconds")
    record.add(whole_mb=memory.peak(), rows=model.fit_record_.rows)


def latency(call: Callable[[], Any]) -> float:
    """Return the median microseconds of a call."""
    call()
    times: list[float] = []
    end = time.perf_counter() + LATENCY_SECONDS
    while len(times) < LATENCY_CALLS and time.perf_counter() < end:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return float(np.median(times)) * 1e6


def auc(y: Any, risk: Any) -> float:
    """Return the area under the ROC curve."""
    from plainrisk.evaluate.metrics import roc_auc

    return float(roc_auc(y, np.asarray(risk, dtype=np.float64)))


def run(task: dict[str, Any], record: Record) -> None:
    """Do what the task says."""
    if task["part"] == "parquet":
        from plainrisk import Schema

        measure_parquet(task["method"], task["pieces"], Schema.load(task["schema"]), record)
        return
    adapter: Adapter = METHODS[task["method"]].make()
    data = Data(Path(task["folder"]), **task["limits"])
    repeats: int = task["repeats"]
    if task["part"] == "cv":
        measure_cv(adapter, data, repeats, record)
    elif task["part"] == "score":
        measure_score(adapter, data, task["train_rows"], task["explain_rows"], record)
    else:
        measure_fit(adapter, data, repeats, record, brief=task["part"] == "growth")


def main() -> None:
    warnings.simplefilter("ignore")
    task, record = json.loads(Path(sys.argv[1]).read_text()), Record(Path(sys.argv[2]))
    try:
        run(task, record)
    except MemoryError:
        record.add(error="out of memory")
    except BaseException as error:  # whatever a library raises is a row
        record.add(error=f"{type(error).__name__}: {error}".replace("\n", " ")[:200])
    else:
        record.add(done=True)


if __name__ == "__main__":
    main()
