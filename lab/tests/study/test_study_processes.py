"""Workers that die, runners that are killed, two runners at once: the table is the same."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import msgspec
import numpy as np
import pytest

from plainrisk.errors import DataError
from plainrisk_lab.study import ClassifierSpec, Store, run, study_table
from plainrisk_lab.study.tables import gaps

SCRIPT = """
import sys
from plainrisk_lab.study import Plan, run
if __name__ == "__main__":
    run(Plan.from_json(sys.argv[1]), sys.argv[2], jobs=1)
"""
# Nobody waits so long; a test that fails says so in the end.
PATIENCE = 900
# In a long test by hand: STUDY_KILLS=10.
KILLS = int(os.environ.get("STUDY_KILLS", "1"))

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes by signal")


def table_of(path):
    with Store(path) as store:
        return study_table(store, "tiny", "auc")


def start(plan, store, folder):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    # In the background of a script interrupts are ignored, which a process would inherit.
    heed = (lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) if os.name == "posix" else None
    return subprocess.Popen([sys.executable, "-c", SCRIPT, plan.to_json(), str(store)], env=env, preexec_fn=heed)


def count_cells(path):
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            count = db.execute("select count(*) from cells").fetchone()[0]
        db.close()
    except sqlite3.OperationalError:  # not there yet
        return 0
    return count


def wait_for_cells(path, runner, at_least):
    deadline = time.monotonic() + PATIENCE
    while count_cells(path) < at_least and runner.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


@pytest.fixture
def slow_plan(plan, own_module):
    own = [ClassifierSpec(name=f"own {k}", make=f"{own_module}:slow", options={"shift": 0.01 * k}) for k in range(4)]
    return msgspec.structs.replace(plan, classifiers=("ARM1", "LinARM1", *own), cv=5)


def test_a_worker_that_dies_costs_one_cell(tmp_path, plan, own_module) -> None:
    deadly = ClassifierSpec(name="deadly", make=f"{own_module}:deadly")
    own = ClassifierSpec(name="own", make=f"{own_module}:rate", options={"shift": 0.1})
    mixed = msgspec.structs.replace(plan, datasets=plan.datasets[:1], classifiers=("ARM1", deadly, own), cv=2)
    summary = run(mixed, tmp_path / "s.db", jobs=1)
    assert (summary.fitted, summary.failed) == (6, 2)
    table = table_of(tmp_path / "s.db")
    with Store(tmp_path / "s.db") as store:
        (gap,) = gaps(store, "tiny")
    assert gap.reason == "The worker process died with exit code -9 (killed, perhaps out of memory)."
    calm = msgspec.structs.replace(mixed, classifiers=("ARM1", own))
    run(calm, tmp_path / "calm.db", jobs=0)
    np.testing.assert_array_equal(table.mean[:, [0, 2]], table_of(tmp_path / "calm.db").mean)


def test_killed_at_random_moments_the_table_is_the_same(tmp_path, slow_plan, own_module) -> None:
    run(slow_plan, tmp_path / "calm.db", jobs=0)
    killed, dice = tmp_path / "killed.db", random.Random(7)
    before = 0
    for _ in range(KILLS):
        runner = start(slow_plan, killed, tmp_path / "own")
        wait_for_cells(killed, runner, before + dice.randint(0, 2 * (slow_plan.n_fits - before) // (KILLS + 1)))
        time.sleep(dice.uniform(0.0, 0.05))
        runner.kill()
        runner.wait()
        before = count_cells(killed)
    assert start(slow_plan, killed, tmp_path / "own").wait(timeout=PATIENCE) == 0
    calm, after = table_of(tmp_path / "calm.db"), table_of(killed)
    assert not np.isnan(calm.mean).any()
    np.testing.assert_array_equal(after.mean, calm.mean)
    np.testing.assert_array_equal(after.sd, calm.sd)


def test_two_runners_at_once(tmp_path, slow_plan, own_module) -> None:
    run(slow_plan, tmp_path / "calm.db", jobs=0)
    shared = tmp_path / "shared.db"
    runners = [start(slow_plan, shared, tmp_path / "own") for _ in range(2)]
    assert [runner.wait(timeout=PATIENCE) for runner in runners] == [0, 0]
    np.testing.assert_array_equal(table_of(shared).mean, table_of(tmp_path / "calm.db").mean)
    assert count_cells(shared) == slow_plan.n_fits


def test_an_interrupt_stops_cleanly(tmp_path, slow_plan, own_module) -> None:
    plan = msgspec.structs.replace(slow_plan, classifiers=slow_plan.classifiers[2:], cv=40)
    store = tmp_path / "s.db"
    runner = start(plan, store, tmp_path / "own")
    wait_for_cells(store, runner, 4)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(timeout=PATIENCE) != 0
    count = count_cells(store)
    assert 4 <= count < plan.n_fits
    time.sleep(0.3)
    assert count_cells(store) == count  # nobody writes any more


def test_a_worker_that_is_terminated_unwinds_and_ends_the_run(tmp_path, plan, own_module) -> None:
    own = ClassifierSpec(name="own", make=f"{own_module}:terminated", options={"folder": str(tmp_path)})
    mixed = msgspec.structs.replace(plan, datasets=plan.datasets[:1], classifiers=("ARM1", own), cv=2)
    with pytest.raises(DataError, match=r"A worker process was terminated\. What was finished is kept"):
        run(mixed, tmp_path / "s.db", jobs=1)
    assert (tmp_path / "unwound").exists()
    with Store(tmp_path / "s.db") as store:
        assert {gap.status for gap in gaps(store, "tiny")} == {"missing"}, "a fit that was ended has not failed"


def test_a_script_that_does_not_guard_its_main_part_is_told(tmp_path, plan) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    words = [sys.executable, script, plan.to_json(), tmp_path / "s.db"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert 'call run under if __name__ == "__main__":' in done.stderr
