"""Trees of another library as trees of a risk form.

Nodes are renumbered, single-precision splits get exact double-precision edges, and trees that read one feature
each become a step function of that feature.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk.extract.effects import Effect, NumberEffect
from plainrisk.extract.reading import Additive, TreeSum
from plainrisk.form import Tree
from plainrisk.form.trees import LEAF

__all__ = ["Split", "collapse", "float32_edge_at_most", "float32_edge_below", "tree_from"]

#: An edge that every number is at most: a split that only tells missing from not missing.
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Split:
    """An inner node: at most `edge` goes left. The children are the library's nodes or further splits."""

    input: int
    edge: float
    missing_left: bool
    left: Any
    right: Any


def tree_from(root: Any, describe: Callable[[Any], Split | float]) -> Tree:
    """Return a tree, given what each node is: a split, or the value of a leaf.

    Nodes are numbered so that children come after all their parents; a node may have several.

    >>> nodes = {"r": Split(0, 1.5, True, "a", "b"), "a": -1.0, "b": 2.0}
    >>> tree_from("r", nodes.__getitem__).values
    (0.0, -1.0, 2.0)
    """
    nodes = _parents_first(root, describe)
    number = {key: k for k, key in enumerate(nodes)}
    inputs, edges, missing_left, left, right, values = zip(*(_fields(n, number) for n in nodes.values()), strict=True)
    return Tree(inputs=inputs, edges=edges, missing_left=missing_left, left=left, right=right, values=values)


def _parents_first(root: Any, describe: Callable[[Any], Split | float]) -> dict[int | str, Split | float]:
    """Return what every node is, in the reverse of a depth-first post-order."""
    seen: dict[int | str, tuple[Any, Split | float]] = {}
    finished: list[int | str] = []

    def visit(node: Any) -> None:
        key = _key(node)
        if key in seen:
            return
        what = node if isinstance(node, Split) else describe(node)
        seen[key] = node, what  # keeping the node keeps its id unique
        if isinstance(what, Split):
            visit(what.right)
            visit(what.left)
        finished.append(key)

    visit(root)
    return {key: seen[key][1] for key in reversed(finished)}


def _fields(node: Split | float, number: Mapping[int | str, int]) -> tuple[int, float, bool, int, int, float]:
    """Return a node's input, edge, side of missing values, children and value."""
    if not isinstance(node, Split):
        return LEAF, 0.0, False, 0, 0, float(node)
    left, right = number[_key(node.left)], number[_key(node.right)]
    return node.input, min(node.edge, LARGEST), node.missing_left, left, right, 0.0


def _key(node: Any) -> int | str:
    return node if isinstance(node, int | str) else f"#{id(node)}"


def float32_edge_below(threshold: float) -> float:
    """Return the largest number x with ``float32(x) < threshold``, for a single-precision threshold.

    Numbers are rounded to the nearest single, and half way to the one whose last bit is 0. So the edge is
    half way between the threshold and the single before it, or the number before that.

    >>> edge = float32_edge_below(0.5)
    >>> float(np.float32(edge)) < 0.5, float(np.float32(np.nextafter(edge, 1.0))) < 0.5
    (True, False)
    """
    return _edge_above(np.nextafter(np.float32(threshold), np.float32(-np.inf)))


def float32_edge_at_most(threshold: float) -> float:
    """Return the largest number x with ``float32(x) <= threshold``, for a double-precision threshold.

    >>> edge = float32_edge_at_most(0.1)
    >>> float(np.float32(edge)) <= 0.1, float(np.float32(np.nextafter(edge, 1.0))) <= 0.1
    (True, False)
    """
    single = np.float32(threshold)
    if float(single) > threshold:
        single = np.nextafter(single, np.float32(-np.inf))
    return _edge_above(single)


def _edge_above(single: np.float32) -> float:
    """Return the largest number that rounds to this single or below it."""
    with np.errstate(over="ignore"):
        after = float(np.nextafter(single, np.float32(np.inf)))
    middle = (float(single) + after) / 2  # exact in double precision
    if not math.isfinite(middle):
        return LARGEST
    goes_down = np.float32(middle) <= single
    return middle if goes_down else math.nextafter(middle, -math.inf)


# ---- trees that read one feature each


def collapse(read: TreeSum) -> Additive | TreeSum:
    """Return a sum of trees as a sum over features if every tree reads one feature, else unchanged.

    A tree of one feature is a step function of any depth, and so is a sum of them.

    >>> from plainrisk.form import TreeInput
    >>> stump = Tree(inputs=(0, -1, -1), edges=(30.0, 0.0, 0.0), missing_left=(True, False, False),
    ...              left=(1, 0, 0), right=(2, 0, 0), values=(0.0, -1.0, 2.0))
    >>> ages = (TreeInput(feature="age"),)
    >>> read = TreeSum(intercept=0.5, inputs=ages, trees=(stump, stump), columns=("age",))
    >>> age = collapse(read).effects["age"]
    >>> age.edges, age.at(30.0), age.at(31.0), age.at(math.nan)
    ((30.0,), -2.0, 4.0, -2.0)
    """
    trees: dict[int, list[Tree]] = defaultdict(list)
    intercept = read.intercept
    for tree in read.trees:
        used = set(tree.inputs) - {LEAF}
        if len(used) > 1:
            return read
        if used:
            trees[used.pop()].append(tree)
        else:
            intercept += tree.values[0]
    effects: dict[str, Effect] = {}
    for j, source in enumerate(read.inputs):
        effects[source.feature] = _steps(trees[j], len(read.inputs), source.missing, read.takes_missing)
    return Additive(intercept=intercept, effects=effects, columns=read.columns, classes=read.classes)


def _steps(trees: Sequence[Tree], n_inputs: int, sentinel: float | None, takes_missing: bool) -> NumberEffect:
    """Evaluate every tree once per interval between edges."""
    splits = {e for tree in trees for e, j in zip(tree.edges, tree.inputs, strict=True) if j != LEAF}
    edges = sorted(splits - {LARGEST})
    above = math.nextafter(edges[-1], math.inf) if edges else 0.0
    points = np.array([*edges, above, math.nan])
    total = np.zeros(len(points))
    for tree in trees:
        total += tree.values_at([points] * n_inputs)
    values, missing = total[:-1].tolist(), float(total[-1])
    steps = NumberEffect.steps(edges, values, missing=missing if takes_missing else None)
    special = {} if sentinel is None else {sentinel: missing}
    return NumberEffect(steps.edges, steps.pieces, special, steps.missing)
