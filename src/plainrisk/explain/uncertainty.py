"""How steady a model is: intervals from refits of it, reasons under refits, and weights through time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.checks import LEVEL, SEED, check_parameters, whole
from plainrisk.data.frame import Origin
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.contributions import explain
from plainrisk.explain.explanation import TableResult
from plainrisk.explain.overview import level_effects, level_scores
from plainrisk.explain.reasons import Reasons, reasons
from plainrisk.explain.reference import Reference, make_reference, pool_weights
from plainrisk.form import Part, RiskForm, Table
from plainrisk.text import visible

__all__ = [
    "Interval",
    "Refits",
    "StabilityReport",
    "WeightDrift",
    "compare_reasons",
    "drawn",
    "reason_stability",
    "weight_drift",
]


@dataclass(frozen=True, repr=False)
class Interval(TableResult):
    """What the model says, and between which values the refits say it; arrays of one shape.

    Attributes
    ----------
    estimate, low, high : the three arrays
    origin : where the rows came from, for arrays with an entry per row, or several
    """

    estimate: Floats
    low: Floats
    high: Floats
    origin: Origin | None = field(default=None, compare=False, kw_only=True)

    def _headline(self) -> str:
        return f"Interval of shape {np.shape(self.estimate)}"

    def columns(self) -> dict[str, Any]:
        """Return the three arrays, each as one column."""
        return {name: np.ravel(array) for name, array in self._arrays().items()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {name: np.asarray(array).tolist() for name, array in self._arrays().items()}

    def _arrays(self) -> dict[str, Floats]:
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Refits:
    """A model, and the same model fitted again to resampled rows.

    Attributes
    ----------
    form : the model
    forms : the refits, with the same levels and links

    All intervals are percentile intervals: the middle `level` of what the refits say.
    """

    form: RiskForm
    forms: tuple[RiskForm, ...]

    def __len__(self) -> int:
        return len(self.forms)

    def __repr__(self) -> str:
        parts = visible(", ".join(part.name for part in self.form.parts))
        return f"Refits({len(self)} refits of a model of {len(self.form.schema.features)} features, parts: {parts})"

    def shape(self, feature: str, part: str | None = None, level: float = 0.9) -> Interval:
        """Return intervals for the scores of a feature's or pair's levels, in `part` or the first part that has it."""
        owner = _owner(self.form, feature, part)
        return self._interval(lambda form: level_scores(_owner(form, feature, owner.name), feature), level)

    def effects(self, feature: str, part: str | None = None, level: float = 0.9) -> Interval:
        """Return intervals for what the levels of a feature or pair do to the typical applicant, as in `overview`."""
        k = self.form.parts.index(_owner(self.form, feature, part))
        typical = self._typical
        return self._interval(lambda form: level_effects(form, typical[id(form)], k, feature), level)

    @functools.cached_property
    def _typical(self) -> dict[int, Reference]:
        """The typical applicant as each form sees it."""
        return {id(form): make_reference(form, "typical") for form in (self.form, *self.forms)}

    def weights(self, level: float = 0.9) -> dict[str, Interval]:
        """Return intervals for the weights of the subscales."""
        found = self._interval(lambda form: np.array(pool_weights(form)), level)
        return {
            part.name: Interval(*(np.asarray(v[k]) for v in (found.estimate, found.low, found.high)))
            for k, part in enumerate(self.form.parts)
        }

    def risk(self, X: Any, level: float = 0.9) -> Interval:
        """Return intervals for the risk of every row."""
        frame = self.form.align(X)
        return self._interval(lambda form: form.risk(frame), level, frame.origin)

    def contributions(self, X: Any, level: float = 0.9, **options: Any) -> Interval:
        """Return intervals for all contributions, rows by columns; options as in `explain`."""
        frame = self.form.align(X)
        return self._interval(lambda form: explain(form, frame, **options).contributions, level, frame.origin)

    def to_dict(self, level: float = 0.9) -> dict[str, Any]:
        """Return the intervals of all shapes and weights as plain data."""
        weights = self.weights(level)
        return {
            "refits": len(self),
            "level": level,
            "parts": [
                {
                    "part": part.name,
                    "weight": weights[part.name].to_dict(),
                    "shapes": {name: self.shape(name, part.name, level).to_dict() for name in part.features},
                }
                for part in self.form.parts
            ],
        }

    def _interval(self, ask: Callable[[RiskForm], Floats], level: float, origin: Origin | None = None) -> Interval:
        check_parameters("Refits", {"level": level}, {"level": LEVEL})
        said = np.stack([ask(form) for form in self.forms])
        low, high = np.quantile(said, [(1 - level) / 2, (1 + level) / 2], axis=0)
        per_row = math.prod(low.shape[1:])
        return Interval(ask(self.form), low, high, origin=origin and origin.repeat(per_row))


def _owner(form: RiskForm, feature: str, part: str | None) -> Part:
    users: Mapping[str, Part] = {
        p.name: p
        for p in form.parts
        if isinstance(p, Part)
        if isinstance(p.shapes.get(feature), Table) or feature in p.term_names[len(p.shapes) :]
    }
    if not users:
        known = [n for p in form.parts if isinstance(p, Part) for n in p.shapes]
        raise DataError(f"There is no feature {feature!r} with levels.{did_you_mean(feature, known)}")
    if part is not None and part not in users:
        raise DataError(f"Feature {feature!r} is not in part {part!r}.{did_you_mean(part, users)}")
    return users[part] if part is not None else next(iter(users.values()))


def drawn(form: RiskForm, covariance: Sequence[float], n: int, seed: int) -> Refits:
    """Return forms drawn from the posterior of a form's scores, as if it had been fitted again to other rows.

    Parameters
    ----------
    covariance : see `FitRecord`
    n, seed : how many, and which
    """
    check_parameters("posterior", {"n": n, "seed": seed}, {"n": whole(2), "seed": SEED})
    part = form.parts[0]
    assert isinstance(part, Part), "covariances are of one additive part"
    size = (math.isqrt(8 * len(covariance) + 1) - 1) // 2
    whole_matrix = np.zeros((size, size))
    whole_matrix[np.tril_indices(size)] = covariance
    values, vectors = np.linalg.eigh(whole_matrix)  # reads the lower triangle
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(seed).standard_normal((int(n), size))
    return Refits(form, tuple(_moved(form, part, draw) for draw in normal @ root.T))


def _moved(form: RiskForm, part: Part, move: Floats) -> RiskForm:
    """Return a form with its intercept and the scores of its tables moved."""
    at, shapes, pairs = 1, {}, []
    for name, shape in part.shapes.items():
        shapes[name] = msgspec.structs.replace(
            shape, scores=tuple((np.asarray(shape.scores) + move[at : at + len(shape.scores)]).tolist())
        )
        at += len(shape.scores)
    for pair in part.pairs:
        scores = np.asarray(pair.scores)
        moved = scores + move[at : at + scores.size].reshape(scores.shape)
        pairs.append(msgspec.structs.replace(pair, scores=tuple(map(tuple, moved.tolist()))))
        at += scores.size
    new = msgspec.structs.replace(part, intercept=part.intercept + float(move[0]), shapes=shapes, pairs=tuple(pairs))
    return msgspec.structs.replace(form, parts=(new,))


# ---- reasons


@dataclass(frozen=True)
class Agreement:
    """How far one list of reasons is another, over all applicants who are given any.

    Attributes
    ----------
    what : what was compared with
    times : how many lists were compared; the shares are means over them
    changed : share of applicants who are given another set of reasons
    first_changed : share of applicants whose first reason is another
    kept : share of the reasons that are given again
    """

    what: str
    times: int
    changed: float
    first_changed: float
    kept: float


@dataclass(frozen=True, repr=False)
class StabilityReport(TableResult):
    """Agreements with one list of reasons, the one that would be sent.

    Attributes
    ----------
    applicants : how many were looked at
    k : how many reasons at most
    rows : one agreement per comparison
    """

    applicants: int
    k: int
    rows: tuple[Agreement, ...]

    def _headline(self) -> str:
        return f"StabilityReport on up to {self.k} reasons of {self.applicants:,} applicants, compared with"

    def columns(self) -> dict[str, Any]:
        """Return one line per comparison, as columns by name."""
        return {name: [getattr(r, name) for r in self.rows] for name in Agreement.__dataclass_fields__}


def compare_reasons(base: Reasons, other: Reasons, what: str = "other") -> Agreement:
    """Compare two lists of reasons of the same applicants; the order matters for the first reason only."""
    if len(base) != len(other):
        raise DataError(f"The reasons are of {len(base):,} and of {len(other):,} applicants. Use the same rows.")
    names = {name: i for i, name in enumerate(dict.fromkeys((*base.candidates, *other.candidates)))}
    mine, theirs = (_named(r, names) for r in (base, other))
    asked = mine.any(axis=1) | theirs.any(axis=1)
    if not asked.any():
        return Agreement(what, 1, 0.0, 0.0, 1.0)
    first = _first(base, names) != _first(other, names)
    changed = (mine != theirs).any(axis=1)
    kept = (mine & theirs).sum() / max(1, mine.sum())
    return Agreement(what, 1, float(changed[asked].mean()), float(first[asked].mean()), float(kept))


def _named(found: Reasons, names: Mapping[str, int]) -> Bools:
    """Return who is told what: (n, names)."""
    table = np.zeros((len(found), len(names) + 1), dtype=bool)
    column = np.array([*(names[c] for c in found.candidates), len(names)])
    table[np.arange(len(found))[:, None], column[found.codes]] = True
    return table[:, :-1]


def _first(found: Reasons, names: Mapping[str, int]) -> Index:
    column = np.array([*(names[c] for c in found.candidates), -1])
    return column[found.codes[:, 0]]


def reason_stability(
    form: RiskForm,
    X: Any,
    *,
    refits: Iterable[RiskForm] = (),
    models: Mapping[str, RiskForm] | None = None,
    rules: Sequence[str] = ("typical",),
    **options: Any,
) -> StabilityReport:
    """Report how many applicants' reasons change.

    Parameters
    ----------
    form, X : the model that gives the reasons, and the applicants
    refits : forms of the same model fitted to other samples, such as those of `bootstrap`
    models : other models by name, such as the logistic model beside its line
    rules : other references, as in `reasons`
    **options : the rule that is used, as in `reasons`
    """
    base = reasons(form, X, **options)
    again = [compare_reasons(base, reasons(refit, X, **options)) for refit in refits]
    rows = [_mean("refits", again)] if again else []
    rows += [compare_reasons(base, reasons(other, X, **options), name) for name, other in (models or {}).items()]
    for rule in rules:
        rows.append(compare_reasons(base, reasons(form, X, **{**options, "reference": rule}), f"reference={rule}"))
    return StabilityReport(len(base), base.k, tuple(rows))


def _mean(what: str, found: Sequence[Agreement]) -> Agreement:
    def mean(name: str) -> float:
        return float(np.mean([getattr(a, name) for a in found]))

    return Agreement(what, len(found), mean("changed"), mean("first_changed"), mean("kept"))


# ---- weights


@dataclass(frozen=True, repr=False)
class WeightDrift(TableResult):
    """How Hedge moved its weights through time.

    Attributes
    ----------
    subscales, periods : names
    weights : (periods, subscales) after each period
    moved : (periods,) half the summed change since the period before (since the start, for the first)
    """

    subscales: tuple[str, ...]
    periods: tuple[str, ...]
    weights: Floats
    moved: Floats

    def _headline(self) -> str:
        return f"WeightDrift of {len(self.subscales)} subscales"

    def columns(self) -> dict[str, Any]:
        """Return one line per period, as columns by name."""
        weights = dict(zip(self.subscales, self.weights.T.tolist(), strict=True))
        return {"period": list(self.periods), **weights, "moved": self.moved.tolist()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data: columns by name."""
        return self.columns()


