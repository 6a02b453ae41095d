"""SubscaleHedge: how much each expert's word weighs.

Starting from equal weights, Hedge multiplies each by exp(-eta * loss) row after row and renormalises. Renormalising
commutes with multiplying, so after all rows, in any order,

    w_S = softmax_S( -eta * sum_i w_i loss(r_S(x_i), y_i) )

One pass of sums: exact, mergeable over blocks of rows, and computed with logarithms, where the product underflows.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from plainrisk._types import Array, Floats
from plainrisk.errors import DataError, did_you_mean
from plainrisk.threads import PIECE_ROWS

__all__ = ["LossName", "hedge_weights", "learning_rate", "row_losses", "summed_losses"]

LossName = Literal["log", "brier"]


def learning_rate(rule: float | str, n_experts: int, total: float) -> float:
    """Return eta: "paper" is 8 ln|S| / M, "hedge" is sqrt(8 ln|S| / M), or a number.

    With "paper" the weights depend on the mean loss only; the classical "hedge" rate puts nearly all weight on one
    expert when rows are many.
    """
    if rule == "paper":
        return 8.0 * math.log(n_experts) / total
    if rule == "hedge":
        return math.sqrt(8.0 * math.log(n_experts) / total)
    if isinstance(rule, str):
        known = ("paper", "hedge")
        raise DataError(f"learning_rate must be 'paper', 'hedge' or a number, not {rule!r}.{did_you_mean(rule, known)}")
    if not math.isfinite(rule) or rule < 0:
        raise DataError(f"learning_rate must be finite and not negative, not {rule!r}.")
    return float(rule)


def row_losses(risks: Floats, target: Array, loss: LossName = "log", clip: Floats | float = 1e-15) -> Floats:
    """Return the loss of every expert on every row.

    Parameters
    ----------
    risks : (n, experts)
    target : (n,) 0/1
    clip : float or (experts,); the log loss charges an expert as if its risk lay in [clip, 1 - clip]
    """
    said = np.where(np.asarray(target)[:, None] > 0, risks, 1.0 - risks)  # the probability given to what happened
    if loss == "brier":
        return np.asarray((1.0 - said) ** 2)
    if loss != "log":
        raise DataError(f"loss must be 'log' or 'brier', not {loss!r}.")
    floor = np.asarray(clip, dtype=np.float64)
    return np.asarray(-np.log(np.clip(said, floor, 1.0 - floor)))


def summed_losses(
    risks: Floats,
    target: Array,
    weight: Floats | None = None,
    loss: LossName = "log",
    clip: Floats | float = 1e-15,
) -> Floats:
    """Return each expert's summed loss, block by block, so that memory stays that of one block."""
    total = np.zeros(risks.shape[1])
    for start in range(0, len(risks), PIECE_ROWS):
        rows = slice(start, start + PIECE_ROWS)
        losses = row_losses(np.asarray(risks[rows], dtype=np.float64), target[rows], loss, clip)
        total += losses.sum(axis=0) if weight is None else weight[rows] @ losses
    return total


def hedge_weights(losses: Floats, eta: float) -> Floats:
    """Return the weights after rows with these summed losses: (experts,) or, over many times, (times, experts).

    >>> hedge_weights(np.array([1.0, 1.0]), 0.5).tolist()
    [0.5, 0.5]
    """
    exponent = -eta * (losses - losses.min(axis=-1, keepdims=True))
    weights = np.exp(exponent)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))
