"""Run a study: find what is missing in the store, fit it in a few processes, keep every cell as it comes."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from plainrisk.errors import DataError
from plainrisk.study.bench import Bench, Job
from plainrisk.study.build import missing_package
from plainrisk.study.measure import METRICS
from plainrisk.study.plan import ClassifierSpec, Plan
from plainrisk.study.sources import known_fingerprint, load_data, reason_absent
from plainrisk.study.store import Cell, CellKey, DataSet, Store
from plainrisk.study.worker import READY, receive, send

__all__ = ["Progress", "Summary", "fill_metrics", "run"]

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : cells of this run
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
    """What a run did: cells fitted now, cells that were there, and those without a result."""

    fitted: int
    kept: int
    failed: int
    skipped: int
    absent: tuple[str, ...]
    seconds: float


Report = Callable[[Progress], None]


def run(
    plan: Plan, store: str | Path, *, jobs: int = 2, retry: bool = False, progress: Report | None = None
) -> Summary:
    """Run what is missing of a study and keep it in the store.

    Parameters
    ----------
    plan : Plan
    store : path of the SQLite file
    jobs : int, default=2
        Worker processes, of one thread each; 0 works in this process.
    retry : bool, default=False
        Fit cells that failed once more.
    progress : callable, optional
        Told at the start and after every cell.
    """
    start = time.perf_counter()
    tell = progress or (lambda _: None)
    with Store(store) as kept:
        sets = [_register(kept, plan, place) for place in range(len(plan.data))]
        kept.put_plan(plan, sets)
        todo = _Todo(plan, kept, retry)
        fill_metrics(kept, plan)
        tell(Progress(0, todo.total))
        for cell in _fit_all(todo, jobs):
            kept.put(cell)
            tell(todo.finished(cell))
        cells = [s for d in sets if d.fingerprint for s in todo.states(d.fingerprint)]
    return Summary(
        fitted=todo.done,
        kept=len(cells) - todo.done,
        failed=cells.count("failed"),
        skipped=cells.count("skipped"),
        absent=tuple(d.name for d in sets if d.status == "absent"),
        seconds=time.perf_counter() - start,
    )


def fill_metrics(store: Store, plan: Plan) -> int:
    """Compute metrics that a plan asks for and done cells lack, from the risks kept; return how many cells."""
    filled = 0
    for data in store.sets(plan.name):
        if data.fingerprint is None:
            continue
        fold_of = store.fold_of(data.fingerprint, plan.folds, plan.seed)
        outcomes = store.outcomes(data.fingerprint)
        for spec in plan.lineup:
            place = (data.fingerprint, spec.key(plan.conventions), plan.folds, plan.seed)
            lacking = [c for c in store.cells(*place) if c.status == "done" and set(plan.metrics) - set(c.figures or {})]
            risks = {c.key.fold: c.risks for c in store.cells(*place, risks=True)} if lacking else {}
            for cell in lacking:
                risk, truth = risks[cell.key.fold], outcomes[fold_of == cell.key.fold]
                assert risk is not None
                new = {m: METRICS[m].of(truth, risk) for m in plan.metrics if m not in (cell.figures or {})}
                store.put_figures(cell.key, new)
                filled += 1
    return filled


def _register(store: Store, plan: Plan, place: int) -> DataSet:
    """Find out which rows a data set is, and keep its outcomes; one that is not here is a row of its own."""
    spec = plan.data[place]
    absent = reason_absent(spec)
    if absent is not None:
        return DataSet(spec.name, None, "absent", absent, None, None, None)
    fingerprint = known_fingerprint(spec)
    if fingerprint is None or not store.has_data(fingerprint):
        data = load_data(spec)
        fingerprint = data.fingerprint
        store.put_data(fingerprint, spec.name, data.target, len(data.schema.features), data.note)
    store.fold_of(fingerprint, plan.folds, plan.seed)
    return DataSet(spec.name, fingerprint, "present", store.data_note(fingerprint), None, None, None)


@dataclass
class _Todo:
    """What is left to do, the largest data sets first."""

    plan: Plan
    store: Store
    retry: bool
    total: int = 0
    done: int = 0
    jobs: int = 1
    _queue: deque[Job] = field(default_factory=deque)
    _names: dict[str, str] = field(default_factory=dict)
    _seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _left: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ready = tuple(spec for spec in self.plan.lineup if not self._skip(spec))
        sets = [d for d in self.store.sets(self.plan.name) if d.fingerprint is not None]
        for data in sorted(sets, key=lambda d: -(d.rows or 0) * (d.features or 0)):
            assert data.fingerprint is not None
            self._names[data.fingerprint] = data.name
            spec = next(d for d in self.plan.data if d.name == data.name)
            fold_of = self.store.fold_of(data.fingerprint, self.plan.folds, self.plan.seed)
            for fold in range(self.plan.folds):
                job = Job(
                    spec, data.fingerprint, fold_of, self.plan.folds, self.plan.seed, fold, self.plan.conventions,
                    ready, self.plan.metrics,
                )  # fmt: skip
                self._add(self._missing(job))

    def states(self, fingerprint: str) -> list[str]:
        """Return the statuses of the plan's cells on some rows."""
        found = self.store.statuses(fingerprint, self.plan.folds, self.plan.seed)
        keys = {spec.key(self.plan.conventions) for spec in self.plan.lineup}
        return [status for (classifier, _), status in found.items() if classifier in keys]

    def next(self) -> Job | None:
        """Return a job, less what another runner has done in the meantime."""
        while self._queue:
            job = self._queue.popleft()
            left = self._missing(job)
            gone = len(job.lineup) - len(left.lineup)
            if gone:
                self.total -= gone
                kept = {spec.name for spec in left.lineup}
                for spec in job.lineup:
                    if spec.name not in kept:
                        self._left[job.fingerprint, job.key(spec).classifier] -= 1
            if left.lineup:
                return left
        return None

    def again(self, job: Job) -> None:
        """Put back what a worker left undone."""
        if job.lineup:
            self._queue.appendleft(job)

    def finished(self, cell: Cell) -> Progress:
        """Count a cell."""
        self.done += 1
        place = (cell.key.fingerprint, cell.key.classifier)
        self._left[place] -= 1
        self._seconds.setdefault(place, []).append((cell.fit_seconds or 0.0) + (cell.score_seconds or 0.0))
        return Progress(self.done, self.total, self._seconds_left(), self._names[cell.key.fingerprint], cell)

    def _seconds_left(self) -> float:
        """Estimate the time left: a cell takes as long as other folds of its kind, else as the average cell."""
        means = {place: sum(s) / len(s) for place, s in self._seconds.items()}
        average = sum(means.values()) / len(means)
        return sum(n * means.get(place, average) for place, n in self._left.items()) / max(1, self.jobs)

    def _add(self, job: Job) -> None:
        if job.lineup:
            self._queue.append(job)
        self.total += len(job.lineup)
        for spec in job.lineup:
            place = (job.fingerprint, job.key(spec).classifier)
            self._left[place] = self._left.get(place, 0) + 1

    def _missing(self, job: Job) -> Job:
        """Return the job with the classifiers whose cell has no result yet."""
        found = self.store.statuses(job.fingerprint, job.folds, job.seed)
        final = ("done",) if self.retry else ("done", "failed")
        states = {spec.name: found.get((job.key(spec).classifier, job.fold)) for spec in job.lineup}
        return replace(job, lineup=tuple(spec for spec in job.lineup if states[spec.name] not in final))

    def _skip(self, spec: ClassifierSpec) -> bool:
        """Whether a package is missing; then every fold gets a row that says so."""
        package = missing_package(spec)
        if package is None:
            return False
        for data in self.store.sets(self.plan.name):
            for fold in range(self.plan.folds):
                if data.fingerprint is not None:
                    classifier = spec.key(self.plan.conventions)
                    key = CellKey(data.fingerprint, classifier, self.plan.folds, self.plan.seed, fold)
                    self.store.put(Cell(key=key, status="skipped", reason=f"{package} is not installed."))
        return True


