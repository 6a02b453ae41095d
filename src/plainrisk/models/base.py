"""What all estimators share: reading the training rows, keeping the form, scikit-learn's contract."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from plainrisk.checks import Allowed, allowed_parameters, check_parameters
from plainrisk.data.frame import as_frame
from plainrisk.data.rows import is_stored
from plainrisk.errors import StoppedEarly, warn
from plainrisk.fit.coding import value_ranges
from plainrisk.fit.scored import PartScores, clipped_share, form_scores, trained_risks
from plainrisk.fit.stream import read_stream
from plainrisk.fit.training import TrainingRows, read_training
from plainrisk.form import FitRecord, GroupEvidence, Part, Pool, RiskForm, TreePart
from plainrisk.model import FormMethods
from plainrisk.models.notices import (
    warn_of_better_levels,
    warn_of_clipping,
    warn_of_leaks,
    warn_of_protected,
    warn_of_unmarked,
)
from plainrisk.schema import Schema
from plainrisk.solve import Solution

__all__ = ["CLASSIFIER", "RiskClassifier", "record_of"]

LOG = logging.getLogger("plainrisk")

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
        """Whether the model, and all models inside it, keep the schema's rules for special levels."""
        inner = getattr(self, "estimator", None)
        experts = list(inner.values()) if isinstance(inner, Mapping) else [] if inner is None else [inner]
        return getattr(self, "rules", "schema") == "schema" and all(
            isinstance(expert, RiskClassifier) and expert._keeps_rules for expert in experts
        )

    def _fit_whole(self, training: TrainingRows) -> None:
        """Fit the model, and record the ranges of its features and the distribution of the rows' probabilities."""
        scores = self._fit_rows(training)
        if hasattr(self, "form_"):  # a mixture with an expert of several parts has none
            self.form_ = msgspec.structs.replace(self.form_, ranges=value_ranges(self.form_, training))
            if self.fit_record_ is not None:
                row_scores = form_scores(self.form_, training) if scores is None else scores
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
        """Store the form and the record of the fit, and warn of clipped rows and of solvers that stopped early."""
        self.form_ = RiskForm(
            schema=training.schema,
            columns=training.names,
            classes=(_plain(training.classes[0]), _plain(training.classes[1])),
            parts=tuple(parts),
            pool=pool,
        )
        row_scores = form_scores(self.form_, training) if scores is None else scores
        self.n_iter_ = max((s.iterations for s in solutions), default=0)
        clipped = clipped_share(self.form_, row_scores, training.factors)
        self.fit_record_ = record_of(
            training,
            estimator=type(self).__name__,
            parameters={k: _describe(v) for k, v in self.get_params(deep=False).items() if k != "schema"},
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


def record_of(training: TrainingRows, estimator: str, parameters: dict[str, str], **fit: Any) -> FitRecord:
    """Return the record of a fit to these rows."""
    rows, weight, positive_weight = training.totals
    return FitRecord(
        estimator=estimator,
        parameters=parameters,
        rows=rows,
        weight=weight,
        positive_weight=positive_weight,
        base_rate=training.base_rate,
        **fit,
    )


def _plain(label: Any) -> str | float | bool:
    value = label.item() if hasattr(label, "item") else label
    return value if isinstance(value, str | int | float | bool) else str(value)


def _describe(value: Any) -> str:
    return " ".join(repr(value).split())
