"""Linearised: any additive logistic model, made to speak in probability."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import msgspec
import numpy as np
from sklearn.base import clone

from plainrisk._types import Floats, Index
from plainrisk.checks import Allowed, check_parameters, number, whole, words
from plainrisk.data.frame import as_frame, frame_like
from plainrisk.errors import DataError, ExtractionError
from plainrisk.explain.elimination import score_limits
from plainrisk.extract import extract_form
from plainrisk.form import ALPHA_STAR, Bands, FitRecord, Layer, Linear, Link, Logistic, Part, RiskForm, Table, TreePart
from plainrisk.form.links import best_bands
from plainrisk.model import RiskModel
from plainrisk.models.base import (
    CLASSIFIER,
    PartScores,
    RiskClassifier,
    clipped_share,
    form_scores,
    pooled_score,
    warn_of_clipping,
    weighted_scores,
)
from plainrisk.models.experts import takes_missing
from plainrisk.models.training import TrainingRows
from plainrisk.schema import Schema

__all__ = ["Linearised", "linearise", "portfolio_bands"]

# Distinct scores of a portfolio in batches that are kept apart: 16 MB.
_MOST_SCORES = 1 << 20

# Goes through the portfolio, batch by batch: the score of every row in every part, and what every row weighs.
Portfolio = Callable[[], Iterable[tuple[Floats, Floats | None]]]


class Linearised(RiskClassifier):
    r"""A linearised additive model (LAM): the sigmoid replaced by the best clipped line.

    .. math:: \tilde\sigma(f) = \operatorname{clip}\Big(\tfrac12 + \tfrac{f}{2\alpha},\ \epsilon,\ 1-\epsilon\Big)

    The wrapped model is fitted as it is; then every shape's effect is a piece of the probability. With ``pieces=K``
    the line has K straight pieces ("bands"), so that it follows the sigmoid into small and large probabilities.

    Parameters
    ----------
    estimator : classifier
        Any additive logistic classifier `extract_form` can read: ours, scikit-learn's logistic regression (also in a
        pipeline), EBM, LogisticGAM, glum, depth-1 boosted trees. Deeper trees are linearised as a whole.
    alpha : float, default=ALPHA_STAR
        Where the line reaches 1; the default has the least squared error against the sigmoid.
    epsilon : float, default=0.0
        Clip to [epsilon, 1 - epsilon].
    pieces : int, default=1
        1 is the paper's line. With more, alpha and epsilon play no part.
    knots : {"portfolio", "attainable", "universal"}, default="portfolio"
        With several pieces: chosen for the training scores, clipping none of them; the same with the outer knots at
        the ends of what the model can score, so that no row is ever clipped; or the one best line for the sigmoid.

    Attributes
    ----------
    estimator_ : the fitted model
    form_ : RiskForm
    """

    allowed: ClassVar[Mapping[str, Allowed]] = {
        "estimator": CLASSIFIER,
        "alpha": number(above=0),
        "epsilon": number(at_least=0, below=0.5),
        "pieces": whole(1, 30),
        "knots": words("portfolio", "attainable", "universal"),
    }

    def __init__(
        self,
        estimator: Any,
        *,
        alpha: float = ALPHA_STAR,
        epsilon: float = 0.0,
        pieces: int = 1,
        knots: Literal["portfolio", "attainable", "universal"] = "portfolio",
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.epsilon = epsilon
        self.pieces = pieces
        self.knots = knots

    @property
    def schema(self) -> Schema | None:  # type: ignore[override]
        """The wrapped estimator's schema."""
        return getattr(self.estimator, "schema", None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = takes_missing(self.estimator)
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, columns: Sequence[str] | None = None) -> Self:
        """Fit the wrapped model, then linearise it; see `AdditiveRiskModel.fit`."""
        if isinstance(self.estimator, RiskClassifier):
            return super().fit(X, y, sample_weight, columns=columns)
        self._check_parameters()
        if columns is not None:
            X = frame_like(as_frame(X, columns).columns)
        training = self._read(X, y, sample_weight).in_memory
        self.estimator_ = _fit_foreign(clone(self.estimator), X, np.asarray(y).ravel(), sample_weight)
        form = extract_form(self.estimator_, X, schema=self.schema)
        self.classes_, self.n_features_in_ = self.estimator_.classes_, len(training.names)
        if training.named:
            self.feature_names_in_ = np.array(training.names, dtype=object)
        self._straighten(training, form, form_scores(form, training))
        return self

    @property
    def _class_weight(self) -> Any:
        # A classifier of another library applies its class weights itself.
        return self.estimator._class_weight if isinstance(self.estimator, RiskClassifier) else None

    def _fit(self, training: TrainingRows) -> PartScores:
        self.estimator_ = clone(self.estimator)
        scores = self.estimator_._fit_rows(training)
        return self._straighten(training, self.estimator_.form_, scores)

    def _straighten(self, training: TrainingRows, form: RiskForm, scores: PartScores) -> PartScores:
        """Replace the links of a fitted form, and say how many rows are clipped."""

        def portfolio() -> Iterator[tuple[Floats, Floats | None]]:
            return weighted_scores(training, scores)

        self.form_ = _straightened(form, portfolio, self.alpha, self.epsilon, self.pieces, self.knots)
        self.n_iter_ = getattr(self.estimator_, "n_iter_", 0)
        if hasattr(self.estimator_, "solution_"):
            self.solution_ = self.estimator_.solution_
        share = clipped_share(self.form_, portfolio())
        record = getattr(self.estimator_, "fit_record_", None) or _bare_record(training)
        title = f"Linearised({type(self.estimator).__name__})"
        self.fit_record_ = msgspec.structs.replace(record, estimator=title, clipped=share)
        warn_of_clipping(title, share, self.form_.last_link)
        return scores


