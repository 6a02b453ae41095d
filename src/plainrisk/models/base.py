"""What all estimators share: reading the training rows, keeping the form, scikit-learn's contract."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from plainrisk._types import Bools, Floats
from plainrisk.checks import Allowed, allowed_parameters, check_parameters
from plainrisk.data.frame import as_frame
from plainrisk.data.rows import is_stored
from plainrisk.errors import StoppedEarly, quoted, warn
from plainrisk.fit.coding import own_weight, value_ranges
from plainrisk.fit.scored import FormScores, PartScores, Scored
from plainrisk.fit.straighten import pooled_score
from plainrisk.fit.stream import read_stream
from plainrisk.fit.training import TrainingRows, read_training
from plainrisk.form import (
    Bins,
    FitRecord,
    GroupEvidence,
    Levels,
    Link,
    Logistic,
    Part,
    Pool,
    RiskForm,
    Shape,
    TreePart,
    measured_levels,
    outside_rules,
)
from plainrisk.form.risks import TrainedRisks, count_risks
from plainrisk.model import FormMethods
from plainrisk.models.leaks import warn_of_leaks
from plainrisk.schema import Feature, Schema
from plainrisk.schema.protected import not_marked
from plainrisk.solve import Solution

__all__ = [
    "CLASSIFIER",
    "PartScores",
    "RiskClassifier",
    "clipped_share",
    "pooled_risk",
    "warn_of_clipping",
]

LOG = logging.getLogger("plainrisk")

# Above this share of clipped training rows the user is warned.
CLIPPING_WARNING = 0.10

# The allowed values of the parameter `estimator` of several classifiers.
CLASSIFIER = Allowed(
    ("a classifier with fit and predict_proba",),
    lambda value: not isinstance(value, type) and hasattr(value, "fit") and hasattr(value, "predict_proba"),
)


class RiskClassifier(FormMethods, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier whose fitted state is a risk form.

    Parameters are declared once, as fields of a dataclass with their allowed values (`parameter`). By scikit-learn's
    convention, the constructor only assigns, and `fit` checks them.
    """

    schema: Schema | None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, columns: Sequence[str] | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : data frame, array, dict of columns, or `pr.rows`
        y : (n,), optional
            The outcomes; by default the schema's target column of X. With `pr.rows`, the name of a column.
        sample_weight : (n,), optional
            With `pr.rows`, the name of a column.
        columns : list of str, optional
            The names of the columns, for rows that have none.

        Returns
        -------
        self
        """
        self._check_parameters()
        training = self._read(X if columns is None else as_frame(X, columns), y, sample_weight)
        LOG.info("%s: fitting to %s rows, %s features", type(self).__name__, training.n_rows, len(training.names))
        try:
            self._fit_whole(training)
        finally:
            training.free()
        record = getattr(self, "fit_record_", None)  # experts of other libraries have none
        LOG.info("%s: fitted. %s", type(self).__name__, record.reason if record is not None else "")
        form = getattr(self, "form_", None)  # a mixture with an expert of several parts has none
        if self.schema is not None and self._keeps_rules and form is not None:
            # Not where folds are fitted: their rows and rates are not those of the model.
            warn_of_better_levels(form)
        if self.schema is not None and form is not None:
            warn_of_protected(form)
            warn_of_unmarked(form)
        warn_of_leaks(form, training)
        return self

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, self.get_params(deep=False), allowed_parameters(type(self)))

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        read = read_stream if is_stored(X) else read_training
        return read(X, y, self.schema, sample_weight, self._class_weight)

    @property
    def _class_weight(self) -> Any:
        """The class weights of the fit."""
        return getattr(self, "class_weight", None)

    @property
    def _keeps_rules(self) -> bool:
        """Whether the model keeps the schema's rules for special levels; one with others inside asks them."""
        inner = getattr(self, "estimator", None)
        experts = list(inner.values()) if isinstance(inner, Mapping) else [] if inner is None else [inner]
        return getattr(self, "rules", "schema") == "schema" and all(
            isinstance(expert, RiskClassifier) and expert._keeps_rules for expert in experts
        )

    def _fit_whole(self, training: TrainingRows) -> None:
        """Fit the model, and keep the ranges of its features and the probabilities of the rows, as counts."""
        scores = self._fit_rows(training)
        if hasattr(self, "form_"):  # a mixture with an expert of several parts has none
            self.form_ = msgspec.structs.replace(self.form_, ranges=value_ranges(self.form_, training))
            if self.fit_record_ is not None:
                row_scores = FormScores(self.form_, training) if scores is None else scores
                risks = trained_risks(self.form_, training, row_scores)
                self.fit_record_ = msgspec.structs.replace(self.fit_record_, risks=risks)

    def _fit_rows(self, training: TrainingRows) -> PartScores | None:
        """Fit the model to rows that were read already; return them with their scores."""
        self._check_parameters()  # of a model inside another, too
        training = training.with_schema(training.schema.with_rules(free=not self._keeps_rules))
        for name in ("feature_names_in_", "ridge_", "evidence_", "pair_evidence_"):  # of an earlier fit
            if hasattr(self, name):
                delattr(self, name)
        self._set_classes(training.classes)
        self.n_features_in_ = len(training.names)
        if training.named:
            self.feature_names_in_ = np.array(training.names, dtype=object)
        return self._fit(training)

    def _fit(self, training: TrainingRows) -> PartScores | None:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _keep(
        self,
        training: TrainingRows,
        parts: Sequence[Part | TreePart],
        pool: Pool,
        solutions: Sequence[Solution],
        scores: PartScores | None = None,
        evidence: tuple[GroupEvidence, ...] = (),
        covariance: tuple[float, ...] = (),
    ) -> PartScores:
        """Store the form and the record of the fit; warn once of what the user should know."""
        self.form_ = RiskForm(
            schema=training.schema,
            columns=training.names,
            classes=(_plain(training.classes[0]), _plain(training.classes[1])),
            parts=tuple(parts),
            pool=pool,
        )
        row_scores = FormScores(self.form_, training) if scores is None else scores
        self.n_iter_ = max((s.iterations for s in solutions), default=0)
        clipped = clipped_share(self.form_, row_scores, training.factors)
        self.fit_record_ = FitRecord(
            estimator=type(self).__name__,
            parameters={k: _describe(v) for k, v in self.get_params(deep=False).items() if k != "schema"},
            rows=training.n_rows,
            weight=training.total,
            positive_weight=training.positive_total,
            base_rate=training.base_rate,
            objective=tuple(s.objective for s in solutions),
            kkt=tuple(s.kkt for s in solutions),
            iterations=tuple(s.iterations for s in solutions),
            converged=all(s.converged for s in solutions),
            reason="; ".join(sorted({s.reason for s in solutions})),
            clipped=clipped,
            evidence=evidence,
            covariance=covariance,
        )
        warn_of_clipping(type(self).__name__, clipped, self.form_.last_link)
        self._warn_of_stops(solutions)
        return row_scores

    def _note_clipping(self, training: TrainingRows, scores: PartScores, who: str | None = None) -> None:
        """Record how many rows are clipped after the links were replaced, and warn the user if they are many."""
        share, record = clipped_share(self.form_, scores, training.factors), self.fit_record_
        who = type(self).__name__ if who is None else who
        if record is not None:
            self.fit_record_ = msgspec.structs.replace(record, estimator=who, clipped=share)
        warn_of_clipping(who, share, self.form_.last_link)

    def _warn_of_stops(self, solutions: Sequence[Solution]) -> None:
        bad = [s for s in solutions if not s.converged or s.at_box.any()]
        if bad:
            warn(
                f"{type(self).__name__}: stopped before the optimum ({bad[0].reason}). The model is usable; "
                "ridge='auto' gives a finite optimum.",
                StoppedEarly,
            )


