"""The Pareto fronts of a whole form for one applicant: part by part, then pooled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError
from plainrisk.explain.applicants import Applicants
from plainrisk.explain.fronts import Front, add_options, pareto, start_front
from plainrisk.explain.moves import Moves
from plainrisk.explain.places import Value, value_frame
from plainrisk.explain.reference import pool_weights
from plainrisk.form import Alone, Layer, Part, TreePart

if TYPE_CHECKING:
    from plainrisk.explain.search import Planner

__all__ = ["Choice", "FormFront", "FrontBuilder"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Choice = dict[str, int]  # the target each feature moves to; those not listed stay
Steps = list[tuple[str, Index]]  # the feature behind every step of a front, and the target of each option

MOST_COMBINATIONS = 200_000  # of the moves in one part of trees, or of features shared by parts


@dataclass(frozen=True)
class FormFront:
    """The front of the whole form for one choice of the shared features, and what is needed to read its states."""

    front: Front
    parts: list[Front]
    own: list[Steps]
    shared: Choice
    risk: Floats

    def read(self, state: int) -> Choice:
        """Return which feature moves where."""
        states = self.front.path(state) if self.front.came else [state]
        found = dict(self.shared)
        for part, steps, at in zip(self.parts, self.own, states, strict=True):
            for (name, targets), option in zip(steps, part.path(at), strict=True):
                if targets[option] >= 0:
                    found[name] = int(targets[option])
        return found


@dataclass(frozen=True)
class FrontBuilder:
    """One applicant and the moves that are open to them."""

    plan: Planner
    rows: Applicants
    row: int
    moves: Mapping[str, Moves]

    def fronts(self) -> list[FormFront]:
        """Return a front for every choice of the features that several parts share."""
        found = []
        for price, choice in self._shared():
            front, parts, own = self._pool(choice, price)
            found.append(FormFront(front, parts, own, choice, self._risk(front.score)))
        return found

    def _shared(self) -> Iterator[tuple[float, Choice]]:
        """Give every combination of moves of the features that several parts share, with its price, cheapest first."""
        names = [name for name in self.plan.shared if name in self.moves]
        sizes = [len(self.moves[name].target) + 1 for name in names]
        _limit(math.prod(sizes), "the features that stand in several subscales")
        options = [
            [(0.0, -1), *zip(self._prices(self.moves[n]).tolist(), self.moves[n].target.tolist(), strict=True)]
            for n in names
        ]
        found = []
        for taken in itertools.product(*options):
            choice = {name: target for name, (_, target) in zip(names, taken, strict=True) if target >= 0}
            found.append((math.fsum(price for price, _ in taken), choice))
        return iter(sorted(found, key=lambda entry: entry[0]))

    def _prices(self, moves: Moves) -> Floats:
        return np.asarray(moves.price + self.plan.per_feature)

    def _pool(self, choice: Choice, price: float) -> tuple[Front, list[Front], list[Steps]]:
        """Return the front of (cost, score) of the whole form, and what is needed to read its states."""
        form = self.plan.form
        parts, own = [], []
        pool = start_front(form.pool.intercept if isinstance(form.pool, Layer) else 0.0)
        for k, (part, weight) in enumerate(zip(form.parts, pool_weights(form), strict=True)):
            sign = self.plan.sign if weight >= 0 else -self.plan.sign
            front, steps = self._part(k, part, sign, choice)
            own.append(steps)
            if isinstance(form.pool, Alone):
                return Front(front.cost + price, front.score, ()), [front], own
            risk = part.link.value(front.score)
            keep = pareto(front.cost, sign * risk)
            parts.append(_restricted(front, keep))
            pool = add_options(pool, front.cost[keep], weight * risk[keep], self.plan.sign)
        return Front(pool.cost + price, pool.score, pool.came), parts, own

    def _part(self, k: int, part: Part | TreePart, sign: int, choice: Choice) -> tuple[Front, Steps]:
        """Return the front of one part's score, and the feature and targets behind every step."""
        mine = [name for name in part.features if name in self.moves and name not in self.plan.shared]
        if isinstance(part, TreePart):
            return self._trees(part, sign, {name: self.moves[name] for name in mine}, choice)
        front = start_front(part.intercept)
        steps = []
        for name in part.features:
            stay = self.rows.terms[k][name][self.row]
            if name in choice:
                stay = self.plan.moves[name].scores[k][choice[name]]
            if name not in mine:
                front = Front(front.cost, front.score + stay, front.came)
                continue
            own = self.moves[name]
            cost = np.concatenate([[0.0], self._prices(own)])
            score = np.concatenate([[stay], self.plan.moves[name].scores[k][own.target]])
            keep = pareto(cost, sign * score)
            front = add_options(front, cost[keep], score[keep], sign)
            steps.append((name, np.concatenate([[-1], own.target])[keep]))
        return front, steps

    def _trees(self, part: TreePart, sign: int, moves: Mapping[str, Moves], choice: Choice) -> tuple[Front, Steps]:
        """Return the front of a part of trees, by running through all combinations of its moves."""
        names = list(moves)
        sizes = [len(moves[name].target) + 1 for name in names]
        total = math.prod(sizes)
        _limit(total, f"the trees of {part.name!r}")
        taken = np.unravel_index(np.arange(total), tuple(sizes)) if names else ()
        cost = np.zeros(total)
        columns: dict[str, list[Value]] = {}
        for name in part.features:
            now = self.rows.value(self.row, name)
            if name in choice:
                now = self.plan.moves[name].values[choice[name]]
            columns[name] = [now] * total
        for name, option in zip(names, taken, strict=True):
            cost += np.concatenate([[0.0], self._prices(moves[name])])[option]
            values = [columns[name][0], *(self.plan.moves[name].values[t] for t in moves[name].target)]
            columns[name] = [values[o] for o in option.tolist()]
        score = part.score(value_frame(columns), self.plan.form.schema)
        keep = pareto(cost, sign * score)
        steps = [(name, np.concatenate([[-1], moves[name].target])) for name in names]
        # The steps of this front are not taken one after the other: each holds its option of every state.
        came = tuple((np.arange(len(keep)), option[keep]) for option in taken)
        return Front(cost[keep], score[keep], came), steps

    def _risk(self, score: Floats) -> Floats:
        link = self.plan.form.last_link
        return np.minimum(score, 1.0) if link is None else link.value(np.ascontiguousarray(score))


def _restricted(front: Front, keep: Index) -> Front:
    """Return some states of a front."""
    if not front.came:
        return Front(front.cost[keep], front.score[keep], ())
    *before, (parents, options) = front.came
    return Front(front.cost[keep], front.score[keep], (*before, (parents[keep], options[keep])))


def _limit(total: int, what: str) -> None:
    if total > MOST_COMBINATIONS:
        raise DataError(
            f"what_if: {what} can move in {total:,} combined ways; at most {MOST_COMBINATIONS:,} are run through. "
            "Freeze some features."
        )
