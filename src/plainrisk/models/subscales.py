"""Fit one model per subscale: ours under a schema, anybody's on the subscale's columns."""

from __future__ import annotations

import collections
import copy
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import get_tags

from plainrisk.data.frame import Frame, native_rows
from plainrisk.errors import DataError, ExtractionError, PlainriskWarning, did_you_mean
from plainrisk.extract import extract_form
from plainrisk.form import Part, RiskForm, TreePart
from plainrisk.models.arm import AdditiveRiskModel, check_link
from plainrisk.models.fitting import Design, Encoded, RisksOf
from plainrisk.models.streams import Stream
from plainrisk.models.training import Training
from plainrisk.schema import Schema
from plainrisk.solve import Solution
from plainrisk.solve.threads import one_thread
from plainrisk.threads import side_by_side

__all__ = ["Expert", "fit_experts", "subscales_of", "takes_missing", "takes_schema", "with_schema"]

Floats = npt.NDArray[np.float64]

# Experts are fitted side by side if each has so many values that loops over them take longer than the interpreter,
# which serves one thread at a time, and rows are not so many that each expert has work for all threads.
_MANY_VALUES, _MOST_ROWS = 1 << 15, 1 << 18


@dataclass(frozen=True)
class Expert:
    """A fitted model of one subscale.

    Attributes
    ----------
    name, features : the subscale
    model : the fitted estimator
    form : its risk form, or None where it has none
    training_risks : makes what gives risks of the rows it was fitted on, if that is quicker than reading them again
    """

    name: str
    features: tuple[str, ...]
    model: Any
    form: RiskForm | None
    training_risks: Callable[[], RisksOf] | None = None

    @property
    def has_part(self) -> bool:
        """Whether the expert is one part of a risk form."""
        return self.form is not None and len(self.form.parts) == 1

    @property
    def part(self) -> Part | TreePart:
        """The form's one part, under the subscale's name."""
        if self.form is None or not self.has_part:
            raise DataError(f"Subscale {self.name!r}: {type(self.model).__name__} is not a one-layer model.")
        return msgspec.structs.replace(self.form.parts[0], name=self.name)

    def risk(self, frame: Frame) -> Floats:
        """Return the risk the expert sees, one per row."""
        if self.form is not None:
            return self.form.risk(frame)
        return np.asarray(self.model.predict_proba(native_rows(frame, self.features))[:, 1], dtype=np.float64)


def subscales_of(schema: Schema) -> dict[str, tuple[str, ...]]:
    """Return the subscales, or one per feature where the schema names none."""
    return dict(schema.subscales) or {name: (name,) for name in schema.features}


def takes_schema(estimator: Any) -> bool:
    """Whether an estimator, or one it wraps, has a schema of ours to set."""
    return any(name == "schema" or name.endswith("__schema") for name in estimator.get_params())


def takes_missing(estimator: Any) -> bool:
    """Whether an estimator says that missing values may be among its rows."""
    return not hasattr(estimator, "__sklearn_tags__") or bool(get_tags(estimator).input_tags.allow_nan)


def with_schema(estimator: Any, schema: Schema) -> Any:
    """Return a clone of an estimator with the schema set, its own or that of the one it wraps."""
    model = clone(estimator)
    names = [n for n in model.get_params() if n == "schema" or n.endswith("__schema")]
    if names == ["schema"]:
        model.schema = schema
        return model
    return model.set_params(**dict.fromkeys(names, schema))


def fit_experts(estimator: Any, training: Training | Stream, *, keep_rows: bool = False) -> dict[str, Expert]:
    """Fit a clone of the estimator (or each subscale's own, from a dict) on every subscale.

    With `keep_rows` experts may hold on to the codes of their rows, to give their risks sooner.
    """
    subscales = subscales_of(training.schema)
    if isinstance(estimator, Mapping):
        _check_names(estimator, subscales)
    experts = {}
    with warnings.catch_warnings():
        # What the user should know is said once, by the whole model.
        warnings.simplefilter("ignore", PlainriskWarning)
        for expert in _fit_each(estimator, subscales, training):
            experts[expert.name] = expert if keep_rows else replace(expert, training_risks=None)
    return experts


def _fit_each(
    estimator: Any, subscales: Mapping[str, tuple[str, ...]], training: Training | Stream
) -> Iterator[Expert]:
    if type(estimator) is AdditiveRiskModel and isinstance(training, Training):
        yield from _fit_additive(estimator, subscales, training)
        return
    for name, features in subscales.items():
        one = estimator[name] if isinstance(estimator, Mapping) else estimator
        yield _fit_expert(one, name, features, training)


