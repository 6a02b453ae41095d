r"""Cut-offs: approval, bad rate and profit at every risk at which a decision changes.

An applicant is refused if the risk is at or above the cut-off. If the positive outcome is the good one
(``adverse="negative"``), an applicant is approved if the probability is at or above the cut-off. A cut-off is a
probability, so no cut-off approves a risk of exactly 1 or, in the second case, refuses one.

A profit needs two numbers: the gain of an approved good loan and the cost of an approved bad one. With amounts, they
are shares of the amount.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from plainrisk._types import Bools, Floats
from plainrisk.checks import LEVEL, NOTHING, PROBABILITY, check_parameters, number, words
from plainrisk.errors import DataError
from plainrisk.figures import new_axes
from plainrisk.form.risks import RiskSums
from plainrisk.intervals import Range, normal_quantile, wilson
from plainrisk.measure.predictions import Predictions, Weights, bin_sums, check_column, check_predictions
from plainrisk.tables import TableResult, text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Cutoff", "Cutoffs", "cutoffs_of_sums", "risk_cutoffs"]

OPTIONS = {
    "cost_bad": number(at_least=0),
    "gain_good": NOTHING | number(at_least=0),
    "adverse": words("positive", "negative"),
    "cutoff": NOTHING | PROBABILITY,
    "level": LEVEL,
}
SHOWN = 20  # lines of the printed table: steps of 5% of approval
MOST_AMOUNT = 1e99  # squares of profits are summed
ROUNDING = 1e-12  # of shares that are sums of weights


@dataclass(frozen=True)
class Cutoff:
    """The measures at one cut-off, with intervals.

    Attributes
    ----------
    cutoff : a probability
    approval : share of applicants who are approved
    bad_rate : share of bad outcomes among the approved; NaN if nobody is approved
    bads_refused : share of the bad outcomes that are refused
    goods_refused : share of the good outcomes that are refused
    profit : of all approved applicants together; NaN without `gain_good`
    """

    cutoff: float
    approval: Range
    bad_rate: Range
    bads_refused: Range
    goods_refused: Range
    profit: Range

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {name: vars(value) if isinstance(value, Range) else value for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Cutoffs(TableResult):
    """Every cut-off at which a decision changes; printing shows about twenty of them.

    Attributes
    ----------
    adverse : "positive": approved below the cut-off; "negative": approved at or above it
    level : of the intervals
    cutoff : (k,) ascending: the distinct risks, and 1
    approval, bad_rate, bads_refused, goods_refused, profit : (k,) as in `Cutoff`
    """

    adverse: str
    level: float
    cutoff: Floats
    approval: Floats
    bad_rate: Floats
    bads_refused: Floats
    goods_refused: Floats
    profit: Floats
    _sums: _Sums
    _policy: float | None = None

    def __len__(self) -> int:
        return len(self.cutoff)

    def __getitem__(self, k: int) -> Cutoff:
        return self._sums.at(k, float(self.cutoff[k]), normal_quantile(self.level))

    def at(
        self, *, approval: float | None = None, bad_rate: float | None = None, cutoff: float | None = None
    ) -> Cutoff:
        """Return one cut-off; give exactly one of the three arguments.

        Parameters
        ----------
        approval : approve as many as possible, at most this share
        bad_rate : approve as many as possible, with at most this share of bad outcomes among them
        cutoff : this cut-off itself

        >>> cutoffs = risk_cutoffs([0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.9])
        >>> cutoffs.at(approval=0.8).cutoff, cutoffs.at(bad_rate=0.1).cutoff, cutoffs.at(cutoff=0.25).approval.estimate
        (0.9, 0.3, 0.4)
        """
        given = {"approval": approval, "bad_rate": bad_rate, "cutoff": cutoff}
        check_parameters("Cutoffs.at", given, dict.fromkeys(given, NOTHING | PROBABILITY))
        if sum(value is not None for value in given.values()) != 1:
            raise DataError("Cutoffs.at: name one of approval, bad_rate and cutoff.")
        if cutoff is not None:
            # The first risk at or above it: no applicant is between the two.
            k = int(np.searchsorted(self.cutoff, cutoff))
            return self._sums.at(k, float(cutoff), normal_quantile(self.level))
        if approval is not None:
            allowed = self.approval <= approval + ROUNDING
        else:
            assert bad_rate is not None
            allowed = np.nan_to_num(self.bad_rate) <= bad_rate + ROUNDING
        if not allowed.any():
            least = self.approval.min()
            raise DataError(f"Cutoffs.at: no cut-off does that; every one approves at least {least:.2%}.")
        return self[int(np.argmax(np.where(allowed, self.approval, -1.0)))]

    @property
    def chosen(self) -> Cutoff | None:
        """The measures at the policy's cut-off, or at the requested one; None without a cut-off."""
        return None if self._policy is None else self.at(cutoff=self._policy)

    @property
    def best(self) -> Cutoff:
        """The cut-off with the largest profit; of several, the one that approves most."""
        if np.isnan(self.profit).all():
            raise DataError("Cutoffs.best: a profit needs gain_good, the gain from an approved good applicant.")
        most = np.flatnonzero(self.profit == self.profit.max())
        return self[int(most[np.argmax(self.approval[most])])]

    def shown(self) -> list[Cutoff]:
        """Return about twenty cut-offs, at even steps of approval."""
        wanted = (np.arange(SHOWN) + 1) / SHOWN
        order = np.argsort(self.approval, kind="stable")
        last = np.searchsorted(self.approval[order], wanted + ROUNDING, side="right") - 1
        return [self[k] for k in sorted({int(order[k]) for k in last if k >= 0})]

    def _headline(self) -> str:
        rule = "below the cut-off" if self.adverse == "positive" else "from the cut-off on"
        return f"Approved: a risk {rule}. Intervals of {self.level:.0%}"

    def columns(self) -> dict[str, Any]:
        """Return about twenty cut-offs as columns by name."""
        rows = []
        for shown in self.shown():
            rate, profit = shown.bad_rate, shown.profit
            row = {"cutoff": shown.cutoff, "approval": shown.approval.estimate, "bad_rate": rate.estimate}
            row |= {"low": rate.low, "high": rate.high, "bads_refused": shown.bads_refused.estimate}
            row |= {"goods_refused": shown.goods_refused.estimate}
            if not np.isnan(self.profit).all():
                row |= {"profit": profit.estimate, "profit_low": profit.low, "profit_high": profit.high}
            rows.append(row)
        return {name: [row[name] for row in rows] for name in rows[0]}

    def __repr__(self) -> str:
        return text_table(self._headline(), self.columns(), rows=SHOWN)

    def to_dict(self) -> dict[str, Any]:
        """Return the printed cut-offs, and the best if there is a profit, as plain data."""
        plain: dict[str, Any] = {"adverse": self.adverse, "level": self.level}
        plain["cutoffs"] = [cutoff.to_dict() for cutoff in self.shown()]
        return plain if np.isnan(self.profit).all() else {**plain, "best": self.best.to_dict()}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw bad rate, refused bads and profit (as a share of the largest) over the approval rate."""
        ax = new_axes(5.6, 4.0) if ax is None else ax
        order = np.argsort(self.approval, kind="stable")
        lines = {"bad rate of the approved": self.bad_rate, "bads refused": self.bads_refused}
        if not np.isnan(self.profit).all() and self.profit.max() > 0:
            lines["profit / largest profit"] = np.maximum(self.profit / self.profit.max(), 0.0)
            best = self.best
            ax.axvline(best.approval.estimate, color="#6B6B6B", linewidth=1, linestyle="--")
        for (label, values), color in zip(lines.items(), ("#D55E00", "#0072B2", "#009E73"), strict=False):
            ax.plot(self.approval[order], values[order], color=color, label=label)
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="share approved", ylabel="share")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return ax


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the approved rows at every cut-off, each (k,).

    Attributes
    ----------
    weight, square, bad : of the weights, of their squares, and of the weights of bad rows
    profit, profit_square : of the profits of rows, and of their squares
    totals : weight and squared weight of all rows, and of all bad rows
    rows : the number of all rows
    """

    weight: Floats
    square: Floats
    bad: Floats
    profit: Floats
    profit_square: Floats
    totals: tuple[float, float, float, float]
    rows: int

    def at(self, k: int, cutoff: float, z: float) -> Cutoff:
        """Return the figures at one cut-off, with intervals."""
        total, square, bads, bad_square = self.totals
        weight, bad = float(self.weight[k]), float(self.bad[k])
        goods, good_square = total - bads, square - bad_square
        profit = float(self.profit[k])
        variance = float(self.profit_square[k]) - profit**2 / self.rows
        half = z * math.sqrt(max(0.0, variance) * self.rows / max(self.rows - 1, 1))
        return Cutoff(
            cutoff=cutoff,
            approval=_share(weight, total, square, z),
            bad_rate=_share(bad, weight, float(self.square[k]), z),
            bads_refused=_share(bads - bad, bads, bad_square, z),
            goods_refused=_share(goods - (weight - bad), goods, good_square, z),
            profit=Range(profit, profit - half, profit + half),
        )


