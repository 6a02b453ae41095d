"""The Additive Risk Model: one monotone step function per feature, added up; and the one driver that fits it.

`fit_layer` fits a one-layer model wherever it stands: alone, as an expert, in a fold, on a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal, get_args

from plainrisk._types import Floats
from plainrisk.bins import Anchor, Contrast, Criterion, level_contrast
from plainrisk.checks import FLAG, NOTHING, Allowed, number, whole, words
from plainrisk.errors import DataError
from plainrisk.form import Alone, Levels, Linear, Logistic, Part
from plainrisk.models.bands import Pieces
from plainrisk.models.base import CLASS_WEIGHT, RULES, PartScores, RiskClassifier, Rules
from plainrisk.models.design import Design, code_rows, learn_levels, rule_anchors, solve_with_rules, table_part
from plainrisk.models.pair_search import PairEvidence
from plainrisk.models.pairs import Pairs
from plainrisk.models.smooth import Chosen, fit_smooth
from plainrisk.models.straighten import KNOTS, Knots, Lines, degrees_of, straightened, training_portfolio
from plainrisk.models.training import TrainingRows
from plainrisk.schema import Schema
from plainrisk.solve import BOX, Layout, LogisticLoss, Moments, Rows, Solution, minimise, minimise_squares

__all__ = [
    "LAYER",
    "RIDGE",
    "AdditiveRiskModel",
    "LayerFit",
    "LayerSettings",
    "LinkName",
    "Problem",
    "Shapes",
    "fit_layer",
    "make_design",
    "resolve_ridge",
    "step_contrasts",
]

LinkName = Literal["logistic", "linear"]
OwnLink = Literal["logistic", "bands", "linear"]
Shapes = Literal["steps", "smooth"]
Ridge = float | Literal["auto"]


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
        for pair in value
    )


PAIRS = NOTHING | words("auto") | whole(1) | Allowed(("a list of pairs of features",), _are_pairs)
RIDGE = words("auto") | number(at_least=0)
# What the parameters of a one-layer fit may be.
LAYER: Mapping[str, Allowed] = {
    "link": words(*get_args(LinkName)),
    "shapes": words(*get_args(Shapes)),
    "max_bins": NOTHING | whole(1),
    "ridge": RIDGE,
    "pairs": PAIRS,
    "class_weight": CLASS_WEIGHT,
    "criterion": words("gini", "entropy", "quantile"),
    "min_bin_rows": words("auto") | whole(1),
    "tolerance": number(at_least=0),
    "rules": RULES,
}


class AdditiveRiskModel(RiskClassifier):
    r"""One-layer additive risk model (ARM1) under the schema's monotone directions.

    Every feature becomes levels: bins, categories, special values. With link "logistic" the model is

    .. math:: P(y=1 \mid x) = \sigma\Big(\beta_0 + \sum_u f_u(x_u)\Big)

    and the level scores minimise the mean log loss, plus a penalty, subject to the directions. With link "linear" the
    same sum is the probability itself, clipped to [0, 1], and minimises the mean squared error. With link "bands" it is
    fitted as with "logistic"; then a rising line of a few straight pieces takes the place of the sigmoid, so that every
    effect is a piece of the probability. It follows the outcomes, and stays near the sigmoid while rows are few.

    Shapes are "steps", the paper's: a few bins per feature, found by a tree, and one ridge for all. Or "smooth": up to
    64 fine bins, steps between them that are shrunk feature by feature, as much as the marginal likelihood asks for
    (a feature without evidence leaves the model), and tables joined to a few rows at the end. Sample weights count as
    numbers of rows there: weights that sum to 1 are the evidence of a single row.

    Parameters
    ----------
    schema : Schema, optional
        What is known of the features; without it kinds follow the columns' types and nothing is constrained.
    link : {"logistic", "bands", "linear"}, default="logistic"
    shapes : {"steps", "smooth"}, default="steps"
    max_bins : int, optional
        Bins per continuous feature at most. Steps: where the schema does not say, default 5. Smooth: rows of the table
        after joining, whatever that costs; what the schema says of max_bins is meant for steps.
    ridge : float or "auto", default="auto"
        Of steps; the mean loss + ridge * ||beta||^2 is minimised. "auto" is 1/(2M), M the total weight; 0 is allowed.
    pairs : "auto", int or list of pairs of features, optional
        Of smooth shapes: pairs that are fitted beside the features, monotone in every feature that has a direction.
        "auto" takes as many as are expected to be real, at most 30, none if the best may well be chance, and keeps
        those with evidence beside the others; a number takes that many, the best first.
    class_weight : None, "balanced" or dict, default=None
        Anything but None makes the printed probability wrong; see `at_base_rate`.
    criterion : {"gini", "entropy", "quantile"}, default="gini"
        How the bins of steps are found: by a tree on the outcome, or holding equal shares of the rows.
    min_bin_rows : int or "auto", default="auto"
        Least number of training rows in a bin: "auto" is one row in a hundred, at most 50.
    tolerance : float, default=5e-5
        Of smooth shapes: what joining the rows of tables may cost, in mean log loss (squared error where linear).
    rules : {"schema", "free"}, default="schema"
        What empty and special fields may do: what the schema says, or, as in the paper, anything.
    intervals : bool, default=False
        Of smooth shapes: keep the covariance of all scores, in the model file too, for `posterior`.
    pieces : int or "auto", default="auto"
        Of bands: how many; "auto" is three, or four or five where the outcomes of the training rows ask for them.
    knots : {"portfolio", "attainable", "universal"}, default="portfolio"
        Of bands: where they begin and end; see `Linearised`.

    Attributes
    ----------
    form_ : RiskForm
    solution_ : Solution
        Coefficients, objective, KKT residual, iterations and why the solver stopped.
    ridge_ : float, of steps
    evidence_ : tuple of GroupEvidence, of smooth shapes: per group of coefficients its precision, effective degrees of
        freedom and whether it has left the model
    pair_evidence_ : tuple of PairEvidence, with pairs: what the residuals say of every pair, the best first
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

    allowed: ClassVar[Mapping[str, Allowed]] = {
        **LAYER,
        "link": words(*get_args(OwnLink)),
        "intervals": FLAG,
        "pieces": whole(2, 30) | words("auto"),
        "knots": KNOTS,
    }
    _chosen: Chosen | None = None

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        link: OwnLink = "logistic",
        shapes: Shapes = "steps",
        max_bins: int | None = None,
        ridge: float | Literal["auto"] = "auto",
        pairs: Pairs = None,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        criterion: Criterion = "gini",
        min_bin_rows: int | Literal["auto"] = "auto",
        tolerance: float = 5e-5,
        rules: Rules = "schema",
        intervals: bool = False,
        pieces: Pieces = "auto",
        knots: Knots = "portfolio",
    ) -> None:
        self.schema = schema
        self.link = link
        self.shapes = shapes
        self.max_bins = max_bins
        self.ridge = ridge
        self.pairs = pairs
        self.class_weight = class_weight
        self.criterion = criterion
        self.min_bin_rows = min_bin_rows
        self.tolerance = tolerance
        self.rules = rules
        self.intervals = intervals
        self.pieces = pieces
        self.knots = knots

    def _fit(self, training: TrainingRows) -> PartScores:
        for name, wanted in (("pieces", self.pieces != "auto"), ("knots", self.knots != "portfolio")):
            if wanted and self.link != "bands":
                raise DataError(f"{name} need bands: AdditiveRiskModel(link='bands', {name}=...).")
        fitted = fit_layer(training, self._settings)
        self.solution_ = fitted.solution
        if fitted.ridge is not None:
            self.ridge_ = fitted.ridge
        self._chosen = fitted.chosen
        if fitted.chosen is not None:
            self.evidence_ = fitted.chosen.groups
        if fitted.pair_evidence is not None:
            self.pair_evidence_ = fitted.pair_evidence

        def scores() -> Any:
            return (score[:, None] for score in fitted.scores())

        evidence = () if fitted.chosen is None else fitted.chosen.groups
        self._keep(training, [fitted.part], Alone(), [fitted.solution], scores, evidence, fitted.covariance)
        if self.link == "bands":
            degrees = degrees_of(self.fit_record_, fitted.solution, self.form_)
            lines = Lines(self.pieces, self.knots)
            self.form_ = straightened(self.form_, training_portfolio(training, scores), lines, degrees)
            self._note_clipping(training, scores)
        return scores

    @property
    def _settings(self) -> LayerSettings:
        own = {f.name: getattr(self, f.name) for f in fields(LayerSettings)}
        return LayerSettings(**own | {"link": "linear" if self.link == "linear" else "logistic"})


