"""Pareto fronts of (cost, score): every cost at which a lower score can be had, and how.

A front is kept sorted: costs rise strictly, scores fall strictly. Scores are added up in the order in which the form
adds them, and rounding never swaps two numbers, so the front's scores are the form's own, to the last bit, and
dropping a dominated state never drops the best one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError

__all__ = ["Front", "add_options", "pareto", "start_front"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

MOST_STATES = 2_000_000


@dataclass(frozen=True)
class Front:
    """Pareto-optimal states.

    Attributes
    ----------
    cost, score : (states,)
    came : for every step, the state of the front before it and the option taken: two arrays (states of that step,)
    """

    cost: Floats
    score: Floats
    came: tuple[tuple[Index, Index], ...]

    def path(self, state: int) -> list[int]:
        """Return the option taken at every step on the way to a state."""
        taken = []
        for parents, options in reversed(self.came):
            taken.append(int(options[state]))
            state = int(parents[state])
        return taken[::-1]


def start_front(score: float) -> Front:
    """Return the front of one state, before anything is added."""
    return Front(np.zeros(1), np.array([score]), ())


def pareto(cost: Floats, score: Floats) -> Index:
    """Return the states no other is better than: by rising cost, each with a lower score than all before."""
    order = np.lexsort((score, cost))
    least = np.minimum.accumulate(score[order])
    better = np.ones(len(order), dtype=bool)
    better[1:] = least[1:] < least[:-1]
    return order[better]


def add_options(front: Front, cost: Floats, score: Floats, sign: int) -> Front:
    """Add one of several options to every state and keep the best; sign -1 prefers high scores."""
    m = len(cost)
    if m == 1:
        return Front(
            front.cost + cost,
            front.score + score,
            (*front.came, (np.arange(len(front.cost)), np.zeros(len(front.cost), np.intp))),
        )
    if len(front.cost) * m > MOST_STATES:
        raise DataError(
            "what_if: there are too many ways to tell apart. Use step costs that are whole numbers, or freeze features."
        )
    costs = (front.cost[:, None] + cost).ravel()
    scores = (front.score[:, None] + score).ravel()
    keep = pareto(costs, sign * scores)
    return Front(costs[keep], scores[keep], (*front.came, (keep // m, keep % m)))
