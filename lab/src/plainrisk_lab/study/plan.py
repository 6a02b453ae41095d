"""What a study is: data sets, classifiers, folds and metrics, as frozen data read from a TOML file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from plainrisk import datasets
from plainrisk._types import Array, Floats
from plainrisk.errors import DataError, did_you_mean
from plainrisk.files import parse_json, parse_toml, read_text
from plainrisk.measure import metrics
from plainrisk.models.registry import CLASSIFIERS

__all__ = ["METRICS", "ClassifierSpec", "DataSpec", "Metric", "Plan", "as_printed", "load_plan"]


@dataclass(frozen=True)
class Metric:
    """A metric by name.

    Attributes
    ----------
    name, title : in files, and in headings
    higher_is_better : which way ranks run
    of : from outcomes (0/1) and risks of one fold to the figure
    """

    name: str
    title: str
    higher_is_better: bool
    of: Callable[[Array, Floats], float]


def _log_loss(outcome: Array, risk: Floats) -> float:
    # Finite where a certain prediction is wrong, so that folds can be averaged.
    return metrics.log_loss(outcome, risk, clip=1e-15)


def as_printed(outcome: Array, risk: Floats) -> metrics.Reliability:
    """Bin as the published calibration tables seem to have been made.

    Both columns of predict_proba, read row by row, stand against the outcomes written twice in a row, so that a
    prediction meets the outcome of another row. This does not measure calibration: it is here to show where the
    published figures come from.
    """
    both = np.column_stack([1.0 - risk, risk]).ravel()
    return metrics.reliability(np.tile(outcome, 2), both)


_TABLE = (
    Metric("auc", "AUC", True, metrics.roc_auc),
    Metric("ece", "ECE", False, metrics.expected_calibration_error),
    Metric("mce", "MCE", False, metrics.maximum_calibration_error),
    Metric("brier", "Brier score", False, metrics.brier_score),
    Metric("log_loss", "log loss", False, _log_loss),
    Metric("certainty", "certainty", False, metrics.certainty),
    Metric("ks", "KS", True, metrics.ks_statistic),
)
# What only the reproduction of the paper asks for.
_PAPER = (
    Metric("ece_as_printed", "ECE as printed", False, lambda y, p: as_printed(y, p).expected_error / 2.0),
    Metric("mce_as_printed", "MCE as printed", False, lambda y, p: as_printed(y, p).maximum_error),
)

#: The metrics by name. A metric of one's own is added to it before the plan is made.
METRICS: dict[str, Metric] = {m.name: m for m in (*_TABLE, *_PAPER)}


class DataSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A data set: one of `plainrisk.datasets` by name, or a file with its schema.

    Parameters
    ----------
    name : in the tables
    file : a .csv, .csv.gz or .parquet file with a column for the outcome
    schema : the schema file that goes with it; it names the target
    """

    name: str
    file: str | None = None
    schema: str | None = None


class ClassifierSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A classifier of a study.

    Parameters
    ----------
    name : in the tables
    make : what is made: one of `plainrisk.CLASSIFIERS`, or "package.module:name" of a scikit-learn classifier or of a
        function that takes the schema and the options and returns one; by default the name
    options : of what is made
    """

    name: str
    make: str | None = None
    options: dict[str, Any] = {}

    @property
    def kind(self) -> str:
        """What is made."""
        return self.make or self.name

    @property
    def key(self) -> str:
        """What is made, with its options, as text: equal keys, equal results."""
        return msgspec.json.encode({"make": self.kind, "options": self.options}, order="sorted").decode()


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study: every classifier on every fold of every data set.

    Parameters
    ----------
    name : str
    datasets : tuple of DataSpec, or of names
    classifiers : tuple of ClassifierSpec, or of names
    cv : int, default=10
        The number of stratified folds.
    seed : int, default=0
        Shuffles the rows before they are divided into folds.
    metrics : tuple of str, default: all of `METRICS`

    Examples
    --------
    >>> plan = Plan(name="small", datasets=("german",), classifiers=("ARM1", "DirectARM1"), cv=5)
    >>> plan.classifiers[1].kind, plan.n_fits
    ('DirectARM1', 10)
    """

    name: str
    datasets: tuple[str | DataSpec, ...]
    classifiers: tuple[str | ClassifierSpec, ...]
    cv: int = 10
    seed: int = 0
    metrics: tuple[str, ...] = tuple(m.name for m in _TABLE)

    def __post_init__(self) -> None:
        force = msgspec.structs.force_setattr
        force(self, "datasets", tuple(DataSpec(name=d) if isinstance(d, str) else d for d in self.datasets))
        force(self, "classifiers", tuple(ClassifierSpec(name=c) if isinstance(c, str) else c for c in self.classifiers))
        for problems in (_name_problems, _data_problems, _classifier_problems, _number_problems):
            for problem in problems(self):
                raise DataError(f"Study {self.name!r}: {problem}")

    @property
    def data(self) -> tuple[DataSpec, ...]:
        """The data sets."""
        return self.datasets  # type: ignore[return-value]

    @property
    def lineup(self) -> tuple[ClassifierSpec, ...]:
        """The classifiers."""
        return self.classifiers  # type: ignore[return-value]

    @property
    def n_fits(self) -> int:
        """The number of fits: data sets x classifiers x folds."""
        return len(self.datasets) * len(self.classifiers) * self.cv

    def to_json(self) -> str:
        """Return the plan as JSON; `from_json` reads it back."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan written by `to_json`."""
        return parse_json(text, cls, "the plan", DataError, "a study plan")


