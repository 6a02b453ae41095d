"""Rows with their scores: what links, pools and certificates ask of them is a sum, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from plainrisk._native import look_up
from plainrisk._types import Array, Floats
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import RiskForm
from plainrisk.solve import Block, Rows

__all__ = ["CodedScores", "FormScores", "GivenScores", "PartScores", "Scored"]


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


class PartScores(Protocol):
    """Rows with the score of every part of a form, wherever they are."""

    def sum(self, function: Callable[[Scored], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Apply a function to all rows and add up the results; see `plainrisk.totals`."""


@dataclass(frozen=True)
class GivenScores:
    """Scores in memory."""

    scored: Scored

    def sum(self, function: Callable[[Scored], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return a function's result for all rows."""
        return function(self.scored)


@dataclass(frozen=True)
class CodedScores:
    """Scores of one part, from the codes of rows."""

    rows: Rows
    intercept: float
    tables: Sequence[Floats]

    def sum(self, function: Callable[[Scored], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Apply a function to all rows and add up the results."""
        return self.rows.sum(_OfCodes(self.intercept, self.tables, function), whole_blocks=True)


@dataclass(frozen=True)
class FormScores:
    """Scores by a form, from the rows themselves, for models that keep no codes of them."""

    form: RiskForm
    training: TrainingRows

    def sum(self, function: Callable[[Scored], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Apply a function to all rows and add up the results."""
        total: tuple[Any, ...] = self.training.sum(_OfForm(self.form, function), self.form.features, "scoring rows")
        return total


@dataclass(frozen=True)
class _OfCodes:
    intercept: float
    tables: Sequence[Floats]
    function: Callable[[Scored], tuple[Any, ...]]

    def __call__(self, block: Block) -> tuple[Any, ...]:
        score = look_up(self.intercept, block.codes, self.tables, len(block))
        return self.function(Scored(score[:, None], block.weight, block.positive))


@dataclass(frozen=True)
class _OfForm:
    form: RiskForm
    function: Callable[[Scored], tuple[Any, ...]]

    def __call__(self, batch: Training) -> tuple[Any, ...]:
        return self.function(Scored(self.form.part_scores(batch.frame), batch.weight, batch.positive))
