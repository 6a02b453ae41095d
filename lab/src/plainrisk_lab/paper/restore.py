"""Results of earlier runs, as a .csv file keeps them, read back into a store."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from plainrisk.errors import DataError
from plainrisk_lab.paper.plans import STUDIES
from plainrisk_lab.study import METRICS, Plan, Store
from plainrisk_lab.study.run import register
from plainrisk_lab.study.store import Cell, CellKey

__all__ = ["restore"]

_TIMES = ("fit_seconds", "score_seconds", "peak_mb")


def restore(path: str | Path, store: str | Path) -> int:
    """Read the folds of a results.csv into a store, those it has left as they are; return how many were read.

    A .csv file holds no predicted risks, so what the report draws from them needs the study itself. The data sets must
    be on this machine, since a store knows a fit by its rows. Classifiers that are no longer in any plan are left out.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    count = 0
    with Store(store) as kept:
        for name in dict.fromkeys(row["study"] for row in rows):
            if name not in STUDIES:
                raise DataError(f"{path}: there is no study {name!r}. There is: {', '.join(STUDIES)}.")
            count += _restore_study(kept, STUDIES[name], [row for row in rows if row["study"] == name])
    return count


def _restore_study(store: Store, plan: Plan, rows: list[dict[str, str]]) -> int:
    sets = {spec.name: register(store, plan, spec) for spec in plan.data}
    store.put_plan(plan, sets.values())
    keys = {spec.name: spec.key for spec in plan.lineup}
    count = 0
    for row in rows:
        data = sets.get(row["dataset"])
        if row["status"] != "done" or data is None or data.fingerprint is None or row["classifier"] not in keys:
            continue
        key = CellKey(data.fingerprint, keys[row["classifier"]], plan.cv, plan.seed, int(row["fold"]))
        if store.status(key) != "done":
            figures = {metric: float(row[metric]) for metric in METRICS if row.get(metric)}
            times: dict[str, Any] = {name: float(row[name]) for name in _TIMES if row[name]}
            store.put(Cell(key=key, status="done", figures=figures, **times))
            count += 1
    return count