@dataclass(frozen=True)
class LayerSettings:
    """How a one-layer model is fitted; the parameters of `AdditiveRiskModel` of the same names."""

    link: LinkName = "logistic"
    shapes: Shapes = "steps"
    max_bins: int | None = None
    ridge: Ridge = "auto"
    pairs: Pairs = None
    criterion: Criterion = "gini"
    min_bin_rows: int | Literal["auto"] = "auto"
    tolerance: float = 5e-5
    intervals: bool = False

    def min_rows(self, n_rows: int) -> int:
        """Return the least number of rows in a bin."""
        return max(1, min(50, n_rows // 100)) if self.min_bin_rows == "auto" else self.min_bin_rows


@dataclass(frozen=True)
class LayerFit:
    """A fitted layer.

    Attributes
    ----------
    part : the additive part
    solution : what the solver found
    scores : yields the scores of the training rows, batch by batch, from their codes
    ridge : of steps, or None
    chosen : of smooth shapes, or None: the evidence, and what else a refit keeps
    pair_evidence : of all pairs of features, if pairs were asked for
    covariance : of the scores, if intervals were asked for
    """

    part: Part
    solution: Solution
    scores: Callable[[], Iterator[Floats]]
    ridge: float | None = None
    chosen: Chosen | None = None
    pair_evidence: tuple[PairEvidence, ...] | None = None
    covariance: tuple[float, ...] = ()


def fit_layer(training: TrainingRows, settings: LayerSettings) -> LayerFit:
    """Find the levels, code the rows, solve, and centre the shapes."""
    link = Logistic() if settings.link == "logistic" else Linear()
    min_rows = settings.min_rows(training.n_rows)
    if settings.shapes == "smooth":
        smooth = fit_smooth(
            training,
            link,
            pairs=settings.pairs,
            max_bins=settings.max_bins,
            min_rows=min_rows,
            tolerance=settings.tolerance,
            intervals=settings.intervals,
        )
        return LayerFit(
            smooth.part,
            smooth.solution,
            smooth.scores,
            chosen=smooth.chosen,
            pair_evidence=smooth.ranked,
            covariance=smooth.covariance,
        )
    for name, wanted in (("pairs", settings.pairs is not None), ("intervals", settings.intervals)):
        if wanted:
            raise DataError(f"{name} need smooth shapes: AdditiveRiskModel(shapes='smooth', {name}=...).")
    levels = learn_levels(training, max_bins=settings.max_bins or 5, criterion=settings.criterion, min_rows=min_rows)
    schema, ridge = training.schema, resolve_ridge(settings.ridge, training.total)

    def solve(design: Design) -> tuple[Solution, None]:
        return Problem(settings.link, design.layout, design.cells, lower=design.lower).solve(ridge), None

    coded = code_rows(training, levels)
    design, solution, _ = solve_with_rules(coded, schema, step_contrasts(schema), solve)
    part = table_part("all", design, solution, link, schema)
    return LayerFit(part, solution, partial(design.scores, solution), ridge=ridge)


def make_design(training: TrainingRows, levels: Mapping[str, Levels], scores: Sequence[Floats] | None = None) -> Design:
    """Code the rows with these levels, and choose the coefficients of every feature; `scores` are of an earlier fit."""
    coded, contrast = code_rows(training, levels), step_contrasts(training.schema)
    held = rule_anchors(coded, training.schema, scores)
    each = zip(coded.names, coded.levels, coded.weights, held, strict=True)
    return Design(coded, tuple(contrast(*one) for one in each))


def step_contrasts(schema: Schema) -> Callable[[str, Levels, Floats, Mapping[int, Anchor]], Contrast]:
    """Return the function that chooses the coefficients of a feature of steps."""
    return lambda name, levels, weights, anchors: level_contrast(
        weights, levels.n_ordered, schema.features[name].sign, anchors=anchors
    )


@dataclass(frozen=True)
class Problem:
    """A bounded fit of a layout to rows, by logistic loss or by least squares.

    Attributes
    ----------
    link : "logistic" minimises the mean log loss, "linear" the mean squared error
    lower, upper, box : bounds of the coefficients; see `plainrisk.solve.minimise`
    scale : what the ridge is multiplied by, for all coefficients or each
    """

    link: LinkName
    layout: Layout
    rows: Rows
    lower: Floats | None = None
    upper: Floats | None = None
    box: float | Floats = BOX
    scale: float | Floats = 1.0

    def solve(self, ridge: float, start: Floats | None = None) -> Solution:
        """Minimise the loss plus ``ridge * scale * beta^2``."""
        penalty = ridge * self.scale
        if self.link == "linear":
            moments = Moments.of(self.layout, self.rows)
            return minimise_squares(moments, ridge=penalty, lower=self.lower, upper=self.upper, start=start)
        loss = LogisticLoss(self.layout, self.rows)
        return minimise(loss, ridge=penalty, lower=self.lower, upper=self.upper, box=self.box, start=start)


def resolve_ridge(ridge: Ridge, total: float) -> float:
    """Return the ridge as a number: "auto" is 1/(2M), M the total weight."""
    return 1.0 / (2.0 * total) if ridge == "auto" else float(ridge)
