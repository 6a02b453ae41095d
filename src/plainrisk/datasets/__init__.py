"""Credit data by name, with a schema for each, and synthetic applications with a known truth.

>>> from plainrisk import datasets
>>> datasets.load("german").frame.shape
(1000, 20)
"""

from __future__ import annotations

from plainrisk.datasets.loading import CheckResult, Dataset, check, load
from plainrisk.datasets.registry import Info, Partial, info, names
from plainrisk.datasets.synthetic import make_credit
from plainrisk.datasets.tables import content_sha256

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
