"""What all estimators share: reading the training rows, keeping the form, scikit-learn's contract."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from plainrisk.data.frame import Frame
from plainrisk.data.rows import Batches
from plainrisk.errors import DataError, PlainriskWarning, StoppedEarly
from plainrisk.form import FitRecord, Link, Logistic, Part, Pool, RiskForm, TreePart
from plainrisk.model import FormMethods
from plainrisk.models.scores import WeighedRows
from plainrisk.models.streams import Stream, read_stream
from plainrisk.models.training import Training, read_training
from plainrisk.schema import Schema
from plainrisk.solve import Solution

__all__ = ["RiskClassifier"]

# Above this share of clipped training rows the user is told.
CLIPPING_WARNING = 0.10
# Folds that choose the ridge: of a logistic fit, which visits the rows for each; and of a line, whose folds are tables
# that cost next to nothing.
CV_FOLDS = 5
LINE_CV_FOLDS = 10


class RiskClassifier(FormMethods, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier whose fitted state is a risk form."""

    schema: Schema | None

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # Every fit asks for them several times, and a signature takes a while to read.
        names: list[str] = super()._get_param_names()
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _read(
        self, X: Any, y: Any, sample_weight: Any, class_weight: str | Mapping[Any, float] | None = None
    ) -> Training | Stream:
        training: Training | Stream
        if isinstance(X, Training | Stream):  # a part of a model whose rows were read already
            training = X.under(self.schema)
        elif isinstance(X, Batches):
            training = read_stream(X, y, self.schema, sample_weight, class_weight)
        else:
            training = read_training(X, y, self.schema, sample_weight, class_weight)
        self.classes_ = training.classes
        self.n_features_in_ = len(training.names)
        if isinstance(training, Stream) or _has_names(X.frame if isinstance(X, Training) else X):
            self.feature_names_in_ = np.array(training.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if hasattr(self, "ridge_path_"):  # an earlier fit chose its ridge
            del self.ridge_path_
        return training

    def _keep(
        self,
        training: Training | Stream,
        parts: Sequence[Part | TreePart],
        pool: Pool,
        solutions: Sequence[Solution],
    ) -> None:
        """Store the form and the record of the fit; warn once of what the user should know."""
        self.form_ = RiskForm(
            schema=training.schema,
            columns=training.names,
            classes=(_plain(training.classes[0]), _plain(training.classes[1])),
            parts=tuple(parts),
            pool=pool,
        )
        self.n_iter_ = max((s.iterations for s in solutions), default=0)
        clipped = clipped_share(self.form_, weighed(training, "counting clipped rows"))
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
        )
        warn_of_clipping(type(self).__name__, clipped, self.form_.last_link)
        self._warn_of_stops(solutions)

    def _warn_of_stops(self, solutions: Sequence[Solution]) -> None:
        bad = [s for s in solutions if not s.converged or s.at_box.any()]
        if bad:
            warnings.warn(
                f"{type(self).__name__}: stopped before the optimum ({bad[0].reason}). The model is usable; "
                "ridge='auto' gives a finite optimum.",
                StoppedEarly,
                stacklevel=4,
            )


def clipped_share(form: RiskForm, rows: WeighedRows) -> float:
    """Return the weighted share of the rows whose line is cut off at the last link.

    A mixture has no link of its own; its share is that of the rows where all its experts are cut off at the same end.
    """
    last = list(form.links) if form.last_link is None else [form.last_link]
    if all(isinstance(link, Logistic) for link in last):
        return 0.0  # a sigmoid is never cut off: no need to score the rows
    total = clipped = 0.0
    for frame, weight in rows:
        found = _clipped(form, frame)
        total += len(found) if weight is None else float(weight.sum())
        clipped += float(np.count_nonzero(found) if weight is None else weight[found].sum())
    return clipped / total


def weighed(training: Training | Stream, task: str) -> WeighedRows:
    """Return the rows and their weights, batch by batch."""
    return ((batch.frame, batch.weight) for batch in training.batches(task=task))


def _clipped(form: RiskForm, frame: Frame) -> npt.NDArray[np.bool_]:
    link = form.last_link
    if link is None:
        risk = form.risk(frame)
        return np.asarray((risk <= 0.0) | (risk >= 1.0))
    score = form.score(frame)
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
    warnings.warn(
        f"{who}: the line is cut off at {low:g} or {high:g} for {share:.0%} of the training rows, whose order among "
        "themselves is lost. Linearised(AdditiveRiskModel(...), pieces=3) follows the sigmoid in bands and clips none.",
        PlainriskWarning,
        stacklevel=4,
    )


def resolve_ridge(ridge: float | str, total: float) -> float:
    """Return the ridge as a number: "auto" is 1/(2M), M the total weight."""
    if ridge == "auto":
        return 1.0 / (2.0 * total)
    number: Any = ridge
    if not isinstance(number, Real) or not 0 <= float(number) < np.inf:
        raise DataError(f"ridge must be 'auto', 'cv' or a finite number not below 0, not {ridge!r}.")
    return float(ridge)


def _has_names(X: Any) -> bool:
    """scikit-learn keeps feature names only of data frames whose names are all text."""
    if isinstance(X, Frame):
        return X.named
    columns = getattr(X, "columns", getattr(X, "column_names", None))
    return columns is not None and all(isinstance(c, str) for c in columns)


def _plain(label: Any) -> str | float | bool:
    value = label.item() if hasattr(label, "item") else label
    return value if isinstance(value, str | int | float | bool) else str(value)


def _describe(value: Any) -> str:
    return " ".join(repr(value).split())
