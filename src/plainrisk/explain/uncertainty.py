"""The stability of a model: intervals from its refits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.checks import LEVEL, SEED, check_parameters, whole
from plainrisk.data.frame import Origin
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.contributions import explain
from plainrisk.explain.overview import level_effects, level_scores
from plainrisk.explain.reference import Reference, make_reference, pool_weights
from plainrisk.form import Part, RiskForm, Table
from plainrisk.tables import TableResult
from plainrisk.text import visible

__all__ = ["Interval", "Refits", "drawn"]

MOST_DRAWS = 100_000  # each is a model of its own in memory


@dataclass(frozen=True, repr=False)
class Interval(TableResult):
    """The model's values with the intervals from the refits, as arrays of the same shape.

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

    All intervals are percentile intervals: the middle `level` of the refits' values.
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
        weights = self._interval(lambda form: np.array(pool_weights(form)), level)
        return {
            part.name: Interval(*(np.asarray(v[k]) for v in (weights.estimate, weights.low, weights.high)))
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
        refitted = np.stack([ask(form) for form in self.forms])
        low, high = np.quantile(refitted, [(1 - level) / 2, (1 + level) / 2], axis=0)
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
        with_levels = [n for p in form.parts if isinstance(p, Part) for n in p.shapes]
        raise DataError(f"There is no feature {feature!r} with levels.{did_you_mean(feature, with_levels)}")
    if part is not None and part not in users:
        raise DataError(f"Feature {feature!r} is not in part {part!r}.{did_you_mean(part, users)}")
    return users[part] if part is not None else next(iter(users.values()))


def drawn(form: RiskForm, covariance: Sequence[float], n: int, seed: int) -> Refits:
    """Return forms drawn from the posterior of a form's scores, which take the place of refits.

    Parameters
    ----------
    covariance : of the scores, see `FitRecord`
    n, seed : the number of draws, and their seed
    """
    check_parameters("posterior", {"n": n, "seed": seed}, {"n": whole(2, MOST_DRAWS), "seed": SEED})
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
    """Return a form with its intercept and the scores of its tables moved by a draw."""
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
