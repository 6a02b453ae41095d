"""The data sets by name: what they are, where they come from and what they must hold."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Literal

import msgspec

from plainrisk.errors import DataError, did_you_mean
from plainrisk.schema import Schema

__all__ = ["Info", "Partial", "info", "names", "schema_of"]

HERE = Path(str(package_files("plainrisk.datasets")))

Reader = Literal["table", "lending_club_block", "lending_club_years"]


@dataclass(frozen=True, kw_only=True)
class Partial:
    """A known incomplete copy of a data set."""

    files: tuple[str, ...]
    rows: int
    positives: int
    content_sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Info:
    """What is known of a data set without reading it.

    Attributes
    ----------
    name, title, source, licence, citation, note : str
    outcome : the name of the target: what it means to be 1
    schema : the file in ``datasets/schemas`` without .toml
    negative : the label of the other outcome in the raw file; the schema states the positive one
    files : accepted file names, the first found is read
    not_read : file names of the public source that cannot be read, for the error message
    built_in : the file that comes with the package
    get : how to get the file by hand, where its licence does not let us fetch it
    url, member : what `load(..., download=True)` fetches, and the file kept of it
    rows, positives : how many rows, and how many of them have the outcome
    content_sha256 : the hash of what was parsed (`content_sha256` of the columns), not of the file
    partial : an incomplete copy that is read where there is no full one
    by_position : the columns are the features in schema order and then the target, whatever their names
    aliases : other names of the features and the target in the raw file, in schema order
    code_prefix : a letter before the numbers of continuous features (A11 is 11)
    reader, block : how the file is read, and which block of it
    hindsight : whether the columns in `after_the_fact` are part of it
    after_the_fact : columns known only after the loan was made
    """

    name: str
    title: str
    outcome: str
    schema: str
    negative: str
    files: tuple[str, ...]
    source: str
    licence: str
    citation: str
    note: str = ""
    not_read: tuple[str, ...] = ()
    built_in: str | None = None
    get: str | None = None
    url: str | None = None
    member: str | None = None
    rows: int | None = None
    positives: int | None = None
    content_sha256: str | None = None
    partial: Partial | None = None
    by_position: bool = False
    aliases: tuple[tuple[str, ...], ...] = ()
    code_prefix: str = ""
    reader: Reader = "table"
    block: int | None = None
    hindsight: bool = True
    after_the_fact: tuple[str, ...] = ()

    @property
    def positive_rate(self) -> float | None:
        """The share of rows with the outcome, where it is known."""
        return None if self.rows is None or self.positives is None else self.positives / self.rows


def names() -> tuple[str, ...]:
    """Return the names that `load` knows.

    >>> names()[:3]
    ('german', 'heloc', 'gmsc')
    """
    return tuple(_registry())


def info(name: str) -> Info:
    """Return what is known of a data set without reading it.

    >>> info("german").rows, info("german").licence
    (1000, 'CC BY 4.0')
    """
    try:
        return _registry()[name]
    except (KeyError, TypeError):
        raise DataError(f"Datasets: there is no data set {name!r}.{did_you_mean(name, _registry())}") from None


@cache
def schema_of(stem: str) -> Schema:
    """Return a schema as it stands in the package: with the raw file's target and positive label."""
    return Schema.load(HERE / "schemas" / f"{stem}.toml")


@cache
def _registry() -> dict[str, Info]:
    families = tomllib.loads((HERE / "registry.toml").read_text(encoding="utf-8"))
    return {name: msgspec.convert({**fields, "name": name}, Info) for name, fields in _flat(families)}


def _flat(families: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each set of a family what the family says."""
    for family, fields in families.items():
        sets = fields.pop("sets", {family: {}})
        for name, own in sets.items():
            yield name, {**fields, **own}
