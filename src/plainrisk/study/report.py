"""x"""

from typing import Any


def write_report(*a: Any) -> None:
    """x"""
