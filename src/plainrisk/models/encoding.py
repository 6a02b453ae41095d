"""From training rows to codes: find the levels of every feature, code the rows, count the levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.bins import (
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
from plainrisk.data.frame import Frame
from plainrisk.form import Bins, Levels
from plainrisk.models.training import Training
from plainrisk.threads import side_by_side

__all__ = ["Encoded", "encode_rows", "encode_with"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Codes = npt.NDArray[np.unsignedinteger[Any]]

_Coded = tuple[Levels, Codes, Floats, Floats]

_VALUES = 1 << 16  # encoded in one go, or those of one feature: more would need more memory, and threads share fewer


@dataclass(frozen=True)
class Encoded:
    """Rows as codes; one entry per feature throughout."""

    names: tuple[str, ...]
    levels: tuple[Levels, ...]
    codes: tuple[Codes, ...]
    weights: tuple[Floats, ...]
    positives: tuple[Floats, ...]

    def select(self, names: Sequence[str]) -> Encoded:
        """Return some of the features."""
        at = [self.names.index(name) for name in names]
        each = (self.levels, self.codes, self.weights, self.positives)
        levels, codes, weights, positives = (tuple(values[k] for k in at) for values in each)
        return Encoded(tuple(names), levels, codes, weights, positives)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Known:
    """Levels that are known."""

    levels: Mapping[str, Levels]

    def wanted(self, name: str) -> Wanted | None:
        """Return what a column shall be read as."""
        return Wanted(name, self.levels[name])

    def find(self, name: str, frame: Frame) -> Levels:
        """Return the levels of a feature."""
        return self.levels[name]

    def bin(self, names: Sequence[str], singles: Sequence[Singles]) -> list[Bins]:
        """Return the levels of features that were measured: none is."""
        return []


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

    def find(self, name: str, frame: Frame) -> Levels:
        """Return the levels of a feature, found in the rows."""
        return learn_levels(
            frame,
            name,
            self.training.schema.features[name],
            self.training.target.view(np.bool_),
            self.training.weight,
            max_bins=self.max_bins,
            criterion=self.criterion,
            min_rows=self.min_rows,
        )

    def bin(self, names: Sequence[str], singles: Sequence[Singles]) -> list[Bins]:
        """Return the levels of features that were measured, found in their measurements."""
        features = [self.training.schema.features[name] for name in names]
        target = self.training.target.view(np.bool_)
        criterion: Any = self.criterion  # of a tree: else nothing is measured
        return learn_bins(
            singles, features, target, max_bins=self.max_bins, criterion=criterion, min_rows=self.min_rows
        )


def encode_rows(training: Training, *, max_bins: int, criterion: Criterion = "gini", min_rows: int = 1) -> Encoded:
    """Find the levels of every feature and code the rows."""
    return _encode(training, tuple(training.schema.features), _Learned(training, max_bins, criterion, min_rows))


def encode_with(training: Training, names: Sequence[str], levels: Sequence[Levels]) -> Encoded:
    """Code the rows with levels that are known."""
    return _encode(training, tuple(names), _Known(dict(zip(names, levels, strict=True))))


def _encode(training: Training, names: tuple[str, ...], source: _Known | _Learned) -> Encoded:
    """Read, code and count a few features after the other; of many values, several threads do so at a time."""
    n_groups = 1 + len(training.target) * len(names) // _VALUES
    together = max(-(-len(names) // n_groups), 1)
    groups = [names[start : start + together] for start in range(0, len(names), together)]
    done = side_by_side(lambda group: _encode_group(training, group, source), groups)
    levels, codes, weights, positives = zip(*(one for group in done for one in group), strict=True)
    return Encoded(names, levels, codes, weights, positives)


def _encode_group(training: Training, names: Sequence[str], source: _Known | _Learned) -> list[_Coded]:
    wanted = [w for w in map(source.wanted, names) if w is not None]
    columns = dict(zip((w.name for w in wanted), read_wanted(training.frame, wanted), strict=True))
    singles = {name: c.singles for name, c in columns.items() if c is not None and c.singles is not None}
    bins = dict(zip(singles, source.bin(list(singles), list(singles.values())), strict=True))
    exact = [name for name in singles if not columns[name].rounded]  # type: ignore[union-attr]
    coded = code_bins([singles[name] for name in exact], [bins[name] for name in exact], training.target)
    done = dict(zip(exact, coded, strict=True))
    return [
        (bins[name], *done[name]) if name in done else _encode_one(training, name, columns.get(name), source, bins)
        for name in names
    ]


def _encode_one(
    training: Training, name: str, column: Column | None, source: _Known | _Learned, bins: Mapping[str, Bins]
) -> _Coded:
    levels: Levels
    if column is not None and column.codes is not None:
        levels, codes = column.levels, column.codes
    else:
        frame = _rows_of(training, name)
        levels = bins[name] if name in bins else source.find(name, frame)
        codes = levels.codes(frame, name)
    return levels, codes, *level_counts(codes, len(levels), training.target, training.weight)


def _rows_of(training: Training, name: str) -> Frame:
    """Return the rows with one column ready to be read."""
    return training.frame
