"""Every model on every data set: same folds, true base rate, one table.

    PLAINRISK_DATA=folder python -m benchmarks.models_table [--data heloc german] [--models ARM1 XGB]

Ten stratified folds, shuffled with seed 0. AUC is the mean over the folds; ECE (15 equal bins), Brier score and
clipped share (predictions that are exactly 0 or 1) are those of all held-out predictions together. A ridge chosen by
cross validation is chosen inside each training fold. Every finished row is kept in the --store file, so a run that was
stopped goes on where it was; failures are rows too, and are tried again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.table_text import Row, describe, markdown, one_thread, write_json

one_thread()

import numpy as np  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402

import plainrisk as pr  # noqa: E402
from plainrisk.errors import PlainriskWarning  # noqa: E402

DATA = ("heloc", "gmsc", "taiwan", "german", "japan", "australia", "poland_0", "poland_2", "poland_4")
SMOOTH = {"ridge": "cv", "criterion": "quantile", "max_bins": 20, "penalty": "steps"}
# What a row is called: the classifier's name, its options, and whether the schema's bins are left out.
MODELS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "ARM1": ("ARM1", {}, False),
    "LinARM1": ("LinARM1", {}, False),
    "BandARM1": ("BandARM1", {}, False),
    "BandARM1, 4 pieces": ("BandARM1", {"pieces": 4}, False),
    "DirectARM1": ("DirectARM1", {}, False),
    "MixARM1": ("MixARM1", {}, False),
    "MixLinARM1": ("MixLinARM1", {}, False),
    "MixDirectARM1": ("MixDirectARM1", {}, False),
    "ARM2": ("ARM2", {}, False),
    "LinARM2": ("LinARM2", {}, False),
    "DirectARM2": ("DirectARM2", {}, False),
    "XGB": ("XGB", {}, False),
    "DirectARM1 smooth": ("DirectARM1", SMOOTH, True),
    "BandARM1 smooth": ("BandARM1", SMOOTH, True),
}
METRICS = [
    ("AUC", "auc", ".4f"),
    ("Expected calibration error", "ece", ".4f"),
    ("Brier score", "brier", ".4f"),
    ("Share of predictions clipped to 0 or 1", "clipped", ".3f"),
    ("Seconds per fit", "seconds", ".2f"),
]


def judge(data: Any, model: str) -> Row:
    """Cross-validate one model on one data set."""
    name, options, unbinned = MODELS[model]
    schema = data.schema.unbinned() if unbinned else data.schema
    X, y = data.frame, np.asarray(data.target)
    risk, aucs, seconds, clipped_in_training = np.empty(len(y)), [], [], []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(y, y):
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            fitted = pr.make_classifier(name, schema, **options).fit(X[train], y[train])
        seconds.append(time.perf_counter() - started)
        risk[test] = fitted.predict_proba(X[test])[:, 1]
        aucs.append(pr.metrics.roc_auc(y[test], risk[test]))
        clipped_in_training.append(fitted.fit_record_.clipped)
    return {
        "rows": len(y),
        "base_rate": float(y.mean()),
        "auc": float(np.mean(aucs)),
        "aucs": [float(a) for a in aucs],
        "ece": pr.metrics.expected_calibration_error(y, risk, bins=15),
        "brier": pr.metrics.brier_score(y, risk),
        "clipped": pr.metrics.certainty(y, risk),
        "clipped_in_training": float(np.mean(clipped_in_training)),
        "seconds": float(np.mean(seconds)),
    }


def kept(store: Path) -> dict[tuple[str, str], Row]:
    """Return the rows that are in the store; of a row that was tried twice the last."""
    lines = store.read_text().splitlines() if store.exists() else []
    return {(row["data"], row["model"]): row for row in map(json.loads, lines)}


def run(store: Path, names: list[str], models: list[str]) -> None:
    """Fill the store with the rows it has not yet."""
    for name in names:
        todo = [m for m in models if "auc" not in kept(store).get((name, m), {})]
        if not todo:
            continue
        try:
            data = pr.datasets.load(name)
        except Exception as error:
            add(store, [{"data": name, "model": m, "error": describe(error)} for m in todo])
            continue
        for model in todo:
            try:
                result = judge(data, model)
            except Exception as error:
                result = {"error": describe(error)}
            add(store, [{"data": name, "model": model, **result}])


def table(found: dict[tuple[str, str], Row], names: list[str], models: list[str]) -> str:
    """Return the results as Markdown: a table per metric, models by data sets; and what failed."""
    sections = []
    for title, key, spec in METRICS:
        rows = [{"model": m, **{n: found.get((n, m), {}).get(key) for n in names}} for m in models]
        columns = [("", "model", ""), *((n, n, spec) for n in names)]
        sections.append(f"## {title}\n\n{markdown(rows, columns)}")
    failed = [f"- {n}, {m}: failed, {found[n, m]['error']}" for n, m in found if "error" in found[n, m]]
    return "\n\n".join([*sections, *(["## Failures\n\n" + "\n".join(failed)] if failed else [])])


def add(store: Path, rows: list[Row]) -> None:
    """Append rows, each in one write, so that two processes may share a store."""
    for row in rows:
        with store.open("a") as file:
            file.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), metavar="NAME")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME")
    parser.add_argument(
        "--store", type=Path, default=Path("out/models-table.jsonl"), help="where finished rows are kept"
    )
    parser.add_argument("--json", metavar="PATH", help="also write the table's rows to this file")
    chosen = parser.parse_args()
    chosen.store.parent.mkdir(parents=True, exist_ok=True)
    run(chosen.store, chosen.data, chosen.models)
    found = kept(chosen.store)
    print(table(found, chosen.data, chosen.models))
    write_json(chosen.json, [found[n, m] for n in chosen.data for m in chosen.models if (n, m) in found])


if __name__ == "__main__":
    main()
