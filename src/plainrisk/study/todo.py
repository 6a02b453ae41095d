"""What is left to do of a study, and how long it may take."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from plainrisk.study.bench import Job
from plainrisk.study.build import missing_package
from plainrisk.study.plan import ClassifierSpec, Plan
from plainrisk.study.store import Cell, CellKey, Store

__all__ = ["Progress", "Todo"]


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


@dataclass
class Todo:
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
        self._seconds.setdefault(place, []).append(cell.seconds)
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
