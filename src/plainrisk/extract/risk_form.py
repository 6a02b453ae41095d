"""From effects and trees to a risk form: levels, training weights, shapes centered on their mean, schema."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.data.columns import label_of
from plainrisk.data.frame import Frame, column_of
from plainrisk.errors import DataError, SchemaError, did_you_mean
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect, PairEffect, Piece
from plainrisk.extract.reading import Additive, Label, TreeSum
from plainrisk.fit.weights import read_weight
from plainrisk.form import (
    Alone,
    Bins,
    Categories,
    Curve,
    Levels,
    Line,
    Logistic,
    PairTable,
    Part,
    RiskForm,
    Shape,
    Table,
    TreePart,
)
from plainrisk.form.beyond import widen_ranges
from plainrisk.schema import Feature, Schema
from plainrisk.schema.outcomes import class_label

__all__ = ["build_form"]


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
        given = read_weight(sample_weight, frame.n_rows)
        weight = np.ones(frame.n_rows) if given is None else given
        rows = CountedRows(frame, weight, weight * _outcomes(y, read.classes, frame.n_rows))
    features = {name: _feature(schema.features.get(name), kind) for name, kind in _kinds(read).items()}
    members = {s: tuple(f for f in names if f in features) for s, names in schema.subscales.items()}
    subscales = {s: names for s, names in members.items() if names}
    form = RiskForm(
        schema=msgspec.structs.replace(schema, features=features, subscales=subscales),
        columns=read.columns,
        classes=read.classes,
        parts=(_tree_part(read) if isinstance(read, TreeSum) else _part(read, features, rows),),
        pool=Alone(),
    )
    if frame is None:
        return form
    ranges: dict[str, tuple[float, float]] = {}
    numbers = [name for name, feature in features.items() if feature.kind == "continuous"]
    widen_ranges(ranges, form.schema, frame, numbers)
    return msgspec.structs.replace(form, ranges=ranges)


def _part(read: Additive, features: Mapping[str, Feature], rows: CountedRows | None) -> Part:
    """Center every shape on its training mean, and move the means to the intercept."""
    shapes: dict[str, Shape] = {}
    means = []
    for name, effect in read.effects.items():
        if isinstance(effect, NumberEffect):
            shapes[name], mean = _number_shape(name, effect, features[name], rows)
        else:
            shapes[name], mean = _label_shape(name, effect, features[name], rows)
        means.append(mean)
    pairs = []
    for pair in read.pairs:
        table, mean = _pair_table(pair, rows)
        pairs.append(table)
        means.append(mean)
    intercept = math.fsum([read.intercept, *means])
    return Part(name="all", intercept=intercept, shapes=shapes, link=Logistic(), pairs=tuple(pairs))


def _pair_table(pair: PairEffect, rows: CountedRows | None) -> tuple[PairTable, float]:
    """Return the table of a pair, centered if there are rows, and its mean."""
    (first, at_first), (second, at_second) = map(_axis, pair.axes)
    scores = np.asarray(pair.scores)[np.ix_(at_first, at_second)]
    weights, positives, mean = np.ones(scores.shape), np.zeros(scores.shape), 0.0
    if rows is not None:
        codes = tuple(lv.codes(rows.frame, name) for lv, name in zip((first, second), pair.features, strict=True))
        weights = np.zeros(scores.shape)
        np.add.at(weights, codes, rows.weight)
        np.add.at(positives, codes, rows.positive)
        mean = float(np.vdot(weights, scores)) / float(weights.sum())
    tables = (tuple(map(tuple, table.tolist())) for table in (scores - mean, weights, positives))
    fields = dict(zip(("scores", "weights", "positives"), tables, strict=True))
    return PairTable(features=pair.features, levels=(first, second), **fields), mean


def _axis(effect: Effect) -> tuple[Levels, list[int]]:
    """Return the levels of one feature of a pair, and the row or column of its scores that each of them has."""
    if isinstance(effect, NumberEffect):
        numbers = [*(piece.coefficients[0] for piece in effect.pieces), effect.missing]
        return Bins(edges=effect.edges), [int(n or 0) for n in numbers]
    labels = tuple(effect.scores)
    numbers = [*effect.scores.values(), effect.missing, effect.unseen]
    return Categories(labels, len(labels)), [int(n or 0) for n in numbers]


def _tree_part(read: TreeSum) -> TreePart:
    return TreePart(name="all", intercept=read.intercept, inputs=read.inputs, trees=read.trees, link=Logistic())


def _kinds(read: Additive | TreeSum) -> dict[str, str]:
    if isinstance(read, Additive):
        numeric = {name: isinstance(effect, NumberEffect) for name, effect in read.effects.items()}
    else:
        numeric = {source.feature: source.category is None for source in read.inputs}
    return {name: "continuous" if number else "categorical" for name, number in numeric.items()}


def _feature(stated: Feature | None, kind: Any) -> Feature:
    """Return a feature's entry in the schema, with the kind that the model reads it as."""
    if stated is None:
        return Feature(kind=kind)
    if stated.kind == kind:
        return stated
    return Feature(
        kind=kind,
        # A list of categories is an order, which a model that reads numbers does not share.
        direction=stated.direction if stated.categories is None else "none",
        special_values=tuple(v for v in stated.special_values if not isinstance(v, str)),
        unseen=stated.unseen,
        reason=stated.reason,
        note=stated.note,
    )