def weight_drift(path: Floats, subscales: Sequence[str], periods: Any = 10) -> WeightDrift:
    """Summarise a path of weights, (rows + 1, subscales), as `SubscaleMixture.weight_path` gives it, by period.

    Parameters
    ----------
    periods : int or one label per row, default=10
        The number of periods of equal length, or the rows' own labels, in their order.
    """
    if np.ndim(path) != 2 or np.shape(path)[1] != len(subscales):
        raise DataError(f"weight_drift: path must have a column for each of the {len(subscales)} subscales.")
    n = len(path) - 1
    if isinstance(periods, int | float | np.number):
        check_parameters("weight_drift", {"periods": periods}, {"periods": whole(1)})
        ends = np.unique(np.linspace(0, n, min(int(periods), n) + 1).astype(np.intp)[1:])
        names = [f"rows up to {end:,}" for end in ends]
    else:
        labels = [str(p) for p in periods] if isinstance(periods, Iterable) else []
        if len(labels) != n:
            raise DataError(f"weight_drift: {len(labels)} periods for {n} rows. Give one label per row.")
        last = [i + 1 for i in range(n) if i + 1 == n or labels[i + 1] != labels[i]]
        ends, names = np.array(last, dtype=np.intp), [labels[end - 1] for end in last]
        if len(set(names)) < len(names):
            raise DataError("weight_drift: a period comes twice. Sort the rows by time first.")
    weights = path[ends]
    moved = 0.5 * np.abs(np.diff(np.vstack([path[:1], weights]), axis=0)).sum(axis=1)
    return WeightDrift(tuple(subscales), tuple(names), weights, moved)
