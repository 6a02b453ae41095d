"""Find the levels of every feature from the rows: bin edges, categories."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from plainrisk.bins.edges import column_edges, split_edges, supervised_edges
from plainrisk.bins.histogram import Histogram, histogram
from plainrisk.bins.quantiles import quantile_edges
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, SchemaError, did_you_mean
from plainrisk.form import Bins, Categories, Levels
from plainrisk.schema import Feature, label_of
from plainrisk.schema.check import MOST_CATEGORIES

__all__ = [
    "Criterion",
    "categories_of",
    "count_values",
    "edges_of",
    "given_levels",
    "learn_bins",
    "learn_levels",
    "line_levels",
    "measured",
    "naming",
]

Criterion = Literal["gini", "entropy", "quantile"]
Floats = npt.NDArray[np.float64]


def given_levels(name: str, feature: Feature) -> Levels | None:
    """Return the levels of a feature that are given and not learned: fixed edges, listed categories; else None."""
    if feature.kind == "categorical":
        return None if feature.categories is None else categories_of(name, feature, ())
    return None if feature.edges is None else _bins(feature, feature.edges)


def learn_levels(
    frame: Frame,
    name: str,
    feature: Feature,
    target: npt.NDArray[Any],
    weight: npt.NDArray[np.float64] | None,
    *,
    max_bins: int,
    criterion: Criterion = "gini",
    min_rows: int = 1,
) -> Levels:
    """Return the levels of one feature.

    Parameters
    ----------
    target : (n,) 0/1
    weight : (n,), optional
    max_bins, min_rows : at most and at least; the feature's own max_bins or edges go before
    criterion : "gini" or "entropy" for a tree on the outcome (see `split_edges`), "quantile" for equal shares
    """
    given = given_levels(name, feature)
    if given is not None:
        return given
    if feature.kind == "categorical":
        return _categories(frame, name, feature)
    if criterion == "gini" or criterion == "entropy":
        x, target, weight = measured(frame, name, feature, target, weight)
        with naming(name):
            edges = supervised_edges(
                x, target, weight, max_bins=feature.max_bins or max_bins, criterion=criterion, min_rows=min_rows
            )
        return _bins(feature, tuple(edges.tolist()))
    found = count_values(frame, name, feature, target, weight)
    return _bins(feature, edges_of(found, feature, max_bins=max_bins, criterion=criterion, min_rows=min_rows))


def learn_bins(
    singles: Sequence[npt.NDArray[np.float32]],
    features: Sequence[Feature],
    target: npt.NDArray[np.bool_],
    *,
    max_bins: int,
    criterion: Literal["gini", "entropy"] = "gini",
    min_rows: int = 1,
) -> list[Bins]:
    """Return the levels of continuous features from their measurements; see `learn_levels`."""
    most = [feature.max_bins or max_bins for feature in features]
    edges = column_edges(singles, target, most, criterion, min_rows)
    return [_bins(feature, tuple(e)) for feature, e in zip(features, edges, strict=True)]


def count_values(
    frame: Frame, name: str, feature: Feature, target: npt.NDArray[Any], weight: npt.NDArray[np.float64] | None
) -> Histogram:
    """Return how often each measured value of a continuous feature occurs: all that its bins depend on."""
    x, target, weight = measured(frame, name, feature, target, weight)
    with naming(name):
        return histogram(x, target, weight)


def measured(
    frame: Frame, name: str, feature: Feature, target: npt.NDArray[Any], weight: Floats | None
) -> tuple[Floats, npt.NDArray[Any], Floats | None]:
    """Return the values that are measurements, with their outcomes and weights."""
    x = frame.numbers(name)
    inside = _bins(feature, ()).code_numbers(x) == 0
    if inside.all():
        return x, target, weight
    return x[inside], target[inside], None if weight is None else weight[inside]


@contextlib.contextmanager
def naming(feature: str) -> Iterator[None]:
    """Name the feature in what goes wrong."""
    try:
        yield
    except DataError as error:
        raise DataError(f"Data: feature {feature!r}: {error}") from None


def edges_of(
    found: Histogram, feature: Feature, *, max_bins: int, criterion: Criterion = "gini", min_rows: int = 1
) -> tuple[float, ...]:
    """Return the edges of a continuous feature's bins."""
    most = feature.max_bins or max_bins
    if criterion == "quantile":
        return tuple(map(float, quantile_edges(found, most, min_rows)))
    if criterion not in get_args(Criterion):
        raise SchemaError(f"unknown criterion {criterion!r}.{did_you_mean(criterion, get_args(Criterion))}")
    return tuple(map(float, split_edges(found, most, criterion, min_rows)))


def line_levels(frame: Frame, name: str, feature: Feature) -> Levels:
    """Return the levels of a feature that enters as a straight line: one bin, and those outside the order."""
    return _categories(frame, name, feature) if feature.kind == "categorical" else _bins(feature, ())


def _bins(feature: Feature, edges: tuple[float, ...]) -> Bins:
    special = tuple(map(float, feature.special_values))
    return Bins(edges=edges, special_values=special, lower_bound=feature.lower_bound)


def _categories(frame: Frame, name: str, feature: Feature) -> Categories:
    return categories_of(name, feature, () if feature.categories is not None else frame.labels(name).labels)


def categories_of(name: str, feature: Feature, labels: Iterable[str]) -> Categories:
    """Return the levels of a categorical feature in which these labels were seen."""
    special = tuple(label_of(v) for v in feature.special_values)
    listed = feature.category_labels
    if listed is None:
        found = [label for label in labels if label not in special]
        if len(found) > MOST_CATEGORIES:
            raise DataError(
                f"Data: feature {name!r} has {len(found):,} categories, at most {MOST_CATEGORIES:,} are possible. "
                "Group them, or leave it out."
            )
        listed = tuple(_in_order(name, found, ordered=feature.sign != 0))
    return Categories((*listed, *special), n_ordered=len(listed))


def _in_order(name: str, labels: list[str], *, ordered: bool) -> list[str]:
    """Sort numerically where every label is a number, else by text (which is no order for a direction)."""
    words = [label for label in labels if not _is_number(label)]
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
