"""Figures as the document writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from plainrisk.text import plain_number

__all__ = [
    "NONE",
    "TINY",
    "auc",
    "count",
    "decimals",
    "effects_in",
    "figure",
    "needs_reason",
    "percent",
    "points",
    "points_with_ends",
    "share_with_ends",
    "signed",
    "titles_of",
    "value",
    "with_ends",
]

NONE = "–"  # where there is no figure
TINY = 0.0005  # a probability that is written as 0.0 percentage points when it is smaller

Ends = Mapping[str, float | None]


def value(number: Any) -> float | None:
    """Return a number, or None if there is none.

    >>> value(float("nan")), value(0.5)
    (None, 0.5)
    """
    return None if number is None or number != number else float(number)


def _written(number: Any, template: str, scale: float = 1.0) -> str:
    finite = value(number)
    return NONE if finite is None else template.format(scale * finite)


def figure(number: Any, digits: int = 3, sign: str = "") -> str:
    """Write a figure with some decimals.

    >>> figure(0.81234), figure(None), figure(-0.00004, 3, "+")
    ('0.812', '–', '+0.000')
    """
    return "infinite" if number in (float("inf"), -float("inf")) else _written(number, f"{{:{sign}z.{digits}f}}")


def percent(number: Any, digits: int = 1) -> str:
    """Write a share.

    >>> percent(0.1234), percent(None)
    ('12.3%', '–')
    """
    return _written(number, f"{{:z.{digits}%}}")


def points(number: Any, digits: int = 1) -> str:
    """Write a difference of shares in percentage points.

    >>> points(-0.0123)
    '-1.2'
    """
    return _written(number, f"{{:+z.{digits}f}}", 100)


def count(number: Any) -> str:
    """Write a number of rows.

    >>> count(12345.0), count(0.5)
    ('12,345', '0.5')
    """
    finite = value(number)
    return NONE if finite is None else plain_number(finite)


def _ends(estimate: Ends, write: Callable[[Any], str]) -> str:
    if value(estimate["estimate"]) is None:
        return NONE
    low, high = value(estimate["low"]), value(estimate["high"])
    if low == high == 0:
        return "0"  # nothing changes, so nothing is uncertain
    ends = "" if low is None else f" ({write(low)} to {write(high)})".replace(" ", "\xa0")
    return f"{write(estimate['estimate'])}{ends}"


def with_ends(estimate: Ends, digits: int = 3, sign: str = "") -> str:
    r"""Write a figure with its interval, never torn apart by the end of a line.

    >>> with_ends({"estimate": 0.8, "low": 0.78, "high": 0.82}).replace("\xa0", " ")
    '0.800 (0.780 to 0.820)'
    """
    return _ends(estimate, partial(figure, digits=digits, sign=sign))


def share_with_ends(estimate: Ends) -> str:
    r"""Write a share with its interval.

    >>> share_with_ends({"estimate": 0.8, "low": 0.78, "high": 0.82}).replace("\xa0", " ")
    '80.0% (78.0 to 82.0)'
    """
    return _ends(estimate, percent).replace("%\xa0to", "\xa0to").replace("%)", ")")


def points_with_ends(estimate: Ends) -> str:
    r"""Write a difference of shares in percentage points, with its interval.

    >>> points_with_ends({"estimate": -0.012, "low": -0.02, "high": 0.001}).replace("\xa0", " ")
    '-1.2 (-2.0 to +0.1)'
    """
    return _ends(estimate, points)


def effects_in(unit: str) -> tuple[Callable[[float], str], str]:
    """Return how contributions in a unit are written, and the name of what is written.

    >>> write, name = effects_in("probability")
    >>> write(0.0123), name
    ('1.2', 'points')
    """
    return (lambda size: figure(100 * size, 1), "points") if unit == "probability" else (figure, unit)


decimals = partial(figure, digits=4)
auc = partial(with_ends, digits=2)
signed = partial(with_ends, digits=4, sign="+")


def titles_of(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return what people call each feature of the model.

    >>> titles_of({"schema": [{"feature": "dur", "title": "Duration"}]})
    {'dur': 'Duration'}
    """
    return {one["feature"]: one["title"] for one in numbers["schema"]}


def needs_reason(feature: Mapping[str, Any]) -> bool:
    """Whether the modeler required anything of a feature, which needs a reason."""
    rules = feature["missing"] not in (None, "free") or feature["special_rules"] or feature["below_bound"]
    return bool(feature["direction"] != "none" or rules or feature["protected"] or feature["edits"])
