"""What moving each statistical choice tenfold does, on three synthetic designs; written into docs/choices.md.

    python scripts/choices.py            # a minute or two; prints the table
    python scripts/choices.py --write    # and puts it into docs/choices.md

A figure is what the model's expected log loss exceeds that of the true risks by, times 10,000, over all seeds.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import plainrisk as pr
import plainrisk.fit
from plainrisk.fit import choices

PAGE = Path(__file__).resolve().parents[1] / "docs" / "choices.md"
START, END = "<!-- table: written by scripts/choices.py -->", "<!-- end of table -->"
SEEDS = range(3)
ROWS_TO_JUDGE = 20_000
SETTINGS: dict[str, Any] = {}  # parameters of all models; the tolerance is one

# The choices, with the least and the greatest value that each can be moved to.
MOVED: dict[str, tuple[Any, Any]] = {
    "FEW_BINS": (2, 80),
    "FINE_BINS": (20, 2000),
    "BLUR": (1e-7, 1e-5),
    "TAIL": (0.004, 0.4),
    "SPREAD": (0.01, 1.0),
    "APART": (0.2, 20.0),
    "PRECISIONS": (tuple(p / 10 for p in choices.PRECISIONS), tuple(p * 10 for p in choices.PRECISIONS)),
    "POSITIVE": (choices.POSITIVE / 10, choices.POSITIVE * 10),
    "CELLS": (2, 16),  # eighty would take hours
    "MOST_PAIRS": (3, 300),
    "TOLERANCE": (5e-6, 5e-4),
    "BANDS": (1e-5, 1e-3),
    "LINK": (1.0, 100.0),
    "FLOOR_SHARE": (0.001, 0.1),
    "FLOOR_ROWS": (5, 500),
}


def jumps(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Steps, a jump in the outermost hundredth, round amounts that matter, a curve."""
    amount = np.where(rng.random(n) < 0.5, rng.integers(1, 40, n) * 1000.0, rng.uniform(1000, 40000, n).round())
    frame = pd.DataFrame({"amount": amount, **{f"x{j}": rng.lognormal(0, 1, n) for j in range(4)}})
    score = -2 + 1.2 * (amount % 5000 == 0) + 5.0 * (frame.x0 > np.exp(2.326)) + 0.8 * np.log(frame.x1)
    return frame, np.asarray(score + 1.2 * (frame.x2 > 1) - 0.25 * np.log(frame.x3) ** 2)


def interacting(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Features that add up, three pairs that do not, and twelve features of noise."""
    X = rng.standard_normal((n, 20))
    X[:, 5], X[:, 6] = np.exp(X[:, 5]), rng.integers(0, 12, n)
    score = -2 + 0.7 * X[:, 0] - 0.5 * X[:, 1] + 0.4 * X[:, 2] + 0.8 * (X[:, 3] > 0.5) + 0.5 * np.tanh(X[:, 4])
    score += (
        0.5 * X[:, 0] * X[:, 1] + 1.5 * ((X[:, 3] > 0.5) & (X[:, 5] > 2)) + 0.8 * ((X[:, 6] > 6) & (X[:, 7] < -0.5))
    )
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(20)]), score


def excess(truth: np.ndarray, risk: np.ndarray) -> float:
    """Return what the expected log loss of risks exceeds that of the true ones by."""
    risk = np.clip(risk, 1e-9, 1 - 1e-9)
    return float(np.mean(truth * np.log(truth / risk) + (1 - truth) * np.log((1 - truth) / (1 - risk))))


def judged(design: Callable[[int, np.random.Generator], Any], n: int, **settings: Any) -> float:
    """Return the mean excess of models fitted to draws of a design."""
    found = []
    test, score = design(ROWS_TO_JUDGE, np.random.default_rng(10**6))
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        frame, own = design(n, rng)
        target = (rng.random(n) < expit(own)).astype(int)
        model = pr.AdditiveRiskModel(shapes="smooth", link="bands", **settings, **SETTINGS).fit(frame, target)
        found.append(excess(expit(score), model.predict_proba(test)[:, 1]))
    return float(np.mean(found))


def few_rows() -> float:
    """Return the mean excess on 300 synthetic applications."""
    test = pr.datasets.make_credit(ROWS_TO_JUDGE, seed=10**6)
    found = []
    for seed in SEEDS:
        credit = pr.datasets.make_credit(300, seed=seed)
        model = pr.make_classifier("SmoothARM1", credit.schema, **SETTINGS).fit(credit.frame, credit.target)
        found.append(excess(test.truth, model.predict_proba(test.frame)[:, 1]))
    return float(np.mean(found))


DESIGNS: dict[str, Callable[[], float]] = {
    "jumps, 5,000 rows": lambda: judged(jumps, 5000),
    "make_credit, 300 rows": few_rows,
    "pairs, 5,000 rows": lambda: judged(interacting, 5000, pairs="auto"),
}


@contextmanager
def moved(name: str, value: Any) -> Iterator[None]:
    """Give a choice another value, in every module that has it."""
    names = [f"plainrisk.fit.{found.name}" for found in pkgutil.iter_modules(plainrisk.fit.__path__)]
    own = [module for module in map(importlib.import_module, names) if hasattr(module, name)]
    before = getattr(choices, name)
    for module in own:
        setattr(module, name, value)
    if name == "TOLERANCE":
        SETTINGS["tolerance"] = value
    try:
        yield
    finally:
        SETTINGS.clear()
        for module in own:
            setattr(module, name, before)


def written(value: Any) -> str:
    """Return a value as the table shows it."""
    return f"{value[0]:g} to {value[-1]:g}" if isinstance(value, tuple) else f"{value:.3g}"


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| choice | value | tenth, tenfold | {' | '.join(DESIGNS)} |"
    yield "| --- | --- | --- |" + " --- |" * len(DESIGNS)
    base = [judge() for judge in DESIGNS.values()]
    yield "| as they are | | | " + " | ".join(f"{1e4 * one:.0f}" for one in base) + " |"
    for name, ends in MOVED.items():
        found = []
        for value in ends:
            with moved(name, value):
                found.append([judge() for judge in DESIGNS.values()])
        cells = [
            f"{1e4 * (low - own):+.0f}, {1e4 * (high - own):+.0f}" for low, high, own in zip(*found, base, strict=True)
        ]
        value = written(getattr(choices, name))
        yield f"| `{name}` | {value} | {written(ends[0])}, {written(ends[1])} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table; put it into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/choices.md")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for line in table():
        print(line, flush=True)
        lines.append(line)
    if wanted.write:
        text = PAGE.read_text()
        before, rest = text.split(START)
        PAGE.write_text("\n".join([before + START, *lines, END + rest.split(END)[1]]))


if __name__ == "__main__":
    main()
