r"""What every subscale and feature contributes to a row's risk; the contributions add up to it.

A row x is compared with a reference applicant r. With the scores :math:`s_x` and :math:`s_r` behind a link :math:`g`,

.. math:: g(s_x) - g(s_r) = \frac{g(s_x) - g(s_r)}{s_x - s_r} \sum_u \big(f_u(x_u) - f_u(r_u)\big),

so every shape gets its difference of scores times one rate, the *mean* slope of the link on the straight way from r to
x (its chord, the Aumann-Shapley value of a sum behind one link). The risk of r plus all pieces is the risk of x,
exactly. Where the link is straight between the two, the rate is its slope; where it bends on the way (bands, clipping,
a sigmoid), `Explanation.bends` says so. Of a pool, the last link first gives every subscale its piece of the risk, and
the link inside then gives every shape its piece of the subscale's.

Zero is not an applicant; from there, the contributions are the terms of the formula: :math:`f_u(x_u) / 2\alpha` for a
line (the coefficient times the value), and :math:`w_S r_S(x)` for a mixture. They add up to the risk if no line is
clipped.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError
from plainrisk.explain.explanation import Explanation, Unit
from plainrisk.explain.options import ExplainOptions, takes
from plainrisk.explain.reference import Point, Reference, make_reference, pool_weights
from plainrisk.form import (
    Alone,
    Bands,
    Linear,
    Link,
    Logistic,
    Mixture,
    Part,
    RiskForm,
    TreePart,
    pool_score,
)
from plainrisk.form.ranking import FAR, Comparison
from plainrisk.threads import PIECE_ROWS, parallel_for

__all__ = ["Explainer", "Explanation", "Pieces", "explain", "explainer", "mean_rate", "subscale_of"]

NO_SUBSCALE = "(no subscale)"
ACROSS = "(across subscales)"


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
    if options.unit == "log odds" and not isinstance(form.last_link, Logistic):
        raise DataError(
            "explain: unit must be 'probability' for this model: its last link is not logistic, so its score is not "
            "in log odds."
        )
    reference = options.reference
    if isinstance(reference, str) and reference == "zero":
        _require_terms(form, options)
    if not isinstance(reference, Reference):
        reference = make_reference(form, reference, options.portfolio, form.schema.worse, options.min_rows)
    return Explainer(form, reference, options.unit, columns=options.columns)


def _require_terms(form: RiskForm, options: ExplainOptions) -> None:
    """Refuse the reference "zero" where the risk is not a sum of terms."""
    link = form.last_link
    if options.unit == "probability" and not isinstance(form.pool, Mixture) and not isinstance(link, Linear):
        curved, cure = ("logistic", ", or unit='log odds'") if isinstance(link, Logistic) else ("a link of bands", "")
        raise DataError(
            f"explain: reference='zero' takes the terms of a line or a mixture, and the last link of this model is "
            f"{curved}. Use 'typical'{cure}, or pr.linearise(model)."
        )


# ---- the chord


def mean_rate(link: Link, start: Floats, score: Floats) -> tuple[Floats, Bools]:
    """Return the mean slope of a link on the way from `start` to `score`, and whether its slope changes on the way.

    >>> from plainrisk.form import Linear
    >>> rate, bends = mean_rate(Linear(), np.array([0.5, 0.5]), np.array([0.75, 1.5]))
    >>> rate.tolist(), bends.tolist()
    ([1.0, 0.5], [False, True])
    """
    return _chord(link, start, score, link.value(score) - link.value(start))


def _chord(link: Link, start: Floats, score: Floats, rise: Floats) -> tuple[Floats, Bools]:
    run = score - start
    if isinstance(link, Logistic):
        # The quotient of two small differences loses digits; the slope half way differs by run^2 / 192 at most.
        near = np.abs(run) < 1e-5
        return np.where(near, link.derivative((start + score) / 2), rise / np.where(near, 1.0, run)), run != 0
    slope = link.derivative(score)
    one_line = link.line(start)[0] == link.line(score)[0]  # type: ignore[index]  # every score lies on some line
    # Both may be clipped, at two ends.
    straight = one_line & (slope == link.derivative(start)) & ((slope > 0) | (rise == 0))
    return np.where(straight, slope, rise / np.where(straight, 1.0, run)), ~straight


def follow_link(link: Link, start: float, score: Floats, pieces: Floats) -> Bools:
    """Turn differences of scores into pieces of the probability, in place; return where the link is not straight."""
    begin = np.array([start])
    rise = link.value(score) - link.value(begin)
    rate, bends = _chord(link, begin, score, rise)
    pieces *= rate[:, None]
    _add_up(pieces, rise)
    return bends if pieces.shape[1] > 1 else np.zeros(len(score), dtype=bool)  # one piece is not shared out


def _add_up(pieces: Floats, whole: Floats) -> None:
    """Let the pieces of every row add up to the whole in floating point, too.

    Far outside the data, two features may offset each other at 1e20, and the sum of such numbers is not a probability.
    The contributions of such a row are scaled by one factor, which keeps their proportions, and the remainder is added
    to the largest.
    """
    size = np.abs(pieces).max(axis=1, initial=0.0)
    far = np.flatnonzero(size > FAR)
    pieces[far] *= (FAR / size[far])[:, None]
    gap = whole - pieces.sum(axis=1)
    off = np.flatnonzero(np.abs(gap) > 1e-13)
    if len(off):
        pieces[off, np.abs(pieces[off]).argmax(axis=1)] += gap[off]


@dataclass(frozen=True)
class Explainer:
    """A form, a reference and the level of detail; explains any number of batches in the same way."""

    form: RiskForm
    reference: Reference
    unit: Unit
    features_only: bool = False  # share the pieces of pairs between their features
    columns: Sequence[str] | None = None  # of rows without names

    @functools.cached_property
    def keys(self) -> tuple[tuple[str, str | None], ...]:
        """The (subscale, feature) of every column; a pair has the feature name "u × v"."""
        part = self.form.parts[0]
        if isinstance(self.form.pool, Alone) and isinstance(part, Part):
            subscale = subscale_of(self.form)
            return tuple((subscale[name], name) for name in self._columns(part) if name is not None)
        return tuple((part.name, name) for part in self.form.parts for name in self._columns(part))

    def _columns(self, part: Part | TreePart) -> tuple[str | None, ...]:
        """The names of a part's columns."""
        if isinstance(part, TreePart) or not self.reference.points:
            return (None,)
        return part.features if self.features_only else part.term_names

    def explain(self, X: Any) -> Explanation:
        """Return the contributions of every row."""
        frame = self.form.align(X, self.columns)
        keys, n = self.keys, frame.n_rows
        columns = Pieces.room(n, len(keys))

        def work(starts: Iterable[int]) -> None:
            for start in starts:
                rows = slice(start, start + PIECE_ROWS)
                self.fill(frame if n <= PIECE_ROWS else frame.take(rows.start, rows.stop), columns.take(rows))

        try:
            parallel_for(work, range(0, n, PIECE_ROWS))
        except DataError:
            self.form.risk(frame)  # raises the same and names the row of the data, not of the block
            raise
        link = self.form.last_link
        in_probability = self.unit == "probability"
        return Explanation(
            unit=self.unit,
            risk=columns.risk,
            constant=np.full(n, self._start_risk if in_probability else self._start),
            contributions=columns.pieces,
            subscales=tuple(s for s, _ in keys),
            features=tuple(f for _, f in keys),
            reference=self.reference.name,
            bends=columns.bends,
            band=link.band(columns.score) if isinstance(link, Bands) else None,
            rate=None if link is None else link.derivative(columns.score),
            pairs=pairs_of(self.form),
            part_risks=None if self.reference.points else self.form.part_risks(frame),
            form=self.form,
            rows=frame,
        )

    @property
    def comparison(self) -> Comparison:
        """The reference of rows, and the owner of each contribution."""
        return Comparison(self.reference.points, self._start, self._start_risk, self.keys)

    # ---- the sums

    @functools.cached_property
    def _start(self) -> float:
        """The reference's score."""
        return self.reference.score(self.form)

    @functools.cached_property
    def _start_risk(self) -> float:
        """The reference's risk."""
        return self.reference.risk(self.form)

    def fill(self, frame: Frame, out: Pieces) -> None:
        """Fill in the results for some aligned rows."""
        form = self.form
        if isinstance(form.pool, Alone):
            out.score[:] = self._differences(0, frame, out.pieces)
        else:
            out.score[:] = pool_score(form.pool, self._part_risks(frame, out))
        link = form.last_link
        out.risk[:] = out.score if link is None else link.value(out.score)
        if link is None or self.unit != "probability":
            return
        if self.reference.name == "zero" and isinstance(link, Linear):
            out.pieces *= link.slope
            out.bends |= link.derivative(out.score) == 0
        else:
            out.bends |= follow_link(link, self._start, out.score, out.pieces)

    def _part_risks(self, frame: Frame, out: Pieces) -> Floats:
        """Return the risk each part of a pool sees, rows by parts, and fill in the pieces of the pool's score."""
        if not self.reference.points:
            risks = self.form.part_risks(frame)
            np.multiply(risks, pool_weights(self.form), out=out.pieces)
            return risks
        risks = np.empty((len(self.form.parts), frame.n_rows)).T
        column = 0
        for k, (part, weight) in enumerate(zip(self.form.parts, pool_weights(self.form), strict=True)):
            width = len(self._columns(part))
            pieces = out.pieces[:, column : column + width]
            column += width
            score = self._differences(k, frame, pieces)
            risks[:, k] = part.link.value(score)
            out.bends |= follow_link(part.link, self.reference.points[k].score, score, pieces)
            pieces *= weight
        return risks

    def _differences(self, k: int, frame: Frame, pieces: Floats) -> Floats:
        """Return a part's score of every row, and fill in what each piece of it is above the reference's."""
        part, point = self.form.parts[k], self.reference.points[k]
        if isinstance(part, Part):
            zeros = [point.terms[name] for name in part.term_names]
            terms = np.empty((frame.n_rows, len(zeros))) if self.features_only and part.pairs else pieces
            score = part.split(frame, self.form.schema, zeros, terms)
            if terms is not pieces:
                _share_pairs(part, point, frame, terms, pieces)
            return score
        score = part.score(frame, self.form.schema)
        pieces[:, 0] = score - point.score
        return score


