"""Whether a schema and data fit each other: every problem at once, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, SchemaError, did_you_mean
from plainrisk.schema import Feature, Schema, label_of
from plainrisk.schema.codes import suspicious_codes
from plainrisk.schema.rules import listing, quoted
from plainrisk.threads import side_by_side

__all__ = ["MOST_CATEGORIES", "Problem", "check_schema", "require_valid", "target_problems"]

MOST_CATEGORIES = 5_000  # a fit holds a square matrix over the levels; more than this is an identifier, not a category
_FEW_ROWS = 20


@dataclass(frozen=True)
class Problem:
    """One thing to know before a model is fitted.

    Attributes
    ----------
    severity : "error" if no model can be fitted, "note" if one can, but perhaps not the one that was meant
    feature : the feature it is about, None if it is about the target or the whole
    message : one sentence or two
    """

    severity: Literal["error", "note"]
    feature: str | None
    message: str


def check_schema(schema: Schema, frame: Any, *, target: bool = True) -> list[Problem]:
    """Compare a schema with data and return every problem, the errors first.

    Parameters
    ----------
    schema : what the modeller knows
    frame : any table
    target : whether the target column must be there, with two labels

    Examples
    --------
    >>> schema = Schema(features={"age": {}, "incme": {"special_values": [-9]}})
    >>> for problem in check_schema(schema, {"age": [31, 45], "income": [10, 20]}, target=False):
    ...     print(problem.severity, problem.message)
    error feature 'incme' is not in the data. Did you mean 'income'?
    note 1 column of the data is not in the schema: 'income'.
    """
    found = _problems(schema, as_frame(frame), target=target, notes=True)
    return sorted(found, key=lambda problem: problem.severity != "error")


def require_valid(schema: Schema, frame: Any, *, target: bool = False) -> None:
    """Raise one `SchemaError` that lists everything in which a schema and data contradict each other."""
    found = _problems(schema, as_frame(frame), target=target, notes=False)
    errors = [problem.message for problem in found if problem.severity == "error"]
    if errors:
        raise SchemaError(listing("Schema", errors))


def target_problems(frame: Frame, target: str, positive: object = None, features: Iterable[str] = ()) -> list[str]:
    """Say why a column cannot be the outcome of a risk model; nothing if it can."""
    if target not in frame.columns:
        return [f"target {target!r} is not in the data.{_nearest(target, frame, features)}"]
    column = frame.labels(target)
    found = []
    missing = column.codes < 0
    if missing.any():
        more = int(missing.sum()) - 1
        others = f" and {more:,} more" if more else ""
        found.append(f"target {target!r} is missing in row {int(missing.argmax())}{others}. Drop such rows.")
    if len(column.labels) == 1:
        found.append(f"target {target!r} is {column.labels[0]!r} in every row. Both outcomes are needed.")
    if len(column.labels) > 2:
        names = quoted(column.labels, most=5)
        found.append(f"target {target!r} has {len(column.labels):,} labels: {names}. Make two of them first.")
    if positive is not None and column.labels and label_of(positive) not in column.labels:
        names = quoted(column.labels, most=5)
        found.append(f"positive label {label_of(positive)!r} is not among those of {target!r}: {names}.")
    return found


def _problems(schema: Schema, frame: Frame, *, target: bool, notes: bool) -> Iterator[Problem]:
    if not frame.n_rows:
        yield Problem("error", None, "the data have no rows.")
    if target and schema.target is not None:
        for message in target_problems(frame, schema.target, schema.positive, schema.features):
            yield Problem("error", None, message)

    def look(name: str) -> list[Problem]:
        feature = schema.features[name]
        if name not in frame.columns:
            hint = _nearest(name, frame, schema.features)
            return [Problem("error", name, f"feature {name!r} is not in the data.{hint}")]
        if not frame.n_rows:
            return []
        look_at = _look_at_categories if feature.kind == "categorical" else _look_at_numbers
        return list(look_at(name, feature, frame, notes))

    for found in side_by_side(look, schema.features, frame.n_rows):
        yield from found
    if notes:
        for message in _remarks(schema, frame, target):
            yield Problem("note", None, message)


def _nearest(name: str, frame: Frame, features: Iterable[str]) -> str:
    """Prefer a column that has no place in the schema yet: a misspelt name leaves its column over."""
    taken = set(features)
    return did_you_mean(name, [n for n in frame.names if n not in taken] or frame.names)


# ---- numbers


def _look_at_numbers(name: str, feature: Feature, frame: Frame, notes: bool) -> Iterator[Problem]:
    try:
        if not notes:
            frame.numbers(name)
            return
        values = frame.numbers(name)
    except DataError as error:
        yield Problem("error", name, str(error).removeprefix("Data: "))
        return
    seen = values[~np.isnan(values)]
    if not seen.size:
        yield _no_values(name)
    else:
        for message in _number_notes(name, feature, seen, frame.n_rows):
            yield Problem("note", name, message)


def _number_notes(name: str, feature: Feature, seen: npt.NDArray[np.float64], n_rows: int) -> Iterator[str]:
    distinct, counts = np.unique(seen, return_counts=True)
    never = [label_of(v) for v in feature.special_values if v not in distinct]
    if never:
        yield f"feature {name!r}: special {_plural('value', never)} never seen: {', '.join(never)}."
    if len(distinct) == 1 and len(seen) == n_rows > 1:
        yield _constant(name, label_of(distinct[0]))
    special = [v for v in feature.special_values if not isinstance(v, str)]
    measured = ~np.isin(distinct, special)
    if feature.lower_bound is not None:
        measured &= distinct >= feature.lower_bound
    if not measured.any():
        yield f"feature {name!r} holds special values only, no measurement."
        return
    codes = ", ".join(map(label_of, suspicious_codes(distinct[measured], counts[measured])))
    if codes:
        yield f"feature {name!r}: {codes} may be no measurement. If so, add special_values = [{codes}]."


# ---- categories


def _look_at_categories(name: str, feature: Feature, frame: Frame, notes: bool) -> Iterator[Problem]:
    column = frame.labels(name)
    if not column.labels:
        yield _no_values(name)
        return
    if len(column.labels) > MOST_CATEGORIES:
        many = f"{len(column.labels):,} categories, at most {MOST_CATEGORIES:,} are possible"
        yield Problem("error", name, f"feature {name!r} has {many}. Group them, or leave it out.")
    needs_order = feature.direction != "none" and feature.categories is None
    special = {label_of(v) for v in feature.special_values}
    words = [label for label in column.labels if needs_order and label not in special and not _is_number(label)]
    if words:
        yield Problem(
            "error",
            name,
            f"feature {name!r} is {feature.direction}, but its categories are not numbers: "
            f"{quoted(words, most=3)}. List them in order in 'categories'.",
        )
    if notes:
        complete = bool((column.codes >= 0).all())
        for message in _category_notes(name, feature, column.labels, complete, frame.n_rows):
            yield Problem("note", name, message)


def _category_notes(name: str, feature: Feature, labels: Sequence[str], complete: bool, n_rows: int) -> Iterator[str]:
    seen, special = set(labels), [label_of(v) for v in feature.special_values]
    listed = feature.category_labels
    never = [v for v in special if v not in seen]
    if never:
        yield f"feature {name!r}: special {_plural('value', never)} never seen: {quoted(never)}."
    if listed is not None:
        never = [v for v in listed if v not in seen]
        if never:
            yield f"feature {name!r}: listed {_plural('category', never)} never seen: {quoted(never)}."
        known = {*listed, *special}
        extra = [v for v in labels if v not in known]
        fate = "an error" if feature.unseen == "error" else "treated like one never seen"
        if extra:
            yield f"feature {name!r}: not listed, so {fate}: {quoted(extra)}."
    if len(labels) == 1 and complete and n_rows > 1:
        yield _constant(name, labels[0])
    if n_rows >= _FEW_ROWS and len(labels) > n_rows / 2:
        yield f"feature {name!r} has {len(labels):,} categories in {n_rows:,} rows. Is it a name or a number?"


# ---- the whole


def _remarks(schema: Schema, frame: Frame, target: bool) -> Iterator[str]:
    if target and schema.target is None:
        yield "the schema names no target, so the outcome was not looked at."
    shared = [f"{name!r} ({', '.join(homes)})" for name, homes in schema.overlaps.items()]
    if shared:
        yield f"{_counted('feature', shared)} in more than one subscale: {', '.join(shared)}."
    if schema.unassigned:
        yield f"{_counted('feature', schema.unassigned)} in no subscale: {quoted(schema.unassigned)}."
    used = {schema.target, *schema.features}
    unused = [name for name in frame.names if name not in used]
    if unused:
        verb = "is" if len(unused) == 1 else "are"
        yield f"{_counted('column', unused)} of the data {verb} not in the schema: {quoted(unused)}."


def _no_values(name: str) -> Problem:
    # No error: a fold of a sparse column may hold no value, and the fit gives it no effect.
    return Problem("note", name, f"feature {name!r} is missing in every row, so it has no effect.")


def _constant(name: str, label: str) -> str:
    return f"feature {name!r} is {label!r} in every row, so it cannot tell risks apart."


def _is_number(label: str) -> bool:
    try:
        return bool(np.isfinite(float(label)))
    except ValueError:
        return False


def _plural(noun: str, things: Sequence[object]) -> str:
    return noun if len(things) == 1 else {"category": "categories"}.get(noun, f"{noun}s")


def _counted(noun: str, things: Sequence[object]) -> str:
    return f"{len(things)} {_plural(noun, things)}"