def trained_risks(form: RiskForm, training: TrainingRows, scores: PartScores) -> TrainedRisks:
    """Count the probabilities of the training rows, without class weights."""
    total, rows, positives = scores.sum(_RiskCounts(form, training.factors))
    return TrainedRisks.of(total, rows, positives)


@dataclass(frozen=True)
class _RiskCounts:
    """The sum of probabilities, and their counts by cell: of all rows, and of those with the positive outcome."""

    form: RiskForm
    factors: Floats | None

    def __call__(self, rows: Scored) -> tuple[float, Floats, Floats]:
        risk, weight = pooled_risk(self.form, rows.scores), own_weight(rows.weight, rows.positive, self.factors)
        weight = np.ones(len(risk)) if weight is None else weight
        hits = weight * (np.asarray(rows.positive) > 0)
        return float(weight @ risk), count_risks(risk, weight), count_risks(risk, hits)


def pooled_risk(form: RiskForm, part_scores: Floats) -> Floats:
    """Return the risk, given the score of every part: (rows, parts)."""
    score, link = pooled_score(form, part_scores), form.last_link
    return score if link is None else link.value(score)


def clipped_share(form: RiskForm, portfolio: PartScores, factors: Floats | None = None) -> float:
    """Return the weighted share of rows whose line is cut off at the last link, without class weights.

    A mixture has no link of its own; its share is that of the rows where all its experts are cut off at the same end.
    """
    last = list(form.links) if form.last_link is None else [form.last_link]
    if all(isinstance(link, Logistic) for link in last):
        return 0.0  # a sigmoid is never cut off: no need to score the rows
    total, clipped = portfolio.sum(_Clipped(form, factors))
    return float(clipped / total)


