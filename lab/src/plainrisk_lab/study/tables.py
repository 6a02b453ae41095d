"""From cells to tables: means over folds, ranks, rank tests; as data, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from plainrisk._types import Floats
from plainrisk.errors import DataError, did_you_mean
from plainrisk.files import write_text
from plainrisk_lab.compare import Results, friedman, hodges_lehmann_table
from plainrisk_lab.study.plan import METRICS
from plainrisk_lab.study.store import Cell, Store

__all__ = [
    "Gap",
    "StudyTable",
    "Timing",
    "folds_of",
    "gaps",
    "report",
    "study_cells",
    "study_table",
    "timings",
    "write_folds",
]


@dataclass(frozen=True, eq=False)
class StudyTable:
    """One metric of a study: data sets x classifiers, averaged over the folds.

    Attributes
    ----------
    metric : its name in `METRICS`
    datasets, classifiers : names of the N rows and k columns
    mean, sd : (N, k) mean and standard deviation over the folds; NaN where a fold is missing
    """

    metric: str
    datasets: tuple[str, ...]
    classifiers: tuple[str, ...]
    mean: Floats
    sd: Floats

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
        index = np.ix_([self.datasets.index(d) for d in rows], [self.classifiers.index(c) for c in columns])
        return StudyTable(self.metric, tuple(rows), tuple(columns), self.mean[index], self.sd[index])

    def complete(self) -> StudyTable:
        """Return the part without gaps: no classifier that has no figure, then no data set that lacks one."""
        classifiers = [c for j, c in enumerate(self.classifiers) if not np.isnan(self.mean[:, j]).all()]
        part = self.select(classifiers=classifiers)
        return part.select(datasets=[d for i, d in enumerate(part.datasets) if not np.isnan(part.mean[i]).any()])

    def results(self) -> Results:
        """Return the complete part as input for `plainrisk_lab.compare`."""
        part = self.complete()
        return Results(part.mean, part.classifiers, part.datasets)

    def ranks(self) -> Floats:
        """Return the (N, k) ranks inside each data set, 1 the best; NaN where there is no figure."""
        out = np.full(self.mean.shape, np.nan)
        for row, values in enumerate(self.mean):
            finite = ~np.isnan(values)
            out[row, finite] = rankdata(-values[finite] if self.higher_is_better else values[finite])
        return out


def study_cells(store: Store, study: str) -> Iterator[tuple[str, str, list[Cell]]]:
    """Yield the cells of every classifier on every data set of a study that could be read."""
    plan = store.plan(study)
    for data in store.sets(study):
        if data.fingerprint is not None:
            for spec in plan.lineup:
                yield data.name, spec.name, store.cells(data.fingerprint, spec.key, plan.cv, plan.seed)


def study_table(store: Store, study: str, metric: str) -> StudyTable:
    """Return one metric, of those in `METRICS`, of the study that was run under this name."""
    if metric not in METRICS:
        raise DataError(f"There is no metric {metric!r}.{did_you_mean(metric, METRICS)}")
    plan = store.plan(study)
    datasets = tuple(d.name for d in store.sets(study) if d.fingerprint is not None)
    classifiers = tuple(c.name for c in plan.lineup)
    mean, sd = (np.full((len(datasets), len(classifiers)), np.nan) for _ in range(2))
    for dataset, classifier, cells in study_cells(store, study):
        values = [c.figures[metric] for c in cells if c.status == "done" and c.figures and metric in c.figures]
        if len(values) == plan.cv:
            index = datasets.index(dataset), classifiers.index(classifier)
            mean[index], sd[index] = statistics.fmean(values), statistics.stdev(values)
    return StudyTable(metric, datasets, classifiers, mean, sd)


@dataclass(frozen=True)
class Gap:
    """Folds of one classifier on one data set that have no result for the same reason."""

    dataset: str
    classifier: str
    status: str
    reason: str
    folds: tuple[int, ...]


def gaps(store: Store, study: str) -> list[Gap]:
    """Return every fold of a study that failed, was skipped or was not run yet."""
    out = []
    for dataset, classifier, cells in study_cells(store, study):
        unfinished = {c.key.fold: (c.status, c.reason) for c in cells if c.status != "done"}
        absent = set(range(store.plan(study).cv)) - {c.key.fold for c in cells}
        states: dict[int, tuple[str, str]] = {**unfinished, **dict.fromkeys(absent, ("missing", "It was not run yet."))}
        for state in dict.fromkeys(states[fold] for fold in sorted(states)):
            folds = tuple(fold for fold in sorted(states) if states[fold] == state)
            out.append(Gap(dataset, classifier, *state, folds))
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
    cv = store.plan(study).cv
    groups: dict[str, list[list[Cell]]] = {}
    for dataset, classifier, found in study_cells(store, study):
        groups.setdefault(dataset if by == "dataset" else classifier, []).append(found)
    rows = []
    for name, parts in groups.items():
        cells = [cell for part in parts for cell in part]
        states = [c.status for c in cells]
        peak = max((c.peak_mb for c in cells if c.peak_mb is not None), default=None)
        counts = (states.count("done"), states.count("failed"), states.count("skipped"))
        rows.append(Timing(name, *counts, cv * len(parts) - len(cells), math.fsum(c.seconds for c in cells), peak))
    return sorted(rows, key=lambda t: -t.seconds)


# ---- as files


def write_folds(store: Store, studies: Sequence[str], path: str | Path) -> None:
    """Write every fold of some studies as CSV; see `folds_of`."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(folds_of(store, studies))
    write_text(path, out.getvalue())


