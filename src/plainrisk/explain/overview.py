"""The whole model at a glance: what every level of every feature does, and which features matter."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.checks import check_parameters, whole
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.contributions import explain
from plainrisk.explain.reference import Reference, additive_part, knows_typical, make_reference, pool_weights
from plainrisk.form import Alone, Curve, Line, Linear, Logistic, PairTable, Part, RiskForm, Shape
from plainrisk.form.beyond import widen_ranges
from plainrisk.form.wording import per_units
from plainrisk.tables import TableResult, text_table

if TYPE_CHECKING:
    from plainrisk.explain.uncertainty import Refits

__all__ = [
    "Importance",
    "Overview",
    "ShapeTable",
    "column_importance",
    "curve_of",
    "level_effects",
    "level_scores",
    "line_step",
    "overview",
    "shape_table",
    "term_of",
]


CURVE_POINTS = 61  # at which a line or a curve is drawn
TWO = ("pair", "curve")  # what a ShapeTable has in addition to its columns


@dataclass(frozen=True)
class ShapeTable:
    """What the levels of one feature do in one part: an entry per level.

    The table of a pair has the feature "u × v" and an entry per combination of levels.

    Attributes
    ----------
    feature, part : str
    labels : the levels
    n_ordered : how many of them, from the first, are bins or categories, not special values or missing
    ordered : whether these stand in an order
    rows, bad : training weight, and that of the positive outcome
    bad_rate : bad / rows, NaN without rows, and throughout for a model that was read without its outcomes
    score : what the level adds to the part's score
    effect : what the level does to the typical applicant: the risk with it less the risk as is; None where the form
        does not know who is typical
    unit : of the score: "probability" or "log odds" where the score is that itself, else "score"
    pair : of a pair of features, its table with two sides
    curve : of a line or a curve, values over the training range and what each does to the typical applicant. Its first
        level stands for one step of a line ("per month"), and has no score of its own for a curve
    """

    feature: str
    part: str
    labels: tuple[str, ...]
    n_ordered: int
    ordered: bool
    rows: Floats
    bad: Floats
    bad_rate: Floats
    score: Floats
    effect: Floats | None
    unit: str
    pair: PairTable | None = None
    curve: tuple[Floats, Floats] | None = None


@dataclass(frozen=True)
class Importance:
    """How much one feature matters, or one subscale of trees.

    Attributes
    ----------
    subscale, feature : whose; the feature is None for a whole subscale
    mean : mean absolute contribution over the training rows, or over the rows given
    span : from the least to the largest contribution of a level that training rows had
    unit : "probability", "log odds" or "score"
    """

    subscale: str
    feature: str | None
    mean: float
    span: float
    unit: str


@dataclass(frozen=True, repr=False)
class Overview(TableResult):
    """A model at a glance.

    Attributes
    ----------
    shapes : one table per feature and part
    importance : the most important first
    weights : of the subscales; empty for a model of one part
    """

    shapes: tuple[ShapeTable, ...]
    importance: tuple[Importance, ...]
    weights: dict[str, float]

    def _headline(self) -> str:
        terms = {t.feature for t in self.shapes}
        return f"Overview of {len(terms)} features and pairs with shapes; importance is the mean absolute contribution"

    def __repr__(self) -> str:
        columns = {name: [getattr(entry, name) for entry in self.importance] for name in Importance.__annotations__}
        return text_table(self._headline(), columns)

    def shape(self, feature: str, part: str | None = None) -> ShapeTable:
        """Return the table of a feature, in the first part that has it unless one is named."""
        tables = [t for t in self.shapes if t.feature == feature and part in (None, t.part)]
        if not tables:
            features = dict.fromkeys(t.feature for t in self.shapes)
            where = "" if part is None else f" in part {part!r}"
            raise DataError(f"There is no table of {feature!r}{where}.{did_you_mean(feature, features)}")
        return tables[0]

    def columns(self) -> dict[str, Any]:
        """Return one line per level, as columns by name."""
        columns: dict[str, list[Any]] = {
            name: [] for name in ("part", "feature", "level", "rows", "bad_rate", "score", "effect")
        }
        for t in self.shapes:
            n = len(t.labels)
            effect = [None] * n if t.effect is None else t.effect
            lines = ([t.part] * n, [t.feature] * n, t.labels, t.rows, t.bad_rate, t.score, effect)
            for column, values in zip(columns.values(), lines, strict=True):
                column.extend(values)
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; a rate without rows is None."""
        shapes = []
        for t in self.shapes:
            plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(t).items() if k not in TWO}
            plain["bad_rate"] = [None if r != r else r for r in plain["bad_rate"]]
            shapes.append(plain)
        return {"shapes": shapes, "importance": [asdict(i) for i in self.importance], "weights": self.weights}

    def plot(self, feature: str, part: str | None = None, *, refits: Refits | None = None, axes: Any = None) -> Any:
        """Draw one feature's levels with counts and bad rates, and intervals if refits are given; returns the axes.

        A pair ("income × age") is a heat map with counts; with refits, its combinations of levels are in one row.
        """
        from plainrisk.explain.plots import draw_pair, draw_shape

        table = self.shape(feature, part)
        if table.pair is not None and refits is None:
            return draw_pair(table.pair, table.unit, ax=axes)
        ask = None if refits is None else refits.shape if table.effect is None else refits.effects
        interval = None if ask is None else ask(feature, table.part)
        return draw_shape(table, interval, axes=axes)

    def plot_weights(self, refits: Refits | None = None, ax: Any = None) -> Any:
        """Draw the weights of the subscales, with intervals if refits are given; returns the axes."""
        from plainrisk.explain.plots import draw_weights

        return draw_weights(self.weights, None if refits is None else refits.weights(), ax=ax)

    def plot_importance(self, most: int = 20, ax: Any = None) -> Any:
        """Draw the importance of the features, the most important first; returns the axes."""
        from plainrisk.explain.plots import draw_importance

        check_parameters("plot_importance", {"most": most}, {"most": whole(1)})

        return draw_importance(self, most=most, ax=ax)


