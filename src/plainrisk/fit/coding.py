"""From training rows to codes: the levels of every feature, and the rows as small integers.

There are two passes over the rows: one to find the levels, one to code the rows. The joint codes, outcomes
and weights of each batch are kept in a spool, in memory or on disk, so that a solver reads some fifteen bytes a row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._native import code_type, level_sums, logistic_pass, look_up
from plainrisk._types import Array, Codes, Floats
from plainrisk.bins import Anchor, JointCode, LevelFinder, Limits, joint_codes, level_anchors
from plainrisk.data.spool import Arrays, Kept
from plainrisk.errors import quoted, warn
from plainrisk.fit.parameters import Weights
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import Levels, Linear, Link, RiskForm
from plainrisk.schema import Schema
from plainrisk.solve import Block, MappedRows, Rows
from plainrisk.threads import parallel_map

__all__ = [
    "CodedBlock",
    "CodedRows",
    "Encoder",
    "Held",
    "KeptRows",
    "code_rows",
    "coded_rows",
    "collapsed",
    "learn_levels",
    "own_weight",
    "rows_meant",
    "rule_anchors",
    "scores_by_code",
    "sums_by_code",
    "value_ranges",
]

# By feature, its special levels that a rule constrains, each with its anchor.
Held = Mapping[str, Mapping[int, Anchor]]

# Cells that distinct rows of a subscale may be counted in: a table of 16 MB.
_MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class CodedRows:
    """Rows as codes; all sequences have one entry per feature.

    Attributes
    ----------
    names, levels : the features and their levels
    weights, positives : per feature, (levels,): total weight and that of the positive outcome
    joints : the joint codes that the features are coded in
    rows : what a solver reads
    """

    names: tuple[str, ...]
    levels: tuple[Levels, ...]
    weights: tuple[Floats, ...]
    positives: tuple[Floats, ...]
    joints: tuple[JointCode, ...]
    rows: Rows


def rule_anchors(coded: CodedRows, schema: Schema, scores: Sequence[Floats] | None = None) -> Held:
    """Return the special levels that rules constrain, by feature; see `level_anchors`."""
    given = [None] * len(coded.names) if scores is None else scores
    return {
        name: level_anchors(schema.features[name], levels, weights, schema.worse, level_scores)
        for name, levels, weights, level_scores in zip(coded.names, coded.levels, coded.weights, given, strict=True)
    }


def learn_levels(training: TrainingRows, **settings: Any) -> dict[str, Levels]:
    """Find the levels of every feature in one pass, and keep the ranges of the measurements with the training rows.

    Parameters
    ----------
    settings : of every `LevelFinder`
    """
    finders: list[LevelFinder] = training.sums(
        [_Look(LevelFinder(name, feature, **settings)) for name, feature in training.schema.features.items()],
        finish=_finish,
        task="finding bins",
    )
    training.ranges.update({finder.name: finder.range for finder in finders})
    _warn_of_coarse_edges(finders)
    for finder in finders:
        if finder.n_grouped:
            warn(
                f"Data: feature {finder.name!r} has {finder.n_labels:,} categories; the {finder.n_grouped:,} rarest "
                "share one effect. If it is an identifier, leave it out; else group its categories in the schema."
            )
    near = [finder.name for finder in finders if finder.too_near]
    if near:
        warn(
            f"Data: the values of {quoted(near)} all lie within 1e-7, which a tree does not separate, so each has one "
            "bin. Change the unit, or take criterion='quantile'."
        )
    return {finder.name: finder.levels for finder in finders}


@dataclass(frozen=True)
class _Look:
    """Counts some rows for a finder; it is sent to where they are."""

    finder: LevelFinder

    def __call__(self, batch: Training) -> LevelFinder:
        finder = self.finder.empty()
        finder.add(batch.frame, batch.target.view(np.bool_), batch.weight)
        return finder


def _finish(finder: LevelFinder) -> LevelFinder:
    finder.finish()
    return finder


def value_ranges(form: RiskForm, training: TrainingRows) -> dict[str, Limits]:
    """Return the smallest and the largest measured value of every continuous feature that a form reads."""
    names = [name for name in form.features if training.schema.features[name].kind == "continuous"]
    unread = [name for name in names if name not in training.ranges]
    if unread:  # by experts of other libraries
        learn_levels(training.with_schema(training.schema.part(unread)), lines=True)
    return {name: limits for name in names if (limits := training.ranges[name]) is not None}


def _warn_of_coarse_edges(finders: Sequence[LevelFinder]) -> None:
    coarse = [f for f in finders if f.values.bits]
    if not coarse:
        return
    worst = max(f.values.bits for f in coarse)
    others = f" and {len(coarse) - 1} more" if len(coarse) > 1 else ""
    warn(
        f"Data: feature {coarse[0].name!r}{others} has more than {coarse[0].values.most:,} distinct values. Bin "
        f"edges there are exact to one part in {2 ** (52 - worst):,} of the value; no row is lost.",
    )


def code_rows(
    training: TrainingRows,
    levels: Mapping[str, Levels],
    dense: Callable[[Training], Floats] | None = None,
) -> CodedRows:
    """Code the rows in one pass, and count every level.

    Parameters
    ----------
    levels : by feature, in the order of the coefficients
    dense : from a batch to numeric columns that are kept with the codes, (rows, columns)
    """
    encoder = Encoder.of(levels, training.n_rows)
    kept = training.keep(_Encode(encoder, dense), task="coding rows")
    return coded_rows(encoder, KeptRows(kept, CodedBlock(len(encoder.joints), dense is not None)))


def coded_rows(encoder: Encoder, rows: Rows) -> CodedRows:
    """Count every level of rows that were coded."""
    joints = encoder.joints
    weights, positives = rows.sum(_CodeSums([joint.size for joint in joints]), whole_blocks=True)
    return CodedRows(
        encoder.names, encoder.levels, _margins(joints, weights), _margins(joints, positives), joints, rows
    )


@dataclass(frozen=True)
class Encoder:
    """From rows to their joint codes.

    Attributes
    ----------
    names, levels : the features and their levels
    joints : the joint codes that the features are coded in
    """

    names: tuple[str, ...]
    levels: tuple[Levels, ...]
    joints: tuple[JointCode, ...]

    @classmethod
    def of(cls, levels: Mapping[str, Levels], n_rows: int) -> Encoder:
        """Return the coding of this many rows."""
        return cls(tuple(levels), tuple(levels.values()), joint_codes(list(map(len, levels.values())), n_rows))

    def codes(self, batch: Training) -> tuple[Codes, ...]:
        """Return the joint codes of some rows."""
        return tuple(parallel_map(functools.partial(self._code, batch=batch), self.joints, batch.n_rows))

    def _code(self, joint: JointCode, batch: Training) -> Codes:
        return joint.encode([self.levels[j].codes(batch.frame, self.names[j]) for j in joint.features])


@dataclass(frozen=True)
class _Encode:
    """From rows to what is kept of them; see `CodedBlock`."""

    encoder: Encoder
    dense: Callable[[Training], Floats] | None

    def __call__(self, batch: Training) -> Arrays:
        weight = () if batch.weight is None else (batch.weight,)
        columns = () if self.dense is None else (self.dense(batch),)
        return (*self.encoder.codes(batch), batch.positive, *weight, *columns)


@dataclass(frozen=True)
class _CodeSums:
    """Sums of the weight by joint code, and of that of the positive outcome."""

    sizes: list[int]

    def __call__(self, block: Block) -> tuple[list[Floats], list[Floats]]:
        positive = block.positive.astype(np.float64)
        return level_sums(block.weight, block.codes, self.sizes), level_sums(positive, block.codes, self.sizes)


def _margins(joints: Sequence[JointCode], by_code: Sequence[Floats]) -> tuple[Floats, ...]:
    """Return sums by level for every feature, given sums by joint code; joint codes have the features in order."""
    return tuple(sums for joint, code_sums in zip(joints, by_code, strict=True) for sums in joint.margins(code_sums))


class KeptRows(Rows):
    """Rows that stay where they are kept.

    Parameters
    ----------
    kept : arrays of rows
    block : what makes of the number and the arrays of a group a block of rows
    """

    def __init__(self, kept: Kept, block: Callable[[int, Arrays], Block]) -> None:
        self.kept, self.block = kept, block

    def _total(self, function: Callable[[Block], Any]) -> Any:
        return self.kept.total(_OfBlocks(self.block, function))

    def mapped(self, change: Callable[[Block], Block]) -> Rows:
        """Return the same rows with other codes; in memory, they are computed once."""
        only = self.kept.only
        return MappedRows(self, change) if only is None else Rows([change(self.block(0, only))])


@dataclass(frozen=True)
class CodedBlock:
    """From arrays of rows to a block.

    The arrays are the joint codes and the positive outcomes, then the weights and the numeric columns, if there are
    any.

    Attributes
    ----------
    n_codes : how many joint codes there are
    dense : whether there are numeric columns
    """

    n_codes: int
    dense: bool = False

    def __call__(self, number: int, arrays: Arrays) -> Block:
        """Return the block."""
        positive, *rest = arrays[self.n_codes :]
        dense = rest.pop() if self.dense else None
        return Block(arrays[: self.n_codes], positive, rest[0] if rest else None, dense, number)


@dataclass(frozen=True)
class _OfBlocks:
    """A function of blocks, given the kept data."""

    block: Callable[[int, Arrays], Block]
    function: Callable[[Block], Any]

    def __call__(self, number: int, arrays: Arrays) -> Any:
        return self.function(self.block(number, arrays))


def collapsed(rows: Rows, sizes: Sequence[int]) -> Rows:
    """Return the distinct rows with their weights, if they are few: nothing is lost, and most rows disappear."""
    grid, n_rows = math.prod(sizes), rows.totals[0]
    if grid > min(max(4096, n_rows // 4), _MOST_CELLS):
        return rows

    total, positive = rows.sum(_CellSums(tuple(sizes), grid), whole_blocks=True)
    used = np.flatnonzero(total > 0)
    codes = zip(np.unravel_index(used, tuple(sizes)), sizes, strict=True)
    return Rows([Block(tuple(code.astype(code_type(n)) for code, n in codes), positive[used], total[used])])


@dataclass(frozen=True)
class _CellSums:
    """Sums of the weight by combination of codes, and of that of the positive outcome."""

    sizes: tuple[int, ...]
    grid: int

    def __call__(self, block: Block) -> tuple[Floats, Floats]:
        key = np.zeros(len(block), np.intp)
        for code, size in zip(block.codes, self.sizes, strict=True):
            key *= size
            key += code
        total = np.bincount(key, block.weight, minlength=self.grid).astype(np.float64)
        return total, np.bincount(key, block.positive, minlength=self.grid).astype(np.float64)


def scores_by_code(coded: CodedRows, level_scores: Sequence[Floats]) -> list[Floats]:
    """Return the score of every joint code, given those of every feature's levels."""
    tables = []
    for joint in coded.joints:
        features = zip(joint.features, joint.levels, strict=True)
        tables.append(np.sum([level_scores[j][level] for j, level in features], axis=0))
    return tables


