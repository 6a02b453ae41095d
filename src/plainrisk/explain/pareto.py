"""Pareto fronts of (cost, score): every cost at which a lower score can be had, and the moves that give it.

A front is kept sorted: costs rise strictly, scores fall strictly. Scores are added up in the order in which the form
adds them, and rounding never swaps two numbers, so the front's scores are the form's own, to the last bit, and
dropping a dominated state never drops the best one. With pairs they are the form's own but for rounding.

The front of a whole form is built by dynamic programming: feature by feature inside a part, then part by part through
the pool. Features that pairs connect are one step, of joint options (see `elimination`), after all others. Features
that are in several parts tie these together, so there is a front for every combination of their moves. All combinations
of moves in a part of trees are scored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.errors import DataError
from plainrisk.explain.atoms import FeatureMoves, Moves, value_frame
from plainrisk.explain.elimination import JointOptions, Options, check_states, joint_options, pareto
from plainrisk.explain.options import Value
from plainrisk.explain.reference import pool_weights
from plainrisk.form import Alone, Part, RiskForm, TreePart

__all__ = ["Applicant", "Choice", "FormFront", "FormFronts", "Front", "Problem", "add_options", "start_front"]

Choice = dict[str, int]  # the target each feature moves to; features that are not listed stay
# The features behind every step of a front, and the targets of each option: (options, features).
Steps = list[tuple[tuple[str, ...], Index]]

MOST_COMBINATIONS = 200_000  # of the moves in one part of trees, or of features shared by parts
STAY = -1  # the target of the option to leave a feature as it is


# ---- fronts of two numbers


@dataclass(frozen=True)
class Front:
    """Pareto-optimal states.

    Attributes
    ----------
    cost, score : (states,)
    history : for every step, the state of the front before it and the option taken: two arrays (states of that step,)
    """

    cost: Floats
    score: Floats
    history: tuple[tuple[Index, Index], ...] = ()

    def path(self, state: int) -> list[int]:
        """Return the option taken at every step on the way to a state."""
        taken = []
        for parents, options in reversed(self.history):
            taken.append(int(options[state]))
            state = int(parents[state])
        return taken[::-1]

    def restricted(self, keep: Index) -> Front:
        """Return some of the states."""
        history = self.history
        if history:
            *before, (parents, options) = history
            history = (*before, (parents[keep], options[keep]))
        return Front(self.cost[keep], self.score[keep], history)


def start_front(score: float) -> Front:
    """Return the front of one state, before anything is added."""
    return Front(np.zeros(1), np.array([score]))


def add_options(front: Front, cost: Floats, score: Floats, sign: int) -> Front:
    """Add one of several options to every state and keep the best; sign -1 prefers high scores."""
    m = len(cost)
    check_states(len(front.cost) * m)
    costs = (front.cost[:, None] + cost).ravel()
    scores = (front.score[:, None] + score).ravel()
    keep = pareto(costs, sign * scores)
    return Front(costs[keep], scores[keep], (*front.history, (keep // m, keep % m)))


# ---- the front of a form


@dataclass(frozen=True)
class Problem:
    """What is the same for all applicants.

    Attributes
    ----------
    form : RiskForm
    sign : +1 if the risk must fall, -1 if it must rise
    targets : where each feature that can move can be moved to
    count_features : whether few features come before few steps
    """

    form: RiskForm
    sign: int
    targets: Mapping[str, FeatureMoves]
    count_features: bool

    @cached_property
    def per_feature(self) -> float:
        """The cost of changing a feature, on top of its steps; more than all steps together if features count first."""
        if not self.count_features:
            return 0.0
        return 1.0 + math.fsum(len(t.atoms.levels) * t.declared.step_cost for t in self.targets.values())

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """The features that can move and are in several parts."""
        return tuple(f for f in self.targets if sum(f in part.features for part in self.form.parts) > 1)


@dataclass(frozen=True)
class Applicant:
    """One row as the search sees it.

    Attributes
    ----------
    risk : float
    values : of the features the form reads, None where missing
    terms : per part, what each feature adds to the score by itself
    pair_levels : per part and pair, the levels of the two features
    atoms : the atom of each feature that can move
    """

    risk: float
    values: dict[str, Value]
    terms: list[dict[str, float]]
    pair_levels: list[list[tuple[int, int]]]
    atoms: dict[str, int]

    def number(self, name: str) -> float:
        """Return a value as a number, NaN where it is none."""
        value = self.values[name]
        return value if isinstance(value, float) else math.nan


@dataclass(frozen=True)
class FormFront:
    """The front of a whole form for one choice of the shared features, and what is needed to read its states."""

    front: Front
    parts: list[Front]
    steps: list[Steps]
    shared: Choice
    risk: Floats

    def read(self, state: int) -> Choice:
        """Return which feature moves where."""
        states = self.front.path(state) if self.front.history else [state]
        choice = dict(self.shared)
        for part, steps, at in zip(self.parts, self.steps, states, strict=True):
            for (names, targets), option in zip(steps, part.path(at), strict=True):
                moved = zip(names, targets[option].tolist(), strict=True)
                choice |= {name: target for name, target in moved if target != STAY}
        return choice


@dataclass(frozen=True)
class FormFronts:
    """Builds the fronts of a form for one applicant and the moves that are open to them."""

    problem: Problem
    applicant: Applicant
    moves: Mapping[str, Moves]

    def build(self) -> list[FormFront]:
        """Return a front for every combination of moves of the features that several parts share, cheapest first."""
        names = [name for name in self.problem.shared if name in self.moves]
        options = [list(zip(*self._options(name), strict=True)) for name in names]
        _limit(math.prod(map(len, options)), "the features that stand in several subscales")
        choices = []
        for taken in itertools.product(*options):
            choice = {name: int(t) for name, (_, t) in zip(names, taken, strict=True) if t != STAY}
            choices.append((math.fsum(price for price, _ in taken), choice))
        return [self._pool(choice, price) for price, choice in sorted(choices, key=lambda entry: entry[0])]

    def _options(self, name: str) -> tuple[Floats, Index]:
        """Return the price and the target of every option of a feature, the first to let it stay."""
        moves = self.moves[name]
        price = np.concatenate([[0.0], moves.price + self.problem.per_feature])
        return price, np.concatenate([[STAY], moves.target])

    def _pool(self, choice: Choice, price: float) -> FormFront:
        """Return the front of (cost, score) of the whole form."""
        form, sign = self.problem.form, self.problem.sign
        parts, steps = [], []
        total = start_front(0.0 if isinstance(form.pool, Alone) else form.pool.intercept)
        for k, (part, weight) in enumerate(zip(form.parts, pool_weights(form), strict=True)):
            own_sign = sign if weight >= 0 else -sign
            front, step = self._part(k, part, own_sign, choice)
            if not isinstance(form.pool, Alone):
                risk = part.link.value(front.score)
                keep = pareto(front.cost, own_sign * risk)
                front = front.restricted(keep)
                total = add_options(total, front.cost, weight * risk[keep], sign)
            parts.append(front)
            steps.append(step)
        if isinstance(form.pool, Alone):
            total = Front(parts[0].cost, parts[0].score)
        link = form.last_link
        risk = np.minimum(total.score, 1.0) if link is None else link.value(total.score)
        return FormFront(Front(total.cost + price, total.score, total.history), parts, steps, choice, risk)

    def _part(self, k: int, part: Part | TreePart, sign: int, choice: Choice) -> tuple[Front, Steps]:
        """Return the front of one part's score, and the feature and targets behind every step."""
        if isinstance(part, TreePart):
            return self._trees(part, sign, choice)
        front = start_front(part.intercept)
        steps: Steps = []
        paired = {name for pair in part.pairs for name in pair.features}
        for name in part.shapes:
            if name in paired:
                continue
            cost, target, score = self._feature(k, name, choice)
            if len(cost) == 1:
                front = Front(front.cost, front.score + score[0], front.history)
                continue
            keep = pareto(cost, sign * score)
            front = add_options(front, cost[keep], score[keep], sign)
            steps.append(((name,), target[keep, None]))
        for joint in self._joint(k, part, sign, choice):
            front = add_options(front, joint.cost, joint.score, sign)
            steps.append((joint.features, joint.choice))
        return front, steps

    def _feature(self, k: int, name: str, choice: Choice) -> tuple[Floats, Index, Floats]:
        """Return the prices and targets of the options of a feature, and what they add to a part by themselves."""
        stay = self.applicant.terms[k].get(name, 0.0)
        if name in choice:
            stay = self.problem.targets[name].scores[k][choice[name]]
        if name not in self.moves or name in self.problem.shared:
            return np.zeros(1), np.array([STAY]), np.array([stay])
        cost, target = self._options(name)
        return cost, target, np.concatenate([[stay], self.problem.targets[name].scores[k][target[1:]]])

    def _joint(self, k: int, part: Part, sign: int, choice: Choice) -> list[JointOptions]:
        """Return the joint options of the features that pairs of a part connect."""
        options = {}
        for name in dict.fromkeys(name for pair in part.pairs for name in pair.features):
            cost, target, score = self._feature(k, name, choice)
            levels = {}
            for j, axis, _ in part.pairs_with(name):
                stay = self.applicant.pair_levels[k][j][axis]
                if name in choice:
                    stay = self.problem.targets[name].pair_levels[k, j][choice[name]]
                moved = self.problem.targets[name].pair_levels[k, j][target[1:]] if len(target) > 1 else ()
                levels[j] = np.array([stay, *moved], np.intp)
            options[name] = Options(cost, score, target, levels)
        return joint_options(options, [(pair.features, np.asarray(pair.scores)) for pair in part.pairs], sign)

    def _trees(self, part: TreePart, sign: int, choice: Choice) -> tuple[Front, Steps]:
        """Return the front of a part of trees, by scoring all combinations of its moves."""
        names = [name for name in part.features if name in self.moves and name not in self.problem.shared]
        options = {name: self._options(name) for name in names}
        sizes = tuple(len(cost) for cost, _ in options.values())
        total = math.prod(sizes)
        _limit(total, f"the trees of {part.name!r}")
        taken = dict(zip(names, np.unravel_index(np.arange(total), sizes) if names else (), strict=True))
        columns = {}
        for name in part.features:
            values = self._values(name, choice, options[name][1][1:] if name in options else ())
            columns[name] = [values[o] for o in taken[name].tolist()] if name in options else values * total
        cost = np.zeros(total) + sum(options[name][0][taken[name]] for name in names)
        score = part.score(value_frame(columns), self.problem.form.schema)
        keep = pareto(cost, sign * score)
        # The steps of this front are not taken one after the other: each holds its option of every state.
        history = tuple((np.arange(len(keep)), option[keep]) for option in taken.values())
        return Front(cost[keep], score[keep], history), [((name,), options[name][1][:, None]) for name in names]

    def _values(self, name: str, choice: Choice, targets: Iterable[int]) -> list[Value]:
        """Return the value of a feature that stays as it is, or as it was chosen, and its values at the targets."""
        open_to = self.problem.targets
        stay = open_to[name].values[choice[name]] if name in choice else self.applicant.values[name]
        return [stay, *(open_to[name].values[t] for t in targets)]


def _limit(total: int, what: str) -> None:
    if total > MOST_COMBINATIONS:
        raise DataError(
            f"what_if: {what} can move in {total:,} combined ways; at most {MOST_COMBINATIONS:,} are run through. "
            "Freeze some features."
        )
