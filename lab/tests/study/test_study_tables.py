from __future__ import annotations

import csv
import io

import msgspec
import numpy as np
import pytest

from plainrisk.errors import DataError
from plainrisk_lab.compare import friedman, hodges_lehmann_table
from plainrisk_lab.study import Plan, Store, report, study_table, write_folds
from plainrisk_lab.study.store import Cell, CellKey, DataSet
from plainrisk_lab.study.tables import gaps, timings

# Figures of two folds: data set -> classifier -> AUCs.
AUCS = {
    "german": {"ARM1": (0.7, 0.8), "XGB": (0.6, 0.8), "NNLR": (0.9, 0.9)},
    "heloc": {"ARM1": (0.8, 0.8), "XGB": (0.7, 0.9), "NNLR": None},
}
PLAN = Plan(name="hand", datasets=("german", "heloc", "taiwan"), classifiers=("ARM1", "XGB", "NNLR"), cv=2)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "s.db") as store:
        sets = []
        for name, lines in AUCS.items():
            store.put_data(name, name, np.array([0, 1, 0, 0], dtype=np.uint8), 5)
            sets.append(DataSet(name, name))
            for spec in PLAN.lineup:
                for fold in range(2):
                    key = CellKey(name, spec.key, 2, 0, fold)
                    values = lines[spec.name]
                    if values is None:
                        store.put(Cell(key=key, status="failed", reason="it broke"))
                        continue
                    took = {"fit_seconds": 2.0, "score_seconds": 0.5, "peak_mb": 100.0 + fold}
                    found = {"risks": np.array([0.25, 0.5]), "figures": dict.fromkeys(PLAN.metrics, values[fold])}
                    cell = Cell(key=key, status="done", **took, **found)
                    store.put(cell)
        store.put_plan(PLAN, [*sets, DataSet("taiwan", None)])
        yield store


def test_means_spreads_and_gaps(store) -> None:
    table = study_table(store, "hand", "auc")
    assert (table.datasets, table.classifiers) == (("german", "heloc"), ("ARM1", "XGB", "NNLR"))
    np.testing.assert_allclose(table.mean, [[0.75, 0.7, 0.9], [0.8, 0.8, np.nan]])
    np.testing.assert_allclose(table.sd[0], [0.1 / 2**0.5, 0.2 / 2**0.5, 0.0], atol=1e-15)
    (gap,) = gaps(store, "hand")
    assert (gap.dataset, gap.classifier, gap.status, gap.reason) == ("heloc", "NNLR", "failed", "it broke")
    assert gap.folds == (0, 1)
    assert np.isnan(table.value("taiwan", "ARM1"))


def test_ranks_share_ties_and_know_the_direction(store) -> None:
    np.testing.assert_array_equal(study_table(store, "hand", "auc").ranks(), [[2, 3, 1], [1.5, 1.5, np.nan]])
    np.testing.assert_array_equal(study_table(store, "hand", "ece").ranks(), [[2, 1, 3], [1.5, 1.5, np.nan]])


def test_the_part_without_gaps(store) -> None:
    table = study_table(store, "hand", "auc")
    assert table.complete().datasets == ("german",)
    two = table.select(classifiers=("XGB", "ARM1", "unknown")).complete()
    assert (two.datasets, two.classifiers) == (("german", "heloc"), ("XGB", "ARM1"))
    results = two.results()
    np.testing.assert_allclose(results.values, [[0.7, 0.75], [0.8, 0.8]])
    assert results.classifiers == ("XGB", "ARM1")


def test_unknown_metric(store) -> None:
    with pytest.raises(DataError, match="no metric 'auk'"):
        study_table(store, "hand", "auk")


def test_where_the_time_went(store) -> None:
    german, heloc = timings(store, "hand", "dataset")
    assert (german.name, german.done, german.failed, german.missing) == ("german", 6, 0, 0)
    assert german.seconds == pytest.approx(6 * 2.5)
    assert german.peak_mb == 101.0
    assert (heloc.done, heloc.failed) == (4, 2)
    by_classifier = {t.name: t.seconds for t in timings(store, "hand", "classifier")}
    assert by_classifier == pytest.approx({"ARM1": 10.0, "XGB": 10.0, "NNLR": 5.0})


def test_every_fold_is_a_row(store, tmp_path) -> None:
    write_folds(store, ["hand"], tmp_path / "out.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert len(rows) == 12
    first, broken = rows[0], rows[-1]
    assert (first["dataset"], first["classifier"], first["fold"], first["auc"]) == ("german", "ARM1", "0", "0.7")
    assert (first["fit_seconds"], first["peak_mb"]) == ("2.000", "100")
    assert (broken["status"], broken["reason"], broken["auc"]) == ("failed", "it broke", "")


def test_the_report_as_data_and_as_text(store) -> None:
    data, text = report(store, "hand", ["auc"])
    (table,) = data["tables"]
    assert table["values"][1] == {
        "dataset": "german", "classifier": "XGB", "mean": 0.7, "sd": pytest.approx(0.2 / 2**0.5), "rank": 3.0
    }  # fmt: skip
    assert table["values"][-1]["mean"] is None
    assert data["without_result"][0]["reason"] == "it broke"
    assert "| XGB | 0.7000 (3) | 0.8000 (1.5) | 2.25 |" in text
    assert "| heloc | NNLR | failed | 0, 1 | it broke |" in text
    assert "Rank tests need two classifiers on two data sets without a gap." in text


def test_the_report_tests_ranks(store) -> None:
    plan = msgspec.structs.replace(PLAN, classifiers=("ARM1", "XGB"))
    store.put_plan(plan, store.sets("hand"))
    data, text = report(store, "hand", ["auc"])
    expected = friedman([[0.75, 0.7], [0.8, 0.8]])
    assert data["tables"][0]["mean_ranks"] == {"ARM1": 1.25, "XGB": 1.75}
    assert data["tables"][0]["friedman"]["statistic"] == pytest.approx(expected.statistic)
    (pair,) = data["tables"][0]["differences"]
    assert (pair["first"], pair["second"], pair["significant"]) == ("ARM1", "XGB", False)
    assert pair["difference"] == pytest.approx(0.025)
    assert expected.summary() in text
    assert hodges_lehmann_table({"ARM1": [0.75, 0.8], "XGB": [0.7, 0.8]}).to_markdown().strip() in text
