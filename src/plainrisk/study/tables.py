"""From cells to tables: means over folds, ranks, the published figures and the difference."""

from __future__ import annotations

import csv
import functools
import io
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from plainrisk.errors import DataError, did_you_mean
from plainrisk.evaluate.compare import Results
from plainrisk.files import write_text
from plainrisk.study.measure import METRICS
from plainrisk.study.store import Cell, DataSet, Store

__all__ = [
    "FoldGap",
    "Gap",
    "StudyTable",
    "Timing",
    "fold_gaps",
    "paper_table",
    "study_cells",
    "study_table",
    "timings",
    "write_csv",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gap:
    """A place in a table without a figure, and why."""

    dataset: str
    classifier: str
    status: str
    reason: str


@dataclass(frozen=True, eq=False)
class StudyTable:
    """One metric of a study: data sets x classifiers, averaged over the folds.

    Attributes
    ----------
    metric : its name in `METRICS`
    datasets, classifiers : names of the N rows and k columns
    mean, sd : (N, k) mean and standard deviation over the folds; NaN where a fold is missing
    gaps : why there is no figure
    """

    metric: str
    datasets: tuple[str, ...]
    classifiers: tuple[str, ...]
    mean: Floats
    sd: Floats
    gaps: tuple[Gap, ...] = ()

    @property
    def higher_is_better(self) -> bool:
        """Which way ranks run."""
        return METRICS[self.metric].higher_is_better

    def value(self, dataset: str, classifier: str) -> float:
        """Return one mean; NaN if the table does not have it."""
        if dataset not in self.datasets or classifier not in self.classifiers:
            return math.nan
        return float(self.mean[self.datasets.index(dataset), self.classifiers.index(classifier)])

    def select(self, datasets: Sequence[str] | None = None, classifiers: Sequence[str] | None = None) -> StudyTable:
        """Return the part of some data sets and classifiers, in the order given, those it does not have left out."""
        rows = [d for d in (self.datasets if datasets is None else datasets) if d in self.datasets]
        columns = [c for c in (self.classifiers if classifiers is None else classifiers) if c in self.classifiers]
        place = np.ix_([self.datasets.index(d) for d in rows], [self.classifiers.index(c) for c in columns])
        gaps = tuple(g for g in self.gaps if g.dataset in rows and g.classifier in columns)
        return StudyTable(self.metric, tuple(rows), tuple(columns), self.mean[place], self.sd[place], gaps)

    def complete(self) -> StudyTable:
        """Return the part without gaps: no classifier that has no figure, then no data set that lacks one."""
        classifiers = [c for j, c in enumerate(self.classifiers) if not np.isnan(self.mean[:, j]).all()]
        part = self.select(classifiers=classifiers)
        return part.select(datasets=[d for i, d in enumerate(part.datasets) if not np.isnan(part.mean[i]).any()])

    def results(self) -> Results:
        """Return the complete part as input for `plainrisk.evaluate.compare`."""
        part = self.complete()
        return Results(part.mean, part.classifiers, part.datasets)

    def ranks(self) -> Floats:
        """Return the (N, k) ranks inside each data set, 1 the best; NaN where there is no figure."""
        out = np.full(self.mean.shape, np.nan)
        for row, values in enumerate(self.mean):
            known = ~np.isnan(values)
            out[row, known] = rankdata(-values[known] if self.higher_is_better else values[known])
        return out


def study_table(store: Store, study: str, metric: str) -> StudyTable:
    """Return one metric of a study.

    Parameters
    ----------
    store : Store
    study : the name it was run under
    metric : one of `METRICS`
    """
    if metric not in METRICS:
        raise DataError(f"There is no metric {metric!r}.{did_you_mean(metric, METRICS)}")
    plan = store.plan(study)
    sets = [d for d in store.sets(study) if d.fingerprint is not None]
    mean, sd = (np.full((len(sets), len(plan.lineup)), np.nan) for _ in range(2))
    gaps = []
    for (i, data), (j, name), cells in _places(store, study, sets):
        values = [c.figures[metric] for c in cells if c.status == "done" and c.figures and metric in c.figures]
        if len(values) == plan.folds:
            mean[i, j], sd[i, j] = statistics.fmean(values), statistics.stdev(values)
        else:
            gaps.append(_gap(data.name, name, cells, plan.folds))
    names = tuple(d.name for d in sets), tuple(c.name for c in plan.lineup)
    return StudyTable(metric, *names, mean, sd, tuple(gaps))


def paper_table(metric: str) -> StudyTable:
    """Return a published table: auc, ece, mce or certainty of 24 data sets and 12 classifiers.

    >>> paper_table("auc").value("heloc", "LinARM1")
    0.7963
    """
    if metric not in _paper():
        raise DataError(f"The paper has no table of {metric!r}.{did_you_mean(metric, _paper())}")
    return _paper()[metric]


@functools.cache
def _paper() -> dict[str, StudyTable]:
    text = files("plainrisk.study").joinpath("paper_tables.csv").read_text(encoding="utf-8")
    header, *rows = csv.reader(io.StringIO(text))
    out = {}
    for metric in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == metric]
        values = np.array([row[2:] for row in mine], dtype=np.float64)
        datasets = tuple(row[1] for row in mine)
        out[metric] = StudyTable(metric, datasets, tuple(header[2:]), values, np.full_like(values, np.nan))
    return out


