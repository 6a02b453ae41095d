"""Measure how often weak spots are reported if there are none or one: figures for docs/guides/validation.md.

Rows are `pr.datasets.make_credit`; a model is fitted to 3,000 of them and tested on 2,000 others. For the planted
slice, the odds of a bad outcome are three times what the model says for the renters with the lowest third of incomes.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import polars as pl

import plainrisk as pr
from plainrisk.validate.weak_spots import WeakSpots

TRAINED, TESTED, TIMES = 3000, 2000, 3.0
PLANTED = {("income", "housing"), ("housing", "income"), ("income",), ("housing",)}


def planted(frame: pl.DataFrame) -> np.ndarray:
    """Return which rows are in the slice."""
    income = frame["income"].to_numpy()
    return (income <= np.nanquantile(income, 1 / 3)) & (frame["housing"] == "rent").fill_null(False).to_numpy()


def spots(seed: int, name: str, *, plant: bool) -> WeakSpots:
    """Fit a model, and look for its weak spots in other rows."""
    made = pr.datasets.make_credit(TRAINED + TESTED, seed, backend="polars")
    model = pr.make_classifier(name, made.schema).fit(made.frame[:TRAINED], made.target[:TRAINED])
    frame, y = made.frame[TRAINED:], made.target[TRAINED:].copy()
    if plant:
        inside, rng = planted(frame), np.random.default_rng(seed)
        p = model.predict_proba(frame)[:, 1]
        odds = TIMES * p / (1 - p)
        y[inside] = (rng.random(TESTED) < odds / (1 + odds))[inside]
    return pr.weak_spots(model, frame, y, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--model", default="SmoothARM1")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    none = found = 0
    for seed in range(arguments.seeds):
        quiet, loud = (spots(seed, arguments.model, plant=plant) for plant in (False, True))
        none += not quiet.spots
        found += any(spot.columns in PLANTED for spot in loud.spots)
        print(seed, quiet.tested, f"{quiet.p_value:.3f}", [s.slice for s in quiet.spots], [s.slice for s in loud.spots])
    print(f"{arguments.model}: nothing named {none} of {arguments.seeds} times, the planted slice {found} times")


if __name__ == "__main__":
    main()
