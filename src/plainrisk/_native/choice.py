"""Whether the compiled loops are used and, if not, why."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from plainrisk._version import __version__
from plainrisk.errors import warn

__all__ = ["COMPILED", "compiled", "kernels"]

ROUTINES = ("add_scores", "code_numbers", "level_sums", "logistic", "look_up", "pair_sums", "tree_cuts")


def _load() -> tuple[Any, str]:
    """Return the module of compiled loops, or None and the reason."""
    if os.environ.get("PLAINRISK_KERNELS") == "numpy":
        return None, "PLAINRISK_KERNELS=numpy"
    try:
        from plainrisk._native import _compiled
    except ImportError as error:
        there = any(Path(__file__).parent.glob("_compiled.*.so"))
        return None, f"the compiled module cannot be loaded: {error}" if there else "there is no compiled module"
    return fitting(_compiled)


def fitting(module: Any) -> tuple[Any, str]:
    """Return a compiled module if it has this version of the package, else None with one warning."""
    version = getattr(module, "VERSION", "unknown")
    if version == __version__ and all(hasattr(module, name) for name in ROUTINES):
        return module, ""
    reason = f"the compiled module is of version {version}, not {__version__}"
    warn(
        f"plainrisk: {reason}, so the slower numpy kernels are used. Build it again: pip install --force-reinstall "
        "plainrisk, or in a checkout pip install --editable .",
    )
    return None, reason


# The module of compiled loops, or None.
compiled, _reason = _load()
COMPILED = compiled is not None


def kernels() -> str:
    """Return which kernels are used: the compiled module's version, file and routines, or why it is not used."""
    if compiled is None:
        return f"numpy kernels: {_reason}"
    return f"compiled kernels {compiled.VERSION}, {Path(compiled.__file__).name}: {', '.join(ROUTINES)}"
