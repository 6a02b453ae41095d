"""Challengers: what a practitioner would try instead, with default settings, on the same folds as our models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from plainrisk._types import Array, Floats
from plainrisk.checks import FUNCTION, NOTHING, check_parameters, mapping
from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError
from plainrisk.fit.splits import Split, splits_of
from plainrisk.fit.training import Training, read_training
from plainrisk.form import TreeInput
from plainrisk.intervals import UNKNOWN, Range
from plainrisk.measure.evaluation import evaluate_risk
from plainrisk.models.base import CLASSIFIER
from plainrisk.models.boosted import read_inputs
from plainrisk.schema import Schema
from plainrisk.schema.outcomes import position_of
from plainrisk.tables import TableResult, text_table
from plainrisk.text import one_line
from plainrisk.validate.crossval import CrossValidation, cross_validate, require_weights

__all__ = [
    "FIGURES",
    "GROUPED",
    "RIVALS",
    "Challengers",
    "Line",
    "Progress",
    "Rival",
    "RivalModel",
    "Step",
    "Validate",
    "attempt",
    "challenge",
    "challengers",
    "clear_sign",
    "compare_with",
    "not_fitted",
    "same_folds",
    "with_ends",
]

# The measures that models are compared in, and whether more is better.
FIGURES = {"auc": True, "log_loss": False, "brier": False}
FIGURE_NAMES = {"auc": "AUC", "log_loss": "log loss", "brier": "Brier score"}
GROUPED = "The intervals take rows as independent; where rows of one group are alike, they are too short."

Step = Callable[[int, int], None]  # called with the number of folds done and of all folds
Validate = Callable[[Any, Step], CrossValidation]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Line:
    """One model of a comparison.

    Attributes
    ----------
    name, settings : its name, and a description, which is empty for ours
    figures : AUC, log loss and Brier score on all held-out rows together
    differences : each figure less that of the first model, with a paired interval; empty for the first
    seconds : the time of a fit, averaged over the folds
    note : the reason if there are no figures: "not fitted: ...", "not installed: ..."; else empty
    """

    name: str
    settings: str
    figures: Mapping[str, float]
    differences: Mapping[str, Range]
    seconds: float
    note: str = ""

    def better(self, figure: str) -> int:
        """Return 1 if the figure is better than that of the first model beyond chance, -1 if it is worse, else 0."""
        return (1 if FIGURES[figure] else -1) * clear_sign(self.differences.get(figure, UNKNOWN))

    def comparison(self, figure: str) -> str:
        """Return the difference from the first model in words.

        >>> Line("EBM", "", {}, {"auc": Range(0.012, 0.006, 0.018)}, 1.0).comparison("auc")
        'its AUC is higher by 0.012 (0.006 to 0.018)'
        """
        gap = self.differences[figure]
        if math.isinf(gap.estimate):
            return f"its {FIGURE_NAMES[figure]} is {'infinite' if gap.estimate > 0 else 'finite'}"
        low, high = sorted((abs(gap.low), abs(gap.high)))
        way = "higher" if gap.estimate > 0 else "lower"
        ends = f"({_rounded(low)} to {_rounded(high)})"
        return f"its {FIGURE_NAMES[figure]} is {way} by {_rounded(abs(gap.estimate))} {ends}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


def clear_sign(gap: Range) -> int:
    """Return the sign of a difference whose interval excludes 0, else 0."""
    low, high = (gap.estimate, gap.estimate) if math.isinf(gap.estimate) else (gap.low, gap.high)
    return int(low > 0) - int(high < 0)


def with_ends(gap: Range) -> str:
    """Write a difference with its interval.

    >>> with_ends(Range(0.0123, 0.0061, 0.0185)), with_ends(UNKNOWN)
    ('+0.0123 (+0.0061, +0.0185)', '')
    """
    if math.isnan(gap.estimate):
        return ""
    if gap.low == gap.high == 0:
        return "0"  # all risks are the same
    ends = "" if math.isnan(gap.low) else f" ({gap.low:+.4f}, {gap.high:+.4f})"
    return f"{gap.estimate:+.4f}{ends}"


def _rounded(value: float) -> str:
    """Write a difference with three decimals, or more where it is small.

    >>> _rounded(0.0123), _rounded(0.00034)
    ('0.012', '0.0003')
    """
    return f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.1g}" if value < 1e-4 else f"{value:.4f}"


@dataclass(frozen=True, eq=False, repr=False)
class Challengers(TableResult):
    """Models on the same folds, one line each; all others are compared with the first.

    Attributes
    ----------
    ours : Line of every model that was given
    rivals : Line of every challenger
    rows, folds : how many held-out rows and folds there are
    grouped : whether rows of a group were kept together; the intervals treat rows as independent
    """

    ours: tuple[Line, ...]
    rivals: tuple[Line, ...]
    rows: int
    folds: int
    grouped: bool = False

    def __iter__(self) -> Iterator[Line]:
        return iter((*self.ours, *self.rivals))

    def __getitem__(self, name: str) -> Line:
        return next(line for line in self if line.name == name)

    def __repr__(self) -> str:
        shown: dict[str, list[str]] = {"model": [line.name for line in self if not line.note]}
        for name, word in FIGURE_NAMES.items():
            shown[word] = [f"{line.figures[name]:.4f}" for line in self if not line.note]
            gaps = [line.differences.get(name, UNKNOWN) for line in self if not line.note]
            shown[f"{word} less ours"] = list(map(with_ends, gaps))
        remarks = [f"{line.name}: {line.note}" for line in self if line.note]
        return "\n".join([text_table(self._headline(), shown, width=150), *remarks, *self.notes, self.verdict])

    def _headline(self) -> str:
        return f"Challengers: {self.rows:,} held-out rows, {self.folds} folds, paired intervals of 95%"

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        columns: dict[str, Any] = {"model": [line.name for line in self]}
        for name in FIGURES:
            columns[name] = [line.figures.get(name, np.nan) for line in self]
            for column, end in (("difference", "estimate"), ("low", "low"), ("high", "high")):
                gaps = (line.differences.get(name, UNKNOWN) for line in self)
                columns[f"{name}_{column}"] = [getattr(gap, end) for gap in gaps]
        return {**columns, "seconds": [line.seconds for line in self], "note": [line.note for line in self]}

    @property
    def notes(self) -> tuple[str, ...]:
        """Cautions about the intervals."""
        return (GROUPED,) if self.grouped else ()

    @property
    def verdict(self) -> str:
        """One sentence on the model that is ahead: beyond chance in AUC, or else in log loss."""
        first, compared = self.ours[0], [line for line in self.rivals if not line.note]
        if first.note:
            return f"{first.name} has no figures to compare with, {first.note}"
        if not compared:
            return "No challenger could be compared."
        ahead = [line for line in compared if line.better("auc") > 0]
        ahead.sort(key=lambda line: -line.differences["auc"].estimate)
        by_loss = [line for line in compared if line.better("auc") == 0 and line.better("log_loss") > 0]
        if ahead or by_loss:
            leads = [f"{line.name} is ahead: {line.comparison('auc')}{_but(line)}" for line in ahead]
            leads += [f"{line.name} is ahead: {line.comparison('log_loss')}" for line in by_loss]
            return "; ".join(leads) + "."
        if all(line.better("auc") < 0 for line in compared):
            nearest = max(compared, key=lambda line: line.figures["auc"])
            return f"{first.name} is ahead: the nearest challenger is {nearest.name}, and {nearest.comparison('auc')}."
        return "No challenger is ahead beyond chance."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {**super().to_dict(), "notes": list(self.notes), "verdict": self.verdict}


def _but(line: Line) -> str:
    return f", but {line.comparison('log_loss')}" if line.better("log_loss") < 0 else ""


# ---- the challengers


@dataclass(frozen=True)
class Rival:
    """A challenger: its description, how to install it, and the estimator for a schema (ImportError if missing)."""

    settings: str
    install: str
    build: Callable[[Schema], Any]


class RivalModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any classifier on the columns that a schema names, encoded as a practitioner would.

    Numbers do not change, special values included, with NaN for missing. Categories become one indicator per label in
    the training rows or, with `one_hot=False`, the label itself. Outcomes become 0 and 1, where 1 is the positive one.

    Parameters
    ----------
    estimator : classifier
        A pipeline gets the weights at its last step.
    schema : Schema
    one_hot : bool, default=True
    """

    def __init__(self, estimator: Any, schema: Schema, one_hot: bool = True) -> None:
        self.estimator = estimator
        self.schema = schema
        self.one_hot = one_hot

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RivalModel:
        """Fit to rows and outcomes."""
        frame = read_texts(as_frame(X), self.schema.readings)
        self.inputs_ = _indicators(frame, self.schema) if self.one_hot else ()
        classes = np.unique(y)
        self.classes_ = classes if position_of(classes, self.schema) else classes[::-1]
        self.positive_ = self.classes_[1]
        codes = (np.asarray(y) == self.classes_[1]).astype(np.int64)
        weights = {} if sample_weight is None else {_weight_name(self.estimator): sample_weight}
        self.estimator_ = clone(self.estimator).fit(self._matrix(frame), codes, **weights)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both outcomes."""
        matrix = self._matrix(read_texts(as_frame(X), self.schema.readings))
        return np.asarray(self.estimator_.predict_proba(matrix), dtype=np.float64)

    def _matrix(self, frame: Frame) -> Array:
        return read_inputs(self.inputs_, frame) if self.one_hot else _cells(frame, self.schema)


def _weight_name(estimator: Any) -> str:
    steps = getattr(estimator, "steps", None)
    return "sample_weight" if steps is None else f"{steps[-1][0]}__sample_weight"


def _indicators(frame: Frame, schema: Schema) -> tuple[TreeInput, ...]:
    """Return one input per number, and one per observed category."""
    inputs: list[TreeInput] = []
    for name, feature in schema.features.items():
        if feature.kind == "continuous":
            inputs.append(TreeInput(feature=name))
        else:
            column = frame.labels(name)
            seen = sorted({column.labels[code] for code in np.unique(column.codes) if code >= 0})
            inputs.extend(TreeInput(feature=name, category=label) for label in seen)
    return tuple(inputs)


def _cells(frame: Frame, schema: Schema) -> Array:
    """Return numbers and labels as one matrix: NaN for a missing number, None for a missing label."""
    cells = np.empty((frame.n_rows, len(schema.features)), dtype=object)
    for j, (name, feature) in enumerate(schema.features.items()):
        if feature.kind == "continuous":
            cells[:, j] = frame.numbers(name)
        else:
            column = frame.labels(name)
            cells[:, j] = np.array([*column.labels, None], dtype=object)[column.codes]
    return cells


def _xgboost(schema: Schema) -> RivalModel:
    from xgboost import XGBClassifier

    return RivalModel(XGBClassifier(), schema)


def _ebm(schema: Schema) -> RivalModel:
    from interpret.glassbox import ExplainableBoostingClassifier

    kinds = ["continuous" if f.kind == "continuous" else "nominal" for f in schema.features.values()]
    model = ExplainableBoostingClassifier(feature_names=list(schema.features), feature_types=kinds)
    return RivalModel(model, schema, one_hot=False)


def _logistic(schema: Schema) -> RivalModel:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    return RivalModel(make_pipeline(imputer, StandardScaler(), LogisticRegression(max_iter=1000)), schema)


RIVALS: Mapping[str, Rival] = {
    "xgboost": Rival("XGBClassifier as it comes, one-hot categories", "pip install 'plainrisk[boost]'", _xgboost),
    "EBM": Rival("ExplainableBoostingClassifier as it comes", "pip install interpret-core", _ebm),
    "logistic regression": Rival(
        "scikit-learn's, on standardized and one-hot columns, missing numbers as the median",
        "pip install scikit-learn",
        _logistic,
    ),
}


# ---- the comparison


def challengers(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = 10,
    seed: int = 0,
    sample_weight: Any = None,
    groups: Any = None,
    time: Any = None,
    progress: Progress | None = None,
) -> Challengers:
    """Compare a model with common alternatives on the same folds: xgboost, EBM and logistic regression.

    xgboost and EBM have their default settings, and neither has directions, subscales or rules. All prepare their
    columns without the held-out fold. A challenger that is not installed, or that cannot be fitted, is listed with the
    reason, and the comparison continues.

    Parameters
    ----------
    model : classifier, or dict of name: classifier
        All others are compared with the first.
    X, y : as in `fit`
    cv, seed, sample_weight, groups, time : as in `cross_validate`
        The seed is also that of the bootstrap.
    progress : callable, optional
        Called with the model's name, the number of its folds done and the number of folds.

    Returns
    -------
    Challengers
        Its lines have AUC, log loss and Brier score on all held-out rows together, and the difference of each from the
        first model's: DeLong's interval for the AUC, a paired bootstrap of the rows for the others. `verdict` names the
        model that is ahead.

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.make_classifier("SmoothARM1", german.schema)
    >>> pr.challengers(model, german.frame, german.target).verdict  # doctest: +SKIP
    'No challenger is ahead beyond chance.'
    """
    allowed = {"model": CLASSIFIER | mapping("a dict of them by name", CLASSIFIER), "progress": NOTHING | FUNCTION}
    check_parameters("challengers", {"model": model, "progress": progress}, allowed)
    models = dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
    if not models:
        raise DataError("challengers: model has no classifier in it. Give one, or a dict of them by name.")
    schema, tell = getattr(next(iter(models.values())), "schema", None), progress or (lambda *_: None)
    training, _, validate = same_folds("challengers", schema, X, y, cv, seed, sample_weight, groups, time)
    ours = {name: attempt(partial(clone, one), validate, partial(tell, name)) for name, one in models.items()}
    return challenge(ours, training.schema, validate, seed=seed, grouped=groups is not None, progress=tell)


def same_folds(
    who: str, schema: Schema | None, X: Any, y: Any, cv: Any, seed: int, sample_weight: Any, groups: Any, time: Any
) -> tuple[Training, list[Split], Validate]:
    """Read rows and deal them into folds; return both, and a function that cross validates a model on them."""
    require_weights(who, sample_weight)
    training = read_training(X, y, schema, sample_weight, None)
    splits = splits_of(training.target, cv, seed, groups, time)

    def validate(model: Any, step: Step) -> CrossValidation:
        is_rival = isinstance(model, RivalModel)  # it finds the columns by their names in the schema
        rows, outcomes = (training.frame, training.classes[training.target]) if is_rival else (X, y)
        return cross_validate(model, rows, outcomes, cv=splits, sample_weight=sample_weight, progress=step)

    return training, splits, validate


def challenge(
    ours: Mapping[str, CrossValidation | str],
    schema: Schema,
    validate: Validate,
    *,
    seed: int = 0,
    grouped: bool = False,
    progress: Progress = lambda *_: None,
) -> Challengers:
    """Compare models that are already cross validated, or the reasons why they are not, with the challengers.

    `validate` cross validates a challenger on the same rows and folds.
    """
    rivals: dict[str, CrossValidation | str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other packages' warnings about their settings
        for name, rival in RIVALS.items():
            rivals[name] = attempt(partial(rival.build, schema), validate, partial(progress, name), rival.install)
    first = next(iter(ours.values()))
    validated = next((one for one in (*ours.values(), *rivals.values()) if isinstance(one, CrossValidation)), None)
    compare = partial(compare_with, first=None if isinstance(first, str) else first, seed=seed)
    return Challengers(
        tuple(compare(name, "", validation) for name, validation in ours.items()),
        tuple(compare(name, RIVALS[name].settings, validation) for name, validation in rivals.items()),
        rows=0 if validated is None else int((~np.isnan(validated.risk)).sum()),
        folds=0 if validated is None else len(validated.folds),
        grouped=grouped,
    )


def attempt(build: Callable[[], Any], validate: Validate, step: Step, install: str = "") -> CrossValidation | str:
    """Cross validate a model, or return the reason that it is not possible."""
    try:
        model = build()
    except ImportError:
        return f"not installed: {install}"
    except Exception as error:
        return not_fitted(error)
    try:
        validation = validate(model, step)
    except Exception as error:
        return not_fitted(error)
    finite = all(np.isfinite(fold.risk).all() for fold in validation.folds)
    return validation if finite else "not compared: some of its risks are not numbers"


def not_fitted(error: Exception) -> str:
    """Return the reason that a model was not fitted in one short line.

    >>> not_fitted(ValueError("no such\\nthing")), not_fitted(KeyError())
    ('not fitted: no such thing', 'not fitted: KeyError')
    """
    text = one_line(" ".join(str(error).split())) or type(error).__name__
    return f"not fitted: {text}" if len(text) <= 240 else f"not fitted: {text[:239]}…"


def compare_with(
    name: str, settings: str, validation: CrossValidation | str, *, first: CrossValidation | None, seed: int
) -> Line:
    """Return the figures of a model, and their differences from those of the first on the same held-out rows."""
    if first is not None and not isinstance(validation, str) and not np.array_equal(validation.target, first.target):
        validation = "not compared: its positive outcome is the other one. Give it a schema"
    if isinstance(validation, str):
        return Line(name, settings, {}, {}, np.nan, note=validation)
    differences: Mapping[str, Range] = {}
    if first is not None and validation is not first:
        rows = np.flatnonzero(~np.isnan(validation.risk))
        weight: Floats | None = None if validation.weight is None else validation.weight[rows]
        target, risk, other = validation.target[rows], validation.risk[rows], first.risk[rows]
        differences = evaluate_risk(target, risk, against=other, sample_weight=weight, seed=seed).differences
    seconds = float(np.mean([fold.seconds for fold in validation.folds]))
    figures = {figure: validation.pooled[figure] for figure in FIGURES}
    return Line(name, settings, figures, {figure: differences[figure] for figure in FIGURES if differences}, seconds)
