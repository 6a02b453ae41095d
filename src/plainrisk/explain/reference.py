"""What an applicant is compared with: the score that every feature would have had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError
from plainrisk.explain.atoms import Atoms, atoms_of
from plainrisk.form import Alone, Line, Part, RiskForm, Table, TreePart, pool_score

__all__ = ["Point", "Reference", "knows_typical", "make_reference", "pool_weights"]


@dataclass(frozen=True)
class Point:
    """The reference as one part of the form sees it.

    Attributes
    ----------
    terms : what each feature adds to the part's score; empty for a part of trees
    score : the part's score
    rows : the rows a part of trees is compared with, None where there are none
    """

    terms: dict[str, float]
    score: float
    rows: Frame | None = None


@dataclass(frozen=True)
class Reference:
    """A point of comparison: its name ("typical", "best" or "row"), and a point for every part."""

    name: str
    points: tuple[Point, ...]

    def score(self, form: RiskForm) -> float:
        """Return the score before the last link."""
        return float(self._scores(form, 0, np.array([self.points[0].score]))[0])

    def risk(self, form: RiskForm) -> float:
        """Return the probability."""
        return float(self.risks(form, 0, np.array([self.points[0].score]))[0])

    def risks(self, form: RiskForm, k: int, scores: Floats) -> Floats:
        """Return the probabilities if part k had these scores, and all other parts their own."""
        found = self._scores(form, k, scores)
        return found if form.last_link is None else form.last_link.value(found)

    def _scores(self, form: RiskForm, k: int, scores: Floats) -> Floats:
        if isinstance(form.pool, Alone):
            return scores
        own = [part.link.value(np.array([p.score])) for part, p in zip(form.parts, self.points, strict=True)]
        risks = np.tile(np.concatenate(own), (len(scores), 1))
        risks[:, k] = form.parts[k].link.value(scores)
        return pool_score(form.pool, risks)


def pool_weights(form: RiskForm) -> tuple[float, ...]:
    """Return the weight of every part; 1 for a part alone."""
    return (1.0,) if isinstance(form.pool, Alone) else form.pool.weights


def make_reference(
    form: RiskForm, reference: Any, portfolio: Any = None, sign: int = 1, min_rows: float = 0.0
) -> Reference:
    """Return the reference of this name, or the one that is an applicant's row.

    Parameters
    ----------
    reference : {"typical", "best"} or a row
        "typical": every shape has its mean over the portfolio, or over the training rows. "best": every feature has
        the level, of those training saw, that is best for the applicant.
    portfolio : rows or None
        For trees, for shapes whose training mean the form does not know, and for the best of a line or a curve.
    sign : +1 if a high probability is bad for the applicant, -1 if it is good
    min_rows : levels with fewer training rows are not taken for the best
    """
    rows = None if portfolio is None else form.align(portfolio)
    if rows is not None and rows.n_rows == 0:
        raise DataError("The portfolio has no rows to compare with. Pass some, or leave it out.")
    if not isinstance(reference, str):
        return _of_row(form, form.align(reference))
    if reference == "typical":
        return Reference("typical", tuple(_typical(form, part, rows) for part in form.parts))
    return _best(form, rows, sign, min_rows)


def knows_typical(form: RiskForm) -> bool:
    """Whether the form itself says who is typical: it has no trees, and training counts of every shape."""
    return all(isinstance(p, Part) and all(sum(s.weights) > 0 for s in p.shapes.values()) for p in form.parts)


def _point(part: Part | TreePart, terms: dict[str, float], rows: Frame | None = None) -> Point:
    """Add up the terms in the order in which the form adds them."""
    score = part.intercept
    for value in terms.values():
        score += value
    return Point(terms, score, rows)


def _of_row(form: RiskForm, row: Frame) -> Reference:
    if row.n_rows != 1:
        raise DataError(
            f"The reference must be one row, not {row.n_rows:,}. For the mean of a portfolio use "
            "reference='typical' and portfolio=rows."
        )
    # The mean over one row is the row.
    return Reference("row", tuple(_typical(form, part, row) for part in form.parts))


def _typical(form: RiskForm, part: Part | TreePart, rows: Frame | None) -> Point:
    if isinstance(part, TreePart):
        if rows is None:
            raise _needs_portfolio(f"part {part.name!r} is a sum of trees")
        return Point({}, float(part.score(rows, form.schema).mean()), rows)
    if rows is None:
        return _point(part, {name: _training_mean(part, name) for name in part.features})
    return _point(part, {name: float(v.mean()) for name, v in part.terms(rows, form.schema).items()}, rows)


def _training_mean(part: Part, name: str) -> float:
    """Return the mean of a shape over the training rows.

    Shapes are centred when they are made. So a line with counts is 0 on average over its measured values, which is
    the score of its first level, and a curve with counts is 0 on average over all rows.
    """
    shape = part.shapes[name]
    weights = np.asarray(shape.weights)
    if weights.sum() <= 0:
        raise _needs_portfolio(f"feature {name!r} has no training counts")
    if isinstance(shape, Table | Line):
        return float(weights @ np.asarray(shape.scores) / weights.sum())
    return 0.0


def _best(form: RiskForm, rows: Frame | None, sign: int, min_rows: float) -> Reference:
    best = {name: _best_terms(form, atoms, rows, sign) for name, atoms in atoms_of(form, min_rows).items()}
    points = []
    for k, part in enumerate(form.parts):
        if isinstance(part, Part):
            points.append(_point(part, {name: best[name][k] for name in part.features}))
            continue
        if rows is None:
            raise _needs_portfolio(f"part {part.name!r} is a sum of trees")
        score = part.score(rows, form.schema)
        row = int(np.argmin(sign * score))
        points.append(Point({}, float(score[row]), rows.take(row, row + 1)))
    return Reference("best", tuple(points))


def _best_terms(form: RiskForm, atoms: Atoms, rows: Frame | None, sign: int) -> dict[int, float]:
    """Return the feature's term in each additive part, at the one level that is best for the whole."""
    name, weights = atoms.feature, pool_weights(form)
    users = {k: p for k, p in enumerate(form.parts) if isinstance(p, Part) and name in p.shapes}
    if atoms.straight:
        if rows is None:
            raise _needs_portfolio(f"feature {name!r} enters as a line or a curve, which has no end")
        terms = {k: p.shapes[name].values(rows, name) for k, p in users.items()}
        allowed = np.ones(rows.n_rows, dtype=bool)
    else:
        terms = {k: atoms.scores(p.shapes[name]) for k, p in users.items()}
        allowed = atoms.seen if atoms.seen.any() else np.ones(len(atoms.seen), dtype=bool)
    # If every part that reads the feature has weight 0, the level does not matter; then all parts count alike.
    counts = any(weights[k] for k in users)
    total = sum((weights[k] if counts else 1.0) * term for k, term in terms.items())
    at = int(np.argmin(np.where(allowed, sign * np.asarray(total), np.inf)))
    return {k: float(term[at]) for k, term in terms.items()}


def _needs_portfolio(why: str) -> DataError:
    return DataError(f"This reference needs rows to look at, since {why}. Pass portfolio=rows.")