def _fit_all(todo: _Todo, jobs: int) -> Iterator[Cell]:
    todo.jobs = jobs
    if jobs <= 0:
        bench = Bench()
        while (job := todo.next()) is not None:
            yield from bench.cells(job)
    else:
        yield from _in_processes(todo, jobs)


@dataclass(eq=False)
class _Worker:
    """A worker process and the job it has."""

    process: subprocess.Popen[bytes]
    job: Job
    ready: bool = False

    @classmethod
    def start(cls, inbox: queue.Queue[tuple[_Worker, Any]], job: Job) -> _Worker:
        """Start a process on a job, and a thread that listens to it."""
        command = [sys.executable, "-c", "from plainrisk.study.worker import main; main()"]
        env = {**os.environ, **_ONE_THREAD}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        worker = cls(process, job)
        threading.Thread(target=worker._listen, args=(inbox,), daemon=True).start()
        worker._send(sys.path)
        worker.give(job)
        return worker

    def give(self, job: Job) -> None:
        """Send a job."""
        self.job = job
        self._send(job)

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()
        with contextlib.suppress(OSError):  # what a dead process was not sent cannot be flushed
            assert self.process.stdin is not None
            self.process.stdin.close()

    def _send(self, message: object) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the listener tells that the process is gone
            send(self.process.stdin, message)

    def _listen(self, inbox: queue.Queue[tuple[_Worker, Any]]) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as answers:
            try:
                while True:
                    inbox.put((self, receive(answers)))
            except EOFError as end:
                inbox.put((self, end))


def _in_processes(todo: _Todo, jobs: int) -> Iterator[Cell]:
    """Keep workers busy and yield cells as they come."""
    inbox: queue.Queue[tuple[_Worker, Any]] = queue.Queue()
    workers: set[_Worker] = set()

    def hire() -> None:
        job = todo.next()
        if job is not None:
            workers.add(_Worker.start(inbox, job))

    try:
        for _ in range(jobs):
            hire()
        while workers:
            worker, message = inbox.get()
            if message == READY:
                worker.ready = True
            elif isinstance(message, Cell):
                worker.job = replace(worker.job, lineup=worker.job.lineup[1:])
                yield message
            elif message is None:
                job = todo.next()
                if job is None:
                    workers.remove(worker)
                    worker.stop()
                else:
                    worker.give(job)
            elif worker in workers:
                workers.remove(worker)
                yield from _bury(worker, todo)
                hire()
    finally:
        for worker in workers:
            worker.stop()


def _bury(worker: _Worker, todo: _Todo) -> Iterator[Cell]:
    """Yield the cell on which a worker died as a failure, and put the rest of its job back."""
    code = worker.process.wait()
    worker.stop()
    if not worker.ready:
        raise DataError(f"A worker process ended with code {code} before it began: see what it wrote above.")
    cause = " (killed, perhaps out of memory)" if code < 0 else ""
    job = worker.job
    if job.lineup:
        reason = f"The worker process died with exit code {code}{cause}."
        yield Cell(key=job.key(job.lineup[0]), status="failed", reason=reason)
        todo.again(replace(job, lineup=job.lineup[1:]))
