"""The report of a store, and the folder of results: the report twice, every fold as CSV, and how to get them again."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from plainrisk.errors import DataError
from plainrisk.files import write_text
from plainrisk_lab.paper.document import Block, Cell, Fold, Grid, Heading, Items, Prose, render_page, to_markdown
from plainrisk_lab.paper.grids import title_of
from plainrisk_lab.paper.section_paper import paper_section
from plainrisk_lab.paper.section_product import product_section
from plainrisk_lab.paper.view import View, missing_results
from plainrisk_lab.study import Store, write_folds
from plainrisk_lab.study.store import DataSet
from plainrisk_lab.study.tables import Timing, study_cells, timings

__all__ = ["write_report", "write_results"]

TITLE = "Interpretable credit risk models: a study"
LEAD = (
    "Classifiers on public credit data sets, every figure the mean over held-out folds. "
    "The first part reproduces a published study and says where and why figures differ; "
    "the second is the study as a lender would want it run."
)
_FILES = (
    ("report.html", "the report: one page that fetches nothing; tables, diagrams, accounts of every disagreement"),
    ("report.md", "the same without the pictures"),
    ("results.csv", "one row per study, data set, classifier and fold: status, reason, every metric, seconds, memory"),
)
# Those whose time is shown by data set and classifier.
_MAIN = ("paper", "balanced", "product")


def write_results(store: Store, folder: str | Path) -> tuple[Path, ...]:
    """Write report.html, report.md, results.csv and a README.md into a folder; return what was written."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Make it first.")
    for name in ("report.html", "report.md"):
        write_report(store, folder / name)
    write_folds(store, store.studies, folder / "results.csv")
    text = to_markdown([*_readme(View(store))], -1)
    write_text(folder / "README.md", f"# Results of the studies\n\n{text}\n")
    return tuple(folder / name for name in ("report.html", "report.md", "results.csv", "README.md"))


def write_report(store: Store, path: str | Path) -> None:
    """Write the report of all studies of a store to a .html or .md file."""
    path = Path(path)
    blocks = _blocks(View(store))
    if path.suffix == ".html":
        write_text(path, render_page(TITLE, LEAD, blocks))
    elif path.suffix == ".md":
        write_text(path, f"# {TITLE}\n\n{LEAD}\n\n{to_markdown(blocks)}\n")
    else:
        raise DataError(f"{path}: a report is a .html or a .md file.")


def _blocks(view: View) -> list[Block]:
    if not (view.has("paper") or view.has("product")):
        raise DataError(
            f"{view.store.path} has neither the study 'paper' nor 'product'. Run: "
            "python -m plainrisk_lab.paper run paper"
        )
    blocks: list[Block] = []
    if view.has("paper"):
        blocks += paper_section(view)
    if view.has("product"):
        blocks += product_section(view)
    return [*blocks, *_what_was_run(view)]


def _what_was_run(view: View) -> Iterator[Block]:
    yield Heading(1, "What was run")
    sets: dict[str, DataSet] = {}
    for study in view.studies:
        for data in view.store.sets(study):
            sets.setdefault(data.name, data)
    rows = [_data_row(data) for data in sets.values() if data.fingerprint is not None]
    yield Grid("Data sets", ("data set", "rows", "positive", "features", "note"), rows, words=True)
    absent = [title_of(d.name) for d in sets.values() if d.fingerprint is None]
    if absent:
        yield Prose(f"Not on the machine this was run on, and left out: {', '.join(absent)}.")
    yield Heading(2, "Fits without a result")
    yield missing_results(view, view.studies)
    yield Heading(2, "Where the time goes")
    yield Grid("Studies", ("study", "fits", "failed", "skipped", "hours of work"), _study_rows(view))
    for study in _MAIN:
        if view.has(study):
            yield Fold(f"{study}: time by data set and by classifier", tuple(_time_grids(view, study)))
    yield Heading(2, "Run it again")
    yield Items(tuple(f"`python -m plainrisk_lab.paper run {study} --store study.db`" for study in view.studies))
    yield Prose("`python -m plainrisk_lab.paper report --store study.db` writes this page.")
    versions = _versions(view)
    if versions:
        yield Prose("Made with:")
        yield Items(tuple(versions))


def _data_row(data: DataSet) -> list[Cell]:
    share = f"{(data.positives or 0) / (data.rows or 1):.1%}"
    return [title_of(data.name), f"{data.rows or 0:,}", share, str(data.features or ""), data.note]


