"""Replacing a model while it is served: what must stay the same, and how much the answers change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plainrisk.decision import refused
from plainrisk.errors import DataError, ModelFileError
from plainrisk.form import RiskForm
from plainrisk.form.levels import Bins
from plainrisk.form.shapes import Part
from plainrisk.model import RiskModel

__all__ = ["Change", "change_of", "require_same_task"]


@dataclass(frozen=True)
class Change:
    """How the answers of a new model differ on rows made from the levels of the old one.

    Attributes
    ----------
    rows : how many were scored by both
    risks, decisions : for how many the risk, or the decision, differs
    largest : the largest difference of two risks
    """

    rows: int
    risks: int
    decisions: int
    largest: float

    def __str__(self) -> str:
        if not self.risks and not self.decisions:
            return f"all {self.rows:,} test rows have the risk and the decision that they had"
        return (
            f"of {self.rows:,} test rows {self.risks:,} have another risk, by up to {self.largest:.3g}, and "
            f"{self.decisions:,} another decision"
        )


def require_same_task(old: RiskModel, new: RiskModel, path: Any) -> None:
    """Raise if a new model needs features that the old one did not, or predicts another outcome.

    Valid requests stay valid, and their answers keep their meaning. Features that are no longer read do no harm, since
    further keys are ignored.
    """
    before, after = _kinds(old.form_), _kinds(new.form_)
    for name in after:
        if before.get(name) != after[name]:
            what = f"needs the feature {name!r}" if name not in before else f"reads the feature {name!r} differently"
            raise ModelFileError(
                f"{path}: the new model {what}, so the old one stays. Serve it under another name, or start the "
                "service again."
            )
    if _outcome(old.form_) != _outcome(new.form_):
        raise ModelFileError(
            f"{path}: the new model is of another outcome, so the old one stays. Serve it under another name, or start "
            "the service again."
        )


def _kinds(form: RiskForm) -> dict[str, str]:
    return {name: form.schema.features[name].written for name in form.features}


def _outcome(form: RiskForm) -> tuple[Any, ...]:
    return form.schema.target, form.classes, form.schema.adverse


def change_of(old: RiskModel, new: RiskModel, example: Mapping[str, Any]) -> Change:
    """Score the example, with every level of every feature in turn, by both models."""
    rows = risks = decisions = 0
    largest = 0.0
    for row in _rows(old.form_, example):
        try:
            before, after = (float(model.form_.risk(row)[0]) for model in (old, new))
        except DataError:  # a level that one of them refuses
            continue
        rows += 1
        risks += before != after
        decisions += _decision(old, before) != _decision(new, after)
        largest = max(largest, abs(before - after))
    return Change(rows, risks, decisions, largest)


def _decision(model: RiskModel, risk: float) -> bool | None:
    return None if model.cutoff is None else bool(refused(risk, model.cutoff, model.form_.schema.adverse))


def _rows(form: RiskForm, example: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the example, and the example with another value in one feature: every edge or category, and none."""
    yield dict(example)
    for name in form.features:
        shapes = (part.shapes.get(name) for part in form.parts if isinstance(part, Part))
        levels = next((shape.levels for shape in shapes if shape is not None), None)
        values: tuple[Any, ...] = ()
        if isinstance(levels, Bins):
            values = (*levels.edges, *levels.special_values)
        elif levels is not None:
            values = tuple(itertools.chain(*(levels.groups.get(label, (label,)) for label in levels.categories)))
        for value in (*values, None):
            yield {**example, name: value}
