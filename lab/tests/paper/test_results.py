"""docs/results: the report follows from the results beside it, and the classifiers of today give the results again."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from plainrisk.errors import DataError
from plainrisk_lab.paper.__main__ import main
from plainrisk_lab.paper.plans import STUDIES, narrowed
from plainrisk_lab.paper.published import paper_table
from plainrisk_lab.paper.report import write_report
from plainrisk_lab.paper.restore import restore
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
        times = {name: float(row[name]) for name in ("fit_seconds", "score_seconds", "peak_mb") if row[name]}
        store.put(Cell(key=key, status="done", figures=figures, **times))
    store.put_plan(plan, [DataSet(d.name, d.name if d.name in here else None) for d in plan.data])


def part(lines: list[str], start: str, stop: str) -> Iterator[str]:
    return iter(lines[lines.index(start) : lines.index(stop)])


# Sections that ask for nothing but figures. (Ranks by log loss hang on digits that results.csv does not have.)
FROM_FIGURES = {
    "### In short": "### 1.4 Calibration: the published tables and the definition",
    "#### LinARM2: when the second layer is fitted": "#### ARM1 on Japan and Australia: not explained",
    "### 1.6 Differences of pairs": "### 1.8 Reliability",
    "### What to take from it": "**log loss with ranks**",
    "### 2.2 Ranks": "### 2.5 Reliability",
}


def test_the_report_follows_from_its_results(report) -> None:
    kept = (RESULTS / "report.md").read_text(encoding="utf-8").splitlines()
    for start, stop in FROM_FIGURES.items():
        assert list(part(report, start, stop)) == list(part(kept, start, stop))
    # Why data sets are absent is a matter of the machine; which are is not.
    (ours, theirs) = (next(line for line in lines if line.startswith("**Coverage.**")) for lines in (report, kept))
    assert ours.split(" Not here")[0] == theirs.split(" Not here")[0]


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
    assert "paper: 2 fits, 0 were there, 0 failed." in capsys.readouterr().err
    assert main(["report", *words]) == 0
    assert "1. The paper reproduced" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert main(["report", "--store", str(tmp_path / "none.db")]) == 2
    assert "does not exist" in capsys.readouterr().err


# ---- the commands

NAMES = ("ARM1", "LinARM1", "MixARM1", "XGB")


def contents(path):
    """What a store holds but times, memory and versions."""
    with Store(path, create=False) as store:
        plan = store.plan("german")
        (data,) = store.sets("german")
        every = [c for spec in plan.lineup for c in store.cells(data.fingerprint, spec.key, plan.cv, 0, risks=True)]
        return [(c.key, c.status, c.figures, c.risks.tobytes()) for c in every]


def test_the_german_column_comes_out_bit_for_bit(tmp_path, capsys) -> None:
    pytest.importorskip("xgboost")
    words = ["table", "german", "--classifiers", *NAMES, "--folds", "3", "--metric", "auc", "ece", "--jobs", "0"]
    for name in ("first", "second"):
        assert main([*words, "--store", str(tmp_path / name)]) == 0
    first, second = contents(tmp_path / "first"), contents(tmp_path / "second")
    assert first == second
    assert len(first) == 12
    shown = capsys.readouterr().out
    assert "3 stratified folds, seed 0; the paper has 10." in shown
    assert f"/ {paper_table('auc').value('german', 'LinARM1'):.4f} (" in shown
    assert "**german: ece**" in shown
    assert "mean rank" not in shown  # of one data set
    assert shown.count("Ours is by the paper's definition; its tables are not") == 2
    assert ("LinARM2: both links of a fitted ARM2 replaced." in shown) == ("LinARM2" in NAMES)


def test_the_german_column_has_all_twelve_and_ten_folds() -> None:
    plan = STUDIES["german"]
    assert ([d.name for d in plan.data], len(plan.lineup), plan.cv) == (["german"], 12, 10)
    # The same fits as those of the study on all data sets, so a store shares them.
    assert {spec.key for spec in plan.lineup} == {spec.key for spec in STUDIES["paper"].lineup}


def test_plans_are_narrowed_and_linarm2_is_read_as_asked(capsys) -> None:
    plan = narrowed(STUDIES["paper"], ["heloc"], ["LinARM2"], 4, "refitted")
    (spec,) = plan.lineup
    assert (plan.cv, [d.name for d in plan.data]) == (4, ["heloc"])
    assert (spec.name, spec.make) == ("LinARM2", "plainrisk_lab.paper.variants:refitted_line")
    with pytest.raises(DataError, match=r"The study 'paper' has no data set 'helok'\. Did you mean 'heloc'"):
        narrowed(STUDIES["paper"], ["helok"])
    with pytest.raises(DataError, match="has no classifier 'ARM3'"):
        narrowed(STUDIES["paper"], classifiers=["ARM3"])
    assert main(["run", "papers"]) == 2
    assert "There is no study 'papers'. There is: paper," in capsys.readouterr().err


def test_results_are_read_back_into_a_store(published, tmp_path, capsys) -> None:
    kept = [row for row in published if (row["study"], row["dataset"]) == ("balanced", "german")]
    path = tmp_path / "some.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, kept[0])
        writer.writeheader()
        writer.writerows(kept)
    for n in (len(kept), 0):  # once, since they are there then
        assert main(["restore", str(path), "--store", str(tmp_path / "s.db")]) == 0
        assert f"{n:,} fits read into" in capsys.readouterr().out
    with Store(tmp_path / "s.db") as store:
        found = study_table(store, "balanced", "auc").value("german", "ARM1")
    assert found == pytest.approx(np.mean([float(r["auc"]) for r in kept if r["classifier"] == "ARM1"]), abs=1e-9)
    path.write_text(path.read_text(encoding="utf-8").replace("balanced,", "unknown,"), encoding="utf-8")
    with pytest.raises(DataError, match="there is no study 'unknown'"):
        restore(path, tmp_path / "s.db")


def test_study_report_reads_the_store_of_the_paper(tmp_path) -> None:
    """In a process of its own, where nothing else has named the metrics of the paper."""
    words = ["run", "german", "--classifiers", "ARM1", "--folds", "2", "--jobs", "0", "--store", str(tmp_path / "s.db")]
    assert main(words) == 0
    for command in ("report", "status"):
        code = [
            "-c",
            "from plainrisk.cli.main import main; main()",
            "study",
            command,
            "--store",
            str(tmp_path / "s.db"),
        ]
        done = subprocess.run([sys.executable, *code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "german" in done.stdout
