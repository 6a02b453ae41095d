"""One SQLite file that keeps every result of every study, fold by fold.

    studies    a plan by name
    sets       which rows a study's data sets are
    data       outcomes of a data set
    cells      one fit: (rows, classifier, cv, seed, fold) -> status, risks, seconds, memory, versions
    figures    metrics of a cell

A cell belongs to what was fitted on what, not to a study: two studies that ask for the same fit share it. Every cell
is written in one transaction, so a process may be killed at any moment, and several may write at once.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from plainrisk._types import Array, Floats, Outcome
from plainrisk.errors import DataError
from plainrisk.files import SIZE_LIMIT, output_target
from plainrisk_lab.study.plan import Plan
from plainrisk_lab.study.sources import stratified_folds

__all__ = ["Cell", "CellKey", "DataSet", "Store"]

FORMAT = "2"
Status = Literal["done", "failed", "skipped"]

_TABLES = """
create table if not exists meta (key text primary key, value text);
create table if not exists studies (name text primary key, plan text not null);
create table if not exists sets (
  study text, position integer, name text, fingerprint text, note text, primary key (study, name));
create table if not exists data (
  fingerprint text primary key, name text, rows integer, positives integer, features integer, note text, outcomes blob);
create table if not exists cells (
  id integer primary key, fingerprint text, classifier text, cv integer, seed integer, fold integer,
  status text not null, reason text, note text, fit_seconds real, score_seconds real, peak_mb real,
  versions text, finished text, risks blob, unique (fingerprint, classifier, cv, seed, fold));
create table if not exists figures (cell integer, metric text, value real, primary key (cell, metric)) without rowid;
"""

_KEY = ("fingerprint", "classifier", "cv", "seed", "fold")
_FACTS = ("status", "reason", "note", "fit_seconds", "score_seconds", "peak_mb", "versions", "finished")


@dataclass(frozen=True)
class CellKey:
    """Which fit: of what, on which rows without which fold."""

    fingerprint: str
    classifier: str
    cv: int
    seed: int
    fold: int


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The result of one fit.

    Attributes
    ----------
    key : which fit
    status : "done", "failed" or "skipped" (a package is missing)
    reason : why it failed or was skipped
    note : what a reader should know, such as that the solver stopped early
    fit_seconds, score_seconds : the time of the fit, and of all the rest
    peak_mb : the largest memory of the process during the fit
    versions : of the packages, as JSON
    finished : when, UTC
    risks : the held-out risks, in the order of the rows
    figures : metric to value
    """

    key: CellKey
    status: Status
    reason: str = ""
    note: str = ""
    fit_seconds: float | None = None
    score_seconds: float | None = None
    peak_mb: float | None = None
    versions: str = ""
    finished: str = ""
    risks: Floats | None = None
    figures: Mapping[str, float] | None = None

    @property
    def seconds(self) -> float:
        """The time it took."""
        return (self.fit_seconds or 0.0) + (self.score_seconds or 0.0)


@dataclass(frozen=True)
class DataSet:
    """A data set of a study as the store knows it; one without a fingerprint could not be read, as the note says."""

    name: str
    fingerprint: str | None
    note: str = ""
    rows: int | None = None
    positives: int | None = None
    features: int | None = None


