r"""Share out the score of a few small trees among their features, by Shapley values.

With a row x and a row z it is compared with, a tree t and a set U of its features, let t(x_U, z) be the tree's value
where the features in U are taken from x and the others from z. Feature u gets

.. math:: \phi_u = \sum_{U \not\ni u} \frac{|U|!\,(m - |U| - 1)!}{m!} \big(t(x_{U \cup u}, z) - t(x_U, z)\big),

averaged over the rows z: interventional TreeSHAP, exact by running over all sets, since a small tree asks few
features (m).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.errors import DataError
from plainrisk.explain.reference import Reference
from plainrisk.form import RiskForm, Tree, TreePart
from plainrisk.form.trees import LEAF

__all__ = ["background", "shapley_values"]

Floats = npt.NDArray[np.float64]

MOST_ROWS = 100  # of the portfolio that trees are compared with
MOST_FEATURES = 12  # of one tree: 2^12 sets


def background(form: RiskForm, reference: Reference, portfolio: Frame | None) -> Reference:
    """Give every part of trees the rows it is compared with, and the score these rows have on average."""
    scores, rows = list(reference.scores), list(reference.rows)
    for k, part in enumerate(form.parts):
        if not isinstance(part, TreePart):
            continue
        found = rows[k] if rows[k] is not None else portfolio
        if found is None or not found.n_rows:
            raise DataError(
                f"features='treeshap' compares the trees of {part.name!r} with rows. Pass portfolio=rows, or a row "
                "as the reference."
            )
        if found.n_rows > MOST_ROWS:
            found = found.rows(np.linspace(0, found.n_rows - 1, MOST_ROWS).astype(np.intp))
        rows[k], scores[k] = found, float(part.score(found, form.schema).mean())
    return replace(reference, scores=tuple(scores), rows=tuple(rows))


def shapley_values(part: TreePart, frame: Frame, rows: Frame) -> Floats:
    """Return what each feature of a part adds to its score against the mean of `rows`: (n, features)."""
    mine = [i.read(frame) for i in part.inputs]
    theirs = [i.read(rows) for i in part.inputs]
    column = {name: j for j, name in enumerate(part.features)}
    owner = [column[i.feature] for i in part.inputs]
    out = np.zeros((frame.n_rows, len(column)))
    for tree in part.trees:
        asked = sorted({owner[j] for j in tree.inputs if j != LEAF})
        if len(asked) > MOST_FEATURES:
            raise DataError(
                f"A tree of {part.name!r} asks {len(asked)} features; at most {MOST_FEATURES} are shared out."
            )
        for z in range(rows.n_rows):
            _add_tree(tree, asked, owner, mine, [x[z] for x in theirs], out)
    return out / rows.n_rows


def _add_tree(
    tree: Tree, asked: list[int], owner: list[int], mine: list[Floats], other: list[float], out: Floats
) -> None:
    """Add one tree's Shapley values against one row."""
    m = len(asked)
    constant = [np.full(len(x), z) for x, z in zip(mine, other, strict=True)]
    values = []
    for chosen in range(2**m):
        own = {asked[b] for b in range(m) if chosen >> b & 1}
        values.append(tree.values_at([x if owner[j] in own else constant[j] for j, x in enumerate(mine)]))
    for b, feature in enumerate(asked):
        for chosen in range(2**m):
            if not chosen >> b & 1:
                size = chosen.bit_count()
                share = math.factorial(size) * math.factorial(m - size - 1) / math.factorial(m)
                out[:, feature] += share * (values[chosen | 1 << b] - values[chosen])
