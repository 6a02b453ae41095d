"""The data sets by name: descriptions, expected contents, and sources of their files."""

from __future__ import annotations

import os
import shutil
import tempfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Literal

import msgspec

from plainrisk.errors import DataError, did_you_mean
from plainrisk.files import SIZE_LIMIT, replacing
from plainrisk.schema import Schema

__all__ = [
    "Info",
    "LocalFile",
    "Partial",
    "Progress",
    "absent_message",
    "download",
    "find",
    "info",
    "names",
    "schema_of",
]

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
    """The facts about a data set that need no reading.

    Attributes
    ----------
    name, title, source, license, citation, note : str
    outcome : the name of the target: what it means to be 1
    schema : the file in ``datasets/schemas`` without .toml
    negative : the label of the other outcome in the raw file; the schema states the positive one
    files : accepted file names, the first found is read
    not_read : file names of the public source that cannot be read, for the error message
    built_in : the file that comes with the package
    get : how to get the file by hand, where its license does not let us fetch it
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
    license: str
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
    """Return the facts about a data set that need no reading.

    >>> info("german").rows, info("german").license
    (1000, 'CC BY 4.0')
    """
    try:
        return _registry()[name]
    except (KeyError, TypeError):
        raise DataError(f"Datasets: there is no data set {name!r}.{did_you_mean(name, _registry())}") from None


@cache
def schema_of(stem: str) -> Schema:
    """Return a schema as the package has it: with the raw file's target and positive label."""
    return Schema.load(HERE / "schemas" / f"{stem}.toml")


@cache
def _registry() -> dict[str, Info]:
    families = tomllib.loads((HERE / "registry.toml").read_text(encoding="utf-8"))
    return {name: msgspec.convert({**fields, "name": name}, Info) for name, fields in _flat(families)}


def _flat(families: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each data set of a family the family's entries."""
    for family, fields in families.items():
        sets = fields.pop("sets", {family: {}})
        for name, set_fields in sets.items():
            yield name, {**fields, **set_fields}


# ---- files: the user's folder, the cache, the package, or the public source

Progress = Callable[[int, int | None], None]
"""Called with the bytes fetched so far, and all there are where the server says so."""


@dataclass(frozen=True)
class LocalFile:
    """A file that contains a data set or a known part of one."""

    path: Path
    partial: bool = False


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "plainrisk"


def find(entry: Info) -> LocalFile | None:
    """Look for a file in PLAINRISK_DATA, the cache and the package; a full copy before a partial one."""
    for path in _candidates(entry.files):
        return LocalFile(path)
    if entry.built_in is not None:
        return LocalFile(HERE / "files" / entry.built_in)
    for path in _candidates(entry.partial.files if entry.partial else ()):
        return LocalFile(path, partial=True)
    return None


def absent_message(entry: Info) -> str:
    """Return instructions: which file to get from where, and where to put it."""
    named = os.environ.get("PLAINRISK_DATA")
    home = f"PLAINRISK_DATA ({named})" if named else "the environment variable PLAINRISK_DATA"
    by_hand = entry.get or f"Load it with download=True, or get {entry.files[0]} at {entry.source}"
    unread = "".join(
        f" {path} is there, but is not read: save its sheet as {entry.files[0]}."
        for path in _candidates(entry.not_read)
    )
    return (
        f"Datasets: {entry.name} is not on this machine. {by_hand}, and put it into the folder named by "
        f"{home} or into {_cache_folder()}. License: {entry.license}.{unread}"
    )


def download(entry: Info, progress: Progress | None = None) -> Path:
    """Fetch a file from its public source into the cache and return its path."""
    if entry.url is None or entry.member is None:
        raise DataError(absent_message(entry))
    folder = _cache_folder()
    kept = folder / entry.member
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            fetched = Path(temporary) / "fetched"
            _fetch(entry.url, fetched, progress)
            with replacing(kept) as path:
                _unpack(entry.member, fetched, path, archived=entry.url.endswith(".zip"))
    except (OSError, HTTPException, zipfile.BadZipFile) as problem:
        raise DataError(f"Datasets: {entry.name} could not be fetched from {entry.url}: {problem}.") from None
    return kept


def _candidates(names: tuple[str, ...]) -> Iterator[Path]:
    named = os.environ.get("PLAINRISK_DATA")
    folders = [Path(named)] if named else []
    for folder in [*folders, _cache_folder()]:
        for name in names:
            if (folder / name).is_file():
                yield folder / name


def _fetch(url: str, path: Path, progress: Progress | None) -> None:
    with urllib.request.urlopen(url, timeout=60) as answer, path.open("wb") as out:
        length = answer.headers.get("Content-Length")
        total = int(length) if length else None
        done = 0
        while piece := answer.read(1 << 16):
            done += len(piece)
            if done > SIZE_LIMIT:
                raise OSError(f"more than {SIZE_LIMIT:,} bytes")
            out.write(piece)
            if progress is not None:
                progress(done, total)
    if total is not None and done < total:
        raise OSError(f"the connection ended after {done:,} of {total:,} bytes")


def _unpack(member: str, fetched: Path, path: Path, *, archived: bool) -> None:
    """Write the requested file, whether it came alone or in an archive."""
    if not archived:
        shutil.copyfile(fetched, path)
        return
    with zipfile.ZipFile(fetched) as archive:
        inside = [item for item in archive.infolist() if item.filename.rpartition("/")[2] == member]
        if not inside:
            raise OSError(f"there is no {member} in the archive")
        if inside[0].file_size > SIZE_LIMIT:
            raise OSError(f"{member} has more than {SIZE_LIMIT:,} bytes")
        with archive.open(inside[0]) as packed, path.open("wb") as out:
            shutil.copyfileobj(packed, out)
