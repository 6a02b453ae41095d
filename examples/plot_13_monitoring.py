"""
Monitor a model by month
========================

These are six months of new applications. From the fourth month on, applicants use more of their credit lines. In the
last month, more of them default than their features explain.
"""

import numpy as np
import polars as pl

import plainrisk as pr

credit = pr.datasets.make_credit(10_000, seed=1, backend="polars")
train, later = credit.frame[:4_000], credit.frame[4_000:]
model = pr.make_classifier("SmoothARM1", credit.schema).fit(train, credit.target[:4_000])

month = np.repeat(np.arange(1, 7), 1_000)
usage = pl.Series(later["utilization"].to_numpy() + 0.05 * np.clip(month - 3, 0, 3))
later = later.with_columns(usage.alias("utilization"), pl.Series("month", [f"2026-{m:02d}" for m in month]))
rng = np.random.default_rng(0)
bad = np.maximum(credit.target[4_000:], (month == 6) & (rng.random(6_000) < 0.1)).astype(int)

# %%
# AUC, calibration, approvals and shifts by month, with intervals.
periods = pr.periods(model, later, bad, time="month", cutoff=0.2)
periods.plot()

# %%
# The last month compared with the limits in the model's policy. A limit counts as crossed only if chance does not
# explain it.
june = later.filter(pl.col("month") == "2026-06")
print(pr.monitor(model, june, bad[month == 6], cutoff=0.2))

# %%
# Which features have shifted since training. This needs no old rows, because the model file has their counts.
model.drift(june).plot()
