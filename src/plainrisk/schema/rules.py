"""Contradictions inside a schema: the checks that need no data."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from plainrisk.checks import is_finite
from plainrisk.data.columns import label_of
from plainrisk.data.texts import parse
from plainrisk.errors import did_you_mean
from plainrisk.schema.check import MOST_CATEGORIES
from plainrisk.schema.policy import policy_problems
from plainrisk.text import is_number

if TYPE_CHECKING:
    from plainrisk.schema.feature import Feature
    from plainrisk.schema.schema import Schema

__all__ = ["feature_problems", "schema_problems"]


def schema_problems(schema: Schema) -> Iterator[str]:
    """Yield the contradictions inside a schema, before any data are seen."""
    # The constructor of a Struct does not check the annotated types.
    target: object = schema.target
    positive: object = schema.positive
    if not isinstance(target, str | None):
        yield f"target must be the name of a column, not {target!r}."
    if not isinstance(positive, str | int | float | None):
        yield f"positive must be one label of the target, not {positive!r}."
    if schema.adverse not in ("positive", "negative"):
        yield f"adverse must be one of 'positive', 'negative', not {schema.adverse!r}."
    if isinstance(positive, float) and not math.isfinite(positive):
        yield f"positive must be text or a finite number, not {positive}."
    if schema.target is not None and schema.target in schema.features:
        yield f"{schema.target!r} is both the target and a feature. Remove it from the features."
    for name, feature in schema.features.items():
        for problem in feature.problems():
            yield f"feature {name!r}: {problem}"
    yield from _subscale_problems(schema)
    yield from _shared_labels(schema)
    for text in (schema.outcome.positive, schema.outcome.negative):
        if text is not None and not text.strip():
            yield "outcome: its words are empty."
    for name in schema.policy.inquiries:
        if name in schema.features and schema.features[name].protected:
            yield f"policy: inquiries names {name!r}, which is protected and so never a reason."
    yield from policy_problems(schema.policy, schema.features)


def _shared_labels(schema: Schema) -> Iterator[str]:
    """Two features with the same name for people."""
    first: dict[str, str] = {}
    for name, feature in schema.features.items():
        if feature.label is not None and first.setdefault(feature.label, name) != name:
            yield f"features {first[feature.label]!r} and {name!r} have the same label, {feature.label!r}."


def _subscale_problems(schema: Schema) -> Iterator[str]:
    for subscale, members in schema.subscales.items():
        if not members:
            yield f"subscale {subscale!r} is empty. Remove it, or list its features."
        for name in [m for m, times in Counter(members).items() if times > 1]:
            yield f"subscale {subscale!r} lists feature {name!r} twice."
        for name in members:
            if name not in schema.features:
                hint = did_you_mean(name, schema.features)
                yield f"feature {name!r} in subscale {subscale!r} is not among the features.{hint}"


def feature_problems(feature: Feature) -> list[str]:
    """Return the contradictions inside a feature's entry."""
    problems = _categorical_problems(feature) if feature.kind == "categorical" else _continuous_problems(feature)
    for field in ("edges", "categories", "special_values"):
        if len(getattr(feature, field) or ()) > MOST_CATEGORIES:
            problems.append(
                f"lists {len(getattr(feature, field)):,} {field}; at most {MOST_CATEGORIES:,} are possible."
            )
    return [
        *problems,
        *_reading_problems(feature),
        *_rule_problems(feature),
        *_move_problems(feature),
        *_word_problems(feature),
        *_text_problems(feature),
    ]


def _reading_problems(feature: Feature) -> Iterator[str]:
    """Yield the stated ways of reading texts that cannot work."""
    if feature.read is not None and feature.kind == "categorical":
        yield "read is for continuous features. Set kind = 'continuous', or remove it."
    texts = [text.strip() for text in feature.null_values]
    for text in [t for t, times in Counter(texts).items() if times > 1]:
        yield f"null_values lists {text!r} twice."
    if feature.kind == "continuous":
        numbers = [text for text in texts if parse(text, feature.read or "number") is not None and text != "NaN"]
        if numbers:
            yield f"null_values holds the number {numbers[0]!r}. A number that is no measurement is a special value."
        return
    listed = [*(feature.category_labels or ()), *map(label_of, feature.special_values), *feature.group_of]
    both = [label for label in listed if label.strip() in texts]
    if both:
        yield f"{both[0]!r} is in null_values, and so no category and no special value. Keep one."


def _rule_problems(feature: Feature) -> Iterator[str]:
    """Yield the rules for levels that do not exist."""
    special = [label_of(v) for v in feature.special_values]
    for label in feature.special_rules:
        if label not in special:
            yield f"special_rules has a rule for {label!r}, which is no special value.{did_you_mean(label, special)}"
    if feature.below_bound is not None and feature.lower_bound is None:
        yield f"below_bound = {feature.below_bound!r} needs a lower_bound. Add it, or remove the rule."


def _move_problems(feature: Feature) -> Iterator[str]:
    if not (math.isfinite(feature.step_cost) and feature.step_cost >= 0):
        yield f"step_cost must be finite and not negative, not {feature.step_cost}."
    ordered = feature.kind == "continuous" or feature.direction != "none"
    if feature.protected and feature.actionable != "fixed":
        yield f"is protected, so nobody is advised to change it: remove actionable = {feature.actionable!r}."
    if feature.actionable in ("up", "down") and not ordered:
        yield f"actionable = {feature.actionable!r} needs an order. Give the feature a direction, or 'free' or 'fixed'."


# The labels that a model gives bins whose edges only the fit will find.
_BIN_LABEL = re.compile(r"x (<=?|>) \S+|\S+ < x <= \S+|any value")