def _readme(view: View) -> Iterator[Block]:
    yield Grid("What is here", ("file", "what it holds"), [[f"`{f}`", what] for f, what in _FILES], words=True)
    yield Heading(2, "The commands")
    yield Prose(
        "Put the data files into the folder that the environment variable `PLAINRISK_DATA` names; `plainrisk data "
        "list` says which are found. Every study adds to one store; what is there already is not fitted again. The "
        "rivals need `interpret`, `optbinning` and `lightgbm`; without one its fits are skipped, and rows say so. "
        "`make paper` runs all of these:"
    )
    yield Items(
        (
            *(f"`python -m plainrisk_lab.paper run {study} --store study.db --jobs 2`" for study in view.studies),
            "`python -m plainrisk_lab.paper report --store study.db --output docs/results` writes this folder",
        )
    )
    yield Heading(2, "Machine and versions")
    yield Items((_machine(), *_versions(view)))
    yield Heading(2, "How long it took")
    yield from _spent(view)
    yield Heading(2, "Fits without a result")
    yield missing_results(view, view.studies)


def _spent(view: View) -> Iterator[Block]:
    if view.has("paper"):
        spent = timings(view.store, "paper", "dataset")
        work, fits = sum(t.seconds for t in spent), sum(t.done + t.failed for t in spent)
        yield Prose(
            f"The twelve classifiers under the paper's conventions are {fits:,} fits and took {work:,.0f} seconds of "
            f"work: {work / 2:,.0f} seconds, or {work / 120:.1f} minutes, for each of two processes of one thread."
        )
    yield Grid("Studies", ("study", "fits", "failed", "skipped", "hours of work"), _study_rows(view))
    for study in _MAIN:
        if view.has(study):
            yield from _time_grids(view, study)


def _study_rows(view: View) -> list[list[Cell]]:
    """Return a row per study: fits done, failed and skipped, and hours of work."""
    rows: list[list[Cell]] = []
    for study in view.studies:
        spent = timings(view.store, study, "dataset")
        counts = [sum(getattr(t, name) for t in spent) for name in ("done", "failed", "skipped")]
        rows.append([study, *(f"{n:,}" for n in counts), f"{sum(t.seconds for t in spent) / 3600:.2f}"])
    return rows


def _time_grids(view: View, study: str) -> Iterator[Block]:
    """Yield the seconds of a study by data set and by classifier."""
    for by, head in (("dataset", "data set"), ("classifier", "classifier")):
        spent = timings(view.store, study, by)
        total = sum(t.seconds for t in spent)
        rows = [_time_row(t, total) for t in spent]
        yield Grid(f"{study}: time by {head}", (head, "fits", "failed", "seconds", "share", "peak MB"), rows)


def _time_row(timing: Timing, total: float) -> list[Cell]:
    share = f"{timing.seconds / total:.0%}" if total else ""
    peak = "" if timing.peak_mb is None else f"{timing.peak_mb:,.0f}"
    name = title_of(timing.name)
    return [name, f"{timing.done:,}", f"{timing.failed:,}", f"{timing.seconds:,.1f}", share, peak]


def _versions(view: View) -> list[str]:
    """Return under which versions of packages the studies were run, as their last cells have it."""
    studies_by_version: dict[str, list[str]] = {}
    earlier = []
    for study in view.studies:
        done = [c for _, _, cells in study_cells(view.store, study) for c in cells if c.status == "done"]
        versioned = [c for c in done if c.versions]
        if versioned:
            studies_by_version.setdefault(max(versioned, key=lambda c: c.finished).versions, []).append(study)
        if len(versioned) < len(done):
            earlier.append(f"{study} ({len(done) - len(versioned):,} of {len(done):,} fits)")
    lines = [f"Figures of an earlier run, read back from its results.csv: {', '.join(earlier)}."] if earlier else []
    for text, studies in studies_by_version.items():
        packages = ", ".join(f"{name} {version}" for name, version in json.loads(text).items())
        lines.append(f"{', '.join(studies)}: {packages}.")
    return lines


def _machine() -> str:
    """Return what kind of machine this is, and nothing that identifies it."""
    facts = [f"{platform.system()} on {platform.machine()}", f"{os.cpu_count()} cores"]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        facts.append(f"{size / 2**30:.0f} GiB of memory")
    return f"{', '.join(facts)}; Python {platform.python_version()}. Each fit has one thread."
