"""Studies: any classifiers over any data sets, fold by fold, run once, kept in one file, compared in tables."""

from __future__ import annotations

from plainrisk_lab.study.plan import METRICS, ClassifierSpec, DataSpec, Metric, Plan, as_printed, load_plan
from plainrisk_lab.study.run import Progress, Summary, run
from plainrisk_lab.study.store import Store
from plainrisk_lab.study.tables import StudyTable, folds_of, report, study_table, write_folds

__all__ = [
    "METRICS",
    "ClassifierSpec",
    "DataSpec",
    "Metric",
    "Plan",
    "Progress",
    "Store",
    "StudyTable",
    "Summary",
    "as_printed",
    "folds_of",
    "load_plan",
    "report",
    "run",
    "study_table",
    "write_folds",
]
