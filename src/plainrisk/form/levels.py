"""The levels of a feature, and which level a value falls into.

Every feature, once encoded, is a small integer: the number of its level. Fitting and scoring both ask the
same two classes here, so they can not disagree.

    Bins        bin 0 .. bin k | special value 0 .. | below the bound | missing
    Categories  category 0 ..  | missing | unseen

The levels before the first bar are the *ordered* ones when the feature has a direction. The others stand
outside the order, each with an effect of its own.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk._native import Chain, rule_of
from plainrisk.data.frame import Frame
from plainrisk.errors import ModelFileError
from plainrisk.schema import label_of

__all__ = ["Bins", "Categories", "Codes", "Levels", "add_steps", "code_type"]

Codes = npt.NDArray[np.unsignedinteger[Any]]
Floats = npt.NDArray[np.float64]

# Up to here, adding up comparisons beats a binary search per value.
_FEW_EDGES = 12

# A comparison, what to compare with, and what a hit adds to the code; without a comparison it is added to all.
Step = tuple[np.ufunc | None, float, int]


class Bins(msgspec.Struct, frozen=True, dict=True, tag="bins", tag_field="kind", forbid_unknown_fields=True):
    """The levels of a continuous feature: intervals, special values, below the bound, missing.

    Bin j holds the values with ``edges[j-1] < x <= edges[j]``.

    >>> bins = Bins(edges=(10.0, 20.0), special_values=(-9.0,), lower_bound=0.0)
    >>> bins.labels
    ('x <= 10', '10 < x <= 20', 'x > 20', '= -9', 'x < 0', 'missing')
    >>> bins.code_numbers(np.array([5.0, 10.0, 25.0, -9.0, -1.0, np.nan])).tolist()
    [0, 0, 2, 3, 4, 5]
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
            raise ModelFileError(f"Model: a feature may have 65,536 levels, not {len(self):,}.")

    def __len__(self) -> int:
        return len(self.edges) + 1 + len(self.special_values) + (self.lower_bound is not None) + 1

    @property
    def n_ordered(self) -> int:
        """How many levels are in the order: the bins."""
        return len(self.edges) + 1

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """A text per level."""
        e = [f"{v:.6g}" for v in self.edges]
        bins = [f"{a} < x <= {b}" for a, b in itertools.pairwise(e)]
        bins = [f"x <= {e[0]}", *bins, f"x > {e[-1]}"] if e else ["any value"]
        special = [f"= {v:.6g}" for v in self.special_values]
        below = [] if self.lower_bound is None else [f"x < {self.lower_bound:.6g}"]
        return (*bins, *special, *below, "missing")

    def codes(self, frame: Frame, name: str) -> Codes:
        """Return the level of every row."""
        codes: Codes = np.zeros(frame.n_rows, code_type(len(self)))
        self.add_codes(codes, frame, name)
        return codes

    def add_codes(self, codes: Codes, frame: Frame, name: str, room: Floats | None = None) -> None:
        """Add the level of every row to `codes`; a column that must be copied first is copied to `room`."""
        x, complete = frame.measures(name, room)
        self._add(codes, x, complete)

    def code_numbers(self, x: Floats) -> Codes:
        """Return the level of every number; NaN is missing."""
        codes: Codes = np.zeros(x.shape, code_type(len(self)))
        self._add(codes, x, complete=False)
        return codes

    def _add(self, codes: Codes, x: Floats | npt.NDArray[np.integer[Any]], complete: bool) -> None:
        """Add the level of every number; `complete` says that none is NaN."""
        if len(self.edges) > _FEW_EDGES:
            codes += self._search(np.asarray(x, dtype=np.float64))
            return
        steps = self._steps if x.dtype.kind == "f" else self._whole_steps
        add_steps(codes, x, steps[:-1] if complete and x.dtype.kind == "f" else steps)

    @functools.cached_property
    def _steps(self) -> tuple[Step, ...]:
        """What leads from 0 to the level of a float, missing last.

        A special value is one number, so its bin is known, and adding a constant leads from there to its level. The
        same holds below the bound once the edges there are left out, which tell nothing apart, and for missing.
        """
        low = -math.inf if self.lower_bound is None else self.lower_bound
        start = sum(edge < low for edge in self.edges)
        steps: list[Step] = [(None, 0.0, start)] if start else []
        steps += [(np.greater, edge, 1) for edge in self.edges[start:]]
        if self.lower_bound is not None:
            steps.append((np.less, low, self.missing - 1 - start))
        for value, level in {v: self.n_ordered + k for k, v in enumerate(self.special_values)}.items():
            without = self.missing - 1 if value < low else sum(value > edge for edge in self.edges)
            steps.append((np.equal, value, level - without))
        # Only NaN differs from itself.
        return (*steps, (np.not_equal, math.nan, self.missing - start))

    @functools.cached_property
    def _whole_steps(self) -> tuple[Step, ...]:
        """The same for integers, compared as integers: none is missing."""
        steps: list[Step] = []
        for compare, value, by in self._steps[:-1]:
            whole = math.ceil(value) if compare is np.less else math.floor(value)
            if compare is not np.equal or whole == value:
                steps.append((compare, whole, by))
        return tuple(steps)

    def chain(self, scores: Sequence[float]) -> Chain:
        """Return the comparisons that lead from a number to its level's score; infinity has none."""
        n, edges, values = self.n_ordered, self.edges, scores[: self.n_ordered]
        if self.lower_bound is not None:
            # Below the bound is where the chain starts; the edges down there tell nothing apart.
            start = sum(edge < self.lower_bound for edge in edges)
            edges = (math.nextafter(self.lower_bound, -math.inf), *edges[start:])
            values = (scores[self.missing - 1], *values[start:])
        equal = tuple(zip(self.special_values, scores[n:], strict=False))
        return Chain(tuple(values), edges, equal=equal, limit=sys.float_info.max, missing=scores[self.missing])

    @property
    def rule(self) -> Floats | None:
        """The steps as numbers, for `kernels.read_levels`; None if they are too many."""
        return _rule(self) if len(self.edges) <= _FEW_EDGES else None

    def _search(self, x: Floats) -> Codes:
        codes: Codes = np.searchsorted(np.asarray(self.edges), x, side="left").astype(code_type(len(self)))
        if self.lower_bound is not None:
            codes[x < self.lower_bound] = self.missing - 1
        for k, value in enumerate(self.special_values):
            codes[x == value] = self.n_ordered + k
        codes[np.isnan(x)] = self.missing
        return codes