@dataclass
class Pieces:
    """The contributions, risks and scores of some rows, and whether the slope varies between reference and row."""

    pieces: Floats
    risk: Floats
    score: Floats
    bends: Bools

    @classmethod
    def room(cls, n_rows: int, width: int) -> Pieces:
        """Return room for some rows."""
        return cls(np.empty((n_rows, width)), np.empty(n_rows), np.empty(n_rows), np.zeros(n_rows, dtype=bool))

    def take(self, rows: slice) -> Pieces:
        """Return a view of some rows."""
        return Pieces(*(column[rows] for column in vars(self).values()))


def subscale_of(form: RiskForm) -> dict[str, str]:
    """The subscale each term is shown under: the first that lists the feature; of a pair, that of both features."""
    homes = dict.fromkeys(form.schema.features, NO_SUBSCALE)
    for subscale, members in reversed(form.schema.subscales.items()):
        homes.update(dict.fromkeys(members, subscale))
    for name, (u, v) in pairs_of(form).items():
        homes[name] = homes[u] if homes[u] == homes[v] else ACROSS
    return homes


# ---- pairs


def pairs_of(form: RiskForm) -> dict[str, tuple[str, str]]:
    """Return the features of every pair by its name."""
    return {pair.name: pair.features for part in form.parts if isinstance(part, Part) for pair in part.pairs}


