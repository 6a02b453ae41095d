"""A fit's messages about its model: clipped rows, protected features, special levels, leaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from plainrisk.errors import quoted, warn
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import Bins, Levels, Link, Part, RiskForm, Shape, Table, measured_levels, outside_rules
from plainrisk.schema import Feature
from plainrisk.schema.check import feature_cells, say_leak
from plainrisk.schema.evidence import FEW, Cells, leaks_of, level_cells, spread_rows
from plainrisk.schema.protected import not_marked

__all__ = [
    "warn_of_better_levels",
    "warn_of_clipping",
    "warn_of_leaks",
    "warn_of_protected",
    "warn_of_unmarked",
]

# Above this share of clipped training rows the user is warned.
CLIPPING_WARNING = 0.10
_SAMPLE = 5_000  # rows of features that a fit does not count: ten times as many take ten times as long


def warn_of_clipping(who: str, share: float, link: Link | None) -> None:
    """Tell the user, with the cure, if many training rows are clipped."""
    if share <= CLIPPING_WARNING:
        return
    low, high = (0.0, 1.0) if link is None else link.range
    warn(
        f"{who}: the line is cut off at {low:g} or {high:g} for {share:.0%} of the training rows, whose order among "
        "themselves is lost. AdditiveRiskModel(link='bands') follows the sigmoid in bands and clips none.",
    )


def warn_of_protected(form: RiskForm) -> None:
    """Tell the user that the model reads protected features."""
    read = [name for name in form.schema.protected if name in form.features]
    if read:
        names = ", ".join(map(repr, read))
        warn(
            f"The model reads protected features: {names}. They are never given as reasons, but they move the "
            f"probability. schema.drop({names}) leaves them out.",
        )


def warn_of_unmarked(form: RiskForm) -> None:
    """Tell the user which features look protected, by their names, and may be given as reasons."""
    unmarked = not_marked({name: form.schema.features[name] for name in form.features})
    if unmarked:
        warn(
            f"Features look protected by their names, and the schema does not mark them: {quoted(list(unmarked))}. "
            "They may be given as reasons. State protected = true for those that are.",
        )


def warn_of_better_levels(form: RiskForm) -> None:
    """Tell the user which special levels are better than every measured one without a stated rule."""
    better: dict[str, str] = {}
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            for level in _better_levels(form.schema.features[name], shape, form.schema.worse):
                rows, bad = shape.weights[level], shape.positives[level]
                rate = (bad if form.schema.worse > 0 else rows - bad) / rows
                label = shape.levels.labels[level]
                better.setdefault(f"{name} {label}", f"{name!r} {label} ({rows:,.6g} rows, {rate:.1%} bad)")
    if better:
        shown = list(better.values())
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        warn(
            f"Empty or special fields are better for the applicant than every measured level: {', '.join(shown[:5])}"
            f"{more}. Rules such as missing = 'not_better' or special_rules forbid it; 'free' states that it is meant."
        )


def _better_levels(feature: Feature, shape: Shape, worse: int) -> Iterator[int]:
    weights, scores = np.asarray(shape.weights), worse * np.asarray(shape.scores)
    measured = measured_levels(feature, shape.levels)
    seen = measured[weights[measured] > 0]
    for level, rule in outside_rules(feature, shape.levels).items():
        if (
            rule == "free"
            and not _is_stated(feature, shape.levels, level)
            and weights[level]
            and len(seen)
            and scores[level] < scores[seen].min()
        ):
            yield level


def _is_stated(feature: Feature, levels: Levels, level: int) -> bool:
    """Whether the schema itself states that a level is free."""
    if level == levels.missing:
        return feature.missing is not None
    label = levels.labels[level]
    if isinstance(levels, Bins) and label.startswith("x < "):
        return feature.below_bound is not None
    return label.removeprefix("= ") in feature.special_rules


# ---- single features that separate the outcomes


def warn_of_leaks(form: RiskForm | None, training: TrainingRows) -> None:
    """Warn of features of a model that may be known only after the decision; the limit is that of drafts.

    Parameters
    ----------
    form : the fitted form; None where there is none, and all features of the schema are checked
    """
    cells = {} if form is None else _counted(form, training)
    names = training.schema.features if form is None else form.features
    cells |= _sampled([name for name in names if name not in cells], training)
    for name in names:
        for leak in leaks_of(name, cells[name], pure=False) if name in cells else ():
            warn(f"Data: {say_leak(leak)}")


def _counted(form: RiskForm, training: TrainingRows) -> dict[str, Cells]:
    """Return the levels of every table of a form as cells: in rows, however these are weighted."""
    factors = np.ones(2) if training.factors is None else training.factors
    cells: dict[str, Cells] = {}
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            if not isinstance(shape, Table) or name in cells:
                continue
            positive = np.asarray(shape.positives)
            by_outcome = np.array([np.asarray(shape.weights) - positive, positive]) / factors[:, None]
            total = by_outcome.sum(axis=0)
            scale = training.n_rows / total.sum()
            bad = by_outcome[1 if training.schema.worse > 0 else 0]
            numeric = isinstance(shape.levels, Bins)
            labels = [label if numeric or label == "missing" else f"= {label!r}" for label in shape.levels.labels]
            cells[name] = level_cells(labels, scale * total, scale * bad, shape.levels.n_ordered if numeric else 0)
    return cells


def _sampled(names: Sequence[str], training: TrainingRows) -> dict[str, Cells]:
    """Count features of lines and trees in the first batch that has enough rows of both outcomes."""
    if not names:
        return {}
    sample: _FirstCells = training.sum(_FirstCells(tuple(names)), names, "looking for leaks")
    return sample.cells


@dataclass(frozen=True)
class _FirstCells:
    """The cells of features in the first batch that has enough rows of both outcomes; called, it looks at a batch."""

    names: tuple[str, ...]
    cells: dict[str, Cells] = field(default_factory=dict)

    def __call__(self, batch: Training) -> _FirstCells:
        rows, features = spread_rows(batch.n_rows, _SAMPLE), batch.schema.features
        bad = (batch.target[rows] == (batch.schema.worse > 0)).astype(np.float64)
        if not FEW <= bad.sum() <= len(bad) - FEW:
            return self
        return replace(self, cells={n: feature_cells(n, features[n], batch.frame, rows, bad) for n in self.names})

    def __add__(self, other: _FirstCells) -> _FirstCells:
        return self if self.cells else other