def overview(form: RiskForm, X: Any = None) -> Overview:
    """Return the shapes, the importance and the weights of a form.

    Importance is the mean absolute contribution over the rows X, or over the training counts. The values of lines are
    not counted, so a line is measured at its mean distance from the center. Curves and trees need rows.
    """
    typical, spans = _typical(form, X), dict(form.ranges)
    if X is not None:
        numbers = [n for n in form.features if n not in spans and form.schema.features[n].kind == "continuous"]
        widen_ranges(spans, form.schema, form.align(X), numbers)
    tables = tuple(
        shape_table(form, typical, k, name, spans.get(name))
        for k, part in enumerate(form.parts)
        if isinstance(part, Part)
        for name in part.term_names
    )
    importance = _from_counts(form, typical, tables) if X is None or typical is None else _from_rows(form, typical, X)
    weights = (
        {} if isinstance(form.pool, Alone) else dict(zip((p.name for p in form.parts), pool_weights(form), strict=True))
    )
    return Overview(tables, tuple(sorted(importance, key=lambda i: -i.mean if i.mean == i.mean else np.inf)), weights)


def column_importance(form: RiskForm) -> Floats | None:
    """Return the share of every column in the importance, over the training counts; None for lines and trees."""
    if not knows_typical(form):
        return None
    pairs = {pair.name: pair.features for part in form.parts if isinstance(part, Part) for pair in part.pairs}
    share_of = dict.fromkeys(form.columns, 0.0)
    for entry in overview(form).importance:
        if entry.feature is None:
            return None
        names = pairs.get(entry.feature, (entry.feature,))
        for name in names:
            share_of[name] += entry.mean / len(names)
    total = math.fsum(share_of.values())
    if math.isnan(total):
        return None
    return np.array(list(share_of.values())) / (total if total > 0 else 1.0)


def _typical(form: RiskForm, X: Any) -> Reference | None:
    """Return the typical training row, or of a form that does not know it, the typical row of X."""
    if X is not None and form.align(X).n_rows == 0:
        raise DataError("overview: X has no rows to take the importance over. Leave X out for the training rows.")
    if knows_typical(form):
        return make_reference(form, "typical")
    return None if X is None else make_reference(form, "typical", X)


def curve_of(
    form: RiskForm, typical: Reference | None, k: int, name: str, span: tuple[float, float] | None
) -> tuple[Floats, Floats] | None:
    """Return values of a line or a curve over a span, and what each does to the risk of the typical applicant."""
    shape = additive_part(form, k).shapes.get(name)
    if typical is None or span is None or not isinstance(shape, Line | Curve):
        return None
    values: Floats = np.linspace(*span, CURVE_POINTS)
    values = values[shape.levels.code_numbers(values) == 0]
    return values, _risk_changes(form, typical, k, name, shape.of_numbers(values))


def _risk_changes(form: RiskForm, typical: Reference, k: int, name: str, scores: Floats) -> Floats:
    """Return what scores of a term of part k do to the risk of the typical applicant."""
    point = typical.points[k]
    return typical.risks(form, k, point.score - point.terms[name] + scores) - typical.risk(form)


def line_step(form: RiskForm, name: str) -> float:
    """Return how many units a step of a line has: 1, or a power of ten where that is far too little or too much."""
    low, high = form.ranges.get(name, (0.0, 0.0))
    span = high - low
    if 1 <= span <= 1000 or not span:
        return 1.0
    return float(10.0 ** math.floor(math.log10(span / (2 if span < 1 else 10))))


