"""Compare all models on all data sets: same folds, true base rate, one table per measure.

    PLAINRISK_DATA=folder python scripts/models_table.py [--data heloc german] [--models ARM1 XGB]

Ten stratified folds, shuffled with seed 0. AUC is the mean over the folds; ECE (15 equal bins), Brier score and clipped
share (predictions that are exactly 0 or 1) are for all held-out predictions together. Prints Markdown.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import plainrisk as pr

DATA = ("heloc", "gmsc", "taiwan", "german", "japan", "australia", "poland_0", "poland_2", "poland_4")
# What a row is called: the classifier's name and its options.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("ARM1", "LinARM1", "BandARM1")},
    "BandARM1, 4 pieces": ("BandARM1", {"pieces": 4}),
    **{name: (name, {}) for name in ("DirectARM1", "MixARM1", "MixLinARM1")},
    **{name: (name, {}) for name in ("ARM2", "LinARM2", "XGB")},
    **{name: (name, {}) for name in ("SmoothARM1", "SmoothDirectARM1")},
    "SmoothARM1 + pairs": ("SmoothARM1", {"pairs": "auto"}),
}
FIGURES = {
    "AUC": ("auc", ".4f"),
    "Expected calibration error": ("ece", ".4f"),
    "Log loss": ("log_loss", ".4f"),
    "Brier score": ("brier", ".4f"),
    "Share of predictions clipped to 0 or 1": ("clipped", ".3f"),
    "Seconds per fit": ("seconds", ".2f"),
}


def judge(data: Any, model: str) -> dict[str, float]:
    """Cross-validate one model on one data set."""
    name, options = MODELS[model]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
        found = pr.cross_validate(pr.make_classifier(name, data.schema, **options), data.frame, data.target)
    return {
        "auc": found.mean["auc"],
        "ece": found.pooled["ece"],
        "log_loss": found.pooled["log_loss"],
        "brier": found.pooled["brier"],
        "clipped": float(np.isin(found.risk, (0.0, 1.0)).mean()),
        "seconds": float(np.mean([fold.seconds for fold in found.folds])),
    }


def main() -> None:
    """Run what was asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    given = parser.parse_args()
    sets = {name: pr.datasets.load(name) for name in given.data}
    found = {(m, name): judge(data, m) for name, data in sets.items() for m in given.models}
    for title, (key, spec) in FIGURES.items():
        print(f"## {title}\n\n| | {' | '.join(sets)} |\n|{' --- |' * (len(sets) + 1)}")
        for m in given.models:
            print(f"| {m} | {' | '.join(format(found[m, name][key], spec) for name in sets)} |")
        print()


if __name__ == "__main__":
    main()
