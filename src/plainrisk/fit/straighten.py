"""From log odds to probability: the links of a fitted form replaced by lines, for a portfolio of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from plainrisk.checks import number, parameter, whole, words
from plainrisk.errors import ExtractionError
from plainrisk.fit.bands import FEWEST, Pieces, ScoreSums, fitted_bands
from plainrisk.fit.scored import PartScores, Scored, pooled_score
from plainrisk.form import (
    ALPHA_STAR,
    Bands,
    FitRecord,
    Layer,
    Linear,
    Link,
    Logistic,
    Mixture,
    RiskForm,
)
from plainrisk.form.links import best_bands

__all__ = [
    "Lines",
    "degrees_of",
    "straightened",
]


@dataclass(kw_only=True, eq=False, repr=False)
class Lines:
    """The parameters of the line that replaces the sigmoid; a `Linearised` inherits them."""

    alpha: float = parameter(ALPHA_STAR, number(above=0))
    epsilon: float = parameter(0.0, number(at_least=0, below=0.5))
    pieces: Pieces = parameter(1, whole(1, 30) | words("auto"))


def straightened(
    form: RiskForm,
    portfolio: PartScores | None,
    lines: Lines,
    degrees: Sequence[float] | None = None,
    n_rows: float | None = None,
) -> RiskForm:
    """Return the form with every logistic link replaced by a line; both layers of a two-layer model.

    Parameters
    ----------
    portfolio : the rows that bands follow; without them, they are the best for the sigmoid
    degrees : of freedom, of every part
    n_rows : how many rows the weights of the portfolio stand for; by default as many as there are
    """
    if not any(isinstance(link, Logistic) for link in form.links):
        raise ExtractionError(
            "The model has no logistic link to linearize: its contributions are probabilities already."
        )
    if isinstance(form.pool, Mixture) and form.pool.link is not None:
        raise ExtractionError(
            "The mixture was calibrated to experts with curved links. Linearise the experts instead: "
            "SubscaleMixture(Linearised(...), calibrate=True)."
        )

    pieces = lines.pieces

    def line(link: Link, sums: ScoreSums | None, free: float = 0.0) -> Link:
        if not isinstance(link, Logistic):
            return link
        if pieces == 1:
            return Linear.from_alpha(lines.alpha, lines.epsilon)
        if sums is None:
            best = best_bands(FEWEST if pieces == "auto" else pieces)
            return Bands(best.knots, best.values)
        return fitted_bands(sums, pieces, free, n_rows)

    swap = msgspec.structs.replace
    rows = None if pieces == 1 else portfolio
    seen: Sequence[ScoreSums | None] = [None] * len(form.parts) if rows is None else rows.sum(_PartSums())[0]
    links = [
        line(part.link, sums, free)
        for part, sums, free in zip(form.parts, seen, degrees or [0.0] * len(form.parts), strict=True)
    ]
    parts = tuple(swap(part, link=link) for part, link in zip(form.parts, links, strict=True))
    straight, pool = swap(form, parts=parts), form.pool
    if not isinstance(pool, Layer):
        return straight
    pooled = None
    if rows is not None:
        # The second layer's scores are those of the current parts.
        (pooled,) = rows.sum(_PartSums(straight))[0]
    return swap(straight, pool=swap(pool, link=line(pool.link, pooled)))


@dataclass(frozen=True)
class _PartSums:
    """Sums by score: of every part, or of the second layer of a form."""

    pooled: RiskForm | None = None

    def __call__(self, rows: Scored) -> tuple[list[ScoreSums]]:
        scores = rows.scores if self.pooled is None else pooled_score(self.pooled, rows.scores)[:, None]
        return ([ScoreSums.of(np.ascontiguousarray(column), rows.weight, rows.positive) for column in scores.T],)


def degrees_of(record: FitRecord | None, solution: Any, form: RiskForm) -> list[float]:
    """Return the degrees of freedom of every part of a fitted model; 0 where the fit does not determine them."""
    if record is not None and record.evidence:
        per_part = [[g.edf for g in record.evidence if set(g.features) <= set(part.features)] for part in form.parts]
        return [1.0 + math.fsum(edf) for edf in per_part]
    if solution is None or len(form.parts) > 1:
        return [0.0] * len(form.parts)
    return [1.0 + np.count_nonzero(solution.coefficients)]