class Store:
    """The results of studies in one file; use it in a ``with`` block, or close it.

    Parameters
    ----------
    path : str or Path
    create : bool, default=True
        Make the file if it is not there.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        if not create and not os.path.exists(path):
            raise DataError(f"{path} does not exist. Run a study first: plainrisk study run PLAN.toml.")
        self.path = output_target(path)
        self._folds: dict[tuple[str, int, int], Outcome] = {}
        # A process waits two minutes for another that writes.
        try:
            self._db = sqlite3.connect(self.path, timeout=120.0, isolation_level=None)
        except sqlite3.Error as error:
            raise DataError(f"{path} cannot be used as a store: {error}. Use another file.") from None
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # ---- studies and data

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of the studies, in order of their first run."""
        return tuple(row[0] for row in self._all("select name from studies order by rowid"))

    def plan(self, study: str) -> Plan:
        """Return the plan a study was last run with."""
        text = self._one("select plan from studies where name = ?", study)
        if text is None:
            studies = ", ".join(self.studies) or "none"
            raise DataError(f"{self.path}: there is no study {study!r} in it. There is: {studies}.")
        return Plan.from_json(text)

    def put_plan(self, plan: Plan, sets: Iterable[DataSet]) -> None:
        """Keep a plan and which rows its data sets are."""
        with self._transaction():
            self._all(
                "insert into studies values (?, ?) on conflict (name) do update set plan = excluded.plan",
                *(plan.name, plan.to_json()),
            )
            self._all("delete from sets where study = ?", plan.name)
            for position, data in enumerate(sets):
                row = (plan.name, position, data.name, data.fingerprint, data.note)
                self._all("insert into sets values (?, ?, ?, ?, ?)", *row)

    def sets(self, study: str) -> tuple[DataSet, ...]:
        """Return the data sets of a study."""
        rows = self._all(
            "select s.name, s.fingerprint, s.note, d.rows, d.positives, d.features from sets s "
            "left join data d using (fingerprint) where s.study = ? order by s.position",
            study,
        )
        return tuple(DataSet(*row) for row in rows)

    def put_data(self, fingerprint: str, name: str, target: Outcome, features: int, note: str = "") -> None:
        """Keep the outcomes of a data set."""
        counts = (len(target), int(target.sum()), features)
        row = (fingerprint, name, *counts, note, _compressed(target.astype(np.uint8)))
        self._all("insert or ignore into data values (?, ?, ?, ?, ?, ?, ?)", *row)

    def outcomes(self, fingerprint: str) -> Outcome:
        """Return the outcomes of a data set."""
        return self._array(self._one("select outcomes from data where fingerprint = ?", fingerprint), np.uint8)

    def fold_of(self, fingerprint: str, cv: int, seed: int) -> Outcome:
        """Return the number of the fold of every row."""
        where = (fingerprint, cv, seed)
        if where not in self._folds:
            self._folds[where] = stratified_folds(self.outcomes(fingerprint), cv, seed)
        return self._folds[where]

    # ---- cells

    def status(self, key: CellKey) -> str | None:
        """Return the status of a cell, None if it was not run yet."""
        status = self._one(f"select status from cells where {_where(_KEY)}", *_values(key, _KEY))
        return None if status is None else str(status)

    def put(self, cell: Cell) -> None:
        """Write a cell and its metrics in one transaction; of one that is done already only metrics are written."""
        risks = None if cell.risks is None else _compressed(np.asarray(cell.risks, dtype=np.float64))
        names = (*_KEY, *_FACTS, "risks")
        changes = ", ".join(f"{name} = excluded.{name}" for name in (*_FACTS, "risks"))
        with self._transaction():
            self._all(
                f"insert into cells ({', '.join(names)}) values ({', '.join('?' * len(names))}) "
                f"on conflict ({', '.join(_KEY)}) do update set {changes} where cells.status <> 'done'",
                *(*_values(cell.key, _KEY), *_values(cell, _FACTS), risks),
            )
            number = self._one(f"select id from cells where {_where(_KEY)}", *_values(cell.key, _KEY))
            for metric, value in (cell.figures or {}).items():
                self._all("insert or replace into figures values (?, ?, ?)", number, metric, float(value))

    def cells(self, fingerprint: str, classifier: str, cv: int, seed: int, *, risks: bool = False) -> list[Cell]:
        """Return the cells of one classifier on some rows, by fold, with the risks if asked."""
        rows = self._all(
            f"select id, fold, {'risks' if risks else 'null'}, {', '.join(_FACTS)} from cells "
            f"where {_where(_KEY[:-1])} order by fold",
            *(fingerprint, classifier, cv, seed),
        )
        return [
            Cell(
                key=CellKey(fingerprint, classifier, cv, seed, fold),
                risks=None if blob is None else self._array(blob, np.float64),
                figures=dict(self._all("select metric, value from figures where cell = ?", number)),
                **dict(zip(_FACTS, facts, strict=True)),
            )
            for number, fold, blob, *facts in rows
        ]

    # ---- inside

    def _open(self) -> None:
        self._all("pragma journal_mode = wal")
        # A killed process loses nothing; only a power cut may lose the last cells.
        self._all("pragma synchronous = normal")
        for statement in _TABLES.split(";"):
            self._all(statement)
        self._all("insert or ignore into meta values ('format', ?)", FORMAT)
        stored_format = self._one("select value from meta where key = 'format'")
        if stored_format != FORMAT:
            raise DataError(f"{self.path} has format {stored_format}; this version reads {FORMAT}. Use another file.")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._all("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._all("commit")

    def _all(self, statement: str, *values: Any) -> list[Any]:
        """Run one statement; a file that is damaged or no store becomes one error."""
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise DataError(f"{self.path} cannot be used as a store: {error}. Use another file, or a copy.") from None

    def _one(self, query: str, *values: Any) -> Any:
        rows = self._all(query, *values)
        return rows[0][0] if rows else None

    def _array(self, blob: bytes, kind: type[Any]) -> Array:
        try:
            return np.frombuffer(zlib.decompressobj().decompress(blob, SIZE_LIMIT), dtype=kind)
        except (zlib.error, ValueError, TypeError):
            raise DataError(f"{self.path} is damaged: an array cannot be read. Use another file, or a copy.") from None


def _where(names: Iterable[str]) -> str:
    return " and ".join(f"{name} = ?" for name in names)


def _values(item: object, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(getattr(item, name) for name in names)


def _compressed(array: Array) -> bytes:
    return zlib.compress(np.ascontiguousarray(array).tobytes(), 1)
