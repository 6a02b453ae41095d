"""Check whether a schema and data fit together, and report every problem at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from plainrisk._types import Bools, Counts, Floats, Index
from plainrisk.data.columns import EXACT, label_of
from plainrisk.data.frame import Frame, Labels, as_frame
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError, SchemaError, did_you_mean, listing, quoted
from plainrisk.schema.evidence import Cells, label_cells, leaks_of, number_cells, spread_rows
from plainrisk.schema.findings import Finding
from plainrisk.text import counted, is_number, plural
from plainrisk.threads import parallel_map

if TYPE_CHECKING:
    from plainrisk.schema.feature import Feature
    from plainrisk.schema.schema import Schema

__all__ = [
    "FEW_ROWS",
    "MOST_CATEGORIES",
    "Problem",
    "check_schema",
    "feature_cells",
    "leak_notes",
    "refuse_forbidden",
    "require_valid",
    "say_leak",
    "suspicious_codes",
    "target_problems",
]

MOST_CATEGORIES = 5_000  # a fit holds a square matrix over the levels; more than this is an identifier, not a category
FEW_ROWS = 10  # with fewer rows, values that all differ say nothing
_MOST_CODES = 5  # codes that one column may have
_WIDE_SCALE = 10  # distinct values from which on a lone -1 below them is a code


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
    schema : what the modeler knows
    frame : any table
    target : whether the target column must be there, with two labels

    Examples
    --------
    >>> from plainrisk.schema import Schema
    >>> schema = Schema(features={"age": {}, "incme": {"special_values": [-9]}})
    >>> for problem in check_schema(schema, {"age": [31, 45], "income": [10, 20]}, target=False):
    ...     print(problem.severity, problem.message)
    error feature 'incme' is not in the data. Did you mean 'income'?
    note 1 column of the data is not in the schema: 'income'.
    """
    problems = _problems(schema, as_frame(frame), target=target, notes=True)
    return sorted(problems, key=lambda problem: problem.severity != "error")


def require_valid(schema: Schema, frame: Any, *, target: bool = False) -> None:
    """Raise a `SchemaError` that lists every contradiction between a schema and data."""
    problems = _problems(schema, as_frame(frame), target=target, notes=False)
    errors = [problem.message for problem in problems if problem.severity == "error"]
    if errors:
        raise SchemaError(listing("Schema", errors))


def target_problems(frame: Frame, target: str, positive: object = None, features: Iterable[str] = ()) -> list[str]:
    """Return why a column cannot be the outcome of a risk model; an empty list if it can."""
    if target not in frame.columns:
        return [f"target {target!r} is not in the data.{_nearest(target, frame, features)}"]
    column = frame.labels(target)
    problems = []
    missing = column.codes < 0
    if missing.any():
        more = int(missing.sum()) - 1
        others = f" and {more:,} more" if more else ""
        problems.append(f"target {target!r} is missing in row {int(missing.argmax())}{others}. Drop such rows.")
    if len(column.labels) == 1:
        problems.append(f"target {target!r} is {column.labels[0]!r} in every row. Both outcomes are needed.")
    if len(column.labels) > 2:
        names = quoted(column.labels, most=5)
        problems.append(f"target {target!r} has {len(column.labels):,} labels: {names}. Make two of them first.")
    if positive is not None and column.labels and label_of(positive) not in column.labels:
        names = quoted(column.labels, most=5)
        problems.append(f"positive label {label_of(positive)!r} is not among those of {target!r}: {names}.")
    return problems


