"""How much memory a process and its children hold, and the most they have held, as Linux tells it."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

PROC = Path("/proc")


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for parent in found:
        for task in PROC.glob(f"{parent}/task/*/children"):
            try:
                found.extend(int(child) for child in task.read_text().split())
            except OSError:  # the process ended in the meantime
                continue
    return found


def reset_peak() -> float:
    """Forget the peak so far and return the megabytes held now."""
    if not PROC.is_dir():
        return peak()
    for pid in family(os.getpid()):
        try:
            (PROC / str(pid) / "clear_refs").write_text("5")
        except OSError:  # not allowed here: the peak is that of the whole life of the process
            return _held("VmHWM")
    return _held("VmRSS")


def peak() -> float:
    """Return the most megabytes held since `reset_peak`."""
    if PROC.is_dir():
        return _held("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def _held(field: str) -> float:
    kilobytes = 0
    for pid in family(os.getpid()):
        try:
            lines = (PROC / str(pid) / "status").read_text().splitlines()
        except OSError:
            continue
        kilobytes += next((int(line.split()[1]) for line in lines if line.startswith(field + ":")), 0)
    return kilobytes / 1024
