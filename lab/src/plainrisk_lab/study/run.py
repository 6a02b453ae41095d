"""Run a study: find the fits that the store lacks, run them in a few processes, and save each when it is done.

A runner may be killed at any moment and started again; two runners may work on one store. A worker process that dies
costs the fit it was at. An interrupt ends the workers, and what was finished is kept.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from plainrisk.errors import DataError, MissingExtraError, PlainriskError, PlainriskWarning, StoppedEarly
from plainrisk.validate.crossval import cross_validate
from plainrisk_lab.study.challengers import build
from plainrisk_lab.study.plan import METRICS, ClassifierSpec, DataSpec, Plan
from plainrisk_lab.study.sources import StudyData, load_data, stratified_folds
from plainrisk_lab.study.store import Cell, CellKey, DataSet, Store

__all__ = ["Progress", "Summary", "register", "run"]

_PACKAGES = (
    *("plainrisk", "numpy", "scipy", "scikit-learn", "xgboost", "xgboost-cpu"),
    *("lightgbm", "interpret-core", "optbinning"),
)
_SPAWN = get_context("spawn")
GRACE = 2.0  # seconds for a worker process to clean up


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : fits of this run
    data : the data set of the fit that came last
    """

    done: int
    total: int
    data: str = ""


@dataclass(frozen=True)
class Summary:
    """What a run did: fits made now, fits that were there, and those without a result."""

    fitted: int
    kept: int
    failed: int
    skipped: int
    absent: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Task:
    """One classifier to be fitted without one fold of one data set, and judged on it."""

    data: DataSpec
    classifier: ClassifierSpec
    key: CellKey