def _fit_additive(
    estimator: AdditiveRiskModel, subscales: Mapping[str, tuple[str, ...]], training: Training
) -> Iterator[Expert]:
    """Fit experts that read their rows alike: the features of all are encoded at once."""
    check_link(estimator.link)
    blank = clone(estimator)
    used = dict.fromkeys(itertools.chain.from_iterable(subscales.values()))
    encoded = blank.encode(training.under(training.schema.part(used)))
    ready: dict[str, tuple[AdditiveRiskModel, Training, tuple[Encoded, Design]]] = {}
    for name, features in subscales.items():
        model = copy.copy(blank)
        model.schema = training.schema.part(features)
        rows = model._read(training, None, None)
        ready[name] = model, rows, model.lay_out(rows, encoded.select(features))
    del encoded  # the codes are in packs now

    def fit(name: str, solution: Solution | None = None) -> Expert:
        model, rows, laid_out = ready.pop(name)
        risks = model.fit_rows(rows, laid_out, solution)
        return Expert(name, subscales[name], model, model.form_, risks)

    def prepare(name: str) -> None:
        model, _, (_, design) = ready[name]
        model.prepare(design)

    def solve(name: str) -> Solution:
        model, rows, (_, design) = ready[name]
        return model.solve(design, rows)

    many = training.n_rows * len(used) >= _MANY_VALUES * len(subscales)
    largest_first = sorted(subscales, key=lambda name: -len(subscales[name]))
    with one_thread():
        collections.deque(side_by_side(prepare, largest_first, training.n_rows), maxlen=0)
        if not many or training.n_rows > _MOST_ROWS:
            yield from map(fit, subscales)
            return
        # Of few rows threads do the compiled loops' work and little else: the interpreter serves one at a time.
        solutions = dict(zip(largest_first, side_by_side(solve, largest_first), strict=True))
        yield from (fit(name, solutions[name]) for name in subscales)


def _check_names(estimators: Mapping[str, Any], subscales: Mapping[str, Any]) -> None:
    for name in subscales:
        if name not in estimators:
            raise DataError(f"There is no estimator for subscale {name!r}.{did_you_mean(name, estimators)}")


def _fit_expert(estimator: Any, name: str, features: tuple[str, ...], training: Training | Stream) -> Expert:
    schema = training.schema.part(features)
    if _is_ours(estimator) and takes_schema(estimator):
        rows = training.under(schema)  # which was read already
        model = with_schema(estimator, schema)
        if type(model) is AdditiveRiskModel:
            risks = model.fit_rows(model._read(rows, None, None, model.class_weight))
            return Expert(name, features, model, model.form_, risks if isinstance(rows, Training) else None)
        return Expert(name, features, model, model.fit(rows).form_)
    if isinstance(training, Stream):
        raise DataError(
            f"Subscale {name!r}: {type(estimator).__name__} needs its rows in memory, and they come in batches. "
            "Read them into a data frame first, or choose a model of plainrisk."
        )
    if takes_schema(estimator):
        model = with_schema(estimator, schema)
        model.fit(training.frame, training.target, sample_weight=training.weight)
    else:
        model = clone(estimator)
        weights = {} if training.weight is None else {"sample_weight": training.weight}
        if weights and "sample_weight" not in inspect.signature(model.fit).parameters:
            raise DataError(
                f"Subscale {name!r}: {type(model).__name__}.fit takes no sample_weight. Fit without weights."
            )
        model.fit(native_rows(training.frame, features), training.target, **weights)
    return Expert(name, features, model, _form_or_none(model, training, features, schema))


def _is_ours(estimator: Any) -> bool:
    """Whether an estimator, and one it wraps, reads training rows as they are handed on inside a model."""
    inner = getattr(estimator, "estimator", None)
    return hasattr(estimator, "_read") and (inner is None or _is_ours(inner))


def _form_or_none(model: Any, training: Training, features: tuple[str, ...], schema: Schema) -> RiskForm | None:
    rows = Frame(features, {name: training.frame.column(name) for name in features}, training.frame.n_rows)
    if hasattr(model, "form_"):
        form: RiskForm = model.form_
        # A wrapper of a foreign model that was fitted on a matrix has made up the names of its columns.
        return form if takes_schema(model) else _renamed(form, features)
    try:
        return extract_form(model, rows, schema=schema)
    except ExtractionError:
        return None


def _renamed(form: RiskForm, names: tuple[str, ...]) -> RiskForm:
    """Return a form that reads the same columns, by position, under other names."""
    new = dict(zip(form.columns, names, strict=True))
    replace = msgspec.structs.replace
    features = {new[name]: feature for name, feature in form.schema.features.items()}
    parts = tuple(
        replace(part, inputs=tuple(replace(i, feature=new[i.feature]) for i in part.inputs))
        if isinstance(part, TreePart)
        else replace(part, shapes={new[name]: shape for name, shape in part.shapes.items()})
        for part in form.parts
    )
    return replace(form, schema=replace(form.schema, features=features), columns=names, parts=parts)
