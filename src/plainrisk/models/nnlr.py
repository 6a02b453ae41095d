"""Nonnegative logistic regression on unbinned features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.checks import parameter
from plainrisk.data.frame import Frame
from plainrisk.errors import SchemaError
from plainrisk.fit.basis import LineBounds, centered_table
from plainrisk.fit.coding import code_rows, learn_levels
from plainrisk.fit.layer import resolve_ridge
from plainrisk.fit.parameters import CLASS_WEIGHT, RIDGE, RULES, ClassWeight, Ridge, Rules
from plainrisk.fit.plan import Fitted, Plan, fit_plan
from plainrisk.fit.scored import PartScores
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import Alone, Bins, Levels, Line, Logistic, Part, Shape, held_scores, outside_rules
from plainrisk.models.base import RiskClassifier
from plainrisk.schema import Schema

__all__ = ["NonnegativeLogisticRegression"]


@dataclass(eq=False, repr=False)
class NonnegativeLogisticRegression(RiskClassifier):
    r"""Logistic regression whose coefficients have the signs the schema states (NNLR).

    .. math:: \min_\beta \frac1M \sum_j L(\sigma(\beta_0 + \beta^T x_j), y_j) + \text{ridge} \sum_i \beta_i^2
              \quad\text{s.t. } \beta_i \ge 0 \text{ if increasing},\ \beta_i \le 0 \text{ if decreasing}

    Features enter unbinned. They are scaled internally, so that the solver converges for any units; the coefficients
    and the ridge are in the user's units. Special values, values below the bound, missing values and categories each
    have an effect.

    Parameters
    ----------
    schema : Schema, optional
    ridge : float or "auto", default=0.0
        "auto" is 1/(2M), M the total weight.
    class_weight : None, "balanced" or dict, default=None
    rules : {"schema", "free"}, default="schema"
        What empty and special fields may do: what the schema says, or, as in the paper, anything. A line has no best
        level: "not_better" is no better than the mean measurement, and "worst" is refused.

    Attributes
    ----------
    coef_ : (1, number of continuous features), per unit of the feature
    intercept_ : (1,), the log odds where every continuous feature is 0 (and no other level applies)
    form_, solution_, fit_record_, classes_ : as in AdditiveRiskModel

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(1000, seed=1)
    >>> schema = credit.schema.select(["income", "utilization"])  # which may only fall, and only rise
    >>> model = NonnegativeLogisticRegression(schema).fit(credit.frame, credit.target)
    >>> bool(model.coef_[0, 0] <= 0 <= model.coef_[0, 1])
    True
    """

    schema: Schema | None = None
    _: KW_ONLY
    ridge: Ridge = parameter(0.0, RIDGE)
    class_weight: ClassWeight = parameter(None, CLASS_WEIGHT)
    rules: Rules = parameter("schema", RULES)

    def _fit(self, training: TrainingRows) -> PartScores:
        self.ridge_ = resolve_ridge(self.ridge, training.total)
        fitted, scaling = _fit_lines(training, self.ridge_)
        assert fitted.solution is not None
        self.solution_ = fitted.solution
        part = _part(fitted, scaling, training.schema)
        shapes = [shape for shape in part.shapes.values() if isinstance(shape, Line)]
        self.coef_ = np.array([[line.slope for line in shapes]])
        self.intercept_ = np.array([part.intercept - sum(line.slope * line.center for line in shapes)])
        return self._keep(training, [part], Alone(), [self.solution_])


def _fit_lines(training: TrainingRows, ridge: float) -> tuple[Fitted, _Scaling]:
    """Fit scaled numeric columns, and levels for values that are not measurements."""
    schema, features = training.schema, training.schema.features
    levels = learn_levels(training, lines=True)
    lines = {name: bins for name, bins in levels.items() if isinstance(bins, Bins)}
    for name in lines:
        if "worst" in outside_rules(features[name], levels[name]).values():
            raise SchemaError(
                f"Schema: feature {name!r} has the rule 'worst', but enters as a line, which has no worst level. "
                "State 'not_better', or take a model with bins."
            )
    scaling = _Scaling.of(training, lines)

    signs = np.array([features[name].sign for name in lines])
    # In scaled units the coefficient is scale times larger, so its penalty is smaller by scale squared.
    with np.errstate(over="ignore"):
        shrunk = np.minimum(1.0 / scaling.scales / scaling.scales, 1e100)
    bounds = LineBounds(np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf), shrunk)
    coded = code_rows(training, levels, _Columns(scaling, tuple(lines.values())))
    return fit_plan(Plan(coded, schema, "logistic", "lines", ridge, lines=bounds)), scaling


def _part(fitted: Fitted, scaling: _Scaling, schema: Schema) -> Part:
    """Return the fitted part: lines for measurements, tables for categories."""
    basis, intercept = fitted.basis, float(fitted.point[0])
    slopes = fitted.point[1 + basis.n_levels :] / scaling.scales
    lines = dict(zip(scaling.names, zip(slopes, scaling.centers, scaling.deviations, strict=True), strict=True))
    coded = basis.coded
    shapes: dict[str, Shape] = {}
    for j, scores in enumerate(basis.level_scores(fitted.point[1:])):
        name, levels, weights = coded.names[j], coded.levels[j], coded.weights[j]
        if name not in lines:
            shapes[name], mean = centered_table(coded, j, scores, schema)
            intercept += mean
            continue
        # The line is 0 at its center, so levels never seen (score 0) are neutral already.
        slope, center, deviation = map(float, lines[name])
        assert isinstance(levels, Bins)
        shapes[name] = Line(
            slope=slope,
            center=center,
            levels=levels,
            scores=tuple(held_scores(scores, weights, levels, schema.features[name], schema.worse).tolist()),
            weights=tuple(weights.tolist()),
            positives=tuple(coded.positives[j].tolist()),
            deviation=deviation,
        )
    return Part(name="all", intercept=float(intercept), shapes=shapes, link=Logistic())


@dataclass(frozen=True)
class _Scaling:
    """How numeric columns are centered and scaled over their measured rows.

    Each is divided by its largest number first, since sums and squares of very large numbers overflow.
    """

    names: Sequence[str]
    largest: Floats
    middles: Floats
    spreads: Floats
    distances: Floats

    @classmethod
    def of(cls, training: TrainingRows, levels: Mapping[str, Levels]) -> _Scaling:
        names, lines, n = tuple(levels), tuple(levels.values()), len(levels)
        if not n:
            return cls((), *(np.zeros(0),) * 4)
        task, ones = "measuring columns", np.ones(n)
        largest = training.sum(_Measured(names, lines, ones, 0.0 * ones), names, task).reach
        largest = np.where(largest < 1e-290, 0.0, largest)  # a slope per such a unit would be no number
        measured = training.sum(_Measured(names, lines, largest, 0.0 * ones), names, task)
        middles = measured.sums / np.where(measured.weights > 0, measured.weights, 1.0)
        moved = training.sum(_Measured(names, lines, largest, middles), names, task)
        varies = moved.reach > 1e-12
        total = np.where(varies, measured.weights, 1.0)
        squares, distances = (np.where(varies, sums, 0.0) / total for sums in (moved.squares, moved.distances))
        return cls(names, largest, middles, np.sqrt(squares), distances)

    @property
    def centers(self) -> Floats:
        """The value at which each line is 0."""
        return self.middles * self.largest

    @property
    def deviations(self) -> Floats:
        """The mean distance from the centers."""
        return self.distances * self.largest

    @property
    def scales(self) -> Floats:
        """The unit of each line's coefficient; 1 where the column does not vary and is left out."""
        return np.where(self.spreads > 0, self.spreads * self.largest, 1.0)

    def columns(self, frame: Frame, measured: Sequence[Bools]) -> Floats:
        """Return the scaled columns, 0 for missing measurements: (rows, lines)."""
        columns = np.zeros((frame.n_rows, len(self.names)))
        for j, (name, inside) in enumerate(zip(self.names, measured, strict=True)):
            if self.spreads[j] > 0:
                moved = frame.numbers(name)[inside] / self.largest[j] - self.middles[j]
                columns[inside, j] = moved / self.spreads[j]
        return columns


