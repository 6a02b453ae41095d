"""The options of explain, reasons, decide and what_if, each declared once.

A frozen dataclass per verb declares the options with their defaults and help. Functions and methods take its fields by
the decorator `takes`, commands read them, and prepared objects (`explainer`, `reasoner`, `planner`) take an instance.
"""

# ruff: noqa: RUF009  (`option` calls dataclasses.field, which belongs there)
from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar, cast

from plainrisk.checks import (
    LIST,
    NOTHING,
    PROBABILITY,
    Allowed,
    check_parameters,
    mapping,
    number,
    whole,
)
from plainrisk.checks import words as known_words
from plainrisk.errors import DataError, did_you_mean

__all__ = ["ExplainOptions", "ReasonOptions", "WhatIfOptions", "WhatIfsOptions", "check_features", "takes"]

Adverse = Literal["positive", "negative"]
Unit = Literal["probability", "log odds"]
Value = float | str | None


def _are_names(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str) and all(isinstance(v, str) for v in value)


# The allowed values of several options.
FEATURES = Allowed(("a list of features",), _are_names)
ROWS = number(at_least=0)

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")


def option(
    default: Any,
    help: str,
    *,
    words: tuple[str, ...] = (),
    other: tuple[str, ...] = (),
    allowed: Allowed | None = None,
    python: str = "",
) -> Any:
    """Declare an option.

    Parameters
    ----------
    default : its value where none is given
    help : one or two sentences for documentation and command line
    words : the words it may be
    other : what else it may be, such as ("a row",)
    allowed : what it may be, where words and others do not say it
    python : a sentence about values that only Python can give
    """
    metadata = {
        "help": help,
        "python": python,
        "words": words,
        "other": other,
        "allowed": allowed or _allowed(default, words, other),
    }
    return field(default=default, metadata=metadata)


def _allowed(default: Any, words: tuple[str, ...], other: tuple[str, ...]) -> Allowed:
    """Allow some words and, if `other` is given, any value but text; None if that is the default."""
    allowed = known_words(*words)
    if other:
        allowed |= Allowed(other, lambda value: not isinstance(value, str))
    return allowed | NOTHING if default is None else allowed


def _portfolio() -> Any:
    return option(None, "The portfolio rows, for references that need them (lines, curves and trees).", other=("rows",))


