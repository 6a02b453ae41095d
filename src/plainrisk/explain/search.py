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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError
from plainrisk.explain.answers import Answer, Change, WhatIf, WhatIfs
from plainrisk.explain.fronts import Front, add_options, pareto, start_front
from plainrisk.explain.moves import FeatureMoves, Moves
from plainrisk.explain.places import Value, value_frame
from plainrisk.explain.reference import Adverse, pool_weights
from plainrisk.form import Alone, Layer, Part, RiskForm, TreePart
from plainrisk.frames import Frame

__all__ = ["Planner"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Choice = dict[str, int]  # the target each feature moves to; those not listed stay
Steps = list[tuple[str, Index]]  # the feature behind every step of a front, and the target of each option

MOST_COMBINATIONS = 200_000  # of the moves in one part of trees, or of features shared by parts


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
        rows = _Rows(self.form, self.form.align(X), self.moves)
        return WhatIfs(tuple(_Problem(self, rows, i).solve() for i in range(rows.frame.n_rows)))

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


class _Rows:
    """The applicants, read once."""

    def __init__(self, form: RiskForm, frame: Frame, moves: Mapping[str, FeatureMoves]) -> None:
        self.form = form
        self.frame = frame
        self.risk = form.risk(frame)
        self.terms = [p.terms(frame, form.schema) if isinstance(p, Part) else {} for p in form.parts]
        self.places = {name: m.places.levels.codes(frame, name) for name, m in moves.items()}
        names = dict.fromkeys(name for part in form.parts for name in part.features)
        self.columns = {name: _plain(form, frame, name) for name in names}

    def value(self, row: int, name: str) -> Value:
        value = self.columns[name][row]
        return None if value is None or value != value else value if isinstance(value, str) else float(value)

    def number(self, row: int, name: str) -> float:
        value = self.value(row, name)
        return value if isinstance(value, float) else math.nan

    def scored(self, row: int, changed: Mapping[str, Value]) -> float:
        """Return the risk of a row with some values changed, by scoring it."""
        values = {name: [changed.get(name, self.value(row, name))] for name in self.columns}
        return float(self.form.risk(value_frame(values))[0])


def _plain(form: RiskForm, frame: Frame, name: str) -> npt.NDArray[Any]:
    if form.schema.features[name].kind == "categorical":
        column = frame.labels(name)
        return np.array([*column.labels, None], dtype=object)[column.codes]
    return frame.numbers(name)


class _Problem:
    """One applicant's way to the target."""

    def __init__(self, plan: Planner, rows: _Rows, row: int) -> None:
        self.plan, self.rows, self.row = plan, rows, row
        self.moves: dict[str, Moves] = {}
        self._scores: dict[tuple[tuple[str, int], ...], float] = {}
        for name, moves in plan.moves.items():
            found = moves.from_place(int(rows.places[name][row]), rows.number(row, name))
            if len(found.target):
                self.moves[name] = found

    def solve(self) -> WhatIf:
        plan, risk = self.plan, float(self.rows.risk[self.row])
        if plan.reaches(risk):
            stay = Answer((), risk, 0.0)
            return WhatIf(risk, plan.target, plan.adverse, (stay,), stay)
        found, reachable = self._best(frozenset())
        answers = [] if found is None else list(itertools.islice(self._diverse(found), plan.answers))
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
                found, _ = self._best(more)
                if found is not None:
                    heapq.heappush(queue, (self._price(found), len(tried), more, found))

    def _price(self, answer: Answer) -> float:
        return answer.cost + self.plan.per_feature * len(answer.changes)

    # ---- the search

    def _best(self, held: frozenset[str]) -> tuple[Answer | None, Answer]:
        """Return the cheapest answer, or None, and the best that can be reached, with some features held."""
        moves = {name: m for name, m in self.moves.items() if name not in held}
        best: tuple[float, Choice] | None = None
        furthest: tuple[float, float, Choice] | None = None
        for price, choice in self._shared(moves):
            if held and best is not None and price >= best[0]:
                break  # only the first call needs to know how far one could go
            front, parts, own = self._pool(moves, choice, price)
            risk = self._risk(front.score)
            found = self._first(front, risk, lambda s: {**choice, **_choices(front, parts, own, s)})  # noqa: B023
            if found is not None and (best is None or found[0] < best[0]):
                best = found
            state = int(np.argmax(risk == risk[-1]))
            far = (self.plan.sign * float(risk[-1]), float(front.cost[state]))
            if furthest is None or far < furthest[:2]:
                furthest = (*far, {**choice, **_choices(front, parts, own, state)})
        assert furthest is not None
        return None if best is None else self._answer(best[1]), self._answer(furthest[2])

    def _first(self, front: Front, risk: Floats, read: Callable[[int], Choice]) -> tuple[float, Choice] | None:
        """Return the cheapest state that reaches the target, verified by scoring it."""
        good = np.flatnonzero(self.plan.sign * risk <= self.plan.sign * self.plan.target)
        for state in good.tolist():
            choice = read(state)
            # What was added up is what scoring adds up; should a sigmoid round another way, the next will do.
            if self.plan.reaches(self._scored(choice)):
                return float(front.cost[state]), choice
        return None

    def _shared(self, moves: Mapping[str, Moves]) -> Iterator[tuple[float, Choice]]:
        """Give every combination of moves of the features that several parts share, with its price, cheapest first."""
        names = [name for name in self.plan.shared if name in moves]
        sizes = [len(moves[name].target) + 1 for name in names]
        _limit(math.prod(sizes), "the features that stand in several subscales")
        options = [
            [(0.0, -1), *zip(self._prices(moves[n]).tolist(), moves[n].target.tolist(), strict=True)] for n in names
        ]
        found = []
        for taken in itertools.product(*options):
            choice = {name: target for name, (_, target) in zip(names, taken, strict=True) if target >= 0}
            found.append((math.fsum(price for price, _ in taken), choice))
        return iter(sorted(found, key=lambda entry: entry[0]))

    def _prices(self, moves: Moves) -> Floats:
        return np.asarray(moves.price + self.plan.per_feature)

    def _pool(self, moves: Mapping[str, Moves], choice: Choice, price: float) -> tuple[Front, list[Front], list[Steps]]:
        """Return the front of (cost, score) of the whole form, and what is needed to read its states."""
        form = self.plan.form
        parts, own = [], []
        pool = start_front(form.pool.intercept if isinstance(form.pool, Layer) else 0.0)
        for k, (part, weight) in enumerate(zip(form.parts, pool_weights(form), strict=True)):
            sign = self.plan.sign if weight >= 0 else -self.plan.sign
            front, steps = self._part(k, part, sign, moves, choice)
            own.append(steps)
            if isinstance(form.pool, Alone):
                return Front(front.cost + price, front.score, ()), [front], own
            risk = part.link.value(front.score)
            keep = pareto(front.cost, sign * risk)
            parts.append(_restricted(front, keep))
            pool = add_options(pool, front.cost[keep], weight * risk[keep], self.plan.sign)
        return Front(pool.cost + price, pool.score, pool.came), parts, own

    def _part(
        self, k: int, part: Part | TreePart, sign: int, moves: Mapping[str, Moves], choice: Choice
    ) -> tuple[Front, Steps]:
        """Return the front of one part's score, and the feature and targets behind every step."""
        mine = [name for name in part.features if name in moves and name not in self.plan.shared]
        if isinstance(part, TreePart):
            return self._trees(part, sign, {name: moves[name] for name in mine}, choice)
        front = start_front(part.intercept)
        steps = []
        for name in part.features:
            stay = self.rows.terms[k][name][self.row]
            if name in choice:
                stay = self.plan.moves[name].scores[k][choice[name]]
            if name not in mine:
                front = Front(front.cost, front.score + stay, front.came)
                continue
            own = moves[name]
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

    # ---- reading the result

    def _risk(self, score: Floats) -> Floats:
        link = self.plan.form.last_link
        return np.minimum(score, 1.0) if link is None else link.value(np.ascontiguousarray(score))

    def _changed(self, choice: Choice) -> dict[str, Value]:
        found = {}
        for name, target in choice.items():
            place = int(self.rows.places[name][self.row])
            found[name] = self.plan.moves[name].concrete(target, self.rows.number(self.row, name), place)
        return found

    def _scored(self, choice: Choice) -> float:
        key = tuple(sorted(choice.items()))
        if key not in self._scores:
            self._scores[key] = self.rows.scored(self.row, self._changed(choice))
        return self._scores[key]

    def _answer(self, choice: Choice) -> Answer:
        values = self._changed(choice)
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


def _restricted(front: Front, keep: Index) -> Front:
    """Return some states of a front."""
    if not front.came:
        return Front(front.cost[keep], front.score[keep], ())
    *before, (parents, options) = front.came
    return Front(front.cost[keep], front.score[keep], (*before, (parents[keep], options[keep])))


def _choices(front: Front, parts: list[Front], own: list[Steps], state: int) -> Choice:
    """Read from a state of the whole front which feature moves where."""
    states = front.path(state) if front.came else [state]
    found: Choice = {}
    for part, steps, at in zip(parts, own, states, strict=True):
        for (name, targets), option in zip(steps, part.path(at), strict=True):
            if targets[option] >= 0:
                found[name] = int(targets[option])
    return found


def _limit(total: int, what: str) -> None:
    if total > MOST_COMBINATIONS:
        raise DataError(
            f"what_if: {what} can move in {total:,} combined ways; at most {MOST_COMBINATIONS:,} are run through. "
            "Freeze some features."
        )
