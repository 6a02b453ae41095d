"""The registered readers, found by the name of a model's class, so that no other library is imported."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, ExtractionError, ModelFileError, PlainriskError
from plainrisk.extract.reading import Additive, Extractor, Sigmoid, TreeSum, refuse, require_fitted
from plainrisk.extract.risk_form import build_form
from plainrisk.form import RiskForm
from plainrisk.schema import Schema

__all__ = [
    "class_names",
    "extract_form",
    "read_any",
    "read_form",
    "read_model",
    "refuse_type",
    "register_extractor",
    "supported_models",
]

_EXTRACTORS: dict[str, Extractor] = {}
_REFUSED: dict[str, str] = {}


def extract_form(
    model: Any, X: Any = None, *, schema: Schema | None = None, y: Any = None, sample_weight: Any = None
) -> RiskForm:
    r"""Read a fitted logistic classifier as a risk form.

    The form's score is the model's own log odds:

    .. math:: \text{intercept} + \sum_u \text{shape}_u(x_u) = \log \frac{P(1 \mid x)}{P(0 \mid x)}

    Where the log odds are a sum over features, the form has one additive part, named "all"; a sum of trees
    that read several features each is a part of trees, which is not additive. Nothing is approximated.

    Parameters
    ----------
    model : a fitted model
    X : rows, optional
        The training rows, with the columns the model was given. They name the columns where the model does
        not, count the rows per level, and center every shape, so that 0 means neutral: tables and curves on
        their mean, lines at the mean of the measured values. Without rows no shape is centered, and every
        level the model has a score for counts as seen with weight 1.
    schema : Schema, optional
        Directions, special values, reasons and subscales of the features the model uses. If its `positive`
        outcome is the model's first class, the form holds the log odds of that one.
    y, sample_weight : optional
        Outcomes and weights of the rows X, for the training counts per level (0 positives without y).

    Returns
    -------
    RiskForm
        With a logistic link. Levels that the model has no answer for (a missing value in a linear model) have
        the score 0 and the weight 0: unseen.

    Raises
    ------
    ExtractionError
        If the model is not fitted, not binary, not logistic, or of a kind that is not known.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = {"age": [30.0, 40.0, 50.0, 60.0]}, [1, 0, 1, 0]
    >>> model = LogisticRegression().fit([[a] for a in X["age"]], y)
    >>> form = extract_form(model, X)
    >>> form.parts[0].shapes["age"].center
    45.0
    >>> bool(abs(form.score(X) - model.decision_function([[a] for a in X["age"]])).max() < 1e-12)
    True
    """
    form, sigmoid = read_any(model, X, schema, y, sample_weight)
    if sigmoid != "logistic":
        raise refuse(
            model,
            f"its link is {sigmoid}, and a risk form knows log odds and lines. Make it a line: pr.linearise(model).",
        )
    return form


def read_any(
    model: Any, X: Any = None, schema: Schema | None = None, y: Any = None, sample_weight: Any = None
) -> tuple[RiskForm, Sigmoid]:
    """Read a fitted model as a form, and the sigmoid that turns its score into a probability.

    If that is not "logistic", the form's link is not the model's.
    """
    if isinstance(model, RiskForm):
        return model, "logistic"
    if X is None and (y is not None or sample_weight is not None):
        raise DataError("Extract: y and sample_weight belong to rows. Pass X too.")
    frame = None if X is None else as_frame(X)
    read = read_model(model, frame)
    if isinstance(read, RiskForm):
        return read, "logistic"
    sigmoid: Sigmoid = read.sigmoid if isinstance(read, Additive) else "logistic"
    try:
        return build_form(read, frame, schema, y, sample_weight), sigmoid
    except ModelFileError as error:
        raise refuse(model, f"its numbers make no risk form. {error}") from None


def register_extractor(model_type: str | type, extractor: Extractor) -> None:
    """Add or replace a reader for models of another class.

    Parameters
    ----------
    model_type : the class, or its name with the package or module it lives in
        ``"package.Class"`` also serves ``package.module.Class``, and subclasses.
    extractor : callable (model, frame) -> Additive, TreeSum or RiskForm
        `frame` holds the rows that `extract_form` was given, or None.

    Examples
    --------
    >>> class Points:
    ...     scores = {"age": 0.02}
    >>> def read_points(model, frame):
    ...     effects = {name: NumberEffect.line(slope) for name, slope in model.scores.items()}
    ...     return Additive(intercept=-1.0, effects=effects, columns=tuple(effects))
    >>> from plainrisk.extract import Additive, NumberEffect
    >>> register_extractor(Points, read_points)
    >>> extract_form(Points()).score({"age": [50.0]}).tolist()
    [0.0]
    """
    if not callable(extractor):
        raise ExtractionError(f"register_extractor: a function of (model, frame) is needed, not {extractor!r}.")
    _EXTRACTORS[_name(model_type)] = extractor


def refuse_type(model_type: str | type, reason: str) -> None:
    """Register why models of a class can never be read."""
    _REFUSED[_name(model_type)] = reason


def supported_models() -> tuple[str, ...]:
    """Return the names of the classes that can be read.

    >>> "sklearn.linear_model.LogisticRegression" in supported_models()
    True
    """
    return tuple(sorted(_EXTRACTORS))


def read_model(model: Any, frame: Frame | None) -> Additive | TreeSum | RiskForm:
    """Read a model, before training counts and schema are added."""
    for name in class_names(type(model)):
        if name in _EXTRACTORS:
            return _read(_EXTRACTORS[name], model, frame)
        if name in _REFUSED:
            raise refuse(model, _REFUSED[name])
    if isinstance(inspect.getattr_static(model, "form_", None), RiskForm):
        return read_form(model, frame)
    if isinstance(model, type):
        raise ExtractionError(f"Extract: {model.__name__} is a class. Pass a fitted model, not its class.")
    known = ", ".join(supported_models())
    raise refuse(
        model,
        f"models of {type(model).__module__}.{type(model).__qualname__} are not known. Known: {known}. "
        "Add a reader of your own with register_extractor.",
    )


def _read(extractor: Extractor, model: Any, frame: Frame | None) -> Additive | TreeSum | RiskForm:
    """Read a model whose attributes may be anything: it may have been changed, or saved by another library version."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            return extractor(model, frame)
    except PlainriskError:
        raise
    except Exception as error:
        raise refuse(
            model,
            f"its attributes are not those of a fitted model of its class ({type(error).__name__}). Fit it anew, with "
            "a version of its library that plainrisk knows.",
        ) from error


def read_form(model: Any, frame: Frame | None) -> RiskForm:
    """Return the form of one of our models, or of any model with an attribute `form_`."""
    form = require_fitted(model, "form_")
    assert isinstance(form, RiskForm)
    return form


def class_names(cls: type) -> Iterator[str]:
    """Yield the names that a class and the classes above it may be registered under, the nearest first.

    >>> from collections import OrderedDict
    >>> list(class_names(OrderedDict))
    ['collections.OrderedDict', 'builtins.dict', 'builtins.object']
    """
    for parent in cls.__mro__:
        module = parent.__module__.split(".")
        yield from (".".join([*module[:k], parent.__qualname__]) for k in range(len(module), 0, -1))


def _name(model_type: str | type) -> str:
    if isinstance(model_type, str):
        return model_type
    if not isinstance(model_type, type):
        raise ExtractionError(f"register_extractor: a class or its name is needed, not {model_type!r}.")
    return f"{model_type.__module__}.{model_type.__qualname__}"
