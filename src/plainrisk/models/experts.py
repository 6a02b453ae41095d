"""Fit one model per subscale: ours under a schema, anybody's on the subscale's columns."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from plainrisk._types import Floats
from plainrisk.checks import NOTHING, mapping
from plainrisk.data.frame import Frame, native_rows
from plainrisk.errors import DataError, ExtractionError, did_you_mean, quiet, quoted, warn
from plainrisk.extract import extract_form
from plainrisk.fit.straighten import degrees_of
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import GroupEvidence, Part, RiskForm, TreePart
from plainrisk.form.file import PackedState
from plainrisk.models.base import CLASSIFIER, RiskClassifier
from plainrisk.schema import Schema

__all__ = [
    "ESTIMATORS",
    "Expert",
    "ExpertRisks",
    "evidence_of",
    "fit_experts",
    "fit_foreign",
    "subscales_of",
    "takes_missing",
    "takes_schema",
    "warn_of_unassigned",
    "with_schema",
]

# The allowed values of the parameter `estimator` of a model with subscales.
ESTIMATORS = NOTHING | CLASSIFIER | mapping("a dict with one for each subscale", CLASSIFIER)


@dataclass(frozen=True)
class Expert(PackedState):
    """A fitted model of one subscale.

    Attributes
    ----------
    name, features : the subscale
    model : the fitted estimator
    form : its risk form, or None where it has none
    """

    name: str
    features: tuple[str, ...]
    model: Any
    form: RiskForm | None

    @property
    def has_part(self) -> bool:
        """Whether the expert is a single part of a risk form."""
        return self.form is not None and len(self.form.parts) == 1

    @property
    def part(self) -> Part | TreePart:
        """The form's one part, under the subscale's name."""
        if self.form is None or not self.has_part:
            raise DataError(f"Subscale {self.name!r}: {type(self.model).__name__} is not a one-layer model.")
        return msgspec.structs.replace(self.form.parts[0], name=self.name)

    @property
    def degrees(self) -> float:
        """The degrees of freedom of the expert's fit, or 0 if the fit has no record of them."""
        record, solution = (getattr(self.model, name, None) for name in ("fit_record_", "solution_"))
        return 0.0 if self.form is None else math.fsum(degrees_of(record, solution, self.form))

    def risk(self, frame: Frame) -> Floats:
        """Return the risks from the expert, one per row."""
        if self.form is not None:
            return self.form.risk(frame)
        return np.asarray(self.model.predict_proba(native_rows(frame, self.features))[:, 1], dtype=np.float64)


def subscales_of(schema: Schema) -> dict[str, tuple[str, ...]]:
    """Return the subscales, or one per feature if the schema names none."""
    return dict(schema.subscales) or {name: (name,) for name in schema.features}


def warn_of_unassigned(who: str, schema: Schema) -> None:
    """Warn of features that are in no subscale, and so are not in a model made of subscales."""
    if schema.unassigned:
        names = schema.unassigned
        warn(
            f"{who} leaves out {len(names)} feature{'s' * (len(names) > 1)} in no subscale: {quoted(names)}. "
            "Add them to a subscale, or take a model of one layer.",
        )


def takes_schema(estimator: Any) -> bool:
    """Whether an estimator, or one that it wraps, has a plainrisk schema that can be set."""
    return any(name == "schema" or name.endswith("__schema") for name in estimator.get_params())


def takes_missing(estimator: Any) -> bool:
    """Whether an estimator declares that it accepts missing values."""
    return not hasattr(estimator, "__sklearn_tags__") or bool(get_tags(estimator).input_tags.allow_nan)


def with_schema(estimator: Any, schema: Schema) -> Any:
    """Return a clone of an estimator with the schema set, its own or that of the one it wraps."""
    model = clone(estimator)
    names = [n for n in model.get_params() if n == "schema" or n.endswith("__schema")]
    if names == ["schema"]:
        model.schema = schema
        return model
    return model.set_params(**dict.fromkeys(names, schema))


@dataclass(frozen=True)
class ExpertRisks:
    """The risks of rows by every expert; sent to where the rows are.

    Attributes
    ----------
    experts : their forms, or the experts themselves where they have none
    """

    experts: tuple[RiskForm | Expert, ...]

    @classmethod
    def of(cls, experts: Mapping[str, Expert]) -> ExpertRisks:
        """Return the risks of experts."""
        return cls(tuple(expert if expert.form is None else expert.form for expert in experts.values()))

    def __call__(self, frame: Frame) -> Floats:
        """Return the risks: (rows, experts)."""
        return np.column_stack([expert.risk(frame) for expert in self.experts])


def evidence_of(models: Mapping[str, Any]) -> tuple[GroupEvidence, ...]:
    """Return the evidence for smooth shapes from the fits of all experts."""
    records = (getattr(model, "fit_record_", None) for model in models.values())
    return tuple(group for record in records if record is not None for group in record.evidence)


def fit_experts(estimator: Any, training: TrainingRows) -> dict[str, Expert]:
    """Fit a clone of the estimator (or each subscale's own, from a dict) on every subscale."""
    subscales = subscales_of(training.schema)
    if isinstance(estimator, Mapping):
        for name in subscales:
            if name not in estimator:
                raise DataError(f"There is no estimator for subscale {name!r}.{did_you_mean(name, estimator)}")
    works = [
        partial(_fit_expert, estimator[name] if isinstance(estimator, Mapping) else estimator, name, features)
        for name, features in subscales.items()
    ]
    with quiet():  # the whole model warns once
        experts = training.together(works)
    training.free()  # the next ones have codes of their own
    return {expert.name: expert for expert in experts}


def _fit_expert(estimator: Any, name: str, features: tuple[str, ...], training: TrainingRows) -> Expert:
    schema = training.schema.part(features)
    if is_ours(estimator):
        model = with_schema(estimator, schema)
        model._fit_rows(training.with_schema(schema))
        return Expert(name, features, model, model.form_)
    rows = training.in_memory
    if takes_schema(estimator):
        model = with_schema(estimator, schema.replace(positive=1))  # the outcomes are coded already
        model.fit(rows.frame, rows.target, sample_weight=rows.weight)
    else:
        X = native_rows(rows.frame, features)
        model = fit_foreign(clone(estimator), X, rows.target, rows.weight, f"Subscale {name!r}: ")
    return Expert(name, features, model, _form_or_none(model, rows, features, schema))


def fit_foreign(model: Any, X: Any, y: Any, sample_weight: Any, who: str = "") -> Any:
    """Fit a classifier of another library, with weights if given."""
    if sample_weight is None:
        return model.fit(X, y)
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        raise DataError(f"{who}{type(model).__name__}.fit takes no sample_weight. Fit without weights.")
    return model.fit(X, y, sample_weight=sample_weight)


def is_ours(estimator: Any) -> bool:
    """Whether an estimator, and one that it wraps, can be fitted to training rows that are already read."""
    inner = getattr(estimator, "estimator", None)
    wraps_ours = inner is None or isinstance(inner, Mapping) or is_ours(inner)
    return isinstance(estimator, RiskClassifier) and wraps_ours


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
        else replace(
            part,
            shapes={new[name]: shape for name, shape in part.shapes.items()},
            pairs=tuple(replace(pair, features=(new[pair.features[0]], new[pair.features[1]])) for pair in part.pairs),
        )
        for part in form.parts
    )
    ranges = {new[name]: limits for name, limits in form.ranges.items()}
    return replace(form, schema=replace(form.schema, features=features), columns=names, parts=parts, ranges=ranges)
