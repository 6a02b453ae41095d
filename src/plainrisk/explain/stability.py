"""How steady reasons are: under refits, between models, between rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import frame_like
from plainrisk.errors import DataError
from plainrisk.explain.reasons import Reasons, reasons
from plainrisk.form import RiskForm

__all__ = ["Agreement", "StabilityReport", "compare_reasons", "reason_stability"]


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


@dataclass(frozen=True)
class StabilityReport:
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

    def to_frame(self, like: Any = None) -> Any:
        """Return a data frame with one line per comparison."""
        return frame_like(
            {name: [getattr(r, name) for r in self.rows] for name in Agreement.__dataclass_fields__}, like
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        head = f"up to {self.k} reasons of {self.applicants:,} applicants, against"
        lines = [
            f"  {r.what} ({r.times}): another set {r.changed:.1%}, another first {r.first_changed:.1%}, "
            f"reasons kept {r.kept:.1%}"
            for r in self.rows
        ]
        return "\n".join([head, *lines])


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


def _named(found: Reasons, names: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Return who is told what: (n, names)."""
    table = np.zeros((len(found), len(names) + 1), dtype=bool)
    place = np.array([*(names[c] for c in found.candidates), len(names)])
    table[np.arange(len(found))[:, None], place[found.codes]] = True
    return table[:, :-1]


def _first(found: Reasons, names: Mapping[str, int]) -> npt.NDArray[np.intp]:
    place = np.array([*(names[c] for c in found.candidates), -1])
    return place[found.codes[:, 0]]


def reason_stability(
    form: RiskForm,
    X: Any,
    *,
    refits: Iterable[RiskForm] = (),
    models: Mapping[str, RiskForm] | None = None,
    rules: Sequence[str] = ("mean", "neutral"),
    k: int = 4,
    against: Any = "best",
    **options: Any,
) -> StabilityReport:
    """Report how many applicants' reasons change.

    Parameters
    ----------
    form, X : the model that gives the reasons, and the applicants
    refits : forms of the same model fitted to other samples, such as those of `bootstrap`
    models : other models by name, such as the logistic model beside its line
    rules : other references, as in `reasons`
    k, against, **options : the rule that is used, as in `reasons`
    """
    base = reasons(form, X, k, against, **options)
    again = [compare_reasons(base, reasons(refit, X, k, against, **options)) for refit in refits]
    rows = [_mean("refits", again)] if again else []
    for name, other in (models or {}).items():
        rows.append(compare_reasons(base, reasons(other, X, k, against, **options), name))
    rows += [compare_reasons(base, reasons(form, X, k, rule, **options), f"against={rule}") for rule in rules]
    return StabilityReport(len(base), k, tuple(rows))


def _mean(what: str, found: Sequence[Agreement]) -> Agreement:
    def mean(name: str) -> float:
        return float(np.mean([getattr(a, name) for a in found]))

    return Agreement(what, len(found), mean("changed"), mean("first_changed"), mean("kept"))