def _share(part: float, whole: float, square: float, z: float) -> Range:
    """Return a share of weights with Wilson's interval for their effective number of rows."""
    if whole <= 0:
        return wilson(0, 0, z)
    effective = whole**2 / square
    return wilson(min(max(part / whole, 0.0), 1.0) * effective, effective, z)


def risk_cutoffs(
    y: ArrayLike,
    risk: ArrayLike,
    *,
    cost_bad: float = 1.0,
    gain_good: float | None = None,
    amount: ArrayLike | None = None,
    sample_weight: Weights = None,
    adverse: str = "positive",
    cutoff: float | None = None,
    level: float = 0.95,
) -> Cutoffs:
    """Return approval, bad rate, refused outcomes and profit at every cut-off; `pr.cutoffs` takes a model and rows.

    Outcomes are 0 and 1, `amount` is that of every loan, and the rest is as for `cutoffs`.

    Examples
    --------
    >>> cutoffs = risk_cutoffs([0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.9], gain_good=0.5)
    >>> cutoffs.best.cutoff, cutoffs.best.profit.estimate
    (0.3, 1.0)
    """
    checked = check_predictions(y, risk, sample_weight)
    values = _amounts(amount, y, sample_weight) * checked.weight
    costs: dict[str, Any] = {"cost_bad": cost_bad, "gain_good": gain_good}
    return _cutoffs(checked, values, values**2, **costs, adverse=adverse, cutoff=cutoff, level=level)