def linearise(
    model: Any,
    X: Any = None,
    *,
    sample_weight: Any = None,
    alpha: float = ALPHA_STAR,
    epsilon: float = 0.0,
    pieces: int = 1,
    knots: Literal["portfolio", "attainable", "universal"] | None = None,
    schema: Schema | None = None,
) -> RiskModel:
    """Return a fitted additive logistic model, linearised.

    Parameters
    ----------
    model : fitted model, anything `extract_form` can read
    X : rows, optional
        For column names where the model keeps none, and for bands that fit the portfolio.
    knots : default "portfolio" with X, else "universal"
    alpha, epsilon, pieces : as in Linearised

    Returns
    -------
    RiskModel

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(500, seed=1)
    >>> model = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    >>> pr.linearise(model, credit.frame, pieces=3).form_.speaks_probability
    True
    """
    where = knots or ("universal" if X is None else "portfolio")
    given = {"alpha": alpha, "epsilon": epsilon, "pieces": pieces, "knots": where}
    check_parameters("linearise", given, {name: Linearised.allowed[name] for name in given})
    if pieces > 1 and where != "universal" and X is None:
        raise DataError(f"knots={where!r} needs the portfolio: pass X, or use knots='universal'.")
    form = extract_form(model, X, schema=schema)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if X is None:
        # How many rows are clipped is not known, so nothing is said of the fit.
        return RiskModel(_straightened(form, None, alpha, epsilon, pieces, where))
    scores = form.part_scores(X)
    if not len(scores):
        raise DataError("linearise: the portfolio X has no rows.")
    straight = _straightened(form, lambda: [(scores, weight)], alpha, epsilon, pieces, where)
    record = getattr(model, "fit_record_", None)
    who, share = f"Linearised({type(model).__name__})", clipped_share(straight, [(scores, weight)])
    warn_of_clipping(who, share, straight.last_link)
    return RiskModel(straight, record and msgspec.structs.replace(record, estimator=who, clipped=share))


def _straightened(
    form: RiskForm, portfolio: Portfolio | None, alpha: float, epsilon: float, pieces: int, knots: str
) -> RiskForm:
    """Return the form with every logistic link replaced by a line; both layers of a two-layer model."""
    if not any(isinstance(link, Logistic) for link in form.links):
        raise ExtractionError("The model has no logistic link to linearise: it speaks in probability already.")

    def line(link: Link, scores: _Scores | None, limits: tuple[float, float]) -> Link:
        if not isinstance(link, Logistic):
            return link
        if pieces == 1:
            return Linear.from_alpha(alpha, epsilon)
        if scores is None:
            best = best_bands(pieces)
            return Bands(best.knots, best.values)
        ends = limits if knots == "attainable" else (scores.low, scores.high)
        return portfolio_bands(scores.values, pieces, scores.weight, ends)

    swap = msgspec.structs.replace
    rows = None if pieces == 1 or knots == "universal" else portfolio
    seen: Sequence[_Scores | None] = [None] * len(form.parts) if rows is None else _gathered(rows())
    lines = [line(part.link, s, _limits(form, part, s)) for part, s in zip(form.parts, seen, strict=True)]
    parts = tuple(swap(part, link=link) for part, link in zip(form.parts, lines, strict=True))
    straight, pool = swap(form, parts=parts), form.pool
    if not isinstance(pool, Layer):
        return straight
    pooled = None
    if rows is not None:
        # The second layer's scores are those of the parts as they are now.
        pooled = _gathered((pooled_score(straight, found)[:, None], weight) for found, weight in rows())[0]
    limits = (pool.intercept, pool.intercept + math.fsum(pool.weights))
    return swap(straight, pool=swap(pool, link=line(pool.link, pooled, limits)))


