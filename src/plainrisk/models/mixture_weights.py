"""How the experts of a mixture are charged and weighed."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError, did_you_mean
from plainrisk.form import Bands, Linear, Link, Logistic, Part, Table
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.stream_fit import AnyRows
from plainrisk.models.subscales import Expert, fit_experts
from plainrisk.models.training import Training
from plainrisk.solve import minimise_squares, stratified_folds

__all__ = ["RiskSums", "check_settings", "held_out_risks", "loss_clip", "own_log_loss"]

Floats = npt.NDArray[np.float64]

DIRECT_CLIP = 1e-3


def check_settings(weights: str, loss: str, clip: Any, cv: Any) -> None:
    """Raise, before anything is fitted, if a setting is not one that is known."""
    for name, value, known in (("weights", weights, ("hedge", "stacking")), ("loss", loss, ("log", "brier"))):
        if value not in known:
            raise DataError(f"{name} must be {known[0]!r} or {known[1]!r}, not {value!r}.{did_you_mean(value, known)}")
    if clip != "auto" and not (isinstance(clip, Real) and 0 < float(clip) < 0.5):
        raise DataError(f"clip must be 'auto' or a number between 0 and 0.5, not {clip!r}.")
    if cv is not None and not (isinstance(cv, Integral) and int(cv) >= 2):
        raise DataError(f"cv must be None or a number of folds, 2 or more, not {cv!r}.")


def loss_clip(link: Link | None) -> float:
    """Return the certainty an expert's link can express, as the least risk it may be charged for.

    A line stands in for the sigmoid only between -alpha and alpha; beyond, it says 0 or 1 without meaning it. So a
    linearised expert is charged no more certainty than the sigmoid has at the line's ends, sigmoid(-alpha). A line
    fitted directly, bands and curved links are charged what they say, but for a floor that keeps the loss finite.
    """
    if isinstance(link, Linear) and link.offset == 0.5:
        return float(1.0 / (1.0 + np.exp(0.5 / link.slope)))
    if isinstance(link, Linear):
        return DIRECT_CLIP
    if isinstance(link, Bands):
        return max(1e-15, min(link.values[0], 1.0 - link.values[-1]))
    return 1e-15


def own_log_loss(expert: Expert, clip: float) -> float | None:
    """Return the mean log loss of an expert on its training rows, if its solver minimised that and none is clipped."""
    part = expert.part if expert.has_part else None
    if type(expert.model) is not AdditiveRiskModel or not isinstance(part, Part) or not isinstance(part.link, Logistic):
        return None
    tables = [shape for shape in part.shapes.values() if isinstance(shape, Table)]
    farthest = abs(part.intercept) + sum(float(np.abs(table.scores).max()) for table in tables)
    certain = np.log((1.0 - clip) / clip)
    return expert.model.solution_.loss if len(tables) == len(part.shapes) and farthest < certain else None


def held_out_risks(estimator: Any, training: AnyRows, n_folds: int) -> Iterator[tuple[Training, Floats]]:
    """Yield the rows of each fold with their risk by experts that were fitted without it: (rows, experts)."""
    folds = stratified_folds(training.outcomes(), n_folds)
    for fold in np.unique(folds):
        experts = fit_experts(estimator, training.rows(np.flatnonzero(folds != fold)))
        for rows in training.rows(np.flatnonzero(folds == fold)).batches(task="weighing experts"):
            yield rows, np.column_stack([e.risk(rows.frame) for e in experts.values()])


class RiskSums:
    """Sums of products of the experts' risks, to which rows are added batch by batch."""

    def __init__(self, n_experts: int) -> None:
        self.gram = np.zeros((n_experts + 1, n_experts + 1))
        self.moment = np.zeros(n_experts + 1)

    def add(self, risks: Floats, rows: Training) -> None:
        """Add rows and the risks the experts see in them: (rows, experts)."""
        weighted = risks if rows.weight is None else risks * rows.weight[:, None]
        self.gram[0, 0] += rows.total  # the intercept stands alone and plays no part in the weights
        self.gram[1:, 1:] += weighted.T @ risks
        self.moment[1:] += weighted.T @ rows.target.astype(np.float64)

    def stacked_weights(self) -> Floats:
        """Return nonnegative least-squares weights of the risks, without constant, scaled to sum 1."""
        n_experts = len(self.moment) - 1
        found = minimise_squares(self.gram, self.moment, float(self.gram[0, 0]), lower=np.zeros(n_experts)).coefficients
        return found / found.sum() if found.sum() > 0 else np.full(n_experts, 1.0 / n_experts)
