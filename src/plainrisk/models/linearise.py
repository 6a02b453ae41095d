"""Linearised: any additive logistic model, with contributions in probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec
import numpy as np
from sklearn.base import clone

from plainrisk.checks import allowed_parameters, check_parameters
from plainrisk.data.frame import as_frame, frame_like
from plainrisk.errors import DataError
from plainrisk.explain.best_line import Sigmoid, best_line
from plainrisk.extract import extract_form
from plainrisk.extract.registry import read_any
from plainrisk.fit.bands import Pieces
from plainrisk.fit.scored import PartScores, clipped_share, form_scores, given_scores
from plainrisk.fit.straighten import Lines, degrees_of, straightened
from plainrisk.fit.training import TrainingRows
from plainrisk.fit.weights import read_weight
from plainrisk.form import ALPHA_STAR, RiskForm
from plainrisk.model import RiskModel
from plainrisk.models.base import CLASSIFIER, RiskClassifier, record_of
from plainrisk.models.experts import fit_foreign, takes_missing
from plainrisk.models.notices import warn_of_clipping
from plainrisk.schema import Schema

__all__ = ["Linearised", "linearise"]


@dataclass(eq=False, repr=False)
class Linearised(Lines, RiskClassifier):
    r"""A linearised additive model (LAM): the sigmoid replaced by the best clipped line.

    .. math:: \tilde\sigma(f) = \operatorname{clip}\Big(\tfrac12 + \tfrac{f}{2\alpha},\ \epsilon,\ 1-\epsilon\Big)

    The wrapped model is fitted unchanged; then the effect of every shape is a part of the probability. With
    ``pieces=K``, the line has K straight pieces ("bands"), so that it reaches small and large probabilities. They
    follow the outcomes of the training rows, clip none of them, and stay close to the sigmoid if there are few rows.

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
        1 is the paper's line. With more, alpha and epsilon play no part. "auto" is as few as
        follow the curve within 0.0001 of log loss, at least three.

    Attributes
    ----------
    estimator_ : the fitted model
    form_ : RiskForm

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = Linearised(pr.AdditiveRiskModel(german.schema), pieces=3).fit(german.frame, german.target)
    >>> len(model.form_.last_link.knots)  # the ends of three pieces
    4
    """

    estimator: Any = field(metadata={"allowed": CLASSIFIER})

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
        self.estimator_ = fit_foreign(clone(self.estimator), X, np.asarray(y).ravel(), sample_weight)
        form = extract_form(self.estimator_, X, schema=self.schema)
        self._set_classes(np.asarray(form.classes))
        self.n_features_in_ = len(training.names)
        if training.named:
            self.feature_names_in_ = np.array(training.names, dtype=object)
        self._straighten(training, form, form_scores(form, training))
        return self

    @property
    def _class_weight(self) -> Any:
        # Classifiers of other libraries apply class weights themselves.
        return self.estimator._class_weight if isinstance(self.estimator, RiskClassifier) else None

    def _fit(self, training: TrainingRows) -> PartScores:
        self.estimator_ = clone(self.estimator)
        scores = self.estimator_._fit_rows(training)
        form = self.estimator_.form_
        return self._straighten(training, form, form_scores(form, training) if scores is None else scores)

    def _straighten(self, training: TrainingRows, form: RiskForm, scores: PartScores) -> PartScores:
        """Replace the links of a fitted form, and record how many rows are clipped."""
        inner = self.estimator_
        degrees = degrees_of(getattr(inner, "fit_record_", None), getattr(inner, "solution_", None), form)
        self.form_ = straightened(form, scores, self, degrees)
        self.n_iter_ = getattr(self.estimator_, "n_iter_", 0)
        if hasattr(self.estimator_, "solution_"):
            self.solution_ = self.estimator_.solution_
        self.fit_record_ = getattr(inner, "fit_record_", None) or record_of(training, "", {})
        self._note_clipping(training, scores, f"Linearised({type(self.estimator).__name__})")
        return scores


def linearise(
    model: Any,
    X: Any = None,
    *,
    sample_weight: Any = None,
    alpha: float = ALPHA_STAR,
    epsilon: float = 0.0,
    pieces: Pieces = 1,
    schema: Schema | None = None,
) -> RiskModel:
    """Return a fitted additive logistic model, linearised.

    Parameters
    ----------
    model : fitted model, anything `RiskModel.from_fitted` can read; also probit and complementary log-log models of
        statsmodels, whose best line is another (`best_line`)
    X : rows, optional
        For column names where the model keeps none, and for bands that fit the portfolio: those nearest to the
        sigmoid. `Linearised` knows the outcomes, and follows them.
    alpha, epsilon, pieces : as in Linearised; before another sigmoid than the logistic there is one piece, the best

    Returns
    -------
    RiskModel
        Its `clipped_` is the share of the rows X that the line cuts off; None without X.

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(500, seed=1)
    >>> model = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    >>> pr.linearise(model, credit.frame, pieces=3).form_.speaks_probability
    True
    """
    lines = Lines(alpha=alpha, epsilon=epsilon, pieces=pieces)
    check_parameters("linearise", vars(lines), allowed_parameters(Lines))
    form, sigmoid = read_any(model, X, schema)
    other = None if sigmoid == "logistic" else _before_another(form, sigmoid, lines)
    if X is None:
        # The number of clipped rows is unknown, so there is no message about the fit.
        return RiskModel(other or straightened(form, None, lines))
    scores = form.part_scores(X)
    if not len(scores):
        raise DataError("linearise: the portfolio X has no rows.")
    weight = read_weight(sample_weight, len(scores))
    portfolio = given_scores(scores, weight)
    straight = other or straightened(form, portfolio, lines)
    record = getattr(model, "fit_record_", None)
    who, share = f"Linearised({type(model).__name__})", clipped_share(straight, portfolio)
    warn_of_clipping(who, share, straight.last_link)
    model_of_lines = RiskModel(
        straight, record and msgspec.structs.replace(record, estimator=who, clipped=share, risks=None)
    )
    model_of_lines.clipped_ = share
    return model_of_lines


def _before_another(form: RiskForm, sigmoid: Sigmoid, lines: Lines) -> RiskForm:
    """Return the form of a probit or a complementary log-log model with the line closest to its own sigmoid."""
    if lines.pieces != 1 or lines.alpha != ALPHA_STAR:
        raise DataError(f"linearise: a {sigmoid} model has one best line. Leave out pieces and alpha.")
    link = best_line(sigmoid).link(lines.epsilon)
    if form.classes[1] == 0:  # the score of the other outcome is turned, and so is its line
        link = msgspec.structs.replace(link, offset=1.0 - link.offset)
    return msgspec.structs.replace(form, parts=(msgspec.structs.replace(form.parts[0], link=link),))
