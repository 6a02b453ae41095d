"""The risk form: what every fitted model is, as pure data.

    risk(x) = pool( link_S( intercept_S + sum over features u of shape_{S,u}(x_u) ) for every part S )

Nothing here knows how the numbers were found.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk._native import COMPILED
from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, ModelFileError, did_you_mean
from plainrisk.form.blocks import Evaluate, Room, by_blocks
from plainrisk.form.chains import Chains
from plainrisk.form.links import Link, Logistic
from plainrisk.form.part import Part, labels_of, strict_features
from plainrisk.form.shapes import LARGEST
from plainrisk.form.single import SingleScore, UnusualRowError, is_one_row
from plainrisk.form.trees import TreePart
from plainrisk.schema import Schema

__all__ = ["Alone", "Layer", "Mixture", "Part", "Pool", "RiskForm", "pool_score"]

Floats = npt.NDArray[np.float64]

# Rows are scored in blocks whose columns fit the processor's cache.
BLOCK_ROWS = 1 << 15


class Alone(msgspec.Struct, frozen=True, tag="alone", tag_field="kind", forbid_unknown_fields=True):
    """No pool: the one part's risk is the risk."""


class Mixture(msgspec.Struct, frozen=True, tag="mixture", tag_field="kind", forbid_unknown_fields=True):
    """A linear opinion pool: ``sum_S weight_S * risk_S``, weights nonnegative with sum 1."""

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(w >= 0 for w in self.weights) or abs(math.fsum(self.weights) - 1) > 1e-9:
            raise ModelFileError("Model: the weights of a mixture must be nonnegative and sum to 1.")


class Layer(msgspec.Struct, frozen=True, tag="layer", tag_field="kind", forbid_unknown_fields=True):
    """A second additive layer: ``link(intercept + sum_S weight_S * risk_S)``."""

    intercept: float
    weights: tuple[float, ...]
    link: Link

    def __post_init__(self) -> None:
        if not all(abs(number) <= LARGEST for number in (self.intercept, *self.weights)):
            raise ModelFileError(f"Model: the numbers of the second layer must be within {LARGEST:g}.")


Pool = Alone | Mixture | Layer


