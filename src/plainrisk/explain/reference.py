"""What an applicant is compared with: a score for every part of the form, and what each feature adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, warn
from plainrisk.explain.atoms import Atoms, atoms_of, value_frame
from plainrisk.explain.elimination import Options, PairScores, joint_options
from plainrisk.form import Alone, Curve, Layer, Line, Linear, PairTable, Part, RiskForm, Shape, TreePart, pool_score

__all__ = ["Point", "Reference", "additive_part", "knows_typical", "make_reference", "pool_weights"]


@dataclass(frozen=True)
class Point:
    """The reference in one part of the form.

    Attributes
    ----------
    terms : what each term adds to the part's score, a shape by its feature and a pair as "u × v"; empty for trees
    score : the part's score
    shares : by pair, the share of the reference at each level of its two features (one level, or a mean over rows)
    """

    terms: dict[str, float]
    score: float
    shares: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reference:
    """A point of comparison: its name ("typical", "best", "row" or "zero"), and a point for every part.

    Zero is where every line has the value 0, and every table and curve its training mean. There are no points for the
    parts of a pool: their risks are zero. It is not an applicant, so its risk may be outside [0, 1].
    """

    name: str
    points: tuple[Point, ...]

    def score(self, form: RiskForm) -> float:
        """Return the score before the last link."""
        if not self.points:
            return form.pool.intercept if isinstance(form.pool, Layer) else 0.0
        return float(self._scores(form, 0, np.array([self.points[0].score]))[0])

    def risk(self, form: RiskForm) -> float:
        """Return the probability; for the reference zero, that of the unclipped line."""
        link, score = form.last_link, self.score(form)
        if self.name == "zero" and isinstance(link, Linear):
            return link.offset + link.slope * score
        return score if link is None else float(link.value(np.array([score]))[0])

    def risks(self, form: RiskForm, k: int, scores: Floats) -> Floats:
        """Return the probabilities if part k had these scores, and all other parts their own."""
        pooled = self._scores(form, k, scores)
        return pooled if form.last_link is None else form.last_link.value(pooled)

    def _scores(self, form: RiskForm, k: int, scores: Floats) -> Floats:
        if isinstance(form.pool, Alone):
            return scores
        at_reference = [part.link.value(np.array([p.score])) for part, p in zip(form.parts, self.points, strict=True)]
        risks = np.tile(np.concatenate(at_reference), (len(scores), 1))
        risks[:, k] = form.parts[k].link.value(scores)
        return pool_score(form.pool, risks)


def pool_weights(form: RiskForm) -> tuple[float, ...]:
    """Return the weight of every part; 1 for a part alone."""
    return (1.0,) if isinstance(form.pool, Alone) else form.pool.weights


def additive_part(form: RiskForm, k: int) -> Part:
    """Return part k of a form, which is known to be additive."""
    part = form.parts[k]
    assert isinstance(part, Part)
    return part


def make_reference(
    form: RiskForm, reference: Any, portfolio: Any = None, sign: int = 1, min_rows: float = 0.0
) -> Reference:
    """Return the reference of this name, or the one that is an applicant's row.

    Parameters
    ----------
    reference : {"typical", "best", "zero"} or a row
        "typical": every shape has its mean over the portfolio, or over the training rows. "best": every feature has
        the level, of those training saw, that is best for the applicant. "zero": see `Reference`.
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
    if reference == "zero":
        return Reference("zero", (_zero(form.parts[0]),) if isinstance(form.pool, Alone) else ())
    if reference == "typical":
        return Reference("typical", tuple(_typical(form, part, rows) for part in form.parts))
    return _best(form, rows, sign, min_rows)


def knows_typical(form: RiskForm) -> bool:
    """Whether the form itself defines the typical applicant: it has no trees, and training counts of every term."""
    parts = [part for part in form.parts if isinstance(part, Part)]
    terms = [term for part in parts for term in (*part.shapes.values(), *part.pairs)]
    return len(parts) == len(form.parts) and all(map(_has_counts, terms))


