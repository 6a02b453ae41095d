r"""The provably cheapest changes that bring an applicant to a target.

The risk is a rising function of every part's additive score, so a state of the search needs two numbers only: what
it cost so far, and the score so far. Parts are run through feature by feature, then pooled part by part, keeping the
Pareto front of the two (see `fronts`): dynamic programming over all combinations of moves, exact for every link and
pool. Features that stand in several parts tie these together; they are run through outermost. Parts of trees are run
through in full.

Further answers come from best-first search over what is held fixed: each must leave out at least one feature of every
answer before it, and is the cheapest that does.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.explain.answers import Answer, Change, WhatIf, WhatIfs
from plainrisk.explain.applicants import Applicants
from plainrisk.explain.form_fronts import Choice, FormFront, FrontBuilder
from plainrisk.explain.fronts import Front
from plainrisk.explain.moves import FeatureMoves, Moves
from plainrisk.explain.places import Value
from plainrisk.explain.reference import Adverse
from plainrisk.form import RiskForm

__all__ = ["Planner"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
# Applicants whose likely answers are scored together; their fronts are kept meanwhile.
CHUNK, SHARED_CHUNK = 256, 8


@dataclass(frozen=True)
class Planner:
    """A form, a target and the moves that are allowed."""

    form: RiskForm
    target: float
    adverse: Adverse
    sign: int
    answers: int
    moves: Mapping[str, FeatureMoves]
    count_features: bool

    def solve(self, X: Any) -> WhatIfs:
        """Return the answers for every row."""
        rows = Applicants(self.form, self.form.align(X), self.moves)
        found: list[WhatIf] = []
        size = SHARED_CHUNK if self.shared else CHUNK
        for start in range(0, len(rows), size):
            chunk = [_Problem(self, rows, i) for i in range(start, min(start + size, len(rows)))]
            _score_together(rows, chunk)
            found += [problem.solve() for problem in chunk]
        return WhatIfs(tuple(found))

    @cached_property
    def per_feature(self) -> float:
        """What changing a feature costs beside its steps: more than all steps together, if features count first."""
        if not self.count_features:
            return 0.0
        most = [len(m.places.levels) * m.known.step_cost for m in self.moves.values()]
        return 1.0 + math.fsum(most)

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """The features that can move and stand in several parts."""
        return tuple(f for f in self.moves if sum(f in part.features for part in self.form.parts) > 1)

    def reaches(self, risk: float) -> bool:
        """Whether a risk is good enough."""
        return self.sign * risk <= self.sign * self.target


class _Problem:
    """One applicant's way to the target."""

    def __init__(self, plan: Planner, rows: Applicants, row: int) -> None:
        self.plan, self.rows, self.row = plan, rows, row
        self.moves: dict[str, Moves] = {}
        self.scores: dict[tuple[tuple[str, int], ...], float] = {}
        self._fronts: list[FormFront] | None = None
        for name, moves in plan.moves.items():
            found = moves.from_place(int(rows.places[name][row]), rows.number(row, name))
            if len(found.target):
                self.moves[name] = found

    def solve(self) -> WhatIf:
        plan, risk = self.plan, float(self.rows.risk[self.row])
        if plan.reaches(risk):
            stay = Answer((), risk, 0.0)
            return WhatIf(risk, plan.target, plan.adverse, (stay,), stay)
        found = self._best(frozenset())
        answers = [] if found is None else list(itertools.islice(self._diverse(found), plan.answers))
        reachable = self._answer(self._furthest(frozenset()))
        self._fronts = None  # large, and not needed again
        return WhatIf(risk, plan.target, plan.adverse, tuple(answers), reachable)

    def _diverse(self, first: Answer) -> Iterator[Answer]:
        """Give the cheapest answer, then the cheapest that contains none of those given, and so on."""
        given: list[Answer] = []
        tried = {frozenset[str]()}
        queue = [(self._price(first), 0, frozenset[str](), first)]
        while queue:
            _, _, held, answer = heapq.heappop(queue)
            blocking = next((a for a in given if set(a.features) <= set(answer.features)), None)
            if blocking is None:
                yield answer
                given.append(answer)
                blocking = answer
            for name in blocking.features:
                more = held | {name}
                if more in tried:
                    continue
                tried.add(more)
                found = self._best(more)
                if found is not None:
                    heapq.heappush(queue, (self._price(found), len(tried), more, found))

    def _price(self, answer: Answer) -> float:
        return answer.cost + self.plan.per_feature * len(answer.changes)

    # ---- the search

    def likely(self) -> list[Choice]:
        """Return the choices the search will ask to be scored: the cheapest that reaches the target, the furthest."""
        if self.plan.reaches(float(self.rows.risk[self.row])):
            return []
        found = [(front.cost[states[0]], f.read(int(states[0]))) for f, front, states in self._reaching(frozenset())]
        return [*(choice for _, choice in sorted(found, key=lambda entry: entry[0])[:1]), self._furthest(frozenset())]

    def _reaching(self, held: frozenset[str]) -> Iterator[tuple[FormFront, Front, Index]]:
        """Give the fronts that reach the target, and the states that do."""
        for f in self._all_fronts(held):
            states = np.flatnonzero(self.plan.sign * f.risk <= self.plan.sign * self.plan.target)
            if len(states):
                yield f, f.front, states

    def _best(self, held: frozenset[str]) -> Answer | None:
        """Return the cheapest answer with some features held, or None."""
        best: tuple[float, Choice] | None = None
        for f, front, states in self._reaching(held):
            for state in states.tolist():
                if best is not None and front.cost[state] >= best[0]:
                    break
                choice = f.read(state)
                # What was added up is what scoring adds up; should a sigmoid round another way, the next will do.
                if self.plan.reaches(self._scored(choice)):
                    best = (float(front.cost[state]), choice)
                    break
        return None if best is None else self._answer(best[1])

    def _furthest(self, held: frozenset[str]) -> Choice:
        """Return the cheapest way to the best risk there is."""
        found = []
        for f in self._all_fronts(held):
            state = int(np.argmax(f.risk == f.risk[-1]))
            found.append((self.plan.sign * float(f.risk[-1]), float(f.front.cost[state]), f, state))
        _, _, best, state = min(found, key=lambda entry: entry[:2])
        return best.read(state)

    def _all_fronts(self, held: frozenset[str]) -> list[FormFront]:
        """Return a front for every choice of the features that several parts share."""
        if not held and self._fronts is not None:
            return self._fronts
        moves = {name: m for name, m in self.moves.items() if name not in held}
        found = FrontBuilder(self.plan, self.rows, self.row, moves).fronts()
        if not held:
            self._fronts = found
        return found

    # ---- reading the result

    def changed(self, choice: Choice) -> dict[str, Value]:
        """Return the concrete values of a choice."""
        found = {}
        for name, target in choice.items():
            place = int(self.rows.places[name][self.row])
            found[name] = self.plan.moves[name].concrete(target, self.rows.number(self.row, name), place)
        return found

    def _scored(self, choice: Choice) -> float:
        key = _key(choice)
        if key not in self.scores:
            self.scores[key] = float(self.rows.scored([(self.row, self.changed(choice))])[0])
        return self.scores[key]

    def _answer(self, choice: Choice) -> Answer:
        values = self.changed(choice)
        changes = []
        for name in (name for name in self.plan.moves if name in choice):
            feature, moves = self.plan.moves[name], self.moves[name]
            at = int(np.flatnonzero(moves.target == choice[name])[0])
            changes.append(
                Change(
                    feature=name,
                    value=self.rows.value(self.row, name),
                    level=feature.places.levels.labels[int(self.rows.places[name][self.row])],
                    to_value=values[name],
                    to_level=feature.labels[choice[name]],
                    steps=int(moves.steps[at]),
                    cost=float(moves.price[at]),
                )
            )
        return Answer(tuple(changes), self._scored(choice), math.fsum(c.cost for c in changes))


def _key(choice: Choice) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(choice.items()))


def _score_together(rows: Applicants, problems: list[_Problem]) -> None:
    """Score the likely answers of many applicants in one go."""
    asked = [(problem, choice) for problem in problems for choice in problem.likely()]
    if asked:
        risks = rows.scored([(problem.row, problem.changed(choice)) for problem, choice in asked])
        for (problem, choice), risk in zip(asked, risks.tolist(), strict=True):
            problem.scores[_key(choice)] = risk