def run(
    plan: Plan,
    store: str | Path,
    *,
    jobs: int = 2,
    retry: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Run what is missing of a study and keep it in the store.

    Parameters
    ----------
    plan : the study
    store : path of the SQLite file
    jobs : worker processes, of one thread each; 0 works in this process. In a script, call it under
        ``if __name__ == "__main__":`` as all that starts processes.
    retry : repeat failed fits
    progress : called at the start and after every fit
    """
    start, fitted = time.perf_counter(), 0
    tell = progress or (lambda _: None)
    with Store(store) as kept:
        sets = [register(kept, plan, spec) for spec in plan.data]
        kept.put_plan(plan, sets)
        _fill_metrics(kept, plan)
        final = ("done",) if retry else ("done", "failed")
        every = _tasks(kept, plan)
        missing = [task for task in every if kept.status(task.key) not in final]
        tell(Progress(0, len(missing)))
        # Another runner may have made a fit in the meantime.
        still_missing = (task for task in missing if kept.status(task.key) not in final)
        # Closed at once if something is raised here, so that no worker outlives the run.
        with contextlib.closing(_fit_all(still_missing, jobs)) as cells_as_they_come:
            for task, cell in cells_as_they_come:
                kept.put(_measured(kept, cell, plan))
                fitted += 1
                tell(Progress(fitted, len(missing), task.data.name))
        states = [kept.status(task.key) for task in every]
    return Summary(
        fitted=fitted,
        kept=len(states) - states.count(None) - fitted,
        failed=states.count("failed"),
        skipped=states.count("skipped"),
        absent=tuple(d.name for d in sets if d.fingerprint is None),
        seconds=time.perf_counter() - start,
    )


def register(store: Store, plan: Plan, spec: DataSpec) -> DataSet:
    """Find out which rows a data set is, and keep its outcomes; one that cannot be read is a row with the reason."""
    try:
        data = load_data(spec)
    except PlainriskError as error:
        if spec.file is not None:
            raise  # a user's own file: better said now than after hours
        return DataSet(spec.name, None, str(error).removeprefix("Datasets: "))
    store.put_data(data.fingerprint, spec.name, data.target, len(data.schema.features), data.note)
    store.fold_of(data.fingerprint, plan.cv, plan.seed)  # raises if an outcome has too few rows
    return DataSet(spec.name, data.fingerprint, data.note)


def _tasks(store: Store, plan: Plan) -> list[Task]:
    """Return all fits of a plan, those of the largest data sets first."""
    specs = {spec.name: spec for spec in plan.data}
    return [
        Task(specs[data.name], classifier, CellKey(data.fingerprint, classifier.key, plan.cv, plan.seed, fold))
        for data in sorted(store.sets(plan.name), key=lambda d: -(d.rows or 0) * (d.features or 0))
        if data.fingerprint is not None
        for fold in range(plan.cv)
        for classifier in plan.lineup
    ]


def _fill_metrics(store: Store, plan: Plan) -> None:
    """Compute metrics that a plan asks for and done cells lack, from the risks kept."""
    for where in dict.fromkeys((t.key.fingerprint, t.key.classifier, plan.cv, plan.seed) for t in _tasks(store, plan)):
        done = [c for c in store.cells(*where) if c.status == "done"]
        if any(not set(plan.metrics) <= set(c.figures or {}) for c in done):
            for cell in store.cells(*where, risks=True):
                store.put(_measured(store, cell, plan))


def _measured(store: Store, cell: Cell, plan: Plan) -> Cell:
    """Return a cell with the metrics of its risks; risks that cannot be measured are a failure."""
    if cell.risks is None:
        return cell
    key = cell.key
    truth = store.outcomes(key.fingerprint)[store.fold_of(key.fingerprint, key.cv, key.seed) == key.fold]
    try:
        return replace(cell, figures={m: METRICS[m].of(truth, cell.risks) for m in plan.metrics})
    except Exception as error:
        return replace(cell, status="failed", reason=_message(error), risks=None)


# ---- processes


def _fit_all(tasks: Iterator[Task], jobs: int) -> Generator[tuple[Task, Cell], None, None]:
    """Make the fits and yield each when it is done."""
    if jobs <= 0:
        fitter = Fitter()
        yield from ((task, fitter.cell(task)) for task in tasks)
        return
    workers: set[_Worker] = set()
    try:
        workers.update(_Worker(task) for task in itertools.islice(tasks, jobs))
        while workers:
            ready = wait([worker.connection for worker in workers])
            for worker in [w for w in workers if w.connection in ready]:
                cell = worker.receive()
                if cell is None:
                    continue
                yield worker.task, cell
                following = next(tasks, None)
                if following is not None and worker.alive:
                    worker.give(following)
                    continue
                workers.remove(worker)
                worker.stop()
                if following is not None:
                    workers.add(_Worker(following))
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.stop()


class _Worker:
    """A worker process and the task it has."""

    def __init__(self, task: Task) -> None:
        self.connection, other = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(other,), daemon=True)
        with _signals_held():
            self.process.start()
        other.close()
        self.alive, self.ready = True, False
        self.give(task)

    def give(self, task: Task) -> None:
        """Send a task."""
        self.task = task
        with contextlib.suppress(OSError):  # the next `receive` finds that the process is gone
            self.connection.send(task)

    def receive(self) -> Cell | None:
        """Return the result of the task, a failure if the process died at it, None for a sign of life."""
        try:
            message: Cell | None = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return self._failure(self.process.exitcode or 0)
        self.ready = True
        return message

    def stop(self) -> None:
        """End the process, in peace if it is not inside a library that takes no signals."""
        self.process.terminate()
        self.process.join(GRACE if self.ready else 0.0)  # before its first task there is nothing to clean up
        self.process.kill()
        self.process.join()
        self.connection.close()

    def _failure(self, code: int) -> Cell:
        self.alive = False
        if not self.ready:
            raise DataError(
                f"A worker process ended with code {code} before it began: see what it wrote above. In a script, call "
                'run under if __name__ == "__main__":, or with jobs=0.'
            )
        if code in (128 + signal.SIGTERM, -signal.SIGTERM):
            raise DataError("A worker process was terminated. What was finished is kept; run the study again.")
        cause = " (killed, perhaps out of memory)" if code < 0 else ""
        return Cell(key=self.task.key, status="failed", reason=f"The worker process died with exit code {code}{cause}.")


def _serve(connection: Connection) -> None:
    """Work as a worker process until the runner closes the connection or is gone."""
    # A signal of the terminal reaches the whole group; the runner decides what becomes of its workers, and ends them
    # by SIGTERM. As an exception it lets every `finally` run.
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # For libraries that are loaded from here on, and for those that are loaded already.
    os.environ.update(OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1")
    fitter = Fitter()
    with contextlib.suppress(EOFError, OSError), threadpool_limits(1):
        connection.send(None)
        while True:
            connection.send(fitter.cell(connection.recv()))


def _end(number: int, _: Any) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Start processes with their signals blocked, until `_serve` takes them: their imports are not interrupted."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its own start would unblock the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- one fit


class Fitter:
    """Makes fits one after the other, and keeps the data set at hand."""

    def __init__(self) -> None:
        self._data: StudyData | None = None

    def cell(self, task: Task) -> Cell:
        """Return the result of a task; what goes wrong is a result too."""
        facts: dict[str, Any] = {"key": task.key, "versions": _VERSIONS}
        _reset_peak()
        try:
            with _quiet() as said:
                results = self._fit(task)
        except (MissingExtraError, ModuleNotFoundError) as error:
            return Cell(**facts, status="skipped", reason=str(error), finished=_now())
        except Exception as error:
            return Cell(**facts, status="failed", reason=_message(error), finished=_now())
        note = next((str(w.message) for w in said if issubclass(w.category, StoppedEarly)), "")
        return Cell(**facts, status="done", note=note, peak_mb=_peak_mb(), finished=_now(), **results)

    def _fit(self, task: Task) -> dict[str, Any]:
        data = self._rows(task)
        held_out = stratified_folds(data.target, task.key.cv, task.key.seed) == task.key.fold
        start = time.perf_counter()
        model = build(task.classifier, data.schema)
        split = (np.flatnonzero(~held_out), np.flatnonzero(held_out))
        (fold,) = cross_validate(model, data.frame, data.target, cv=[split]).folds
        elapsed = time.perf_counter() - start
        return {"risks": fold.risk, "fit_seconds": fold.seconds, "score_seconds": elapsed - fold.seconds}

    def _rows(self, task: Task) -> StudyData:
        if self._data is None or self._data.fingerprint != task.key.fingerprint:
            self._data = None  # let go of the last one first
            self._data = load_data(task.data)
        if self._data.fingerprint != task.key.fingerprint:
            self._data = None
            raise DataError(f"{task.data.name} changed while the study ran. Run it again.")
        return self._data


@contextlib.contextmanager
def _quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Catch warnings: a study fits thousands of models, and what matters is in the cell's note."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PlainriskWarning)
        yield said


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:2000]


def _installed() -> str:
    versions = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return msgspec.json.encode(versions).decode()


_VERSIONS = _installed()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _reset_peak() -> None:
    """Ask Linux to reset the peak memory count; elsewhere there is none to report."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_mb() -> float | None:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    return None
