"""SubscaleHedge: the weights of experts, by their losses.

Starting from equal weights, Hedge multiplies each by exp(-eta * loss) row after row and renormalizes. Renormalizing
commutes with multiplying, so after all rows, in any order,

    w_S = softmax_S( -eta * sum_i w_i loss(r_S(x_i), y_i) )

One pass of sums: exact, mergeable over blocks of rows, and computed with logarithms, where the product underflows.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from plainrisk._types import Array, Floats
from plainrisk.threads import PIECE_ROWS

__all__ = ["LossName", "hedge_weights", "learning_rate", "loss_sums", "regret_range", "row_losses"]

LossName = Literal["log", "brier"]


def learning_rate(rule: float | Literal["paper", "hedge"], n_experts: int, total: float) -> float:
    """Return eta: "paper" is 8 ln|S| / M, "hedge" is sqrt(8 ln|S| / M), or a number.

    With "paper" the weights depend on the mean loss only; the classical "hedge" rate puts nearly all weight on one
    expert when rows are many.
    """
    if rule == "paper":
        return 8.0 * math.log(n_experts) / total
    if rule == "hedge":
        return math.sqrt(8.0 * math.log(n_experts) / total)
    return float(rule)


def row_losses(risks: Floats, target: Array, loss: LossName = "log", clip: Floats | float = 1e-15) -> Floats:
    """Return the loss of every expert on every row.

    Parameters
    ----------
    risks : (n, experts)
    target : (n,) 0/1
    clip : float or (experts,); the log loss charges an expert as if its risk lay in [clip, 1 - clip]
    """
    given = np.where(np.asarray(target)[:, None] > 0, risks, 1.0 - risks)  # the probability given to what happened
    if loss == "brier":
        return np.asarray((1.0 - given) ** 2)
    floor = np.asarray(clip, dtype=np.float64)
    return np.asarray(-np.log(np.clip(given, floor, 1.0 - floor)))


def loss_sums(
    risks: Floats,
    target: Array,
    weight: Floats | None = None,
    loss: LossName = "log",
    clip: Floats | float = 1e-15,
) -> Floats:
    """Return each expert's summed loss, and last the sum of the squared spread of the losses: (experts + 1,).

    The spread of a row is the difference between its largest and smallest loss; `regret_range` needs it. Rows are
    added up block by block, so that the memory stays that of one block.
    """
    total = np.zeros(risks.shape[1] + 1)
    for start in range(0, len(risks), PIECE_ROWS):
        rows = slice(start, start + PIECE_ROWS)
        losses = row_losses(np.asarray(risks[rows], dtype=np.float64), target[rows], loss, clip)
        if weight is not None:
            losses *= weight[rows][:, None]
        total[:-1] += losses.sum(axis=0)
        total[-1] += float((np.ptp(losses, axis=1) ** 2).sum())
    return total


def regret_range(losses: Floats, spread: float, eta: float) -> tuple[float, float, float]:
    r"""Return between which numbers Hedge's regret lies, whatever the order of the rows, and its bound.

    The regret is Hedge's loss :math:`\sum_i w_i \cdot \ell_i`, with the weights before each row, less the loss of the
    best expert. Hedge's loss is at least the mix loss, which no order of the rows changes, and by Hoeffding's lemma at
    most that and :math:`\eta/8` times the spread B:

    .. math:: -\tfrac1\eta \ln \tfrac1n \sum_S e^{-\eta L_S} - \min_S L_S \le \text{regret} \le
        \ldots + \tfrac\eta8 B \le \tfrac{\ln n}{\eta} + \tfrac\eta8 B

    With Hedge's own rate and losses within [0, 1] the bound is :math:`\sqrt{M \ln n / 2}`.

    Parameters
    ----------
    losses, spread : as `loss_sums` returns them
    eta : the learning rate, above 0

    Returns
    -------
    least, greatest, bound

    >>> least, greatest, bound = regret_range(np.array([10.0, 12.0]), 8.0, 0.5)
    >>> round(least, 3), round(greatest, 3), round(bound, 3)
    (0.76, 1.26, 1.886)
    """
    lead = losses - losses.min()
    least = -math.log(float(np.exp(-eta * lead).mean())) / eta
    slack = eta / 8.0 * spread
    return least, least + slack, math.log(len(losses)) / eta + slack


def hedge_weights(losses: Floats, eta: float) -> Floats:
    """Return the weights after rows with these summed losses: (experts,) or, over many times, (times, experts).

    >>> hedge_weights(np.array([1.0, 1.0]), 0.5).tolist()
    [0.5, 0.5]
    """
    exponent = -eta * (losses - losses.min(axis=-1, keepdims=True))
    weights = np.exp(exponent)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))
