"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import memory

PACKAGES = (
    "plainrisk",
    "numpy",
    "scipy",
    "scikit-learn",
    "polars",
    "pandas",
    "xgboost-cpu",
    "lightgbm",
    "interpret-core",
    "optbinning",
    "glum",
    "pygam",
)


def describe() -> dict[str, Any]:
    """Return cores, memory, system and versions; nothing that names the machine."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(memory.total() / 1024),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        if name == "plainrisk":
            import plainrisk

            return plainrisk.__version__
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
