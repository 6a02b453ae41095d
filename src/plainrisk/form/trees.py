"""A sum of small trees as pure data: a part that is not additive in its features."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.data.frame import Frame
from plainrisk.errors import ModelFileError
from plainrisk.form.levels import unseen_level
from plainrisk.form.links import Link
from plainrisk.schema import Schema
from plainrisk.text import visible

__all__ = ["Tree", "TreeInput", "TreePart"]

LEAF = -1


class TreeInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number that the trees read: a feature itself, or computed from its categories.

    Attributes
    ----------
    feature : str
    category : the input is 1 where the feature has this category, 0 elsewhere
    order : the input is the category's place in this order; a category that is not in it is missing
    missing : a value that counts as missing, in addition to missing itself
    """

    feature: str
    category: str | None = None
    order: tuple[str, ...] | None = None
    missing: float | None = None

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.category, self.order, self.missing)) > 1:
            raise ModelFileError(f"Model: the trees read {self.feature!r} in two ways at once.")

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories that the input knows; none where it is a number."""
        return (self.order or ()) if self.category is None else (self.category,)

    def read(self, frame: Frame) -> Floats:
        """Return the input of every row, NaN where it is missing."""
        if self.category is None and self.order is None:
            x = frame.numbers(self.feature)
            return x if self.missing is None else np.where(x == self.missing, np.nan, x)
        values = {self.category: 1.0} if self.order is None else {label: float(k) for k, label in enumerate(self.order)}
        other = 0.0 if self.order is None else np.nan
        frame.refuse_fractions(self.feature)
        column = frame.labels(self.feature)
        # The last entry is that of code -1, missing.
        return np.array([*(values.get(label, other) for label in column.labels), other])[column.codes]


class Tree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tree; node 0 is the root, and all arrays have one entry per node.

    Attributes
    ----------
    inputs : which input a node asks, -1 for a leaf
    edges : a row goes left if its input is at most the edge
    missing_left : where a missing input goes
    left, right : the children; both larger than the node's own number
    values : what a leaf adds to the score
    """

    inputs: tuple[int, ...]
    edges: tuple[float, ...]
    missing_left: tuple[bool, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        n = len(self.inputs)
        fields = (self.edges, self.missing_left, self.left, self.right, self.values)
        if n == 0 or any(len(field) != n for field in fields):
            raise ModelFileError("Model: a tree's arrays differ in length.")
        if not all(map(math.isfinite, (*self.edges, *self.values))):
            raise ModelFileError("Model: a tree holds a number that is not finite.")
        # Children come after their parent, so following them always ends.
        inner = [k for k in range(n) if self.inputs[k] != LEAF]
        if not all(k < child < n for k in inner for child in (self.left[k], self.right[k])):
            raise ModelFileError("Model: a tree's children must come after their parent.")

    def values_at(self, inputs: list[Floats]) -> Floats:
        """Return the value of the leaf each row falls into."""
        out = np.empty(len(inputs[0]) if inputs else 0)
        # Parents come first, so when a node's turn comes all its rows have arrived. A node may have several parents.
        arrived: dict[int, list[Index]] = {0: [np.arange(len(out))]}
        for node, j in enumerate(self.inputs):
            if node not in arrived:
                continue
            pieces = arrived.pop(node)
            rows = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            if j == LEAF:
                out[rows] = self.values[node]
                continue
            x = inputs[j][rows]
            left = x <= self.edges[node]
            if self.missing_left[node]:
                left |= np.isnan(x)
            arrived.setdefault(self.left[node], []).append(rows[left])
            arrived.setdefault(self.right[node], []).append(rows[~left])
        return out

    def leaves_below(self, node: int) -> list[float]:
        """Return the values of all leaves under a node, each leaf once."""
        reached = {node}
        for k in range(node, len(self.inputs)):
            if k in reached and self.inputs[k] != LEAF:
                reached |= {self.left[k], self.right[k]}
        return [self.values[k] for k in sorted(reached) if self.inputs[k] == LEAF]


class TreePart(msgspec.Struct, frozen=True, kw_only=True, tag="trees", tag_field="kind", forbid_unknown_fields=True):
    """A sum of trees, the whole model or the expert of one subscale."""

    name: str
    intercept: float
    inputs: tuple[TreeInput, ...]
    trees: tuple[Tree, ...]
    link: Link

    def __post_init__(self) -> None:
        if not math.isfinite(self.intercept):
            raise ModelFileError(f"Model: the intercept of {self.name!r} is not finite.")
        if any(not LEAF <= j < len(self.inputs) for tree in self.trees for j in tree.inputs):
            raise ModelFileError(f"Model: a tree of {self.name!r} reads an input that does not exist.")

    def __repr__(self) -> str:
        counts = f"{len(self.features)} features, {len(self.trees)} trees"
        return visible(f"TreePart({self.name!r}, {counts}, link={self.link!r})")

    @property
    def features(self) -> tuple[str, ...]:
        """The features the part reads."""
        return tuple(dict.fromkeys(i.feature for i in self.inputs))

    def refuse_unseen(self, frame: Frame, schema: Schema) -> None:
        """Raise an error if a row has a category that no input knows, and the schema says unseen = 'error'.

        A missing value passes: the form does not say whether training rows had any.
        """
        for name in self.features:
            labels = {label for i in self.inputs if i.feature == name for label in i.labels}
            if not labels or schema.features[name].unseen != "error":
                continue
            column = frame.labels(name)
            strange = np.array([*(label not in labels for label in column.labels), False])[column.codes]
            if strange.any():
                raise unseen_level(name, frame.first + int(strange.argmax()), "unseen")

    def score(self, frame: Frame, schema: Schema) -> Floats:
        """Return the score of every row."""
        self.refuse_unseen(frame, schema)
        # Trees without inputs are leaves; any column tells them the number of rows.
        inputs = [i.read(frame) for i in self.inputs] or [np.zeros(frame.n_rows)]
        score = np.full(frame.n_rows, self.intercept)
        for tree in self.trees:
            score += tree.values_at(inputs)
        return score
