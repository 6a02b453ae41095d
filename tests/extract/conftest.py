from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

CATEGORIES = ("MaxDelq2PublicRecLast12M", "MaxDelqEver")


@dataclass(frozen=True)
class Rows:
    """Rows with outcomes; `numbers` are the numeric columns without missing values."""

    X: pd.DataFrame
    y: np.ndarray

    @property
    def numbers(self) -> pd.DataFrame:
        return self.X[["age", "income", "delays"]]


@pytest.fixture(scope="session")
def credit() -> Rows:
    """Six hundred made-up applicants; `debt` and `job` are missing now and then."""
    rng = np.random.default_rng(20240229)
    n = 600
    X = pd.DataFrame(
        {
            "age": rng.uniform(18, 80, n).round(1),
            "income": rng.lognormal(8, 0.6, n),
            "delays": rng.poisson(0.8, n).astype(float),
            "debt": np.where(rng.random(n) < 0.15, np.nan, rng.exponential(900, n)),
            "job": rng.choice(["clerk", "miner", "baker"], n),
            "region": rng.integers(1, 5, n),
        }
    )
    score = 0.6 * X.delays - 0.03 * (X.age - 45) + 0.0003 * X.debt.fillna(1500) + (X.job == "miner") - 0.8
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    return Rows(X, y.to_numpy())


@pytest.fixture(scope="session")
def heloc(data_folder) -> Rows:
    """The real credit data: 23 features, special values -7 to -9 among them."""
    path = data_folder / "heloc.csv.gz"
    if not path.is_file():
        pytest.skip("no heloc.csv.gz in the data folder")
    X = pd.read_csv(path)
    y = (X.pop("RiskPerformance") == "Bad").to_numpy().astype(int)
    return Rows(X.astype(float), y)


@pytest.fixture(scope="session")
def far(heloc) -> pd.DataFrame:
    """Rows far outside the range of the data, and between its whole numbers."""
    rng = np.random.default_rng(5)
    rows = heloc.X.sample(500, random_state=5).reset_index(drop=True)
    return rows + 3 * heloc.X.std().to_numpy() * rng.normal(size=rows.shape)
