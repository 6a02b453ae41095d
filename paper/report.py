"""The report of a store: one HTML page, or Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from plainrisk.errors import DataError
from plainrisk.files import write_text
from plainrisk.study.catalog import STUDIES
from plainrisk.study.gaps import gap_grid, time_grids
from plainrisk.study.grids import title_of
from plainrisk.study.page import render_page
from plainrisk.study.pieces import Block, Cell, Fold, Grid, Heading, Items, Prose, to_markdown
from plainrisk.study.section_paper import paper_section
from plainrisk.study.section_product import plain_section, product_section
from plainrisk.study.store import DataSet, Store
from plainrisk.study.tables import study_cells, timings
from plainrisk.study.view import View

__all__ = ["report_blocks", "study_rows", "versions_told", "write_report"]

TITLE = "Interpretable credit risk models: a study"
LEAD = (
    "Classifiers on public credit data sets, every figure the mean over held-out folds. "
    "The first part reproduces a published study and says where and why figures differ; "
    "the second is the study as a lender would want it run."
)


def write_report(store: Store, path: str | Path, studies: Sequence[str] | None = None) -> None:
    """Write the report of some studies of a store, all unless told, to a .html or .md file."""
    path = Path(path)
    blocks = report_blocks(store, studies)
    if path.suffix == ".html":
        write_text(path, render_page(TITLE, LEAD, blocks))
    elif path.suffix == ".md":
        write_text(path, f"# {TITLE}\n\n{LEAD}\n\n{to_markdown(blocks)}\n")
    else:
        raise DataError(f"{path}: a report is a .html or a .md file.")


def report_blocks(store: Store, studies: Sequence[str] | None = None) -> list[Block]:
    """Return the report as blocks."""
    names = tuple(studies or store.studies)
    if not names:
        raise DataError(f"{store.path} holds no study yet. Run one first: plainrisk study run NAME.")
    view = View(store, names)
    blocks: list[Block] = []
    number = 0
    if view.has("paper"):
        blocks += paper_section(view)
        number = 1
    if view.has("product"):
        blocks += product_section(view)
        number = 2
    # The experiments behind the first part are told there.
    told = ("paper", "product", *(STUDIES if view.has("paper") else ()))
    for study in names:
        if study not in told:
            number += 1
            blocks += plain_section(view, study, number)
    return [*blocks, *_made_of(view)]


def _made_of(view: View) -> Iterator[Block]:
    """Yield what was run on what."""
    yield Heading(1, "What was run")
    sets: dict[str, DataSet] = {}
    for study in view.studies:
        for data in view.store.sets(study):
            sets.setdefault(data.name, data)
    present = [d for d in sets.values() if d.fingerprint is not None]
    rows: list[list[Cell]] = [
        [
            title_of(d.name),
            f"{d.rows or 0:,}",
            f"{(d.positives or 0) / (d.rows or 1):.1%}",
            str(d.features or ""),
            d.note,
        ]
        for d in present
    ]
    yield Grid("Data sets", ("data set", "rows", "positive", "features", "note"), rows, words=True)
    absent = [title_of(d.name) for d in sets.values() if d.fingerprint is None]
    if absent:
        yield Prose(f"Not on the machine this was run on, and left out: {', '.join(absent)}.")
    yield Heading(2, "Fits without a result")
    yield from gap_grid(view, view.studies)
    yield Heading(2, "Where the time goes")
    yield Grid("Studies", ("study", "fits", "failed", "skipped", "hours of work"), study_rows(view))
    for study in ("paper", "balanced", "product"):
        if view.has(study):
            yield Fold(f"{study}: time by data set and by classifier", tuple(time_grids(view, study)))
    yield Heading(2, "Run it again")
    yield Items(tuple(f"`plainrisk study run {study} --store study.db`" for study in view.studies))
    yield Prose("`plainrisk study report --store study.db -o report.html` writes this page.")
    versions = versions_told(view)
    if versions:
        yield Prose("Made with:")
        yield Items(tuple(versions))


def study_rows(view: View) -> list[list[Cell]]:
    """Return a row per study: fits done, failed and skipped, and hours of work."""
    rows: list[list[Cell]] = []
    for study in view.studies:
        spent = timings(view.store, study, "dataset")
        counts = [sum(getattr(t, name) for t in spent) for name in ("done", "failed", "skipped")]
        rows.append([study, *(f"{n:,}" for n in counts), f"{sum(t.seconds for t in spent) / 3600:.2f}"])
    return rows


def versions_told(view: View) -> list[str]:
    """Say under which versions of packages the studies were run, as their last cells have it."""
    found: dict[str, list[str]] = {}
    for study in view.studies:
        done = [c for _, _, cells in study_cells(view.store, study) for c in cells if c.status == "done" and c.versions]
        if done:
            found.setdefault(max(done, key=lambda c: c.finished).versions, []).append(study)
    lines = []
    for text, studies in found.items():
        packages = ", ".join(f"{name} {version}" for name, version in json.loads(text).items())
        lines.append(f"{', '.join(studies)}: {packages}.")
    return lines
