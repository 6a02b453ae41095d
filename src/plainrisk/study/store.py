"""One SQLite file that keeps every result of every study, fold by fold.

    studies    a plan by name                      sets     which rows a study's data sets are
    data       outcomes of a data set              splits   the fold of every row
    cells      one fit: (rows, classifier, folds, seed, fold) -> status, risks, seconds, memory, versions
    figures    metrics of a cell

A cell belongs to what was fitted on what, not to a study: two studies that ask for the same fit share it. Every cell
is written in one transaction, so a process may be killed at any moment, and several may write at once.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError
from plainrisk.study.plan import Plan

__all__ = ["Cell", "CellKey", "DataSet", "Store"]

FORMAT = "1"
Status = Literal["done", "failed", "skipped"]

_TABLES = """
create table if not exists meta (key text primary key, value text);
create table if not exists studies (name text primary key, plan text not null);
create table if not exists sets (
  study text, place integer, name text, fingerprint text, status text, note text, primary key (study, name));
create table if not exists data (
  fingerprint text primary key, name text, rows integer, positives integer, features integer, note text, outcomes blob);
create table if not exists splits (fingerprint text, folds integer, seed integer, fold_of blob,
  primary key (fingerprint, folds, seed));
create table if not exists cells (
  id integer primary key, fingerprint text, classifier text, folds integer, seed integer, fold integer,
  status text not null, reason text, note text, fit_seconds real, shared_seconds real, score_seconds real, peak_mb real,
  versions text, finished text, risks blob, unique (fingerprint, classifier, folds, seed, fold));
create table if not exists figures (cell integer, metric text, value real, primary key (cell, metric)) without rowid;
"""

_PLACE = ("fingerprint", "classifier", "folds", "seed", "fold")
_FACTS = (
    "status",
    "reason",
    "note",
    "fit_seconds",
    "shared_seconds",
    "score_seconds",
    "peak_mb",
    "versions",
    "finished",
)


@dataclass(frozen=True)
class CellKey:
    """Which fit: of what, on which rows without which fold."""

    fingerprint: str
    classifier: str
    folds: int
    seed: int
    fold: int


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What came of one fit.

    Attributes
    ----------
    key : which fit
    status : "done", "failed" or "skipped" (a package is missing)
    reason : why it failed or was skipped
    note : what a reader should know, such as that the solver stopped early
    fit_seconds, score_seconds, peak_mb : what it took; the memory is that of the whole process
    shared_seconds : the part of fit_seconds that was spent once, for an earlier cell that this one builds on
    versions : of the packages, as text
    finished : when, UTC
    risks : the held-out risks, in the order of the rows
    figures : metric to value
    """

    key: CellKey
    status: Status
    reason: str = ""
    note: str = ""
    fit_seconds: float | None = None
    shared_seconds: float | None = None
    score_seconds: float | None = None
    peak_mb: float | None = None
    versions: str = ""
    finished: str = ""
    risks: npt.NDArray[np.float64] | None = None
    figures: Mapping[str, float] | None = None

    @property
    def seconds(self) -> float:
        """The time it took, without what it shared."""
        return (self.fit_seconds or 0.0) - (self.shared_seconds or 0.0) + (self.score_seconds or 0.0)


@dataclass(frozen=True)
class DataSet:
    """A data set of a study as the store knows it: `status` is "present", "absent" or "unreadable"."""

    name: str
    fingerprint: str | None
    status: str
    note: str
    rows: int | None
    positives: int | None
    features: int | None