# ---- the outcome


def _position(classes: tuple[Label, Label], positive: Any) -> int:
    """Return the position of the positive outcome among the model's two."""
    if positive is None:
        return 1
    texts, wanted = [class_label(c) for c in classes], class_label(positive)
    if wanted in texts:
        return texts.index(wanted)
    if texts == ["0", "1"]:
        return 1  # already coded
    raise SchemaError(
        f"Schema: the positive label {wanted!r} is not an outcome of the model.{did_you_mean(wanted, texts)}"
    )


def _turned(read: Additive | TreeSum) -> Additive | TreeSum:
    """Return the log odds of the other outcome: everything with its sign changed."""
    first, last = read.classes
    if isinstance(read, Additive):
        effects: dict[str, Effect] = {name: effect.scaled(-1.0) for name, effect in read.effects.items()}
        flipped = tuple(
            replace(p, scores=tuple(tuple(-score for score in row) for row in p.scores)) for p in read.pairs
        )
        return replace(read, intercept=-read.intercept, effects=effects, pairs=flipped, classes=(last, first))
    trees = tuple(msgspec.structs.replace(t, values=tuple(-v for v in t.values)) for t in read.trees)
    return replace(read, intercept=-read.intercept, trees=trees, classes=(last, first))


def _outcomes(y: Any, classes: tuple[Label, Label], n_rows: int) -> Floats:
    """Return 1 for each row with the positive outcome; 0 if the outcomes are not known."""
    if y is None:
        return np.zeros(n_rows)
    column = column_of(y)
    if len(column.codes) != n_rows:
        raise DataError(f"Data: X has {n_rows} rows, y {len(column.codes)}.")
    return column.outcomes(classes).astype(np.float64)


# ---- from the effect of one feature to its shape


@dataclass(frozen=True)
class CountedRows:
    """Training rows for counting levels and centering shapes, with the weight of each row and its positive part."""

    frame: Frame
    weight: Floats
    positive: Floats

    def mean(self, values: Floats, inside: Bools) -> float:
        """Return the weighted mean over some of the rows, or 0 without rows."""
        weight = self.weight * inside
        total = float(weight.sum())
        return float(weight @ np.where(inside, values, 0.0)) / total if total > 0 else 0.0


@dataclass(frozen=True)
class _Levels:
    """The levels of a shape: scores (NaN where the model has none), and counts."""

    scores: Floats
    weights: Floats
    positives: Floats

    @classmethod
    def of(cls, levels: Levels, scores: Sequence[float | None], name: str, rows: CountedRows | None) -> _Levels:
        """Count the rows per level; without rows every level the model knows counts as seen once."""
        values = np.array([math.nan if s is None else s for s in scores])
        defined = ~np.isnan(values)
        if rows is None:
            return cls(values, defined.astype(np.float64), np.zeros(len(values)))
        codes = levels.codes(rows.frame, name)
        weights, positives = (np.bincount(codes, w, len(values)) * defined for w in (rows.weight, rows.positive))
        return cls(values, weights, positives)

    def centered(self, mean: float) -> dict[str, tuple[float, ...]]:
        """Return the fields of a shape centered by a mean; a level that the model has no score for is neutral."""
        scores = np.where(np.isnan(self.scores), 0.0, self.scores - mean)
        columns = {"scores": scores, "weights": self.weights, "positives": self.positives}
        return {name: tuple(values.tolist()) for name, values in columns.items()}


