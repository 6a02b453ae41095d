"""Which tasks there are, and which are left out by rule."""

from __future__ import annotations

import pytest

from benchmarks import plan, run, store
from benchmarks.adapters import METHODS
from benchmarks.plan import Task, Wanted

ALL = Wanted([*plan.SHAPES, *plan.REAL], list(METHODS), plan.PARTS)


def row(task, **values):
    return {task.key: {"key": task.key, **task.as_dict(), **values}}


def test_every_task_has_a_key_of_its_own():
    keys = [t.key for t in plan.tasks(ALL)]
    assert len(set(keys)) == len(keys)


def test_shapes_go_from_small_to_large():
    assert plan.by_size(["S4", "S1", "GMSC", "S3"], ALL) == ["S1", "GMSC", "S3", "S4"]


def test_only_boosted_trees_and_ours_on_the_largest_and_pygam_on_the_smallest():
    fits = [t for t in plan.tasks(ALL) if t.part == "fit"]
    assert {t.method for t in fits if t.at == "S5"} == set(plan.LARGE)
    assert [t.at for t in fits if t.method == "pyGAM"] == ["S1"]


def test_a_time_out_speaks_for_larger_shapes_only():
    done = row(Task("fit", "S3", "EBM"), error="not done in 240 s", over=240.0)
    assert plan.reason_not_to(Task("fit", "S4", "EBM"), ALL, done) == "not run: S3 already took > 240 s"
    assert plan.reason_not_to(Task("fit", "S2", "EBM"), ALL, done) is None
    assert plan.reason_not_to(Task("fit", "S4", "XGBoost"), ALL, done) is None


def test_a_time_out_speaks_for_its_own_sweep_only():
    done = row(Task("growth", "rows=1000", "ARM1"), error="not done", over=5.0)
    assert plan.reason_not_to(Task("growth", "rows=3000", "ARM1"), ALL, done) == "not run: rows=1000 already took > 5 s"
    assert plan.reason_not_to(Task("growth", "features=3000", "ARM1"), ALL, done) is None


def test_dense_matrices_beyond_the_limit_are_not_tried():
    reason = plan.reason_not_to(Task("fit", "S4", "SLSQP"), ALL, {})
    assert reason is not None
    assert reason.startswith("not run: needs 4.6 GB")
    assert plan.reason_not_to(Task("fit", "S4", "glum"), ALL, {}) is None


def test_ten_folds_of_what_is_slow_once_are_not_tried():
    slow = row(Task("fit", "S2", "EBM"), seconds=80.0)
    failed = row(Task("fit", "S2", "glum"), error="ImportError: no glum")
    assert plan.reason_not_to(Task("cv", "S2", "EBM"), ALL, slow) == "not run: one fit took 80 s"
    assert plan.reason_not_to(Task("cv", "S2", "glum"), ALL, failed) == "not run: one fit: ImportError: no glum"
    assert plan.reason_not_to(Task("cv", "S1", "EBM"), ALL, slow) is None


def test_the_largest_shape_is_the_last_point_of_the_sweep():
    last = next(t for t in plan.tasks(ALL) if t.at == "rows=10000000" and t.method == "ARM1")
    done = row(Task("fit", "S5", "ARM1", plan.data_name("S5", ALL)), seconds=9.0, peak_mb=5.0)
    assert plan.measured_already(last, done) == {"seconds": 9.0, "peak_mb": 5.0, "same_as": "S5"}
    assert plan.measured_already(last, {}) is None
    other = next(t for t in plan.tasks(ALL) if t.at == "rows=3000000" and t.method == "ARM1")
    assert plan.measured_already(other, done) is None


def test_a_store_goes_on_where_it_was(tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    store.add(path, {"key": "a", "seconds": 1.0})
    store.add(path, {"key": "a", "seconds": 2.0})
    with path.open("a") as file:
        file.write('{"key": "b", "sec')  # the run was killed here
    assert store.kept(path) == {"a": {"key": "a", "seconds": 2.0}}


def test_errors_are_tried_again_but_time_outs_are_not():
    assert not store.is_final({"error": "ImportError: no glum"})
    assert store.is_final({"error": "not done in 240 s", "over": 240.0})
    assert store.is_final({"error": "not run: needs 5 GB"})
    assert store.is_final({"seconds": 1.0})
    assert store.is_final({"seconds": 1.0, "note": "not done in 240 s (judge)"})
    assert not store.is_final({"seconds": 1.0, "note": "ImportError: no glum"})


def test_a_full_run_writes_where_it_is_committed_and_trials_do_not():
    full, quick, trial = run.parse([]), run.parse(["--quick"]), run.parse(["--scale", "0.01"])
    assert (full.output.as_posix(), full.growth_page.as_posix()) == ("docs/benchmarks", "docs/growth.md")
    assert full.shapes == [*plan.SHAPES, *plan.REAL]
    assert (quick.repeats, quick.timeout, quick.shapes) == (1, 60.0, list(run.QUICK_SHAPES))
    for other in (quick, trial):
        assert other.output.parts[0] == other.growth_page.parts[0] == other.store.parts[0] == "out"
    assert len({full.store, quick.store, trial.store}) == 3


def test_unknown_shapes_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        run.parse(["--shapes", "S9"])
    assert "invalid choice: 'S9'" in capsys.readouterr().err
