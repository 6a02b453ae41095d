"""Models by name: the one place where the command line makes an estimator."""

from __future__ import annotations

from typing import Any

from plainrisk.errors import DataError, did_you_mean
from plainrisk.schema import Schema

__all__ = ["DEFAULT_MODEL", "check_model", "make_model", "parse_ridge"]

# Exact in probability, in the logistic model's order, with no row clipped: docs/models-table.md has the figures.
DEFAULT_MODEL = "BandARM1"


def make_model(name: str, schema: Schema | None, **options: Any) -> Any:
    """Return an unfitted model by name; options that are None keep the model's own default.

    >>> make_model("DirectARM1", None, max_bins=8, ridge=None).max_bins
    8
    """
    from plainrisk.models.registry import CLASSIFIERS, make_classifier

    check_model(name)
    given = {key: value for key, value in options.items() if value is not None}
    for option in given:
        if option not in (*CLASSIFIERS[name].inner, *CLASSIFIERS[name].outer):
            raise DataError(f"{name} has no {option.replace('_', ' ')}. Leave out --{option.replace('_', '-')}.")
    return make_classifier(name, schema, **given)


def check_model(name: str) -> None:
    """Raise unless there is a model of this name."""
    from plainrisk.models.registry import CLASSIFIERS

    if name not in CLASSIFIERS:
        same = [known for known in CLASSIFIERS if known.lower() == name.lower()]
        hint = did_you_mean(same[0] if same else name, CLASSIFIERS)
        near = "" if hint.startswith(" Known") else hint
        raise DataError(f"There is no model {name!r}.{near} Known: {', '.join(CLASSIFIERS)}.")


def parse_ridge(text: str | None) -> float | str | None:
    """Read --ridge: "auto", "cv", a number, or None where it was not given.

    >>> parse_ridge("auto"), parse_ridge("0.01"), parse_ridge(None)
    ('auto', 0.01, None)
    """
    if text is None or text in ("auto", "cv"):
        return text
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 <= number < float("inf"):
        raise DataError(f"--ridge must be 'auto', 'cv' or a number not below 0, not {text!r}.")
    return number
