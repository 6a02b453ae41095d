"""docs/results: the report follows from the results beside it, and the classifiers of today give the results again."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from plainrisk_lab.paper.__main__ import main
from plainrisk_lab.paper.plans import STUDIES
from plainrisk_lab.paper.report import write_report
from plainrisk_lab.paper.smooth import write_page
from plainrisk_lab.study import METRICS, ClassifierSpec, Store, run, study_table
from plainrisk_lab.study.store import Cell, CellKey, DataSet

RESULTS = Path(__file__).parents[3] / "docs" / "results"


@pytest.fixture(scope="module")
def published() -> list[dict[str, str]]:
    with (RESULTS / "results.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def report(published, tmp_path_factory) -> list[str]:
    """The report from a store that holds the figures of results.csv, and no risks."""
    folder = tmp_path_factory.mktemp("results")
    with Store(folder / "s.db") as store:
        for study in dict.fromkeys(row["study"] for row in published):
            keep_study(store, study, [row for row in published if row["study"] == study])
        write_report(store, folder / "report.md")
    return (folder / "report.md").read_text(encoding="utf-8").splitlines()


def keep_study(store, study, rows) -> None:
    plan = STUDIES[study]
    # What was run once, and can no longer be: its results stay.
    names = dict.fromkeys(row["classifier"] for row in rows)
    known = {spec.name: spec for spec in plan.lineup}
    specs = {
        name: known.get(name, ClassifierSpec(name=name, make=f"plainrisk_lab.paper.variants:{name}")) for name in names
    }
    plan = msgspec.structs.replace(plan, classifiers=tuple(specs.values()))
    here = {row["dataset"] for row in rows}
    for name in here:
        store.put_data(name, name, np.tile([0, 1], 30).astype(np.uint8), 9)
    for row in rows:
        key = CellKey(row["dataset"], specs[row["classifier"]].key, plan.cv, plan.seed, int(row["fold"]))
        figures = {metric: float(row[metric]) for metric in METRICS if row[metric]}
        times = {name: float(row[name]) for name in ("fit_seconds", "score_seconds", "peak_mb")}
        store.put(Cell(key=key, status="done", figures=figures, **times))
    store.put_plan(plan, [DataSet(d.name, d.name if d.name in here else None) for d in plan.data])


def part(lines: list[str], start: str, stop: str) -> Iterator[str]:
    return iter(lines[lines.index(start) : lines.index(stop)])


# Sections that ask for nothing but figures. (Ranks by log loss hang on digits that results.csv does not have.)
FROM_FIGURES = {
    "## 1. The paper reproduced": "### 1.4 Calibration: the published tables and the definition",
    "#### LinARM2: when the second layer is fitted": "#### ARM1 on Japan and Australia: not explained",
    "### 1.6 Differences of pairs": "### 1.8 Reliability",
    "### What to take from it": "**log loss with ranks**",
    "### 2.2 Ranks": "### 2.5 Reliability",
}


def test_the_report_follows_from_its_results(report) -> None:
    kept = (RESULTS / "report.md").read_text(encoding="utf-8").splitlines()
    for start, stop in FROM_FIGURES.items():
        assert list(part(report, start, stop)) == list(part(kept, start, stop))


def test_the_page_on_smooth_shapes_follows_from_its_results(tmp_path) -> None:
    for name in ("results.csv", "smooth.csv"):
        shutil.copy(RESULTS / name, tmp_path)
    assert write_page(tmp_path).read_text(encoding="utf-8") == (RESULTS / "smooth.md").read_text(encoding="utf-8")


# The optimum is unique with a ridge; without one, and by SLSQP, digits hang on where a solver stops.
@pytest.mark.parametrize(
    ("study", "names"),
    [
        ("balanced", ("NNLR", "ARM1", "LinARM1", "ARM2", "MixLinARM1")),
        ("product", ("DirectARM1", "BinnedLR")),
    ],
)
def test_german_gives_its_results_again(published, tmp_path, study, names) -> None:
    plan = STUDIES[study]
    chosen = tuple(spec for spec in plan.lineup if spec.name in names)
    run(msgspec.structs.replace(plan, datasets=("german",), classifiers=chosen), tmp_path / "s.db", jobs=0)
    with Store(tmp_path / "s.db") as store:
        for metric in METRICS:
            table = study_table(store, study, metric)
            for name in names:
                kept = [r for r in published if (r["study"], r["dataset"], r["classifier"]) == (study, "german", name)]
                expected = np.mean([float(row[metric]) for row in kept])
                assert table.value("german", name) == pytest.approx(expected, abs=1e-5), (metric, name)


def test_the_command_runs_a_study_and_writes_its_report(tmp_path, monkeypatch, capsys) -> None:
    arm = ClassifierSpec(name="ARM1", options={"paper": True})
    small = msgspec.structs.replace(STUDIES["paper"], datasets=("german",), classifiers=(arm,), cv=2)
    monkeypatch.setitem(STUDIES, "paper", small)
    words = ["--store", str(tmp_path / "s.db"), "--output", str(tmp_path)]
    assert main(["run", "paper", "--jobs", "0", *words]) == 0
    assert "paper: 2 fits, 0 were there, 0 failed." in capsys.readouterr().out
    assert main(["report", *words]) == 0
    assert "1. The paper reproduced" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert main(["report", "--store", str(tmp_path / "none.db")]) == 2
    assert "does not exist" in capsys.readouterr().err
