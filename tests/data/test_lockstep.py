"""Several pieces of work in step: the results of each alone, in fewer passes, and no work left behind by an error."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.data.lockstep import kept_in_step, rows_in_step
from plainrisk.data.rows import Batches
from plainrisk.data.spool import Spool
from plainrisk.errors import DataError
from plainrisk.totals import once


def counted(frame: pl.DataFrame, size: int) -> tuple[Batches, list[str]]:
    """Rows in batches, and the tasks of the passes over them."""
    passes: list[str] = []

    def read(columns):
        return (frame[start : start + size].select(columns) for start in range(0, frame.height, size))

    def progress(task, done, total):
        if done == total:
            passes.append(task)

    return Batches(tuple(frame.columns), frame.height, read, progress), passes


@pytest.fixture
def rows():
    table = pl.DataFrame({name: np.arange(10) * scale for name, scale in (("a", 1.0), ("b", 2.0), ("c", 3.0))})
    return counted(table, 4)


def work(name, times):
    """Add up a column several times, then keep it and add up what was kept."""

    def run(rows):
        found = [rows.totals([lambda f: f.numbers(name).sum()], [name], f"{name} {k}")[0] for k in range(times)]
        kept = rows.keep(lambda frame: (frame.numbers(name), np.ones(1)), [name], f"keep {name}")
        return found, kept.total(lambda number, arrays: (float(arrays[0].sum()), float(arrays[1][0])))

    return run


def test_each_finds_what_it_finds_alone_in_the_passes_of_the_longest(rows):
    stored, passes = rows
    works = [work("a", 1), work("b", 3), work("c", 3)]
    together = rows_in_step(stored, works)
    assert together == [([45.0], (45.0, 3.0)), ([90.0] * 3, (90.0, 3.0)), ([135.0] * 3, (135.0, 3.0))]
    assert passes == ["a 0", "keep a", "b 1", "b 2", "keep b"]
    assert [one(stored) for one in works] == together
    assert len(passes) == 5 + 2 + 4 + 4


def test_sums_that_are_finished_otherwise_are_not_mixed(rows):
    stored, passes = rows

    def asks(finish):
        return lambda rows: rows.totals([lambda frame: frame.numbers("a").sum()], ["a"], "sum", finish)

    assert rows_in_step(stored, [asks(np.sqrt), asks(abs), asks(np.sqrt)]) == [[45**0.5], [45.0], [45**0.5]]
    assert len(passes) == 2


def test_rows_that_one_leaves_out_are_not_left_out_for_the_others(rows):
    def asks(least):
        def read(frame):
            some = np.flatnonzero(frame.numbers("a") >= least)
            return frame.rows(some) if len(some) else None

        return lambda rows: rows.totals([lambda frame: frame.numbers("a").sum()], ["a"], "sum", read=read)

    assert rows_in_step(rows[0], [asks(8), asks(0), asks(100)]) == [[17.0], [45.0], [None]]


def test_batches_of_which_one_keeps_nothing_are_kept_for_the_others(rows):
    def asks(least):
        def keep(frame):
            values = frame.numbers("a")
            return (values[values >= least],) if values.max() >= least else None

        return lambda rows: rows.keep(keep, ["a"], "keep").total(lambda number, arrays: (1, float(arrays[0].sum())))

    assert rows_in_step(rows[0], [asks(8), asks(0), asks(5)]) == [(1, 17.0), (3, 45.0), (2, 35.0)]


def test_kept_arrays_in_step():
    spool, passes = Spool(limit=0), []
    for k in range(3):
        spool.append((np.full(5, float(k)),))

    class Counted(Spool):
        def total(self, function):
            passes.append(1)
            return spool.total(function)

    def asks(power):
        return lambda kept: [kept.total(lambda n, arrays: float((arrays[0] ** power).sum())) for _ in range(2)]

    assert kept_in_step(Counted(), [asks(1), asks(2)]) == [[15.0, 15.0], [25.0, 25.0]]
    assert len(passes) == 2


@pytest.mark.parametrize("where", ["at once", "later", "in a pass"])
def test_an_error_ends_all_work(rows, where):
    ended, before = [], threading.active_count()

    def fine(rows):
        try:
            while True:
                rows.totals([len], ["a"], "sum", read=lambda frame: frame.numbers("a"))
        finally:
            ended.append("fine")

    def failing(rows):
        if where != "at once":
            rows.totals([len], ["a"], "sum", read=lambda frame: frame.numbers("a"))
        if where == "in a pass":
            rows.totals([lambda frame: frame.numbers("d")], ["a"], "sum")
        raise DataError("the tape is torn")

    message = "no column 'd'" if where == "in a pass" else "the tape is torn"
    with pytest.raises(DataError, match=message):
        rows_in_step(rows[0], [fine, failing, fine])
    assert ended == ["fine"] * (1 if where == "at once" else 2)
    assert threading.active_count() == before


def test_a_property_that_asks_for_a_sum_does_not_stop_the_others(rows):
    class Asks:
        def __init__(self, rows):
            self.rows = rows

        @once
        def total(self):
            """The sum."""
            return self.rows.totals([lambda frame: frame.numbers("a").sum()], ["a"], "sum")[0]

    stored, passes = rows
    assert rows_in_step(stored, [lambda rows: (one := Asks(rows)).total + one.total] * 3) == [90.0] * 3
    assert len(passes) == 1
    assert Asks.total.__doc__ == "The sum."


def test_the_experts_of_a_mixture_share_their_passes():
    credit = pr.datasets.make_credit(1_500, 2, backend="polars")
    table = credit.frame.with_columns(bad=credit.target)
    n_passes = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = pr.make_classifier("MixARM1", credit.schema).fit(credit.frame, credit.target)
        for n in (1, 4):
            schema = credit.schema.select(
                [f for s in list(credit.schema.subscales)[:n] for f in credit.schema.subscales[s]]
            )
            stored, passes = counted(table, 400)
            there = pr.make_classifier("MixARM1", schema).fit(stored, "bad")
            n_passes[n] = len(passes)
    np.testing.assert_allclose(there.predict_proba(credit.frame), here.predict_proba(credit.frame), rtol=0, atol=1e-12)
    assert n_passes[4] == n_passes[1], "of four experts as of one"
