from __future__ import annotations

import sqlite3
import threading

import numpy as np
import pytest

from plainrisk.errors import DataError, OutputError
from plainrisk_lab.study import Plan, Store
from plainrisk_lab.study.store import Cell, CellKey, DataSet

KEY = CellKey("f00", "{}", 3, 0, 1)


def test_a_cell_comes_back_whole(tmp_path, rng) -> None:
    risks = rng.random(50)
    with Store(tmp_path / "s.db") as store:
        store.put(
            Cell(key=KEY, status="done", note="n", fit_seconds=2.0, score_seconds=0.25,
                 peak_mb=3.0, versions="{}", finished="now", risks=risks, figures={"auc": 0.75})
        )  # fmt: skip
    with Store(tmp_path / "s.db", create=False) as store:
        (cell,) = store.cells("f00", "{}", 3, 0, risks=True)
        assert (cell.key, cell.status, cell.note, cell.peak_mb) == (KEY, "done", "n", 3.0)
        assert cell.seconds == 2.25
        assert cell.figures == {"auc": 0.75}
        np.testing.assert_array_equal(cell.risks, risks)
        assert store.cells("f00", "{}", 3, 0)[0].risks is None


def test_a_result_is_never_overwritten_but_a_failure_is(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.put(Cell(key=KEY, status="failed", reason="first"))
        store.put(Cell(key=KEY, status="done", risks=np.array([0.5]), figures={"auc": 0.5}))
        store.put(Cell(key=KEY, status="skipped", reason="late"))
        (cell,) = store.cells("f00", "{}", 3, 0)
        assert (cell.status, cell.reason, cell.figures) == ("done", "", {"auc": 0.5})
        store.put(Cell(key=KEY, status="done", note="late", figures={"ks": 0.25}))
        assert store.cells("f00", "{}", 3, 0)[0].note == ""
        assert store.cells("f00", "{}", 3, 0)[0].figures == {"auc": 0.5, "ks": 0.25}


def test_many_writers_at_once(tmp_path) -> None:
    Store(tmp_path / "s.db").close()

    def write(worker: int) -> None:
        with Store(tmp_path / "s.db") as store:
            for fold in range(20):
                key = CellKey("f00", "{}", 20, 0, fold)
                store.put(Cell(key=key, status="done", risks=np.array([fold / 20]), figures={"auc": fold / 20}))

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(tmp_path / "s.db") as store:
        cells = store.cells("f00", "{}", 20, 0)
        assert [c.figures["auc"] for c in cells] == [fold / 20 for fold in range(20)]
        assert sqlite3.connect(store.path).execute("pragma integrity_check").fetchone() == ("ok",)


def test_folds_are_stratified(tmp_path) -> None:
    target = np.array([0, 1] * 30, dtype=np.uint8)
    with Store(tmp_path / "s.db") as store:
        store.put_data("f00", "toy", target, 4, "a note")
        first = store.fold_of("f00", 5, 0)
        np.testing.assert_array_equal(store.fold_of("f00", 5, 0), first)
        assert (store.fold_of("f00", 5, 1) != first).any()
        for fold in range(5):
            assert target[first == fold].sum() == 6
        with pytest.raises(DataError, match="31 folds need 31 rows of each outcome; the rarer one has 30"):
            store.fold_of("f00", 31, 0)


def test_plans_and_their_data_sets(tmp_path) -> None:
    plan = Plan(name="p", datasets=("german", "heloc"), classifiers=("ARM1",))
    here = DataSet("german", "f00")
    gone = DataSet("heloc", None, "ask")
    with Store(tmp_path / "s.db") as store:
        store.put_data("f00", "german", np.array([0, 1, 1], dtype=np.uint8), 20)
        store.put_plan(plan, [here, gone])
        assert store.plan("p") == plan
        assert [(d.name, d.rows, d.positives, d.note) for d in store.sets("p")] == [
            ("german", 3, 2, ""),
            ("heloc", None, None, "ask"),
        ]
        with pytest.raises(DataError, match=r"no study 'q' in it\. There is: p"):
            store.plan("q")


def test_files_that_are_no_store(tmp_path) -> None:
    with pytest.raises(DataError, match=r"does not exist\. Run a study first"):
        Store(tmp_path / "none.db", create=False)
    for path, message in [
        (tmp_path / "no" / "s.db", r"the folder .* does not exist"),
        (tmp_path, "it is a folder"),
        ("/dev/null", "it is a device or a pipe"),
        ("a\0b", "is not the name of a file"),
    ]:
        with pytest.raises(OutputError, match=message):
            Store(path)
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(DataError, match="cannot be used as a store"):
        Store(tmp_path / "text.db")
    with Store(tmp_path / "new.db") as store:
        store._all("update meta set value = '99'")
    with pytest.raises(DataError, match="has format 99"):
        Store(tmp_path / "new.db")


def test_a_damaged_file_is_said(tmp_path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as store:
        store.put_data("f00", "toy", np.array([0, 1], dtype=np.uint8), 4)
        store._all("update data set outcomes = x'00ff'")
        with pytest.raises(DataError, match=r"s\.db is damaged: an array cannot be read"):
            store.outcomes("f00")
        store._all("insert into studies values ('cut', '{\"name\": '), ('wrong', '{\"name\": 7}')")
        with pytest.raises(DataError, match="the plan is damaged: it is not valid JSON"):
            store.plan("cut")
        with pytest.raises(DataError, match="the plan is not a study plan: Expected `str`"):
            store.plan("wrong")
        store._all("pragma wal_checkpoint(truncate)")
    content = bytearray(path.read_bytes())
    content[1000:] = b"\xff" * (len(content) - 1000)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"s\.db cannot be used as a store: .*malformed"), Store(path) as store:
        store.plan("tiny")
