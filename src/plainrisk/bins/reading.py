"""Columns of numbers, read once: levels where they are known, else measurements from which bins are found."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.reading import HALFWAY, HAS_INFINITY, TOO_LARGE, code_singles, read_levels, rule_of, steps_of
from plainrisk.data.columns import numbers_of
from plainrisk.data.frame import Frame
from plainrisk.form import Bins, Levels
from plainrisk.form.levels import code_type

__all__ = ["Column", "Wanted", "code_bins", "plain_numbers", "read_wanted"]

Codes = npt.NDArray[np.unsignedinteger[Any]]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Wanted:
    """What a column shall be read as: the codes of `levels`, or if `measured` its measurements.

    The levels of measurements are one bin, and those outside the order.
    """

    name: str
    levels: Levels
    measured: bool = False


@dataclass(frozen=True, eq=False)
class Column:
    """What was read.

    Attributes
    ----------
    levels : those that were wanted
    codes : (n,) or None
    singles : (n,) or None; measurements as float32, and the levels of other rows in the bits of NaN
    rounded : whether a number may have moved across an edge when it was rounded to float32
    """

    levels: Levels
    codes: Codes | None = None
    singles: Singles | None = None
    rounded: bool = False


def read_wanted(frame: Frame, wanted: Sequence[Wanted]) -> list[Column | None]:
    """Read several columns in one pass; None is for those that are no plain numbers, or not all of them finite."""
    found: list[Column | None] = [None] * len(wanted)
    sources = [(k, source) for k, w in enumerate(wanted) if (source := _source(frame, w)) is not None]
    outs = [np.empty(frame.n_rows, _type(wanted[k])) for k, _ in sources]
    flags = read_levels([x for _, (x, _) in sources], [rule for _, (_, rule) in sources], outs)
    for (k, _), out, flag in zip(sources, outs, flags, strict=True):
        levels, measured = wanted[k].levels, wanted[k].measured
        if isinstance(levels, Bins) and flag & (HAS_INFINITY | TOO_LARGE if measured else HAS_INFINITY):
            continue  # whoever reads it again will say which row it is
        halfway = bool(flag & HALFWAY)
        found[k] = Column(levels, singles=out, rounded=halfway) if measured else Column(levels, codes=out)
    return found


def _source(frame: Frame, wanted: Wanted) -> tuple[npt.NDArray[Any], Floats] | None:
    """Return the numbers of a column and the rule that codes them."""
    column = frame.column(wanted.name)
    if isinstance(wanted.levels, Bins):
        column = plain_numbers(frame, wanted.name)
    elif not _is_plain(column, "f"):
        return None
    return column, rule_of(steps_of(wanted.levels))


def plain_numbers(frame: Frame, name: str) -> npt.NDArray[Any]:
    """Return a column as numbers that the compiled loops read, as they are stored if possible; text is an error."""
    column = frame.array(name)
    if column is not None and _is_plain(column, "fiu"):
        return column
    return np.require(numbers_of(name, frame.column(name), frame.first), requirements="A")


def _is_plain(column: Any, kinds: str) -> bool:
    """Whether a column is an array of numbers of some kinds as the compiled loops read them."""
    if not isinstance(column, np.ndarray) or column.dtype.kind not in kinds:
        return False
    is_common = column.itemsize in (4, 8) or column.dtype.kind != "f"
    return is_common and column.dtype.isnative and column.flags.aligned


def _type(wanted: Wanted) -> Any:
    return np.float32 if wanted.measured else code_type(len(wanted.levels))


def code_bins(
    singles: Sequence[Singles], bins: Sequence[Bins], target: npt.NDArray[np.uint8]
) -> list[tuple[Codes, Floats, Floats]]:
    """Return the level of every row, and as `level_counts` does how often each level occurs, for every column.

    Parameters
    ----------
    singles : (n,) each, as they were read
    bins : whose edges lie midway between measurements
    target : (n,) 0/1
    """
    sizes = [len(levels) for levels in bins]
    codes: list[Codes] = [np.empty(len(target), code_type(size)) for size in sizes]
    counts = code_singles(singles, [levels.edges for levels in bins], sizes, target, codes).astype(np.float64)
    total, positive = counts.sum(axis=1), counts[:, 1].copy()
    ends = itertools.accumulate(sizes)
    places = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    return [(code, total[place], positive[place]) for code, place in zip(codes, places, strict=True)]
