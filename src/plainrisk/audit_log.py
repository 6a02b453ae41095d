"""A log that reveals changes: each line of JSON contains the hash of the previous line."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plainrisk.errors import DataError, OutputError

if sys.platform != "win32":
    import fcntl

__all__ = ["AuditLog", "Verified", "verify_log"]

FIRST = "0" * 64  # in the first line, instead of a hash
TAIL = 2**16


class AuditLog:
    """Appends lines to a file that no other process may write; records a line that a killed process left unfinished.

    Lines reach the operating system before `append` returns, so they survive the process, but not a loss of power.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._lock, self._previous = path, threading.Lock(), FIRST
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Windows would write line ends other than the hashed ones.
            binary = getattr(os, "O_BINARY", 0)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | binary, 0o600)
            if sys.platform != "win32":
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            torn = self._find_end()
        except BlockingIOError:
            raise OutputError(f"{path} is written by another service. Give each its own folder.") from None
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}.") from None
        if torn:
            os.ftruncate(self._file, os.fstat(self._file).st_size - len(torn))
            self.append([{"event": "unfinished line", "bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()}])

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Write several lines: all of them, or none."""
        with self._lock:
            previous, lines = self._previous, bytearray()
            for entry in entries:
                line = msgspec.json.encode({**entry, "previous": previous})
                previous = hashlib.sha256(line).hexdigest()
                lines += line + b"\n"
            size = os.fstat(self._file).st_size
            rest = memoryview(bytes(lines))
            try:
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError as error:
                os.ftruncate(self._file, size)
                raise OutputError(f"{self.path} cannot be written: {error.strerror}.") from None
            self._previous = previous

    def _find_end(self) -> bytes:
        """Note the hash of the last line, and return the bytes after it."""
        size, tail = os.fstat(self._file).st_size, b""
        while len(tail) < size and tail.count(b"\n") < 2:
            step = min(TAIL, size - len(tail))
            os.lseek(self._file, size - len(tail) - step, os.SEEK_SET)
            tail = os.read(self._file, step) + tail
        lines = tail.split(b"\n")
        if len(lines) > 1:
            self._previous = hashlib.sha256(lines[-2]).hexdigest()
        return lines[-1]


@dataclass(frozen=True)
class Verified:
    """A summary of a log that was not changed.

    Attributes
    ----------
    lines : how many
    first, last : when the first and the last were written
    head : the hash of the last line; kept elsewhere, it shows later whether lines were removed from the end
    """

    lines: int
    first: str | None
    last: str | None
    head: str


def verify_log(path: str | Path) -> Verified:
    """Check that each line contains the hash of the previous one; a `DataError` names the first that does not."""
    lines, previous = 0, FIRST
    times: list[str] = []
    try:
        with open(path, "rb") as file:
            for line in file:
                lines += 1
                if not line.endswith(b"\n"):
                    raise DataError(f"{path}, line {lines}: the line is not finished.")
                entry = _read(path, lines, line)
                if entry.get("previous") != previous:
                    raise DataError(
                        f"{path}, line {lines}: it does not hold the hash of the line before, so a line was changed, "
                        "taken out or put in here."
                    )
                previous = hashlib.sha256(line[:-1]).hexdigest()
                times = [*times[:1], entry["time"]] if isinstance(entry.get("time"), str) else times
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None
    return Verified(lines, times[0] if times else None, times[-1] if times else None, previous)


def _read(path: str | Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        raise DataError(f"{path}, line {number}: it is no line of an audit log.") from None
