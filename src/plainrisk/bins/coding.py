"""How levels become coefficients, and rows become small integers.

A `Contrast` defines the coefficients of a feature. Following Chen et al.'s Additive Risk Model:

- with a direction: one nonnegative step between each two neighboring ordered levels (the half intervals);
  if special levels occur, one free coefficient for all ordered levels together;
- without: one free coefficient per level;
- each special value, below the bound, missing: a special level with one free coefficient; or, where a rule holds the
  level (`Anchor`), the score of a measured level, a nonnegative step away from one, or their mean.

With a direction the best and the worst measured levels are the two ends of the order, known before the fit; without
one they are known only from scores. "not_better" is a bound, kept by an active set: the level is free at first, and
where it breaks the bound, the optimum under it is on the bound, so the fit is done again with the level held at the
best measured one. So a rule that is not broken changes nothing. (A nonnegative step up from the best level would be a
bound as well, but shrinking that step would draw levels with few rows to the best one.)

Levels without training rows have no coefficient.

A `JointCode` combines the levels of several features in one small integer, so that a pass over the rows reads few
bytes.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np

from plainrisk._native import code_type
from plainrisk._types import Bools, Codes, Floats, Index
from plainrisk.form import BOUNDS, GroupKind, Levels, measured_levels, outside_rules
from plainrisk.schema import Feature

__all__ = [
    "Anchor",
    "Contrast",
    "JointCode",
    "end_levels",
    "joint_codes",
    "level_anchors",
    "level_contrast",
    "outside_contrast",
    "smooth_contrast",
]

# What distinguishes a coefficient from the others of its feature: a cut, a level, a cell.
Key = tuple[str, int]


@dataclass(frozen=True)
class Anchor:
    """The score that a rule gives a special level.

    Attributes
    ----------
    kind : that of a measured level ("at"), a nonnegative step away from it ("beyond"), or the "mean" of all of them
    level : the measured level
    side : +1 if the step goes up, -1 if it goes down
    """

    kind: Literal["at", "beyond", "mean"]
    level: int = 0
    side: int = 1


Anchors = Mapping[int, Anchor]
NO_ANCHORS: Anchors = MappingProxyType({})
# By coefficient, the neighboring levels it is added to, from and up to.
Ranges = dict[Key, tuple[int, int]]


def end_levels(sign: int, n_ordered: int, worse: int) -> tuple[int, int]:
    """Return the best and the worst level of an order for the applicant.

    >>> end_levels(sign=1, n_ordered=5, worse=1), end_levels(sign=1, n_ordered=5, worse=-1)
    ((0, 4), (4, 0))
    """
    ends = (0, n_ordered - 1)
    return ends if sign * worse > 0 else ends[::-1]


def level_anchors(
    feature: Feature,
    levels: Levels,
    weights: Floats,
    worse: int,
    scores: Floats | None = None,
) -> dict[int, Anchor]:
    """Return the anchors of the special levels that training rows have.

    Parameters
    ----------
    weights : training weight of every level
    worse : +1 if a higher probability is worse for the applicant, -1 if it is better
    scores : of the levels after a fit in which they were free, or None before
    """
    measured = measured_levels(feature, levels)
    seen = measured[weights[measured] > 0]
    anchors: dict[int, Anchor] = {}
    for level, rule in outside_rules(feature, levels).items():
        if rule not in BOUNDS or not weights[level] or not len(seen):
            continue
        if rule == "neutral":
            anchors[level] = Anchor("mean")
            continue
        if feature.sign:
            best, worst = end_levels(feature.sign, levels.n_ordered, worse)
        elif scores is None:
            continue
        else:
            best, worst = (int(seen[pick(worse * scores[seen])]) for pick in (np.argmin, np.argmax))
        if rule == "worst":
            anchors[level] = Anchor("at", worst)
        elif scores is not None and worse * (scores[level] - scores[best]) <= 0:
            anchors[level] = Anchor("at", best)
    return anchors


@dataclass(frozen=True)
class Contrast:
    """The coefficients of one feature.

    Attributes
    ----------
    indicators : (levels, p), 0/1: to which levels each coefficient is added; -1 for a step down from a level, and
        shares at a level that is held at the mean of others, and products of steps less their means in pairs
    lower : (p,), 0 for steps, minus infinity for free coefficients
    center : (p,), what is subtracted from each column at the levels `centered`, or None
    keys : what each coefficient belongs to
    groups : kind and number of coefficients that are shrunk together, in order; for smooth shapes
    """

    indicators: Floats
    lower: Floats
    keys: tuple[Key, ...]
    center: Floats | None = None
    centered: Bools | None = None
    groups: tuple[tuple[GroupKind, int], ...] = ()

    @cached_property
    def matrix(self) -> Floats:
        """(levels, p): level scores are ``matrix @ beta``, except for rounding."""
        if self.center is None:
            return self.indicators
        matrix = self.indicators.copy()
        matrix[self.centered] -= self.center
        return matrix

    def scores(self, beta: Floats) -> Floats:
        """Return the scores of the levels, each added up from the first coefficient to the last.

        A matrix product may add in another order for some levels. Two levels with a step of 0 between them would then
        differ in the last digit, and the scores would no longer be exactly monotone. Subtracting a constant afterward
        keeps their order.
        """
        scores = np.zeros(len(self.indicators))
        for column, coefficient in zip(self.indicators.T, beta.tolist(), strict=True):
            scores += column * coefficient
        if self.center is not None:
            scores[self.centered] -= float(self.center @ beta)
        return scores


def level_contrast(weights: Floats, n_ordered: int, sign: int, *, anchors: Anchors = NO_ANCHORS) -> Contrast:
    """Return the coefficients of a feature whose levels have these training weights.

    >>> level_contrast(np.array([3.0, 2.0, 4.0, 0.0]), n_ordered=3, sign=1).matrix
    array([[0., 0.],
           [1., 0.],
           [1., 1.],
           [0., 0.]])
    """
    inside, outside = _seen_levels(weights, n_ordered, anchors)
    if sign == 0:
        contrast = _contrast(_effects((*inside, *outside)), len(weights), n_steps=0)
        return _anchored(contrast, weights, n_ordered, anchors)
    steps = _steps(_cuts(inside), n_ordered, sign)
    together = {("inside", 0): (0, n_ordered)} if inside and outside else {}
    contrast = _contrast(steps | together | _effects(outside), len(weights), n_steps=len(steps))
    return _anchored(contrast, weights, n_ordered, anchors)


def smooth_contrast(
    weights: Floats,
    n_ordered: int,
    sign: int,
    *,
    ordered: bool,
    anchors: Anchors = NO_ANCHORS,
    cuts: Container[int] | None = None,
    tail: float = 0.0,
) -> Contrast:
    """Return coefficients that are to be shrunk in groups: the steps of an ordered feature, or an effect per level.

    Special levels have an effect each, a group of their own. Steps are centered on the measured
    training rows, so that shrinking draws special levels to the mean of the measured ones, wherever the first step is.

    Parameters
    ----------
    cuts : the levels that a step may lead to; by default all
    tail : steps beyond which less than this share of the rows lies are groups of their own

    >>> smooth_contrast(np.array([3.0, 2.0, 5.0, 4.0]), n_ordered=3, sign=0, ordered=True).matrix
    array([[-0.7, -0.5,  0. ],
           [ 0.3, -0.5,  0. ],
           [ 0.3,  0.5,  0. ],
           [ 0. ,  0. ,  1. ]])
    """
    inside, free = _seen_levels(weights, n_ordered, anchors)
    if not ordered:
        contrast = _contrast(_effects((*inside, *free)), len(weights), n_steps=0)
        contrast = replace(contrast, groups=(("levels", len(inside) + len(free)),))
        return _anchored(contrast, weights, n_ordered, anchors)
    chosen = [cut for cut in _cuts(inside) if cuts is None or cut in cuts]
    steps = _steps(chosen, n_ordered, sign)
    contrast = _contrast(steps | _effects(free), len(weights), n_steps=len(steps) if sign else 0)
    contrast = _anchored(contrast, weights, n_ordered, anchors)
    measured = weights[:n_ordered]
    center = measured @ contrast.indicators[:n_ordered] / measured.sum() if inside else None
    groups = [*_tails(measured, chosen, tail), ("outside", len(free))]
    centered = np.arange(len(weights)) < n_ordered
    centered[list(anchors)] = True  # as the levels that hold them
    return replace(contrast, center=center, centered=centered, groups=tuple(group for group in groups if group[1]))


def _tails(measured: Floats, cuts: Sequence[int], share: float) -> list[tuple[GroupKind, int]]:
    """Return the groups of the steps at some cuts, and their sizes: lower tail, body, upper tail."""
    below = np.cumsum(measured)[np.asarray(cuts, np.intp) - 1] / max(float(measured.sum()), np.finfo(float).tiny)
    lower, upper = int((below < share).sum()), int((below > 1.0 - share).sum())
    if lower + upper >= len(cuts):  # a feature without a body has no tails
        return [("steps", len(cuts))]
    return [("lower tail", lower), ("steps", len(cuts) - lower - upper), ("upper tail", upper)]


def outside_contrast(weights: Floats, n_ordered: int, anchors: Anchors = NO_ANCHORS) -> Contrast:
    """Return one coefficient per special level that was seen, for features that are lines."""
    _, outside = _seen_levels(weights, n_ordered, anchors)
    return _anchored(_contrast(_effects(outside), len(weights), n_steps=0), weights, n_ordered, anchors)


def _cuts(inside: Sequence[int]) -> Sequence[int]:
    """Return the levels that begin a half interval with training rows on both sides."""
    return range(inside[0] + 1, inside[-1] + 1) if inside else ()


def _steps(cuts: Sequence[int], n_ordered: int, sign: int) -> Ranges:
    return {("cut", cut): (0, cut) if sign < 0 else (cut, n_ordered) for cut in cuts}


def _effects(levels: Sequence[int]) -> Ranges:
    return {("level", level): (level, level + 1) for level in levels}


def _seen_levels(weights: Floats, n_ordered: int, anchors: Anchors) -> tuple[list[int], list[int]]:
    """Return the levels with training rows: measured ones, and special ones that have no anchor."""
    seen = np.flatnonzero(weights > 0).tolist()
    outside = [level for level in seen if level >= n_ordered and level not in anchors]
    return [level for level in seen if level < n_ordered], outside


def _anchored(contrast: Contrast, weights: Floats, n_ordered: int, anchors: Anchors) -> Contrast:
    """Give anchored levels the coefficients of their anchors; a step beyond one is a further coefficient, the last."""
    matrix = contrast.indicators.copy()
    measured = weights[:n_ordered]
    for level, anchor in anchors.items():
        is_mean = anchor.kind == "mean"
        matrix[level] = measured @ matrix[:n_ordered] / measured.sum() if is_mean else matrix[anchor.level]
    beyond = {level: anchor.side for level, anchor in anchors.items() if anchor.kind == "beyond"}
    steps = np.zeros((len(weights), len(beyond)))
    for column, (level, side) in enumerate(beyond.items()):
        steps[level, column] = side
    return replace(
        contrast,
        indicators=np.hstack([matrix, steps]),
        lower=np.append(contrast.lower, np.zeros(len(beyond))),
        keys=(*contrast.keys, *(("beyond", level) for level in beyond)),
    )


def _contrast(ranges: Ranges, n_levels: int, n_steps: int) -> Contrast:
    """Return indicators of neighboring levels, from and up to; the first few are steps in a direction."""
    matrix = np.zeros((n_levels, len(ranges)))
    for column, (start, stop) in enumerate(ranges.values()):
        matrix[start:stop, column] = 1.0
    lower = np.full(len(ranges), -np.inf)
    lower[:n_steps] = 0.0
    return Contrast(matrix, lower, tuple(ranges))


@dataclass(frozen=True)
class JointCode:
    """The levels of neighboring features as the digits of one number.

    Attributes
    ----------
    features : positions of the features
    sizes : how many levels each of them has

    Examples
    --------
    >>> joint = JointCode((0, 1), (2, 3))
    >>> joint.encode([np.array([0, 1, 1], np.uint8), np.array([2, 0, 2], np.uint8)]).tolist()
    [2, 3, 5]
    >>> [levels.tolist() for levels in joint.levels]
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
    >>> [sums.tolist() for sums in joint.margins(np.array([1.0, 0.0, 2.0, 0.0, 0.0, 4.0]))]
    [[3.0, 4.0], [1.0, 0.0, 6.0]]
    """

    features: tuple[int, ...]
    sizes: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """The number of codes."""
        return math.prod(self.sizes)

    @cached_property
    def levels(self) -> tuple[Index, ...]:
        """Per feature, (size,): the level of each code."""
        return np.unravel_index(np.arange(self.size), self.sizes)

    def encode(self, codes: Sequence[Codes]) -> Codes:
        """Return the joint code of every row, given the level of each feature."""
        kind = code_type(self.size)
        joint = codes[0].astype(kind)
        for code, size in zip(codes[1:], self.sizes[1:], strict=True):
            joint *= kind(size)
            joint += code.astype(kind, copy=False)
        return joint

    def margins(self, by_code: Floats) -> list[Floats]:
        """Return sums by the level of each feature, given sums by joint code."""
        grid = by_code.reshape(self.sizes)
        axes = range(len(self.sizes))
        return [grid.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]


def joint_codes(sizes: Sequence[int], n_rows: int) -> tuple[JointCode, ...]:
    """Join neighboring features while there are at most min(256, sqrt(n_rows)) codes.

    So a code is one byte, and a table of pairs of codes does not outgrow the rows it counts.

    Parameters
    ----------
    sizes : per feature, how many levels it has
    """
    limit = int(np.clip(n_rows**0.5, 16, 256))
    joints: list[JointCode] = []
    joined: list[int] = []
    for j, size in enumerate(sizes):
        if joined and math.prod(sizes[k] for k in joined) * size > limit:
            joints.append(JointCode(tuple(joined), tuple(sizes[k] for k in joined)))
            joined = []
        joined.append(j)
    if joined:
        joints.append(JointCode(tuple(joined), tuple(sizes[k] for k in joined)))
    return tuple(joints)