@functools.lru_cache(maxsize=256)
def _rule(bins: Bins) -> Floats:
    """The steps as numbers; before bins are found, most features are alike."""
    rule = rule_of(bins._steps)
    rule.flags.writeable = False
    return rule


class Categories(
    msgspec.Struct, frozen=True, dict=True, tag="categories", tag_field="kind", forbid_unknown_fields=True
):
    """The levels of a categorical feature: its categories, missing, unseen.

    `n_ordered` is how many of the categories, from the first, are in the order; the special values among
    them come after.

    >>> Categories(("low", "high"), 2).labels
    ('low', 'high', 'missing', 'unseen')
    """

    categories: tuple[str, ...]
    n_ordered: int

    def __post_init__(self) -> None:
        if len(set(self.categories)) < len(self.categories):
            raise ModelFileError("Model: a feature lists a category twice.")
        if not 0 <= self.n_ordered <= len(self.categories) or len(self) > 2**16:
            raise ModelFileError("Model: a feature has an impossible number of categories.")

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

    def codes(self, frame: Frame, name: str) -> Codes:
        """Return the level of every row."""
        codes: Codes = np.zeros(frame.n_rows, code_type(len(self)))
        self.add_codes(codes, frame, name)
        return codes

    def add_codes(self, codes: Codes, frame: Frame, name: str, room: Floats | None = None) -> None:
        """Add the level of every row to `codes`; a column that must be copied first is copied to `room`."""
        column = frame.column(name)
        is_numeric = isinstance(column, np.ndarray) and column.dtype.kind in "iuf"
        if is_numeric and len(self.categories) <= _FEW_EDGES and not frame.has_labels(name):
            self._add(codes, column, room)
        else:
            codes += frame.places(name, self.categories)

    def _add(self, codes: Codes, column: npt.NDArray[Any], room: Floats | None) -> None:
        """Add the level of every number, found by comparing it with the categories that are numbers."""
        real = column.dtype.kind == "f"
        x = column if real else np.ascontiguousarray(column)
        if real and not (column.dtype == np.float64 and column.flags.c_contiguous):
            x = np.empty(len(column)) if room is None else room[: len(column)]
            np.copyto(x, column)
        add_steps(codes, x, self._steps if real else self._whole_steps)

    @functools.cached_property
    def _steps(self) -> tuple[Step, ...]:
        """What leads from 0 to the level of a float: unseen first, then back to the categories that are its label."""
        unseen = len(self) - 1
        steps = [(np.equal, value, level - unseen) for value, level in self._numbers(float)]
        return ((None, 0.0, unseen), *steps, (np.not_equal, math.nan, self.missing - unseen))

    @functools.cached_property
    def _whole_steps(self) -> tuple[Step, ...]:
        """The same for integers."""
        unseen = len(self) - 1
        return ((None, 0, unseen), *((np.equal, value, level - unseen) for value, level in self._numbers(int)))

    def chain(self, scores: Sequence[float]) -> Chain:
        """Return the comparisons that lead from a number to the score of the category that is its label."""
        equal = tuple((value, scores[level]) for value, level in self._numbers(float))
        return Chain(values=(scores[-1],), equal=equal, missing=scores[self.missing])

    def place_chain(self, scores: Sequence[float]) -> Chain:
        """Return the comparisons that lead from a place among the categories to its score; see `Frame.places`."""
        return Chain(values=tuple(scores), edges=tuple(float(k) for k in range(len(scores) - 1)))

    @functools.cached_property
    def reads_integers(self) -> bool:
        """Whether an integer is a category exactly if it is as a float, into which large ones are rounded."""
        numbers = itertools.chain(self._numbers(float), self._numbers(int))
        return all(abs(value) < 2**53 or not math.isfinite(value) for value, _ in numbers)

    @property
    def rule(self) -> Floats | None:
        """The steps from a float as numbers, for `kernels.read_levels`; None if they are too many."""
        return rule_of(self._steps) if len(self.categories) <= _FEW_EDGES else None

    def _numbers(self, kind: type[float]) -> Iterator[tuple[float, int]]:
        """Yield the categories that are the label of such a number, as that number, with their levels."""
        for level, label in enumerate(self.categories):
            try:
                number = kind(label)
            except ValueError:
                continue
            if label_of(number) == label:
                yield number, level


Levels = Bins | Categories


def add_steps(codes: Codes, x: npt.NDArray[Any], steps: Sequence[Step]) -> None:
    """Add to each code what the comparisons of its number give; codes wrap around, so steps may be negative."""
    hit = np.empty(x.shape, np.bool_)
    ones = hit.view(np.uint8)
    turn = 1 << 8 * codes.itemsize
    for compare, value, by in steps:
        if compare is None:
            codes += codes.dtype.type(by % turn)
            continue
        compare(x, x if compare is np.not_equal else value, hit)
        if by == 1:
            np.add(codes, ones, codes)
        elif codes.itemsize == 1:
            np.multiply(ones, by % turn, ones)
            np.add(codes, ones, codes)
        else:
            np.add(codes, np.multiply(ones, codes.dtype.type(by % turn)), codes)


def code_type(n_levels: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that holds so many codes."""
    return np.uint8 if n_levels <= 256 else np.uint16
