"""The levels of a feature, and which level a value falls into.

Every encoded feature is a small integer: the number of its level. Fitting and scoring both use the two classes here
and nothing else, so they cannot disagree.

    Bins        bin 0 .. bin k | special value 0 .. | below the bound | missing
    Categories  category 0 ..  | missing | unseen

The levels before the first bar are the *ordered* ones if the feature has a direction. The others are *special*: each
has its own effect.

A level is a set of numbers, so the levels divide the number line into cells (`Cells`), whose ends are edges, bounds
and the two sides of single numbers. One number is looked up in them by `level_of`, a column by `codes`, and scoring
looks up what the level adds. Text is encoded by a dictionary first, and its distinct labels are looked up.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import operator
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from plainrisk import _native
from plainrisk._native import code_type
from plainrisk._types import Array, Codes, Floats
from plainrisk.data.columns import TRUTH
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, ModelFileError
from plainrisk.schema import label_of

__all__ = ["Bins", "Categories", "Cells", "Levels", "unseen_level"]

# Larger whole numbers may be rounded on their way to a float.
_LARGEST_WHOLE = 2**53


@dataclass(frozen=True, eq=False)
class Cells:
    """The levels of all numbers: that of x is ``levels[count(cuts < x)]``, and that of NaN is the last.

    Attributes
    ----------
    cuts : (k,), ascending
    levels : (k + 2,) uint8 or uint16
    """

    cuts: Floats
    levels: Codes

    @classmethod
    def of(cls, ends: Iterable[float], level_of: Callable[[float], int], missing: int, n_levels: int) -> Cells:
        """Return the cells with these ends; each is closed on its right, so it has the level of its right end."""
        cuts = sorted(set(ends))
        levels = [*map(level_of, (*cuts, math.inf)), missing]
        return cls(np.array(cuts, np.float64), np.array(levels, code_type(n_levels)))

    @functools.cached_property
    def lists(self) -> tuple[list[float], list[int]]:
        """The same as lists, in which a single number is found faster."""
        return self.cuts.tolist(), self.levels.tolist()


class Bins(msgspec.Struct, frozen=True, dict=True, tag="bins", tag_field="kind", forbid_unknown_fields=True):
    """The levels of a continuous feature: intervals, special values, below the bound, missing.

    Bin j contains the values with ``edges[j-1] < x <= edges[j]``.

    >>> bins = Bins(edges=(10.0, 20.0), special_values=(-9.0,), lower_bound=0.0)
    >>> bins.labels
    ('x <= 10', '10 < x <= 20', 'x > 20', '= -9', 'x < 0', 'missing')
    >>> bins.code_numbers(np.array([5.0, 10.0, 25.0, -9.0, -1.0, np.nan])).tolist()
    [0, 0, 2, 3, 4, 5]
    >>> bins.level_of(25.0), bins.level_of(None), bins.level_of("25")
    (2, 5, None)
    """

    edges: tuple[float, ...] = ()
    special_values: tuple[float, ...] = ()
    lower_bound: float | None = None

    def __post_init__(self) -> None:
        bound = () if self.lower_bound is None else (self.lower_bound,)
        if not all(map(math.isfinite, (*self.edges, *self.special_values, *bound))):
            raise ModelFileError("Model: bin edges, special values and bounds must be finite.")
        if any(map(operator.ge, self.edges, self.edges[1:])):
            raise ModelFileError(f"Model: bin edges must be strictly increasing, not {self.edges}.")
        if len(self) > 2**16:
            raise ModelFileError(f"Model: a feature may have at most 65,536 levels, not {len(self):,}.")

    def __len__(self) -> int:
        return len(self.edges) + 1 + len(self.special_values) + (self.lower_bound is not None) + 1

    @property
    def n_ordered(self) -> int:
        """The number of ordered levels: the bins."""
        return len(self.edges) + 1

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """A text per level, as schemas name it; `say_level` gives it in words."""
        e = [_plain(v) for v in self.edges]
        bins = [f"{a} < x <= {b}" for a, b in itertools.pairwise(e)]
        bins = [f"x <= {e[0]}", *bins, f"x > {e[-1]}"] if e else ["any value"]
        special = [f"= {label_of(v)}" for v in self.special_values]
        below = [] if self.lower_bound is None else [f"x < {_plain(self.lower_bound)}"]
        return (*bins, *special, *below, "missing")

    @functools.cached_property
    def cells(self) -> Cells:
        """The level of every number."""
        special = {value: self.n_ordered + k for k, value in enumerate(self.special_values)}
        low = -math.inf if self.lower_bound is None else self.lower_bound

        def level_of(x: float) -> int:
            if x in special:
                return special[x]
            return self.missing - 1 if x < low else bisect.bisect_left(self.edges, x)

        ends = (*self.edges, *_sides(special), *(() if self.lower_bound is None else (_below(low),)))
        return Cells.of(ends, level_of, self.missing, len(self))

    def codes(self, frame: Frame, name: str) -> Codes:
        """Return the level of every row; text and infinity raise and name the row."""
        if (level := self.level_of(frame.only_value(name))) is not None:
            return _code_of(level)
        return self.code_numbers(frame.numbers(name))

    def code_numbers(self, x: Array) -> Codes:
        """Return the level of every number; NaN is missing."""
        return _native.code_numbers(x, self.cells.cuts, self.cells.levels)

    def level_of(self, value: Any) -> int | None:
        """Return the level of one value; None unless it is clearly a finite number: `codes` decides then."""
        kind = type(value)
        if value is None:
            return self.missing
        if kind is int:
            if not -_LARGEST_WHOLE < value < _LARGEST_WHOLE:
                return None
        elif kind is not float and kind is not np.float64:
            return None
        elif value != value:
            return self.missing
        elif not -sys.float_info.max <= value <= sys.float_info.max:
            return None
        cuts, levels = self.cells.lists
        return levels[bisect.bisect_left(cuts, value)]


class Categories(
    msgspec.Struct,
    frozen=True,
    dict=True,
    omit_defaults=True,  # categories without groups are written as they were before there were any, so hashes hold
    tag="categories",
    tag_field="kind",
    forbid_unknown_fields=True,
):
    """The levels of a categorical feature: its categories, missing, unseen.

    `n_ordered` is how many of the categories, from the first, are in the order; the special values among
    them come after. The category of a number is its label: 2, 2.0 and "2" are the same. A category that training rows
    wrote "true" is that of the truth value, too. A category may be a group: it then holds the labels that `groups`
    lists under its name, and the name itself.

    >>> levels = Categories(("low", "high"), 2, {"high": ("very high", "top")})
    >>> levels.labels
    ('low', 'high', 'missing', 'unseen')
    >>> levels.level_of("high"), levels.level_of("top"), levels.level_of(None), levels.level_of(7)
    (1, 1, 2, 3)
    """

    categories: tuple[str, ...]
    n_ordered: int
    groups: dict[str, tuple[str, ...]] = {}

    def __post_init__(self) -> None:
        labels = [*self.categories, *itertools.chain.from_iterable(self.groups.values())]
        if len(set(labels)) < len(labels):
            raise ModelFileError("Model: a feature lists a category twice.")
        if not self.groups.keys() <= set(self.categories):
            raise ModelFileError("Model: a feature has a group that is not among its categories.")
        if not 0 <= self.n_ordered <= len(self.categories) or len(self) > 2**16:
            raise ModelFileError("Model: a feature has an invalid number of categories.")

    def __len__(self) -> int:
        return len(self.categories) + 2

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self.categories)

    @property
    def labels(self) -> tuple[str, ...]:
        """A text per level."""
        return (*self.categories, "missing", "unseen")

    @functools.cached_property
    def cells(self) -> Cells:
        """The level of every number as a float: that of the category which is its label, else unseen."""
        numbers = {x: level for x, level in self._numbers(float) if x == x}
        return Cells.of(_sides(numbers), lambda x: numbers.get(x, len(self) - 1), self.missing, len(self))

    @functools.cached_property
    def _has_large_integers(self) -> bool:
        """Whether any category is an integer that a float cannot represent."""
        return any(abs(x) >= _LARGEST_WHOLE for x, _ in self._numbers(int))

    def _numbers(self, kind: type[float]) -> Iterable[tuple[float, int]]:
        """Yield the categories that are the label of such a number, as numbers, with their levels."""
        for label, level in self._level_of_label.items():
            try:
                number = kind(label)
            except ValueError:
                continue
            if label_of(number) == label:
                yield number, level

    @functools.cached_property
    def _level_of_label(self) -> dict[str, int]:
        each = enumerate(self.categories)
        level_of = {label: level for level, name in each for label in (name, *self.groups.get(name, ()))}
        return {**{TRUTH[label]: level for label, level in level_of.items() if label in TRUTH}, **level_of}

    def reads(self, x: Array) -> bool:
        """Whether the `cells` give the levels of an array's numbers; otherwise, their labels do."""
        # A column of large integers with nulls becomes floats, which can represent only every second such number.
        return x.dtype.kind in "fiu" and (x.itemsize <= 4 or not self._has_large_integers)

    def codes(self, frame: Frame, name: str) -> Codes:
        """Return the level of every row."""
        if (level := self.level_of(frame.only_value(name))) is not None:
            return _code_of(level)
        frame.refuse_fractions(name)
        x = frame.array(name)
        if x is not None and self.reads(x):
            return _native.code_numbers(x, self.cells.cuts, self.cells.levels)
        read = frame.labels(name)
        unseen = len(self) - 1
        # Code -1, missing, is the last entry.
        table = np.array([*(self._level_of_label.get(label, unseen) for label in read.labels), self.missing])
        return table.astype(code_type(len(self))).take(read.codes, mode="wrap")

    def level_of(self, value: Any) -> int | None:
        """Return the level of one value; None unless it is clearly a text or a number: `codes` decides then."""
        kind = type(value)
        if kind is not str:
            if value is None or (kind is float and value != value):
                return self.missing
            if (kind is not int and kind is not float) or not -_LARGEST_WHOLE < value < _LARGEST_WHOLE:
                return None
            value = label_of(value)
        return self._level_of_label.get(value, len(self) - 1)


Levels = Bins | Categories


def unseen_level(name: str, row: int, label: str) -> DataError:
    """Return the error for a row with a level unseen in training, where the schema forbids such rows."""
    return DataError(
        f"Data: feature {name!r}, row {row}: level {label!r} was not in the training data, and the schema "
        "says unseen = 'error'. Correct the row, or set unseen = 'neutral'."
    )


@functools.cache
def _code_of(level: int) -> Codes:
    """Return the level of one row, which is looked up many times and never changed."""
    code = np.array([level], code_type(level + 1))
    code.flags.writeable = False
    return code


def _plain(x: float) -> str:
    """Return a number in six digits, without an exponent where it is large.

    >>> _plain(1250000.4), _plain(0.1234567)
    ('1250000', '0.123457')
    """
    return label_of(float(f"{x:.6g}"))


def _below(x: float) -> float:
    """Return the next float below x: the cell that ends there leaves x out."""
    return math.nextafter(x, -math.inf)


def _sides(numbers: Iterable[float]) -> Iterable[float]:
    """Return the ends of the cells that contain a single number."""
    return itertools.chain.from_iterable((_below(x), x) for x in numbers)
