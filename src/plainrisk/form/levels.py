"""The levels of a feature, and which level a value falls into.

Every feature, once encoded, is a small integer: the number of its level. Fitting and scoring both ask the
same two classes here, so they can not disagree.

    Bins        bin 0 .. bin k | special value 0 .. | below the bound | missing
    Categories  category 0 ..  | missing | unseen

The levels before the first bar are the *ordered* ones when the feature has a direction. The others stand
outside the order, each with an effect of its own.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.errors import ModelFileError
from plainrisk.frames import Frame

__all__ = ["Bins", "Categories", "Codes", "Levels"]

Codes = npt.NDArray[np.unsignedinteger[Any]]

# Up to here, adding up comparisons beats a binary search per value.
_FEW_EDGES = 12


class Bins(msgspec.Struct, frozen=True, tag="bins", tag_field="kind", forbid_unknown_fields=True):
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
        if any(b <= a for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise ModelFileError(f"Model: bin edges must be strictly increasing, not {self.edges}.")
        if len(self) > 2**16:
            raise ModelFileError(f"Model: a feature may have 65,536 levels, not {len(self):,}.")

    def __len__(self) -> int:
        return self.n_ordered + len(self.special_values) + (self.lower_bound is not None) + 1

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
        return self.code_numbers(frame.numbers(name))

    def code_numbers(self, x: npt.NDArray[np.float64]) -> Codes:
        """Return the level of every number; NaN is missing."""
        dtype = _code_type(len(self))
        if len(self.edges) <= _FEW_EDGES:
            codes: Codes = np.zeros(x.shape, dtype)
            for edge in self.edges:
                codes += x > edge
        else:
            codes = np.searchsorted(np.asarray(self.edges), x, side="left").astype(dtype)
        if self.lower_bound is not None:
            codes[x < self.lower_bound] = self.missing - 1
        for k, value in enumerate(self.special_values):
            codes[x == value] = self.n_ordered + k
        codes[np.isnan(x)] = self.missing
        return codes


class Categories(msgspec.Struct, frozen=True, tag="categories", tag_field="kind", forbid_unknown_fields=True):
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
        column = frame.labels(name)
        known = {label: code for code, label in enumerate(self.categories)}
        unseen = len(self) - 1
        # One entry per distinct label of the data, and one more at the end, which code -1 (missing) reaches.
        reached = [known.get(label, unseen) for label in column.labels]
        table: Codes = np.array([*reached, self.missing], dtype=_code_type(len(self)))
        return table[column.codes]


Levels = Bins | Categories


def _code_type(n_levels: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if n_levels <= 256 else np.uint16
