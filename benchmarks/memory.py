"""What a process and those it started hold, and the most they have held: Linux tells, others estimate."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

_PROC = Path("/proc")


def family(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    found = [pid]
    for parent in found:
        for task in _PROC.glob(f"{parent}/task/*/children"):
            try:
                found.extend(int(child) for child in task.read_text().split())
            except OSError:  # it ended while we looked
                continue
    return found


def held(pid: int, field: str = "VmRSS") -> float:
    """Return the megabytes of a process and its descendants: VmRSS is now, VmHWM the most so far."""
    return sum(_status(p, field) for p in family(pid)) / 1024


def reset_peak() -> float:
    """Forget the peak so far, and return the megabytes held now."""
    if not _PROC.is_dir():
        return _own_peak()
    for pid in family(os.getpid()):
        try:
            (_PROC / str(pid) / "clear_refs").write_text("5")
        except OSError:  # not allowed here: the peak is that of the whole life of the process
            return held(os.getpid(), "VmHWM")
    return held(os.getpid())


def peak() -> float:
    """Return the most megabytes held since `reset_peak`."""
    return held(os.getpid(), "VmHWM") if _PROC.is_dir() else _own_peak()


def total() -> float:
    """Return the megabytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20


def _status(pid: int, field: str) -> int:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field + ":")), 0)


def _own_peak() -> float:
    unit = 2**20 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
