"""How much of the published calibration tables is chance: the recipe behind them, with the rows in other orders."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.evaluate.metrics import reliability
from plainrisk.study.grids import figure, title_of
from plainrisk.study.pieces import Block, Cell, Grid, Prose
from plainrisk.study.plan import ClassifierSpec
from plainrisk.study.tables import paper_table
from plainrisk.study.view import View

__all__ = ["Spread", "pairing_account", "shuffled"]

Floats = npt.NDArray[np.float64]
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


def shuffled(outcome: npt.NDArray[np.uint8], risk: Floats, orders: int, rng: np.random.Generator) -> Floats:
    """Return (orders, 2) ECE and MCE by the recipe, each with the rows in another order.

    The recipe sets prediction j // 2 against outcome j mod n, so the order of the rows decides which meet.

    >>> same = shuffled(np.ones(4, dtype=np.uint8), np.full(4, 0.5), 3, np.random.default_rng(0))
    >>> same.tolist()
    [[0.25, 0.5], [0.25, 0.5], [0.25, 0.5]]
    """
    out = np.empty((orders, 2))
    for k in range(orders):
        order = rng.permutation(len(risk))
        both = np.column_stack([1.0 - risk[order], risk[order]]).ravel()
        found = reliability(np.tile(outcome[order], 2), both)
        out[k] = found.expected_error / 2.0, found.maximum_error
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
        Prose(
            f"""Under the recipe chance decides which outcome a prediction meets. The same predictions were read with
            the rows of each fold in {_ORDERS} other orders ({_FEW_ORDERS} on data sets of more than {_MANY_ROWS:,}
            rows): the table counts the published figures between the least and the greatest of them. An MCE is the
            worst of 15 bins, often one of a few rows, so it moves most. Of the {len(every)} published figures
            {outside[0]} ECEs and {outside[1]} MCEs lie outside: there the models differ (see 1.3), or the recipe is
            not quite the one that was used. That part is not explained."""
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
        found = [_spread(view, data.fingerprint, data.name, spec) for spec in plan.lineup]
        known = [pair for pair in found if pair is not None]
        if known:
            out[data.name] = known
    return out


def _spread(view: View, fingerprint: str, data: str, spec: ClassifierSpec) -> tuple[Spread, Spread] | None:
    plan, store = view.store.plan("paper"), view.store
    cells = store.cells(fingerprint, spec.key(plan.conventions), plan.folds, plan.seed, risks=True)
    if any(c.risks is None for c in cells) or len(cells) < plan.folds:
        return None
    fold_of, outcomes = store.fold_of(fingerprint, plan.folds, plan.seed), store.outcomes(fingerprint)
    orders = _FEW_ORDERS if len(outcomes) > _MANY_ROWS else _ORDERS
    rng = np.random.default_rng(0)
    folds = [shuffled(outcomes[fold_of == c.key.fold], c.risks, orders, rng) for c in cells if c.risks is not None]
    means = np.mean(folds, axis=0)
    ece, mce = (
        Spread(float(means[:, m].min()), float(means[:, m].max()), paper_table(name).value(data, spec.name))
        for m, name in enumerate(("ece", "mce"))
    )
    return ece, mce