def _text_problems(feature: Feature) -> Iterator[str]:
    """Yield the keys of `reasons` and `labels` that cannot be a level."""
    special = [label_of(v) for v in feature.special_values]
    if feature.kind == "categorical":
        if feature.category_labels is None:
            return  # training finds the categories
        group_of = feature.group_of
        codes = [*(group_of.get(c, c) for c in feature.category_labels), *special, "missing", "unseen"]
    else:
        codes = [*special, *(f"= {v}" for v in special), "missing"]
    coded = [*feature.group_of, *codes] if feature.kind == "categorical" else codes
    for key in feature.labels:
        if key not in coded and not (feature.kind == "continuous" and is_number(key)):
            yield f"labels has words for {key!r}, which is no category and no number.{did_you_mean(key, coded)}"
    for key in feature.reasons:
        is_bin = feature.kind == "continuous" and _BIN_LABEL.fullmatch(key)
        if key not in codes and not is_bin:
            yield f"reasons has words for {key!r}, which is no level.{did_you_mean(key, codes)}"


def _word_problems(feature: Feature) -> Iterator[str]:
    if feature.unit is not None and feature.kind == "categorical":
        yield "unit is for continuous features. Set kind = 'continuous', or remove it."
    for text in (feature.label, feature.unit, feature.reason, *feature.labels.values(), *feature.reasons.values()):
        if text is not None and not text.strip():
            yield "label, labels, unit, reason and reasons hold words, not an empty text."


def _continuous_problems(feature: Feature) -> list[str]:
    problems = []
    words = [v for v in feature.special_values if isinstance(v, str)]
    numbers = [v for v in feature.special_values if not isinstance(v, str)]
    if words:
        problems.append(f"special values of a continuous feature are numbers, not {words[0]!r}.")
    if not all(map(is_finite, numbers)):
        problems.append("special values must be finite; missing values have their own level already.")
    if len(set(numbers)) < len(numbers):
        problems.append(f"special values repeat: {list(numbers)}.")
    if feature.lower_bound is not None and not math.isfinite(feature.lower_bound):
        problems.append(f"lower_bound must be finite, not {feature.lower_bound}. Leave it out for no bound.")
    if feature.categories is not None:
        problems.append("categories are for categorical features. Set kind = 'categorical', or remove them.")
    if feature.groups or feature.rare is not None:
        problems.append("groups and rare are for categorical features. Set kind = 'categorical', or remove them.")
    if feature.max_bins is not None and feature.max_bins < 2:
        problems.append(f"max_bins must be at least 2, not {feature.max_bins}.")
    return [*problems, *_edge_problems(feature)]


def _edge_problems(feature: Feature) -> Iterator[str]:
    if feature.edges is None:
        return
    if feature.max_bins is not None:
        yield "has both edges and max_bins. Keep one."
    if not all(map(math.isfinite, feature.edges)) or list(feature.edges) != sorted(set(feature.edges)):
        yield f"edges must be finite and strictly increasing, not {list(feature.edges)}."


def _categorical_problems(feature: Feature) -> list[str]:
    problems = [
        f"{name} is for continuous features. Set kind = 'continuous', or remove it."
        for name in ("lower_bound", "max_bins", "edges")
        if getattr(feature, name) is not None
    ]
    special = [label_of(s) for s in feature.special_values]
    if len(set(special)) < len(special):
        problems.append(f"special values repeat: {special}.")
    odd = [c for c in feature.categories or () if isinstance(c, float) and not math.isfinite(c)]
    if odd:
        problems.append(f"categories must be text or finite numbers, not {odd[0]}.")
    return [*problems, *_label_problems(feature.category_labels or (), special), *_group_problems(feature, special)]


def _group_problems(feature: Feature, special: Sequence[str]) -> Iterator[str]:
    if feature.rare is not None and not 0 < feature.rare < 1:
        yield f"rare must be a share between 0 and 1, such as 0.01, not {feature.rare}."
    if feature.rare is not None and feature.direction != "none":
        yield "rare categories have no place in an order. Group neighbors in 'groups', or remove the direction."
    members = [label_of(c) for own in feature.groups.values() for c in own]
    twice = sorted(c for c, times in Counter(members).items() if times > 1)
    if twice:
        yield f"category {twice[0]!r} is in two groups, or twice in one."
    group_of = feature.group_of
    for group, own in feature.groups.items():
        if not own:
            yield f"group {group!r} is empty. Remove it, or list its categories."
        if group_of.get(group, group) != group:
            yield f"group {group!r} has the name of a category of another group."
    odd = [c for c in (*members, *feature.groups) if c in special]
    if odd:
        yield f"{odd[0]!r} is both a special value and in a group. Keep one."
    if feature.groups and feature.direction != "none":
        yield from _order_problems(feature)


def _order_problems(feature: Feature) -> Iterator[str]:
    """Yield where groups and a direction contradict each other: a group must consist of neighbors in the order."""
    if feature.category_labels is None:
        yield "has groups and a direction: list the categories in order, categories = [...]."
        return
    group_of = feature.group_of
    runs = [group for group, _ in groupby(feature.category_labels, lambda c: group_of.get(c, c))]
    apart = sorted(group for group, times in Counter(runs).items() if times > 1)
    if apart:
        yield f"the categories of group {apart[0]!r} are not neighbors in the order of 'categories'."


def _label_problems(labels: Sequence[str], special: Sequence[str]) -> Iterator[str]:
    twice = sorted(c for c, times in Counter(labels).items() if times > 1)
    if twice:
        yield f"category {twice[0]!r} is listed twice."
    both = [s for s in special if s in labels]
    if both:
        yield f"{both[0]!r} is both a category and a special value. Keep one."