class RiskForm(msgspec.Struct, frozen=True, dict=True, kw_only=True, forbid_unknown_fields=True):
    """A fitted risk model as data.

    Attributes
    ----------
    schema : what the modeller knew, for the features in use
    columns : the columns of the training rows, in order; rows without names are read by position
    classes : the two outcomes, the positive one last
    parts, pool : the model
    """

    schema: Schema
    columns: tuple[str, ...]
    classes: tuple[str | int | float | bool, str | int | float | bool]
    parts: tuple[Part | TreePart, ...]
    pool: Pool

    def __post_init__(self) -> None:
        n = len(self.parts)
        wanted = 1 if isinstance(self.pool, Alone) else len(self.pool.weights)
        if n == 0 or n != wanted:
            raise ModelFileError(f"Model: {n} parts do not fit a pool of {wanted}.")
        if len({part.name for part in self.parts}) < n:
            raise ModelFileError("Model: two parts have the same name.")
        for part in self.parts:
            for name in part.features:
                if name not in self.schema.features:
                    raise ModelFileError(f"Model: part {part.name!r} uses {name!r}, which the schema does not know.")

    # ---- evaluation

    def risk(self, X: Any) -> Floats:
        """Return the probability of the positive outcome, one per row."""
        if type(X) is dict and (risk := self._single_risk(X)) is not None:
            return np.array([risk])
        return self._by_blocks(X, self._block_risk)

    def probabilities(self, X: Any) -> Floats:
        """Return the probabilities of the two outcomes, the positive one last: (rows, 2)."""
        if type(X) is dict and (risk := self._single_risk(X)) is not None:
            return np.array([[1.0 - risk, risk]])
        return self._by_blocks(X, self._block_probabilities, (2,))

    def score(self, X: Any) -> Floats:
        """Return the additive value before the last link, one per row (for a mixture: the risk)."""
        return self._by_blocks(X, self._block_score)

    def part_risks(self, X: Any) -> Floats:
        """Return the risk each part sees, rows by parts."""
        return self._by_blocks(X, self._block_part_risks, (len(self.parts),))

    def part_scores(self, X: Any) -> Floats:
        """Return the additive score of each part, rows by parts."""
        return self._by_blocks(X, self._block_part_scores, (len(self.parts),))

    def align(self, X: Any) -> Frame:
        """Read a table and give its columns the names the form knows; say what is missing."""
        frame = as_frame(X)
        if not frame.named:
            if len(frame.names) != len(self.columns):
                raise DataError(
                    f"Data: X has {len(frame.names)} features, but RiskForm is expecting "
                    f"{len(self.columns)} features as input."
                )
            return frame.renamed(self.columns)
        for name in (name for part in self.parts for name in part.features):
            if name not in frame.columns:
                raise DataError(f"Data: feature {name!r} is not in the data.{did_you_mean(name, frame.names)}")
        return frame

    def _single_risk(self, row: dict[Any, Any]) -> float | None:
        """Return the risk of one row, or None if it is a matter for `risk`."""
        if self._singles is None:
            return None
        features, parts = self._singles
        if not is_one_row(row, features):
            return None
        try:
            scores = [part.score(row) for part in parts]
        except (KeyError, UnusualRowError):
            return None
        links = [part.link for part in self.parts]
        risks = [float(link.value(np.array([s]))[0]) for link, s in zip(links, scores, strict=True)]
        if isinstance(self.pool, Alone):
            return risks[0]
        score = pool_score(self.pool, np.array([risks]))
        return float((self.pool.link.value(score) if isinstance(self.pool, Layer) else score)[0])

    @functools.cached_property
    def _singles(self) -> tuple[frozenset[str], tuple[SingleScore, ...]] | None:
        """The features in use and the parts' scores for rows that come one by one, if every part has one."""
        strict = strict_features(self.schema)
        found = [part.single(strict) if isinstance(part, Part) else None for part in self.parts]
        parts = tuple(part for part in found if part is not None)
        features = frozenset(name for part in self.parts for name in part.features)
        return (features, parts) if len(parts) == len(found) else None

    def _by_blocks(self, X: Any, evaluate: Evaluate, width: tuple[int, ...] = ()) -> Floats:
        frame = self.align(X)
        n = len(self.parts)
        # An error comes up again below, in one piece, so that the row it names is the row of the data.
        with contextlib.suppress(DataError, UnusualRowError):
            if COMPILED:
                return by_blocks(frame, self._columns_read, evaluate, BLOCK_ROWS, width, n)
        with contextlib.suppress(DataError):
            if frame.n_rows > BLOCK_ROWS:
                return by_blocks(frame, self._columns_read, evaluate, BLOCK_ROWS, width)
        out = np.empty((frame.n_rows, *width))
        evaluate(frame, Room(frame.n_rows), out)
        return out

    @functools.cached_property
    def _columns_read(self) -> dict[str, tuple[str, ...] | None]:
        """The features in use, with the labels of those that all parts read as the same categories."""
        known: dict[str, set[tuple[str, ...] | None]] = {}
        for part in self.parts:
            for name in part.features:
                known.setdefault(name, set()).add(labels_of(part.shapes[name]) if isinstance(part, Part) else None)
        return {name: next(iter(ways)) if len(ways) == 1 else None for name, ways in known.items()}

    @functools.cached_property
    def _chains(self) -> Chains:
        """The features of the additive parts, for the compiled loop."""
        shapes = [part.shapes if isinstance(part, Part) else {} for part in self.parts]
        return Chains(shapes, strict_features(self.schema), self.columns)

    def _scores(self, frame: Frame, room: Room) -> Iterator[Floats]:
        """Yield the score of every part, each in an array that may be used again for the next."""
        if not len(room.scores):
            yield from (part.score(frame, self.schema, room) for part in self.parts)
            return
        scores = room.scores[:, : frame.n_rows]
        for part, score in zip(self.parts, scores, strict=True):
            score[:] = part.intercept if isinstance(part, Part) else part.score(frame, self.schema)
        if not self._chains.add(list(scores), frame):
            raise UnusualRowError
        yield from scores

    def _block_part_scores(self, frame: Frame, room: Room, out: Floats) -> None:
        for k, score in enumerate(self._scores(frame, room)):
            out[:, k] = score

    def _block_part_risks(self, frame: Frame, room: Room, out: Floats) -> None:
        for k, score in enumerate(self._scores(frame, room)):
            out[:, k] = self.parts[k].link.value(score)

    def _block_score(self, frame: Frame, room: Room, out: Floats) -> None:
        if isinstance(self.pool, Alone):
            out[:] = next(self._scores(frame, room))
            return
        # One column of all parts after the other, which is how they are added up.
        risks = np.empty((len(self.parts), frame.n_rows)).T
        self._block_part_risks(frame, room, risks)
        out[:] = pool_score(self.pool, risks)

    def _block_risk(self, frame: Frame, room: Room, out: Floats) -> None:
        self._block_score(frame, room, out)
        link = self.last_link
        if link is not None:
            out[:] = link.value(out)

    def _block_probabilities(self, frame: Frame, room: Room, out: Floats) -> None:
        self._block_risk(frame, room, out[:, 1])
        np.subtract(1.0, out[:, 1], out=out[:, 0])

    # ---- structure

    @property
    def features(self) -> tuple[str, ...]:
        """The features in use, in the order of the parts."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.features))

    @property
    def last_link(self) -> Link | None:
        """The link that gives the output; None for a mixture, which has no link of its own."""
        if isinstance(self.pool, Alone):
            return self.parts[0].link
        return self.pool.link if isinstance(self.pool, Layer) else None

    @property
    def links(self) -> Iterator[Link]:
        """Every link of the form."""
        yield from (part.link for part in self.parts)
        if isinstance(self.pool, Layer):
            yield self.pool.link

    @property
    def speaks_probability(self) -> bool:
        """Whether features' contributions are exact pieces of the probability: additive, every link straight."""
        return all(isinstance(p, Part) for p in self.parts) and not any(isinstance(k, Logistic) for k in self.links)


def pool_score(pool: Mixture | Layer, risks: Floats) -> Floats:
    """Combine part risks (rows by parts) into one score per row.

    Added up part by part, so that each sum is monotone in every part and the same whatever the block size.
    """
    start = pool.intercept if isinstance(pool, Layer) else 0.0
    score = np.full(len(risks), start)
    for weight, risk in zip(pool.weights, risks.T, strict=True):
        score += weight * risk
    # Rounding may carry a pool of ones past 1 by one unit in the last place.
    return np.minimum(score, 1.0) if isinstance(pool, Mixture) else score