def sums_by_code(
    rows: Rows, link: Link, intercept: float, tables: Sequence[Floats]
) -> tuple[float, list[Floats], list[Floats]]:
    """Return the sum of losses with these scores by joint code, and by code the sums of its slope and curvature.

    The loss is the log loss, or the squared error where the link is linear.
    """
    return rows.sum(_SlopeSums(isinstance(link, Linear), intercept, tables))


@dataclass(frozen=True)
class _SlopeSums:
    """The result of `sums_by_code` for some rows."""

    linear: bool
    intercept: float
    tables: Sequence[Floats]

    def __call__(self, block: Block) -> tuple[float, list[Floats], list[Floats]]:
        sizes = [len(table) for table in self.tables]
        if not self.linear:
            rows = (block.codes, self.tables, block.positive, block.weight)
            passed = logistic_pass(self.intercept, *rows, curvature=True)
            return passed.loss, passed.by_code, level_sums(passed.curvature, block.codes, sizes)
        score = look_up(self.intercept, block.codes, self.tables, len(block))
        weight = np.ones(len(block)) if block.weight is None else block.weight
        loss = float(weight @ score**2 + block.positive @ (1.0 - 2.0 * score))
        slope = 2.0 * (weight * score - block.positive)
        return loss, level_sums(slope, block.codes, sizes), level_sums(2.0 * weight, block.codes, sizes)


