"""What the tests of studies share: a tiny plan on synthetic credit data in files, and classifiers of a user's own."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from plainrisk.datasets import make_credit
from plainrisk_lab.study import ClassifierSpec, DataSpec, Plan


class Book(NamedTuple):
    """A data set of a user's own."""

    data: DataSpec
    target: object
    folder: Path


def write_book(folder: Path, name: str, rows: int, seed: int) -> Book:
    made = make_credit(rows, seed, backend="polars")
    outcome = pl.Series("bad", made.target).replace_strict({0: "paid", 1: "defaulted"})
    made.frame.with_columns(outcome).write_csv(folder / f"{name}.csv")
    text = made.schema.to_dict() | {"target": "bad", "positive": "defaulted"}
    type(made.schema).from_dict(text).save(folder / f"{name}.toml")
    data = DataSpec(name=name, file=str(folder / f"{name}.csv"), schema=str(folder / f"{name}.toml"))
    return Book(data, made.target, folder)


@pytest.fixture(scope="session")
def books(tmp_path_factory: pytest.TempPathFactory) -> tuple[Book, Book]:
    folder = tmp_path_factory.mktemp("books")
    return write_book(folder, "north", 400, 1), write_book(folder, "south", 300, 2)


OWN_CLASSIFIERS = '''
import os, time
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

class Rate(ClassifierMixin, BaseEstimator):
    """The base rate for everybody, plus a little of one column: a classifier as a user would write it."""
    def __init__(self, shift=0.0):
        self.shift = shift
    def fit(self, X, y):
        self.rate = float(np.mean(y)) + self.shift
        self.columns = list(X.columns)
        self.classes_ = np.unique(y)
        return self
    def predict_proba(self, X):
        assert list(X.columns) == self.columns
        risk = np.clip(self.rate + 0.001 * (np.arange(len(X)) % 7), 0, 1)
        return np.column_stack([1 - risk, risk])

class Broken(Rate):
    def fit(self, X, y):
        raise ValueError("this one never fits")

class Wild(Rate):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)

class Deadly(Rate):
    def fit(self, X, y):
        os.kill(os.getpid(), 9)

class Terminated(Rate):
    def fit(self, X, y):
        try:
            os.kill(os.getpid(), 15)
            time.sleep(600)
        finally:
            open(os.path.join(self.shift, "unwound"), "w").close()

class Slow(Rate):
    def fit(self, X, y):
        time.sleep(0.02)
        return super().fit(X, y)

def rate(schema, shift=0.0):
    assert schema.features
    return Rate(shift)

def terminated(schema, folder):
    return Terminated(folder)

def broken(schema):
    return Broken(0.0)

def wild(schema):
    return Wild()

def deadly(schema):
    return Deadly(0.0)

def slow(schema, shift=0.0):
    return Slow(shift)
'''


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put a module of classifiers on the path and return its name."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own_classifiers.py").write_text(OWN_CLASSIFIERS)
    monkeypatch.syspath_prepend(str(folder))
    return "own_classifiers"


@pytest.fixture
def plan(books: tuple[Book, Book]) -> Plan:
    """Two data sets, two classifiers, three folds: twelve cells."""
    return Plan(
        name="tiny",
        datasets=tuple(book.data for book in books),
        classifiers=("ARM1", ClassifierSpec(name="Lin", make="LinARM1")),
        cv=3,
    )
