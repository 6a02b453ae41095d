r"""From a form to a scorecard: the levels with rounded points that add up.

If scores are log odds (one part behind a sigmoid, or behind bands that follow it), `points` stand for `odds` of good to
bad, and every `pdo` points double the odds. With the factor :math:`F = \text{pdo} / \ln 2`, the score
:math:`s = c + \sum_u f_u` of the bad outcome has the points

.. math:: \text{points} - F \ln \text{odds} - F s,

of which each of the n features gets its own :math:`-F f_u` and one n-th of the rest. If every link is a line, points
are percentage points of the probability instead; each part has a base and is clipped where its line is. All points are
rounded. The effect of rounding is bounded, and directions are checked on the rounded tables.

A feature that enters as a line has points per unit, counted from the value 0; its points at 0 are in the base. They
have enough digits that rounding moves the points of no training value by more than in a rounded table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.checks import NOTHING, check_parameters, number, whole
from plainrisk.errors import DataError
from plainrisk.explain.certify import Check, monotone_checks
from plainrisk.explain.elimination import score_limits
from plainrisk.explain.overview import ShapeTable, line_step, shape_table
from plainrisk.explain.reference import pool_weights
from plainrisk.explain.scorecard import CardPart, CardRow, Scorecard, turn_of
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Curve,
    Layer,
    Levels,
    Line,
    Linear,
    Logistic,
    PairTable,
    Part,
    RiskForm,
    Table,
)

__all__ = ["scorecard"]

POINTS = {
    "points": number(),
    "odds": number(above=0),
    "pdo": number(above=0),
    "decimals": NOTHING | whole(0, 6),
}
FOLLOWS = 0.3  # bands of log odds differ less from the sigmoid, even where outcomes moved them
USUAL = {"points": 600.0, "odds": 50.0, "pdo": 20.0}


@dataclass(frozen=True)
class _Scale:
    """How the scores of a part become points: base + sum over terms of (share + rate * score), from low to high."""

    rate: float
    base: float
    share: float = 0.0
    low: float = -math.inf
    high: float = math.inf


def scorecard(
    form: RiskForm,
    *,
    points: float = USUAL["points"],
    odds: float = USUAL["odds"],
    pdo: float = USUAL["pdo"],
    decimals: int | None = None,
) -> Scorecard:
    """Return the scorecard of a form of tables and lines; see `RiskModel.scorecard`."""
    given = {"points": points, "odds": odds, "pdo": pdo, "decimals": decimals}
    check_parameters("scorecard", given, POINTS)
    parts = _tables(form)
    in_log_odds = isinstance(form.pool, Alone) and not isinstance(parts[0].link, Linear)
    form, parts = _from_zero(form, parts)
    if not in_log_odds and (points, odds, pdo) != tuple(USUAL.values()):
        raise DataError(
            "scorecard: points, odds and pdo are for log odds. This model is a line in probability, whose points are "
            "percentage points. Leave them out."
        )
    gap = _band_gap(form, parts[0]) if in_log_odds else 0.0
    if gap > FOLLOWS:
        raise DataError(
            f"scorecard: the bands of this model differ from the sigmoid by up to {gap:.0%}, so its scores are no log "
            "odds. Make the card of the model before at_base_rate."
        )
    left_out = _constant(form, parts)
    parts = [_without(part, left_out) for part in parts]
    sign = form.schema.worse
    scales = [_log_odds(parts[0], points, odds, pdo, sign)] if in_log_odds else _probability(form, parts)
    digits = decimals if decimals is not None else 0 if in_log_odds else 1
    unit: Literal["log odds", "probability"] = "log odds" if in_log_odds else "probability"
    turn = turn_of(unit, form.schema.adverse)
    rounded, limits, errors = _rounded(form, parts, scales, digits, turn)
    base, low, high = (0.0, -math.inf, math.inf) if in_log_odds else _last(form, digits)
    error = math.fsum((*errors, abs(base - _last(form, None)[0]) if not in_log_odds else 0.0))
    checks = _checked(rounded)
    return Scorecard(
        rows=tuple(_rows(form, parts, rounded, turn / 10.0**digits, sign)),
        parts=limits,
        base=base,
        low=low,
        high=high,
        unit=unit,
        points=float(points),
        odds=float(odds),
        pdo=float(pdo),
        decimals=digits,
        adverse=form.schema.adverse,
        rounding=error,
        # The sigmoid moves most around 1/2.
        rounding_risk=math.tanh(error * math.log(2) / pdo / 4) if in_log_odds else error / 100,
        band_gap=gap,
        checks=checks,
        left_out=tuple(left_out),
        form=rounded,
    )


def _tables(form: RiskForm) -> list[Part]:
    """Return the parts, or raise an error that says why they have no card and which model has one."""
    parts = [part for part in form.parts if isinstance(part, Part)]
    if len(parts) < len(form.parts):
        raise DataError("scorecard: trees have no points that add up by feature. Fit 'SmoothARM1' for a card.")
    for part in parts:
        for name, shape in part.shapes.items():
            if isinstance(shape, Curve):
                raise DataError(
                    f"scorecard: feature {name!r} enters as a curve, which has no levels to give points to. "
                    "Fit a model with bins, such as 'ARM1' or 'SmoothARM1'."
                )
    if not isinstance(form.pool, Alone):
        if not all(isinstance(link, Linear) for link in form.links):
            raise DataError(
                "scorecard: the parts of this model are combined after curved links or bands, so their points do "
                "not add up. Fit one of lines, such as 'MixLinARM1' or 'LinARM2', or one part, such as "
                "'SmoothARM1'."
            )
        if min(form.pool.weights) < 0:
            raise DataError("scorecard: a subscale has a negative weight, so its points would count the wrong way.")
    return parts


def _from_zero(form: RiskForm, parts: Sequence[Part]) -> tuple[RiskForm, list[Part]]:
    """Return the same form with every line moved to 0 at the value 0, and the intercepts moved by as much."""
    moved = []
    for part in parts:
        lines = {name: s for name, s in part.shapes.items() if isinstance(s, Line)}
        zeros = {name: -line.slope * line.center for name, line in lines.items()}
        shapes: dict[str, Any] = dict(part.shapes)
        for name, line in lines.items():
            outside = tuple(score - zeros[name] for score in line.scores[1:])
            shapes[name] = msgspec.structs.replace(line, center=0.0, scores=(0.0, *outside))
        intercept = math.fsum((part.intercept, *zeros.values()))
        moved.append(msgspec.structs.replace(part, intercept=intercept, shapes=shapes))
    return msgspec.structs.replace(form, parts=tuple(moved)), moved


def _constant(form: RiskForm, parts: Sequence[Part]) -> list[str]:
    """Return the terms whose levels all score 0, as constant shapes do since shapes are centered."""
    weights = pool_weights(form)
    moves = {
        name
        for part, weight in zip(parts, weights, strict=True)
        for name, table in _terms(part)
        if weight and np.any(_array(table))
    }
    return [name for name in dict.fromkeys(n for part in parts for n in part.term_names) if name not in moves]


def _terms(part: Part) -> Iterator[tuple[str, Table | Line | PairTable]]:
    for name, shape in part.shapes.items():
        assert not isinstance(shape, Curve)
        yield name, shape
    yield from ((pair.name, pair) for pair in part.pairs)


def _without(part: Part, names: Sequence[str]) -> Part:
    shapes = {name: shape for name, shape in part.shapes.items() if name not in names}
    pairs = tuple(pair for pair in part.pairs if pair.name not in names)
    return msgspec.structs.replace(part, shapes=shapes, pairs=pairs)


def _log_odds(part: Part, points: float, odds: float, pdo: float, sign: int) -> _Scale:
    factor = pdo / math.log(2)
    rest = points - factor * (math.log(odds) + sign * part.intercept)
    n = sum(isinstance(shape, Table) for shape in part.shapes.values())
    return _Scale(-sign * factor, 0.0 if n else rest, rest / n if n else 0.0)


def _probability(form: RiskForm, parts: Sequence[Part]) -> list[_Scale]:
    last = form.pool.link if isinstance(form.pool, Layer) else Linear()
    assert isinstance(last, Linear)
    scales = []
    for part, weight in zip(parts, pool_weights(form), strict=True):
        link = part.link
        assert isinstance(link, Linear)
        scale = 100 * last.slope * weight
        base = scale * (link.offset + link.slope * part.intercept)
        scales.append(_Scale(scale * link.slope, base, low=scale * link.low, high=scale * link.high))
    return scales


def _last(form: RiskForm, digits: int | None) -> tuple[float, float, float]:
    """Return what is added to the points of the parts, and the limits to which the sum is clipped."""
    if not isinstance(form.pool, Layer):
        low, high = (0.0, 1.0) if form.last_link is None else form.last_link.range
        return 0.0, 100 * low, 100 * high
    link = form.pool.link
    assert isinstance(link, Linear)
    base = 100 * (link.offset + link.slope * form.pool.intercept)
    return base if digits is None else round(base, digits), 100 * link.low, 100 * link.high


def _rounded(
    form: RiskForm, parts: Sequence[Part], scales: Sequence[_Scale], digits: int, turn: int
) -> tuple[RiskForm, tuple[CardPart, ...], list[float]]:
    """Return a form whose scores are rounded points, its parts on the card, and the largest error in each."""
    unit, swap = 10.0**digits, msgspec.structs.replace
    whole_parts, off_parts, limits, once_more = [], [], [], 0.0
    for part, scale in zip(parts, scales, strict=True):
        exact = {
            n: unit * ((scale.share if isinstance(t, Table) else 0.0) + scale.rate * _array(t)) for n, t in _terms(part)
        }
        points = {name: values.round() + 0.0 for name, values in exact.items()}
        for name, (reach, slope) in _reaches(form, part, exact).items():
            points[name][0] = round(slope, max(0, math.ceil(math.log10(reach))))
        base = round(unit * scale.base)
        ends = [end if math.isinf(end) else round(unit * end) / unit for end in (scale.low, scale.high)]
        limits.append(CardPart(part.name, base / unit, *ends))
        whole_parts.append(_with_scores(part, turn * base, {n: turn * values for n, values in points.items()}))
        off = {name: points[name] - exact[name] for name in points}
        reaches = _reaches(form, part, exact)
        for name, (reach, _) in reaches.items():
            off[name][0] *= reach
        # Fractions of points are rounded once more in the sum.
        off_parts.append(_as_tables(_with_scores(part, base - unit * scale.base, off), off))
        once_more = max(once_more, 0.5 / unit if reaches else 0.0)
    errors = [once_more]
    off_form = swap(form, parts=tuple(off_parts))
    for off_part, scale, ends_of in zip(off_parts, scales, limits, strict=True):
        cut = [abs(a - b) for a, b in ((ends_of.low, scale.low), (ends_of.high, scale.high)) if math.isfinite(b)]
        errors.append(max(*map(abs, score_limits(off_form, off_part)), *(unit * c for c in cut)) / unit)
    return swap(form, parts=tuple(whole_parts)), tuple(limits), errors


def _array(table: Table | Line | PairTable) -> Floats:
    """Return the scores; a line has its slope in the place of its first level."""
    if isinstance(table, Line):
        return np.array([table.slope, *table.scores[1:]])
    return np.asarray(table.scores, dtype=np.float64)


def _reaches(form: RiskForm, part: Part, exact: dict[str, Floats]) -> dict[str, tuple[float, float]]:
    """Return for each line how far its training values reach from 0, and its exact slope in points."""
    lines = {name: shape for name, shape in part.shapes.items() if isinstance(shape, Line)}
    ends = {name: form.ranges.get(name, (0.0, 0.0)) for name in lines}
    return {name: (max(abs(low), abs(high), 1.0), float(exact[name][0])) for name, (low, high) in ends.items()}


def _as_tables(part: Part, scores: dict[str, Floats]) -> Part:
    """Return the part with its lines as tables of these scores."""
    shapes: dict[str, Any] = {
        name: s
        if isinstance(s, Table)
        else Table(levels=s.levels, scores=tuple(scores[name].tolist()), weights=s.weights, positives=s.positives)
        for name, s in part.shapes.items()
    }
    return msgspec.structs.replace(part, shapes=shapes)


def _with_scores(part: Part, intercept: float, scores: dict[str, Floats]) -> Part:
    """Return the part with other scores; of a line the first is its slope."""

    def given(name: str) -> Any:
        values = scores[name].tolist()
        return tuple(map(tuple, values)) if scores[name].ndim > 1 else tuple(values)

    swap = msgspec.structs.replace
    shapes: dict[str, Any] = {
        name: swap(shape, slope=float(scores[name][0]), scores=(0.0, *given(name)[1:]))
        if isinstance(shape, Line)
        else swap(shape, scores=given(name))
        for name, shape in part.shapes.items()
    }
    pairs = tuple(swap(pair, scores=given(pair.name)) for pair in part.pairs)
    return swap(part, intercept=float(intercept), shapes=shapes, pairs=pairs)


def _checked(rounded: RiskForm) -> tuple[Check, ...]:
    checks = tuple(monotone_checks(rounded))
    for check in checks:
        if not check.holds:
            raise DataError(
                f"scorecard: after rounding the model is not {check.name}: {check.detail}. Round less (decimals=1, or "
                "more), and see whether model.certify() holds."
            )
    return checks


def _rows(form: RiskForm, parts: Sequence[Part], rounded: RiskForm, size: float, sign: int) -> Iterator[CardRow]:
    """Yield the rows; `size` is the number of points of one unit of the rounded scores."""
    exact = msgspec.structs.replace(form, parts=tuple(parts))
    for k, part in enumerate(rounded.parts):
        assert isinstance(part, Part)
        for name, table in _terms(part):
            points = size * np.ravel(_array(table)) + 0.0
            table_of_shape = shape_table(exact, None, k, name)
            if isinstance(table, Line):
                points[0] = float(f"{points[0] * line_step(form, name):.12g}")
            yield from _level_rows(table_of_shape, _conditions(table, table_of_shape.labels), points, sign)


def _conditions(table: Table | Line | PairTable, labels: Sequence[str]) -> list[str]:
    """Return the levels in words; for a pair, those of both features."""
    if isinstance(table, Line):
        return [labels[0], *_labels(table.levels)[1:]]
    if isinstance(table, Table):
        return _labels(table.levels)
    (u, v), (first, second) = table.features, map(_labels, table.levels)
    return [f"{u}: {a}, {v}: {b}" for a in first for b in second]


def _labels(levels: Levels) -> list[str]:
    # A spreadsheet would read "= -9" as a formula.
    return [label.removeprefix("= ") if isinstance(levels, Bins) else label for label in levels.labels]


def _level_rows(levels: ShapeTable, labels: list[str], points: Floats, sign: int) -> Iterator[CardRow]:
    bad = levels.bad if sign > 0 else levels.rows - levels.bad
    good = levels.rows - bad
    for i, label in enumerate(labels):
        share_good, share_bad = (x[i] / x.sum() if x[i] > 0 else 0.0 for x in (good, bad))
        rows = float(levels.rows[i])
        compared = share_good and share_bad and rows < levels.rows.sum()
        woe = math.log(share_good / share_bad) if compared else None
        yield CardRow(
            part=levels.part,
            feature=levels.feature,
            level=label,
            rows=rows,
            bad=float(bad[i]) if levels.bad.any() else None,
            bad_rate=float(bad[i]) / rows if rows > 0 and levels.bad.any() else None,
            woe=woe,
            iv=None if woe is None else float((share_good - share_bad) * woe),
            score=float(levels.score[i]),
            points=float(points[i]),
        )


def _band_gap(form: RiskForm, part: Part) -> float:
    """Return the largest difference between bands and sigmoid over all scores that the part can give.

    On a straight piece it lies at an end, where the line is clipped, or where the sigmoid has the slope of the piece.
    """
    link = part.link
    if not isinstance(link, Bands):
        return 0.0
    low, high = score_limits(msgspec.structs.replace(form, parts=(part,)), part)
    candidates = [low, high, *link.knots]
    for k, (rate, knot, value) in enumerate(zip(link.rates, link.knots, link.values, strict=False)):
        if k == 0:
            candidates.append(knot - value / rate)  # where the first piece reaches 0
        if k == len(link.rates) - 1:
            candidates.append(knot + (1 - value) / rate)
        if rate < 0.25:
            p = (1 + math.sqrt(1 - 4 * rate)) / 2
            candidates += [math.log(p / (1 - p)), -math.log(p / (1 - p))] if p < 1 else []
    at = np.clip(np.array(candidates), low, high)
    return float(np.abs(link.value(at) - Logistic().value(at)).max())
