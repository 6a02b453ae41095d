"""Models by name: the one place where the command line makes an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plainrisk.errors import DataError, did_you_mean
from plainrisk.schema import Schema

__all__ = ["MODELS", "check_model", "make_model", "parse_ridge"]


def _arm1(**options: Any) -> Any:
    from plainrisk.estimators.arm import AdditiveRiskModel

    return AdditiveRiskModel(**options)


def _arm2(**options: Any) -> Any:
    from plainrisk.estimators.two_layer import TwoLayerRiskModel

    return TwoLayerRiskModel(**options)


def _nnlr(**options: Any) -> Any:
    from plainrisk.estimators.nnlr import NonnegativeLogisticRegression

    return NonnegativeLogisticRegression(**options)


MODELS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "ARM1": (_arm1, {}),
    "ARM2": (_arm2, {}),
    "DirectARM1": (_arm1, {"link": "linear"}),
    "DirectARM2": (_arm2, {"link": "linear"}),
    "NNLR": (_nnlr, {}),
}


def make_model(name: str, schema: Schema | None, **options: Any) -> Any:
    """Return an unfitted model by name; options that are None keep the model's own default.

    >>> make_model("DirectARM1", None, max_bins=8, ridge=None).max_bins
    8
    """
    check_model(name)
    given = {key: value for key, value in options.items() if value is not None}
    if name == "NNLR" and "max_bins" in given:
        raise DataError("NNLR takes the features as they are and has no bins. Leave out --max-bins.")
    make, fixed = MODELS[name]
    return make(schema=schema, **fixed, **given)


def check_model(name: str) -> None:
    """Raise unless there is a model of this name."""
    if name not in MODELS:
        same = [known for known in MODELS if known.lower() == name.lower()]
        hint = did_you_mean(same[0] if same else name, MODELS)
        near = "" if hint.startswith(" Known") else hint
        raise DataError(f"There is no model {name!r}.{near} Known: {', '.join(MODELS)}.")


def parse_ridge(text: str | None) -> float | str | None:
    """Read --ridge: "auto", a number, or None where it was not given.

    >>> parse_ridge("auto"), parse_ridge("0.01"), parse_ridge(None)
    ('auto', 0.01, None)
    """
    if text is None or text == "auto":
        return text
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 <= number < float("inf"):
        raise DataError(f"--ridge must be 'auto' or a number not below 0, not {text!r}.")
    return number
