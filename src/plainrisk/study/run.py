"""Run a study: find what is missing in the store, fit it in a few processes, keep every cell as it comes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from plainrisk.errors import PlainriskError
from plainrisk.study.bench import Bench
from plainrisk.study.measure import METRICS
from plainrisk.study.plan import DataSpec, Plan
from plainrisk.study.pool import in_processes
from plainrisk.study.sources import known_fingerprint, load_data, reason_absent
from plainrisk.study.store import Cell, DataSet, Store
from plainrisk.study.todo import Progress, Todo

__all__ = ["Progress", "Summary", "fill_metrics", "run"]


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
        todo = Todo(plan, kept, retry)
        fill_metrics(kept, plan)
        tell(Progress(0, todo.total))
        # Closed at once if something is raised here, so that no worker outlives the run.
        with contextlib.closing(_fit_all(todo, jobs)) as cells_as_they_come:
            for cell in cells_as_they_come:
                kept.put(cell)
                tell(todo.finished(cell))
        cells = [s for d in sets if d.fingerprint for s in todo.states(d.fingerprint)]
    return Summary(
        fitted=todo.done,
        kept=max(0, cells.count("done") + cells.count("failed") - todo.done),
        failed=cells.count("failed"),
        skipped=cells.count("skipped"),
        absent=tuple(d.name for d in sets if d.fingerprint is None),
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
            done = [c for c in store.cells(*place) if c.status == "done"]
            lacking = [c for c in done if not set(plan.metrics) <= set(c.figures or {})]
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
    try:
        return _present(store, plan, spec)
    except PlainriskError as error:
        if spec.file is not None:
            raise  # a user's own file: better said now than after hours
        return DataSet(spec.name, None, "unreadable", str(error), None, None, None)


def _present(store: Store, plan: Plan, spec: DataSpec) -> DataSet:
    fingerprint = known_fingerprint(spec)
    if fingerprint is None or not store.has_data(fingerprint):
        data = load_data(spec)
        fingerprint = data.fingerprint
        store.put_data(fingerprint, spec.name, data.target, len(data.schema.features), data.note)
    store.fold_of(fingerprint, plan.folds, plan.seed)
    return DataSet(spec.name, fingerprint, "present", store.data_note(fingerprint), None, None, None)


def _fit_all(todo: Todo, jobs: int) -> Generator[Cell, None, None]:
    todo.jobs = jobs
    if jobs <= 0:
        bench = Bench()
        while (job := todo.next()) is not None:
            yield from bench.cells(job)
    else:
        yield from in_processes(todo, jobs)
