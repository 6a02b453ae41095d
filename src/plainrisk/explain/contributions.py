"""What every subscale and feature contributes to a row's risk, so that the parts add up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.form import Alone, Link, Mixture, Part, RiskForm, TreePart
from plainrisk.frames import Frame

__all__ = ["Explanation", "explain"]

Floats = npt.NDArray[np.float64]

NO_SUBSCALE = "(no subscale)"


@dataclass(frozen=True)
class Explanation:
    """Contributions of n rows that add up.

    Attributes
    ----------
    unit : "probability" where the last link is straight or absent, else "log odds"
    risk : (n,) the predicted probability
    constant : (n,) what a row starts from before any feature speaks
    contributions : (n, k)
    subscales, features : (k,) whose each column is; the feature is None where a curved link inside
        (or an expert that is not additive) makes the subscale the finest exact piece
    clipping : (n,) what cutting the line off at 0 or 1 takes away or adds
    """

    unit: Literal["probability", "log odds"]
    risk: Floats
    constant: Floats
    contributions: Floats
    subscales: tuple[str, ...]
    features: tuple[str | None, ...]
    clipping: Floats

    @property
    def total(self) -> Floats:
        """Everything added up; in probability it is the risk."""
        return np.asarray(self.constant + self.contributions.sum(axis=1) + self.clipping)

    @property
    def by_subscale(self) -> dict[str, Floats]:
        """The contributions of each subscale, added up over its features."""
        sums: dict[str, Floats] = {}
        for name, column in zip(self.subscales, self.contributions.T, strict=True):
            sums[name] = sums[name] + column if name in sums else column.copy()
        return sums


@dataclass
class _Sum:
    """A value per row as a constant, named columns and a clipping term."""

    constant: Floats
    columns: dict[tuple[str, str | None], Floats] = field(default_factory=dict)
    clipping: Floats | None = None

    def scaled(self, offset: Floats | float, slope: Floats | float) -> _Sum:
        columns = {key: slope * column for key, column in self.columns.items()}
        clipping = None if self.clipping is None else slope * self.clipping
        return _Sum(offset + slope * self.constant, columns, clipping)

    def clipped(self, amount: Floats) -> _Sum:
        return _Sum(self.constant, self.columns, amount if self.clipping is None else self.clipping + amount)

    def plus(self, other: _Sum) -> _Sum:
        columns = {**self.columns, **other.columns}
        clipping = self.clipping
        if other.clipping is not None:
            clipping = other.clipping if clipping is None else clipping + other.clipping
        return _Sum(self.constant + other.constant, columns, clipping)


def explain(form: RiskForm, X: Any) -> Explanation:
    """Return the contributions of every row of X under a risk form."""
    frame = form.align(X)
    if isinstance(form.pool, Alone):
        score = _score_sum(form, form.parts[0], frame, _homes(form))
    else:
        score = _Sum(np.full(frame.n_rows, 0.0 if isinstance(form.pool, Mixture) else form.pool.intercept))
        for part, weight in zip(form.parts, form.pool.weights, strict=True):
            score = score.plus(_part_risk(form, part, frame).scaled(0.0, weight))
    return _finish(form, frame, score)


def _finish(form: RiskForm, frame: Frame, score: _Sum) -> Explanation:
    unit: Literal["probability", "log odds"] = "probability"
    if form.last_link is not None:
        through = _through(form.last_link, score, form.score(frame))
        unit = "probability" if through is not None else "log odds"
        score = score if through is None else through
    risk = form.risk(frame)
    columns = list(score.columns.values())
    return Explanation(
        unit=unit,
        risk=risk,
        constant=score.constant,
        contributions=np.column_stack(columns) if columns else np.zeros((len(risk), 0)),
        subscales=tuple(s for s, _ in score.columns),
        features=tuple(f for _, f in score.columns),
        clipping=np.zeros(len(risk)) if score.clipping is None else score.clipping,
    )


def _score_sum(form: RiskForm, part: Part | TreePart, frame: Frame, homes: dict[str, str]) -> _Sum:
    """The score of a part: by feature where it is additive, else in one piece."""
    if isinstance(part, TreePart):
        return _Sum(np.zeros(frame.n_rows), {(part.name, None): part.score(frame, form.schema)})
    terms = part.terms(frame, form.schema)
    return _Sum(np.full(frame.n_rows, part.intercept), {(homes[f], f): v for f, v in terms.items()})


def _part_risk(form: RiskForm, part: Part | TreePart, frame: Frame) -> _Sum:
    """The risk a part sees: by feature where its link is straight, else in one piece."""
    inside = _score_sum(form, part, frame, dict.fromkeys(part.features, part.name))
    score = inside.constant.copy()
    for column in inside.columns.values():
        score += column
    through = _through(part.link, inside, score)
    return _Sum(np.zeros(frame.n_rows), {(part.name, None): part.link.value(score)}) if through is None else through


def _through(link: Link, inside: _Sum, score: Floats) -> _Sum | None:
    """Carry a sum through a straight link; None if the link is curved."""
    line = link.line(score)
    if line is None:
        return None
    offset, slope = line
    return inside.scaled(offset, slope).clipped(link.value(score) - (offset + slope * score))


def _homes(form: RiskForm) -> dict[str, str]:
    """The subscale each feature is shown under: the first that lists it."""
    homes = dict.fromkeys(form.schema.features, NO_SUBSCALE)
    for subscale, members in reversed(form.schema.subscales.items()):
        homes.update(dict.fromkeys(members, subscale))
    return homes
