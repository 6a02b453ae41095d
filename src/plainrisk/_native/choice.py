"""Whether the compiled loops are used."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["COMPILED", "compiled"]


def _load() -> Any:
    if os.environ.get("PLAINRISK_KERNELS") == "numpy":
        return None
    try:
        from plainrisk._native import _compiled
    except ImportError:  # there was no compiler
        return None
    return _compiled


# The module of compiled loops, or None.
compiled = _load()
COMPILED = compiled is not None
