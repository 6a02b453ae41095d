from __future__ import annotations

import importlib
import warnings
from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from plainrisk import Schema, make_classifier
from plainrisk.errors import SchemaError
from plainrisk_lab.study import METRICS, ClassifierSpec, Metric, Progress, Store, run, study_table
from plainrisk_lab.study.tables import gaps

from_plan = msgspec.structs.replace


def by_hand(book, make, options):
    """The AUC of every fold by scikit-learn's own means."""
    frame = pl.read_csv(book.data.file)
    schema = Schema.load(book.data.schema)
    y = (frame["bad"] == "defaulted").to_numpy().astype(int)
    out = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(y, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make_classifier(make, schema, **options).fit(frame[train], frame["bad"].to_numpy()[train])
        out.append(roc_auc_score(y[test], model.form_.risk(frame[test])))
    return out


@pytest.mark.parametrize("options", [{}, {"paper": True}], ids=["ours", "paper"])
def test_figures_are_those_of_plain_cross_validation(tmp_path, plan, books, options) -> None:
    names = ("ARM1", "LinARM1", "BandARM1")
    plan = from_plan(plan, classifiers=tuple(ClassifierSpec(name=name, options=options) for name in names))
    summary = run(plan, tmp_path / "s.db", jobs=0)
    assert (summary.fitted, summary.kept, summary.failed, summary.skipped) == (18, 0, 0, 0)
    with Store(tmp_path / "s.db") as store:
        table = study_table(store, "tiny", "auc")
    for book in books:
        for name in names:
            expected = np.mean(by_hand(book, name, options))
            assert table.value(book.data.name, name) == pytest.approx(expected, abs=1e-12)


def test_only_what_is_missing_is_fitted(tmp_path, plan) -> None:
    store = tmp_path / "s.db"
    small = from_plan(plan, datasets=plan.datasets[:1], metrics=("auc",))
    assert run(small, store, jobs=0).fitted == 6
    assert run(small, store, jobs=0).fitted == 0
    assert run(from_plan(small, datasets=plan.datasets), store, jobs=0).fitted == 6
    more = from_plan(small, datasets=plan.datasets, classifiers=(*plan.classifiers, "DirectARM1"))
    assert run(more, store, jobs=0).fitted == 6
    renamed = from_plan(more, name="other")
    assert run(renamed, store, jobs=0).fitted == 0
    assert run(from_plan(more, seed=1), store, jobs=0).fitted == 18


def test_a_new_metric_needs_no_fit(tmp_path, plan) -> None:
    store = tmp_path / "s.db"
    run(plan, store, jobs=0)
    lean = from_plan(plan, name="lean", metrics=("auc",), seed=5)
    run(lean, store, jobs=0)
    with Store(store) as kept:
        whole = study_table(kept, "tiny", "brier")
        kept._all("delete from figures where metric = 'brier'")
        assert np.isnan(study_table(kept, "lean", "ks").mean).all()
    assert run(plan, store, jobs=0).fitted == 0
    assert run(from_plan(lean, metrics=("auc", "ks")), store, jobs=0).fitted == 0
    with Store(store) as kept:
        # The same figures as those taken at the time of the fit.
        np.testing.assert_array_equal(study_table(kept, "tiny", "brier").mean, whole.mean)
        assert not np.isnan(study_table(kept, "lean", "ks").mean).any()
        assert np.isnan(study_table(kept, "lean", "ece").mean).all()


def test_a_metric_that_fails_is_a_failure(tmp_path, plan, monkeypatch) -> None:
    def refuse(y, p):
        raise ValueError("not today")

    monkeypatch.setitem(METRICS, "odd", Metric("odd", "odd", True, refuse))
    one = from_plan(plan, datasets=plan.datasets[:1], classifiers=("ARM1",), metrics=("auc", "odd"))
    assert run(one, tmp_path / "s.db", jobs=0).failed == 3
    with Store(tmp_path / "s.db") as store:
        assert gaps(store, "tiny")[0].reason == "ValueError: not today"


def test_changed_rows_are_other_rows(tmp_path, plan, books) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    for suffix in ("csv", "toml"):
        (folder / f"north.{suffix}").write_bytes((books[0].folder / f"north.{suffix}").read_bytes())
    data = from_plan(books[0].data, file=str(folder / "north.csv"), schema=str(folder / "north.toml"))
    one = from_plan(plan, datasets=(data,))
    store = tmp_path / "s.db"
    assert run(one, store, jobs=0).fitted == 6
    lines = (folder / "north.csv").read_text().splitlines()
    (folder / "north.csv").write_text("\n".join(lines[:-1]) + "\n")
    assert run(one, store, jobs=0).fitted == 6


def test_failures_are_rows(tmp_path, plan, own_module) -> None:
    broken = ClassifierSpec(name="broken", make=f"{own_module}:broken")
    lost = ClassifierSpec(name="lost", make=f"{own_module}:lost")
    mixed = from_plan(plan, classifiers=(broken, lost, "ARM1"))
    store = tmp_path / "s.db"
    summary = run(mixed, store, jobs=0)
    assert (summary.fitted, summary.failed) == (18, 12)
    assert run(mixed, store, jobs=0).fitted == 0
    assert run(mixed, store, jobs=0, retry=True).fitted == 12
    with Store(store) as kept:
        table = study_table(kept, "tiny", "auc")
        assert np.isnan(table.mean[:, :2]).all()
        assert not np.isnan(table.mean[:, 2]).any()
        reasons = {gap.classifier: (gap.status, gap.reason) for gap in gaps(kept, "tiny")}
    assert reasons["broken"] == ("failed", "ValueError: this one never fits")
    assert "cannot be found" in reasons["lost"][1]


def test_risks_that_are_none_are_a_failure(tmp_path, plan, own_module) -> None:
    wild = ClassifierSpec(name="wild", make=f"{own_module}:wild")
    one = from_plan(plan, datasets=plan.datasets[:1], classifiers=(wild,))
    assert run(one, tmp_path / "s.db", jobs=0).failed == 3


def test_a_missing_package_is_skipped_until_it_is_there(tmp_path, plan, own_module) -> None:
    store = tmp_path / "s.db"
    late = ClassifierSpec(name="late", make="package_to_come:rate")
    with_late = from_plan(plan, classifiers=("ARM1", late))
    summary = run(with_late, store, jobs=0)
    assert (summary.fitted, summary.skipped) == (12, 6)
    with Store(store) as kept:
        gap = gaps(kept, "tiny")[0]
        assert (gap.classifier, gap.status, gap.reason) == ("late", "skipped", "package_to_come is not installed.")
    (tmp_path / "own" / "package_to_come.py").write_text(f"from {own_module} import rate\n")
    importlib.invalidate_caches()
    summary = run(with_late, store, jobs=0)
    assert (summary.fitted, summary.kept, summary.skipped) == (6, 6, 0)


def test_an_absent_data_set_is_said_and_left_out(tmp_path, plan, monkeypatch) -> None:
    monkeypatch.setenv("PLAINRISK_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    wide = from_plan(plan, datasets=(*plan.datasets[:1], "taiwan"))
    summary = run(wide, tmp_path / "s.db", jobs=0)
    assert (summary.fitted, summary.absent) == (6, ("taiwan",))
    with Store(tmp_path / "s.db") as store:
        assert study_table(store, "tiny", "auc").datasets == ("north",)
        assert "taiwan is not on this machine" in store.sets("tiny")[1].note


def test_a_wrong_file_is_a_row_if_it_has_a_name_and_an_error_if_it_is_one_s_own(tmp_path, plan, monkeypatch) -> None:
    monkeypatch.setenv("PLAINRISK_DATA", str(tmp_path))
    (tmp_path / "UCI_Credit_Card.csv").write_text("a,b\n1,2\n")
    wide = from_plan(plan, datasets=(*plan.datasets[:1], "taiwan"))
    assert run(wide, tmp_path / "s.db", jobs=0).absent == ("taiwan",)
    with Store(tmp_path / "s.db") as store:
        assert "UCI_Credit_Card.csv" in store.sets("tiny")[1].note
    own = from_plan(plan.data[0], file=str(tmp_path / "UCI_Credit_Card.csv"))
    with pytest.raises(SchemaError, match="not in the data"):
        run(from_plan(plan, datasets=(own,)), tmp_path / "s.db", jobs=0)


def test_progress_counts_up(tmp_path, plan) -> None:
    told: list[Progress] = []
    run(plan, tmp_path / "s.db", jobs=0, progress=told.append)
    assert [p.done for p in told] == list(range(13))
    assert {p.total for p in told} == {12}


def test_the_larger_data_set_goes_first(tmp_path, plan) -> None:
    told: list[Progress] = []
    turned = from_plan(plan, datasets=plan.datasets[::-1])
    run(turned, tmp_path / "s.db", jobs=0, progress=told.append)
    names = [p.data for p in told[1:]]
    assert names == sorted(names)  # north has more rows than south
    assert [a for a, b in pairwise(names) if a != b] == ["north"]


def test_classifiers_of_others(tmp_path, plan) -> None:
    pytest.importorskip("lightgbm")
    light = ClassifierSpec(name="LightGBM", make="lightgbm:LGBMClassifier", options={"n_jobs": 1, "verbose": -1})
    trees = ClassifierSpec(name="trees", make="sklearn.ensemble:HistGradientBoostingClassifier")
    one = from_plan(plan, datasets=plan.datasets[:1], classifiers=(light, trees), cv=2)
    assert run(one, tmp_path / "s.db", jobs=0).failed == 0
    with Store(tmp_path / "s.db") as store:
        assert (study_table(store, "tiny", "auc").mean > 0.6).all()


def test_cells_are_plain_data(tmp_path, plan) -> None:
    run(plan, tmp_path / "s.db", jobs=0)
    with Store(tmp_path / "s.db") as store:
        data = store.sets("tiny")[0]
        (cell, *_) = store.cells(data.fingerprint, plan.lineup[0].key, 3, 0, risks=True)
        fold_of = store.fold_of(data.fingerprint, 3, 0)
        assert len(cell.risks) == (fold_of == 0).sum()
        assert '"plainrisk"' in cell.versions
        assert cell.finished.endswith("+00:00")
        assert replace(cell, risks=None).figures.keys() == set(plan.metrics)
