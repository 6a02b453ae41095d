"""A scorecard: its rows, its points, and how it is printed. `plainrisk.explain.points` makes one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.errors import quoted
from plainrisk.explain.certify import Check
from plainrisk.explain.options import Adverse
from plainrisk.form import Line, Logistic, RiskForm
from plainrisk.tables import TableResult, markdown_table, text_table

__all__ = ["CardPart", "CardRow", "Scorecard", "turn_of"]


@dataclass(frozen=True)
class CardRow:
    """One level of a feature, or one combination of levels of a pair, written as "u × v".

    Attributes
    ----------
    part, feature, level : str
    rows, bad : training weight, and that of the adverse outcome; None for a model that was read without its outcomes
    bad_rate : bad / rows; None without rows
    woe : weight of evidence, ln of (share of the good / share of the bad); None if the level lacks one of them, or has
        all rows, as a line does
    iv : what the level adds to the information value; None where `woe` is
    score : what the level adds to the part's score
    points : what it adds to the points, rounded
    """

    part: str
    feature: str
    level: str
    rows: float
    bad: float | None
    bad_rate: float | None
    woe: float | None
    iv: float | None
    score: float
    points: float


@dataclass(frozen=True)
class CardPart:
    """A part of the model: its points are the base plus the points of its rows, clipped to `low` and `high`."""

    name: str
    base: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Scorecard(TableResult):
    """Points per level. The points of an applicant are `base` plus those of all parts, clipped to `low` and `high`.

    Attributes
    ----------
    rows : one per level
    parts : the model, or its subscales
    base, low, high : see above
    unit : "log odds": more points mean less risk; "probability": points are percentage points of the risk
    points, odds, pdo : the scale of log odds
    decimals : of the points
    adverse : "positive" if the positive outcome is the bad one
    rounding : the most that rounding moves the points of any applicant
    rounding_risk : the most that it moves the probability
    band_gap : with bands, the largest difference between the model's risk and the risk that the points imply; else 0
    checks : of the directions, on the rounded points
    left_out : features whose levels all have the same points
    """

    rows: tuple[CardRow, ...]
    parts: tuple[CardPart, ...]
    base: float
    low: float
    high: float
    unit: Literal["log odds", "probability"]
    points: float
    odds: float
    pdo: float
    decimals: int
    adverse: Adverse
    rounding: float
    rounding_risk: float
    band_gap: float
    checks: tuple[Check, ...]
    left_out: tuple[str, ...]
    form: RiskForm = field(compare=False)  # its scores are the points in units of the last decimal, rising with risk

    @property
    def information_values(self) -> dict[str, float]:
        """The information value of every feature and pair, the largest first, without levels that lack an outcome."""
        totals: dict[str, float] = {}
        for row in self.rows:
            totals[row.feature] = totals.get(row.feature, 0.0) + (row.iv or 0.0)
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    def score(self, X: Any) -> Floats:
        """Return the points of every row of X."""
        unit, turn = 10.0**self.decimals, turn_of(self.unit, self.adverse)
        scores = zip(self.parts, self.form.part_scores(X).T, strict=True)
        clipped = [np.clip(turn * score, unit * part.low, unit * part.high) for part, score in scores]
        # Sums of whole numbers are exact.
        total: Floats = (np.sum(clipped, axis=0) + unit * self.base).round() / unit
        return np.clip(total, self.low, self.high)

    def risk(self, points: Any) -> Floats:
        """Return the probability of the positive outcome for total points."""
        total = np.asarray(points, dtype=np.float64)
        if self.unit == "probability":
            return np.clip(total / 100, 0.0, 1.0)
        good = (total - self.points) * math.log(2) / self.pdo + math.log(self.odds)
        return Logistic().value(turn_of(self.unit, self.adverse) * good)

    # ---- as a table

    def _headline(self) -> str:
        unit = "points" if self.unit == "log odds" else "percentage points"
        terms = len({(row.part, row.feature) for row in self.rows})
        return f"Scorecard of {terms} features and pairs, {len(self.rows)} levels, in {unit}"

    def columns(self) -> dict[str, Any]:
        """Return one line per level, as columns by name; a model of several parts has a column for them, too."""
        names = ("part", "feature", "level", "rows", "bad", "bad_rate", "woe", "iv", "points")
        return {n: [getattr(row, n) for row in self.rows] for n in names[len(self.parts) == 1 :]}

    def facts(self) -> list[str]:
        """Return sentences that say what the points mean and how exact they are."""
        return [_scale_facts(self), *_exactness_facts(self)]

    def __str__(self) -> str:
        table = text_table(self._headline(), self.columns(), rows=max(1, len(self.rows)))
        return "\n".join([table, "", *self.facts()])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        plain = {name: value for name, value in vars(self).items() if name != "form"}
        lists = {name: list(map(asdict, plain[name])) for name in ("rows", "parts")}
        checks = msgspec.to_builtins(self.checks)
        return {**plain, **lists, "checks": checks, "information_values": self.information_values}

    def to_markdown(self) -> str:
        """Return the card as a table in Markdown, with the facts below."""
        return markdown_table([*self.lines()]) + "\n" + "".join(f"- {fact}\n" for fact in self.facts())

    def lines(self) -> Iterator[list[Any]]:
        """Yield the card line by line: the names of the columns, the bases, the levels."""
        columns = self.columns()
        names = list(columns)
        yield names
        blank: list[Any] = [None] * len(names)
        for name, base in [*((p.name, p.base) for p in self.parts), ("", self.base)]:
            if base:
                line = blank.copy()
                line[names.index("feature")], line[-1] = "(base)", base
                if "part" in names:
                    line[0] = name
                yield line
        yield from map(list, zip(*columns.values(), strict=True))


def _scale_facts(card: Scorecard) -> str:
    if card.unit == "probability":
        cut = " Each subscale is cut off at its own least and greatest points." if len(card.parts) > 1 else ""
        return (
            "Points are percentage points of the risk: the base and the points of all levels add up to the risk in "
            f"percent, cut off at {card.low:g} and {card.high:g}.{cut}"
        )
    return (
        f"{card.points:g} points stand for odds of {card.odds:g} good to 1 bad, and {card.pdo:g} points more double "
        "the odds. The points of all levels add up; more points mean less risk."
    )


def _exactness_facts(card: Scorecard) -> Iterator[str]:
    yield (
        f"Rounding moves the points of an applicant by at most {card.rounding:.3g}, and the probability by at most "
        f"{card.rounding_risk:.2%}."
    )
    if card.band_gap:
        yield (
            "The model reads its scores, which are log odds, by bands of straight lines; the points stand for the "
            f"sigmoid behind them. The two probabilities differ by at most {card.band_gap:.2%}, rounding apart."
        )
    if any(isinstance(shape, Line) for part in card.form.parts for shape in getattr(part, "shapes", {}).values()):
        yield "Points per unit are multiplied by the value; the bounds hold over the values of the training rows."
    if card.checks:
        yield f"The directions of {len(card.checks)} features hold on the rounded points."
    if card.left_out:
        yield f"Not on the card, since all levels count the same: {quoted(card.left_out)}."


def turn_of(unit: str, adverse: str) -> int:
    """Whether points rise (+1) or fall (-1) with the score of the form."""
    return -1 if unit == "log odds" and adverse == "positive" else 1