@dataclass(frozen=True)
class _Clipped:
    """The weight of rows, and of those that are cut off."""

    form: RiskForm
    factors: Floats | None

    def __call__(self, rows: Scored) -> tuple[float, float]:
        clipped, weight = _clipped(self.form, rows.scores), own_weight(rows.weight, rows.positive, self.factors)
        if weight is None:
            return float(len(clipped)), float(np.count_nonzero(clipped))
        return float(weight.sum()), float(weight[clipped].sum())


def _clipped(form: RiskForm, part_scores: Floats) -> Bools:
    score, link = pooled_score(form, part_scores), form.last_link
    if link is None:
        return np.asarray((score <= 0.0) | (score >= 1.0))
    line = link.line(score)
    if line is None:
        return np.zeros(len(score), bool)
    straight = line[0] + line[1] * score
    low, high = link.range
    # Rounding may carry a line that ends on a bound past it.
    return np.asarray((straight < low - 1e-12) | (straight > high + 1e-12))


def warn_of_clipping(who: str, share: float, link: Link | None) -> None:
    """Tell the user, with the cure, if many training rows are clipped."""
    if share <= CLIPPING_WARNING:
        return
    low, high = (0.0, 1.0) if link is None else link.range
    warn(
        f"{who}: the line is cut off at {low:g} or {high:g} for {share:.0%} of the training rows, whose order among "
        "themselves is lost. AdditiveRiskModel(link='bands') follows the sigmoid in bands and clips none.",
    )


def warn_of_protected(form: RiskForm) -> None:
    """Tell the user that the model reads protected features."""
    read = [name for name in form.schema.protected if name in form.features]
    if read:
        names = ", ".join(map(repr, read))
        warn(
            f"The model reads protected features: {names}. They are never given as reasons, but they move the "
            f"probability. schema.drop({names}) leaves them out.",
        )


def warn_of_unmarked(form: RiskForm) -> None:
    """Tell the user which features look protected, by their names, and may be given as reasons."""
    unmarked = not_marked({name: form.schema.features[name] for name in form.features})
    if unmarked:
        warn(
            f"Features look protected by their names, and the schema does not mark them: {quoted(list(unmarked))}. "
            "They may be given as reasons. State protected = true for those that are.",
        )


def warn_of_better_levels(form: RiskForm) -> None:
    """Tell the user which special levels beat every measured one, where no rule was stated for them."""
    better: dict[str, str] = {}
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            for level in _better_levels(form.schema.features[name], shape, form.schema.worse):
                rows, bad = shape.weights[level], shape.positives[level]
                rate = (bad if form.schema.worse > 0 else rows - bad) / rows
                label = shape.levels.labels[level]
                better.setdefault(f"{name} {label}", f"{name!r} {label} ({rows:,.6g} rows, {rate:.1%} bad)")
    if better:
        shown = list(better.values())
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        warn(
            f"Empty or special fields are better for the applicant than every measured level: {', '.join(shown[:5])}"
            f"{more}. Rules such as missing = 'not_better' or special_rules forbid it; 'free' says that it is meant.",
        )


def _better_levels(feature: Feature, shape: Shape, worse: int) -> Iterator[int]:
    weights, scores = np.asarray(shape.weights), worse * np.asarray(shape.scores)
    measured = measured_levels(feature, shape.levels)
    seen = measured[weights[measured] > 0]
    for level, rule in outside_rules(feature, shape.levels).items():
        if (
            rule == "free"
            and not _is_stated(feature, shape.levels, level)
            and weights[level]
            and len(seen)
            and scores[level] < scores[seen].min()
        ):
            yield level


def _is_stated(feature: Feature, levels: Levels, level: int) -> bool:
    """Whether the schema itself states that a level is free."""
    if level == levels.missing:
        return feature.missing is not None
    label = levels.labels[level]
    if isinstance(levels, Bins) and label.startswith("x < "):
        return feature.below_bound is not None
    return label.removeprefix("= ") in feature.special_rules


def _plain(label: Any) -> str | float | bool:
    value = label.item() if hasattr(label, "item") else label
    return value if isinstance(value, str | int | float | bool) else str(value)


def _describe(value: Any) -> str:
    return " ".join(repr(value).split())
