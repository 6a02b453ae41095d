"""Ours against rivals, pair by pair: wins, the typical difference, and whether chance could have done it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Floats
from plainrisk_lab.compare import hodges_lehmann, holm, wilcoxon_holm
from plainrisk_lab.paper.document import Cell, Grid, Mark
from plainrisk_lab.paper.grids import figure, signed, title_of
from plainrisk_lab.study import METRICS, StudyTable

__all__ = ["Duel", "best_grid", "duel_grid", "duel_summary", "duels"]

_ALPHA = 0.05


@dataclass(frozen=True)
class Duel:
    """One of ours against one rival over the data sets on which both have a figure.

    Attributes
    ----------
    ours, rival : names
    won, lost : data sets on which ours is better, and worse, at four digits
    difference : Hodges-Lehmann estimate, ours minus the rival's
    p_value : of Wilcoxon's signed-rank test, adjusted by Holm over all duels at hand
    better : whether the difference is in favor of ours
    decidable : whether so many duels on so few data sets could have found anything
    """

    ours: str
    rival: str
    won: int
    lost: int
    difference: float
    p_value: float
    better: bool
    decidable: bool = True

    @property
    def significant(self) -> bool:
        """Whether the test tells the two apart at 0.05."""
        return self.p_value <= _ALPHA


def duels(table: StudyTable, ours: Sequence[str], rivals: Sequence[str]) -> list[Duel]:
    """Return every one of ours against every rival, adjusted for their number."""
    sign = 1.0 if table.higher_is_better else -1.0
    tests: list[tuple[str, str, Floats, float]] = []
    for name in ours:
        for rival in rivals:
            if name in table.classifiers and rival in table.classifiers:
                part = table.select(classifiers=(name, rival)).complete()
                if min(part.mean.shape) > 1:
                    both = part.results()
                    gaps = both.values[:, 0] - both.values[:, 1]
                    tests.append((name, rival, gaps, float(wilcoxon_holm(both).p_values[0, 1])))
    adjusted = holm([p for *_, p in tests])
    out = []
    for (name, rival, gaps, _), p in zip(tests, adjusted, strict=True):
        seen = np.round(sign * gaps, 4)
        typical = hodges_lehmann(gaps, np.zeros(len(gaps)))
        won, lost = int((seen > 0).sum()), int((seen < 0).sum())
        decidable = len(tests) * 2.0 / 2.0 ** len(gaps) <= _ALPHA
        out.append(Duel(name, rival, won, lost, typical, float(p), sign * typical > 0, decidable))
    return out


def duel_summary(found: Sequence[Duel]) -> str:
    """Return how one of ours does against its rivals, the best results first."""
    groups = []
    for side, better in (("ahead of", True), ("behind", False)):
        mine = sorted((d for d in found if d.better == better), key=lambda d: -abs(d.difference))
        words = [f"{d.rival} by {figure(abs(d.difference))} ({d.won} won, {d.lost} lost)" for d in mine]
        if words:
            groups.append(f"{side} {', '.join(words)}")
    sure = [d.rival for d in found if d.significant]
    end = f"significant against {', '.join(sure)}" if sure else "no difference is significant"
    if not any(d.decidable for d in found):
        end = "on so few data sets no difference could be significant"
    return "; ".join([*groups, end])


def duel_grid(table: StudyTable, found: Sequence[Duel]) -> Grid:
    """Return duels as a table: ours in rows, rivals in columns."""
    rivals = list(dict.fromkeys(d.rival for d in found))
    by_place = {(d.ours, d.rival): d for d in found}
    rows: list[list[Cell]] = []
    for name in dict.fromkeys(d.ours for d in found):
        row: list[Cell] = [name]
        for rival in rivals:
            d = by_place[name, rival]
            tone = ("good" if d.better else "bad") if d.significant else ""
            row.append(
                Mark(signed(d.difference), f"{d.won} : {d.lost}", f"p {d.p_value:.2g}", bold=d.significant, tone=tone)
            )
        rows.append(row)
    title = METRICS[table.metric].title
    note = (
        "Each place: the typical difference, ours minus the rival's (Hodges-Lehmann); data sets won : lost; the "
        f"p-value of Wilcoxon's test after Holm's adjustment over these {len(found)} duels. Bold: significant at 0.05."
    )
    return Grid(f"{title}: ours in rows against rivals", ("", *rivals), rows, note)


def best_grid(table: StudyTable, kinds: dict[str, Sequence[str]]) -> Grid:
    """Return the best of each kind on every data set."""
    sign = 1.0 if table.higher_is_better else -1.0
    rows: list[list[Cell]] = []
    for data in table.datasets:
        cells: list[Cell] = [title_of(data)]
        tops = []
        for names in kinds.values():
            finite = {n: table.value(data, n) for n in names if not math.isnan(table.value(data, n))}
            best = max(finite, key=lambda n: sign * finite[n]) if finite else ""
            tops.append((best, finite.get(best, math.nan)))
        top = max((sign * value for _, value in tops if not math.isnan(value)), default=math.nan)
        cells += [Mark(figure(v), below=n, bold=bool(sign * v == top)) for n, v in tops]
        rows.append(cells)
    note = "The best of a kind was picked by these same folds, which flatters a kind with many members."
    return Grid(f"{METRICS[table.metric].title}: the best of each kind", ("", *kinds), rows, note)
