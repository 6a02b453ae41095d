"""Figures as the document writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plainrisk.text import plain_number

__all__ = [
    "NONE",
    "TINY",
    "count",
    "figure",
    "percent",
    "points",
    "points_with_ends",
    "share_with_ends",
    "short_hash",
    "titles_of",
    "value",
    "with_ends",
]

NONE = "–"  # where there is no figure
TINY = 0.0005  # a probability that is written as 0.0 percentage points when it is smaller

Ends = Mapping[str, float | None]


def value(number: Any) -> float | None:
    """Return a number, or None where there is none: a twin that was read again has nulls.

    >>> value(float("nan")), value(0.5)
    (None, 0.5)
    """
    return None if number is None or number != number else float(number)


def figure(number: Any, digits: int = 3, sign: str = "") -> str:
    """Write a figure with some decimals.

    >>> figure(0.81234), figure(None), figure(-0.00004, 3, "+")
    ('0.812', '–', '+0.000')
    """
    finite = value(number)
    if finite is None:
        return NONE
    return "infinite" if abs(finite) == float("inf") else f"{finite:{sign}z.{digits}f}"


def percent(number: Any, digits: int = 1) -> str:
    """Write a share.

    >>> percent(0.1234), percent(None)
    ('12.3%', '–')
    """
    finite = value(number)
    return NONE if finite is None else f"{finite:z.{digits}%}"


def points(number: Any, digits: int = 1) -> str:
    """Write a difference of shares in percentage points.

    >>> points(-0.0123)
    '-1.2'
    """
    finite = value(number)
    return NONE if finite is None else f"{100 * finite:+z.{digits}f}"


def count(number: Any) -> str:
    """Write a number of rows.

    >>> count(12345.0), count(0.5)
    ('12,345', '0.5')
    """
    finite = value(number)
    return NONE if finite is None else plain_number(finite)


def _ends(found: Ends, write: Callable[[Any], str]) -> str:
    if value(found["estimate"]) is None:
        return NONE
    low, high = value(found["low"]), value(found["high"])
    if low == high == 0:
        return "0"  # nothing changes, so nothing is uncertain
    ends = "" if low is None else f" ({write(low)} to {write(high)})".replace(" ", "\xa0")
    return f"{write(found['estimate'])}{ends}"


def with_ends(found: Ends, digits: int = 3, sign: str = "") -> str:
    r"""Write a figure with its interval, never torn apart by the end of a line.

    >>> with_ends({"estimate": 0.8, "low": 0.78, "high": 0.82}).replace("\xa0", " ")
    '0.800 (0.780 to 0.820)'
    """
    return _ends(found, lambda number: figure(number, digits, sign))


def share_with_ends(found: Ends, digits: int = 1) -> str:
    r"""Write a share with its interval.

    >>> share_with_ends({"estimate": 0.8, "low": 0.78, "high": 0.82}).replace("\xa0", " ")
    '80.0% (78.0 to 82.0)'
    """
    return _ends(found, lambda number: percent(number, digits)).replace("%\xa0to", "\xa0to").replace("%)", ")")


def points_with_ends(found: Ends) -> str:
    r"""Write a difference of shares in percentage points, with its interval.

    >>> points_with_ends({"estimate": -0.012, "low": -0.02, "high": 0.001}).replace("\xa0", " ")
    '-1.2 (-2.0 to +0.1)'
    """
    return _ends(found, points)


def titles_of(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return what people call each feature of the model.

    >>> titles_of({"schema": [{"feature": "dur", "title": "Duration"}]})
    {'dur': 'Duration'}
    """
    return {one["feature"]: one["title"] for one in numbers["schema"]}


def short_hash(digest: str) -> str:
    """Write the beginning of a hash, enough to tell files apart.

    >>> short_hash("0123456789abcdef0123")
    '0123456789abcdef'
    """
    return digest[:16]
