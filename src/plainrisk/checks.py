"""Parameters are checked by declarations: a table lists their allowed values, and one function compares.

>>> table = {"ridge": words("auto", "cv") | number(at_least=0), "folds": whole(2)}
>>> check_parameters("fit", {"ridge": "auot", "folds": 5}, table)
Traceback (most recent call last):
plainrisk.errors.DataError: fit: ridge must be 'auto', 'cv' or a finite number of at least 0, not 'auot'. Did you ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from plainrisk.errors import DataError, did_you_mean

__all__ = [
    "FLAG",
    "FUNCTION",
    "LEVEL",
    "LIST",
    "NOTHING",
    "PROBABILITY",
    "SEED",
    "Allowed",
    "allowed_parameters",
    "check_parameters",
    "instance",
    "is_finite",
    "mapping",
    "number",
    "parameter",
    "whole",
    "words",
]


@dataclass(frozen=True)
class Allowed:
    """The allowed values of a parameter; `a | b` allows both.

    Attributes
    ----------
    texts : the alternatives, as a message names them
    accepts : whether a value is one of them; it never raises
    known : the words among them
    """

    texts: tuple[str, ...]
    accepts: Callable[[Any], bool]
    known: tuple[str, ...] = ()

    def __or__(self, other: Allowed) -> Allowed:
        return Allowed(
            (*self.texts, *other.texts),
            lambda value: self.accepts(value) or other.accepts(value),
            (*self.known, *other.known),
        )

    def __str__(self) -> str:
        *first, last = self.texts
        return f"{', '.join(first)} or {last}" if first else last


def check_parameters(who: str, given: Mapping[str, Any], table: Mapping[str, Allowed]) -> None:
    """Raise if a parameter is not what its table allows; name what is allowed, what came, and the nearest word."""
    for name, allowed in table.items():
        value = given[name]
        if not allowed.accepts(value):
            near = did_you_mean(value, allowed.known) if isinstance(value, str) else ""
            hint = near if near.startswith(" Did") else ""  # all words are in the message already
            raise DataError(f"{who}: {name} must be {allowed}, not {_shown(value)}.{hint}")


def parameter(default: Any, allowed: Allowed) -> Any:
    """Declare a parameter, a field of a dataclass: its default, and what it may be."""
    return field(default=default, metadata={"allowed": allowed})


def allowed_parameters(declared: type) -> dict[str, Allowed]:
    """Return the allowed values of a dataclass's parameters by name, without empty entries."""
    return {entry.name: entry.metadata["allowed"] for entry in fields(declared) if "allowed" in entry.metadata}


def _shown(value: Any) -> str:
    """Return a parameter for a message: numbers and short texts unchanged, of everything else the type."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:39]}…")
    if isinstance(value, Integral) and abs(int(value)) >= 10**30:
        return "a number of over 30 digits"
    if value is None or isinstance(value, Real | np.bool_):
        return str(value)
    return f"a value of type {type(value).__name__}"


def words(*known: str) -> Allowed:
    """Allow some words."""
    return Allowed(tuple(map(repr, known)), lambda value: isinstance(value, str) and value in known, known)


def number(
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Allowed:
    """Allow finite numbers inside limits, of Python or numpy; booleans are refused."""
    limits = {"of at least": at_least, "above": above, "of at most": at_most, "below": below}
    text = " and ".join(f"{words} {limit:g}" for words, limit in limits.items() if limit is not None)

    def accepts(value: Any) -> bool:
        return (
            _is_number(value, Real)
            and is_finite(value)
            and (at_least is None or value >= at_least)
            and (at_most is None or value <= at_most)
            and (above is None or value > above)
            and (below is None or value < below)
        )

    return Allowed((f"a finite number {text}".rstrip(),), accepts)


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Whether a number is finite in double precision."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def whole(least: int | None = None, most: int | None = None) -> Allowed:
    """Allow whole numbers of any size, of Python or numpy, from a least one on; booleans are refused."""
    text = "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most:,}"

    def accepts(value: Any) -> bool:
        return _is_number(value, Integral) and (least is None or value >= least) and (most is None or value <= most)

    return Allowed((f"a whole number{text}",), accepts)


def instance(text: str, *kinds: type) -> Allowed:
    """Allow the objects of some types."""
    return Allowed((text,), lambda value: isinstance(value, kinds))


def mapping(text: str, values: Allowed) -> Allowed:
    """Allow dicts whose values are all allowed."""
    return Allowed(
        (f"{text} ({values})",), lambda value: isinstance(value, Mapping) and all(map(values.accepts, value.values()))
    )


NOTHING = Allowed(("None",), lambda value: value is None)
FLAG = Allowed(("True", "False"), lambda value: isinstance(value, bool | np.bool_))
LIST = Allowed(("a list",), lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes))
FUNCTION = Allowed(("a function",), callable)
SEED = whole(0)
PROBABILITY = Allowed(("a probability, from 0 to 1",), number(at_least=0, at_most=1).accepts)
LEVEL = number(above=0, below=1)  # of intervals and tests
