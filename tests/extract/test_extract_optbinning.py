"""Scorecards of optbinning, read as forms: their probabilities again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import plainrisk as pr

optbinning = pytest.importorskip("optbinning", reason="optbinning is not installed: it needs ortools, which is large")


pytestmark = pytest.mark.filterwarnings("ignore")  # its own, of libraries newer than it


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    n = 1500
    frame = pd.DataFrame({"age": rng.integers(18, 75, n).astype(float), "debt": rng.gamma(2.0, 1.0, n).round(2)})
    frame["job"] = rng.choice(["clerk", "miner", "baker", "smith"], n)
    frame.loc[::11, "debt"] = np.nan
    frame.loc[::17, "age"] = -9.0
    score = 0.6 * frame["debt"].fillna(1.0) - 0.04 * frame["age"] + (frame["job"] == "miner")
    return frame, (rng.uniform(size=n) < 1 / (1 + np.exp(-score))).astype(int).to_numpy()


@pytest.mark.parametrize("metric", [0, "empirical"])
def test_a_scorecard_keeps_its_probabilities(rows, metric):
    frame, bad = rows
    process = optbinning.BinningProcess(list(frame), categorical_variables=["job"], special_codes=[-9.0])
    card = optbinning.Scorecard(binning_process=process, estimator=LogisticRegression())
    card.fit(frame, bad, metric_special=metric, metric_missing=metric)
    model = pr.RiskModel.from_fitted(card, frame, y=bad)
    odd = frame.copy()
    odd["job"] = ["sailor", *frame["job"][1:]]
    splits = card.binning_process_.get_binned_variable("age").splits.tolist()
    odd["age"] = [*splits, *frame["age"][len(splits) :]]  # values on edges
    for given in (frame, odd):
        found = model.predict_proba(given)[:, 1]
        np.testing.assert_allclose(found, card.predict_proba(given)[:, 1], rtol=0, atol=1e-12)
    assert model.scorecard().rows
    assert pr.linearise(card, frame).clipped_ < 0.2
