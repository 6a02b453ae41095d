"""From log odds to probability: the links of a fitted form replaced by lines, for a portfolio of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.checks import words
from plainrisk.errors import ExtractionError
from plainrisk.explain.elimination import score_limits
from plainrisk.form import ALPHA_STAR, Bands, FitRecord, Layer, Linear, Link, Logistic, Part, RiskForm, Table, TreePart
from plainrisk.form.links import best_bands
from plainrisk.models.bands import FEWEST, Pieces, outcome_bands, portfolio_bands
from plainrisk.models.base import PartScores, pooled_score
from plainrisk.models.training import TrainingRows

__all__ = ["KNOTS", "Knots", "Lines", "Portfolio", "degrees_of", "straightened", "training_portfolio"]

Knots = Literal["portfolio", "attainable", "universal"]
KNOTS = words("portfolio", "attainable", "universal")

# Distinct scores of a portfolio in batches that are kept apart: 16 MB.
_MOST_SCORES = 1 << 20

# Goes through the portfolio, batch by batch: the score of every row in every part, what every row weighs, and how much
# of that has the positive outcome, if it is known.
Portfolio = Callable[[], Iterable[tuple[Floats, Floats | None, Floats | None]]]


@dataclass(frozen=True)
class Lines:
    """What replaces the sigmoid; the parameters of `Linearised` of the same names."""

    pieces: Pieces = 1
    knots: Knots = "portfolio"
    alpha: float = ALPHA_STAR
    epsilon: float = 0.0


def training_portfolio(training: TrainingRows, scores: PartScores) -> Portfolio:
    """Return the training rows as a portfolio."""

    def portfolio() -> Iterator[tuple[Floats, Floats | None, Floats | None]]:
        for batch, found in zip(training.batches((), "scoring the portfolio"), scores(), strict=True):
            positive = np.asarray(batch.target, dtype=np.float64)
            yield found, batch.weight, positive if batch.weight is None else batch.weight * positive

    return portfolio


def straightened(
    form: RiskForm, portfolio: Portfolio | None, lines: Lines, degrees: Sequence[float] | None = None
) -> RiskForm:
    """Return the form with every logistic link replaced by a line; both layers of a two-layer model.

    Parameters
    ----------
    degrees : of freedom, of every part
    """
    if not any(isinstance(link, Logistic) for link in form.links):
        raise ExtractionError("The model has no logistic link to linearise: it speaks in probability already.")

    # Without outcomes nothing asks for more pieces.
    pieces, knots = lines.pieces, lines.knots
    count = FEWEST if pieces == "auto" else pieces

    def line(link: Link, scores: _Scores | None, limits: tuple[float, float], free: float = 0.0) -> Link:
        if not isinstance(link, Logistic):
            return link
        if pieces == 1:
            return Linear.from_alpha(lines.alpha, lines.epsilon)
        if scores is None:
            best = best_bands(count)
            return Bands(best.knots, best.values)
        ends = limits if knots == "attainable" else (scores.low, scores.high)
        if scores.positive is None:
            return portfolio_bands(scores.values, count, scores.weight, ends)
        return outcome_bands(scores.values, pieces, scores.positive, scores.weight, ends, degrees=free)

    swap = msgspec.structs.replace
    rows = None if pieces == 1 or knots == "universal" else portfolio
    seen: Sequence[_Scores | None] = [None] * len(form.parts) if rows is None else _gathered(rows())
    each = zip(form.parts, seen, degrees or [0.0] * len(form.parts), strict=True)
    links = [line(part.link, s, _limits(form, part, s), free) for part, s, free in each]
    parts = tuple(swap(part, link=link) for part, link in zip(form.parts, links, strict=True))
    straight, pool = swap(form, parts=parts), form.pool
    if not isinstance(pool, Layer):
        return straight
    pooled = None
    if rows is not None:
        # The second layer's scores are those of the parts as they are now.
        pooled = _gathered((pooled_score(straight, found)[:, None], w, positive) for found, w, positive in rows())[0]
    limits = (pool.intercept, pool.intercept + math.fsum(pool.weights))
    return swap(straight, pool=swap(pool, link=line(pool.link, pooled, limits)))


@dataclass(frozen=True)
class _Scores:
    """Scores of rows: the weight at each (1 if None), the part of it with the positive outcome, and the extremes."""

    values: Floats
    weight: Floats | None
    positive: Floats | None
    low: float
    high: float

    def join(self, other: _Scores) -> _Scores:
        """Return the scores of both, equal ones together; rounded if there are too many to be kept apart."""
        both, known = (self, other), self.positive is not None
        values = np.concatenate([s.values for s in both])
        weight = np.concatenate([np.ones(len(s.values)) if s.weight is None else s.weight for s in both])
        positive = np.concatenate([s.positive for s in both if s.positive is not None]) if known else 0.0 * weight
        digits = 15
        while True:
            values, at = np.unique(values, return_inverse=True)
            weight, positive = (np.bincount(at, w).astype(np.float64) for w in (weight, positive))
            if len(values) <= _MOST_SCORES:
                low, high = min(self.low, other.low), max(self.high, other.high)
                return _Scores(values, weight, positive if known else None, low, high)
            digits -= 1
            values = values.round(digits)


def _gathered(batches: Iterable[tuple[Floats, Floats | None, Floats | None]]) -> list[_Scores]:
    """Return the scores of all rows, one entry per column of the batches."""
    found: list[_Scores] = []
    for scores, weight, positive in batches:
        # A row without weight counts as if it were not there.
        seen = scores if weight is None or not weight.any() else scores[weight > 0]
        ends = zip(seen.min(axis=0).tolist(), seen.max(axis=0).tolist(), strict=True)
        batch = [
            _Scores(np.ascontiguousarray(s), weight, positive, *pair) for s, pair in zip(scores.T, ends, strict=True)
        ]
        found = [a.join(b) for a, b in zip(found, batch, strict=True)] if found else batch
    return found


def degrees_of(record: FitRecord | None, solution: Any, form: RiskForm) -> list[float]:
    """Return the degrees of freedom of every part of a fitted model; 0 where the fit does not tell them."""
    if record is not None and record.evidence:
        own = [[g.edf for g in record.evidence if set(g.features) <= set(part.features)] for part in form.parts]
        return [1.0 + math.fsum(edf) for edf in own]
    if solution is None or len(form.parts) > 1:
        return [0.0] * len(form.parts)
    return [1.0 + np.count_nonzero(solution.coefficients)]


def _limits(form: RiskForm, part: Part | TreePart, scores: _Scores | None) -> tuple[float, float]:
    """The least and the greatest score a part can give; those of the portfolio where lines have no ends."""
    if scores is None:
        return -math.inf, math.inf
    if isinstance(part, TreePart):
        low = part.intercept + math.fsum(min(tree.leaves_below(0)) for tree in part.trees)
        high = part.intercept + math.fsum(max(tree.leaves_below(0)) for tree in part.trees)
    elif all(isinstance(shape, Table) for shape in part.shapes.values()):
        low, high = score_limits(form, part)
    else:
        return scores.low, scores.high
    return min(low, scores.low), max(high, scores.high)
