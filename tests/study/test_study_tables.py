from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from plainrisk.errors import DataError
from plainrisk.study import Plan, Store, paper_table, study_table, write_csv
from plainrisk.study.store import Cell, CellKey, DataSet
from plainrisk.study.tables import timings

# Figures of two folds: data set -> classifier -> AUCs.
AUCS = {
    "german": {"ARM1": (0.7, 0.8), "XGB": (0.6, 0.8), "NNLR": (0.9, 0.9)},
    "heloc": {"ARM1": (0.8, 0.8), "XGB": (0.7, 0.9), "NNLR": None},
}
PLAN = Plan(name="hand", datasets=("german", "heloc", "taiwan"), classifiers=("ARM1", "XGB", "NNLR"), folds=2)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "s.db") as store:
        sets = []
        for name, lines in AUCS.items():
            store.put_data(name, name, np.array([0, 1, 0, 0], dtype=np.uint8), 5)
            sets.append(DataSet(name, name, "present", "", None, None, None))
            for spec in PLAN.lineup:
                for fold in range(2):
                    key = CellKey(name, spec.key("product"), 2, 0, fold)
                    values = lines[spec.name]
                    if values is None:
                        store.put(Cell(key=key, status="failed", reason="it broke"))
                        continue
                    took = {"fit_seconds": 3.0, "shared_seconds": 1.0, "score_seconds": 0.5, "peak_mb": 100.0 + fold}
                    found = {"risks": np.array([0.25, 0.5]), "figures": dict.fromkeys(PLAN.metrics, values[fold])}
                    cell = Cell(key=key, status="done", **took, **found)
                    store.put(cell)
        store.put_plan(PLAN, [*sets, DataSet("taiwan", None, "absent", "", None, None, None)])
        yield store


def test_means_spreads_and_gaps(store) -> None:
    table = study_table(store, "hand", "auc")
    assert (table.datasets, table.classifiers) == (("german", "heloc"), ("ARM1", "XGB", "NNLR"))
    np.testing.assert_allclose(table.mean, [[0.75, 0.7, 0.9], [0.8, 0.8, np.nan]])
    np.testing.assert_allclose(table.sd[0], [0.1 / 2**0.5, 0.2 / 2**0.5, 0.0], atol=1e-15)
    (gap,) = table.gaps
    assert (gap.dataset, gap.classifier, gap.status, gap.reason) == ("heloc", "NNLR", "failed", "it broke")
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
    with pytest.raises(DataError, match="no table of 'ks'"):
        paper_table("ks")


def test_where_the_time_went(store) -> None:
    german, heloc = timings(store, "hand", "dataset")
    assert (german.name, german.done, german.failed, german.missing) == ("german", 6, 0, 0)
    assert german.seconds == pytest.approx(6 * 2.5)
    assert german.peak_mb == 101.0
    assert (heloc.done, heloc.failed) == (4, 2)
    by_classifier = {t.name: t.seconds for t in timings(store, "hand", "classifier")}
    assert by_classifier == pytest.approx({"ARM1": 10.0, "XGB": 10.0, "NNLR": 5.0})


def test_csv(store, tmp_path) -> None:
    write_csv(store, ["hand"], tmp_path / "out.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert len(rows) == 6
    first, broken = rows[0], rows[-1]
    assert (first["dataset"], first["classifier"], first["rows"], first["positive_rate"]) == (
        "german",
        "ARM1",
        "4",
        "0.250000",
    )
    assert (first["auc_mean"], first["auc_sd"], first["fit_seconds"]) == ("0.750000", "0.070711", "3.000000")
    assert (broken["status"], broken["reason"], broken["auc_mean"]) == ("failed", "it broke", "")


def test_published_tables_are_whole() -> None:
    for metric in ("auc", "ece", "mce", "certainty"):
        table = paper_table(metric)
        assert table.mean.shape == (24, 12)
        assert ((table.mean >= 0) & (table.mean <= 1)).all()
    assert paper_table("ece").value("gmsc", "NNLR") == 0.2166


@pytest.mark.parametrize("metric", ["auc", "ece", "mce", "certainty"])
def test_published_tables_are_the_paper_s(paper_folder, metric) -> None:
    header, *rows = csv.reader((paper_folder / f"{metric}.csv").read_text().splitlines())
    table = paper_table(metric)
    assert table.classifiers == tuple(header[1:])
    for name, *cells in rows:
        for classifier, cell in zip(header[1:], cells, strict=True):
            assert table.value(name.lower(), classifier) == float(cell)