def level_effects(form: RiskForm, typical: Reference, k: int, name: str) -> Floats:
    """Return what each level of a term of part k does to the risk of the typical applicant; NaN for a line."""
    return _risk_changes(form, typical, k, name, level_scores(additive_part(form, k), name))


def term_of(part: Part, name: str) -> Shape | PairTable:
    """Return the shape or the pair of this name."""
    return part.shapes[name] if name in part.shapes else next(pair for pair in part.pairs if pair.name == name)


def level_scores(part: Part, name: str) -> Floats:
    """Return the score of each level of a term, or of a pair's combinations of levels, row by row."""
    term = term_of(part, name)
    scores = np.ravel(np.array(term.scores))
    if isinstance(term, Line | Curve):
        scores[0] = np.nan  # the line itself is no one number
    return scores


def _labels(term: Shape | PairTable) -> tuple[str, ...]:
    if not isinstance(term, PairTable):
        return term.levels.labels
    first, second = term.levels
    return tuple(f"{u} × {v}" for u in first.labels for v in second.labels)


def _unit(form: RiskForm, part: Any) -> str:
    if isinstance(part.link, Linear) and part.link.slope == 1.0 and isinstance(form.pool, Alone):
        return "probability"
    return "log odds" if isinstance(part.link, Logistic) else "score"


def shape_table(
    form: RiskForm, typical: Reference | None, k: int, name: str, span: tuple[float, float] | None = None
) -> ShapeTable:
    """Return the table of a term of part k; without a typical applicant it has no effects, without a span no curve."""
    part, feature = additive_part(form, k), form.schema.features.get(name)
    term = term_of(part, name)
    rows, bad, labels = np.ravel(term.weights), np.ravel(term.positives), _labels(term)
    score, effect = level_scores(part, name), None if typical is None else level_effects(form, typical, k, name)
    if isinstance(term, Line) and feature is not None:
        step = line_step(form, name)
        labels = (per_units(feature, step), *labels[1:])
        score[0] = term.slope * step
        if typical is not None and effect is not None:
            point = typical.points[k]
            effect[0] = _risk_changes(form, typical, k, name, np.array([point.terms[name] + score[0]]))[0]
    return ShapeTable(
        feature=name,
        part=part.name,
        labels=labels,
        n_ordered=len(labels) if isinstance(term, PairTable) else term.levels.n_ordered,
        ordered=feature is not None and (feature.kind == "continuous" or feature.sign != 0),
        rows=rows,
        bad=bad,
        bad_rate=_bad_rates(rows, bad),
        score=score,
        effect=effect,
        unit=_unit(form, part),
        pair=term if isinstance(term, PairTable) else None,
        curve=curve_of(form, typical, k, name, span),
    )


def _bad_rates(rows: Floats, bad: Floats) -> Floats:
    """Return the share of bad rows per level, NaN where it is not known; counts of a changed file may not fit."""
    with np.errstate(over="ignore"):
        rates = np.minimum(bad / np.where(rows > 0, rows, 1.0), 1.0)
    return np.where((rows > 0) & bad.any(), rates, np.nan)


def _from_counts(form: RiskForm, typical: Reference | None, tables: tuple[ShapeTable, ...]) -> list[Importance]:
    importance = []
    for t in tables:
        size, ends = _sizes(form, typical, t)
        seen = t.rows > 0
        mean = span = np.nan
        if seen.any() and not np.isnan(size[seen]).any():
            mean = float(t.rows[seen] @ size[seen] / t.rows[seen].sum())
            span = float(np.ptp(ends[np.append(seen, np.ones(len(ends) - len(seen), np.bool_))]))
        importance.append(Importance(t.part, t.feature, mean, span, t.unit if t.effect is None else "probability"))
    return importance


def _sizes(form: RiskForm, typical: Reference | None, table: ShapeTable) -> tuple[Floats, Floats]:
    """Return the mean absolute effect of every level, and all effects; the first of a line is that of its center."""
    amount = table.score if table.effect is None else table.effect
    k = next(k for k, part in enumerate(form.parts) if part.name == table.part)
    line = additive_part(form, k).shapes.get(table.feature)
    if not isinstance(line, Line):
        return np.abs(amount), amount
    size, ends = np.abs(amount), amount.copy()
    if typical is None or not line.deviation:
        size[0] = ends[0] = np.nan
        return size, ends
    sides = np.array([-line.deviation, line.deviation, 0.0]) * line.slope
    *apart, ends[0] = _risk_changes(form, typical, k, table.feature, sides)
    size[0] = np.abs(apart).mean()
    return size, ends if table.curve is None else np.append(ends, table.curve[1])


def _from_rows(form: RiskForm, typical: Reference, X: Any) -> list[Importance]:
    explained = explain(form, X, reference=typical)
    columns = zip(explained.subscales, explained.features, explained.contributions.T, strict=True)
    return [Importance(s, f, float(np.abs(c).mean()), float(np.ptp(c)), explained.unit) for s, f, c in columns]
