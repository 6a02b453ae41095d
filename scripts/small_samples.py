"""Few rows, jumps, exact values and noise: the figures under that heading of docs/choices.md.

python scripts/small_samples.py           # some minutes; prints the tables
python scripts/small_samples.py --draws 3 # fewer draws
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import roc_auc_score

import plainrisk as pr
from choices import excess

MONTHS = (36, 60, 84, 120)  # terms that matter, among all months
ROWS, TO_JUDGE, NOISE = 5000, 40_000, 100


def few_rows(rows: int, draws: int) -> float:
    """Return the mean AUC of the default model on other synthetic applications."""
    test = pr.datasets.make_credit(2 * TO_JUDGE, seed=10**6)
    found = []
    for seed in range(draws):
        credit = pr.datasets.make_credit(rows, seed=seed)
        model = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
        found.append(roc_auc_score(test.target, model.predict_proba(test.frame)[:, 1]))
    return float(np.mean(found))


def end_jump(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A jump of 5 log odds in the outermost hundredth of a feature."""
    x = rng.lognormal(0.0, 1.0, n)
    return pd.DataFrame({"x": x}), -2.0 + 5.0 * (x > np.exp(2.326))


def exact_values(n: int, rng: np.random.Generator, share: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Four terms that matter, which this share of the rows has, among all months."""
    exact = rng.random(n) < share
    term = np.where(exact, rng.choice(MONTHS, n), rng.integers(12, 181, n))
    return pd.DataFrame({"x": term.astype(float)}), -2.0 + 1.5 * np.isin(term, MONTHS)


DESIGNS = {
    "a jump of 5 in the outermost 1%": end_jump,
    "four exact terms, half of the rows": lambda n, rng: exact_values(n, rng, 0.5),
    "four exact terms, 12% of the rows": lambda n, rng: exact_values(n, rng, 0.1),
}


def resolved(name: str, others: bool, draws: int) -> float:
    """Return how far the mean expected log loss lies above that of the truth, alone or beside three more features."""

    def drawn(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
        frame, score = DESIGNS[name](n, rng)
        if others:
            more = rng.standard_normal((n, 3))  # one matters, two are noise
            frame, score = frame.join(pd.DataFrame(more, columns=list("abc"))), score + 0.5 * more[:, 0]
        return frame, score

    test, truth = drawn(TO_JUDGE, np.random.default_rng(10**6))
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        frame, score = drawn(ROWS, rng)
        model = pr.make_classifier("SmoothARM1").fit(frame, (rng.random(ROWS) < expit(score)).astype(int))
        found.append(excess(expit(truth), model.predict_proba(test)[:, 1]))
    return float(np.mean(found))


def noise(rows: int, draws: int) -> tuple[float, float]:
    """Return what features of noise beside those of make_credit cost, in log loss and AUC, without a schema."""
    test = pr.datasets.make_credit(TO_JUDGE, seed=10**6, backend="pandas")
    found = []
    for seed in range(draws):
        credit = pr.datasets.make_credit(rows, seed=seed, backend="pandas")
        risks = [
            pr.make_classifier("SmoothARM1").fit(change(credit.frame, seed), credit.target).predict_proba(other)[:, 1]
            for change, other in ((lambda frame, _: frame, test.frame), (beside_noise, beside_noise(test.frame, 10**6)))
        ]
        loss = [excess(test.truth, risk) for risk in risks]
        auc = [roc_auc_score(test.target, risk) for risk in risks]
        found.append((loss[1] - loss[0], auc[0] - auc[1]))
    return tuple(np.mean(found, axis=0).tolist())


def beside_noise(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return rows with features of noise."""
    values = np.random.default_rng(seed + 1).standard_normal((len(frame), NOISE))
    return pd.concat(
        [frame.reset_index(drop=True), pd.DataFrame(values, columns=[f"n{j}" for j in range(NOISE)])], axis=1
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10, help="of each design; twice as many of make_credit's few rows")
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    print("| make_credit, rows | AUC |\n| --- | --- |")
    for rows in (150, 200, 300):
        print(f"| {rows} | {few_rows(rows, 2 * draws):.3f} |", flush=True)
    print("\n| 5,000 rows | log loss above the truth's: alone | beside three features |\n| --- | --- | --- |")
    for name in DESIGNS:
        print(f"| {name} | {resolved(name, False, draws):.4f} | {resolved(name, True, draws):.4f} |", flush=True)
    print("\n| make_credit, rows | 100 features of noise cost: log loss | AUC |\n| --- | --- | --- |")
    for rows in (1000, 5000):
        loss, auc = noise(rows, max(draws // 2, 1))
        print(f"| {rows:,} | {loss:.4f} | {auc:.3f} |", flush=True)


if __name__ == "__main__":
    main()
