"""From training rows to codes: find the levels of every feature, code the rows, count the levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.encode import (
    Column,
    Criterion,
    Wanted,
    code_bins,
    given_levels,
    learn_bins,
    learn_levels,
    level_counts,
    line_levels,
    read_wanted,
)
from plainrisk.estimators.training import Training
from plainrisk.form import Bins, Levels
from plainrisk.frames import Frame
from plainrisk.threads import side_by_side

__all__ = ["Encoded", "encode_rows", "encode_with"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Codes = npt.NDArray[np.unsignedinteger[Any]]

_TOGETHER = 4  # columns of a matrix stored by rows that are read in one pass; more would need more memory


@dataclass(frozen=True)
class Encoded:
    """Rows as codes; one entry per feature throughout."""

    names: tuple[str, ...]
    levels: tuple[Levels, ...]
    codes: tuple[Codes, ...]
    weights: tuple[Floats, ...]
    positives: tuple[Floats, ...]


@dataclass(frozen=True)
class _Known:
    """Levels that are known."""

    levels: Mapping[str, Levels]

    def wanted(self, name: str) -> Wanted | None:
        """Return what a column shall be read as."""
        return Wanted(name, self.levels[name])

    def find(self, name: str, rows: Frame | Singles) -> Levels:
        """Return the levels of a feature."""
        return self.levels[name]


@dataclass(frozen=True)
class _Learned:
    """Levels that are found in the rows."""

    training: Training
    max_bins: int
    criterion: Criterion
    min_rows: int

    def wanted(self, name: str) -> Wanted | None:
        """Return what a column shall be read as; None if it must be seen as it is."""
        feature = self.training.schema.features[name]
        given = given_levels(name, feature)
        if given is not None:
            return Wanted(name, given)
        by_tree = self.training.weight is None and self.criterion in ("gini", "entropy")
        if feature.kind == "categorical" or not by_tree:
            return None
        return Wanted(name, line_levels(self.training.frame, name, feature), measured=True)

    def find(self, name: str, rows: Frame | Singles) -> Levels:
        """Return the levels of a feature, found in the rows or in its measurements alone."""
        feature, target = self.training.schema.features[name], self.training.target.view(np.bool_)
        most, least = self.max_bins, self.min_rows
        if isinstance(rows, Frame) or self.criterion == "quantile":
            frame = rows if isinstance(rows, Frame) else self.training.frame
            weight = self.training.weight
            return learn_levels(
                frame, name, feature, target, weight, max_bins=most, criterion=self.criterion, min_rows=least
            )
        return learn_bins(rows, feature, target, max_bins=most, criterion=self.criterion, min_rows=least)


def encode_rows(training: Training, *, max_bins: int, criterion: Criterion = "gini", min_rows: int = 1) -> Encoded:
    """Find the levels of every feature and code the rows."""
    return _encode(training, tuple(training.schema.features), _Learned(training, max_bins, criterion, min_rows))


def encode_with(training: Training, names: Sequence[str], levels: Sequence[Levels]) -> Encoded:
    """Code the rows with levels that are known."""
    return _encode(training, tuple(names), _Known(dict(zip(names, levels, strict=True))))


def _encode(training: Training, names: tuple[str, ...], source: _Known | _Learned) -> Encoded:
    """Read, code and count a few features after the other; of many rows, several threads do so at a time."""
    together = 1 if training.frame.matrix is None else _TOGETHER

    def encode(start: int) -> list[tuple[Levels, Codes, Floats, Floats]]:
        group = names[start : start + together]
        wanted = [w for w in map(source.wanted, group) if w is not None]
        columns = dict(zip((w.name for w in wanted), read_wanted(training.frame, wanted), strict=True))
        return [_encode_one(training, name, columns.pop(name, None), source) for name in group]

    done = side_by_side(encode, range(0, len(names), together), rows=len(training.target))
    levels, codes, weights, positives = zip(*(one for group in done for one in group), strict=True)
    return Encoded(names, levels, codes, weights, positives)


def _encode_one(
    training: Training, name: str, column: Column | None, source: _Known | _Learned
) -> tuple[Levels, Codes, Floats, Floats]:
    if column is not None and column.singles is not None:
        levels = source.find(name, column.singles)
        if isinstance(levels, Bins) and not column.rounded:
            return levels, *code_bins(column.singles, levels, training.target)
        codes = levels.codes(_rows_of(training, name), name)
    elif column is not None and column.codes is not None:
        levels, codes = column.levels, column.codes
    else:
        frame = _rows_of(training, name)
        levels = source.find(name, frame)
        codes = levels.codes(frame, name)
    return levels, codes, *level_counts(codes, len(levels), training.target, training.weight)


def _rows_of(training: Training, name: str) -> Frame:
    """Return the rows with one column ready to be read."""
    text = training.schema.features[name].kind == "categorical"
    return training.frame if text else training.frame.prepared({name: None})
