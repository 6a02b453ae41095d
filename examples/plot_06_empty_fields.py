"""
Empty fields and codes, by rule
===============================

An applicant who leaves a field empty should not do better than one who fills it in honestly, whatever the data say. In
these rows, applicants without a bureau record (code -9) default rarely. Four rules in the schema limit the effect of
that code.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import plainrisk as pr

credit = pr.datasets.make_credit(4_000, seed=3, backend="polars")
none = credit.frame["bureau_score"].to_numpy() == -9
rng = np.random.default_rng(0)
bad = np.where(none, rng.random(4_000) < 0.01, credit.target == 1).astype(int)  # hardly anyone of them defaults

grid = np.arange(450, 801, 2)
one = credit.frame.filter(pl.col("bureau_score") > 0).head(1)
rows = pl.concat([one.with_columns(bureau_score=pl.lit(int(score), dtype=pl.Int32)) for score in (*grid, -9)])
fig, axes = plt.subplots(1, 4, figsize=(9.5, 3), sharey=True, layout="constrained")
for ax, rule in zip(axes, ("free", "not_better", "neutral", "worst"), strict=True):
    schema = credit.schema.edit("bureau_score", special_rules={-9: rule})
    risk = pr.make_classifier("SmoothARM1", schema).fit(credit.frame, bad).predict_proba(rows)[:, 1]
    ax.plot(grid, risk[:-1], color="#0072B2", label="measured scores")
    ax.axhline(risk[-1], color="#D55E00", linestyle="--", label="code -9: no record")
    ax.set(title=rule, xlabel="bureau score")
axes[0].set_ylabel("probability of default")
axes[-1].legend(fontsize=8)

# %%
# *free* follows the data: no record is better than every record. *not_better* makes it at most as good as the best
# score, *neutral* like the average, and *worst* like the worst. The certificate proves the stated rule:
schema = credit.schema.edit("bureau_score", special_rules={-9: "not_better"})
model = pr.make_classifier("SmoothARM1", schema).fit(credit.frame, bad)
print(next(check for check in model.certify().checks if "empty" in check.name))