@dataclass(frozen=True)
class Timing:
    """Where the time of a study went, by data set or by classifier."""

    name: str
    done: int
    failed: int
    skipped: int
    missing: int
    seconds: float
    peak_mb: float | None


def timings(store: Store, study: str, by: str) -> list[Timing]:
    """Return fits and seconds by "dataset" or by "classifier", the slowest first."""
    plan = store.plan(study)
    sets = [d for d in store.sets(study) if d.fingerprint is not None]
    groups: dict[str, list[Cell]] = {}
    for (_, data), (_, name), cells in _places(store, study, sets):
        groups.setdefault(data.name if by == "dataset" else name, []).extend(cells)
    each = plan.folds * (len(plan.lineup) if by == "dataset" else len(sets))
    rows = []
    for name, cells in groups.items():
        states = [c.status for c in cells]
        seconds = math.fsum(c.seconds for c in cells)
        peak = max((c.peak_mb for c in cells if c.peak_mb is not None), default=None)
        counts = (states.count("done"), states.count("failed"), states.count("skipped"))
        rows.append(Timing(name, *counts, each - len(cells), seconds, peak))
    return sorted(rows, key=lambda t: -t.seconds)


@dataclass(frozen=True)
class FoldGap:
    """Folds of one classifier on one data set that have no result for the same reason."""

    dataset: str
    classifier: str
    status: str
    reason: str
    folds: tuple[int, ...]


def fold_gaps(store: Store, study: str) -> list[FoldGap]:
    """Return every fold of a study that failed, was skipped or was not run yet."""
    plan = store.plan(study)
    sets = [d for d in store.sets(study) if d.fingerprint is not None]
    out = []
    for (_, data), (_, name), cells in _places(store, study, sets):
        found: dict[int, tuple[str, str]] = {c.key.fold: (c.status, c.reason) for c in cells if c.status != "done"}
        absent = set(range(plan.folds)) - {c.key.fold for c in cells}
        found |= dict.fromkeys(absent, ("missing", "It was not run yet."))
        for what in dict.fromkeys(found[fold] for fold in sorted(found)):
            folds = tuple(fold for fold in sorted(found) if found[fold] == what)
            out.append(FoldGap(data.name, name, *what, folds))
    return out


def write_csv(store: Store, studies: Sequence[str], path: str | Path) -> None:
    """Write studies as CSV: a row per study, data set and classifier, with the mean and the spread of every metric."""
    metrics = list(dict.fromkeys(m for study in studies for m in store.plan(study).metrics))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ["study", "dataset", "classifier", "rows", "positive_rate", "folds_done", "status", "reason"]
    writer.writerow([*head, "fit_seconds", "score_seconds", *(f"{m}_{k}" for m in metrics for k in ("mean", "sd"))])
    for study in studies:
        plan = store.plan(study)
        sets = [d for d in store.sets(study) if d.fingerprint is not None]
        for (_, data), (_, name), cells in _places(store, study, sets):
            writer.writerow(_csv_row(study, data, name, cells, plan.folds, metrics))
    write_text(path, out.getvalue())


def _csv_row(
    study: str, data: DataSet, classifier: str, cells: list[Cell], folds: int, metrics: Sequence[str]
) -> list[str | int]:
    done = [c for c in cells if c.status == "done"]
    gap = _gap(data.name, classifier, cells, folds) if len(done) < folds else None
    rate = f"{(data.positives or 0) / (data.rows or 1):.6f}"
    row: list[str | int] = [study, data.name, classifier, data.rows or 0, rate, len(done)]
    row += ["done", ""] if gap is None else [gap.status, gap.reason]
    row += [_written([c.fit_seconds for c in done])[0], _written([c.score_seconds for c in done])[0]]
    for metric in metrics:
        row += _written([(c.figures or {}).get(metric) for c in done])
    return row


def _written(values: Sequence[float | None]) -> tuple[str, str]:
    known = [v for v in values if v is not None]
    if not known or len(known) < len(values):
        return "", ""
    return f"{statistics.fmean(known):.6f}", f"{statistics.stdev(known):.6f}" if len(known) > 1 else ""


def study_cells(store: Store, study: str) -> Iterator[tuple[str, str, list[Cell]]]:
    """Yield the cells of every data set and classifier of a study that is here."""
    sets = [d for d in store.sets(study) if d.fingerprint is not None]
    for (_, data), (_, name), cells in _places(store, study, sets):
        yield data.name, name, cells


def _places(
    store: Store, study: str, sets: Sequence[DataSet]
) -> Iterator[tuple[tuple[int, DataSet], tuple[int, str], list[Cell]]]:
    plan = store.plan(study)
    for i, data in enumerate(sets):
        assert data.fingerprint is not None
        for j, spec in enumerate(plan.lineup):
            key = spec.key(plan.conventions)
            yield (i, data), (j, spec.name), store.cells(data.fingerprint, key, plan.folds, plan.seed)


def _gap(dataset: str, classifier: str, cells: list[Cell], folds: int) -> Gap:
    for cell in cells:
        if cell.status != "done":
            return Gap(dataset, classifier, cell.status, cell.reason)
    return Gap(dataset, classifier, "missing", f"{len(cells)} of {folds} folds are there.")
