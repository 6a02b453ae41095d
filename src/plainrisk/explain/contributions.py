r"""What every subscale and feature contributes to a row's risk, so that the parts add up.

Against the reference "constant" a row is read on the straight piece it lies on: a feature's contribution is its score
times that piece's rate. Against any other reference, with scores :math:`s` of the row and :math:`s_0` of the
reference, a link :math:`g` is followed along its *chord*,

.. math:: g(s) - g(s_0) = \frac{g(s) - g(s_0)}{s - s_0} \sum_u \big(f_u(x_u) - f_u(x^0_u)\big),

so every feature gets its score difference times one common rate, and the sum is exact for any link. On one straight
piece the chord is the piece itself, and nothing is left to choose; over several bands it is their mean rate along the
way; through a sigmoid it is a rule, and the explanation says so. Cutting off at 0 or 1 is a term of its own.

Far outside the data a line may add 1e20 to a risk that is then cut off at 1, and no sum of such numbers is the risk.
If a term of a row exceeds `MOST`, all its contributions are therefore scaled by one factor, which keeps their
proportions, and clipping is what is left to the risk.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError
from plainrisk.explain.explanation import Explanation, Unit
from plainrisk.explain.options import ExplainOptions, takes
from plainrisk.explain.reference import Reference, make_reference, pool_weights
from plainrisk.form import Alone, Bands, Layer, Linear, Link, Logistic, Part, RiskForm, Tree, TreePart
from plainrisk.form.trees import LEAF
from plainrisk.threads import PIECE_ROWS, parallel_for

__all__ = ["Explainer", "Explanation", "explain", "explainer", "shapley_values"]

NO_SUBSCALE = "(no subscale)"
BACKGROUND_ROWS = 100  # of the portfolio that trees are compared with
MOST = 100.0  # a term of a row, in probability or log odds; sums of larger ones lose the digits that count
TREE_FEATURES = 12  # of one tree: Shapley values run over 2^12 sets


@takes(ExplainOptions)
def explain(form: RiskForm, X: Any, **options: Any) -> Explanation:
    """Return the contributions of every row of X under a risk form.

    Parameters
    ----------
    form : RiskForm
    X : rows
    {options}
    """
    return explainer(form, ExplainOptions(**options)).explain(X)


def explainer(form: RiskForm, options: ExplainOptions) -> Explainer:
    """Return an explainer that is ready for many batches of rows."""
    reference = options.reference
    if not isinstance(reference, Reference):
        reference = make_reference(form, reference, options.portfolio, options.sign, options.min_rows)
    if options.split == "treeshap":
        reference = _with_background(form, reference, options.portfolio)
    return Explainer(form, reference, options.unit is not None, options.split)


@dataclass(frozen=True)
class LinkPath:
    """A link from the reference's score to the row's: value = constant + rate * (difference) + clipping - before.

    `clipping` is what cutting off does to the row, `before` what it does to the reference.
    """

    constant: Floats
    rate: Floats
    clipping: Floats
    before: Floats


def follow_link(link: Link, score: Floats, start: Floats, own_piece: bool) -> LinkPath:
    """Follow a link from `start` to `score`: on the row's own straight piece, or along the chord."""
    value = link.value(score)
    line = link.line(score)
    if line is None:
        before, none = link.value(start), np.zeros(len(score))
        return LinkPath(before, _chord(value - before, score - start, link.derivative(start)), none, none)
    offset, slope = line
    straight = offset + slope * score
    if own_piece or isinstance(link, Linear):
        before, rate = offset + slope * start, slope
    else:
        first, first_slope = link.line(start)  # type: ignore[misc]  # straight links have a line at every score
        before = first + first_slope * start
        # Inside one band the rate is the band's, to the last digit.
        rate = np.where(first_slope == slope, slope, _chord(straight - before, score - start, first_slope))
    if own_piece:
        return LinkPath(before, rate, value - straight, np.zeros(len(score)))
    cut = link.value(start)
    return LinkPath(cut, rate, value - straight, cut - before)


def _chord(rise: Floats, run: Floats, slope: Floats) -> Floats:
    near = np.abs(run) < 1e-9
    return np.where(near, slope, rise / np.where(near, 1.0, run))