def cutoffs_of_sums(sums: RiskSums, **options: Any) -> Cutoffs:
    """Return the cut-offs of rows that were counted where they are stored, with their amounts as values."""
    return _cutoffs(Predictions.of_sums(sums), sums.values, sums.value_squares, **options)


def _cutoffs(
    checked: Predictions,
    values: Floats,
    squares: Floats,
    *,
    cost_bad: float,
    gain_good: float | None,
    adverse: str,
    cutoff: float | None,
    level: float,
) -> Cutoffs:
    given = {"cost_bad": cost_bad, "gain_good": gain_good, "adverse": adverse, "cutoff": cutoff, "level": level}
    check_parameters("cutoffs", given, OPTIONS)
    bad = checked.bad if adverse == "positive" else ~checked.bad
    brings = None if gain_good is None else np.where(bad, -cost_bad, gain_good)
    profits = None if brings is None else (brings * values, brings**2 * squares)
    points, sums = _sums(checked, bad, profits, adverse == "positive")
    total, _, bads, _ = sums.totals
    shares = {
        "approval": sums.weight / total,
        "bad_rate": sums.bad / np.where(sums.weight > 0, sums.weight, np.nan),
        "bads_refused": 1 - sums.bad / (bads or math.nan),
        "goods_refused": 1 - (sums.weight - sums.bad) / ((total - bads) or math.nan),
    }
    arrays = {name: np.clip(share, 0.0, 1.0) for name, share in shares.items()} | {"profit": sums.profit}
    for array in (points, *arrays.values()):
        array.flags.writeable = False  # a frozen result is frozen
    return Cutoffs(adverse, level, points, **arrays, _sums=sums, _policy=cutoff)


def _amounts(amount: ArrayLike | None, y: ArrayLike, sample_weight: Weights) -> Floats | float:
    if amount is None:
        return 1.0
    values = check_column("amount", amount, len(np.asarray(y)))
    if values.max(initial=0.0) > MOST_AMOUNT:
        raise DataError(f"amount: {values.max():.3g} is beyond {MOST_AMOUNT:g}. Give amounts in a larger unit.")
    return values if sample_weight is None else values[np.asarray(sample_weight) > 0]


def _sums(checked: Predictions, bad: Bools, profits: tuple[Floats, Floats] | None, below: bool) -> tuple[Floats, _Sums]:
    """Return the cut-offs and the sums over the rows that each approves; without profits, their sums are NaN."""
    values, value_of_row = np.unique(checked.risk, return_inverse=True)
    points = values if values[-1] == 1 else np.append(values, 1.0)

    def approved(amounts: Floats) -> Floats:
        per_value = bin_sums(value_of_row, amounts)
        if below:
            return np.concatenate([[0.0], np.cumsum(per_value)])[: len(points)]
        return np.concatenate([np.cumsum(per_value[::-1])[::-1], [0.0]])[: len(points)]

    square = checked.spread**2
    none = np.full(len(points), math.nan)
    sums = _Sums(
        weight=approved(checked.weight),
        square=approved(square),
        bad=approved(checked.weight * bad),
        profit=none if profits is None else approved(profits[0]),
        profit_square=none if profits is None else approved(profits[1]),
        totals=(checked.total, float(square.sum()), float(checked.weight[bad].sum()), float(square[bad].sum())),
        rows=int(checked.rows.sum()),
    )
    return points, sums
