"""The smallest and the largest measured value of every feature in training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from plainrisk.fit.training import Range, Training, TrainingRows
from plainrisk.form import RiskForm
from plainrisk.form.beyond import widen_ranges

__all__ = ["Ranges", "value_ranges"]


def value_ranges(form: RiskForm, training: TrainingRows) -> dict[str, Range]:
    """Return the smallest and the largest measured value of every continuous feature that a form reads."""
    names = tuple(name for name in form.features if training.schema.features[name].kind == "continuous")
    known = training.ranges
    if known is None or any(name not in known for name in names):
        looking = "looking for the range of every feature"
        known = training.sum(Ranges(names), names, looking).found if names else {}
    return {name: span for name in names if (span := known[name]) is not None}


@dataclass(frozen=True)
class Ranges:
    """The smallest and the largest measured value by feature; called with a batch, it looks there."""

    names: tuple[str, ...]
    ranges: dict[str, Range] = field(default_factory=dict)

    @property
    def found(self) -> dict[str, Range | None]:
        """The range of every feature, or None where nothing was measured."""
        return {name: self.ranges.get(name) for name in self.names}

    def __call__(self, batch: Training) -> Ranges:
        """Return the ranges in a batch."""
        ranges: dict[str, Range] = {}
        widen_ranges(ranges, batch.schema, batch.frame, self.names)
        return replace(self, ranges=ranges)

    def __add__(self, other: Ranges) -> Ranges:
        both = self.ranges | other.ranges
        for name in self.ranges.keys() & other.ranges.keys():
            (low, high), (least, most) = self.ranges[name], other.ranges[name]
            both[name] = min(low, least), max(high, most)
        return replace(self, ranges=both)
