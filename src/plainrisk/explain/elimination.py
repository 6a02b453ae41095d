"""Joint options of features that pairs connect, by variable elimination.

What a pair adds depends on two features, so the features that pairs connect are chosen together. They are taken one
after the other. A feature stays *open* while some pair connects it with a feature that is still to come. Partial
choices are compared only if they agree in the levels that open features have in their pairs; of these the Pareto front
of (cost, score) is enough. So the work grows with the number of features open at a time, not with their total number,
and the result is exact.

Scores are added in another order than the form's, so they agree with it but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Array, Floats, Index
from plainrisk.errors import DataError
from plainrisk.explain.atoms import Atoms, atoms_of
from plainrisk.form import Line, Part, RiskForm, Shape

__all__ = ["Front", "Options", "PairScores", "joint_options", "pareto", "score_limits"]

PairScores = tuple[tuple[str, str], Floats]  # two features, and the score by their levels

MOST_STATES = 2_000_000


@dataclass(frozen=True)
class Options:
    """The possible effects of one feature, with one entry per option.

    Attributes
    ----------
    cost, score : (options,) of the option by itself
    choice : (options,) the number by which the caller knows it
    levels : by the number of each of the feature's pairs, the level of the option there: (options,)
    """

    cost: Floats
    score: Floats
    choice: Index
    levels: Mapping[int, Index]

    def signature(self) -> Index:
        """Number the options so that those with the same level in every pair have the same number."""
        numbers: dict[tuple[int, ...], int] = {}
        levels = zip(*(level.tolist() for level in self.levels.values()), strict=True)
        return np.array([numbers.setdefault(key, len(numbers)) for key in levels], np.intp)

    def take(self, keep: Index) -> Options:
        """Return some of the options."""
        levels = {k: level[keep] for k, level in self.levels.items()}
        return Options(self.cost[keep], self.score[keep], self.choice[keep], levels)


@dataclass(frozen=True)
class Front:
    """Pareto-optimal combinations of the options of some features: costs rise strictly, scores fall strictly.

    Attributes
    ----------
    features : in the order of the columns of `choice`
    cost, score : (combinations,)
    choice : (combinations, features)
    """

    features: tuple[str, ...]
    cost: Floats
    score: Floats
    choice: Index

    def take(self, keep: Index) -> Front:
        """Return some of the combinations."""
        return Front(self.features, self.cost[keep], self.score[keep], self.choice[keep])

    def plus(self, other: Front, sign: int) -> Front:
        """Combine with the options of other features, and keep the best; sign -1 prefers high scores."""
        check_states(len(self.cost) * len(other.cost))
        cost, score = np.add.outer(self.cost, other.cost).ravel(), np.add.outer(self.score, other.score).ravel()
        keep = pareto(cost, sign * score)
        ours, theirs = np.divmod(keep, len(other.cost))
        choice = np.concatenate([self.choice[ours], other.choice[theirs]], axis=1)
        return Front((*self.features, *other.features), cost[keep], score[keep], choice)


def check_states(n: int) -> None:
    """Refuse a search that would look at too many states."""
    if n > MOST_STATES:
        raise DataError(
            "what_if: there are too many combinations to distinguish. Use integer step costs, or freeze features."
        )


def pareto(cost: Floats, score: Floats, group: Index | None = None) -> Index:
    """Return the Pareto-optimal states of every group: by rising cost, each with a lower score than the one before.

    >>> pareto(np.array([0.0, 1.0, 1.0, 2.0]), np.array([5.0, 4.0, 3.0, 3.0])).tolist()
    [0, 2]
    >>> pareto(np.zeros(3), np.array([1.0, 2.0, 0.0]), np.array([0, 1, 0])).tolist()
    [2, 1]
    """
    if group is None:
        order = np.lexsort((score, cost))
        least: Array = np.minimum.accumulate(score[order])
    else:
        order = np.lexsort((score, cost, group))
        # Ranks that fall from group to group: the running minimum then restarts in every group.
        ranks, rank = np.unique(score, return_inverse=True)
        number = np.cumsum(np.diff(group[order], prepend=group[order[:1]]) != 0)
        least = np.minimum.accumulate(rank[order] - len(ranks) * number)
    better = np.ones(len(order), dtype=bool)
    better[1:] = least[1:] < least[:-1]
    return order[better]


def joint_options(features: Mapping[str, Options], pairs: Sequence[PairScores], sign: int) -> list[Front]:
    """Return the best combinations, separately for each set of features that pairs connect.

    Parameters
    ----------
    features : the options of every feature that is in a pair
    pairs : what they add together; `Options.levels` refer to these by number
    sign : +1 if low scores are good, -1 if high ones are
    """
    best = {}
    for name, options in features.items():
        best[name] = options.take(np.sort(pareto(options.cost, sign * options.score, options.signature())))
    return [_joint({n: best[n] for n in names}, pairs, sign) for names in _connected(features, pairs)]


def _connected(names: Iterable[str], pairs: Sequence[PairScores]) -> list[tuple[str, ...]]:
    """Return the sets of features that pairs connect, directly or through others."""
    home: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    for (u, v), _ in pairs:
        if home[u] is not home[v]:
            both = (*home[u], *home[v])
            home.update(dict.fromkeys(both, both))
    return list(dict.fromkeys(home.values()))


def _joint(features: Mapping[str, Options], pairs: Sequence[PairScores], sign: int) -> Front:
    signatures = {name: options.signature() for name, options in features.items()}
    order = _order({n: int(s.max()) + 1 for n, s in signatures.items()}, pairs)
    cost, score = np.zeros(1), np.zeros(1)
    taken: dict[str, Index] = {}  # by feature, the option of every state
    for name, still_open in order:
        options = features[name]
        m = len(options.cost)
        check_states(len(cost) * m)
        parent, option = np.divmod(np.arange(len(cost) * m), m)
        cost, score = cost[parent] + options.cost[option], score[parent] + options.score[option]
        taken = {n: t[parent] for n, t in taken.items()} | {name: option}
        for k, (ends, table) in enumerate(pairs):
            if name in ends and taken.keys() >= set(ends):
                score = score + table[tuple(features[n].levels[k][taken[n]] for n in ends)]
        group = np.zeros(len(cost), np.intp)
        for n in still_open:
            group = group * (int(signatures[n].max()) + 1) + signatures[n][taken[n]]
        keep = pareto(cost, sign * score, group)
        cost, score, taken = cost[keep], score[keep], {n: t[keep] for n, t in taken.items()}
    choice = np.column_stack([features[n].choice[t] for n, t in taken.items()])
    return Front(tuple(taken), cost, score, choice)


def _order(sizes: Mapping[str, int], pairs: Sequence[PairScores]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the features in an order that leaves few combinations open, each with those that are open after it."""
    near: dict[str, set[str]] = {name: set() for name in sizes}
    for (u, v), _ in pairs:
        if u in near:
            near[u].add(v)
            near[v].add(u)

    def open_after(done: Iterable[str]) -> tuple[str, ...]:
        return tuple(n for n in done if near[n] - set(done))

    order: dict[str, tuple[str, ...]] = {}
    while len(order) < len(sizes):
        left = {n: open_after((*order, n)) for n in sizes if n not in order}
        name = min(left, key=lambda n: math.prod(sizes[o] for o in left[n]))
        order[name] = left[name]
    return list(order.items())


