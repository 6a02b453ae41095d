"""Find the levels of a feature from the rows: bin edges, categories."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np

from plainrisk._types import Array, Floats
from plainrisk.bins.edges import ValueCounts, fine_edges, quantile_edges, split_edges
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, SchemaError
from plainrisk.form import Bins, Categories, Levels
from plainrisk.schema import Feature, label_of
from plainrisk.schema.check import MOST_CATEGORIES
from plainrisk.schema.feature import RARE

__all__ = ["Criterion", "LevelFinder", "Limits"]

# The smallest and the largest measurement of a feature.
Limits = tuple[float, float]
Criterion = Literal["gini", "entropy", "quantile", "fine"]
NOTHING_BEYOND: Mapping[str, str] = MappingProxyType({})
MOST_LABELS = 2**16  # labels that are counted to find the rare ones


class LevelFinder:
    """Counts the values of one feature, batch by batch, then finds its levels.

    Parameters
    ----------
    name, feature : the feature and its entry in the schema, whose edges, max_bins or categories take precedence
    max_bins, min_rows : at most this many bins, each of at least this many rows
    criterion : "gini" or "entropy" for a tree on the outcome (`split_edges`), "quantile" for equal shares, "fine"
        for equal shares beside heavy values (`fine_edges`)
    halvings : how often the outermost of fine bins are cut in halves
    most_categories : if the schema lists no categories, the rarer ones beyond this number share a level
    lines : whether continuous features are lines, with one bin for all measurements

    Attributes
    ----------
    values : ValueCounts of the measurements
    range : the smallest and the largest measurement; None if there is none
    labels : the text labels seen, each with its weight if rare ones are to be merged
    too_near : whether values differ, but by so little that a tree separates none
    n_labels, n_grouped : how many categories there are, and how many share a level because there are too many
    levels : what was found
    """

    too_near = False
    n_labels = n_grouped = 0
    levels: Levels

    def __init__(
        self,
        name: str,
        feature: Feature,
        *,
        max_bins: int = 5,
        criterion: Criterion = "gini",
        min_rows: int = 1,
        halvings: int = 0,
        most_categories: int | None = None,
        lines: bool = False,
    ) -> None:
        self.name, self.feature = name, feature
        # The schema's entries on bins are meant for the bins that a person reads; fine bins are merged later.
        stated_bins = None if criterion == "fine" else feature.max_bins
        self.max_bins, self.criterion, self.min_rows = stated_bins or max_bins, criterion, min_rows
        self.halvings = halvings
        self.values = ValueCounts()
        self.range: Limits | None = None
        self.labels: dict[str, float] = {}
        self._weight = 0.0
        # Nothing needs to be found if the schema states the bins, or if the feature is a line.
        self._is_continuous = continuous = feature.kind == "continuous"
        self._counts_values = continuous and feature.edges is None and not lines
        self._lists_labels = not continuous and (feature.categories is None or feature.rare is not None)
        self._most_labels = MOST_LABELS if feature.rare is not None else MOST_CATEGORIES + len(feature.group_of)
        self._weighs_labels = feature.rare is not None or most_categories is not None
        self._most_kept = most_categories if feature.categories is None else None
        self._given_edges = () if lines or feature.edges is None else feature.edges

    def empty(self) -> LevelFinder:
        """Return a finder with these settings that has seen no rows."""
        other = copy.copy(self)
        other.values, other.range, other.labels, other._weight = ValueCounts(), None, {}, 0.0
        return other

    def add(self, frame: Frame, target: Array, weight: Floats | None) -> None:
        """Look at a batch of rows."""
        if self._is_continuous:
            self._read_values(frame, target, weight)
        elif self._lists_labels:
            self._count_labels(frame, weight)
            self._check_labels()

    def __add__(self, other: LevelFinder) -> LevelFinder:
        """Return a finder that has seen the rows of both."""
        both = copy.copy(self)
        both.values, both.range = self.values + other.values, _union(self.range, other.range)
        both.labels = {name: self.labels.get(name, 0.0) + other.labels.get(name, 0.0) for name in self.labels}
        both.labels |= {name: weight for name, weight in other.labels.items() if name not in self.labels}
        both._weight = self._weight + other._weight
        if self._lists_labels:
            both._check_labels()
        return both

    def _check_labels(self) -> None:
        if len(self.labels) > self._most_labels + len(self.feature.special_values):
            raise DataError(
                f"Data: feature {self.name!r} has more than {self._most_labels:,} categories. "
                "Group them (rare = 0.001 merges the rare ones), or leave it out."
            )

    def _count_labels(self, frame: Frame, weight: Floats | None) -> None:
        frame.refuse_fractions(self.name)
        column = frame.labels(self.name)
        if not self._weighs_labels:
            self.labels.update(dict.fromkeys(column.labels, 0.0))
            return
        # The first entry is that of code -1, missing.
        counts = np.bincount(column.codes.astype(np.intp) + 1, weight, minlength=len(column.labels) + 1).tolist()
        self._weight += math.fsum(counts)
        for label, count in zip(column.labels, counts[1:], strict=True):
            self.labels[label] = self.labels.get(label, 0.0) + count

    def _read_values(self, frame: Frame, target: Array, weight: Floats | None) -> None:
        x = frame.numbers(self.name)
        measured = self._bins(()).code_numbers(x) == 0
        if not measured.all():
            x, target = x[measured], target[measured]
            weight = None if weight is None else weight[measured]
        if len(x):
            # Adding 0 turns -0.0 into 0.0.
            self.range = _union(self.range, (float(x.min()) + 0.0, float(x.max()) + 0.0))
        if self._counts_values:
            self.values.add(x, target, weight)

    def finish(self) -> Levels:
        """Return the levels and keep them as `levels`; the counts are released."""
        if self.feature.kind == "categorical":
            shares = {label: count / max(self._weight, np.finfo(float).tiny) for label, count in self.labels.items()}
            beyond = _beyond(self.feature, shares, self._most_kept)
            self.n_labels, self.n_grouped = len(shares), len(beyond)
            self.levels = _categories(self.name, self.feature, shares, beyond)
        else:
            self.levels = self._bins(self._edges() if self._counts_values else self._given_edges)
        self.labels, self.values.histogram = {}, None
        return self.levels

    def _edges(self) -> tuple[float, ...]:
        counts = self.values.histogram
        if counts is None:
            return ()
        if self.criterion == "quantile":
            edges = quantile_edges(counts, self.max_bins, self.min_rows)
        elif self.criterion == "fine":
            edges = fine_edges(counts, self.max_bins, self.halvings)
        else:
            edges = split_edges(counts, self.max_bins, self.criterion, self.min_rows)
            self.too_near = not len(edges) and len(counts.values) > 1 and float(np.ptp(counts.values)) < 1e-7
        return self.values.snap(tuple(edges.tolist()))

    def _bins(self, edges: tuple[float, ...]) -> Bins:
        special = tuple(map(float, self.feature.special_values))
        return Bins(edges=edges, special_values=special, lower_bound=self.feature.lower_bound)


def _union(a: Limits | None, b: Limits | None) -> Limits | None:
    """Return the range that holds both ranges."""
    return a or b if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def _beyond(feature: Feature, shares: Mapping[str, float], most: int | None) -> dict[str, str]:
    """Return, for each of the rarer categories beyond so many, the level that they share; stated groups stay."""
    free = [c for c in shares if c not in feature.groups and c not in feature.group_of]
    special = {label_of(v) for v in feature.special_values}
    ranked = sorted((c for c in free if c not in special), key=lambda c: (-shares[c], c))
    return {} if most is None else dict.fromkeys(ranked[most:], RARE)


def _categories(
    name: str, feature: Feature, shares: Mapping[str, float], beyond: Mapping[str, str] = NOTHING_BEYOND
) -> Categories:
    """Return the levels of a categorical feature in which these labels were seen, each with its share of the rows."""
    special = tuple(label_of(v) for v in feature.special_values)
    listed = feature.category_labels
    if listed is None:
        categories = [label for label in shares if label not in special]
        listed = tuple(_in_order(name, categories, ordered=feature.sign != 0))
    group_of = {**beyond, **_rare(feature, listed, shares), **feature.group_of}
    levels = tuple(dict.fromkeys(group_of.get(label, label) for label in listed))
    if len(levels) > MOST_CATEGORIES:
        raise DataError(
            f"Data: feature {name!r} has {len(levels):,} categories after grouping, at most {MOST_CATEGORIES:,} are "
            "possible. Raise rare, or leave it out."
        )
    groups = {group: tuple(c for c, its in group_of.items() if its == group and c != group) for group in levels}
    return Categories((*levels, *special), len(levels), {group: labels for group, labels in groups.items() if labels})


def _rare(feature: Feature, listed: Iterable[str], shares: Mapping[str, float]) -> dict[str, str]:
    """Return, for each rare category, the level that they share; stated groups stay as they are."""
    if feature.rare is None:
        return {}
    stated = {*feature.groups, *feature.group_of}
    return {c: RARE for c in listed if c not in stated and shares.get(c, 0.0) < feature.rare}


def _in_order(name: str, labels: list[str], *, ordered: bool) -> list[str]:
    """Sort numerically if every label is a number, else by text (a direction cannot use that order)."""
    words = sorted(label for label in labels if not _is_number(label))
    if words and ordered:
        raise SchemaError(
            f"Schema: feature {name!r} has a direction, but its categories have no order: {words[0]!r} is not "
            "a number. List them in order: categories = [...]."
        )
    return sorted(labels) if words else sorted(labels, key=lambda label: (float(label), label))


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False