@dataclass(frozen=True)
class Explainer:
    """A form, a reference and how fine to go; explains any number of batches alike."""

    form: RiskForm
    reference: Reference
    in_probability: bool
    split: str | None

    @property
    def keys(self) -> tuple[tuple[str, str | None], ...]:
        """The (subscale, feature) of every column."""
        if isinstance(self.form.pool, Alone):
            part, subscale = self.form.parts[0], _subscale_of(self.form)
            return tuple((subscale[f], f) for f in part.features) if self._additive(part) else ((part.name, None),)
        return tuple(
            (part.name, f) for part in self.form.parts for f in (part.features if self._fine(part) else (None,))
        )

    def explain(self, X: Any) -> Explanation:
        """Return the contributions of every row."""
        frame = self.form.align(X)
        keys, n = self.keys, frame.n_rows
        found = _Columns(np.empty((n, len(keys))), *(np.empty(n) for _ in range(5)))

        def work(starts: Iterable[int]) -> None:
            for start in starts:
                rows = slice(start, start + PIECE_ROWS)
                self._block(frame if n <= PIECE_ROWS else frame.take(rows.start, rows.stop), found.take(rows))

        try:
            parallel_for(work, range(0, n, PIECE_ROWS))
        except DataError:
            self.form.risk(frame)  # raises the same and names the row of the data, not of the block
            raise
        band = link.band(found.score) if isinstance(link := self.form.last_link, Bands) else None
        return Explanation(
            unit=self.unit,
            risk=found.risk,
            constant=found.constant,
            contributions=found.pieces,
            subscales=tuple(s for s, _ in keys),
            features=tuple(f for _, f in keys),
            clipping=found.clipping - found.before,
            reference_clipping=found.before,
            reference=self.reference.name,
            method=self.method,
            approximate=self._through_curve or self._by_shapley,
            band=band,
            rate=None if band is None else np.asarray(link.rates)[band],  # type: ignore[union-attr]
            rows=frame,
        )

    # ---- how fine, and by which rule

    @property
    def unit(self) -> Unit:
        """The unit of the contributions."""
        curved = isinstance(self.form.last_link, Logistic)
        return "log odds" if curved and not self.in_probability else "probability"

    @property
    def method(self) -> str:
        """The rules the pieces follow; "exact" where there was nothing to choose."""
        banded = self.reference.name != "constant" and any(isinstance(k, Bands) for k in self.form.links)
        chord = ["chord"] if banded or self._through_curve else []
        return ", ".join([*chord, *(["treeshap"] if self._by_shapley else [])]) or "exact"

    @property
    def _through_curve(self) -> bool:
        last = self.in_probability and isinstance(self.form.last_link, Logistic)
        pooled = () if isinstance(self.form.pool, Alone) else self.form.parts
        return last or any(self._fine(part) and isinstance(part.link, Logistic) for part in pooled)

    @property
    def _by_shapley(self) -> bool:
        return self.split == "treeshap" and any(isinstance(part, TreePart) for part in self.form.parts)

    def _additive(self, part: Part | TreePart) -> bool:
        return isinstance(part, Part) or self.split == "treeshap"

    def _fine(self, part: Part | TreePart) -> bool:
        """Whether a part of a pool is shown by feature."""
        return self._additive(part) and (self.split is not None or not isinstance(part.link, Logistic))

    # ---- the sums

    def _block(self, frame: Frame, out: _Columns) -> None:
        form = self.form
        if isinstance(form.pool, Alone):
            score, start = self._score(0, frame, out.pieces)
            out.constant[:], out.clipping[:], out.before[:] = start, 0.0, 0.0
        else:
            score = self._pool(form.pool.intercept if isinstance(form.pool, Layer) else 0.0, frame, out)
        out.score[:] = score
        link = form.last_link
        out.risk[:] = np.minimum(score, 1.0) if link is None else link.value(score)
        if self.unit == "log odds":
            if not isinstance(form.pool, Alone):  # alone, the score is the sum of its terms, however large
                out.shrink_to(score)
            return
        if link is not None:
            self._follow_last(link, out)
        out.shrink_to(out.risk)

    def _follow_last(self, link: Link, out: _Columns) -> None:
        """Turn the pieces of the score into pieces of the probability."""
        own = self.reference.name == "constant" and not isinstance(link, Logistic)
        path = follow_link(link, out.score, out.constant.copy(), own)
        out.pieces *= path.rate[:, None]
        for cut, more in ((out.clipping, path.clipping), (out.before, path.before)):
            cut *= path.rate
            cut += more
        out.constant[:] = path.constant

    def _pool(self, intercept: float, frame: Frame, out: _Columns) -> Floats:
        """Fill in the pieces of a pool's score, and return the score."""
        total = np.full(frame.n_rows, intercept)
        out.constant[:], out.clipping[:], out.before[:] = intercept, 0.0, 0.0
        column = 0
        for k, (part, weight) in enumerate(zip(self.form.parts, pool_weights(self.form), strict=True)):
            width = len(part.features) if self._fine(part) else 1
            pieces = out.pieces[:, column : column + width]
            column += width
            if self._fine(part):
                score, start = self._score(k, frame, pieces)
                own = self.reference.name == "constant" and not isinstance(part.link, Logistic)
                path = follow_link(part.link, score, np.full(len(score), start), own)
                pieces *= (weight * path.rate)[:, None]
                out.constant += weight * path.constant
                out.clipping += weight * path.clipping
                out.before += weight * path.before
                total += weight * part.link.value(score)
                continue
            risk = part.link.value(part.score(frame, self.form.schema))
            whole = self.reference.name == "constant"
            before = 0.0 if whole else float(part.link.value(np.array([self.reference.points[k].score]))[0])
            pieces[:, 0] = weight * (risk - before)
            out.constant += weight * before
            total += weight * risk
        return total

    def _score(self, k: int, frame: Frame, pieces: Floats) -> tuple[Floats, float]:
        """Fill in the differences of a part's score to the reference's; return both scores."""
        part, point = self.form.parts[k], self.reference.points[k]
        if isinstance(part, Part):
            zeros = [point.terms[name] for name in part.features]
            return part.split(frame, self.form.schema, zeros, pieces), point.score
        score = part.score(frame, self.form.schema)
        if self.split == "treeshap":
            assert point.rows is not None
            pieces[:] = shapley_values(part, frame, point.rows)
        else:
            pieces[:, 0] = score - point.score
        return score, point.score


