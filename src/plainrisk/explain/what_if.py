"""What would bring an applicant to a target, and at what cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from plainrisk.errors import DataError
from plainrisk.explain.answers import WhatIf, WhatIfs
from plainrisk.explain.moves import Cost, feature_moves
from plainrisk.explain.places import Value
from plainrisk.explain.reference import Adverse, adverse_sign
from plainrisk.explain.search import Planner
from plainrisk.form import RiskForm

__all__ = ["planner", "what_if", "what_ifs"]


def what_if(
    form: RiskForm,
    x: Any,
    target: float,
    *,
    frozen: Iterable[str] = (),
    cost: Cost = "features",
    adverse: Adverse = "positive",
    answers: int = 3,
    values: Mapping[str, Iterable[Value]] | None = None,
    min_rows: float = 0.0,
) -> WhatIf:
    """Return the cheapest changes that bring one row to the target.

    Parameters
    ----------
    x : one row
    target : float
        The risk to reach: at most this, or at least this with adverse="negative".
    frozen : features that must stay as they are
    cost : {"features", "steps"}, dict or callable, default="features"
        "features": as few features as possible, and of these the least sum of steps times the schema's step_cost.
        "steps": the least such sum. A dict gives step costs by feature, a callable the cost of a move from (feature,
        level, new level, steps); both then count alone, as "steps" does.
    adverse : {"positive", "negative"}, default="positive"
        "negative" if the model predicts the good outcome, so that the risk must rise.
    answers : int, default=3
        At most so many, each without at least one feature of every answer before it.
    values : dict of feature to values, optional
        Values to try instead of bins; the only way to move a feature that enters as a line or a curve.
    min_rows : float, default=0
        Levels with fewer training rows are not moved to.
    """
    found = planner(
        form, target, frozen=frozen, cost=cost, adverse=adverse, answers=answers, values=values, min_rows=min_rows
    )
    frame = form.align(x)
    if frame.n_rows != 1:
        raise DataError(f"what_if answers for one row, not {frame.n_rows:,}. For many rows use what_ifs.")
    return found.solve(frame)[0]


def what_ifs(
    form: RiskForm,
    X: Any,
    target: float,
    *,
    frozen: Iterable[str] = (),
    cost: Cost = "features",
    adverse: Adverse = "positive",
    answers: int = 1,
    values: Mapping[str, Iterable[Value]] | None = None,
    min_rows: float = 0.0,
) -> WhatIfs:
    """Return the cheapest changes for every row of X; parameters as in `what_if`."""
    return planner(
        form, target, frozen=frozen, cost=cost, adverse=adverse, answers=answers, values=values, min_rows=min_rows
    ).solve(X)


def planner(
    form: RiskForm,
    target: float,
    *,
    frozen: Iterable[str] = (),
    cost: Cost = "features",
    adverse: Adverse = "positive",
    answers: int = 1,
    values: Mapping[str, Iterable[Value]] | None = None,
    min_rows: float = 0.0,
) -> Planner:
    """Return what finds answers, ready for many rows; parameters as in `what_if`."""
    if not (math.isfinite(target) and 0 <= target <= 1):
        raise DataError(f"target must be a probability, not {target!r}.")
    if isinstance(cost, str) and cost not in ("features", "steps"):
        raise DataError(f"cost must be 'features', 'steps', a dict or a function, not {cost!r}.")
    if isinstance(frozen, str):
        raise DataError(f"frozen must be a list of features, not the text {frozen!r}.")
    if answers < 1:
        raise DataError(f"answers must be at least 1, not {answers!r}.")
    moves = feature_moves(form, tuple(frozen), cost, values, min_rows)
    return Planner(form, float(target), adverse, adverse_sign(adverse), answers, moves, cost == "features")
