"""What the sections of the report read: tables by study and metric, each made once, and the prose."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plainrisk_lab.paper.document import Block, Cell, Grid, Heading, Prose
from plainrisk_lab.paper.grids import title_of
from plainrisk_lab.paper.published import paper_table
from plainrisk_lab.study import Store, StudyTable, study_table
from plainrisk_lab.study.tables import gaps

__all__ = ["SMALL", "TOLERANCE", "View", "explained", "missing_results", "prose", "tolerance_of"]

# A fold of these holds fewer than a hundred rows.
SMALL = ("german", "japan", "australia")
# How far below the published AUC a figure may be before it needs an account.
TOLERANCE = 0.005
SMALL_TOLERANCE = 0.015


@dataclass
class View:
    """The studies of a store."""

    store: Store
    _tables: dict[tuple[str, str], StudyTable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.studies = self.store.studies

    def has(self, *studies: str) -> bool:
        """Whether the store has all of these studies."""
        return all(study in self.studies for study in studies)

    def table(self, study: str, metric: str) -> StudyTable:
        """Return one metric of a study; the study "paper tables" is the published one."""
        key = (study, metric)
        if key not in self._tables:
            published = study == "paper tables"
            self._tables[key] = paper_table(metric) if published else study_table(self.store, study, metric)
        return self._tables[key]

    def line(self, study: str, metric: str, classifier: str, datasets: Sequence[str]) -> list[float]:
        """Return one classifier's figures on some data sets, NaN where there is none."""
        if study != "paper tables" and study not in self.studies:
            return [math.nan] * len(datasets)
        table = self.table(study, metric)
        return [table.value(data, classifier) for data in datasets]

    def shared_data(self, *studies: str) -> list[str]:
        """Return the data sets that all of these studies have."""
        first, *rest = (self.table(study, "auc").datasets for study in studies)
        return [data for data in first if all(data in other for other in rest)]


def tolerance_of(dataset: str) -> float:
    """Return how far below the published AUC a figure may be."""
    return SMALL_TOLERANCE if dataset in SMALL else TOLERANCE


def prose(key: str, **figures: Any) -> Prose:
    """Return a paragraph of prose.toml, its figures filled in."""
    text = _prose()[key]["text"]
    return Prose(text.format(**figures) if figures else text)


def explained(key: str, **figures: Any) -> tuple[Block, ...]:
    """Return the heading and the prose of an explanation."""
    return Heading(3, _prose()[key]["title"]), prose(key, **figures)


@functools.cache
def _prose() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("prose.toml").read_text(encoding="utf-8"))


def missing_results(view: View, studies: Sequence[str]) -> Block:
    """Return which folds failed, were skipped or are missing, grouped by their reason and place."""
    gaps_by_reason: dict[tuple[str, str, str, str], dict[str, list[int]]] = {}
    for study in studies:
        for gap in gaps(view.store, study):
            where = gaps_by_reason.setdefault((study, gap.classifier, gap.status, gap.reason), {})
            where.setdefault(gap.dataset, []).extend(gap.folds)
    if not gaps_by_reason:
        return Prose("Every fit has a result.")
    alike: dict[tuple[str, str, str, str], tuple[list[str], int]] = {}
    for (study, classifier, status, reason), folds in gaps_by_reason.items():
        where_text = ", ".join(f"{title_of(d)} (fold {_numbers(numbers)})" for d, numbers in folds.items())
        names, count = alike.get((study, status, where_text, reason), ([], 0))
        alike[study, status, where_text, reason] = ([*names, classifier], count + sum(map(len, folds.values())))
    rows: list[list[Cell]] = [
        [study, ", ".join(names), status, f"{count}", where, reason]
        for (study, status, where, reason), (names, count) in alike.items()
    ]
    header = ("study", "classifier", "status", "fits", "where", "why")
    note = "A classifier has no figure on a data set where a fold has no result, and that set no part in mean ranks."
    return Grid("Fits without a result", header, rows, note, words=True)


def _numbers(folds: Sequence[int]) -> str:
    """Write fold numbers, runs of them short.

    >>> _numbers([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7–8'
    """
    runs: list[list[int]] = []
    for fold in sorted(folds):
        if runs and fold == runs[-1][1] + 1:
            runs[-1][1] = fold
        else:
            runs.append([fold, fold])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in runs)
