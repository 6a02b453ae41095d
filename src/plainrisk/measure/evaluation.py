r"""A predicted risk measured on rows it was not fitted to, every figure with its confidence interval.

The intervals come from:

- AUC and Gini: DeLong, on the logit scale; the difference of two models on the same rows: DeLong's test;
- slope and intercept of the calibration line: Huber's sandwich;
- H-measure, KS, Brier score, log loss, calibration error and gap: the standard error over bootstrap samples of rows,
  by a fixed seed. The difference of two models: the same samples for both (paired bootstrap);
- base rate and the bins of the calibration table: Wilson.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from plainrisk._types import Floats, Index
from plainrisk.checks import LEVEL, SEED, check_parameters
from plainrisk.data.columns import Labels
from plainrisk.data.frame import column_of
from plainrisk.errors import DataError
from plainrisk.form.risks import RiskSums
from plainrisk.intervals import Placement, Range, is_small, normal_quantile, wilson
from plainrisk.measure.calibration import (
    CalibrationLine,
    Reliability,
    calibration_line,
    equal_weight_bins,
)
from plainrisk.measure.calibration_tests import CalibrationTests, tests_of
from plainrisk.measure.metrics import h_of_counts, ks_of_counts
from plainrisk.measure.predictions import Predictions, Weights, check_predictions
from plainrisk.tables import TableResult, text_table
from plainrisk.text import show_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["METRICS", "Evaluation", "evaluate_risk", "evaluate_sums"]

METRICS = ("auc", "gini", "h_measure", "ks", "brier", "log_loss", "ece", "gap", "slope", "intercept")
# The figures whose intervals are bootstrapped, with the ends of their scales.
SCALES = {
    "h_measure": (0.0, 1.0),
    "ks": (0.0, 1.0),
    "brier": (0.0, 1.0),
    "log_loss": (0.0, math.inf),
    "ece": (0.0, 1.0),
    "gap": (-1.0, 1.0),
}
SAMPLES = 200  # bootstrap samples: they tell a standard error to 5%
ECE_BINS, TABLE_BINS = 15, 10


SEEN_BEFORE = "These seem to be the rows that the model was fitted to. On new rows, it will do worse than shown here."
NO_GRADES = "evaluate: the tests of grades count rows. Leave out the weights, or the grades."
SUSPICIOUS_AUC = 0.99  # no application predicts its outcome this well


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(TableResult):
    """The measures of predicted risks on some rows.

    ``evaluation["auc"]`` is a figure with its interval: `.estimate`, `.low`, `.high`. The figures are auc, gini,
    h_measure (costs beta(2, 2)), ks, brier, log_loss, ece (15 equal-width bins over all rows), gap (mean risk minus
    base rate), slope and intercept (of the calibration line, 1 and 0 if calibrated).

    Attributes
    ----------
    rows, positives : the number of rows of positive weight, and of those with the positive outcome
    small : whether there are too few rows, or too few of one outcome, for reliable figures
    level : of the intervals
    base_rate : share of the positive outcome
    mean_risk : the mean prediction
    figures : by name
    calibration : predicted and observed risk in ten bins of about equal weight
    certain_and_wrong : rows whose risk is 0 or 1 and wrong; any of them makes the log loss infinite
    certain : rows of risk 0 or 1, which the calibration line leaves out
    against : the other model on the same rows, or None
    differences : figure minus that of the other model, by name
    p_value : of DeLong's test that the two AUCs are equal
    groups : the same for the rows of every group, by name
    seen_before : whether these seem to be the rows the model was fitted to
    tests : Hosmer and Lemeshow, Spiegelhalter, and Jeffreys by grade; None for groups and with weights
    """

    rows: int
    positives: int
    small: bool
    level: float
    base_rate: Range
    mean_risk: float
    figures: Mapping[str, Range]
    calibration: Reliability
    certain_and_wrong: tuple[int, ...]
    certain: int
    against: Evaluation | None = None
    differences: Mapping[str, Range] = field(default_factory=dict)
    p_value: float = math.nan
    groups: Mapping[str, Evaluation] = field(default_factory=dict)
    seen_before: bool = False
    tests: CalibrationTests | None = None

    def __getitem__(self, name: str) -> Range:
        return self.figures[name]

    def _headline(self) -> str:
        head = f"{self.rows:,} rows, base rate {self.base_rate.estimate:.4f}, mean risk {self.mean_risk:.4f}"
        return f"{head}, intervals of {self.level:.0%}"

    def __repr__(self) -> str:
        tables = [text_table(self._headline(), replace(self, groups={}).columns(), rows=len(METRICS))]
        if self.groups:
            tables += ["", text_table("By group", self.by_group())]
        return "\n".join([*tables, *self.notes])

    def _warnings(self) -> list[str]:
        """Return why the figures may be too good to be true."""
        warnings = [SEEN_BEFORE] if self.seen_before else []
        if not self.small and self.figures["auc"].estimate > SUSPICIOUS_AUC:
            warnings.append(f"An AUC above {SUSPICIOUS_AUC} is suspicious: a feature may know the outcome.")
        return warnings

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures must know: an infinite log loss, rows left out, few rows, the DeLong test."""
        notes = self._warnings()
        if self.certain_and_wrong:
            rows = ", ".join(map(str, self.certain_and_wrong[:5])) + (", ..." if self.certain_and_wrong[5:] else "")
            notes.append(
                f"The log loss is infinite: {len(self.certain_and_wrong):,} rows have a risk of 0 or 1 that is wrong "
                f"(counting from 0: {rows})."
            )
        elif math.isinf(self.figures["log_loss"].estimate):
            notes.append("The log loss is infinite: some rows have a risk of 0 or 1 that is wrong.")
        if self.certain:
            notes.append(f"Slope and intercept leave out {self.certain:,} rows of risk 0 or 1.")
        if self.tests is not None:
            notes.append(self.tests.in_words())
        if self.small:
            notes.append("Small: there are too few rows, or too few of one outcome, for reliable figures.")
        if self.against is not None and not math.isnan(self.p_value):
            notes.append(f"DeLong's test of equal AUC: p = {show_p(self.p_value)}.")
        return tuple(notes)

    def columns(self) -> dict[str, Any]:
        """Return a line per metric, of all rows and of every group, as columns by name; only all rows are compared."""
        groups = {"": self, **self.groups}
        figures = [(group, *item) for group, rows in groups.items() for item in rows.figures.items()]
        columns: dict[str, Any] = {"group": [group for group, _, _ in figures]} if self.groups else {}
        columns |= {"metric": [name for _, name, _ in figures]}
        columns |= _ends([figure for *_, figure in figures], "value", "low", "high")
        if self.against is not None:
            blank = [None] * (len(figures) - len(self.figures))
            columns["against"] = [self.against[name].estimate for name in self.figures] + blank
            ends = _ends(self.differences.values(), "difference", "difference_low", "difference_high")
            columns |= {name: [*values, *blank] for name, values in ends.items()}
        return columns

    def by_group(self) -> dict[str, Any]:
        """Return a line per group as columns by name."""
        groups = self.groups.values()
        columns = {"group": list(self.groups), "rows": [group.rows for group in groups]}
        columns["mark"] = ["small" if group.small else "" for group in groups]
        columns["base_rate"] = [group.base_rate.estimate for group in groups]
        columns["mean_risk"] = [group.mean_risk for group in groups]
        columns |= _ends([group["auc"] for group in groups], "auc", "auc_low", "auc_high")
        names = ("ks", "brier", "log_loss", "ece")
        return columns | {name: [group[name].estimate for group in groups] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        plain: dict[str, Any] = {
            name: getattr(self, name) for name in ("rows", "positives", "small", "level", "mean_risk", "certain")
        }
        plain |= {
            "base_rate": vars(self.base_rate),
            "figures": {name: vars(r) for name, r in self.figures.items()},
            "calibration": self.calibration.to_dict(),
            "certain_and_wrong": list(self.certain_and_wrong),
            "notes": list(self.notes),
        }
        if self.against is not None:
            differences = {name: vars(r) for name, r in self.differences.items()}
            plain |= {"against": self.against.to_dict(), "differences": differences, "p_value": self.p_value}
        if self.tests is not None:
            plain["tests"] = self.tests.to_dict()
        if self.groups:
            plain["groups"] = {name: group.to_dict() for name, group in self.groups.items()}
        return plain

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the calibration table with its intervals."""
        return self.calibration.plot(ax)


def _ends(ranges: Iterable[Range], *names: str) -> dict[str, Any]:
    """Return figures and their intervals as three columns."""
    columns = zip(*(vars(figure).values() for figure in ranges), strict=True)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def evaluate_risk(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    against: ArrayLike | None = None,
    by: Any = None,
    grades: Sequence[float] | None = None,
    sample_weight: Weights = None,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Measure predicted risks, with intervals; `pr.evaluate` takes a model and rows.

    Parameters
    ----------
    y_true, y_prob, sample_weight : outcomes (1 = positive), predictions and weights
    against : the predictions of another model for the same rows
    by : (n,) the group of every row, such as its month
    grades : the probabilities at which a new grade begins, for the tests
    level : of the intervals
    seed : of the bootstrap

    >>> evaluation = evaluate_risk([0, 0, 1, 1, 0, 1], [0.1, 0.4, 0.35, 0.8, 0.2, 0.6])
    >>> round(evaluation["auc"].estimate, 4), evaluation.small
    (0.8889, True)
    """
    check_parameters("evaluate", {"level": level, "seed": seed}, {"level": LEVEL, "seed": SEED})
    kept: Index = np.arange(len(np.asarray(y_true))) if sample_weight is None else np.flatnonzero(sample_weight)
    models = [check_predictions(y_true, risk, sample_weight) for risk in (y_prob, against) if risk is not None]
    measured = _evaluate(models, kept, level, seed)
    if sample_weight is None:
        measured = replace(measured, tests=tests_of(models[0], grades, level))
    elif grades is not None:
        raise DataError(NO_GRADES)
    if by is None:
        return measured
    column = column_of(by)
    if len(column.codes) != len(np.asarray(y_true)):
        raise DataError(f"by: has {len(column.codes)} rows where y_true has {len(np.asarray(y_true))}.")
    groups = {
        name: _evaluate([model.take(rows) for model in models], kept[rows], level, seed)
        for name, rows in Labels(column.codes[kept], column.labels).groups().items()
    }
    return replace(measured, groups=groups)


def evaluate_sums(
    sums: RiskSums, *, weighted: bool = False, grades: Sequence[float] | None = None, level: float = 0.95, seed: int = 0
) -> Evaluation:
    """Measure probabilities that were counted where the rows are; see `evaluate_risk`.

    The bootstrap draws how often each counted row occurs from a Poisson distribution; rows in memory are drawn one by
    one.
    """
    check_parameters("evaluate", {"level": level, "seed": seed}, {"level": LEVEL, "seed": SEED})
    checked = Predictions.of_sums(sums)
    measured = _evaluate([checked], None, level, seed)
    if not weighted:
        return replace(measured, tests=tests_of(checked, grades, level))
    if grades is not None:
        raise DataError(NO_GRADES)
    return measured


def _evaluate(models: list[Predictions], positions: Index | None, level: float, seed: int) -> Evaluation:
    """Measure one model, or two on the same rows; `positions` are the numbers of the rows in messages."""
    z, measured = normal_quantile(level), [_Measured(checked) for checked in models]
    samples = _bootstrap(measured, seed)
    evaluations = [m.evaluation(draws, positions, level, z) for m, draws in zip(measured, samples, strict=True)]
    if len(evaluations) == 1:
        return evaluations[0]
    differences, p = _differences(measured, samples, z)
    return replace(evaluations[0], against=evaluations[1], differences=differences, p_value=p)


class _Measured:
    """A model on some rows, with the ranks, losses and bins that all bootstrap samples share."""

    def __init__(self, checked: Predictions) -> None:
        self.checked = checked
        self.order = np.argsort(checked.risk, kind="stable")
        ranked = checked.risk[self.order]
        self.last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
        self.bad = checked.bad[self.order].astype(np.float64)
        with np.errstate(divide="ignore"):
            self.loss: Floats = -np.where(self.bad == 1, np.log(ranked), np.log1p(-ranked))
        self.gap: Floats = ranked - self.bad
        self.squares: Floats = self.gap**2
        # Rows are ranked by risk, so each bin of the calibration error is a run of rows.
        starts = np.unique(np.searchsorted(ranked, np.arange(ECE_BINS) / ECE_BINS))
        self.bins = starts[starts < len(ranked)]
        self.placement = Placement.of(checked.bad, checked.risk, checked.weight, checked.spread, checked.rows)
        self.line: CalibrationLine = calibration_line(checked)

    def values(self, weight: Floats) -> list[float]:
        """Return the figures of `SCALES`, in their order, where the rows have these weights."""
        weight = weight[self.order]
        rows, bads = (np.diff(np.cumsum(sums)[self.last], prepend=0.0) for sums in (weight, weight * self.bad))
        goods, total = np.maximum(rows - bads, 0.0), weight.sum()
        gaps = np.add.reduceat(weight * self.gap, self.bins)
        with np.errstate(invalid="ignore"):  # an infinite loss that no sample drew is 0 times infinity
            # Products of vectors this short are slower in BLAS, which wakes its threads.
            sums = [(weight * self.squares).sum(), (weight * self.loss).sum(), np.abs(gaps).sum(), gaps.sum()]
        means = (float(value) / float(total) for value in sums)
        return [h_of_counts(goods, bads), ks_of_counts(goods, bads), *means]

    def evaluation(self, draws: Floats, positions: Index | None, level: float, z: float) -> Evaluation:
        """Return the figures with intervals, given those of the bootstrap samples."""
        checked, auc = self.checked, self.placement.range(z)
        values = self.values(checked.weight)
        drawn = {
            name: _around(value, _spread(draws[:, k]), z, *ends)
            for k, ((name, ends), value) in enumerate(zip(SCALES.items(), values, strict=True))
        }
        gini = Range(*(2 * end - 1 for end in vars(auc).values()))
        errors = np.sqrt((self.line.influence**2).sum(axis=1)).tolist()
        line = {
            name: _around(getattr(self.line, name), error, z)
            for name, error in zip(("intercept", "slope"), errors, strict=True)
        }
        figures = {"auc": auc, "gini": gini, **drawn, **line}
        base, effective = checked.mean(checked.bad), checked.total**2 / float(checked.spread @ checked.spread)
        rows, positives = int(checked.rows.sum()), int(checked.rows[checked.bad].sum())
        infinite = self.order[np.isinf(self.loss)]
        return Evaluation(
            rows=rows,
            positives=positives,
            small=is_small(rows, positives),
            level=level,
            base_rate=wilson(base * effective, effective, z),
            mean_risk=checked.mean(checked.risk),
            figures={name: figures[name] for name in METRICS},
            calibration=equal_weight_bins(checked, TABLE_BINS, level),
            certain_and_wrong=() if positions is None else tuple(sorted(positions[infinite].tolist())),
            certain=self.line.certain,
        )


def _bootstrap(measured: list[_Measured], seed: int) -> list[Floats]:
    """Return the figures of `SCALES` over bootstrap samples, the same for all models: (samples, figures) by model."""
    rng, checked = np.random.default_rng(seed), measured[0].checked
    weight, are_rows = checked.weight, checked.are_rows
    # An entry of several rows counts as rows of equal weight with the same sums of weights and of squared weights.
    weight_of_row = checked.spread**2 / weight
    figures = np.empty((len(measured), SAMPLES, len(SCALES)))
    for k in range(SAMPLES):
        if are_rows:
            drawn = weight * np.bincount(rng.integers(len(weight), size=len(weight)), minlength=len(weight))
        else:
            drawn = weight_of_row * rng.poisson(weight / weight_of_row)
        for values, model in zip(figures, measured, strict=True):
            values[k] = model.values(drawn)
    return list(figures)


def _spread(values: Floats) -> float:
    """Return the standard deviation over the samples that have a figure."""
    finite = values[np.isfinite(values)]
    return float(finite.std(ddof=1)) if len(finite) > len(values) / 2 else math.nan


def _around(estimate: float, error: float, z: float, least: float = -math.inf, most: float = math.inf) -> Range:
    """Return the normal interval, cut at the ends of the figure's scale."""
    if not math.isfinite(estimate) or math.isnan(error):
        return Range(estimate, math.nan, math.nan)
    return Range(estimate, max(least, estimate - z * error), min(most, estimate + z * error))


def _differences(measured: list[_Measured], samples: list[Floats], z: float) -> tuple[dict[str, Range], float]:
    """Return every figure of the first model minus that of the second, with intervals, and DeLong's p-value."""
    first, second = measured
    auc, p = first.placement.less(second.placement, z)
    difference_of = {"auc": auc, "gini": Range(*(2 * end for end in vars(auc).values()))}
    values, others = (model.values(model.checked.weight) for model in measured)
    with np.errstate(invalid="ignore"):
        moved = samples[0] - samples[1]
    for k, name in enumerate(SCALES):
        difference_of[name] = _around(_less(values[k], others[k]), _spread(moved[:, k]), z)
    errors = np.sqrt(((first.line.influence - second.line.influence) ** 2).sum(axis=1)).tolist()
    for name, error in zip(("intercept", "slope"), errors, strict=True):
        difference_of[name] = _around(getattr(first.line, name) - getattr(second.line, name), error, z)
    return {name: difference_of[name] for name in METRICS}, p


def _less(a: float, b: float) -> float:
    return a - b if math.isfinite(a) or math.isfinite(b) else math.nan