def _problems(schema: Schema, frame: Frame, *, target: bool, notes: bool) -> Iterator[Problem]:
    if not frame.n_rows:
        yield Problem("error", None, "the data have no rows.")
    if target and schema.target is not None:
        for message in target_problems(frame, schema.target, schema.positive, schema.features):
            yield Problem("error", None, message)

    readings = schema.readings

    def look(name: str) -> list[Problem]:
        feature = schema.features[name]
        if name not in frame.columns:
            hint = _nearest(name, frame, schema.features)
            return [Problem("error", name, f"feature {name!r} is not in the data.{hint}")]
        if not frame.n_rows:
            return []
        look_at = _look_at_categories if feature.kind == "categorical" else _look_at_numbers
        try:
            converted = read_texts(frame, {name: readings[name]}) if name in readings else frame
        except DataError as error:
            return [Problem("error", name, str(error).removeprefix("Data: "))]
        problems = list(look_at(name, feature, converted, notes))
        if any(problem.severity == "error" for problem in problems):
            return problems
        forbidden = _forbidden_counts(name, feature, converted)
        return [*problems, *(Problem("error", name, message) for message in forbidden)]

    for found in parallel_map(look, schema.features, frame.n_rows):
        yield from found
    if notes:
        for name, message in leak_notes(schema, frame).items():
            yield Problem("note", name, message)
        for message in _remarks(schema, frame, target):
            yield Problem("note", None, message)


# ---- features that know the outcome


def leak_notes(schema: Schema, frame: Any) -> dict[str, str]:
    """Return, by name, the notes on features that seem to know the outcome; empty if no outcome is known."""
    table, target = as_frame(frame), schema.target
    if not table.n_rows or target is None or target_problems(table, target, schema.positive):
        return {}
    outcome = table.labels(target)
    positive = outcome.labels[-1] if schema.positive is None else label_of(schema.positive)
    rows, readings = spread_rows(table.n_rows), schema.readings
    bad = (outcome.codes == outcome.labels.index(positive)).astype(np.float64)[rows]

    def look(name: str) -> list[Finding]:
        try:
            texts_read = read_texts(table, {name: readings[name]} if name in readings else {})
            return list(leaks_of(name, feature_cells(name, schema.features[name], texts_read, rows, bad)))
        except DataError:  # said elsewhere
            return []

    names = [name for name in schema.features if name in table.columns]
    leaks_by_feature = parallel_map(look, names, table.n_rows)
    return {leak.feature: say_leak(leak) for leaks in leaks_by_feature for leak in leaks}


def feature_cells(name: str, feature: Feature, frame: Frame, rows: slice | Index, bad: Floats) -> Cells:
    """Count some of the rows of a feature in cells, given which of these have the bad outcome."""
    if feature.kind == "categorical":
        column = frame.labels(name)
        return label_cells(Labels(column.codes[rows], column.labels), bad)
    return number_cells(frame.numbers(name)[rows], [float(value) for value in feature.special_values], bad)


def say_leak(leak: Finding) -> str:
    """Return the sign of a leak as a sentence."""
    return f"feature {leak.feature!r} {leak.text}."


# ---- rows that a rule forbids


def refuse_forbidden(schema: Schema, frame: Frame) -> None:
    """Raise if a row has an empty or special field for which the schema says "error"."""
    for name, feature in schema.features.items():
        for what, rule, rows in _forbidden(name, feature, frame) if name in frame.columns else ():
            if rows.any():
                raise DataError(
                    f"Data: feature {name!r}, row {frame.first + int(rows.argmax())}: the value is {what}, and the "
                    f"schema says {rule} = 'error'. Correct the row, or state another rule."
                )


def _forbidden_counts(name: str, feature: Feature, frame: Frame) -> Iterator[str]:
    for what, rule, rows in _forbidden(name, feature, frame):
        if rows.any():
            yield (
                f"feature {name!r} is {what} in {int(rows.sum()):,} rows, and the schema says {rule} = 'error'. "
                "Correct or drop them, or state another rule."
            )


def _forbidden(name: str, feature: Feature, frame: Frame) -> Iterator[tuple[str, str, Bools]]:
    """Yield the forbidden levels, the rules that forbid them, and the rows that have them."""
    special = {label for label, rule in feature.special_rules.items() if rule == "error"}
    if feature.missing != "error" and feature.below_bound != "error" and not special:
        return
    if feature.kind == "categorical":
        column = frame.labels(name)
        empty = column.codes < 0
        coded = np.array([*(label in special for label in column.labels), False])[column.codes]
    else:
        values = frame.numbers(name)
        empty, codes = np.isnan(values), [float(v) for v in feature.special_values]
        coded = np.isin(values, [v for v in codes if label_of(v) in special])
        if feature.below_bound == "error" and feature.lower_bound is not None:
            yield "below the bound", "below_bound", (values < feature.lower_bound) & ~np.isin(values, codes)
    if feature.missing == "error":
        yield "missing", "missing", empty
    if special:
        yield "a special value", "special_rules", coded