def _has_counts(term: Shape | PairTable) -> bool:
    """Whether training rows are counted; of a line or a curve that moves the score, on the line itself."""
    moves = isinstance(term, Curve) or (isinstance(term, Line) and term.slope != 0)
    counts = np.ravel(np.asarray(term.weights))
    return bool((counts[0] if moves else counts.sum()) > 0)


def _point(part: Part, terms: dict[str, float], shares: dict[str, tuple[Floats, Floats]]) -> Point:
    """Add up the terms in the order in which the form adds them."""
    score = part.intercept
    for value in terms.values():
        score += value
    return Point(terms, score, shares=shares)


def _zero(part: Part | TreePart) -> Point:
    if isinstance(part, TreePart):
        return Point({}, part.intercept)
    lines = {name: -s.slope * s.center if isinstance(s, Line) else 0.0 for name, s in part.shapes.items()}
    return _point(part, lines | dict.fromkeys((pair.name for pair in part.pairs), 0.0), {})


def _of_row(form: RiskForm, row: Frame) -> Reference:
    if row.n_rows != 1:
        raise DataError(
            f"The reference must be one row, not {row.n_rows:,}. For the mean of a portfolio use "
            "reference='typical' and portfolio=rows."
        )
    # The mean of a single row is the row.
    return Reference("row", tuple(_typical(form, part, row) for part in form.parts))


def _typical(form: RiskForm, part: Part | TreePart, rows: Frame | None) -> Point:
    if isinstance(part, TreePart):
        if rows is None:
            raise _needs_portfolio(f"part {part.name!r} is a sum of trees")
        return Point({}, float(part.score(rows, form.schema).mean()))
    if rows is None:
        means = {name: _training_mean(name, shape) for name, shape in part.shapes.items()}
        means |= {pair.name: _training_mean(pair.name, pair) for pair in part.pairs}
        counts = {pair.name: (pair.level_weights(0), pair.level_weights(1)) for pair in part.pairs}
    else:
        means = {name: float(values.mean()) for name, values in part.terms(rows, form.schema).items()}
        counts = {pair.name: _level_counts(pair, rows) for pair in part.pairs}
    return _point(part, means, {name: (u / u.sum(), v / v.sum()) for name, (u, v) in counts.items()})


def _level_counts(pair: PairTable, rows: Frame) -> tuple[Floats, Floats]:
    both = zip(pair.levels, pair.features, strict=True)
    u, v = (np.bincount(levels.codes(rows, name), minlength=len(levels)).astype(float) for levels, name in both)
    return u, v


def _training_mean(name: str, shape: Shape | PairTable) -> float:
    """Return the mean of a shape over the training rows.

    Shapes are centered when they are made. So a line with counts is 0 on average over its measured values, which is
    the score of its first level, and a curve with counts is 0 on average over all rows.
    """
    weights = np.asarray(shape.weights)
    if not _has_counts(shape):
        raise _needs_portfolio(
            f"{'pair' if isinstance(shape, PairTable) else 'feature'} {name!r} has no training counts"
        )
    if isinstance(shape, Curve):
        return 0.0
    return float(np.vdot(weights, np.asarray(shape.scores)) / weights.sum())


# ---- the best


def _best_frames(form: RiskForm, rows: Frame | None, sign: int, min_rows: float) -> dict[str, Frame]:
    values = {name: _candidates(atoms, rows) for name, atoms in atoms_of(form, min_rows).items()}
    return _best_values(form, values, sign)