@dataclass(frozen=True, kw_only=True)
class Options:
    """The base of all options, which refuses unknown names and values that are not allowed."""

    verb: ClassVar[str] = ""

    columns: Sequence[str] | None = option(
        None, "The names of the columns, for rows that have none.", other=("a list of names",)
    )

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Refuse unknown names before dataclasses do, with the nearest name."""
        allowed = _allowed_of(cast("Any", cls))
        for name in options:
            if name not in allowed:
                raise DataError(f"{cls.verb}: there is no option {name!r}.{did_you_mean(name, allowed)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_parameters(self.verb, vars(self), _allowed_of(cast("Any", type(self))))


@functools.cache
def _allowed_of(options: Any) -> dict[str, Allowed]:
    """Return what each option may be."""
    return {f.name: f.metadata["allowed"] for f in fields(options)}


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(Options):
    """The options of `explain`."""

    verb: ClassVar[str] = "explain"

    reference: Any = option(
        "typical",
        "The reference for contributions: the typical applicant (every shape at its mean over the portfolio or the "
        "training rows), the best levels, or zero: for a line, coefficient times value; for a mixture, "
        "weight times risk of every subscale.",
        python="A row is compared with as it is.",
        words=("typical", "best", "zero"),
        other=("a row",),
    )
    portfolio: Any = _portfolio()
    unit: Unit = option(
        "probability",
        "The unit of the contributions: pieces of the probability, or, if the last link is logistic, of the log odds.",
        words=("probability", "log odds"),
    )
    min_rows: float = option(0.0, "Levels with fewer training rows cannot be the best.", allowed=ROWS)


@dataclass(frozen=True)
class ReasonOptions(Options):
    """The options of `reasons`."""

    verb: ClassVar[str] = "reasons"

    k: int | None = option(
        None,
        "The largest number of reasons, not above the policy's; without it the policy's, or 4.",
        allowed=NOTHING | whole(1),
    )
    _: KW_ONLY
    reference: Any = option(
        None,
        "The reference for reasons: the best levels, or the typical applicant (every shape at its "
        "mean over the portfolio, or over the training rows); by default, as the policy says.",
        python="A row is compared with as it is.",
        words=("best", "typical"),
        other=("a row",),
    )
    portfolio: Any = _portfolio()
    min_rows: float = option(0.0, "Levels with fewer training rows cannot be the best.", allowed=ROWS)


@dataclass(frozen=True)
class DecideOptions(ReasonOptions):
    """The options of `decide`, which gives reasons only to refused applicants."""

    verb: ClassVar[str] = "decide"


@dataclass(frozen=True)
class WhatIfOptions(Options):
    """The options of `what_if`."""

    verb: ClassVar[str] = "what_if"

    target: float | None = option(
        None,
        "The cut-off to pass; without it, the policy's. Every answer is approved by it.",
        allowed=NOTHING | PROBABILITY,
    )
    _: KW_ONLY
    frozen: Sequence[str] = option((), "Features that must stay as they are.", allowed=FEATURES)
    cost: Literal["features", "steps"] = option(
        "features",
        "'features': as few features as possible, and of these the least sum of steps times the schema's step_cost; "
        "'steps': the least such sum.",
        words=("features", "steps"),
    )
    answers: int = option(
        3,
        "The largest number of answers, each without at least one feature of every answer before it.",
        allowed=whole(1),
    )
    values: Mapping[str, Iterable[Value]] | None = option(
        None,
        "Values to try, by feature, instead of bins; features that enter as a line or a curve move only by these.",
        allowed=NOTHING | mapping("a dict by feature", LIST),
    )
    min_rows: float = option(0.0, "Changes never lead to levels with fewer training rows.", allowed=ROWS)


@dataclass(frozen=True, kw_only=True)
class WhatIfsOptions(WhatIfOptions):
    """The options of `what_ifs`: those of `what_if`, with one answer per row by default."""

    verb: ClassVar[str] = "what_ifs"

    answers: int = option(1, "The largest number of answers per row.", allowed=whole(1))


def check_features(known: Collection[str], **lists: Iterable[str]) -> None:
    """Refuse an option that names an unknown feature."""
    for option_name, names in lists.items():
        for name in names:
            if name not in known:
                raise DataError(f"{option_name}: there is no feature {name!r}.{did_you_mean(name, known)}")


def takes(
    options: Callable[P, Options],
) -> Callable[[Callable[Concatenate[S, Any, ...], R]], Callable[Concatenate[S, Any, P], R]]:
    """Give a function that forward ``*args, **options`` the signature, documentation and types of an options class.

    The function's own parameters come first. Its docstring has the line ``{options}`` where the options are documented.
    """

    def decorate(function: Callable[Concatenate[S, Any, ...], R]) -> Callable[Concatenate[S, Any, P], R]:
        signature = inspect.signature(function)
        positional = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        declared = inspect.signature(options).parameters.values()
        function.__signature__ = signature.replace(parameters=[*positional, *declared])  # type: ignore[attr-defined]
        if function.__doc__ is not None:  # python -OO leaves docstrings out
            function.__doc__ = _documented(function.__doc__, options)
        return function

    return decorate


def _documented(text: str, options: Any) -> str:
    """Write the options into a docstring, with the indentation of the line that they replace."""
    before, _, after = text.partition("{options}")
    indent = before[before.rindex("\n") :]
    width = 118 - len(indent)
    lines = []
    for f in fields(options):
        kind = " or ".join([*map(repr, f.metadata["words"]), *f.metadata["other"]]) or str(f.type)
        default = "" if f.default is MISSING else f", default={f.default!r}"
        lines.append(f"{f.name} : {kind}{default}")
        lines += textwrap.wrap(
            f"{f.metadata['help']} {f.metadata['python']}", width, initial_indent="    ", subsequent_indent="    "
        )
    return before + indent.join(lines) + after
