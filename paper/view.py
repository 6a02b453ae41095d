"""A store as a report reads it: tables by study and metric, each made once, and nothing where there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from plainrisk.study.run import fill_metrics
from plainrisk.study.store import Store
from plainrisk.study.tables import StudyTable, paper_table, study_table

__all__ = ["SMALL", "TOLERANCE", "View"]

# A fold of these holds fewer than a hundred rows.
SMALL = ("german", "japan", "australia")
# How far below the published AUC a figure may be before it needs an account.
TOLERANCE = 0.005
SMALL_TOLERANCE = 0.015


@dataclass
class View:
    """The studies of a store."""

    store: Store
    studies: tuple[str, ...]
    _tables: dict[tuple[str, str], StudyTable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for study in self.studies:
            fill_metrics(self.store, self.store.plan(study))

    def has(self, *studies: str) -> bool:
        """Whether all of these studies are there."""
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
