"""An additive part: the whole model, or the expert of one subscale."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk._native import COMPILED
from plainrisk.data.frame import Frame
from plainrisk.errors import ModelFileError
from plainrisk.form.blocks import Room
from plainrisk.form.chains import Chains
from plainrisk.form.levels import Categories
from plainrisk.form.links import Link
from plainrisk.form.shapes import LARGEST, Shape, Table
from plainrisk.form.single import SingleScore, single_score
from plainrisk.schema import Schema

__all__ = ["Part", "labels_of", "strict_features"]

Floats = npt.NDArray[np.float64]


class Part(
    msgspec.Struct, frozen=True, dict=True, kw_only=True, tag="additive", tag_field="kind", forbid_unknown_fields=True
):
    """One additive model: the whole model, or the expert of one subscale."""

    name: str
    intercept: float
    shapes: dict[str, Shape]
    link: Link

    def __post_init__(self) -> None:
        if not abs(self.intercept) <= LARGEST:
            raise ModelFileError(f"Model: the intercept of {self.name!r} must be within {LARGEST:g}.")

    @property
    def features(self) -> tuple[str, ...]:
        """The features the part reads."""
        return tuple(self.shapes)

    def terms(self, frame: Frame, schema: Schema) -> dict[str, Floats]:
        """Return what each feature adds to the score of every row."""
        return {
            name: shape.values(frame, name, refuse_unseen=schema.features[name].unseen == "error")
            for name, shape in self.shapes.items()
        }

    def score(self, frame: Frame, schema: Schema, room: Room | None = None) -> Floats:
        """Return the score of every row; by numpy in `room`, where the next score will be too, if there is one."""
        if room is None:
            score = np.full(frame.n_rows, self.intercept)
            if self._add(frame, schema, [score]):
                return score
            room = Room(frame.n_rows)
        score = room.score[: frame.n_rows]
        score.fill(self.intercept)
        # In one order for every row. Rounding keeps an order, so a monotone shape gives exactly ordered scores.
        for name, shape in self.shapes.items():
            strict = schema.features[name].unseen == "error"
            if strict or not isinstance(shape, Table):
                score += shape.values(frame, name, refuse_unseen=strict)
            else:
                shape.add(score, frame, name, room)
        return score

    def split(self, frame: Frame, schema: Schema, zeros: Sequence[float], pieces: Floats) -> Floats:
        """Return the score of every row, and fill in what each feature adds beyond its zero: rows by features."""
        score = np.full(frame.n_rows, self.intercept)
        pieces[:] = np.negative(zeros)
        if self._add(frame, schema, [score, *pieces.T]):
            return score
        score.fill(self.intercept)
        for j, values in enumerate(self.terms(frame, schema).values()):
            score += values
            np.subtract(values, zeros[j], out=pieces[:, j])
        return score

    def _add(self, frame: Frame, schema: Schema, scores: Sequence[Floats]) -> bool:
        """Add all features to the first score and each to one of the others, if there are any; whether it was done."""
        if not COMPILED:
            return False
        rows = frame.prepared({name: labels_of(shape) for name, shape in self.shapes.items()})
        return self._chains(strict_features(schema), len(scores) > 1).add(scores, rows)

    @functools.cached_property
    def _chains(self) -> Callable[[frozenset[str], bool], Chains]:
        """The features for the compiled loop, by the strict ones and by whether each is wanted for itself too."""
        each = [{name: shape} for name, shape in self.shapes.items()]
        return functools.cache(
            lambda strict, split: Chains([self.shapes, *(each if split else ())], strict, self.features)
        )

    def single(self, strict: frozenset[str]) -> SingleScore | None:
        """Return the score prepared for rows that come one by one; None if some shape is neither table nor line."""
        return single_score(self.intercept, self.shapes, strict)


def labels_of(shape: Shape) -> tuple[str, ...] | None:
    """Return the categories of a shape over categories."""
    return shape.levels.categories if isinstance(shape.levels, Categories) else None


def strict_features(schema: Schema) -> frozenset[str]:
    """Return the features whose unseen levels are refused."""
    return frozenset(name for name, feature in schema.features.items() if feature.unseen == "error")