def _best(form: RiskForm, rows: Frame | None, sign: int, min_rows: float) -> Reference:
    best = _best_frames(form, rows, sign, min_rows)
    points = []
    for part in form.parts:
        if isinstance(part, Part):
            # Each feature has a separate column of values, so that the terms are looked up one by one.
            terms = {name: float(shape.values(best[name], name)[0]) for name, shape in part.shapes.items()}
            shares = {pair.name: _level_counts(pair, _joined(best, pair.features)) for pair in part.pairs}
            terms |= {pair.name: float(pair.values(_joined(best, pair.features))[0]) for pair in part.pairs}
            points.append(_point(part, terms, shares))
            continue
        if rows is None:
            raise _needs_portfolio(f"part {part.name!r} is a sum of trees")
        points.append(Point({}, sign * float((sign * part.score(rows, form.schema)).min())))
    return Reference("best", tuple(points))


def _candidates(atoms: Atoms, rows: Frame | None) -> Frame:
    """Return the values a feature may have: one per level that training saw, or for a line those of the rows."""
    if atoms.straight:
        if rows is None:
            raise _needs_portfolio(f"feature {atoms.feature!r} enters as a line or a curve, which has no end")
        return rows
    allowed = atoms.seen if atoms.seen.any() else np.ones(len(atoms.seen), dtype=bool)
    return value_frame({atoms.feature: [value for value, ok in zip(atoms.values, allowed, strict=True) if ok]})


def _joined(frames: Mapping[str, Frame], names: tuple[str, str]) -> Frame:
    return Frame(names, {name: frames[name].columns[name] for name in names}, 1)


def _best_values(form: RiskForm, values: Mapping[str, Frame], sign: int) -> dict[str, Frame]:
    """Return, as one row for each feature, the value that is best for the whole; of pairs both values together."""
    weights = pool_weights(form)
    parts = [(k, part) for k, part in enumerate(form.parts) if isinstance(part, Part)]
    pairs = [(weights[k], pair) for k, part in parts for pair in part.pairs]
    options = {}
    for name, frame in values.items():
        users = {k: part.shapes[name] for k, part in parts if name in part.shapes}
        # If every part that reads the feature has weight 0, the level does not matter, so all parts count equally.
        counts = any(weights[k] for k in users)
        score = np.zeros(frame.n_rows)
        for k, shape in users.items():
            score += (weights[k] if counts else 1.0) * shape.values(frame, name)
        levels = {
            j: pair.levels[pair.features.index(name)].codes(frame, name).astype(np.intp)
            for j, (_, pair) in enumerate(pairs)
            if name in pair.features
        }
        options[name] = Options(np.zeros(len(score)), score, np.arange(len(score)), levels)
    at = {name: int(np.argmin(sign * option.score)) for name, option in options.items()}
    tables = [(pair.features, weight * np.asarray(pair.scores)) for weight, pair in pairs]
    at |= _best_together({name: option for name, option in options.items() if option.levels}, tables, at, sign)
    return {name: frame.take(at[name], at[name] + 1) for name, frame in values.items()}


def _best_together(
    options: Mapping[str, Options], pairs: Sequence[PairScores], start: Mapping[str, int], sign: int
) -> dict[str, int]:
    """Return the best options of features that are in pairs: exactly or, if that takes too long, by descent."""
    try:
        joint = joint_options(options, pairs, sign)
        return {name: int(at) for front in joint for name, at in zip(front.features, front.choice[-1], strict=True)}
    except DataError:
        warn(
            "reference='best': pairs connect too many features, so the best levels were searched for one feature after "
            "the other. There may be better ones.",
        )
    at = {name: start[name] for name in options}
    moved = True
    while moved:
        moved = False
        for name, option in options.items():
            score = option.score.copy()
            for j, level in option.levels.items():
                (u, v), table = pairs[j]
                other = v if name == u else u
                score += (table if name == u else table.T)[level, options[other].levels[j][at[other]]]
            best = int(np.argmin(sign * score))
            if sign * score[best] < sign * score[at[name]]:
                at[name], moved = best, True
    return at


def _needs_portfolio(why: str) -> DataError:
    return DataError(f"The reference needs rows, since {why}. Pass portfolio=rows (--portfolio DATA).")
