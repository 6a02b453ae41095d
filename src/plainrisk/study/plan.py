"""What a study is: data sets, classifiers, folds and conventions, as frozen data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from plainrisk import datasets
from plainrisk.errors import DataError, did_you_mean
from plainrisk.models.classifiers import CLASSIFIERS, PAPER, PAPER_CLIP
from plainrisk.study.measure import METRICS
from plainrisk.study.rivals import RIVALS

__all__ = ["CONVENTIONS", "ClassifierSpec", "DataSpec", "Plan"]

Conventions = Literal["paper", "balanced", "product"]

# What each convention sets, where a classifier of ours has that option.
CONVENTIONS: Mapping[str, Mapping[str, Any]] = {
    "paper": {**PAPER, "clip": PAPER_CLIP},
    "balanced": {**PAPER, "clip": PAPER_CLIP, "ridge": "auto"},
    "product": {},
}


class DataSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A data set: one of `plainrisk.datasets` by name, or a file with its schema.

    Parameters
    ----------
    name : str
    file : str, optional
        A .csv, .csv.gz or .parquet file with a column for the outcome.
    schema : str, optional
        The schema file that goes with it; it names the target.
    """

    name: str
    file: str | None = None
    schema: str | None = None


class ClassifierSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A classifier of a study.

    Parameters
    ----------
    name : str
        Its name in the tables.
    make : str, optional
        What is made: one of `plainrisk.CLASSIFIERS`, one of the rivals, or "package.module:factory", which is called
        with the schema and the options and returns anything with fit and predict_proba. By default the name.
    options : dict
    """

    name: str
    make: str | None = None
    options: dict[str, Any] = {}

    @property
    def kind(self) -> str:
        """What is made."""
        return self.make or self.name

    def key(self, conventions: str) -> str:
        """Return what makes its results what they are, as text: equal keys, equal results."""
        return msgspec.json.encode({"make": self.kind, "options": self.settings(conventions)}, order="sorted").decode()

    def settings(self, conventions: str) -> dict[str, Any]:
        """Return the options, with what the conventions set for a classifier of ours."""
        if self.kind not in CLASSIFIERS:
            return self.options
        known = (*CLASSIFIERS[self.kind].inner, *CLASSIFIERS[self.kind].outer)
        return {**{k: v for k, v in CONVENTIONS[conventions].items() if k in known}, **self.options}


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study: every classifier on every fold of every data set.

    Parameters
    ----------
    name : str
    datasets : tuple of DataSpec, or of names
    classifiers : tuple of ClassifierSpec, or of names
    conventions : {"product", "paper", "balanced"}, default="product"
        How classifiers of ours are set: "product" as they come; "paper" without a ridge, with both classes weighing the
        same and Hedge's loss clipped at 1e-15 only; "balanced" as "paper" with the default ridge. Other classifiers
        are as their options say.
    folds : int, default=10
    seed : int, default=0
        Shuffles the rows before they are dealt, stratified, to the folds.
    metrics : tuple of str, default: all

    Examples
    --------
    >>> plan = Plan(name="small", datasets=("german",), classifiers=("ARM1", "DirectARM1"), folds=5)
    >>> plan.classifiers[1].kind, plan.n_cells
    ('DirectARM1', 10)
    """

    name: str
    datasets: tuple[str | DataSpec, ...]
    classifiers: tuple[str | ClassifierSpec, ...]
    conventions: Conventions = "product"
    folds: int = 10
    seed: int = 0
    metrics: tuple[str, ...] = tuple(METRICS)

    def __post_init__(self) -> None:
        force = msgspec.structs.force_setattr
        force(self, "datasets", tuple(DataSpec(name=d) if isinstance(d, str) else d for d in self.datasets))
        force(self, "classifiers", tuple(ClassifierSpec(name=c) if isinstance(c, str) else c for c in self.classifiers))
        problem = next(_problems(self), None)
        if problem:
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
    def n_cells(self) -> int:
        """How many fits there are: data sets x classifiers x folds."""
        return len(self.datasets) * len(self.classifiers) * self.folds

    def to_json(self) -> str:
        """Return the plan as JSON; `from_json` gives it back."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan written by `to_json`."""
        return msgspec.json.decode(text, type=cls)


def _problems(plan: Plan) -> Iterator[str]:
    for what, names in (("data set", [d.name for d in plan.data]), ("classifier", [c.name for c in plan.lineup])):
        if not names:
            yield f"it has no {what}s."
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            yield f"{what} {twice[0]!r} appears {names.count(twice[0])} times. Give each its own name."
    for data in plan.data:
        if (data.file is None) != (data.schema is None):
            yield f"data set {data.name!r} needs both a file and a schema."
        if data.file is None and data.name not in datasets.names():
            yield f"there is no data set {data.name!r}.{did_you_mean(data.name, datasets.names())}"
    for spec in plan.lineup:
        if ":" not in spec.kind and spec.kind not in CLASSIFIERS and spec.kind not in RIVALS:
            yield f"there is no classifier {spec.kind!r}.{did_you_mean(spec.kind, (*CLASSIFIERS, *RIVALS))}"
    for metric in plan.metrics:
        if metric not in METRICS:
            yield f"there is no metric {metric!r}.{did_you_mean(metric, METRICS)}"
    if not 2 <= plan.folds <= 255:
        yield f"folds must be from 2 to 255, not {plan.folds}."
    if plan.seed < 0:
        yield f"seed must not be negative: {plan.seed}."
