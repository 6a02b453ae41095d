"""Everything plainrisk raises or warns about.

    PlainriskError
     ├─ SchemaError        the schema is wrong, or does not fit the data
     ├─ DataError          the data cannot be used as they are
     ├─ ModelFileError     a model file is damaged, too new or not ours
     ├─ SignatureError     a file is not signed by the key that is asked for, or was changed after it was signed
     ├─ KeyFileError       a key cannot be used, or is not of the kind that is needed
     ├─ ExtractionError    a fitted model of another library cannot be read as a risk form
     ├─ OutputError        a file cannot be written; the old one is unchanged
     └─ MissingExtraError  an optional package is not installed

    PlainriskWarning       something was done that the user should know of, said once
     └─ StoppedEarly       a solver stopped on its rule before it reached the optimum

The first six are also `ValueError` and `OutputError` is also `OSError`, so that scikit-learn and callers who know
only Python can catch them.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar

from plainrisk.text import visible

__all__ = [
    "DataError",
    "ExtractionError",
    "KeyFileError",
    "MissingExtraError",
    "ModelFileError",
    "OutputError",
    "PlainriskError",
    "PlainriskWarning",
    "SchemaError",
    "SignatureError",
    "StoppedEarly",
    "did_you_mean",
    "listing",
    "missing_extra",
    "nameless",
    "quiet",
    "quoted",
    "warn",
]

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_is_quiet: ContextVar[bool] = ContextVar("_is_quiet", default=False)


class PlainriskError(Exception):
    """Any error raised on purpose by plainrisk; names from outside are shown with escapes."""

    def __str__(self) -> str:
        return visible(super().__str__())


class SchemaError(PlainriskError, ValueError):
    """The schema contradicts itself or does not fit the data."""


class DataError(PlainriskError, ValueError):
    """The data cannot be used in this form."""


class ModelFileError(PlainriskError, ValueError):
    """A model file is damaged, too new, too large or not a plainrisk model."""


class SignatureError(PlainriskError, ValueError):
    """A file is not signed by the key that is asked for, or was changed after it was signed."""


class KeyFileError(PlainriskError, ValueError):
    """A file contains no usable key, or not the required kind of key."""


class ExtractionError(PlainriskError, ValueError):
    """A fitted model cannot be read as a risk form: its log odds are unknown, or are no sum over features."""


class OutputError(PlainriskError, OSError):
    """A file cannot be written; an existing file of that name is unchanged."""


class MissingExtraError(PlainriskError, ImportError):
    """An optional package is not installed."""


class PlainriskWarning(UserWarning):
    """Something was done that the user should know of."""

    def __str__(self) -> str:
        return visible(super().__str__())


class StoppedEarly(PlainriskWarning):
    """A solver stopped on its stated rule before it reached the optimum; the model is usable."""


def warn(message: str, category: type[PlainriskWarning] = PlainriskWarning) -> None:
    """Warn of something at the line of the caller: the first one that is not in plainrisk."""
    if _is_quiet.get():
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        level, frame = level + 1, frame.f_back
    # Counted from here, the line that warns is level 2.
    warnings.warn(message, category, stacklevel=level)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress our warnings inside the block; those of other threads, and their filters, do not change."""
    before = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(before)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return ``" Did you mean 'income'?"``, or the known names if none is near, or nothing.

    >>> did_you_mean("incme", ["income", "age"])
    " Did you mean 'income'?"
    >>> did_you_mean("zip", ["income", "age"])
    " Known: 'income', 'age'."
    """
    names = [str(k) for k in known]
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if near:
        return f" Did you mean {near[0]!r}?"
    if not names:
        return ""
    shown = ", ".join(repr(n) for n in names[:8])
    return f" Known: {shown}{', ...' if len(names) > 8 else ''}."


def listing(who: str, problems: Sequence[str], noun: str = "problems") -> str:
    """Return one problem as one line, several as a list."""
    if len(problems) == 1:
        return f"{who}: {problems[0]}"
    return f"{who}: {len(problems)} {noun}\n" + "\n".join(f"  - {p}" for p in problems)


def quoted(names: Sequence[str], most: int = 12) -> str:
    """Return names in quotes, the first few if there are many.

    >>> quoted(["age", "job", "zip"], most=2)
    "'age', 'job' and 1 more"
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def nameless(who: str) -> DataError:
    """Return the error for rows without column names where features are known by name."""
    return DataError(
        f"Data: {who} knows its features by name, but the rows have no column names, and columns are not matched by "
        "position. Pass a data frame, or columns=[...] in the order of the columns; in a pipeline, call "
        'set_output(transform="pandas") on the step before.'
    )


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Return the error that explains how to install an optional package."""
    return MissingExtraError(f"{package} is needed for this and is not installed: pip install 'plainrisk[{extra}]'")
