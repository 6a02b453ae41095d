"""What a program takes from explanations: the references of contributions and reasons, and how reasons are ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from plainrisk._types import Bools, Floats, Index
from plainrisk.form import Levels

__all__ = ["Comparison", "Point", "Ranking"]


class Point(Protocol):
    """What `plainrisk.explain.reference.Point` says of one part."""

    @property
    def terms(self) -> Mapping[str, float]:
        """What each term adds to the part's score."""

    @property
    def score(self) -> float:
        """The part's score."""

    @property
    def shares(self) -> Mapping[str, tuple[Floats, Floats]]:
        """By pair, the share of the reference at each level of its two features."""


@dataclass(frozen=True)
class Comparison:
    """What rows are compared with, and how pieces are shown.

    Attributes
    ----------
    points : the reference as each part sees it
    score, risk : the reference's, of the whole form
    keys : the (subscale, feature or pair) of every piece
    """

    points: Sequence[Point]
    score: float
    risk: float
    keys: Sequence[tuple[str, str | None]]


@dataclass(frozen=True)
class Ranking:
    """How reasons are found: as `plainrisk.explain.reasons.Reasoner`, with `least` and the sizes of `_add_up`."""

    comparison: Comparison
    candidates: tuple[str, ...]
    subscales: tuple[str, ...]
    words: tuple[str, ...]
    base: Index
    by_level: Mapping[int, tuple[str, Levels, Index]]
    shared: Sequence[Sequence[int]]
    barred: Bools
    k: int
    sign: int
    by_subscale: bool
    least: float
    most: float
