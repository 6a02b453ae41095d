"""The research bench of plainrisk: studies over data sets, rank tests, and the reproduction of the paper.

It is not part of plainrisk's wheel, and nothing there imports it. Installed, it adds `plainrisk study` and
`plainrisk compare` to the command line.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plainrisk_lab import compare, study

__all__ = ["compare", "study"]


def __getattr__(name: str) -> Any:
    """Import a part when it is first asked for: `plainrisk --help` reads the list of commands alone."""
    if name not in __all__:
        raise AttributeError(f"module 'plainrisk_lab' has no attribute {name!r}")
    return importlib.import_module(f"plainrisk_lab.{name}")