class Store:
    """The results of studies in one file; use it in a ``with`` block, or close it.

    Parameters
    ----------
    path : str or Path
    create : bool, default=True
        Make the file if it is not there.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise DataError(f"{self.path} does not exist. Run a study first: plainrisk study run NAME.")
        if not self.path.parent.is_dir():
            raise DataError(f"{self.path}: the folder {self.path.parent} does not exist. Make it first.")
        self._db = sqlite3.connect(self.path, timeout=120.0, isolation_level=None)
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
        return tuple(row[0] for row in self._db.execute("select name from studies order by rowid"))

    def plan(self, study: str) -> Plan:
        """Return the plan a study was last run with."""
        text = self._one("select plan from studies where name = ?", study)
        if text is None:
            known = ", ".join(self.studies) or "none"
            raise DataError(f"{self.path}: there is no study {study!r} in it. There is: {known}.")
        return Plan.from_json(text)

    def put_plan(self, plan: Plan, sets: Iterable[DataSet]) -> None:
        """Keep a plan and which rows its data sets are."""
        with self._transaction():
            self._db.execute(
                "insert into studies values (?, ?) on conflict (name) do update set plan = excluded.plan",
                (plan.name, plan.to_json()),
            )
            self._db.execute("delete from sets where study = ?", (plan.name,))
            rows = [(plan.name, k, s.name, s.fingerprint, s.status, s.note) for k, s in enumerate(sets)]
            self._db.executemany("insert into sets values (?, ?, ?, ?, ?, ?)", rows)

    def sets(self, study: str) -> tuple[DataSet, ...]:
        """Return the data sets of a study."""
        found = self._db.execute(
            "select s.name, s.fingerprint, s.status, s.note, d.rows, d.positives, d.features from sets s "
            "left join data d using (fingerprint) where s.study = ? order by s.place",
            (study,),
        )
        return tuple(DataSet(*row) for row in found)

    def has_data(self, fingerprint: str) -> bool:
        """Whether the outcomes of these rows are known."""
        return self._one("select 1 from data where fingerprint = ?", fingerprint) is not None

    def put_data(
        self, fingerprint: str, name: str, target: npt.NDArray[np.uint8], features: int, note: str = ""
    ) -> None:
        """Keep the outcomes of a data set."""
        self._db.execute(
            "insert or ignore into data values (?, ?, ?, ?, ?, ?, ?)",
            (fingerprint, name, len(target), int(target.sum()), features, note, _packed(target.astype(np.uint8))),
        )

    def outcomes(self, fingerprint: str) -> npt.NDArray[np.uint8]:
        """Return the outcomes of a data set."""
        return _unpacked(self._one("select outcomes from data where fingerprint = ?", fingerprint), np.uint8)

    def data_note(self, fingerprint: str) -> str:
        """Return what a reader should know of a data set."""
        return str(self._one("select note from data where fingerprint = ?", fingerprint) or "")

    def fold_of(self, fingerprint: str, folds: int, seed: int) -> npt.NDArray[np.uint8]:
        """Return the fold of every row, dealt once and kept."""
        from plainrisk.study.sources import deal

        where = (fingerprint, folds, seed)
        query = "select fold_of from splits where fingerprint = ? and folds = ? and seed = ?"
        kept = self._one(query, *where)
        if kept is None:
            dealt = deal(self.outcomes(fingerprint), folds, seed)
            self._db.execute("insert or ignore into splits values (?, ?, ?, ?)", (*where, _packed(dealt)))
            kept = self._one(query, *where)
        return _unpacked(kept, np.uint8)

    # ---- cells

    def statuses(self, fingerprint: str, folds: int, seed: int) -> dict[tuple[str, int], str]:
        """Return (classifier, fold) -> status of all cells of some rows."""
        found = self._db.execute(
            "select classifier, fold, status from cells where fingerprint = ? and folds = ? and seed = ?",
            (fingerprint, folds, seed),
        )
        return {(classifier, fold): status for classifier, fold, status in found}

    def put(self, cell: Cell) -> None:
        """Write a cell in one transaction; one that is done already is left as it is."""
        k = cell.key
        place = tuple(getattr(k, name) for name in _PLACE)
        risks = None if cell.risks is None else _packed(np.asarray(cell.risks, dtype=np.float64))
        facts = tuple(getattr(cell, name) for name in _FACTS)
        names = (*_PLACE, *_FACTS, "risks")
        changes = ", ".join(f"{name} = excluded.{name}" for name in (*_FACTS, "risks"))
        with self._transaction():
            self._db.execute(
                f"insert into cells ({', '.join(names)}) values ({', '.join('?' * len(names))}) "
                f"on conflict ({', '.join(_PLACE)}) do update set {changes} where cells.status <> 'done'",
                (*place, *facts, risks),
            )
            self._put_figures(self._id(k), cell.figures or {})

    def put_figures(self, key: CellKey, figures: Mapping[str, float]) -> None:
        """Add metrics to a cell."""
        with self._transaction():
            self._put_figures(self._id(key), figures)

    def cells(self, fingerprint: str, classifier: str, folds: int, seed: int, *, risks: bool = False) -> list[Cell]:
        """Return the cells of one classifier on some rows, by fold, with the risks if asked."""
        found = self._db.execute(
            f"select id, fold, {'risks' if risks else 'null'}, {', '.join(_FACTS)} from cells "
            "where fingerprint = ? and classifier = ? and folds = ? and seed = ? order by fold",
            (fingerprint, classifier, folds, seed),
        ).fetchall()
        return [
            Cell(
                key=CellKey(fingerprint, classifier, folds, seed, fold),
                risks=None if blob is None else _unpacked(blob, np.float64),
                figures=dict(self._db.execute("select metric, value from figures where cell = ?", (number,))),
                **dict(zip(_FACTS, facts, strict=True)),
            )
            for number, fold, blob, *facts in found
        ]

    # ---- inside

    def _open(self) -> None:
        try:
            self._db.execute("pragma journal_mode = wal")
            # A killed process loses nothing; only a power cut may lose the last cells.
            self._db.execute("pragma synchronous = normal")
            self._db.executescript(_TABLES)
            self._db.execute("insert or ignore into meta values ('format', ?)", (FORMAT,))
            found = self._one("select value from meta where key = 'format'")
        except sqlite3.DatabaseError as error:
            raise DataError(f"{self.path} cannot be used as a store: {error}.") from None
        if found != FORMAT:
            raise DataError(f"{self.path} has format {found}; this version reads {FORMAT}. Use another file.")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def _one(self, query: str, *values: Any) -> Any:
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]

    def _id(self, key: CellKey) -> int:
        query = "select id from cells where fingerprint = ? and classifier = ? and folds = ? and seed = ? and fold = ?"
        return int(self._one(query, key.fingerprint, key.classifier, key.folds, key.seed, key.fold))

    def _put_figures(self, cell: int, figures: Mapping[str, float]) -> None:
        rows = [(cell, metric, float(value)) for metric, value in figures.items()]
        self._db.executemany("insert or replace into figures values (?, ?, ?)", rows)


def _packed(array: npt.NDArray[Any]) -> bytes:
    return zlib.compress(np.ascontiguousarray(array).tobytes(), 1)


def _unpacked(blob: bytes, kind: type[Any]) -> npt.NDArray[Any]:
    return np.frombuffer(zlib.decompress(blob), dtype=kind)
