"""From the effect of one feature to its shape: levels, training weights, and the mean taken out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.errors import SchemaError
from plainrisk.extract.effects import LabelEffect, NumberEffect, Piece
from plainrisk.form import Bins, Categories, Curve, Levels, Line, Shape, Table
from plainrisk.schema import Feature, label_of

__all__ = ["Counts", "label_shape", "number_shape"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """Training rows, to count levels and to centre on: weight and positive outcome per row, if known."""

    frame: Frame
    weight: Floats | None
    positive: Floats | None

    @property
    def row_weight(self) -> Floats:
        """The weight of every row."""
        return np.ones(self.frame.n_rows) if self.weight is None else self.weight

    def mean(self, values: Floats, inside: npt.NDArray[np.bool_]) -> float:
        """Return the weighted mean over some of the rows; 0 if there are none."""
        weight = self.row_weight * inside
        total = float(weight.sum())
        return float(weight @ np.where(inside, values, 0.0)) / total if total > 0 else 0.0


@dataclass(frozen=True)
class _Levels:
    """The levels of a shape: scores (NaN where the model has none), and counts."""

    scores: Floats
    weights: Floats
    positives: Floats

    @classmethod
    def of(cls, levels: Levels, scores: Sequence[float | None], name: str, rows: Counts | None) -> _Levels:
        """Count the rows per level; without rows every level the model knows counts as seen once."""
        values = np.array([math.nan if s is None else s for s in scores])
        known = ~np.isnan(values)
        if rows is None:
            return cls(values, known.astype(np.float64), np.zeros(len(values)))
        codes = levels.codes(rows.frame, name)
        weight = rows.row_weight
        positive = np.zeros(len(weight)) if rows.positive is None else weight * rows.positive
        counts = [np.bincount(codes, w, minlength=len(values)) * known for w in (weight, positive)]
        return cls(values, counts[0], counts[1])

    def less(self, mean: float) -> dict[str, tuple[float, ...]]:
        """Return the fields of a shape, the mean taken out; a level the model has no score for is neutral."""
        scores = np.where(np.isnan(self.scores), 0.0, self.scores - mean)
        return {
            "scores": tuple(scores.tolist()),
            "weights": tuple(self.weights.tolist()),
            "positives": tuple(self.positives.tolist()),
        }

    @property
    def mean(self) -> float:
        total = float(self.weights.sum())
        return float(self.weights @ np.nan_to_num(self.scores)) / total if total > 0 else 0.0


def label_shape(name: str, effect: LabelEffect, feature: Feature, rows: Counts | None) -> tuple[Shape, float]:
    """Return the table of a categorical effect, and the mean that was taken out of it."""
    levels = _categories(name, effect, feature)
    scores = [effect.at(label) for label in levels.categories]
    table = _Levels.of(levels, [*scores, effect.missing, effect.unseen], name, rows)
    mean = 0.0 if rows is None else table.mean
    return Table(levels=levels, **table.less(mean)), mean


def _categories(name: str, effect: LabelEffect, feature: Feature) -> Categories:
    """Order the categories as the schema does; those it does not list stand outside the order."""
    special = [label_of(v) for v in feature.special_values]
    listed = feature.category_labels
    if listed is None:
        found = [label for label in effect.scores if label not in special]
        listed = tuple(_in_order(name, found) if feature.sign else found)
    rest = [label for label in effect.scores if label not in listed and label not in special]
    return Categories((*listed, *special, *rest), n_ordered=len(listed))


def _in_order(name: str, labels: list[str]) -> list[str]:
    try:
        return sorted(labels, key=float)
    except ValueError:
        raise SchemaError(
            f"Schema: feature {name!r} has a direction, but its categories are not numbers and have no order. "
            "List them in order: categories = [...]."
        ) from None


def number_shape(name: str, effect: NumberEffect, feature: Feature, rows: Counts | None) -> tuple[Shape, float]:
    """Return the table, line or curve of a numeric effect, and the mean that was taken out of it.

    What the schema calls a special value becomes a level of its own, with the effect it has anyway, so that
    it stands outside the order.
    """
    special = dict(effect.special)
    for value in feature.special_values:
        special.setdefault(float(value), effect.piece_at(float(value)).at(float(value)))
    outside: list[float | None] = [*special.values(), effect.missing]
    if effect.degree == 0:
        bins = Bins(edges=effect.edges, special_values=tuple(special))
        values = [piece.coefficients[0] for piece in effect.pieces]
        table = _Levels.of(bins, [*values, *outside], name, rows)
        mean = 0.0 if rows is None else table.mean
        return Table(levels=bins, **table.less(mean)), mean
    bins = Bins(special_values=tuple(special))
    levels = _Levels.of(bins, [0.0, *outside], name, rows)
    if not effect.edges and effect.degree == 1:
        return _line(name, effect.pieces[0], bins, levels, rows)
    return _curve(name, effect, bins, levels, rows)


def _line(name: str, piece: Piece, levels: Bins, found: _Levels, rows: Counts | None) -> tuple[Shape, float]:
    constant, slope = piece.moved(0.0).coefficients[:2]
    center = 0.0
    if rows is not None:
        x = rows.frame.numbers(name)
        center = rows.mean(x, levels.code_numbers(x) == 0)
    mean = constant + slope * center
    fields = found.less(mean)
    fields["scores"] = (0.0, *fields["scores"][1:])
    return Line(slope=slope, center=center, levels=levels, **fields), mean


def _curve(name: str, effect: NumberEffect, levels: Bins, found: _Levels, rows: Counts | None) -> tuple[Shape, float]:
    breaks = _breaks(effect)
    size = max(len(piece.coefficients) for piece in effect.pieces)
    pieces = [piece.moved(start) for piece, start in zip(effect.pieces, breaks, strict=False)]
    table = np.array([[*p.coefficients, *[0.0] * (size - len(p.coefficients))] for p in pieces])
    mean = 0.0
    if rows is not None:
        whole = _as_curve(breaks, table, levels, found.less(0.0))
        known = np.asarray(~np.isnan(found.scores))[levels.codes(rows.frame, name)]
        mean = rows.mean(whole.values(rows.frame, name), known)
        table[:, 0] -= mean
    fields = found.less(mean)
    return _as_curve(breaks, table, levels, fields), mean


def _as_curve(breaks: tuple[float, ...], table: Floats, levels: Bins, fields: dict[str, tuple[float, ...]]) -> Curve:
    scores = (0.0, *fields["scores"][1:])
    coefficients = tuple(map(tuple, table.tolist()))
    return Curve(breaks=breaks, coefficients=coefficients, levels=levels, **{**fields, "scores": scores})


def _breaks(effect: NumberEffect) -> tuple[float, ...]:
    """Return where the pieces of a curve start and where the last ends.

    A curve puts a value that is equal to a break on the right, an effect on the left. That matters where the
    effect jumps, and there the break is the next number after the edge.
    """
    edges = effect.edges
    if not edges:
        return 0.0, 1.0
    gaps = [abs(a.at(e) - b.at(e)) for a, b, e in zip(effect.pieces, effect.pieces[1:], edges, strict=False)]
    if max(gaps) > 1e-12:
        edges = tuple(math.nextafter(e, math.inf) for e in edges)
    width = max(edges[-1] - edges[0], 1e-6 * abs(edges[0])) or 1.0
    return edges[0] - width, *edges, edges[-1] + width