def load_plan(path: str | Path) -> Plan:
    """Read a plan from a TOML file; the files it names are found relative to its folder.

    A study of one's own data and classifiers::

        name = "ours"
        datasets = ["german", {name = "book", file = "loans.parquet", schema = "loans.toml"}]
        classifiers = [
            "ARM1",
            {name = "LightGBM", make = "lightgbm:LGBMClassifier", options = {n_jobs = 1, verbose = -1}},
            {name = "ours", make = "ourpackage.models:make", options = {depth = 3}},
        ]
        cv = 10
    """
    if not str(path).endswith(".toml"):
        raise DataError(f"{path}: a study is a .toml file with name, datasets and classifiers.")
    text = read_text(path, limit=2**20, error=DataError)
    path = Path(path)
    try:
        plan = msgspec.convert(parse_toml(text, path, DataError), Plan)
    except msgspec.ValidationError as error:
        # What __post_init__ raises arrives wrapped.
        message = str(error.__cause__) if isinstance(error.__cause__, DataError) else f"Study: {error}."
        raise DataError(f"{path}: {message}") from None
    beside = {"datasets": tuple(_beside(data, path.parent) for data in plan.data)}
    return msgspec.structs.replace(plan, **beside)


def _beside(data: DataSpec, folder: Path) -> DataSpec:
    if data.file is None or data.schema is None:
        return data
    file, schema = (str((folder / name).resolve()) for name in (data.file, data.schema))
    return msgspec.structs.replace(data, file=file, schema=schema)


def _name_problems(plan: Plan) -> Iterator[str]:
    if not plan.name:
        yield "it has no name."
    for what, names in (("data set", [d.name for d in plan.data]), ("classifier", [c.name for c in plan.lineup])):
        if not names:
            yield f"it has no {what}s."
        for name in names:
            if names.count(name) > 1:
                yield f"{what} {name!r} appears {names.count(name)} times. Give each its own name."


def _data_problems(plan: Plan) -> Iterator[str]:
    for data in plan.data:
        if (data.file is None) != (data.schema is None):
            yield f"data set {data.name!r} needs both a file and a schema."
        if data.file is None and data.name not in datasets.names():
            yield f"there is no data set {data.name!r}.{did_you_mean(data.name, datasets.names())}"


def _classifier_problems(plan: Plan) -> Iterator[str]:
    for spec in plan.lineup:
        if ":" not in spec.kind and spec.kind not in CLASSIFIERS:
            hint = did_you_mean(spec.kind, CLASSIFIERS)
            yield f"there is no classifier {spec.kind!r}.{hint} Others are named by make = 'package.module:name'."
        if not _is_plain(spec.options):
            yield f"classifier {spec.name!r}: its options must be texts, numbers, lists and tables."


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold a value unchanged: a date would become text, NaN null."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return value is None or isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _number_problems(plan: Plan) -> Iterator[str]:
    for metric in plan.metrics:
        if plan.metrics.count(metric) > 1:
            yield f"metric {metric!r} appears {plan.metrics.count(metric)} times."
        if metric not in METRICS:
            yield f"there is no metric {metric!r}.{did_you_mean(metric, METRICS)}"
    if not plan.metrics:
        yield f"it has no metrics. Known: {', '.join(METRICS)}."
    if not 2 <= plan.cv <= 255:  # the number of the fold of every row is kept in one byte
        yield f"cv must be from 2 to 255, not {plan.cv}."
    if not 0 <= plan.seed < 2**32:  # as numpy has it
        yield f"seed must be from 0 to {2**32 - 1}, not {plan.seed}."
