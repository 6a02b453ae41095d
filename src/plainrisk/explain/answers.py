"""What-if answers: which changes bring an applicant to the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from plainrisk.data.frame import frame_like
from plainrisk.explain.places import Value
from plainrisk.explain.reference import Adverse
from plainrisk.schema import label_of

__all__ = ["Answer", "Change", "WhatIf", "WhatIfs"]


@dataclass(frozen=True)
class Change:
    """One feature moved.

    Attributes
    ----------
    feature : str
    value, level : what the applicant has
    to_value, to_level : a concrete value to reach, the nearest in its bin, and the bin
    steps : how many bins it is moved
    cost : what the move costs
    """

    feature: str
    value: Value
    level: str
    to_value: Value
    to_level: str
    steps: int
    cost: float

    def __str__(self) -> str:
        return f"{self.feature}: {_text(self.value)} -> {_text(self.to_value)}"


@dataclass(frozen=True)
class Answer:
    """Changes that belong together.

    Attributes
    ----------
    changes : none where nothing needs to change
    risk : the risk after them, by scoring the changed row
    cost : their costs added up
    """

    changes: tuple[Change, ...]
    risk: float
    cost: float

    @property
    def features(self) -> tuple[str, ...]:
        """The features that change."""
        return tuple(change.feature for change in self.changes)

    def __str__(self) -> str:
        what = "; ".join(map(str, self.changes)) or "nothing needs to change"
        return f"{what} (risk {self.risk:.4f})"


@dataclass(frozen=True)
class WhatIf:
    """What would bring one applicant to the target.

    Attributes
    ----------
    risk, target : now, and wanted
    adverse : "positive" if the risk must fall to the target, "negative" if it must rise
    answers : the cheapest, then others that each leave out a feature of every one before; empty if none exists
    reachable : the best risk the allowed moves can reach, and the cheapest way there
    """

    risk: float
    target: float
    adverse: Adverse
    answers: tuple[Answer, ...]
    reachable: Answer

    @property
    def reached(self) -> bool:
        """Whether there is an answer."""
        return bool(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {"reached": self.reached, **asdict(self)}

    def __str__(self) -> str:
        goal = f"risk {self.risk:.4f}, target {'at most' if self.adverse == 'positive' else 'at least'} {self.target:g}"
        if not self.answers:
            return f"{goal}: cannot be reached; the best is {self.reachable.risk:.4f}, with {self.reachable}"
        return "\n".join([f"{goal}:", *(f"  {i}. {answer}" for i, answer in enumerate(self.answers, 1))])


@dataclass(frozen=True)
class WhatIfs:
    """What would bring each of many applicants to the target."""

    rows: tuple[WhatIf, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> WhatIf:
        return self.rows[row]

    def to_frame(self, like: Any = None) -> Any:
        """Return a data frame with the first answer of every row, of the library `like` came from."""
        return frame_like(self.columns(), like)

    def columns(self) -> dict[str, list[Any]]:
        """Return the table as columns by name."""
        first = [w.answers[0] if w.answers else None for w in self.rows]
        return {
            "risk": [w.risk for w in self.rows],
            "reached": [w.reached for w in self.rows],
            "new_risk": [w.reachable.risk if a is None else a.risk for w, a in zip(self.rows, first, strict=True)],
            "features_changed": [None if a is None else len(a.changes) for a in first],
            "cost": [None if a is None else a.cost for a in first],
            "changes": [None if a is None else "; ".join(map(str, a.changes)) for a in first],
        }


def _text(value: Value) -> str:
    if value is None or value != value:
        return "missing"
    return f"{value:.12g}" if isinstance(value, float) else label_of(value)