def _nearest(name: str, frame: Frame, features: Iterable[str]) -> str:
    """Prefer columns that the schema does not name: a misspelled feature leaves its column unused."""
    taken = set(features)
    return did_you_mean(name, [n for n in frame.names if n not in taken] or frame.names)


# ---- numbers


def _look_at_numbers(name: str, feature: Feature, frame: Frame, notes: bool) -> Iterator[Problem]:
    try:
        values = frame.numbers(name)
    except DataError as error:
        yield Problem("error", name, str(error).removeprefix("Data: "))
        return
    if not notes:
        return
    seen = values[~np.isnan(values)]
    if not seen.size:
        yield _no_values(name)
    else:
        for message in _number_notes(name, feature, seen, frame.n_rows):
            yield Problem("note", name, message)


def _number_notes(name: str, feature: Feature, seen: Floats, n_rows: int) -> Iterator[str]:
    distinct, counts = np.unique(seen, return_counts=True)
    if max(abs(distinct[0]), abs(distinct[-1])) > EXACT:
        yield (
            f"feature {name!r} has values beyond 2**53, where neighboring whole numbers become one. "
            "Codes are categorical."
        )
    never = [label_of(v) for v in feature.special_values if v not in distinct]
    if never:
        yield f"feature {name!r}: special {'value' if len(never) == 1 else 'values'} never seen: {', '.join(never)}."
    if len(distinct) == 1 and len(seen) == n_rows > 1:
        yield _constant(name, label_of(distinct[0]))
    if len(distinct) == n_rows >= MOST_CATEGORIES and bool((distinct == np.floor(distinct)).all()):
        yield f"feature {name!r} holds whole numbers that differ in every row. Is it an identifier?"
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
    group_of = feature.group_of
    n_levels = len({group_of.get(label, label) for label in column.labels})
    if n_levels > MOST_CATEGORIES and feature.rare is None:
        many = f"{n_levels:,} categories, at most {MOST_CATEGORIES:,} are possible"
        yield Problem("error", name, f"feature {name!r} has {many}. Group them, or leave it out.")
    needs_order = feature.direction != "none" and feature.categories is None
    special = {label_of(v) for v in feature.special_values}
    words = [label for label in column.labels if needs_order and label not in special and not is_number(label)]
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
    special = [label_of(v) for v in feature.special_values]
    yield from _never_seen(name, "special", "value", special, labels)
    grouped = feature.group_of
    yield from _never_seen(name, "grouped", "category", grouped, labels)
    if feature.category_labels is not None:
        single = [c for c in feature.category_labels if c not in grouped and c not in feature.groups]
        yield from _never_seen(name, "listed", "category", single, labels)
        stated = {*feature.category_labels, *special, *grouped, *feature.groups}
        extra = [v for v in labels if v not in stated]
        fate = "an error" if feature.unseen == "error" else "treated like one never seen"
        if extra:
            yield f"feature {name!r}: not listed, so {fate}: {quoted(extra)}."
    if len(labels) == 1 and complete and n_rows > 1:
        yield _constant(name, labels[0])
    if n_rows >= FEW_ROWS and len(labels) > n_rows / 2 and feature.rare is None:
        many = f"{len(labels):,} categories in {n_rows:,} rows"
        yield f"feature {name!r} has {many}. Is it an identifier, or a number stored as text?"


def _never_seen(name: str, how: str, noun: str, expected: Iterable[str], labels: Sequence[str]) -> Iterator[str]:
    never = [label for label in expected if label not in set(labels)]
    if never:
        yield f"feature {name!r}: {how} {noun if len(never) == 1 else plural(noun)} never seen: {quoted(never)}."


# ---- codes: -9 (no record), 98 (refused), 999 (unknown) among measurements


