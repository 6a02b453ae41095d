"""Features, values and levels as people call them: by labels and units, with numbers as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plainrisk.form.levels import Bins, Levels
from plainrisk.schema import Feature, Schema, label_of

__all__ = ["NOT_GIVEN", "outcome_words", "per_units", "say_level", "say_levels", "say_number", "say_value", "with_unit"]

NOT_GIVEN = "not given"


def say_number(value: float) -> str:
    """Return a number with separators of thousands and no more digits than it has.

    >>> say_number(3158293.0), say_number(0.35), say_number(-1250.5)
    ('3,158,293', '0.35', '-1,250.5')
    """
    return f"{value + 0.0:,}".removesuffix(".0")


def with_unit(text: str, feature: Feature) -> str:
    """Return a number with the unit of its feature."""
    if feature.unit is None:
        return text
    return f"{text}{feature.unit}" if feature.unit == "%" else f"{text} {feature.unit}"


def per_units(feature: Feature, units: float) -> str:
    """Return a number of units of a feature, as the words after "per".

    >>> months = Feature(unit="months")
    >>> per_units(months, 1.0), per_units(months, 1000.0), per_units(Feature(), 1.0)
    ('per month', 'per 1,000 months', 'per unit')
    """
    if units != 1.0 and feature.unit is not None:
        return f"per {with_unit(say_number(units), feature)}"
    if units != 1.0:
        return f"per {say_number(units)}"
    if feature.unit == "%":
        return "per percentage point"
    # Units are written as they follow a number, so most of them are plurals.
    return f"per {'unit' if feature.unit is None else feature.unit.removesuffix('s')}"


def say_value(feature: Feature, value: float | str | None) -> str:
    """Return a value of a feature in words.

    >>> months = Feature(unit="months", special_values=(-9,), labels={"-9": "no loan"})
    >>> say_value(months, 24.0), say_value(months, -9.0), say_value(months, None)
    ('24 months', 'no loan', 'not given')
    """
    if value is None or value != value:
        return feature.labels.get("missing", NOT_GIVEN)
    label = label_of(value)
    if label in feature.labels:
        return feature.labels[label]
    if feature.kind == "categorical" or isinstance(value, str):
        return label
    if label in map(label_of, feature.special_values):
        return f"code {label}"
    return with_unit(say_number(value), feature)


def say_levels(feature: Feature, levels: Levels) -> tuple[str, ...]:
    """Return all levels of a feature in words, in their order.

    >>> say_levels(Feature(unit="EUR"), Bins((1250000.0,)))
    ('up to 1,250,000 EUR', 'over 1,250,000 EUR', 'not given')
    """
    return tuple(say_level(feature, levels, code) for code in range(len(levels)))


def say_level(feature: Feature, levels: Levels, code: int) -> str:
    """Return a level of a feature in words.

    >>> months, bins = Feature(unit="months"), Bins((6.5, 8.5), (-9.0,), 0.0)
    >>> [say_level(months, bins, code) for code in range(len(bins))]
    ['up to 6 months', '7 to 8 months', '9 months or more', 'code -9', 'below 0 months', 'not given']
    """
    if not isinstance(levels, Bins):
        return _category(feature, levels.labels[code], levels.groups.get(levels.labels[code], ()))
    if code < levels.n_ordered:
        return _bin(feature, levels.edges, code)
    special = levels.special_values[code - levels.n_ordered :][:1]
    if code != levels.missing and special:
        return (
            say_value(feature, special[0]) if label_of(special[0]) in feature.labels else f"code {label_of(special[0])}"
        )
    if code != levels.missing:
        return f"below {with_unit(_rounded(levels.lower_bound or 0.0), feature)}"
    return say_value(feature, None)


def _category(feature: Feature, label: str, others: Sequence[str]) -> str:
    if label in feature.labels:
        return feature.labels[label]
    if label in ("missing", "unseen"):
        return NOT_GIVEN if label == "missing" else "another value"
    texts = [feature.labels[c] for c in (label, *others) if c in feature.labels]
    return ", ".join(texts) or label


def _bin(feature: Feature, edges: Sequence[float], code: int) -> str:
    low = edges[code - 1] if code else None
    high = edges[code] if code < len(edges) else None
    if low is None and high is None:
        return "any value"
    labels = _labels_between(feature, -math.inf if low is None else low, math.inf if high is None else high)
    if labels:
        return " or ".join(labels)
    # Edges between whole numbers are written as the whole numbers next to them.
    whole = all(edge % 1 == 0.5 for edge in edges)
    first = None if low is None else _rounded(math.floor(low) + 1.0 if whole else low)
    last = None if high is None else _rounded(math.floor(high) + 0.0 if whole else high)
    if first is None:
        return f"up to {with_unit(str(last), feature)}"
    if last is None:
        return f"{with_unit(first, feature)} or more" if whole else f"over {with_unit(first, feature)}"
    if whole:
        return with_unit(first if first == last else f"{first} to {last}", feature)
    return f"over {first}, up to {with_unit(last, feature)}"


def _labels_between(feature: Feature, low: float, high: float) -> list[str]:
    """Return the labels of the numbers in a bin, for a feature whose numbers are codes."""
    special = set(map(label_of, feature.special_values))
    codes = [key for key in feature.labels if key not in special and key != "missing"]
    return [feature.labels[key] for key in sorted(codes, key=float) if low < float(key) <= high]


def _rounded(value: float) -> str:
    return say_number(float(f"{value:.6g}"))


def outcome_words(schema: Schema, positive: object = None) -> str:
    """Return the outcome that the probability is about, in words that follow "probability that".

    >>> outcome_words(Schema(outcome={"positive": "does not repay"})), outcome_words(Schema(target="bad"), 1)
    ('the applicant does not repay', 'bad is 1')
    """
    if schema.outcome.positive is not None:
        return f"the applicant {schema.outcome.positive}"
    label = "positive" if positive is None else label_of(positive)
    return f"{'the outcome' if schema.target is None else schema.target} is {label}"
