"""Rows with their scores, wherever they are, and the sums over them that links, pools and records need."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._native import look_up
from plainrisk._types import Array, Bools, Floats
from plainrisk.fit.coding import own_weight
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import Alone, Logistic, RiskForm, TrainedRisks, pool_score
from plainrisk.form.risks import count_risks
from plainrisk.solve import Block, Rows
from plainrisk.totals import Then, identity

__all__ = [
    "PartScores",
    "Scored",
    "clipped_share",
    "coded_scores",
    "form_scores",
    "given_scores",
    "pooled_score",
    "trained_risks",
]


@dataclass(frozen=True)
class Scored:
    """Some rows with their scores.

    Attributes
    ----------
    scores : (rows, parts)
    weight : (rows,) or None where every row weighs 1; class weights included
    positive : (rows,) the weight of the positive outcome; None where outcomes are not known
    """

    scores: Floats
    weight: Floats | None
    positive: Array | None


@dataclass(frozen=True)
class PartScores:
    """Rows with the score of every part of a form, wherever they are.

    Attributes
    ----------
    total : adds up what a function returns for the rows as they are kept
    read : from rows as they are kept to rows with scores; it is sent to where they are
    """

    total: Callable[[Callable[[Any], Any]], Any]
    read: Callable[[Any], Scored]

    def sum(self, function: Callable[[Scored], tuple[Any, ...]]) -> Any:
        """Apply a function to all rows and add up the results; see `plainrisk.totals`."""
        return self.total(Then(self.read, function))


def given_scores(scores: Floats, weight: Floats | None) -> PartScores:
    """Return scores in memory, without outcomes."""
    rows = Scored(scores, weight, None)
    return PartScores(lambda function: function(rows), identity)


def coded_scores(rows: Rows, intercept: float, tables: Sequence[Floats]) -> PartScores:
    """Return the scores of one part, from the codes of rows."""
    return PartScores(functools.partial(rows.sum, whole_blocks=True), _OfCodes(intercept, tables))


def form_scores(form: RiskForm, training: TrainingRows) -> PartScores:
    """Return scores by a form, from the rows themselves, for models that keep no codes of them."""
    return PartScores(functools.partial(training.sum, names=form.features, task="scoring rows"), _OfForm(form))


@dataclass(frozen=True)
class _OfCodes:
    intercept: float
    tables: Sequence[Floats]

    def __call__(self, block: Block) -> Scored:
        score = look_up(self.intercept, block.codes, self.tables, len(block))
        return Scored(score[:, None], block.weight, block.positive)


@dataclass(frozen=True)
class _OfForm:
    form: RiskForm

    def __call__(self, batch: Training) -> Scored:
        return Scored(self.form.part_scores(batch.frame), batch.weight, batch.positive)


# ---- questions to scored rows


def pooled_score(form: RiskForm, part_scores: Floats) -> Floats:
    """Return the score before the last link (for a mixture: the risk), given the score of every part: (rows, parts)."""
    if isinstance(form.pool, Alone):
        return part_scores[:, 0]
    risks = [part.link.value(scores) for part, scores in zip(form.parts, part_scores.T, strict=True)]
    return pool_score(form.pool, np.column_stack(risks))


def trained_risks(form: RiskForm, training: TrainingRows, scores: PartScores) -> TrainedRisks:
    """Count the probabilities of the training rows, without class weights."""
    total, rows, positives = scores.sum(_RiskCounts(form, training.factors))
    return TrainedRisks.of(total, rows, positives)


@dataclass(frozen=True)
class _RiskCounts:
    """The sum of probabilities, and their counts by cell: of all rows, and of those with the positive outcome."""

    form: RiskForm
    factors: Floats | None

    def __call__(self, rows: Scored) -> tuple[float, Floats, Floats]:
        score, link = pooled_score(self.form, rows.scores), self.form.last_link
        risk = score if link is None else link.value(score)
        weight = own_weight(rows.weight, rows.positive, self.factors)
        weight = np.ones(len(risk)) if weight is None else weight
        hits = weight * (np.asarray(rows.positive) > 0)
        return float(weight @ risk), count_risks(risk, weight), count_risks(risk, hits)


def clipped_share(form: RiskForm, portfolio: PartScores, factors: Floats | None = None) -> float:
    """Return the weighted share of rows whose line is cut off at the last link, without class weights.

    A mixture has no link of its own; its share is that of the rows where all its experts are cut off at the same end.
    """
    last = list(form.links) if form.last_link is None else [form.last_link]
    if all(isinstance(link, Logistic) for link in last):
        return 0.0  # a sigmoid is never cut off: no need to score the rows
    total, clipped = portfolio.sum(_Clipped(form, factors))
    return float(clipped / total)


@dataclass(frozen=True)
class _Clipped:
    """The weight of rows, and of those that are cut off."""

    form: RiskForm
    factors: Floats | None

    def __call__(self, rows: Scored) -> tuple[float, float]:
        clipped, weight = _clipped(self.form, rows.scores), own_weight(rows.weight, rows.positive, self.factors)
        if weight is None:
            return float(len(clipped)), float(np.count_nonzero(clipped))
        return float(weight.sum()), float(weight[clipped].sum())


def _clipped(form: RiskForm, part_scores: Floats) -> Bools:
    score, link = pooled_score(form, part_scores), form.last_link
    if link is None:
        return np.asarray((score <= 0.0) | (score >= 1.0))
    line = link.line(score)
    if line is None:
        return np.zeros(len(score), bool)
    straight = line[0] + line[1] * score
    low, high = link.range
    # Rounding may carry a line that ends on a bound past it.
    return np.asarray((straight < low - 1e-12) | (straight > high + 1e-12))
