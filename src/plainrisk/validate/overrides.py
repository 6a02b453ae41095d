"""Overrides: the decisions of people compared with those of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from plainrisk._types import Bools
from plainrisk.checks import LEVEL, check_parameters
from plainrisk.data.frame import column_of, refuse_other_order
from plainrisk.errors import DataError, did_you_mean, quoted
from plainrisk.intervals import Range, is_small, normal_quantile, wilson
from plainrisk.schema import label_of
from plainrisk.tables import TableResult
from plainrisk.validate.scored import Scored, column_in

__all__ = ["OverrideCell", "Overrides", "overrides"]

APPROVED = ("approved", "approve", "accepted", "accept", "yes", "true", "1")  # labels that mean approved by default


@dataclass(frozen=True)
class OverrideCell:
    """The applicants with one combination of the model's and people's decisions.

    Attributes
    ----------
    model, person : "approved" or "refused"
    rows : how many
    risk : mean probability of the adverse outcome, NaN without rows
    known : rows whose outcome is known
    small : whether there are so few outcomes that the bad rate says little
    rate : share of the model's decisions of this kind, Wilson's interval; where the two differ, the override rate
    bad_rate : share of the adverse outcome among the rows with a known outcome, Wilson's interval
    """

    model: str
    person: str
    rows: int
    risk: float
    known: int
    small: bool
    rate: Range
    bad_rate: Range


@dataclass(frozen=True, repr=False)
class Overrides(TableResult):
    """Agreement of people and the model.

    Attributes
    ----------
    rows, undecided : the number of rows that people decided, and that they did not decide, which are left out
    cutoff : of the model
    level : of the intervals
    agreement : share of rows on which both agree
    kappa : Cohen's kappa, agreement beyond chance
    cells : approved by both, approved by the model alone, by people alone, refused by both
    """

    _lines: ClassVar = ("cells", OverrideCell)
    rows: int
    undecided: int
    cutoff: float
    level: float
    agreement: Range
    kappa: float
    cells: tuple[OverrideCell, ...]

    def _headline(self) -> str:
        same = self.agreement
        return (
            f"People and the model agree on {same.estimate:.1%} of {self.rows:,} applicants "
            f"({same.low:.1%} to {same.high:.1%}), kappa {self.kappa:.2f}, cut-off {self.cutoff:g}"
        )


def overrides(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    decisions: Any,
    approved: Any = None,
    cutoff: float | None = None,
    level: float = 0.95,
) -> Overrides:
    """Compare the decisions of people with those of the model: agreement, override rates, and outcomes.

    Outcomes are usually known only for applicants whom people approved.

    Parameters
    ----------
    model : a fitted classifier, or (n,) probabilities
    X : rows
        None where only probabilities are given.
    y : (n,), default=None
        The outcomes, some of which may be missing; None takes the target column of the model's schema, if the rows have
        it.
    decisions : str or (n,)
        A column of the rows, or the decision about every row, with two labels; rows without a decision are left out.
    approved : label, default=None
        The label that means approved; None looks for labels such as approved, accept, yes or 1.
    cutoff : float, default=None
        The cut-off of the model; None takes that of its policy.
    level : float, default=0.95
        Of the intervals.

    Returns
    -------
    Overrides

    Examples
    --------
    >>> import plainrisk as pr
    >>> people = ["approved", "refused", "approved", "refused"]
    >>> found = pr.overrides([0.1, 0.2, 0.6, 0.9], None, [0, 0, 1, 1], decisions=people, cutoff=0.5)
    >>> [(cell.model, cell.person, cell.rows) for cell in found.cells][1:3]
    [('approved', 'refused', 1), ('refused', 'approved', 1)]
    """
    check_parameters("overrides", {"level": level}, {"level": LEVEL})
    refuse_other_order(X, decisions=decisions)
    scored = Scored.of("overrides", model, X, y, cutoff)
    given = column_in("overrides: decisions", decisions, X) if isinstance(decisions, str) else decisions
    labels = column_of(given)
    if len(labels.codes) != len(scored.risk):
        raise DataError(f"overrides: there are {len(labels.codes):,} decisions for {len(scored.risk):,} rows.")
    if not labels.labels:
        raise DataError("overrides: no row has a decision.")
    decided, yes = labels.codes >= 0, labels.codes == _approved(labels.labels, approved)
    machine = {"approved": ~scored.refused() & decided, "refused": scored.refused() & decided}
    people = {"approved": yes & decided, "refused": ~yes & decided}
    z, n = normal_quantile(level), int(decided.sum())
    cells = tuple(_cell(scored, m, p, machine[m], people[p], z) for m in machine for p in people)
    same = cells[0].rows + cells[3].rows
    chance = math.fsum(float(machine[d].sum()) * float(people[d].sum()) for d in machine) / n**2
    kappa = (same / n - chance) / (1 - chance) if chance < 1 else math.nan
    undecided = len(decided) - n
    return Overrides(n, undecided, scored.need_cutoff, float(level), wilson(same, n, z), kappa, cells)


def _approved(labels: tuple[str, ...], approved: Any) -> int:
    """Return which label means approved."""
    if len(labels) > 2:
        raise DataError(f"overrides: decisions must be of two kinds, and there are {len(labels)}: {quoted(labels)}.")
    if approved is not None:
        if label_of(approved) not in labels:
            raise DataError(f"overrides: no decision is {approved!r}.{did_you_mean(label_of(approved), labels)}")
        return labels.index(label_of(approved))
    approving = [k for k, label in enumerate(labels) if label.strip().lower() in APPROVED]
    if len(approving) != 1:
        raise DataError(f"overrides: which of {quoted(labels)} means approved? Say approved=... (--approved LABEL).")
    return approving[0]


def _cell(scored: Scored, model: str, person: str, machine: Bools, people: Bools, z: float) -> OverrideCell:
    rows = machine & people
    with_outcome = rows & scored.known
    n, bad = int(with_outcome.sum()), int((with_outcome & scored.bad).sum())
    return OverrideCell(
        model=model,
        person=person,
        rows=int(rows.sum()),
        risk=float(np.mean(scored.bad_risk[rows])) if rows.any() else math.nan,
        known=n,
        small=is_small(n, bad),
        rate=wilson(int(rows.sum()), int(machine.sum()), z),
        bad_rate=wilson(bad, n, z),
    )
