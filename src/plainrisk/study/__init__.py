"""Studies: data sets x classifiers x folds, run once, kept in one file, told as tables and a report."""

from __future__ import annotations

from plainrisk.study.catalog import STUDIES, load_plan
from plainrisk.study.measure import METRICS, Metric
from plainrisk.study.plan import ClassifierSpec, DataSpec, Plan
from plainrisk.study.publish import write_folds, write_results
from plainrisk.study.report import write_report
from plainrisk.study.run import Progress, Summary, run
from plainrisk.study.store import Store
from plainrisk.study.tables import StudyTable, paper_table, study_table, write_csv

__all__ = [
    "METRICS",
    "STUDIES",
    "ClassifierSpec",
    "DataSpec",
    "Metric",
    "Plan",
    "Progress",
    "Store",
    "StudyTable",
    "Summary",
    "load_plan",
    "paper_table",
    "run",
    "study_table",
    "write_csv",
    "write_folds",
    "write_report",
    "write_results",
]