def _table(levels: Levels, scores: Sequence[float | None], name: str, rows: CountedRows | None) -> tuple[Shape, float]:
    """Return a table of scores per level, centered if there are rows, and its mean."""
    counted = _Levels.of(levels, scores, name, rows)
    total = float(counted.weights.sum())
    mean = 0.0 if rows is None or total == 0 else float(counted.weights @ np.nan_to_num(counted.scores)) / total
    return Table(levels=levels, **counted.centered(mean)), mean


def _label_shape(name: str, effect: LabelEffect, feature: Feature, rows: CountedRows | None) -> tuple[Shape, float]:
    """Return the centered table of a categorical effect, and its mean."""
    levels = _categories(name, effect, feature)
    scores = [effect.at(label) for label in levels.categories]
    return _table(levels, [*scores, effect.missing, effect.unseen], name, rows)


def _categories(name: str, effect: LabelEffect, feature: Feature) -> Categories:
    """Order the categories as the schema does; those it does not list are special levels."""
    special = [label_of(v) for v in feature.special_values]
    listed = feature.category_labels
    if listed is None:
        labels = [label for label in effect.scores if label not in special]
        listed = tuple(_in_order(name, labels) if feature.sign else labels)
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


def _number_shape(name: str, effect: NumberEffect, feature: Feature, rows: CountedRows | None) -> tuple[Shape, float]:
    """Return the centered table, line or curve of a numeric effect, and its mean.

    A special value of the schema becomes a level of its own, with the effect that the model gives it.
    """
    special = dict(effect.special)
    for value in feature.special_values:
        special.setdefault(float(value), effect.piece_at(float(value)).at(float(value)))
    outside: list[float | None] = [*special.values(), effect.missing]
    if effect.degree == 0:
        bins = Bins(edges=effect.edges, special_values=tuple(special))
        return _table(bins, [*(piece.coefficients[0] for piece in effect.pieces), *outside], name, rows)
    bins = Bins(special_values=tuple(special))
    levels = _Levels.of(bins, [0.0, *outside], name, rows)
    if rows is None:
        levels.weights[0] = 0.0  # without rows, nothing is known of its values
    if not effect.edges and effect.degree == 1:
        return _line(name, effect.pieces[0], bins, levels, rows)
    return _curve(name, effect, bins, levels, rows)


def _line(name: str, piece: Piece, levels: Bins, counted: _Levels, rows: CountedRows | None) -> tuple[Shape, float]:
    constant, slope = piece.moved(0.0).coefficients[:2]
    center = deviation = 0.0
    if rows is not None:
        x = rows.frame.numbers(name)
        measured = levels.code_numbers(x) == 0
        center = rows.mean(x, measured)
        deviation = rows.mean(np.abs(x - center), measured)
    mean = constant + slope * center
    fields = counted.centered(mean)
    fields["scores"] = (0.0, *fields["scores"][1:])
    return Line(slope=slope, center=center, levels=levels, deviation=deviation, **fields), mean


def _curve(
    name: str, effect: NumberEffect, levels: Bins, counted: _Levels, rows: CountedRows | None
) -> tuple[Shape, float]:
    breaks = _breaks(effect)
    size = max(len(piece.coefficients) for piece in effect.pieces)
    pieces = [piece.moved(start) for piece, start in zip(effect.pieces, breaks, strict=False)]
    table = np.array([[*p.coefficients, *[0.0] * (size - len(p.coefficients))] for p in pieces])
    mean = 0.0
    if rows is not None:
        whole = _as_curve(breaks, table, levels, counted.centered(0.0))
        defined = np.asarray(~np.isnan(counted.scores))[levels.codes(rows.frame, name)]
        mean = rows.mean(whole.values(rows.frame, name), defined)
        table[:, 0] -= mean
    return _as_curve(breaks, table, levels, counted.centered(mean)), mean


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
