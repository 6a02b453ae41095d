"""From effects and trees to a risk form: levels, training weights, centring, schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame, column_of
from plainrisk.errors import DataError, SchemaError, did_you_mean
from plainrisk.extract.effects import Effect, NumberEffect
from plainrisk.extract.reading import Additive, Label, TreeSum
from plainrisk.extract.shapes import Counts, label_shape, number_shape
from plainrisk.form import Alone, Logistic, Part, RiskForm, Shape, TreePart
from plainrisk.schema import Feature, Schema, label_of

__all__ = ["build_form"]

Floats = npt.NDArray[np.float64]


def build_form(
    read: Additive | TreeSum, frame: Frame | None, schema: Schema | None, y: Any, sample_weight: Any
) -> RiskForm:
    """Return the risk form of a model that was read, with what the schema and the rows add to it."""
    schema = Schema() if schema is None else schema
    if _position(read.classes, schema.positive) == 0:
        read = _turned(read)
    rows = None
    if frame is not None:
        frame = frame if frame.named else frame.renamed(read.columns)
        rows = Counts(frame, _weight(sample_weight, frame.n_rows), _positive(y, read.classes, frame.n_rows))
    features = {name: _feature(schema.features.get(name), kind) for name, kind in _kinds(read).items()}
    members = {s: tuple(f for f in names if f in features) for s, names in schema.subscales.items()}
    return RiskForm(
        schema=msgspec.structs.replace(
            schema, features=features, subscales={s: names for s, names in members.items() if names}
        ),
        columns=read.columns,
        classes=read.classes,
        parts=(_tree_part(read) if isinstance(read, TreeSum) else _part(read, features, rows),),
        pool=Alone(),
    )


def _part(read: Additive, features: Mapping[str, Feature], rows: Counts | None) -> Part:
    """Centre every shape on its training mean, and move the means to the intercept."""
    shapes: dict[str, Shape] = {}
    means = []
    for name, effect in read.effects.items():
        if isinstance(effect, NumberEffect):
            shapes[name], mean = number_shape(name, effect, features[name], rows)
        else:
            shapes[name], mean = label_shape(name, effect, features[name], rows)
        means.append(mean)
    return Part(name="all", intercept=math.fsum([read.intercept, *means]), shapes=shapes, link=Logistic())


def _tree_part(read: TreeSum) -> TreePart:
    return TreePart(name="all", intercept=read.intercept, inputs=read.inputs, trees=read.trees, link=Logistic())


def _kinds(read: Additive | TreeSum) -> dict[str, str]:
    if isinstance(read, Additive):
        return {n: _kind(isinstance(effect, NumberEffect)) for n, effect in read.effects.items()}
    return {i.feature: _kind(i.category is None) for i in read.inputs}


def _kind(number: bool) -> str:
    return "continuous" if number else "categorical"


def _feature(known: Feature | None, kind: Any) -> Feature:
    """Take what the schema says of a feature, in the kind the model reads it as."""
    if known is None:
        return Feature(kind=kind)
    if known.kind == kind:
        return known
    # A list of categories is an order of its own, which a model that reads numbers does not share.
    direction = known.direction if known.categories is None else "none"
    special = tuple(v for v in known.special_values if not isinstance(v, str))
    return Feature(
        kind=kind,
        direction=direction,
        special_values=special,
        unseen=known.unseen,
        reason=known.reason,
        note=known.note,
    )


# ---- the outcome


def _position(classes: tuple[Label, Label], positive: Any) -> int:
    """Where the positive outcome stands among the model's two."""
    if positive is None:
        return 1
    texts = [_outcome(c) for c in classes]
    if _outcome(positive) in texts:
        return texts.index(_outcome(positive))
    if texts == ["0", "1"]:
        return 1  # already coded
    raise SchemaError(
        f"Schema: the positive label {_outcome(positive)!r} is not an outcome of the model."
        f"{did_you_mean(_outcome(positive), texts)}"
    )


def _outcome(label: Any) -> str:
    return label_of(int(label) if isinstance(label, bool | np.bool_) else label)


def _turned(read: Additive | TreeSum) -> Additive | TreeSum:
    """Return the log odds of the other outcome: everything with the other sign."""
    first, last = read.classes
    if isinstance(read, Additive):
        effects: dict[str, Effect] = {name: effect.scaled(-1.0) for name, effect in read.effects.items()}
        return replace(read, intercept=-read.intercept, effects=effects, classes=(last, first))
    trees = tuple(msgspec.structs.replace(t, values=tuple(-v for v in t.values)) for t in read.trees)
    return replace(read, intercept=-read.intercept, trees=trees, classes=(last, first))


def _positive(y: Any, classes: tuple[Label, Label], n_rows: int) -> Floats | None:
    """Return 1 for each row with the positive outcome; None if the outcomes are not known."""
    if y is None:
        return None
    column = column_of(y)
    if len(column.codes) != n_rows:
        raise DataError(f"Data: X has {n_rows} rows, y {len(column.codes)}.")
    known = [_outcome(c) for c in classes]
    texts = [{"False": "0", "True": "1"}.get(t, t) for t in column.labels]
    odd = [text for text in texts if text not in known]
    if odd or (column.codes < 0).any():
        came = repr(odd[0]) if odd else "a missing value"
        raise DataError(f"Data: the model's outcomes are {known[0]!r} and {known[1]!r}; y holds {came}.")
    return np.array([float(t == known[1]) for t in texts])[column.codes]


def _weight(sample_weight: Any, n_rows: int) -> Floats | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError(f"Data: sample_weight must be {n_rows} finite numbers, none below 0.")
    return weight
