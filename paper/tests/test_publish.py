"""The folder of results, gaps by fold, duels and the order of rows: each against figures worked out by hand."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from plainrisk.errors import DataError
from plainrisk.evaluate.metrics import reliability
from plainrisk.study import Plan, Store, write_folds, write_results
from plainrisk.study.head_to_head import best_grid, duels, told
from plainrisk.study.pairing import Spread, shuffled
from plainrisk.study.store import Cell, CellKey, DataSet
from plainrisk.study.tables import StudyTable, fold_gaps


@pytest.fixture
def store(tmp_path):
    """One data set, two classifiers, three folds: one failed, one was never run."""
    plan = Plan(name="small", datasets=("german",), classifiers=("ARM1", "XGB"), folds=3, metrics=("auc", "ece"))
    y = np.tile([0, 1], 15).astype(np.uint8)
    with Store(tmp_path / "s.db") as store:
        store.put_data("f", "german", y, 4)
        store.fold_of("f", 3, 0)
        for spec in plan.lineup:
            for fold in range(3):
                key = CellKey("f", spec.key("product"), 3, 0, fold)
                if spec.name == "XGB" and fold == 1:
                    store.put(Cell(key=key, status="failed", reason="it broke, twice"))
                elif spec.name == "ARM1" or fold == 0:
                    facts = {
                        "fit_seconds": 0.12345,
                        "score_seconds": 0.5,
                        "peak_mb": 99.6,
                        "versions": '{"numpy": "9"}',
                    }
                    figures = {"auc": 0.5 + fold / 10, "ece": 1 / 3}
                    store.put(Cell(key=key, status="done", risks=np.full(10, 0.5), figures=figures, **facts))
        store.put_plan(plan, [DataSet("german", "f", "present", "", None, None, None)])
        yield store


def test_every_fold_is_a_row(store, tmp_path) -> None:
    write_folds(store, ["small"], tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r["classifier"], r["fold"], r["status"]) for r in rows] == [
        ("ARM1", "0", "done"),
        ("ARM1", "1", "done"),
        ("ARM1", "2", "done"),
        ("XGB", "0", "done"),
        ("XGB", "1", "failed"),
        ("XGB", "2", "missing"),
    ]
    assert (rows[1]["auc"], rows[1]["ece"], rows[1]["fit_seconds"], rows[1]["peak_mb"]) == (
        "0.6",
        "0.333333",
        "0.123",
        "100",
    )
    assert (rows[4]["reason"], rows[4]["auc"]) == ("it broke, twice", "")


def test_gaps_by_fold(store) -> None:
    found = [(g.classifier, g.status, g.folds) for g in fold_gaps(store, "small")]
    assert found == [("XGB", "failed", (1,)), ("XGB", "missing", (2,))]


def test_a_folder_holds_all_there_is_to_publish(store, tmp_path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        write_results(store, tmp_path / "nowhere")
    folder = tmp_path / "results"
    folder.mkdir()
    written = write_results(store, folder)
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in written)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "`plainrisk study run small --store study.db --jobs 2`" in text
    assert "| small | XGB | failed | 1 | German (fold 1) | it broke, twice |" in text
    assert "small: numpy 9." in text
    assert str(tmp_path) not in text
    before = [p.read_bytes() for p in written]
    assert [p.read_bytes() for p in write_results(store, folder)] == before


def test_the_recipe_in_another_order() -> None:
    """Each order gives the figures of the recipe on rows so ordered."""
    rng = np.random.default_rng(3)
    outcome, risk = (rng.random(40) < 0.4).astype(np.uint8), rng.random(40)
    found = shuffled(outcome, risk, 4, np.random.default_rng(8))
    again = np.random.default_rng(8)
    for line in found:
        order = again.permutation(40)
        pairs = [(p, int(outcome[order][(2 * i + k) % 40])) for i, r in enumerate(risk[order]) for k, p in
                 enumerate((1 - r, r))]  # fmt: skip
        table = reliability([o for _, o in pairs], [p for p, _ in pairs])
        assert line == pytest.approx([table.expected_error / 2, table.maximum_error], abs=1e-12)
    assert len({tuple(line) for line in found}) == 4
    assert Spread(0.1, 0.2, 0.20004).inside
    assert not Spread(0.1, 0.2, 0.2002).inside


def table_of(mean: np.ndarray, classifiers: tuple[str, ...], metric: str = "auc") -> StudyTable:
    names = tuple(f"d{k}" for k in range(len(mean)))
    return StudyTable(metric, names, classifiers, mean, np.zeros_like(mean))


def test_a_duel_counts_and_adjusts() -> None:
    rival = np.linspace(0.6, 0.8, 8)
    mean = np.column_stack([rival + 0.01, rival, rival + np.tile([0.02, -0.02], 4)])
    found = duels(table_of(mean, ("ours", "weak", "even")), ["ours", "absent"], ["weak", "even"])
    first, second = found
    assert (first.rival, first.won, first.lost, first.better) == ("weak", 8, 0, True)
    assert first.difference == pytest.approx(0.01)
    assert first.p_value == pytest.approx(2 * 2 / 2**8)
    assert first.significant
    assert (second.won, second.lost) == (4, 4)
    assert not second.significant
    assert "ahead of weak by 0.0100 (8 won, 0 lost)" in told(found)
    assert told(found).endswith("significant against weak")


def test_lower_is_better_turns_a_duel() -> None:
    rival = np.linspace(0.2, 0.3, 5)
    (duel,) = duels(table_of(np.column_stack([rival - 0.01, rival]), ("ours", "r"), "ece"), ["ours"], ["r"])
    assert (duel.won, duel.lost, duel.better) == (5, 0, True)
    assert duel.difference == pytest.approx(-0.01)


def test_the_best_of_each_kind() -> None:
    mean = np.array([[0.7, 0.8, 0.75], [0.7, np.nan, 0.65]])
    grid = best_grid(table_of(mean, ("a", "b", "c")), {"one": ("a", "b"), "two": ("c",)})
    shown = [[(cell.text, cell.below, cell.bold) for cell in row[1:]] for row in grid.rows]
    assert shown == [
        [("0.8000", "b", True), ("0.7500", "c", False)],
        [("0.7000", "a", True), ("0.6500", "c", False)],
    ]
