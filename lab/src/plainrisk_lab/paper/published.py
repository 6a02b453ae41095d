"""The published tables, and the calibration errors as they seem to have been computed."""

from __future__ import annotations

import csv
import functools
from pathlib import Path

import numpy as np

from plainrisk._types import Array, Floats
from plainrisk.errors import DataError, did_you_mean
from plainrisk.measure.metrics import Reliability, reliability
from plainrisk_lab.study import METRICS, Metric, StudyTable

__all__ = ["AS_PRINTED", "as_printed", "paper_table"]


def as_printed(outcome: Array, risk: Floats) -> Reliability:
    """Bin as the published calibration tables seem to have been made.

    Both columns of predict_proba, read row by row, stand against the outcomes written twice in a row, so that a
    prediction meets the outcome of another row. This is no measure of calibration: it is here to show where the
    published figures come from.
    """
    both = np.column_stack([1.0 - risk, risk]).ravel()
    return reliability(np.tile(outcome, 2), both)


#: Two metrics that only this reproduction needs; they join those of studies.
AS_PRINTED = (
    Metric("ece_as_printed", "ECE as printed", False, lambda y, p: as_printed(y, p).expected_error / 2.0),
    Metric("mce_as_printed", "MCE as printed", False, lambda y, p: as_printed(y, p).maximum_error),
)
METRICS.update({metric.name: metric for metric in AS_PRINTED})


def paper_table(metric: str) -> StudyTable:
    """Return a published table: auc, ece, mce or certainty of 24 data sets and 12 classifiers.

    >>> paper_table("auc").value("heloc", "LinARM1")
    0.7963
    """
    if metric not in _tables():
        raise DataError(f"The paper has no table of {metric!r}.{did_you_mean(metric, _tables())}")
    return _tables()[metric]


@functools.cache
def _tables() -> dict[str, StudyTable]:
    with Path(__file__).with_name("published.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    out = {}
    for metric in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == metric]
        values = np.array([row[2:] for row in mine], dtype=np.float64)
        datasets = tuple(row[1] for row in mine)
        out[metric] = StudyTable(metric, datasets, tuple(header[2:]), values, np.full_like(values, np.nan))
    return out
