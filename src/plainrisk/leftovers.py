"""Temporary files and folders; those of killed processes are removed by the next process that writes there.

A killed process cannot remove its temporary files, but the system releases its locks. So every temporary file is
locked while its process lives, and a file with our kind of name and no lock belongs to nobody. Windows has other
locks: there, files count as left over after a day without a change.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["hold_new_file", "new_file_name", "temporary_folder"]

_FILE = re.compile(r"\.plainrisk-[0-9a-f]{16}-.*", re.DOTALL)
_FOLDER = re.compile(r"plainrisk-[0-9a-f]{16}")
DAY = 86_400.0  # seconds


def new_file_name(target: Path) -> Path:
    """Return a name for a temporary file next to a file."""
    # Writers choose a format by the ending, which stays; the rest is cut, since names are limited in length.
    return target.parent / f".plainrisk-{secrets.token_hex(8)}-{target.name[-24:]}"


def hold_new_file(path: Path, mode: int) -> int:
    """Create and lock a file, and remove leftovers next to it. Nobody removes it while the descriptor is open.

    Another process may remove the file before it is locked; it is then created again.
    """
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        if _lock(descriptor) is not False and _is_at(path, descriptor):
            break
        os.close(descriptor)
    _remove_leftovers(path, _FILE, stat.S_ISREG, os.unlink)
    return descriptor


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a folder inside the system's temporary folder, and remove it afterward."""
    path = Path(tempfile.gettempdir()) / f"plainrisk-{secrets.token_hex(8)}"
    descriptor = None
    try:
        path.mkdir(0o700)
        if sys.platform != "win32":
            descriptor = os.open(path, os.O_RDONLY)
            _lock(descriptor)
        _remove_leftovers(path, _FOLDER, stat.S_ISDIR, shutil.rmtree)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _remove_leftovers(
    own: Path, name: re.Pattern[str], is_kind: Callable[[int], bool], remove: Callable[[Path], object]
) -> None:
    """Remove entries next to `own` that have our kind of name, belong to this user and are not locked."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(own.parent):
            if entry.name != own.name and name.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # another process removed it first, or we may not
                    status = entry.stat(follow_symlinks=False)
                    if is_kind(status.st_mode) and status.st_uid == own.stat().st_uid:
                        _remove_unless_held(Path(entry.path), own, remove)


def _remove_unless_held(path: Path, own: Path, remove: Callable[[Path], object]) -> None:
    if sys.platform == "win32":
        if path.stat().st_mtime < own.stat().st_mtime - DAY:
            remove(path)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if _lock(descriptor):
            remove(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Lock an open file or folder; return False if another process holds it, None if the system has no such locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return None
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether a name still refers to an open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
