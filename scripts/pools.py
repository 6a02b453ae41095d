"""Compare ways to combine experts of subscales, with and without calibration: the figures in docs/results/mixtures.md.

    PLAINRISK_DATA=folder python scripts/pools.py [--data heloc german]

Stratified folds, shuffled with seed 0: ten, or three for more than 20,000 rows. One ARM1 per subscale, true base rate.
AUC is the mean over the folds; ECE (15 equal bins) and log loss are for all held-out predictions together.
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np
from scipy.special import expit

import plainrisk as pr
from plainrisk._types import Floats
from plainrisk.fit.bands import ScoreSums, calibrating_bands, log_odds
from plainrisk.fit.splits import stratified_folds
from plainrisk.solve.hedge import hedge_weights, row_losses

DATA = ("german", "heloc", "gmsc", "taiwan")


def weightings(losses: Floats, mixture: Any) -> dict[str, Floats]:
    """Return weights of the experts by several rules, from their losses row by row."""
    n, k = losses.shape
    eta = 8.0 * math.log(k) / n
    found = {
        "linear, the paper's rate": np.array(list(mixture.weights_.values())),
        "linear, the classical rate": hedge_weights(losses.sum(axis=0), math.sqrt(8.0 * math.log(k) / n)),
        "linear, equal weights": np.full(k, 1.0 / k),
    }
    for kept in (0.999, 0.99):  # of a loss after one more row
        share = kept ** np.arange(n)[::-1]
        found[f"linear, losses discounted by {kept}"] = hedge_weights(share @ losses / share.sum() * n, eta)
    return found


def pools(data: Any, train: Floats, test: Floats) -> dict[str, Floats]:
    """Return the held-out risks of every pool fitted to some rows, as it is and calibrated."""
    frame, y = data.frame, data.target
    mixture = pr.SubscaleMixture(pr.AdditiveRiskModel(), data.schema).fit(frame.filter(train), y[train])
    seen, new = (mixture.form_.part_risks(frame.filter(rows)) for rows in (train, test))
    weights = weightings(row_losses(seen, y[train]), mixture)
    both = {name: (seen @ w, new @ w) for name, w in weights.items()}
    paper = weights["linear, the paper's rate"]
    both["logarithmic, the paper's rate"] = (expit(log_odds(seen) @ paper), expit(log_odds(new) @ paper))
    degrees = math.fsum(w * e.degrees for w, e in zip(paper, mixture.experts_.values(), strict=True))
    found = {}
    for name, (before, after) in both.items():
        line = calibrating_bands(ScoreSums.of(log_odds(before), None, y[train].astype(float)), degrees)
        found |= {name: after, f"{name}, calibrated": line.value(after)}
    return found


def judge(name: str) -> dict[str, tuple[float, float, float]]:
    """Return AUC, ECE and log loss of every pool on one data set."""
    data = pr.datasets.load(name, backend="polars")
    y = data.target
    n = 3 if len(y) > 20_000 else 10
    folds, held_out = stratified_folds(y, n), {}
    for fold in range(n):
        for pool, risk in pools(data, folds != fold, folds == fold).items():
            held_out.setdefault(pool, np.zeros(len(y)))[folds == fold] = risk
    metrics = pr.metrics
    return {
        pool: (
            float(np.mean([metrics.roc_auc(y[folds == k], risk[folds == k]) for k in range(n)])),
            metrics.expected_calibration_error(y, risk),
            metrics.log_loss(y, risk, clip=1e-12),
        )
        for pool, risk in held_out.items()
    }


def main() -> None:
    """Judge the pools and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
        figures = {name: judge(name) for name in given.data}
    print(f"| AUC / ECE / log loss | {' | '.join(figures)} |\n| --- |{' --- |' * len(figures)}")
    for pool in next(iter(figures.values())):
        cells = (" / ".join(f"{value:.4f}" for value in found[pool]) for found in figures.values())
        print(f"| {pool} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
