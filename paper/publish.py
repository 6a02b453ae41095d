"""A folder of results for others to read: the report twice, every fold as CSV, and how to get them again."""

from __future__ import annotations

import csv
import io
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

from plainrisk.errors import DataError
from plainrisk.files import write_text
from plainrisk.study.gaps import gap_grid, time_grids
from plainrisk.study.pieces import Block, Grid, Heading, Items, Prose, to_markdown
from plainrisk.study.report import study_rows, versions_told, write_report
from plainrisk.study.store import Cell, Store
from plainrisk.study.tables import study_cells, timings
from plainrisk.study.view import View

__all__ = ["write_folds", "write_results"]

_FILES = (
    ("report.html", "the report: one page that fetches nothing; tables, diagrams, accounts of every disagreement"),
    ("report.md", "the same without the pictures"),
    ("results.csv", "one row per study, data set, classifier and fold: status, reason, every metric, seconds, memory"),
)
_MAIN = ("paper", "balanced", "product")


def write_results(store: Store, folder: str | Path, studies: Sequence[str] | None = None) -> tuple[Path, ...]:
    """Write report.html, report.md, results.csv and a README.md into a folder; return what was written."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Make it first.")
    names = tuple(studies or store.studies)
    for name in ("report.html", "report.md"):
        write_report(store, folder / name, names)
    write_folds(store, names, folder / "results.csv")
    write_text(folder / "README.md", f"# Results of the studies\n\n{to_markdown([*_readme(store, names)], -1)}\n")
    return tuple(folder / name for name in ("report.html", "report.md", "results.csv", "README.md"))


def write_folds(store: Store, studies: Sequence[str], path: str | Path) -> None:
    """Write every fold of some studies as CSV: metrics to six digits, seconds to the millisecond, no risks.

    A fit that two studies share stands in both. A fold that was not run has the status "missing".
    """
    metrics = list(dict.fromkeys(m for study in studies for m in store.plan(study).metrics))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ("study", "dataset", "classifier", "seed", "fold", "status", "reason")
    writer.writerow([*head, *metrics, "fit_seconds", "score_seconds", "peak_mb"])
    for study in studies:
        plan = store.plan(study)
        for data, name, cells in study_cells(store, study):
            by_fold = {c.key.fold: c for c in cells}
            for fold in range(plan.folds):
                row = [study, data, name, plan.seed, fold]
                writer.writerow([*row, *_values(by_fold.get(fold), metrics)])
    write_text(path, out.getvalue())


def _values(cell: Cell | None, metrics: Sequence[str]) -> list[str]:
    if cell is None:
        return ["missing", *[""] * (len(metrics) + 4)]
    figures = cell.figures or {}
    done = cell.status == "done"
    values = [f"{figures[m]:.6g}" if done and m in figures else "" for m in metrics]
    times = ["" if s is None else f"{s:.3f}" for s in (cell.fit_seconds, cell.score_seconds)]
    return [cell.status, cell.reason, *values, *times, "" if cell.peak_mb is None else f"{cell.peak_mb:.0f}"]


def _readme(store: Store, names: Sequence[str]) -> Iterator[Block]:
    view = View(store, tuple(names))
    yield Grid("What is here", ("file", "what it holds"), [[f"`{f}`", what] for f, what in _FILES], words=True)
    yield Heading(2, "The commands")
    yield Prose(
        "Put the data files into the folder that the environment variable `PLAINRISK_DATA` names; `plainrisk data "
        "list` says which are found. Every study adds to one store; what is there already is not fitted again. The "
        "rivals need `interpret`, `optbinning` and `lightgbm`; without one its fits are skipped, and rows say so."
    )
    yield Items(
        (
            *(f"`plainrisk study run {study} --store study.db --jobs 2`" for study in names),
            "`plainrisk study report --store study.db --output docs/results` writes the files of this folder",
        )
    )
    yield Heading(2, "Machine and versions")
    yield Items((_machine(), *versions_told(view)))
    yield Heading(2, "How long it took")
    yield from _spent(view)
    yield Heading(2, "Fits without a result")
    yield from gap_grid(view, names)


def _spent(view: View) -> Iterator[Block]:
    if view.has("paper"):
        spent = timings(view.store, "paper", "dataset")
        work, fits = sum(t.seconds for t in spent), sum(t.done + t.failed for t in spent)
        yield Prose(
            f"The twelve classifiers under the paper's conventions are {fits:,} fits and took {work:,.0f} seconds of "
            f"work: {work / 2:,.0f} seconds, or {work / 120:.1f} minutes, for each of two processes of one thread."
        )
    yield Grid("Studies", ("study", "fits", "failed", "skipped", "hours of work"), study_rows(view))
    for study in _MAIN:
        if view.has(study):
            yield from time_grids(view, study)


def _machine() -> str:
    """Say what kind of machine this is, and nothing that tells which."""
    facts = [f"{platform.system()} on {platform.machine()}", f"{os.cpu_count()} cores"]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        facts.append(f"{size / 2**30:.0f} GiB of memory")
    return f"{', '.join(facts)}; Python {platform.python_version()}. Each fit has one thread."