# ---- the range of a part's score


def score_limits(form: RiskForm, part: Part) -> tuple[float, float]:
    """Return the least and the greatest score that a part of tables can give; of lines, over their training values.

    Both are attained, unless pairs connect more features than can be searched: then they are bounds, the sums of the
    least and of the greatest entries.
    """
    paired = [name for name in part.features if any(True for _ in part.pairs_with(name))]
    alone = [_scores_of(form, name, shape) for name, shape in part.shapes.items() if name not in paired]
    atoms = atoms_of(form) if paired else {}
    options = {name: _all_levels(part, atoms[name]) for name in paired}
    pairs = [(pair.features, np.asarray(pair.scores)) for pair in part.pairs]
    ends = []
    for sign, least in ((1, min), (-1, max)):
        try:
            joint = [float(front.score[-1]) for front in joint_options(options, pairs, sign)]
        except DataError:
            joint = [least(shape.scores) for name, shape in part.shapes.items() if name in paired]
            joint += [least(map(least, pair.scores)) for pair in part.pairs]
        ends.append(part.intercept + math.fsum((*map(least, alone), *joint)))
    return ends[0], ends[1]


def _scores_of(form: RiskForm, name: str, shape: Shape) -> tuple[float, ...]:
    """Return the scores of a shape; of a line those at its center and at the ends of its training values."""
    ends = form.ranges.get(name, ()) if isinstance(shape, Line) else ()
    return (*shape.scores, *(shape.slope * (x - shape.center) for x in ends if isinstance(shape, Line)))


def _all_levels(part: Part, atoms: Atoms) -> Options:
    """Return every atom of a feature as an option that costs nothing."""
    n, name = len(atoms.levels), atoms.feature
    shape = part.shapes.get(name)
    score = np.zeros(n) if shape is None else np.asarray(shape.scores)[atoms.levels_in(shape.levels)]
    levels = {k: atoms.levels_in(pair.levels[axis]) for k, axis, pair in part.pairs_with(name)}
    return Options(np.zeros(n), score, np.arange(n), levels)
