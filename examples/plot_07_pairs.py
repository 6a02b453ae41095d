"""
Two features that interact
==========================

A large loan is risky if income is low, but not if it is high. No sum of two shapes can represent this; a pair can.
``pairs="auto"`` adds the pairs that the rows support. The direction of each feature still holds in every row and column
of the table.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import plainrisk as pr

rng = np.random.default_rng(1)
n = 8_000
rows = pl.DataFrame({"income": rng.uniform(10, 90, n), "amount": rng.uniform(1, 40, n), "age": rng.uniform(20, 70, n)})
truth = -2.5 + 0.09 * rows["amount"].to_numpy() * (rows["income"].to_numpy() < 40)
bad = (rng.random(n) < 1 / (1 + np.exp(-truth))).astype(int)
schema = pr.Schema(
    features={
        "income": {"direction": "decreasing", "unit": "thousand a year"},
        "amount": {"direction": "increasing", "unit": "thousand"},
        "age": {},
    }
)
alone = pr.make_classifier("SmoothARM1", schema).fit(rows, bad)
paired = pr.make_classifier("SmoothARM1", schema, pairs="auto").fit(rows, bad)
print("pairs found:", [pair.features for pair in paired.form_.parts[0].pairs], "- certified:", paired.certify().valid)

# %%
# The probability by both features: without the pair, with the pair, and the truth.
income, amount = np.meshgrid(np.linspace(10, 90, 60), np.linspace(1, 40, 60))
grid = pl.DataFrame({"income": income.ravel(), "amount": amount.ravel(), "age": np.full(income.size, 45.0)})
known = 1 / (1 + np.exp(2.5 - 0.09 * amount * (income < 40)))
panels = {
    "without pairs": alone.predict_proba(grid)[:, 1].reshape(income.shape),
    "with the pair": paired.predict_proba(grid)[:, 1].reshape(income.shape),
    "the truth": known,
}
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.2), sharey=True, layout="constrained")
for ax, (title, risk) in zip(axes, panels.items(), strict=True):
    drawn = ax.pcolormesh(income, amount, risk, cmap="cividis", vmin=0, vmax=0.8)
    ax.set(title=title, xlabel="income")
axes[0].set_ylabel("amount of the loan")
fig.colorbar(drawn, ax=axes, label="probability of default", format="{x:.0%}")
