"""Run a study: find the fits that the store lacks, make them in a few processes, keep every one as it comes.

A runner may be killed at any moment and started again; two runners may work on one store. A worker process that dies
costs the fit it was at. An interrupt ends the workers, and what was finished is kept.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from sklearn.base import clone

from plainrisk._types import Floats, Index, Outcome
from plainrisk.errors import DataError, MissingExtraError, PlainriskError, PlainriskWarning, StoppedEarly
from plainrisk.study.challengers import build
from plainrisk.study.plan import METRICS, ClassifierSpec, DataSpec, Plan
from plainrisk.study.sources import StudyData, load_data
from plainrisk.study.store import Cell, CellKey, DataSet, Store

__all__ = ["Progress", "Summary", "run"]

_PACKAGES = (
    *("plainrisk", "numpy", "scipy", "scikit-learn", "xgboost", "xgboost-cpu"),
    *("lightgbm", "interpret-core", "optbinning"),
)
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "POLARS_MAX_THREADS"),
)
_READY = "ready"
_SPAWN = get_context("spawn")


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : fits of this run
    seconds_left : an estimate, None before there is anything to go by
    data, cell : the data set and the cell that came last; None at the start
    """

    done: int
    total: int
    seconds_left: float | None = None
    data: str = ""
    cell: Cell | None = None


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
    fold_of: Outcome


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
    plan : Plan
    store : path of the SQLite file
    jobs : int, default=2
        Worker processes, of one thread each; 0 works in this process. In a script, call it under
        ``if __name__ == "__main__":`` as all that starts processes.
    retry : bool, default=False
        Make fits that failed once more.
    progress : callable, optional
        Told at the start and after every fit.
    """
    start = time.perf_counter()
    tell = progress or (lambda _: None)
    with Store(store) as kept:
        sets = [_register(kept, plan, spec) for spec in plan.data]
        kept.put_plan(plan, sets)
        _fill_metrics(kept, plan)
        queue = _Queue(plan, kept, retry)
        tell(Progress(0, queue.total))
        # Closed at once if something is raised here, so that no worker outlives the run.
        with contextlib.closing(_fit_all(queue, jobs)) as cells_as_they_come:
            for task, cell in cells_as_they_come:
                kept.put(_measured(cell, kept.outcomes(task.key.fingerprint)[task.fold_of == task.key.fold], plan))
                queue.done += 1
                left = (time.perf_counter() - start) / queue.done * (queue.total - queue.done)
                tell(Progress(queue.done, queue.total, left, task.data.name, cell))
        states = queue.states()
    return Summary(
        fitted=queue.done,
        kept=max(0, states.count("done") + states.count("failed") + states.count("skipped") - queue.done),
        failed=states.count("failed"),
        skipped=states.count("skipped"),
        absent=tuple(d.name for d in sets if d.fingerprint is None),
        seconds=time.perf_counter() - start,
    )


def _register(store: Store, plan: Plan, spec: DataSpec) -> DataSet:
    """Find out which rows a data set is, and keep its outcomes; one that cannot be read is a row that says why."""
    try:
        data = load_data(spec)
    except PlainriskError as error:
        if spec.file is not None:
            raise  # a user's own file: better said now than after hours
        return DataSet(spec.name, None, str(error).removeprefix("Datasets: "))
    store.put_data(data.fingerprint, spec.name, data.target, len(data.schema.features), data.note)
    store.fold_of(data.fingerprint, plan.cv, plan.seed)
    return DataSet(spec.name, data.fingerprint, data.note)


def _fill_metrics(store: Store, plan: Plan) -> None:
    """Compute metrics that a plan asks for and done cells lack, from the risks kept."""
    for data in store.sets(plan.name):
        if data.fingerprint is None:
            continue
        fold_of = store.fold_of(data.fingerprint, plan.cv, plan.seed)
        outcomes = store.outcomes(data.fingerprint)
        for spec in plan.lineup:
            where = (data.fingerprint, spec.key, plan.cv, plan.seed)
            done = [c for c in store.cells(*where) if c.status == "done"]
            lacking = {c.key.fold for c in done if not set(plan.metrics) <= set(c.figures or {})}
            for cell in store.cells(*where, risks=True) if lacking else ():
                if cell.key.fold in lacking:
                    found = _measured(cell, outcomes[fold_of == cell.key.fold], plan)
                    store.put_figures(cell.key, found.figures or {})


def _measured(cell: Cell, truth: Outcome, plan: Plan) -> Cell:
    """Return a cell with the metrics of its risks; risks that cannot be measured are a failure."""
    if cell.risks is None:
        return cell
    try:
        return replace(cell, figures={m: METRICS[m].of(truth, cell.risks) for m in plan.metrics})
    except Exception as error:
        return replace(cell, status="failed", reason=_told(error), risks=None)


class _Queue:
    """The fits that are missing, those of the largest data sets first."""

    def __init__(self, plan: Plan, store: Store, retry: bool) -> None:
        self.store = store
        self.final = ("done",) if retry else ("done", "failed")
        sets = {d.name: d for d in store.sets(plan.name)}
        self.every: list[Task] = []
        for spec in sorted(plan.data, key=lambda d: -(sets[d.name].rows or 0) * (sets[d.name].features or 0)):
            fingerprint = sets[spec.name].fingerprint
            if fingerprint is None:
                continue
            fold_of = store.fold_of(fingerprint, plan.cv, plan.seed)
            for fold in range(plan.cv):
                for one in plan.lineup:
                    key = CellKey(fingerprint, one.key, plan.cv, plan.seed, fold)
                    self.every.append(Task(spec, one, key, fold_of))
        self.missing = [task for task in self.every if not self._is_final(task)]
        self.total, self.done = len(self.missing), 0

    def __iter__(self) -> Iterator[Task]:
        """Yield the missing fits, less what another runner has made in the meantime."""
        for task in self.missing:
            if self._is_final(task):
                self.total -= 1
            else:
                yield task

    def states(self) -> list[str | None]:
        """Return the statuses of all fits of the plan, None for one that is missing."""
        return [self.store.status(task.key) for task in self.every]

    def _is_final(self, task: Task) -> bool:
        return self.store.status(task.key) in self.final


# ---- processes


def _fit_all(queue: _Queue, jobs: int) -> Generator[tuple[Task, Cell], None, None]:
    """Make the fits and yield each as it comes."""
    tasks = iter(queue)
    if jobs <= 0:
        fitter = Fitter()
        yield from ((task, fitter.cell(task)) for task in tasks)
        return
    workers: set[_Worker] = set()
    try:
        for _, task in zip(range(jobs), tasks, strict=False):
            workers.add(_Worker(task))
        while workers:
            ready = wait([worker.connection for worker in workers])
            for worker in [w for w in workers if w.connection in ready]:
                cell = worker.receive()
                if cell is None:
                    continue
                yield worker.task, cell
                following = next(tasks, None)
                if following is None or not worker.alive:
                    workers.remove(worker)
                    worker.stop()
                    if following is not None:
                        workers.add(_Worker(following))
                else:
                    worker.give(following)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A worker process and the task it has."""

    def __init__(self, task: Task) -> None:
        self.connection, other = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(other,), daemon=True)
        with _one_thread():
            self.process.start()
        other.close()
        self.alive, self.ready = True, False
        self.give(task)

    def give(self, task: Task) -> None:
        """Send a task."""
        self.task = task
        with contextlib.suppress(OSError):  # the next `receive` tells that the process is gone
            self.connection.send(task)

    def receive(self) -> Cell | None:
        """Return the result of the task, a failure if the process died at it, None while it only started."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return self._failure(self.process.exitcode or 0)
        if message == _READY:
            self.ready = True
            return None
        assert isinstance(message, Cell)
        return message

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.join()
        self.connection.close()

    def _failure(self, code: int) -> Cell:
        self.alive = False
        if not self.ready:
            raise DataError(
                f"A worker process ended with code {code} before it began: see what it wrote above. In a script, call "
                'run under if __name__ == "__main__":, or with jobs=0.'
            )
        cause = " (killed, perhaps out of memory)" if code < 0 else ""
        return Cell(key=self.task.key, status="failed", reason=f"The worker process died with exit code {code}{cause}.")


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that are started here use one thread of linear algebra each."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(connection: Connection) -> None:
    """Work as a worker process until the runner closes the connection or is gone."""
    # An interrupt at the terminal reaches the whole group; the runner decides what becomes of its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fitter = Fitter()
    with contextlib.suppress(EOFError, OSError):
        connection.send(_READY)
        while True:
            connection.send(fitter.cell(connection.recv()))


# ---- one fit


@dataclass(frozen=True)
class _Fold:
    test: Index
    risk: Floats
    model: Any
    seconds: float


def _cross_validate(model: Any, X: Any, y: Any, cv: Any) -> tuple[_Fold, ...]:
    import narwhals as nw

    rows = nw.from_native(X, eager_only=True)
    out = []
    for train, test in cv:
        start = time.perf_counter()
        fitted = clone(model).fit(rows[train].to_native(), y[train])
        seconds = time.perf_counter() - start
        risk = np.asarray(fitted.predict_proba(rows[test].to_native()), dtype=np.float64)[:, 1]
        out.append(_Fold(test, risk, fitted, seconds))
    return tuple(out)


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
                found = self._fit(task)
        except (MissingExtraError, ModuleNotFoundError) as error:
            return Cell(**facts, status="skipped", reason=str(error), finished=_now())
        except Exception as error:
            return Cell(**facts, status="failed", reason=_told(error), finished=_now())
        note = next((str(w.message) for w in said if issubclass(w.category, StoppedEarly)), "")
        return Cell(**facts, status="done", note=note, peak_mb=_peak_mb(), finished=_now(), **found)

    def _fit(self, task: Task) -> dict[str, Any]:
        data = self._rows(task)
        held_out = task.fold_of == task.key.fold
        start = time.perf_counter()
        model = build(task.classifier, data.schema)
        split = (np.flatnonzero(~held_out), np.flatnonzero(held_out))
        (fold,) = _cross_validate(model, data.frame, data.target, cv=[split])
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


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:2000]


def _installed() -> str:
    found = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return msgspec.json.encode(found).decode()


_VERSIONS = _installed()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _reset_peak() -> None:
    """Ask Linux to start counting the peak memory anew; elsewhere there is none to report."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_mb() -> float | None:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    return None
