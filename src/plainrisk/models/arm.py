"""The Additive Risk Model: a sum of one shape per feature, monotone if the feature has a direction."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from plainrisk.checks import parameter, whole, words
from plainrisk.errors import DataError, warn
from plainrisk.fit.bands import Pieces
from plainrisk.fit.layer import find_pairs, fit_layer
from plainrisk.fit.pair_search import PairEvidence
from plainrisk.fit.parameters import LayerSettings, LinkName, Weights
from plainrisk.fit.scored import PartScores
from plainrisk.fit.straighten import Lines, degrees_of, straightened
from plainrisk.fit.training import TrainingRows, read_training
from plainrisk.form import Alone, Linear, RiskForm
from plainrisk.models.base import RiskClassifier
from plainrisk.schema import Schema

__all__ = ["AdditiveRiskModel", "suggest_pairs"]


@dataclass(eq=False, repr=False)
class AdditiveRiskModel(LayerSettings, RiskClassifier):
    r"""One-layer additive risk model (ARM1) under the schema's monotone directions.

    Every feature becomes levels: bins, categories, special values. With link "logistic" the model is

    .. math:: P(y=1 \mid x) = \sigma\Big(\beta_0 + \sum_u f_u(x_u)\Big)

    and the level scores minimize the mean log loss, plus a penalty, subject to the directions. With link "linear" the
    same sum is the probability itself, clipped to [0, 1], and minimizes the mean squared error. With link "bands" it is
    fitted as with "logistic"; then a rising line of a few straight pieces takes the place of the sigmoid, so that every
    effect is a piece of the probability. It follows the outcomes, and stays near the sigmoid while rows are few.

    Shapes are "steps", as in the paper: a few bins per feature, found by a tree, and one ridge for all. Or they are
    "smooth": fine bins, as many as the evidence of each feature supports, steps between them that are shrunk feature
    by feature as much as the marginal likelihood supports, and tables merged to a few rows at the end.

    Parameters
    ----------
    schema : Schema, optional
        What is known of the features; without it kinds follow the columns' types and nothing is constrained.
    link : {"logistic", "bands", "linear"}, default="logistic"
    shapes : {"steps", "smooth"}, default="steps"
    max_bins : int, optional
        Bins per continuous feature at most. Steps: where the schema does not say, default 5. Smooth: rows of the table
        after merging, whatever that costs; the schema's max_bins applies to steps only.
    ridge : float or "auto", default="auto"
        Of steps; the mean loss + ridge * ||beta||^2 is minimized. "auto" is 1/(2M), M the total weight; 0 is allowed.
    pairs : "auto", int or list of pairs of features, optional
        Of smooth shapes: pairs that are fitted together with the features, monotone in every feature that has a
        direction. "auto" takes as many as are expected to be real, at most 30, none if the best may well be chance, and
        keeps those with evidence given the others; a number takes that many, the best first.
    class_weight : None, "balanced" or dict, default=None
        Anything but None makes the printed probability wrong; see `at_base_rate`.
    criterion : {"gini", "entropy", "quantile"}, default="gini"
        How the bins of steps are found: by a tree on the outcome, or holding equal shares of the rows.
    min_bin_rows : int or "auto", default="auto"
        Least number of training rows in a bin that people read: "auto" is one row in a hundred, at most 50.
    tolerance : float, default=5e-5
        Of smooth shapes: what merging the rows of tables may cost, in mean log loss (squared error where linear).
    rules : {"schema", "free"}, default="schema"
        What empty and special fields may do: what the schema says, or, as in the paper, anything.
    weights : {"auto", "relative", "counts"}, default="auto"
        Of smooth shapes: what sample weights mean. With "relative" only their ratios matter, and the rows are as many
        as there are; with "counts" they are numbers of rows. "auto" takes whole multiples of one weight for repeated
        rows, in its unit, and all others as ratios: the scale never matters. Take "relative" for sampling weights.
    intervals : bool, default=False
        Of smooth shapes: keep the covariance of all scores, in the model file too, for `posterior`.
    pieces : int or "auto", default="auto"
        Of bands: how many; "auto" is as few as cost no more than 1e-4 in mean log loss, from three to ten.

    Attributes
    ----------
    form_ : RiskForm
    solution_ : Solution
        Coefficients, objective, KKT residual, iterations and why the solver stopped.
    ridge_ : float, of steps
    evidence_ : tuple of GroupEvidence, of smooth shapes: the precision of each group of coefficients, its effective
        degrees of freedom, and whether there is no evidence for it
    pair_evidence_ : tuple of PairEvidence, with pairs: the evidence for every pair in the residuals, the strongest
        first
    fit_record_ : FitRecord
    classes_ : (2,), sorted
    positive_ : the outcome whose probability is the risk
    n_features_in_, feature_names_in_, n_iter_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from plainrisk import AdditiveRiskModel
    >>> X, y = np.arange(100.0)[:, None], (np.arange(100) % 7 + np.arange(100) / 10 > 8).astype(int)
    >>> model = AdditiveRiskModel(link="linear").fit(X, y)
    >>> model.predict_proba([[10.0], [90.0]])[:, 1].round(2).tolist()
    [0.01, 0.93]
    """

    schema: Schema | None = None
    _: KW_ONLY
    pieces: Pieces = parameter("auto", whole(2, 30) | words("auto"))

    def _fit(self, training: TrainingRows) -> PartScores:
        if self.pieces != "auto" and self.link != "bands":
            raise DataError("pieces need bands: AdditiveRiskModel(link='bands', pieces=...).")
        fitted = fit_layer(training, self)
        self.solution_ = fitted.solution
        if fitted.ridge is not None:
            self.ridge_ = fitted.ridge
        self._chosen = fitted.chosen
        if fitted.chosen is not None:
            self.evidence_ = fitted.chosen.groups
        if fitted.pair_evidence is not None:
            self.pair_evidence_ = fitted.pair_evidence
        if fitted.chosen is not None and all(group.left for group in fitted.chosen.groups):
            warn(
                "AdditiveRiskModel: the rows give no evidence for any feature, so all risks are about the base rate. "
                "There may be too few rows, or no feature that tells the outcomes apart."
            )
        evidence = () if fitted.chosen is None else fitted.chosen.groups
        self._keep(training, [fitted.part], Alone(), [fitted.solution], fitted.scores, evidence, fitted.covariance)
        if self.link == "bands":
            degrees = degrees_of(self.fit_record_, fitted.solution, self.form_)
            self.form_ = straightened(self.form_, fitted.scores, Lines(pieces=self.pieces), degrees, fitted.n_rows)
            self._note_clipping(training, fitted.scores)
        return fitted.scores


def suggest_pairs(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> list[PairEvidence]:
    """Rank all pairs of features, the best first: the search that a fit with ``pairs="auto"`` makes.

    Parameters
    ----------
    model : a fitted model of one part
        Its schema holds what is known of the features; smooth shapes are fitted to the rows again.
    X, y, sample_weight : the rows it was fitted to

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    >>> pr.suggest_pairs(model, german.frame, german.target)[0].is_evident
    False
    """
    form: RiskForm | None = getattr(model, "form_", None)
    if form is None:
        raise DataError("suggest_pairs: give a fitted model. Call fit first.")
    if len(form.parts) > 1:
        raise DataError("suggest_pairs: the model must have one part.")
    training = read_training(X, y, form.schema, sample_weight, None)
    link: LinkName = "linear" if isinstance(form.parts[0].link, Linear) else "logistic"
    weights: Weights = getattr(model, "weights", "auto")
    return list(find_pairs(training, LayerSettings(link=link, shapes="smooth", weights=weights)))
