"""How the experts of a mixture are charged and weighed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError, did_you_mean
from plainrisk.estimators.subscales import fit_experts
from plainrisk.estimators.training import Training
from plainrisk.form import Bands, Linear, Link
from plainrisk.solve import minimise_squares, stratified_folds

__all__ = ["check_settings", "class_factors", "held_out_risks", "loss_clip", "stacked_weights"]

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


def held_out_risks(estimator: Any, training: Training, n_folds: int) -> Floats:
    """Return each row's risk by experts that were fitted without its fold: (rows, experts)."""
    folds = stratified_folds(training.target, n_folds)
    risks: dict[int, Floats] = {}
    for fold in np.unique(folds):
        experts = fit_experts(estimator, training.rows(np.flatnonzero(folds != fold)))
        rows = training.rows(np.flatnonzero(folds == fold))
        risks[int(fold)] = np.column_stack([e.risk(rows.frame) for e in experts.values()])
    out = np.empty((len(folds), next(iter(risks.values())).shape[1]))
    for fold, found in risks.items():
        out[folds == fold] = found
    return out


def class_factors(training: Training, sample_weight: Any) -> Floats:
    """Return what class weights multiplied the weight of a row by, for outcome 0 and 1."""
    given = 1.0 if sample_weight is None else sample_weight
    total = np.sum(given) if np.ndim(given) else given * len(training.target)
    sums = np.bincount(training.target, training.weight, minlength=2)
    return np.asarray(sums / (total * np.array([1.0 - training.base_rate, training.base_rate])))


def stacked_weights(risks: Floats, training: Training) -> Floats:
    """Return nonnegative least-squares weights of the risks, without constant, scaled to sum 1."""
    weighted = risks if training.weight is None else risks * training.weight[:, None]
    n_experts = risks.shape[1]
    gram = np.zeros((n_experts + 1, n_experts + 1))
    gram[0, 0] = training.total  # the intercept stands alone and plays no part in the weights
    gram[1:, 1:] = weighted.T @ risks
    moment = np.concatenate([[0.0], weighted.T @ training.target.astype(np.float64)])
    found = minimise_squares(gram, moment, training.total, lower=np.zeros(n_experts)).coefficients
    return found / found.sum() if found.sum() > 0 else np.full(n_experts, 1.0 / n_experts)