@dataclass(frozen=True)
class _Columns:
    """The scaled columns of some rows."""

    scaling: _Scaling
    levels: tuple[Levels, ...]

    def __call__(self, batch: Training) -> Floats:
        names = self.scaling.names
        measured = [levels.codes(batch.frame, name) == 0 for name, levels in zip(names, self.levels, strict=True)]
        return self.scaling.columns(batch.frame, measured)


@dataclass(frozen=True)
class _Measured:
    """Sums over the measured numbers of columns, each less a middle after division by a unit; called, it adds up rows.

    Attributes
    ----------
    units, middles : (columns,); a column whose unit is 0 is left out
    reach : the largest absolute value
    weights, sums, squares, distances : sums of weight, and of weight times the number, its square, its absolute value
    """

    names: tuple[str, ...]
    levels: tuple[Levels, ...]
    units: Floats
    middles: Floats
    reach: Floats = field(default_factory=lambda: np.zeros(0))
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    sums: Floats = field(default_factory=lambda: np.zeros(0))
    squares: Floats = field(default_factory=lambda: np.zeros(0))
    distances: Floats = field(default_factory=lambda: np.zeros(0))

    def __call__(self, batch: Training) -> _Measured:
        reach, weights, sums, squares, distances = (np.zeros(len(self.names)) for _ in range(5))
        for j, (name, levels) in enumerate(zip(self.names, self.levels, strict=True)):
            inside = levels.codes(batch.frame, name) == 0
            if not self.units[j] or not inside.any():
                continue
            x = batch.frame.numbers(name)[inside] / self.units[j] - self.middles[j]
            w = None if batch.weight is None else batch.weight[inside]
            reach[j] = float(np.abs(x).max())
            weights[j] = len(x) if w is None else w.sum()
            with np.errstate(over="ignore", invalid="ignore"):  # before the unit is known, only `reach` is used
                sums[j] = x.sum() if w is None else w @ x
                squares[j] = x @ x if w is None else w @ x**2
                distances[j] = np.abs(x).sum() if w is None else w @ np.abs(x)
        return replace(self, reach=reach, weights=weights, sums=sums, squares=squares, distances=distances)

    def __add__(self, other: _Measured) -> _Measured:
        reach = np.maximum(self.reach, other.reach)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = {n: getattr(self, n) + getattr(other, n) for n in ("weights", "sums", "squares", "distances")}
        return replace(self, reach=reach, **sums)
