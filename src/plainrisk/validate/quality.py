"""Data quality compared with a model: one list of problems in some rows, the most severe first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from plainrisk._types import Bools
from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError, did_you_mean
from plainrisk.form import RiskForm, Table
from plainrisk.form.beyond import unusual
from plainrisk.intervals import newcombe, wilson
from plainrisk.schema.check import refuse_forbidden
from plainrisk.tables import TableResult
from plainrisk.text import counted
from plainrisk.validate.scored import form_of

__all__ = ["Issue", "Quality", "quality", "weights_in_training"]

SEVERITIES = ("high", "moderate", "low")
HIGH, MODERATE = 0.05, 0.01  # shares of rows with values unseen in training
REPEATED = 0.05  # share of repeated rows from which on they are more than chance
FEW = 20  # rows, of which all may be alike by chance


@dataclass(frozen=True)
class Issue:
    """One problem.

    Attributes
    ----------
    severity : "high", "moderate" or "low"
    feature : or column; empty where whole rows are affected
    what : "absent", "type", "forbidden", "missing", "unseen", "out of range", "constant", "repeated rows" or "outcome"
    rows, share : the number of rows affected, and their share
    trained : the share in training, where the model knows it, else NaN
    message : the problem in words
    """

    severity: str
    feature: str
    what: str
    rows: int
    share: float
    trained: float
    message: str


@dataclass(frozen=True, repr=False)
class Quality(TableResult):
    """The problems of some rows for a model.

    Attributes
    ----------
    rows, features : how many were checked
    issues : the most severe first
    """

    _lines: ClassVar = ("issues", Issue)
    rows: int
    features: int
    issues: tuple[Issue, ...]

    def _headline(self) -> str:
        counts_by_severity = {s: sum(issue.severity == s for issue in self.issues) for s in SEVERITIES}
        counts = ", ".join(f"{n} {severity}" for severity, n in counts_by_severity.items())
        issues = counted(len(self.issues), "issue")
        return f"{issues} in {counted(self.rows, 'row')} and {counted(self.features, 'feature')}: {counts}"


def quality(model: Any, X: Any, y: Any = None) -> Quality:
    """List problems in rows that a model is to score: columns, types, missing and unseen values, repeated rows.

    `drift` compares the distributions of valid values.

    Parameters
    ----------
    model : a model of ours
    X : raw rows: a column may be absent or of another type
    y : (n,), default=None
        The outcomes; None takes the target column of the model's schema, if the rows have it.

    Returns
    -------
    Quality

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german", backend="polars")
    >>> model = pr.make_classifier("ARM1", german.schema).fit(german.frame, german.target)
    >>> found = pr.quality(model, german.frame.drop("Housing").vstack(german.frame.drop("Housing")))
    >>> [(issue.severity, issue.what) for issue in found.issues]
    [('high', 'absent'), ('moderate', 'repeated rows')]
    """
    form = form_of(model)
    if form is None:
        raise DataError("quality: needs a model of plainrisk (pr.RiskModel(pr.extract_form(model)) makes one).")
    frame = as_frame(X)
    if not frame.n_rows:
        raise DataError("quality: there are no rows.")
    if not frame.named:
        frame = form.align(frame)
    issues_found = [issue for name in form.features for issue in _Column(form, frame, name).issues()]
    issues_found += [*_repeated(frame), *_outcomes(form, frame, y)]
    order = {severity: k for k, severity in enumerate(SEVERITIES)}
    issues = sorted(issues_found, key=lambda issue: (order[issue.severity], -issue.rows))
    return Quality(frame.n_rows, len(form.features), tuple(issues))


class _Column:
    """One feature of a model in some rows."""

    def __init__(self, form: RiskForm, frame: Frame, name: str) -> None:
        self.form, self.frame, self.name, self.n = form, frame, name, frame.n_rows
        self.feature = form.schema.features[name]

    def issues(self) -> Iterator[Issue]:
        """Check presence, type and forbidden fields, and then the values."""
        name, frame = self.name, self.frame
        if name not in frame.columns:
            near = did_you_mean(name, frame.names)
            yield self._issue("high", "absent", self.n, f"The column is not in the data.{near}")
            return
        try:
            rules = {} if self.feature.reading is None else {name: self.feature.reading}
            texts_read = read_texts(frame.select([name]), rules)
            rows = unusual(self.form, texts_read, name)
        except DataError as error:
            yield self._issue("high", "type", self.n, str(error))
            return
        try:
            refuse_forbidden(self.form.schema.part((name,)), texts_read)
        except DataError as error:
            yield self._issue("high", "forbidden", self.n, f"{error} The model refuses such rows.")
        yield from self._missing(rows["missing"])
        for what, where in (("unseen", "a category"), ("out_of_range", "a value beyond all")):
            if what in rows and rows[what].any():
                yield self._outside(what.replace("_", " "), rows[what], where)
        yield from self._constant(texts_read)

    def _issue(self, severity: str, what: str, rows: int, message: str, trained: float = math.nan) -> Issue:
        return Issue(severity, self.name, what, rows, rows / self.n, trained, message)

    def _outside(self, what: str, rows: Bools, where: str) -> Issue:
        share = float(rows.mean())
        severity = "high" if share >= HIGH else "moderate" if share >= MODERATE else "low"
        coded = " Is it coded otherwise?" if rows.all() else ""
        return self._issue(severity, what, int(rows.sum()), f"{share:.1%} have {where} that training saw.{coded}", 0.0)

    def _missing(self, rows: Bools) -> Iterator[Issue]:
        """Compare the missing share with that of training, as far as a table counts it."""
        n, share, limit = int(rows.sum()), float(rows.mean()), self.form.schema.policy.drift.missing
        weights = weights_in_training(self.form, self.name)
        if weights is None:
            if n == self.n:
                yield self._issue("high", "missing", n, "All values are missing.")
            return
        missing, total = weights
        change = newcombe(wilson(n, self.n), wilson(missing, total))
        if abs(change.estimate) < limit or change.low < 0 < change.high:
            return
        severity = (
            "low" if change.estimate < 0 else "high" if rows.all() or change.estimate >= 5 * limit else "moderate"
        )
        message = f"{share:.1%} are missing, {missing / total:.1%} in training."
        yield self._issue(severity, "missing", n, message, missing / total)

    def _constant(self, texts_read: Frame) -> Iterator[Issue]:
        shapes, labels = self.form.shapes_of(self.name), texts_read.labels(self.name)
        varied = any(isinstance(s, Table) and sum(w > 0 for w in s.weights) > 1 for s in shapes)
        if varied and self.n >= FEW and len(labels.labels) == 1 and (labels.codes >= 0).all():
            yield self._issue("moderate", "constant", self.n, "All rows have the same value; in training they varied.")


def weights_in_training(form: RiskForm, name: str) -> tuple[float, float] | None:
    """Return the weight of missing values in training, and of all, where a table counts them."""
    for shape in form.shapes_of(name):
        if isinstance(shape, Table) and sum(shape.weights) > 0:
            return float(shape.weights[shape.levels.missing]), float(sum(shape.weights))
    return None


def _repeated(frame: Frame) -> Iterator[Issue]:
    """Count the rows that are equal to an earlier one in every column."""
    codes = np.column_stack([frame.labels(name).codes for name in frame.names])
    repeated = frame.n_rows - len(np.unique(codes, axis=0))
    if repeated:
        share = repeated / frame.n_rows
        severity = "moderate" if share >= REPEATED else "low"
        message = f"{repeated:,} rows repeat an earlier one in every column."
        yield Issue(severity, "", "repeated rows", repeated, share, math.nan, message)


def _outcomes(form: RiskForm, frame: Frame, y: Any) -> Iterator[Issue]:
    """Yield problems with outcomes: how many are missing, and whether the model knows the others."""
    name = form.schema.target or "y"
    if y is None and name not in frame.columns:
        return
    labels = frame.labels(name) if y is None else as_frame({"y": y}).labels("y")
    missing = int((labels.codes < 0).sum())
    if missing:
        share = missing / frame.n_rows
        yield Issue("low", name, "outcome", missing, share, math.nan, f"{share:.1%} of the outcomes are missing.")
    try:
        type(labels)(labels.codes[labels.codes >= 0], labels.labels).outcomes(form.classes)
    except DataError as error:
        yield Issue("high", name, "outcome", frame.n_rows - missing, 1 - missing / frame.n_rows, math.nan, str(error))