# ---- the number of rows that the weights represent


def own_weight(weight: Floats | None, positive: Array | None, factors: Floats | None) -> Floats | None:
    """Return what rows weigh without class weights, or None where that is 1."""
    if weight is None or factors is None or positive is None:
        return weight
    return weight / factors[(np.asarray(positive) > 0).astype(np.intp)]


def rows_meant(training: TrainingRows, rows: Rows, weights: Weights) -> float:
    """Return the number of rows that the weights represent.

    Their sum, if they are counts; the number of rows, if only their ratios matter. With "auto", weights that are whole
    multiples of the least one are counts in that unit, as repeated rows would be, and all others are ratios.
    """
    if weights == "counts":
        return training.total
    (lowest,) = rows.sum(_LeastWeight(training.factors), whole_blocks=True)
    least = min(lowest, default=0.0)
    if weights == "relative" or not least:
        return float(training.n_rows)
    broken, total = rows.sum(_Multiples(training.factors, least), whole_blocks=True)
    return float(training.n_rows) if broken else total / least


@dataclass(frozen=True)
class _LeastWeight:
    """The least weight of a block without class weights, which say nothing about how rows were counted."""

    factors: Floats | None

    def __call__(self, block: Block) -> tuple[tuple[float, ...]]:
        weight = own_weight(block.weight, block.positive, self.factors)
        return (() if weight is None else (float(weight.min()),),)


@dataclass(frozen=True)
class _Multiples:
    """Whether weights are not whole multiples of a unit (0 or 1, added up), and their sum."""

    factors: Floats | None
    unit: float

    def __call__(self, block: Block) -> tuple[int, float]:
        weight = own_weight(block.weight, block.positive, self.factors)
        if weight is None:
            return 0, 0.0
        return int(np.abs(weight / self.unit - np.rint(weight / self.unit)).max() > 1e-9), float(weight.sum())
