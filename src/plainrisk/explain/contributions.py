r"""What every subscale and feature contributes to a row's risk, so that the parts add up.

Against the reference "constant" a row is read on the straight piece it lies on: a feature's contribution is its score
times that piece's rate. Against any other reference, with scores :math:`s` of the row and :math:`s_0` of the
reference, a link :math:`g` is followed along its *chord*,

.. math:: g(s) - g(s_0) = \frac{g(s) - g(s_0)}{s - s_0} \sum_u \big(f_u(x_u) - f_u(x^0_u)\big),

so every feature gets its score difference times one common rate, and the sum is exact for any link. On one straight
piece the chord is the piece itself, and nothing is left to choose; over several bands it is their mean rate along the
way; through a sigmoid it is a rule, and the explanation says so. Cutting off at 0 or 1 is a term of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.errors import DataError
from plainrisk.explain.explanation import Explanation, Unit
from plainrisk.explain.reference import Adverse, Reference, adverse_sign, make_reference, pool_weights
from plainrisk.explain.tree_shapley import background, shapley_values
from plainrisk.form import Alone, Bands, Layer, Linear, Link, Logistic, Part, RiskForm, TreePart
from plainrisk.form.form import BLOCK_ROWS
from plainrisk.threads import spread

__all__ = ["Explanation", "Split", "explain", "explainer"]

Floats = npt.NDArray[np.float64]
Split = Literal["chord", "treeshap"]

NO_SUBSCALE = "(no subscale)"


def explain(
    form: RiskForm,
    X: Any,
    *,
    reference: Any = "constant",
    portfolio: Any = None,
    unit: Literal["probability"] | None = None,
    features: Split | None = None,
    adverse: Adverse = "positive",
    min_rows: float = 0.0,
) -> Explanation:
    """Return the contributions of every row of X under a risk form.

    Parameters
    ----------
    reference : {"constant", "neutral", "mean", "best"} or a row, default="constant"
        What the rows are compared with; see `make_reference`.
    portfolio : rows, optional
        For references that need rows to look at.
    unit : "probability", optional
        Carry contributions through a logistic last link by the chord rule, an approximation. By default they are
        log odds there.
    features : {"chord", "treeshap"}, optional
        Also share out the subscales that are not additive in probability: by the chord of their sigmoid, and with
        "treeshap" the trees' score by Shapley values against the reference's rows.
    adverse : {"positive", "negative"}, default="positive"
        Which way the best reference lies: "positive" means that a high probability is bad for the applicant.
    min_rows : float, default=0
        Levels with fewer training rows are not taken for the best.
    """
    return explainer(form, reference, portfolio, unit, features, adverse, min_rows).explain(X)


def explainer(
    form: RiskForm,
    reference: Any = "constant",
    portfolio: Any = None,
    unit: str | None = None,
    features: str | None = None,
    adverse: Adverse = "positive",
    min_rows: float = 0.0,
) -> Explainer:
    """Return what explains rows, ready for many batches."""
    if unit not in (None, "probability"):
        raise DataError(f"unit must be None (the exact one) or 'probability', not {unit!r}.")
    if features not in (None, "chord", "treeshap"):
        raise DataError(f"features must be None, 'chord' or 'treeshap', not {features!r}.")
    if isinstance(reference, Reference):
        point = reference
    else:
        point = make_reference(form, reference, portfolio, adverse_sign(adverse), min_rows)
    if features == "treeshap":
        point = background(form, point, None if portfolio is None else form.align(portfolio))
    return Explainer(form, point, unit is not None, features)


@dataclass(frozen=True)
class Carried:
    """How a link treats scores: value = constant + rate * (score - reference's score) + clipping - before.

    `clipping` is what cutting off does to the row, `before` what it does to the reference.
    """

    constant: Floats
    rate: Floats
    clipping: Floats
    before: Floats


def carry(link: Link, score: Floats, start: Floats, own_piece: bool) -> Carried:
    """Follow a link from `start` to `score`: on the row's own straight piece, or along the chord."""
    value = link.value(score)
    line = link.line(score)
    if line is None:
        before, none = link.value(start), np.zeros(len(score))
        return Carried(before, _chord(value - before, score - start, link.derivative(start)), none, none)
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
        return Carried(before, rate, value - straight, np.zeros(len(score)))
    cut = link.value(start)
    return Carried(cut, rate, value - straight, cut - before)


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
            part, homes = self.form.parts[0], _homes(self.form)
            return tuple((homes[f], f) for f in part.features) if self._additive(part) else ((part.name, None),)
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
                rows = slice(start, start + BLOCK_ROWS)
                self._block(frame if n <= BLOCK_ROWS else frame.take(rows.start, rows.stop), found.take(rows))

        try:
            spread(work, range(0, n, BLOCK_ROWS))
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
        if link is None:
            out.risk[:] = np.minimum(score, 1.0)
            return
        out.risk[:] = link.value(score)
        if self.unit == "log odds":
            return
        own = self.reference.name == "constant" and not isinstance(link, Logistic)
        carried = carry(link, score, out.constant.copy(), own)
        out.pieces *= carried.rate[:, None]
        for cut, more in ((out.clipping, carried.clipping), (out.before, carried.before)):
            cut *= carried.rate
            cut += more
        out.constant[:] = carried.constant

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
                carried = carry(part.link, score, np.full(len(score), start), own)
                pieces *= (weight * carried.rate)[:, None]
                out.constant += weight * carried.constant
                out.clipping += weight * carried.clipping
                out.before += weight * carried.before
                total += weight * part.link.value(score)
                continue
            risk = part.link.value(part.score(frame, self.form.schema))
            whole = self.reference.name == "constant"
            before = 0.0 if whole else float(part.link.value(np.array([self.reference.scores[k]]))[0])
            pieces[:, 0] = weight * (risk - before)
            out.constant += weight * before
            total += weight * risk
        return total

    def _score(self, k: int, frame: Frame, pieces: Floats) -> tuple[Floats, float]:
        """Fill in the differences of a part's score to the reference's; return both scores."""
        part, reference = self.form.parts[k], self.reference
        if isinstance(part, TreePart):
            score = part.score(frame, self.form.schema)
            start = 0.0 if reference.name == "constant" else reference.scores[k]
            if self.split != "treeshap":
                pieces[:, 0] = score - start
                return score, start
            rows = reference.rows[k]
            assert rows is not None
            pieces[:] = shapley_values(part, frame, rows)
            return score, reference.scores[k]
        zeros = [reference.terms[k][name] for name in part.features]
        return part.split(frame, self.form.schema, zeros, pieces), reference.scores[k]


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


def _homes(form: RiskForm) -> dict[str, str]:
    """The subscale each feature is shown under: the first that lists it."""
    homes = dict.fromkeys(form.schema.features, NO_SUBSCALE)
    for subscale, members in reversed(form.schema.subscales.items()):
        homes.update(dict.fromkeys(members, subscale))
    return homes
