"""Rows are dealt into folds by what they hold, however it is stored."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from plainrisk.data.folds import FoldRows, Folds, dealt
from plainrisk.data.frame import as_frame
from plainrisk.data.rows import Batches
from plainrisk.data.texts import Reading
from plainrisk.errors import DataError


def in_batches(frame: pl.DataFrame, size: int) -> Batches:
    def read(columns):
        return (frame[start : start + size].select(columns) for start in range(0, frame.height, size))

    return Batches(tuple(frame.columns), frame.height, read)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, 3_000).astype(float)
    age[::7] = np.nan
    job = rng.choice(["a", "b", None], 3_000).tolist()
    return pl.DataFrame({"age": age, "job": job, "code": rng.integers(0, 400, 3_000)}, nan_to_null=True)


def test_types_and_libraries_do_not_matter(table):
    folds = Folds(5, ("age",), ("job", "code"))
    home = folds(as_frame(table))
    stored = [
        table.with_columns(pl.col("code").cast(pl.String), pl.col("age").cast(pl.Float32)),
        table.with_columns(pl.col("code").cast(pl.Float64), pl.col("job").cast(pl.Categorical)),
        table.with_columns(pl.when(pl.col("code") == 0).then(-0.0).otherwise(pl.col("code")).alias("code")),
        table.to_arrow(),
        table.to_pandas().astype({"job": object}),
    ]
    for other in stored:
        np.testing.assert_array_equal(folds(as_frame(other)), home)
    days = [date(2024, 3, 1), None, date(2024, 3, 2)]
    times = pd.to_datetime(pd.Series(days))
    by_day = Folds(7, texts=("day",))
    np.testing.assert_array_equal(by_day(as_frame({"day": times})), by_day(as_frame(pl.DataFrame({"day": days}))))
    midnight = pl.DataFrame({"day": [None if day is None else datetime(day.year, day.month, day.day) for day in days]})
    np.testing.assert_array_equal(by_day(as_frame(midnight)), by_day(as_frame(pl.DataFrame({"day": days}))))


def test_text_is_read_as_the_schema_reads_it():
    folds = Folds(50, ("rate",), readings={"rate": Reading(True, "percent", frozenset({"NA"}))})
    written = as_frame({"rate": ["35.5%", " 7%", "NA", "1"]})
    np.testing.assert_array_equal(folds(written), folds(as_frame({"rate": [35.5, 7.0, np.nan, 1.0]})))


def test_folds_are_about_equal_and_every_column_and_seed_counts(table):
    distinct = pl.DataFrame({"id": np.arange(20_000)})
    sizes = np.bincount(Folds(10, ("id",))(as_frame(distinct)))
    # Binomial: a standard deviation of 42 around 2,000.
    assert abs(sizes - 2_000).max() < 200
    as_text = np.bincount(Folds(10, texts=("id",))(as_frame(distinct)))
    assert abs(as_text - 2_000).max() < 200
    home = Folds(5, ("age",), ("job", "code"))(as_frame(table))
    for other in (
        Folds(5, ("age",), ("job",)),
        Folds(5, (), ("job", "code")),
        Folds(5, ("age",), ("job", "code"), seed=(1,)),
        Folds(5, ("age",), ("job", "code"), seed=(0, 0)),
    ):
        agree = (other(as_frame(table)) == home).mean()
        assert 0.1 < agree < 0.3, "as two that know nothing of each other"


def test_a_fold_and_all_others_are_all_rows_once(table):
    rows = in_batches(table, 170)
    parts = dealt(rows, Folds(4, ("age",), ("job", "code")))
    seen = [one.gathered(lambda frame: (frame.first, frame.numbers("code")), ("code",), "") for _, one in parts]
    for (rest, part), found in zip(parts, seen, strict=True):
        assert rest.count() + part.count() == 3_000
        assert sum(len(codes) for _, codes in found) == part.count()
        assert {first % 170 for first, _ in found} == {0}, "rows are counted from where their batch began"
    together = np.concatenate([codes for found in seen for _, codes in found])
    np.testing.assert_array_equal(np.sort(together), np.sort(table["code"].to_numpy()))


def test_a_fold_is_dealt_otherwise_than_the_rows_it_is_part_of(table):
    folds = Folds(3, ("age",), ("job", "code"))
    rest, _ = dealt(in_batches(table, 170), folds)[0]
    inner = dealt(rest, folds)
    assert isinstance(inner[0][0], FoldRows)
    sizes = [part.count() for _, part in inner]
    assert sum(sizes) == rest.count()
    assert min(sizes) > rest.count() / 4


def test_a_fold_without_rows_is_refused(table):
    with pytest.raises(DataError, match="a fold of the cross validation has no rows"):
        dealt(in_batches(table, 170), Folds(4, texts=("job",)))
    with pytest.raises(DataError, match="a fold of the cross validation has no rows"):
        dealt(in_batches(table[:0], 170), Folds(2, texts=("job",)))
