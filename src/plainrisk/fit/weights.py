"""Reading the weights of rows, and of outcomes (class weights)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plainrisk._types import Array, Floats
from plainrisk.checks import check_parameters, number
from plainrisk.data.columns import floats_or_none, unmasked
from plainrisk.errors import DataError, did_you_mean, warn
from plainrisk.schema import label_of
from plainrisk.schema.outcomes import class_label

__all__ = ["class_factors_of", "read_weight"]


def read_weight(sample_weight: Any, n_rows: int) -> Floats | None:
    """Return the weights of rows as numbers, or None where all are 1."""
    if sample_weight is None:
        return None
    weight = _as_numbers(sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise DataError(f"Data: sample_weight must be 1D array with {n_rows} entries, not of shape {weight.shape}.")
    if not weight.any():
        raise DataError("Data: every sample_weight is zero. At least one row must have a weight.")
    bad = ~np.isfinite(weight) | (weight < 0)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"Data: sample_weight must be finite and not negative; row {row} is not.")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not 1e-99 < total < 1e99:
        raise DataError(f"Data: the entries of sample_weight add up to {total:g}. Scale them to about 1 per row.")
    return None if (weight == 1).all() else weight


def _as_numbers(sample_weight: Any) -> Floats:
    """Return weights as floats, with NaN for missing ones; text and complex numbers are refused."""
    weight = np.asarray(unmasked(sample_weight))
    if weight.dtype == object and weight.ndim == 1:
        numbers = floats_or_none(weight)
        weight = weight if numbers is None else numbers
    if weight.dtype.kind not in "biuf":
        kind = "text" if weight.dtype.kind in "US" else weight.dtype.name
        raise DataError(f"Data: sample_weight must hold numbers, not {kind}. Convert it first.")
    return weight.astype(np.float64)


def class_factors_of(sums: Array, class_weight: str | Mapping[Any, float], classes: Array, n_rows: int) -> Floats:
    """Return what multiplies the weight of a row, by its outcome; warn of what that does to the probabilities.

    Parameters
    ----------
    sums : (2,) the weight of each outcome
    n_rows : how many rows these are
    """
    sums = sums.astype(np.float64)
    balanced = sums.sum() / (2.0 * sums)
    factors = _class_factors(class_weight, classes) if isinstance(class_weight, Mapping) else balanced
    if factors[0] != factors[1]:
        trained = sums[1] * factors[1] / (sums @ factors)
        warn(
            f"class_weight moves the base rate from {sums[1] / sums.sum():.1%} to {trained:.1%}: the printed "
            "probabilities are wrong by design. model.at_base_rate() corrects them, except in mixtures."
            f"{_too_light(sums * factors, n_rows, classes)}",
        )
    return np.asarray(factors)


def _too_light(trained: Floats, n_rows: int, classes: Array) -> str:
    """Return the message that an outcome has too little weight, less than one row, for features to matter."""
    light = int(trained.argmin())
    effective_rows = float(trained[light] / trained.sum() * n_rows)
    if effective_rows >= 1:
        return ""
    return (
        f" They are of no use: outcome {label_of(classes[light])!r} weighs as little as {effective_rows:.2g} rows of "
        f"{n_rows:,}, so no feature may count. Choose weights that are nearer to each other."
    )


def _class_factors(class_weight: Mapping[Any, float], classes: Array) -> Floats:
    texts = [class_label(c) for c in classes]
    given = {class_label(label): factor for label, factor in class_weight.items()}
    for label in given:
        if label not in texts:
            raise DataError(f"class_weight: there is no outcome {label!r}.{did_you_mean(label, texts)}")
    weights = {f"the weight of outcome {label!r}": factor for label, factor in given.items()}
    check_parameters("class_weight", weights, dict.fromkeys(weights, number(above=0)))
    return np.array([float(given.get(text, 1.0)) for text in texts])
