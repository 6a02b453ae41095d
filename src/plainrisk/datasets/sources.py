"""Where the files are: the user's folder, the cache, the package, or the public source."""

from __future__ import annotations

import os
import shutil
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from plainrisk.datasets.registry import HERE, Info
from plainrisk.errors import DataError
from plainrisk.files import SIZE_LIMIT, replacing

__all__ = ["Found", "Progress", "absent_message", "cache_folder", "download", "find"]

Progress = Callable[[int, int | None], None]
"""Called with the bytes fetched so far, and all there are where the server says so."""


@dataclass(frozen=True)
class Found:
    """A file that holds a data set, or a known part of one."""

    path: Path
    partial: bool = False


def cache_folder() -> Path:
    """Return the folder that downloads go to."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "plainrisk"


def find(entry: Info) -> Found | None:
    """Look for a file in PLAINRISK_DATA, the cache and the package; a full copy before a partial one."""
    for path in _candidates(entry.files):
        return Found(path)
    if entry.built_in is not None:
        return Found(HERE / "files" / entry.built_in)
    for path in _candidates(entry.partial.files if entry.partial else ()):
        return Found(path, partial=True)
    return None


def absent_message(entry: Info) -> str:
    """Say which file to get where, and where to put it."""
    named = os.environ.get("PLAINRISK_DATA")
    home = f"PLAINRISK_DATA ({named})" if named else "the environment variable PLAINRISK_DATA"
    by_hand = entry.get or f"Load it with download=True, or get {entry.files[0]} at {entry.source}"
    unread = "".join(
        f" {path} is there, but is not read: save its sheet as {entry.files[0]}."
        for path in _candidates(entry.not_read)
    )
    return (
        f"Datasets: {entry.name} is not on this machine. {by_hand}, and put it into the folder named by "
        f"{home} or into {cache_folder()}. Licence: {entry.licence}.{unread}"
    )


def download(entry: Info, progress: Progress | None = None) -> Path:
    """Fetch a file from its public source into the cache and return its path."""
    if entry.url is None or entry.member is None:
        raise DataError(absent_message(entry))
    folder = cache_folder()
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
    for folder in [*folders, cache_folder()]:
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
    """Write the one file that is wanted, whether it came in an archive or by itself."""
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