def suspicious_codes(values: Floats, counts: Counts) -> tuple[float, ...]:
    """Return the values of a column that look like codes, not like measurements.

    A code looks like one (several nines that end in 6 to 9, or a negative number among positive ones), is far from the
    measurements, and is frequent. So is a single frequent number at ten times the range of all others (365243). A
    person has the last word.

    Parameters
    ----------
    values : the distinct values, sorted, without missing ones
    counts : how often each occurs

    Examples
    --------
    >>> suspicious_codes(np.array([-9.0, 0, 1, 2, 3, 98]), np.array([20, 500, 90, 30, 9, 25]))
    (-9.0, 98.0)
    """
    enough = max(3.0, counts.sum() / 10_000)
    negative = [*_negative_codes(values, counts, enough)]
    kept = ~np.isin(values, negative)
    values, counts = values[kept], counts[kept]
    high = _outlying_codes(values, counts, enough)
    low = _outlying_codes(-values[::-1], counts[::-1], enough)
    return tuple(sorted({*negative, *high, *(-v for v in low)}))


def _nines(value: float) -> bool:
    """Whether a number is written 96 to 99, 996 to 999, 9996 to 9999 ..."""
    if not value.is_integer() or not 96 <= value < 1e16:
        return False
    text = str(int(value))
    return text[-1] in "6789" and set(text[:-1]) == {"9"}


def _negative_codes(values: Floats, counts: Counts, enough: float) -> list[float]:
    """A few negative whole numbers below measurements that are never negative."""
    n_codes = int(np.searchsorted(values, 0.0))
    codes, rest = values[:n_codes].tolist(), values[n_codes:]
    if not 1 <= n_codes <= _MOST_CODES or len(rest) < 2 or counts[:n_codes].max() < enough:
        return []
    if not all(_nines(-v) or (v.is_integer() and v >= -9) for v in codes):
        return []
    # -2, -1, 0, 1, 2 is one scale without a code. A single -1 far below many values is still a code.
    apart = rest[0] - codes[-1] > np.diff(rest).min()
    return codes if apart or (codes == [-1.0] and len(rest) > _WIDE_SCALE) else []


def _outlying_codes(values: Floats, counts: Counts, enough: float) -> list[float]:
    """The largest values, all nines, beyond a gap: as wide as the rest, or narrower if they are a spike."""
    cut = len(values)
    if cut > 2 and _is_far_out(values, counts, enough):
        return [float(values[-1])]
    while cut > 2 and _nines(float(values[cut - 1])):
        cut -= 1
    for first in range(cut, len(values)):
        gap, spread = values[first] - values[first - 1], values[first - 1] - values[0]
        most, neighbors = counts[first:].max(), counts[max(0, first - 5) : first].max()
        spike = most >= 5 * neighbors and gap >= 0.1 * spread
        if most >= enough and gap > 0 and (gap >= spread or spike):
            return [float(v) for v in values[first:]]
    return []


def _is_far_out(values: Floats, counts: Counts, enough: float) -> bool:
    """Whether the largest number is far from the others, at ten times their range, and frequent."""
    gap, spread = values[-1] - values[-2], values[-2] - values[0]
    return bool(gap >= 10 * spread and counts[-1] >= max(enough, 5 * np.median(counts[:-1]), counts.sum() / 100))


# ---- the schema as a whole


def _remarks(schema: Schema, frame: Frame, target: bool) -> Iterator[str]:
    if target and schema.target is None:
        yield "the schema names no target, so the outcome was not checked."
    shared = [f"{name!r} ({', '.join(homes)})" for name, homes in schema.overlaps.items()]
    if shared:
        yield f"{counted(len(shared), 'feature')} in more than one subscale: {', '.join(shared)}."
    if schema.unassigned:
        yield f"{counted(len(schema.unassigned), 'feature')} in no subscale: {quoted(schema.unassigned)}."
    used = {schema.target, *schema.features}
    unused = [name for name in frame.names if name not in used]
    if unused:
        verb = "is" if len(unused) == 1 else "are"
        yield f"{counted(len(unused), 'column')} of the data {verb} not in the schema: {quoted(unused)}."


def _no_values(name: str) -> Problem:
    # No error: a fold of a sparse column may have no value, and the fit gives it no effect.
    return Problem("note", name, f"feature {name!r} is missing in every row, so it has no effect.")


def _constant(name: str, label: str) -> str:
    return f"feature {name!r} is {label!r} in every row, so it cannot distinguish risks."