def folds_of(store: Store, studies: Sequence[str]) -> Iterator[list[Any]]:
    """Yield a line of names, then every fold: metrics to six digits, seconds to the millisecond, no risks.

    A fit that two studies share is in both. A fold that was not run has the status "missing".
    """
    metrics = list(dict.fromkeys(m for study in studies for m in store.plan(study).metrics))
    head = ("study", "dataset", "classifier", "seed", "fold", "status", "reason")
    yield [*head, *metrics, "fit_seconds", "score_seconds", "peak_mb"]
    for study in studies:
        plan = store.plan(study)
        for dataset, classifier, cells in study_cells(store, study):
            by_fold = {c.key.fold: c for c in cells}
            for fold in range(plan.cv):
                row = [study, dataset, classifier, plan.seed, fold]
                yield [*row, *_fold_row(by_fold.get(fold), metrics)]


def _fold_row(cell: Cell | None, metrics: Sequence[str]) -> list[str]:
    if cell is None:
        return ["missing", *[""] * (len(metrics) + 4)]
    figures = (cell.figures or {}) if cell.status == "done" else {}
    values = [f"{figures[m]:.6g}" if m in figures else "" for m in metrics]
    times = ["" if s is None else f"{s:.3f}" for s in (cell.fit_seconds, cell.score_seconds)]
    return [cell.status, cell.reason, *values, *times, "" if cell.peak_mb is None else f"{cell.peak_mb:.0f}"]


def report(store: Store, study: str, metrics: Sequence[str] | None = None) -> tuple[dict[str, Any], str]:
    """Return the tables of a study, by default of all its metrics, as plain data and as Markdown."""
    plan = store.plan(study)
    tables = [study_table(store, study, metric) for metric in metrics or plan.metrics]
    missing = gaps(store, study)
    data = {
        "study": study,
        "cv": plan.cv,
        "seed": plan.seed,
        "tables": [_table_data(table) for table in tables],
        "without_result": [{name: getattr(gap, name) for name in Gap.__dataclass_fields__} for gap in missing],
    }
    text = [f"# {study}", f"Means over {plan.cv} stratified folds, seed {plan.seed}; in brackets the rank."]
    text += [part for table in tables for part in _table_text(table)]
    if missing:
        rows = [[g.dataset, g.classifier, g.status, ", ".join(map(str, g.folds)), g.reason] for g in missing]
        text += ["## Fits without a result", _grid(("data set", "classifier", "status", "folds", "why"), rows)]
    return data, "\n\n".join(text) + "\n"


def _table_data(table: StudyTable) -> dict[str, Any]:
    ranks = table.ranks()
    values = [
        {"dataset": d, "classifier": c, "mean": table.mean[i, j], "sd": table.sd[i, j], "rank": ranks[i, j]}
        for i, d in enumerate(table.datasets)
        for j, c in enumerate(table.classifiers)
    ]
    finite_values = [
        {k: v if isinstance(v, str) or not math.isnan(v) else None for k, v in row.items()} for row in values
    ]
    out: dict[str, Any] = {"metric": table.metric, "values": finite_values}
    part = table.complete()
    if min(part.mean.shape) < 2:
        return out
    test, pairs = friedman(part.results(), table.higher_is_better), hodges_lehmann_table(part.results())
    out["mean_ranks"] = dict(zip(part.classifiers, test.ranks.tolist(), strict=True))
    out["friedman"] = {"statistic": float(test.statistic), "p_value": float(test.p_value)}
    out["differences"] = [
        {"first": a, "second": b, "difference": pairs.differences[i, j], "significant": bool(pairs.significant[i, j])}
        for i, a in enumerate(part.classifiers)
        for j, b in enumerate(part.classifiers)
        if i < j
    ]
    return out


def _table_text(table: StudyTable) -> Iterator[str]:
    """Yield a metric as Markdown: classifiers in rows, then the tests where there are two data sets."""
    ranks, part = table.ranks(), table.complete()
    rows = []
    for j, name in enumerate(table.classifiers):
        pairs = zip(table.mean[:, j], ranks[:, j], strict=True)
        cells = ["" if math.isnan(mean) else f"{mean:.4f} ({rank:g})" for mean, rank in pairs]
        finite = ranks[:, j][~np.isnan(ranks[:, j])]
        rows.append([name, *cells, f"{finite.mean():.2f}" if len(finite) else ""])
    yield f"## {METRICS[table.metric].title}"
    yield _grid(("classifier", *table.datasets, "mean rank"), rows)
    if min(part.mean.shape) < 2:
        yield "Rank tests need two classifiers on two data sets without a gap."
        return
    yield f"{friedman(part.results(), table.higher_is_better).summary()}."
    yield hodges_lehmann_table(part.results()).to_markdown().rstrip()


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