@dataclass(frozen=True)
class _Scores:
    """Scores of rows: how much weight there is at each (1 each if `weight` is None), the least and the greatest."""

    values: Floats
    weight: Floats | None
    low: float
    high: float

    def join(self, other: _Scores) -> _Scores:
        """Return the scores of both, equal ones together; rounded if there are too many to be kept apart."""
        values = np.concatenate([self.values, other.values])
        weight = np.concatenate([np.ones(len(s.values)) if s.weight is None else s.weight for s in (self, other)])
        digits = 15
        while True:
            values, at = np.unique(values, return_inverse=True)
            weight = np.bincount(at, weight).astype(np.float64)
            if len(values) <= _MOST_SCORES:
                return _Scores(values, weight, min(self.low, other.low), max(self.high, other.high))
            digits -= 1
            values = values.round(digits)


def _gathered(batches: Iterable[tuple[Floats, Floats | None]]) -> list[_Scores]:
    """Return the scores of all rows, one entry per column of the batches."""
    found: list[_Scores] = []
    for scores, weight in batches:
        batch = [_Scores(np.ascontiguousarray(s), weight, float(s.min()), float(s.max())) for s in scores.T]
        found = [a.join(b) for a, b in zip(found, batch, strict=True)] if found else batch
    return found


def _limits(form: RiskForm, part: Part | TreePart, scores: _Scores | None) -> tuple[float, float]:
    """The least and the greatest score a part can give; those of the portfolio where lines have no ends."""
    if scores is None:
        return -math.inf, math.inf
    if isinstance(part, TreePart):
        low = part.intercept + math.fsum(min(tree.leaves_below(0)) for tree in part.trees)
        high = part.intercept + math.fsum(max(tree.leaves_below(0)) for tree in part.trees)
    elif all(isinstance(shape, Table) for shape in part.shapes.values()):
        low, high = score_limits(form, part)
    else:
        return scores.low, scores.high
    return min(low, scores.low), max(high, scores.high)


