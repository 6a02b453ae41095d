"""
A certificate, and a search for a counterexample
================================================

A certificate is a proof from the model's tables, for every possible applicant. Here we search for a counterexample
anyway: 300 applicants, each with every utilization from 0 to 120%. Each thin line is one of them.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import plainrisk as pr

credit = pr.datasets.make_credit(800, seed=4, backend="polars")
stated = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
free = pr.make_classifier("XGB", credit.schema).fit(credit.frame, credit.target)
for check in stated.certify().checks:
    print("holds" if check.holds else "FAILS", check.name, "-", check.detail)

# %%
# On the left is the additive model with the stated direction, on the right are boosted trees without any direction.
grid = np.linspace(0, 1.2, 61)
people = credit.frame.head(300)
fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
for ax, model, title in zip(axes, (stated, free), ("SmoothARM1, certified", "boosted trees"), strict=True):
    tried = [model.predict_proba(people.with_columns(utilization=pl.lit(u)))[:, 1] for u in grid]
    lines = np.array(tried)  # (61, 300)
    wrong = (np.diff(lines, axis=0) < 0).any(axis=0)
    ax.plot(grid, lines[:, ~wrong], color="#0072B2", linewidth=0.4, alpha=0.5)
    ax.plot(grid, lines[:, wrong], color="#D55E00", linewidth=1)
    ax.set(title=f"{title}: {wrong.sum()} of 300\nare rewarded for using more", xlabel="utilization of credit lines")
axes[0].set_ylabel("probability of default")
