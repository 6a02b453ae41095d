"""How often credible intervals of risks hold the true risk, and how far precisions with directions are from the truth.

python scripts/coverage.py           # a minute; prints both tables, which docs/choices.md tells
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import expit

import plainrisk as pr
from plainrisk.solve import Layout, LogisticLoss, Rows, maximize_evidence
from plainrisk.solve.rows import Block

ROWS, TO_JUDGE, DRAWS = 1500, 400, 25
Shape = Callable[[np.ndarray], np.ndarray]

SHAPES: dict[str, Shape] = {
    "straight": lambda x: 0.8 * x,
    "jumps": lambda x: 1.5 * (x > 0.5) + 0.7 * (x > -1.0),
}


def covered(shape: Shape, direction: str, level: float = 0.9) -> tuple[float, float]:
    """Return the share of true risks inside their intervals, and the mean width of these."""
    inside, width = [], []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(ROWS + TO_JUDGE, 4))
        risk = expit(-1.5 + shape(X[:, 0]) + 0.6 * shape(X[:, 1]) + 0.3 * X[:, 2])
        y = (rng.random(len(X)) < risk).astype(int)
        frame = pd.DataFrame(X, columns=list("abcd"))
        schema = pr.Schema(features={name: {"direction": direction} for name in "ab"} | {"c": {}, "d": {}})
        model = pr.AdditiveRiskModel(shapes="smooth", link="logistic", schema=schema, intervals=True)
        found = model.fit(frame[:ROWS], y[:ROWS]).posterior().risk(frame[ROWS:], level=level)
        inside.append(np.mean((found.low <= risk[ROWS:]) & (risk[ROWS:] <= found.high)))
        width.append(np.mean(found.high - found.low))
    return float(np.mean(inside)), float(np.mean(width))


def half_normal_precisions(n_rows: int = 5000, features: int = 8, steps: int = 16) -> dict[float, np.ndarray]:
    """Return the precisions found, over the true one, of steps that are drawn from the half-normal prior."""
    found: dict[float, np.ndarray] = {}
    for truth in (3.0, 10.0, 30.0, 100.0, 300.0):
        ratios = []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            beta = np.abs(rng.normal(size=(features, steps))) / truth**0.5
            codes = rng.integers(0, steps + 1, size=(features, n_rows)).astype(np.uint8)
            steep = (np.arange(steps + 1)[:, None] > np.arange(steps)).astype(float)
            matrix = steep - steep.mean(axis=0)
            score = -1.5 + sum((matrix @ own)[code] for own, code in zip(beta, codes, strict=True))
            y = (rng.random(n_rows) < expit(score)).astype(np.uint8)
            loss = LogisticLoss(Layout((matrix,) * features), Rows([Block(tuple(codes), y)]))
            groups = np.repeat(np.arange(features), steps)
            evidence = maximize_evidence(loss, groups, lower=np.zeros(len(groups)))
            ratios.append(evidence.precision / truth)
        found[truth] = np.concatenate(ratios)
    return found


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    print("| truth | direction | 90% intervals cover | mean width |\n| --- | --- | --- | --- |")
    for name, shape in SHAPES.items():
        for direction in ("none", "increasing"):
            share, width = covered(shape, direction)
            print(f"| {name} | {direction} | {share:.0%} | {width:.3f} |", flush=True)
    print("\n| true precision | found / true: quartiles |\n| --- | --- |")
    for truth, ratios in half_normal_precisions().items():
        print(
            f"| {truth:g} | " + ", ".join(f"{q:.2f}" for q in np.quantile(ratios, [0.25, 0.5, 0.75])) + " |", flush=True
        )


if __name__ == "__main__":
    main()
