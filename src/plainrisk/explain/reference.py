"""What an applicant is compared with: the scores every feature would have had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.places import Places, places_of
from plainrisk.form import Alone, Part, RiskForm, Table, TreePart

__all__ = ["Adverse", "Reference", "adverse_sign", "make_reference", "pool_weights"]

Floats = npt.NDArray[np.float64]
Adverse = Literal["positive", "negative"]

NAMES = ("constant", "neutral", "mean", "best")


@dataclass(frozen=True)
class Reference:
    """A point of comparison; one entry per part of the form throughout.

    Attributes
    ----------
    name : "constant", "neutral", "mean", "best" or "row"
    terms : what each feature adds to the part's score; empty for a part of trees
    scores : the part's score
    rows : the rows a part of trees is compared with, None where there are none
    """

    name: str
    terms: tuple[dict[str, float], ...]
    scores: tuple[float, ...]
    rows: tuple[Frame | None, ...]


def adverse_sign(adverse: Adverse) -> int:
    """Return +1 where a higher probability hurts the applicant, -1 where a lower one does."""
    known = {"positive": 1, "negative": -1}
    if adverse not in known:
        raise DataError(f"adverse must be 'positive' or 'negative', not {adverse!r}.")
    return known[adverse]


def pool_weights(form: RiskForm) -> tuple[float, ...]:
    """Return the weight of every part; 1 for a part alone."""
    return (1.0,) if isinstance(form.pool, Alone) else form.pool.weights


def make_reference(
    form: RiskForm, reference: Any = "constant", portfolio: Any = None, sign: int = 1, min_rows: float = 0.0
) -> Reference:
    """Return the reference of this name, or the one that is an applicant's row.

    Parameters
    ----------
    reference : {"constant", "neutral", "mean", "best"}, or a row
        "constant" and "neutral": every shape is 0. "mean": the mean of every shape over the portfolio, or over the
        training rows. "best": the level of every feature, of those training saw, that is best for the applicant.
    portfolio : rows, optional
        For "mean", and for "best" where a feature enters as a line or through trees, which have no best level.
    sign : +1 if a high probability is bad for the applicant, -1 if it is good
    min_rows : levels with fewer training rows are not taken for the best
    """
    rows = None if portfolio is None else form.align(portfolio)
    if not isinstance(reference, str):
        return _of_row(form, form.align(reference))
    if reference in ("constant", "neutral"):
        terms = [dict.fromkeys(part.features, 0.0) if isinstance(part, Part) else {} for part in form.parts]
        return _reference(form, reference, terms, [part.intercept for part in form.parts], None)
    if reference == "mean":
        return _mean(form, rows)
    if reference == "best":
        return _best(form, rows, sign, min_rows)
    raise DataError(f"reference must be one of {', '.join(NAMES)} or a row.{did_you_mean(reference, NAMES)}")


def _reference(
    form: RiskForm,
    name: str,
    terms: list[dict[str, float]],
    tree_scores: list[float],
    rows: list[Frame | None] | None,
) -> Reference:
    scores = []
    for part, own, tree_score in zip(form.parts, terms, tree_scores, strict=True):
        score = part.intercept
        for value in own.values():
            score += value
        scores.append(score if isinstance(part, Part) else tree_score)
    return Reference(name, tuple(terms), tuple(scores), tuple(rows or [None] * len(terms)))


def _of_row(form: RiskForm, row: Frame) -> Reference:
    if row.n_rows != 1:
        raise DataError(
            f"The reference must be one row, not {row.n_rows:,}. For the mean of a portfolio use reference='mean' "
            "and portfolio=rows."
        )
    terms, scores = [], []
    for part in form.parts:
        own = part.terms(row, form.schema) if isinstance(part, Part) else {}
        terms.append({name: float(value[0]) for name, value in own.items()})
        scores.append(float(part.score(row, form.schema)[0]) if isinstance(part, TreePart) else 0.0)
    return _reference(form, "row", terms, scores, [row] * len(terms))


def _mean(form: RiskForm, rows: Frame | None) -> Reference:
    terms: list[dict[str, float]] = []
    scores: list[float] = []
    for part in form.parts:
        if isinstance(part, TreePart):
            if rows is None:
                raise _needs_portfolio(f"part {part.name!r} is a sum of trees")
            terms.append({})
            scores.append(float(part.score(rows, form.schema).mean()))
        elif rows is not None:
            terms.append({name: float(value.mean()) for name, value in part.terms(rows, form.schema).items()})
            scores.append(0.0)
        else:
            terms.append({name: _training_mean(part, name) for name in part.features})
            scores.append(0.0)
    return _reference(form, "mean", terms, scores, [rows] * len(terms))


def _training_mean(part: Part, name: str) -> float:
    shape = part.shapes[name]
    weights = np.asarray(shape.weights)
    if not isinstance(shape, Table) or weights.sum() <= 0:
        why = "has no training counts" if isinstance(shape, Table) else "enters as a line or a curve"
        raise _needs_portfolio(f"feature {name!r} {why}")
    return float(weights @ np.asarray(shape.scores) / weights.sum())


def _best(form: RiskForm, rows: Frame | None, sign: int, min_rows: float) -> Reference:
    weights = pool_weights(form)
    places = places_of(form, min_rows)
    best = {name: _best_terms(form, place, rows, sign, weights) for name, place in places.items()}
    terms: list[dict[str, float]] = []
    scores: list[float] = []
    where: list[Frame | None] = []
    for k, part in enumerate(form.parts):
        where.append(None)
        scores.append(0.0)
        terms.append({name: best[name][k] for name in part.features} if isinstance(part, Part) else {})
        if isinstance(part, TreePart):
            if rows is None:
                raise _needs_portfolio(f"part {part.name!r} is a sum of trees")
            score = part.score(rows, form.schema)
            row = int(np.argmin(sign * score))
            where[k] = rows.take(row, row + 1)
            scores[k] = float(score[row])
    return _reference(form, "best", terms, scores, where)


def _best_terms(
    form: RiskForm, places: Places, rows: Frame | None, sign: int, weights: tuple[float, ...]
) -> dict[int, float]:
    """Return the feature's term in each additive part, at the one level that is best for the whole."""
    name = places.feature
    users = {k: p for k, p in enumerate(form.parts) if isinstance(p, Part) and name in p.shapes}
    if places.straight:
        if rows is None:
            raise _needs_portfolio(f"feature {name!r} enters as a line or a curve, which has no end")
        terms = {k: p.shapes[name].values(rows, name) for k, p in users.items()}
        allowed = np.ones(rows.n_rows, dtype=bool)
    else:
        terms = {k: places.scores(p.shapes[name], name) for k, p in users.items()}
        allowed = places.seen if places.seen.any() else np.ones(len(places.seen), dtype=bool)
    # Where no part that reads the feature has a weight, nothing matters; then all count alike.
    counts = any(weights[k] for k in users)
    total = sum((weights[k] if counts else 1.0) * term for k, term in terms.items())
    at = int(np.argmin(np.where(allowed, sign * np.asarray(total), np.inf)))
    return {k: float(term[at]) for k, term in terms.items()}


def _needs_portfolio(why: str) -> DataError:
    return DataError(f"This reference needs rows to look at, since {why}. Pass portfolio=rows.")