def _share_pairs(part: Part, point: Point, frame: Frame, terms: Floats, pieces: Floats) -> None:
    r"""Fill in the differences of scores by feature: of its shape, and its share of its pairs.

    A pair f that changes from (u', v') at the reference to (u, v) is shared by Shapley's rule,

    .. math:: \tfrac12\big[f(u, v') - f(u', v')\big] + \tfrac12\big[f(u, v) - f(u', v)\big]

    for u, and the rest for v. Where the reference is a mean over rows, so is each f at it.
    """
    column = {name: j for j, name in enumerate(part.features)}
    pieces[:] = 0.0
    pieces[:, : len(part.shapes)] = terms[:, : len(part.shapes)]  # features with a shape come first
    for pair, whole in zip(part.pairs, terms[:, len(part.shapes) :].T, strict=True):
        u, v = (levels.codes(frame, name) for levels, name in zip(pair.levels, pair.features, strict=True))
        table, (at_u, at_v) = np.asarray(pair.scores), point.shares[pair.name]
        # f(u, v') - f(u', v), up to the mean that both differ from; with f(u, v) - f(u', v') they make both shares.
        lead = (table @ at_v)[u] - (at_u @ table)[v]
        pieces[:, column[pair.features[0]]] += (whole + lead) / 2
        pieces[:, column[pair.features[1]]] += (whole - lead) / 2
