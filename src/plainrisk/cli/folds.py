"""Figures from cross validation."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

from plainrisk.cli.source import Rows
from plainrisk.errors import DataError

__all__ = ["METRICS", "check_folds", "cross_validate", "spread"]

METRICS = {"auc": "AUC", "ece": "ECE", "brier": "Brier score", "log_loss": "log loss"}


def cross_validate(
    model: Any, rows: Rows, folds: int, seed: int, advance: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Fit a clone of the model without each fold in turn and measure it on the fold.

    Returns
    -------
    dict
        `folds`, `seed`, and for each metric its mean and standard deviation over the folds and the figures.
    """
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    from plainrisk.evaluate.metrics import summary

    figures: list[dict[str, float]] = []
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(rows.bad, rows.bad)
    for number, (train, test) in enumerate(splits, start=1):
        fitted = clone(model).fit(rows.X[train], rows.y[train])
        try:
            risk = fitted.predict_proba(rows.X[test])[:, 1]
        except DataError as error:
            raise DataError(f"Fold {number} of {folds}: {error} Or leave out cross validation: --no-cv.") from None
        figures.append(summary(rows.bad[test], risk))
        advance()
    return {"folds": folds, "seed": seed, **{name: spread([f[name] for f in figures]) for name in METRICS}}


def check_folds(rows: Rows, folds: int) -> None:
    """Raise unless every fold can hold both outcomes."""
    positives = int(rows.bad.sum())
    rarer = min(positives, len(rows.bad) - positives)
    if folds > rarer:
        remedy = f"Take --folds {rarer}, or --no-cv." if rarer > 1 else "Leave out cross validation: --no-cv."
        raise DataError(f"--folds {folds}: the rarer outcome has only {rarer:,} rows. {remedy}")


def spread(values: list[float]) -> dict[str, Any]:
    """Return mean, standard deviation (n - 1 below the line) and the values.

    >>> spread([1.0, 3.0])
    {'mean': 2.0, 'sd': 1.4142135623730951, 'values': [1.0, 3.0]}
    """
    finite = all(map(math.isfinite, values))
    sd = statistics.stdev(values) if finite and len(values) > 1 else math.nan
    return {"mean": sum(values) / len(values), "sd": sd, "values": values}
