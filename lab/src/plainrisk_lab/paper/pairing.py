"""How much of the published calibration tables is chance: the recipe behind them, with the rows in other orders."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Floats, Outcome
from plainrisk_lab.paper.document import Block, Cell, Grid
from plainrisk_lab.paper.grids import figure, title_of
from plainrisk_lab.paper.published import paper_table
from plainrisk_lab.paper.view import View, prose
from plainrisk_lab.study import ClassifierSpec, as_printed

__all__ = ["Spread", "pairing_account", "shuffled"]

_ORDERS = 20
# Enough to see the spread, which shrinks with the rows.
_FEW_ORDERS, _MANY_ROWS = 5, 50_000


@dataclass(frozen=True)
class Spread:
    """The least and the greatest figure over some orders of the rows, and the published one."""

    least: float
    greatest: float
    printed: float

    @property
    def inside(self) -> bool:
        """Whether the published figure lies within, to its four digits."""
        return self.least - 5e-5 <= self.printed <= self.greatest + 5e-5


def shuffled(outcome: Outcome, risk: Floats, orders: int, rng: np.random.Generator) -> Floats:
    """Return (orders, 2) ECE and MCE by the recipe, each with the rows in another order.

    The recipe sets prediction j // 2 against outcome j mod n, so the order of the rows decides which meet.

    >>> same = shuffled(np.ones(4, dtype=np.uint8), np.full(4, 0.5), 3, np.random.default_rng(0))
    >>> same.tolist()
    [[0.25, 0.5], [0.25, 0.5], [0.25, 0.5]]
    """
    out = np.empty((orders, 2))
    for k in range(orders):
        order = rng.permutation(len(risk))
        errors = as_printed(outcome[order], risk[order])
        out[k] = errors.expected_error / 2.0, errors.maximum_error
    return out


def pairing_account(view: View) -> list[Block]:
    """Return what the order of the rows alone does to the figures of the recipe."""
    spreads = _spreads(view)
    if not spreads:
        return []
    rows: list[list[Cell]] = [_row(title_of(data), found) for data, found in spreads.items()]
    every = [s for found in spreads.values() for s in found]
    rows.append(_row("all", every))
    outside = [sum(not pair[m].inside for pair in every) for m in (0, 1)]
    header = ("", "ECE: published inside", "typical range", "MCE: published inside", "typical range")
    return [
        prose(
            "pairing",
            orders=_ORDERS,
            few_orders=_FEW_ORDERS,
            many_rows=_MANY_ROWS,
            figures=len(every),
            ece_outside=outside[0],
            mce_outside=outside[1],
        ),
        Grid(
            "The recipe with the rows in other orders",
            header,
            rows,
            "Typical range: the median of greatest less least.",
        ),
    ]


def _row(name: str, found: list[tuple[Spread, Spread]]) -> list[Cell]:
    cells: list[Cell] = [name]
    for m in (0, 1):
        width = statistics.median(pair[m].greatest - pair[m].least for pair in found)
        cells += [f"{sum(pair[m].inside for pair in found)} of {len(found)}", figure(width)]
    return cells


def _spreads(view: View) -> dict[str, list[tuple[Spread, Spread]]]:
    plan, out = view.store.plan("paper"), {}
    for data in view.store.sets("paper"):
        if data.fingerprint is None or data.name not in paper_table("ece").datasets:
            continue
        spreads = [_spread(view, data.fingerprint, data.name, spec) for spec in plan.lineup]
        measured = [pair for pair in spreads if pair is not None]
        if measured:
            out[data.name] = measured
    return out


def _spread(view: View, fingerprint: str, data: str, spec: ClassifierSpec) -> tuple[Spread, Spread] | None:
    plan, store = view.store.plan("paper"), view.store
    cells = store.cells(fingerprint, spec.key, plan.cv, plan.seed, risks=True)
    if any(c.risks is None for c in cells) or len(cells) < plan.cv:
        return None
    fold_of, outcomes = store.fold_of(fingerprint, plan.cv, plan.seed), store.outcomes(fingerprint)
    orders = _FEW_ORDERS if len(outcomes) > _MANY_ROWS else _ORDERS
    rng = np.random.default_rng(0)
    folds = [shuffled(outcomes[fold_of == c.key.fold], c.risks, orders, rng) for c in cells if c.risks is not None]
    means = np.mean(folds, axis=0)
    ece, mce = (
        Spread(float(means[:, m].min()), float(means[:, m].max()), paper_table(name).value(data, spec.name))
        for m, name in enumerate(("ece", "mce"))
    )
    return ece, mce
