"""Intervals for everything a model says, from refits of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.contributions import explain
from plainrisk.explain.reference import pool_weights
from plainrisk.form import Part, RiskForm, Table

__all__ = ["Interval", "Refits"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """What the model says, and between which values the refits say it; arrays of one shape."""

    estimate: Floats
    low: Floats
    high: Floats


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

    def shape(self, feature: str, part: str | None = None, level: float = 0.9) -> Interval:
        """Return intervals for the scores of a feature's levels, in the first part that has it unless one is named."""
        owner = _owner(self.form, feature, part)
        return self._interval(lambda form: np.array(_owner(form, feature, owner.name).shapes[feature].scores), level)

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
        return self._interval(lambda form: form.risk(frame), level)

    def contributions(self, X: Any, level: float = 0.9, **options: Any) -> Interval:
        """Return intervals for all contributions, rows by columns; options as in `explain`."""
        frame = self.form.align(X)
        return self._interval(lambda form: explain(form, frame, **options).contributions, level)

    def to_dict(self, level: float = 0.9) -> dict[str, Any]:
        """Return the intervals of all shapes and weights as plain data."""
        weights = self.weights(level)
        return {
            "refits": len(self),
            "level": level,
            "parts": [
                {
                    "part": part.name,
                    "weight": _plain(weights[part.name]),
                    "shapes": {name: _plain(self.shape(name, part.name, level)) for name in part.features},
                }
                for part in self.form.parts
            ],
        }

    def _interval(self, ask: Callable[[RiskForm], Floats], level: float) -> Interval:
        if not 0 < level < 1:
            raise DataError(f"level must lie between 0 and 1, not {level!r}.")
        said = np.stack([ask(form) for form in self.forms])
        low, high = np.quantile(said, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return Interval(ask(self.form), low, high)


def _owner(form: RiskForm, feature: str, part: str | None) -> Part:
    users: Mapping[str, Part] = {
        p.name: p for p in form.parts if isinstance(p, Part) and isinstance(p.shapes.get(feature), Table)
    }
    if not users:
        known = [n for p in form.parts if isinstance(p, Part) for n in p.shapes]
        raise DataError(f"There is no feature {feature!r} with levels.{did_you_mean(feature, known)}")
    if part is not None and part not in users:
        raise DataError(f"Feature {feature!r} is not in part {part!r}.{did_you_mean(part, users)}")
    return users[part] if part is not None else next(iter(users.values()))


def _plain(found: Interval) -> dict[str, Any]:
    return {name: getattr(found, name).tolist() for name in ("estimate", "low", "high")}