def _fit_foreign(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    if sample_weight is None:
        return model.fit(X, y)
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        raise DataError(f"{type(model).__name__}.fit takes no sample_weight. Fit without weights.")
    return model.fit(X, y, sample_weight=sample_weight)


def _bare_record(training: TrainingRows) -> FitRecord:
    return FitRecord(
        estimator="",
        parameters={},
        rows=training.n_rows,
        weight=training.total,
        positive_weight=training.positive_total,
        base_rate=training.base_rate,
    )


_GROUPS = 600  # scores are grouped by rank before the search
_CANDIDATES = 80  # where an inner knot may stand
_NEAR = 1e-9  # the least rise between two knots
_CERTAIN, _SURE = 30.0, 1e-13  # log odds of 1 - 1e-13
_STEPS = 200  # at most, from one start


def portfolio_bands(
    scores: Floats, pieces: int, weight: Floats | None = None, limits: tuple[float, float] | None = None
) -> Bands:
    """Return the bands of about the least expected log loss, if these log odds are right.

    Squared errors weigh 1 at first, then 1/(q (1 - q)), where q is the line found before: Fisher's scoring. Weights
    from the sigmoid itself would be far too large at the ends, where a line is many times the sigmoid.

    Parameters
    ----------
    scores : (n,) log odds of the portfolio
    pieces : K, 2 or more
    weight : (n,), optional
    limits : where the outer knots stand; default the least and the greatest score of the portfolio
    """
    low, high = (float(scores.min()), float(scores.max())) if limits is None else limits
    if high - low < 1e-6:  # a constant model still needs a line
        low, high = low - 1.0, high + 1.0
    # Where the sigmoid rounds to 0 or to 1 a line through it would not rise.
    low, high = min(low, _CERTAIN), max(high, -_CERTAIN)
    portfolio = _Portfolio.of(scores, weight, low, high)
    best, least = Bands((low, high), tuple(portfolio.ends.tolist())), math.inf
    while True:
        error, knots, values = _search(portfolio, pieces)
        line = np.clip(np.interp(portfolio.x, knots, values), _SURE, 1.0 - _SURE)
        loss = portfolio.log_loss(line)
        # Stops too if no inner knot leaves a line that rises.
        if not (np.isfinite(error) and loss < least - _NEAR):
            return best
        best, least = Bands((low, *(low + knots[1:-1] * (high - low)).tolist(), high), tuple(values.tolist())), loss
        portfolio = portfolio.weighing(1.0 / (line * (1.0 - line)))


def _search(portfolio: _Portfolio, pieces: int) -> tuple[float, Floats, Floats]:
    """Return the least squared error, its knots as shares of the way, and its values; infinite if no line rises."""
    candidates = portfolio.candidates
    starts = _starts(len(candidates), pieces - 1)
    error, inner, values = _descend(starts, candidates, portfolio) if starts else (math.inf, *np.zeros((2, 0)))
    first, last = portfolio.ends
    return error, np.array([0.0, *inner, 1.0]), np.array([first, *values, last])


@dataclass(frozen=True)
class _Portfolio:
    """The scores as shares of the way from the lowest knot to the highest.

    Attributes
    ----------
    x, weight, risk : (g,) ascending groups of neighbours; their risk is the sigmoid
    ends : (2,) the sigmoid at the outer knots
    importance : (g,) what a squared error counts, beside the weight
    """

    x: Floats
    weight: Floats
    risk: Floats
    ends: Floats
    importance: Floats

    @classmethod
    def of(cls, scores: Floats, weight: Floats | None, low: float, high: float) -> _Portfolio:
        s, w = _grouped(scores, weight)
        ends = Logistic().value(np.array([low, high]))
        return cls((s - low) / (high - low), w, Logistic().value(s), ends, np.ones(len(s)))

    def weighing(self, importance: Floats) -> _Portfolio:
        """Return the portfolio with squared errors that count as much as this."""
        return replace(self, importance=importance)

    def log_loss(self, line: Floats) -> float:
        """Return the expected log loss of a line, given its value for each group."""
        return float(-self.weight @ (self.risk * np.log(line) + (1.0 - self.risk) * np.log1p(-line)))

    @cached_property
    def sums(self) -> Floats:
        """(g + 1, 6) running sums of w, w x, w x^2, w t, w t x and w t^2; w are weights in all, t the risk."""
        w, t, x = self.weight * self.importance, self.risk, self.x
        terms = np.column_stack([w, w * x, w * x**2, w * t, w * t * x, w * t**2])
        return np.vstack([np.zeros(6), np.cumsum(terms, axis=0)])

    @property
    def candidates(self) -> Floats:
        """Candidates for inner knots: half by the scores' ranks, half evenly over their range."""
        middles = (np.cumsum(self.weight) - 0.5 * self.weight) / self.weight.sum()
        ranks = np.interp(np.linspace(0.01, 0.99, _CANDIDATES // 2), middles, self.x)
        even = np.linspace(self.x[0], self.x[-1], _CANDIDATES // 2)
        shares = np.unique(np.concatenate([ranks, even]).round(6))
        return shares[(shares > 1e-3) & (shares < 1 - 1e-3)]

    def fit(self, knots: Floats) -> tuple[Floats, Floats]:
        """Return the errors, (c,), and the best values at the inner knots, (c, K - 1), for c choices of knots.

        Where the best values do not rise the error is infinite.
        """
        n, inner = len(knots), slice(1, -1)
        normal, right = self._normal(np.column_stack([np.zeros(n), knots, np.ones(n)]))
        rest = right[:, inner] - normal[:, inner, 0] * self.ends[0] - normal[:, inner, -1] * self.ends[1]
        # A piece without rows leaves its values open; a hair of ridge closes them.
        matrix = normal[:, inner, inner] + 1e-12 * np.eye(knots.shape[1])
        values = np.linalg.solve(matrix, rest[:, :, None])[:, :, 0]
        line = np.column_stack([np.full(n, self.ends[0]), values, np.full(n, self.ends[1])])
        error = self.sums[-1, 5] - 2.0 * (right * line).sum(axis=1) + np.einsum("ci,cij,cj->c", line, normal, line)
        rises = (np.diff(line) > _NEAR * (self.ends[1] - self.ends[0])).all(axis=1)
        return np.where(rises, error, np.inf), values

    def _normal(self, grid: Floats) -> tuple[Floats, Floats]:
        """Return the normal equations of the line's values at its K + 1 knots: (c, K + 1, K + 1), (c, K + 1)."""
        cuts = np.searchsorted(self.x, grid[:, 1:-1])
        upto = self.sums[np.column_stack([np.zeros(len(grid), np.intp), cuts, np.full(len(grid), len(self.x))])]
        w, wx, wxx, wt, wtx, _ = np.moveaxis(np.diff(upto, axis=1), 2, 0)
        start, width = grid[:, :-1], np.diff(grid)
        # With u from 0 to 1 along a piece, the line is 1 - u times its value at the start plus u times that at the end.
        u, uu = (wx - start * w) / width, (wxx - 2 * start * wx + start**2 * w) / width**2
        tu = (wtx - start * wt) / width
        normal, right = np.zeros((*grid.shape, grid.shape[1])), np.zeros(grid.shape)
        k = np.arange(grid.shape[1] - 1)
        normal[:, k, k] += w - 2 * u + uu
        normal[:, k + 1, k + 1] += uu
        normal[:, k, k + 1] = normal[:, k + 1, k] = u - uu
        right[:, :-1] += wt - tu
        right[:, 1:] += tu
        return normal, right


def _grouped(scores: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Replace the scores by the means of groups of neighbours with equal weight, 1 in all."""
    # Equal scores are one, so that a row of weight 2 is two rows.
    if weight is None:
        s, rows = np.unique(scores, return_counts=True)
        w = rows / len(scores)
    else:
        s, at = np.unique(scores, return_inverse=True)
        w = np.bincount(at, weight) / weight.sum()
    total = np.cumsum(w)
    group = np.minimum((_GROUPS * (total - 0.5 * w) / total[-1]).astype(np.intp), _GROUPS - 1)
    mass = np.bincount(group, w, minlength=_GROUPS).astype(np.float64)
    mean = np.bincount(group, w * s, minlength=_GROUPS) / np.where(mass > 0, mass, 1.0)
    used = mass > 0
    return mean[used], mass[used]


def _starts(n_candidates: int, n_knots: int) -> list[Index]:
    """Where to begin: knots spread over all candidates, and over each run of quarters of them."""
    if n_knots == 0:
        return []
    quarters = np.linspace(0, n_candidates - 1, 5)
    spans = [(quarters[a], quarters[b]) for a in range(4) for b in range(a + 1, 5)]
    starts = [np.unique(np.linspace(*span, n_knots + 2)[1:-1].round().astype(np.intp)) for span in spans]
    return [start for start in starts if len(start) == n_knots]


def _descend(starts: list[Index], candidates: Floats, portfolio: _Portfolio) -> tuple[float, Floats, Floats]:
    """From every start make the best move of a single knot until none helps; return the best of all."""
    at, left = list(starts), list(range(len(starts)))
    error, values = portfolio.fit(candidates[np.array(at)])
    for _ in range(_STEPS):
        # The moves of all starts that still get better are tried together.
        moves = [_moves(at[k], len(candidates)) for k in left]
        errors, found = portfolio.fit(candidates[np.concatenate(moves)])
        first = 0
        for k, own in zip(tuple(left), moves, strict=True):
            best = first + int(errors[first : first + len(own)].argmin())
            if errors[best] < error[k] * (1.0 - 1e-9):
                at[k], error[k], values[k] = own[best - first], errors[best], found[best]
            else:
                left.remove(k)
            first += len(own)
        if not left:
            break
    best = int(error.argmin())
    return float(error[best]), candidates[at[best]], values[best]


def _moves(at: Index, n_candidates: int) -> Index:
    """Return all choices that differ in one knot, which stays between its neighbours."""
    bounds = np.concatenate([[-1], at, [n_candidates]])
    moves = []
    for j in range(len(at)):
        to = np.arange(bounds[j] + 1, bounds[j + 2])
        trial = np.tile(at, (len(to), 1))
        trial[:, j] = to
        moves.append(trial)
    return np.concatenate(moves)
