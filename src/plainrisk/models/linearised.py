"""Linearised: any additive logistic model, made to speak in probability."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from plainrisk.errors import DataError, ExtractionError
from plainrisk.extract import extract_form
from plainrisk.form import ALPHA_STAR, Bands, FitRecord, Layer, Linear, Link, Logistic, Part, RiskForm, Table, TreePart
from plainrisk.form.links import best_bands
from plainrisk.model import RiskModel
from plainrisk.models.band_fit import portfolio_bands
from plainrisk.models.base import RiskClassifier, clipped_share, warn_of_clipping, weighed
from plainrisk.models.scores import Scores, WeighedRows, gather_scores
from plainrisk.models.subscales import takes_missing
from plainrisk.schema import Schema

__all__ = ["Linearised", "linearise"]

Floats = npt.NDArray[np.float64]


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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Linearised:
        """Fit the wrapped model, then linearise it."""
        _check_line(self.alpha, self.epsilon, self.pieces, self.knots)
        training = self._read(X, y, sample_weight)
        model = clone(self.estimator)
        if isinstance(model, RiskClassifier):
            self.estimator_ = model.fit(X, y, sample_weight=sample_weight)
        else:
            training = training.in_memory
            self.estimator_ = _fit_foreign(model, X, np.asarray(y).ravel(), sample_weight)
        own = isinstance(model, RiskClassifier)
        form = self.estimator_.form_ if own else extract_form(self.estimator_, X, schema=self.schema)
        self.form_ = straighten(
            form,
            lambda: weighed(training, "scoring the portfolio"),
            self.alpha,
            self.epsilon,
            self.pieces,
            self.knots,
        )
        self.classes_ = self.estimator_.classes_
        self.n_iter_ = getattr(self.estimator_, "n_iter_", 0)
        if hasattr(self.estimator_, "solution_"):
            self.solution_ = self.estimator_.solution_
        share = clipped_share(self.form_, weighed(training, "counting clipped rows"))
        record = getattr(self.estimator_, "fit_record_", None) or _bare_record(training)
        self.fit_record_ = msgspec.structs.replace(record, estimator=_title(self), clipped=share)
        warn_of_clipping(_title(self), share, self.form_.last_link)
        return self


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
    """
    where = knots or ("universal" if X is None else "portfolio")
    _check_line(alpha, epsilon, pieces, where)
    if pieces > 1 and where != "universal" and X is None:
        raise DataError(f"knots={where!r} needs the portfolio: pass X, or use knots='universal'.")
    form = extract_form(model, X, schema=schema)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    frame = None if X is None else form.align(X)
    rows = None if frame is None else lambda: [(frame, weight)]
    straight = straighten(form, rows, alpha, epsilon, pieces, where)
    record = getattr(model, "fit_record_", None)
    if rows is None:
        # How many rows are clipped is not known, so nothing is said of the fit.
        return RiskModel(straight)
    who, share = f"Linearised({type(model).__name__})", clipped_share(straight, rows())
    warn_of_clipping(who, share, straight.last_link)
    return RiskModel(straight, record and msgspec.structs.replace(record, estimator=who, clipped=share))


def straighten(
    form: RiskForm,
    rows: Callable[[], WeighedRows] | None,
    alpha: float,
    epsilon: float,
    pieces: int,
    knots: str,
) -> RiskForm:
    """Return the form with every logistic link replaced by a line; both layers of a two-layer model.

    Parameters
    ----------
    rows : goes through the portfolio once, batch by batch; None where there is none
    """
    if not any(isinstance(link, Logistic) for link in form.links):
        raise ExtractionError("The model has no logistic link to linearise: it speaks in probability already.")

    def line(scores: Scores | None, limits: tuple[float, float]) -> Link:
        if pieces == 1:
            return Linear.from_alpha(alpha, epsilon)
        if scores is None:
            best = best_bands(pieces)
            return Bands(best.knots, best.values)
        ends = limits if knots == "attainable" else (scores.low, scores.high)
        return portfolio_bands(scores.values, pieces, scores.weight, ends)

    portfolio = None if pieces == 1 or knots == "universal" else rows
    seen = None if portfolio is None else gather_scores(portfolio(), form.part_scores)
    parts = []
    for k, part in enumerate(form.parts):
        if isinstance(part.link, Logistic):
            scores = None if seen is None else seen[k]
            part = msgspec.structs.replace(part, link=line(scores, _limits(part, scores)))
        parts.append(part)
    straight = msgspec.structs.replace(form, parts=tuple(parts))
    pool = straight.pool
    if not isinstance(pool, Layer) or not isinstance(pool.link, Logistic):
        return straight
    limits = (pool.intercept, pool.intercept + math.fsum(pool.weights))
    # The second layer's scores are those of the parts as they are now.
    pooled = None if portfolio is None else gather_scores(portfolio(), lambda frame: straight.score(frame)[:, None])[0]
    link = line(pooled, limits)
    return msgspec.structs.replace(straight, pool=msgspec.structs.replace(pool, link=link))


def _limits(part: Part | TreePart, scores: Scores | None) -> tuple[float, float]:
    """The least and the greatest score a part can give; those of the portfolio where lines have no ends."""
    if scores is None:
        return -math.inf, math.inf
    if isinstance(part, TreePart):
        low = math.fsum(min(tree.leaves_below(0)) for tree in part.trees)
        high = math.fsum(max(tree.leaves_below(0)) for tree in part.trees)
    elif all(isinstance(shape, Table) for shape in part.shapes.values()):
        low = math.fsum(min(shape.scores) for shape in part.shapes.values())
        high = math.fsum(max(shape.scores) for shape in part.shapes.values())
    else:
        return scores.low, scores.high
    return min(part.intercept + low, scores.low), max(part.intercept + high, scores.high)


def _check_line(alpha: float, epsilon: float, pieces: int, knots: str) -> None:
    if not (math.isfinite(alpha) and alpha > 0):
        raise DataError(f"alpha must be positive and finite, not {alpha!r}.")
    if not 0 <= epsilon < 0.5:
        raise DataError(f"epsilon must be at least 0 and below 0.5, not {epsilon!r}.")
    if not isinstance(pieces, int | np.integer) or not 1 <= pieces <= 30:
        raise DataError(f"pieces must be a whole number from 1 to 30, not {pieces!r}.")
    if knots not in ("portfolio", "attainable", "universal"):
        raise DataError(f"knots must be 'portfolio', 'attainable' or 'universal', not {knots!r}.")


def _fit_foreign(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    if sample_weight is None:
        return model.fit(X, y)
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        raise DataError(f"{type(model).__name__}.fit takes no sample_weight. Fit without weights.")
    return model.fit(X, y, sample_weight=sample_weight)


def _bare_record(training: Any) -> FitRecord:
    return FitRecord(
        estimator="",
        parameters={},
        rows=training.n_rows,
        weight=training.total,
        positive_weight=training.positive_total,
        base_rate=training.base_rate,
    )


def _title(model: Linearised) -> str:
    return f"Linearised({type(model.estimator).__name__})"
