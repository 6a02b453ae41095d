"""Linearised: any additive logistic model, made to speak in probability."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import msgspec
import numpy as np
from sklearn.base import clone

from plainrisk._types import Floats
from plainrisk.checks import Allowed, check_parameters, number, whole, words
from plainrisk.data.frame import as_frame, frame_like
from plainrisk.errors import DataError, ExtractionError
from plainrisk.explain.elimination import score_limits
from plainrisk.extract import extract_form
from plainrisk.form import (
    ALPHA_STAR,
    Bands,
    FitRecord,
    Layer,
    Linear,
    Link,
    Logistic,
    Part,
    RiskForm,
    Table,
    TreePart,
)
from plainrisk.form.links import best_bands
from plainrisk.model import RiskModel
from plainrisk.models.bands import FEWEST, Pieces, outcome_bands, portfolio_bands
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

__all__ = ["Linearised", "linearise"]

# Distinct scores of a portfolio in batches that are kept apart: 16 MB.
_MOST_SCORES = 1 << 20

# Goes through the portfolio, batch by batch: the score of every row in every part, what every row weighs, and how much
# of that has the positive outcome, if it is known.
Portfolio = Callable[[], Iterable[tuple[Floats, Floats | None, Floats | None]]]


class Linearised(RiskClassifier):
    r"""A linearised additive model (LAM): the sigmoid replaced by the best clipped line.

    .. math:: \tilde\sigma(f) = \operatorname{clip}\Big(\tfrac12 + \tfrac{f}{2\alpha},\ \epsilon,\ 1-\epsilon\Big)

    The wrapped model is fitted as it is; then every shape's effect is a piece of the probability. With ``pieces=K``
    the line has K straight pieces ("bands"), so that it goes into small and large probabilities. They follow the
    outcomes of the training rows, and stay near the sigmoid while rows are few.

    Parameters
    ----------
    estimator : classifier
        Any additive logistic classifier `extract_form` can read: ours, scikit-learn's logistic regression (also in a
        pipeline), EBM, LogisticGAM, glum, depth-1 boosted trees. Deeper trees are linearised as a whole.
    alpha : float, default=ALPHA_STAR
        Where the line reaches 1; the default has the least squared error against the sigmoid.
    epsilon : float, default=0.0
        Clip to [epsilon, 1 - epsilon].
    pieces : int or "auto", default=1
        1 is the paper's line. With more, alpha and epsilon play no part. "auto" is three, or four or five where the
        outcomes of the training rows ask for them.
    knots : {"portfolio", "attainable", "universal"}, default="portfolio"
        With several pieces: chosen by the training rows, clipping none of them; the same with the outer knots at
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
        "pieces": whole(1, 30) | words("auto"),
        "knots": words("portfolio", "attainable", "universal"),
    }

    def __init__(
        self,
        estimator: Any,
        *,
        alpha: float = ALPHA_STAR,
        epsilon: float = 0.0,
        pieces: Pieces = 1,
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
        self._set_classes(np.asarray(form.classes))
        self.n_features_in_ = len(training.names)
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

        def portfolio() -> Iterator[tuple[Floats, Floats | None, Floats | None]]:
            for batch, found in zip(training.batches((), "scoring the portfolio"), scores(), strict=True):
                positive = np.asarray(batch.target, dtype=np.float64)
                yield found, batch.weight, positive if batch.weight is None else batch.weight * positive

        degrees = _degrees(self.estimator_, form)
        self.form_ = _straightened(form, portfolio, self.alpha, self.epsilon, self.pieces, self.knots, degrees)
        self.n_iter_ = getattr(self.estimator_, "n_iter_", 0)
        if hasattr(self.estimator_, "solution_"):
            self.solution_ = self.estimator_.solution_
        share = clipped_share(self.form_, weighted_scores(training, scores))
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
    pieces: Pieces = 1,
    knots: Literal["portfolio", "attainable", "universal"] | None = None,
    schema: Schema | None = None,
) -> RiskModel:
    """Return a fitted additive logistic model, linearised.

    Parameters
    ----------
    model : fitted model, anything `extract_form` can read
    X : rows, optional
        For column names where the model keeps none, and for bands that fit the portfolio: those nearest to the
        sigmoid. `Linearised` knows the outcomes, and follows them.
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
    if pieces != 1 and where != "universal" and X is None:
        raise DataError(f"knots={where!r} needs the portfolio: pass X, or use knots='universal'.")
    form = extract_form(model, X, schema=schema)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if X is None:
        # How many rows are clipped is not known, so nothing is said of the fit.
        return RiskModel(_straightened(form, None, alpha, epsilon, pieces, where))
    scores = form.part_scores(X)
    if not len(scores):
        raise DataError("linearise: the portfolio X has no rows.")
    straight = _straightened(form, lambda: [(scores, weight, None)], alpha, epsilon, pieces, where)
    record = getattr(model, "fit_record_", None)
    who, share = f"Linearised({type(model).__name__})", clipped_share(straight, [(scores, weight)])
    warn_of_clipping(who, share, straight.last_link)
    return RiskModel(straight, record and msgspec.structs.replace(record, estimator=who, clipped=share))


def _straightened(
    form: RiskForm,
    portfolio: Portfolio | None,
    alpha: float,
    epsilon: float,
    pieces: Pieces,
    knots: str,
    degrees: Sequence[float] | None = None,
) -> RiskForm:
    """Return the form with every logistic link replaced by a line; both layers of a two-layer model.

    Parameters
    ----------
    degrees : of freedom, of every part
    """
    if not any(isinstance(link, Logistic) for link in form.links):
        raise ExtractionError("The model has no logistic link to linearise: it speaks in probability already.")

    # Without outcomes nothing asks for more pieces.
    count = FEWEST if pieces == "auto" else pieces

    def line(link: Link, scores: _Scores | None, limits: tuple[float, float], free: float = 0.0) -> Link:
        if not isinstance(link, Logistic):
            return link
        if pieces == 1:
            return Linear.from_alpha(alpha, epsilon)
        if scores is None:
            best = best_bands(count)
            return Bands(best.knots, best.values)
        ends = limits if knots == "attainable" else (scores.low, scores.high)
        if scores.positive is None:
            return portfolio_bands(scores.values, count, scores.weight, ends)
        return outcome_bands(scores.values, pieces, scores.positive, scores.weight, ends, degrees=free)

    swap = msgspec.structs.replace
    rows = None if pieces == 1 or knots == "universal" else portfolio
    seen: Sequence[_Scores | None] = [None] * len(form.parts) if rows is None else _gathered(rows())
    each = zip(form.parts, seen, degrees or [0.0] * len(form.parts), strict=True)
    lines = [line(part.link, s, _limits(form, part, s), free) for part, s, free in each]
    parts = tuple(swap(part, link=link) for part, link in zip(form.parts, lines, strict=True))
    straight, pool = swap(form, parts=parts), form.pool
    if not isinstance(pool, Layer):
        return straight
    pooled = None
    if rows is not None:
        # The second layer's scores are those of the parts as they are now.
        pooled = _gathered((pooled_score(straight, found)[:, None], w, positive) for found, w, positive in rows())[0]
    limits = (pool.intercept, pool.intercept + math.fsum(pool.weights))
    return swap(straight, pool=swap(pool, link=line(pool.link, pooled, limits)))


@dataclass(frozen=True)
class _Scores:
    """Scores of rows: the weight at each (1 if None), the part of it with the positive outcome, and the extremes."""

    values: Floats
    weight: Floats | None
    positive: Floats | None
    low: float
    high: float

    def join(self, other: _Scores) -> _Scores:
        """Return the scores of both, equal ones together; rounded if there are too many to be kept apart."""
        both, known = (self, other), self.positive is not None
        values = np.concatenate([s.values for s in both])
        weight = np.concatenate([np.ones(len(s.values)) if s.weight is None else s.weight for s in both])
        positive = np.concatenate([s.positive for s in both if s.positive is not None]) if known else 0.0 * weight
        digits = 15
        while True:
            values, at = np.unique(values, return_inverse=True)
            weight, positive = (np.bincount(at, w).astype(np.float64) for w in (weight, positive))
            if len(values) <= _MOST_SCORES:
                low, high = min(self.low, other.low), max(self.high, other.high)
                return _Scores(values, weight, positive if known else None, low, high)
            digits -= 1
            values = values.round(digits)


def _gathered(batches: Iterable[tuple[Floats, Floats | None, Floats | None]]) -> list[_Scores]:
    """Return the scores of all rows, one entry per column of the batches."""
    found: list[_Scores] = []
    for scores, weight, positive in batches:
        # A row without weight counts as if it were not there.
        seen = scores if weight is None or not weight.any() else scores[weight > 0]
        ends = zip(seen.min(axis=0).tolist(), seen.max(axis=0).tolist(), strict=True)
        batch = [
            _Scores(np.ascontiguousarray(s), weight, positive, *pair) for s, pair in zip(scores.T, ends, strict=True)
        ]
        found = [a.join(b) for a, b in zip(found, batch, strict=True)] if found else batch
    return found


def _degrees(estimator: Any, form: RiskForm) -> list[float]:
    """Return the degrees of freedom of every part of a fitted model; 0 where the fit does not tell them."""
    record, solution = getattr(estimator, "fit_record_", None), getattr(estimator, "solution_", None)
    if record is not None and record.evidence:
        own = [[g.edf for g in record.evidence if set(g.features) <= set(part.features)] for part in form.parts]
        return [1.0 + math.fsum(edf) for edf in own]
    if solution is None or len(form.parts) > 1:
        return [0.0] * len(form.parts)
    return [1.0 + np.count_nonzero(solution.coefficients)]


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
