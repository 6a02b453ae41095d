"""What an answer contains besides the probability: resolved once, from form, schema and policy, for every surface.

One small piece of data determines who is compared with whom, what may be named and in which words, what is withheld,
how reasons are ranked and who is refused. Python (`explain.reasons`), the program of exports and the page all compute
from it; none of them has rules of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from plainrisk._types import Bools, Floats, Index
from plainrisk.form.levels import Levels

__all__ = ["FAR", "LEAST", "Comparison", "Point", "Ranking"]

LEAST = 1e-12  # a cost up to this is rounding, not a reason
FAR = 100.0  # a contribution to a probability; sums of larger ones lose the digits that count


class Point(Protocol):
    """The values of a `plainrisk.explain.reference.Point` for one part."""

    @property
    def terms(self) -> Mapping[str, float]:
        """The contribution of each term to the part's score."""

    @property
    def score(self) -> float:
        """The part's score."""

    @property
    def shares(self) -> Mapping[str, tuple[Floats, Floats]]:
        """By pair, the share of the reference at each level of its two features."""


@dataclass(frozen=True)
class Comparison:
    """The reference of rows, and the owner of each contribution.

    Attributes
    ----------
    points : the reference as each part sees it
    score, risk : the reference's, of the whole form
    keys : the (subscale, feature or pair) of every contribution
    """

    points: Sequence[Point]
    score: float
    risk: float
    keys: Sequence[tuple[str, str | None]]


@dataclass(frozen=True)
class Ranking:
    """How reasons are found, and who is refused.

    The *cost* of a candidate is what it adds to the probability of the adverse outcome compared with the reference.
    Costs with the same words are added to the first of them, unless one is protected. The reasons are the k largest
    costs above `LEAST` of candidates that are not protected, the first of equal ones first; by subscale, if asked for,
    the subscale first whose candidates that are not protected cost most. If an inquiry costs something and none is
    among the reasons, the one that costs most is a further reason. Withheld are the protected candidates that cost more
    than the last of the k, or anything where there are fewer than k.

    Attributes
    ----------
    comparison : what applicants are compared with
    candidates, subscales : what can be named, in the schema's order, and the subscale of each
    words : all texts
    base : (candidates,) the text of each
    by_level : for a candidate whose levels have words of their own, its feature, its levels and the text of each
    protected, inquiries : (candidates,) those never named, and those about inquiries
    k : how many reasons at most, a further one for inquiries not counted
    sign : +1 if a high probability is bad for the applicant, -1 if it is good
    by_subscale : whether reasons are grouped by subscale
    cutoff : who is refused: sign * risk >= sign * cutoff, without equality where sign is -1; None if nobody decided
    """

    comparison: Comparison
    candidates: tuple[str, ...]
    subscales: tuple[str, ...]
    words: tuple[str, ...]
    base: Index
    by_level: Mapping[int, tuple[str, Levels, Index]]
    protected: Bools
    inquiries: Bools
    k: int
    sign: int
    by_subscale: bool
    cutoff: float | None

    @property
    def width(self) -> int:
        """The largest number of reasons."""
        return self.k + bool(self.inquiries.any())

    @functools.cached_property
    def sayable(self) -> tuple[str, ...]:
        """All texts except those that only protected candidates have, which are never given."""
        kept = [j for j, never in enumerate(self.protected) if not never]
        used = {code for j in kept for code in (self.base[j], *(self.by_level[j][2] if j in self.by_level else ()))}
        return tuple(text if code in used else "" for code, text in enumerate(self.words))

    @functools.cached_property
    def shared(self) -> dict[int, list[int]]:
        """By text, the candidates that may have it, if there are several."""
        owners: dict[int, list[int]] = {}
        for column, text in enumerate(self.base.tolist()):
            texts = {text} if column not in self.by_level else set(self.by_level[column][2].tolist())
            for code in sorted(texts):
                owners.setdefault(code, []).append(column)
        return {code: columns for code, columns in owners.items() if len(columns) > 1}
