"""Credit data by name, with a schema for each, and synthetic applications with a known truth.

>>> from plainrisk import datasets
>>> datasets.load("german").frame.shape
(1000, 20)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plainrisk.datasets.loading import CheckResult, Dataset, check, load
from plainrisk.datasets.registry import Info, Partial, info, names
from plainrisk.datasets.tables import content_sha256

if TYPE_CHECKING:
    from plainrisk.datasets.synthetic import make_credit

__all__ = [
    "CheckResult",
    "Dataset",
    "Info",
    "Partial",
    "check",
    "content_sha256",
    "info",
    "load",
    "make_credit",
    "names",
]


def __getattr__(name: str) -> Any:
    """Import what makes rows, and with it scipy, when it is first asked for."""
    if name != "make_credit":
        raise AttributeError(f"module 'plainrisk.datasets' has no attribute {name!r}")
    from plainrisk.datasets.synthetic import make_credit

    return make_credit
