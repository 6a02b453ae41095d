"""The Pareto front of a form for one applicant: each cost that buys a lower score, and the moves that do it.

The front is built by dynamic programming: feature by feature inside a part, then part by part through the pool.
Features that pairs connect come last, as joint options (see `elimination`). Features that several parts read tie these
together, so there is a front for every combination of their moves. In a part of trees all combinations are scored.

Scores are added in the order in which the form adds them, and rounding never swaps two numbers. So the scores of the
front are those of the form to the last bit (with pairs, but for rounding), and dropping a dominated state never drops
the best one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.errors import DataError
from plainrisk.explain.atoms import value_frame
from plainrisk.explain.elimination import Front, Options, joint_options, pareto
from plainrisk.explain.moves import FeatureMoves, Moves
from plainrisk.explain.options import Value
from plainrisk.explain.reference import pool_weights
from plainrisk.form import Alone, Part, RiskForm, TreePart

__all__ = ["Applicant", "Choice", "FormFront", "FormFronts", "Problem", "moves_of"]

Choice = dict[str, int]  # the target each feature moves to; features that are not listed stay

MOST_COMBINATIONS = 200_000  # of the moves in one part of trees, or of features shared by parts
STAY = -1  # the target of the option to leave a feature as it is


@dataclass(frozen=True)
class Problem:
    """What all applicants share.

    Attributes
    ----------
    form : RiskForm
    sign : +1 if the risk must fall, -1 if it must rise
    targets : of each feature that can move
    count_features : whether the number of features counts before the number of steps
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
    """One row, as the search reads it.

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
        """Return a value as a number, or NaN."""
        value = self.values[name]
        return value if isinstance(value, float) else math.nan


def moves_of(front: Front, state: int) -> Choice:
    """Return which feature moves where in a state of a front."""
    targets = zip(front.features, front.choice[state].tolist(), strict=True)
    return {name: target for name, target in targets if target != STAY}


@dataclass(frozen=True)
class FormFront:
    """The front of a whole form for one choice of the shared features, with the risk of every state."""

    front: Front
    risk: Floats


@dataclass(frozen=True)
class FormFronts:
    """Builds the fronts of a form for one applicant and the moves that applicant has."""

    problem: Problem
    applicant: Applicant
    moves: Mapping[str, Moves]

    def build(self) -> list[FormFront]:
        """Return a front for every combination of moves of the shared features, the cheapest first."""
        names = tuple(name for name in self.problem.shared if name in self.moves)
        options = [list(zip(*self._options(name), strict=True)) for name in names]
        _limit(math.prod(map(len, options)), "the features that are in several subscales")
        start = 0.0 if isinstance(self.problem.form.pool, Alone) else self.problem.form.pool.intercept
        starts = []
        for taken in itertools.product(*options):
            price = math.fsum(price for price, _ in taken)
            targets = np.array([target for _, target in taken], np.intp).reshape(1, -1)
            starts.append(Front(names, np.array([price]), np.array([start]), targets))
        return [self._pool(front) for front in sorted(starts, key=lambda front: front.cost[0])]

    def _options(self, name: str) -> tuple[Floats, Index]:
        """Return the price and the target of every option of a feature, the first to let it stay."""
        moves = self.moves[name]
        price = np.concatenate([[0.0], moves.price + self.problem.per_feature])
        return price, np.concatenate([[STAY], moves.target])

    def _pool(self, total: Front) -> FormFront:
        """Return the front of (cost, score) of the whole form, from that of the features that parts share."""
        form, sign = self.problem.form, self.problem.sign
        choice = moves_of(total, 0)
        for k, (part, weight) in enumerate(zip(form.parts, pool_weights(form), strict=True)):
            sign_of_part = sign if weight >= 0 else -sign
            front = self._part(k, part, sign_of_part, choice)
            if not isinstance(form.pool, Alone):
                risk = part.link.value(front.score)
                keep = pareto(front.cost, sign_of_part * risk)
                front = replace(front.take(keep), score=weight * risk[keep])
            total = total.plus(front, sign)
        link = form.last_link
        return FormFront(total, np.minimum(total.score, 1.0) if link is None else link.value(total.score))

    def _part(self, k: int, part: Part | TreePart, sign: int, choice: Choice) -> Front:
        """Return the front of one part's score."""
        if isinstance(part, TreePart):
            return self._trees(part, sign, choice)
        front = Front((), np.zeros(1), np.array([part.intercept]), np.empty((1, 0), np.intp))
        paired = {name for pair in part.pairs for name in pair.features}
        for name in part.shapes:
            if name in paired:
                continue
            cost, target, score = self._feature(k, name, choice)
            if len(cost) == 1:
                front = replace(front, score=front.score + score)
                continue
            options = Front((name,), cost, score, target[:, None])
            front = front.plus(options.take(pareto(cost, sign * score)), sign)
        for joint in self._joint(k, part, sign, choice):
            front = front.plus(joint, sign)
        return front

    def _feature(self, k: int, name: str, choice: Choice) -> tuple[Floats, Index, Floats]:
        """Return the prices and targets of a feature's options, and what they add to a part alone."""
        stay = self.applicant.terms[k].get(name, 0.0)
        if name in choice:
            stay = self.problem.targets[name].scores[k][choice[name]]
        if name not in self.moves or name in self.problem.shared:
            return np.zeros(1), np.array([STAY]), np.array([stay])
        cost, target = self._options(name)
        return cost, target, np.concatenate([[stay], self.problem.targets[name].scores[k][target[1:]]])

    def _joint(self, k: int, part: Part, sign: int, choice: Choice) -> list[Front]:
        """Return the fronts of the features that pairs of a part connect."""
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

    def _trees(self, part: TreePart, sign: int, choice: Choice) -> Front:
        """Return the front of a part of trees, by scoring all combinations of its moves."""
        names = tuple(name for name in part.features if name in self.moves and name not in self.problem.shared)
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
        targets = [options[name][1][taken[name]] for name in names]
        choices = np.column_stack(targets) if names else np.empty((1, 0), np.intp)
        return Front(names, cost, score, choices).take(pareto(cost, sign * score))

    def _values(self, name: str, choice: Choice, targets: Iterable[int]) -> list[Value]:
        """Return the value of a feature that is unchanged or chosen, and its values at the targets."""
        open_to = self.problem.targets
        stay = open_to[name].values[choice[name]] if name in choice else self.applicant.values[name]
        return [stay, *(open_to[name].values[t] for t in targets)]


def _limit(total: int, what: str) -> None:
    if total > MOST_COMBINATIONS:
        raise DataError(
            f"what_if: {what} can move in {total:,} combined ways; at most {MOST_COMBINATIONS:,} are searched. "
            "Freeze some features."
        )
