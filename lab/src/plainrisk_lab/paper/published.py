"""The published tables."""

from __future__ import annotations

import csv
import functools
from pathlib import Path

import numpy as np

from plainrisk.errors import DataError, did_you_mean
from plainrisk_lab.study import StudyTable

__all__ = ["paper_table"]


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
