"""Trees that read one feature each, added up into one step function per feature."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from plainrisk.extract.effects import Effect, NumberEffect
from plainrisk.extract.reading import Additive, TreeSum
from plainrisk.form import Tree
from plainrisk.form.trees import LEAF

__all__ = ["collapse"]


def collapse(read: TreeSum) -> Additive | TreeSum:
    """Return a sum of trees as a sum over features, if every tree reads one feature; else as it is.

    A tree of one feature is a step function, whatever its depth, and so is a sum of them.

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
    """Ask every tree once per interval between edges."""
    splits = {e for tree in trees for e, j in zip(tree.edges, tree.inputs, strict=True) if j != LEAF}
    edges = sorted(splits - {float(np.finfo(np.float64).max)})
    above = math.nextafter(edges[-1], math.inf) if edges else 0.0
    points = np.array([*edges, above, math.nan])
    total = np.zeros(len(points))
    for tree in trees:
        total += tree.values_at([points] * n_inputs)
    values, missing = total[:-1].tolist(), float(total[-1])
    steps = NumberEffect.steps(edges, values, missing=missing if takes_missing else None)
    special = {} if sentinel is None else {sentinel: missing}
    return NumberEffect(steps.edges, steps.pieces, special, steps.missing)