@dataclass
class _Columns:
    """What is found for some rows; views of the whole when taken by block."""

    pieces: Floats
    constant: Floats
    clipping: Floats
    before: Floats
    risk: Floats
    score: Floats

    def take(self, rows: slice) -> _Columns:
        return _Columns(*(column[rows] for column in vars(self).values()))

    def shrink_to(self, whole: Floats) -> None:
        """Scale the terms of rows far outside the data, so that they add up to `whole` in floating point too."""
        size = np.maximum(np.abs(self.clipping), np.abs(self.before))
        for pieces in self.pieces.T:
            np.maximum(size, np.abs(pieces), out=size)
        far = np.flatnonzero(size > MOST)
        if not len(far):
            return
        factor = MOST / size[far]
        self.pieces[far] *= factor[:, None]
        self.constant[far] = np.clip(self.constant[far], -MOST, MOST)
        left = whole[far] - self.constant[far] - self.pieces[far].sum(axis=1)
        own, before = self.clipping[far] * factor, self.before[far] * factor
        by_reference = np.abs(before) > np.abs(own)  # whichever cuts off more takes what is left
        self.clipping[far] = np.where(by_reference, own, before + left)
        self.before[far] = np.where(by_reference, own - left, before)


def _subscale_of(form: RiskForm) -> dict[str, str]:
    """The subscale each feature is shown under: the first that lists it."""
    homes = dict.fromkeys(form.schema.features, NO_SUBSCALE)
    for subscale, members in reversed(form.schema.subscales.items()):
        homes.update(dict.fromkeys(members, subscale))
    return homes


# ---- trees


def _with_background(form: RiskForm, reference: Reference, portfolio: Any) -> Reference:
    """Give every part of trees the rows it is compared with, and the score these rows have on average."""
    points = list(reference.points)
    for k, part in enumerate(form.parts):
        if not isinstance(part, TreePart):
            continue
        rows = points[k].rows if portfolio is None or points[k].rows is not None else form.align(portfolio)
        if rows is None or not rows.n_rows:
            raise DataError(
                f"split='treeshap' compares the trees of {part.name!r} with rows. Pass portfolio=rows, or a row as "
                "the reference."
            )
        if rows.n_rows > BACKGROUND_ROWS:
            rows = rows.rows(np.linspace(0, rows.n_rows - 1, BACKGROUND_ROWS).astype(np.intp))
        points[k] = replace(points[k], rows=rows, score=float(part.score(rows, form.schema).mean()))
    return replace(reference, points=tuple(points))


def shapley_values(part: TreePart, frame: Frame, rows: Frame) -> Floats:
    r"""Return what each feature of a part of trees adds to its score against the mean of `rows`: (n, features).

    With a row x and a row z it is compared with, a tree t and a set U of its features, let t(x_U, z) be the tree's
    value where the features in U are taken from x and the others from z. Feature u gets

    .. math:: \phi_u = \sum_{U \not\ni u} \frac{|U|!\,(m - |U| - 1)!}{m!} \big(t(x_{U \cup u}, z) - t(x_U, z)\big),

    averaged over the rows z: interventional TreeSHAP, exact by running over all sets, since a small tree asks few
    features (m).
    """
    mine = [i.read(frame) for i in part.inputs]
    theirs = [i.read(rows) for i in part.inputs]
    column = {name: j for j, name in enumerate(part.features)}
    owner = [column[i.feature] for i in part.inputs]
    out = np.zeros((frame.n_rows, len(column)))
    for tree in part.trees:
        asked = sorted({owner[j] for j in tree.inputs if j != LEAF})
        if len(asked) > TREE_FEATURES:
            raise DataError(f"A tree of {part.name!r} asks {len(asked)} features; at most {TREE_FEATURES} are split.")
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
