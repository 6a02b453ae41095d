"""
A scorecard
===========

Points per level that add up, from the same model: 600 points stand for odds of 50 good loans to one bad, and 20
points more double the odds.
"""

import matplotlib.pyplot as plt
import numpy as np

import plainrisk as pr

credit = pr.datasets.make_credit(6_000, seed=1, backend="polars")
model = pr.make_classifier("BandARM1", credit.schema).fit(credit.frame, credit.target)
card = model.scorecard(points=600, odds=50, pdo=20)
for row in card.rows[:14]:
    share = "" if row.bad_rate is None else f"{row.bad_rate:7.1%}"
    print(f"{row.feature:14} {row.level:22} {row.rows:6,.0f} rows {share:8} {row.points:4.0f} points")

# %%
# The distribution of points for good and bad loans, and odds that double every 20 points.
points = card.score(credit.frame)
bad = credit.target == 1
edges = np.arange(np.floor(points.min() / 10) * 10, points.max() + 10, 10)
good_rows, bad_rows = (np.histogram(points[rows], edges)[0] for rows in (~bad, bad))
middle, enough = (edges[:-1] + edges[1:]) / 2, (bad_rows >= 5) & (good_rows >= 5)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.hist([points[~bad], points[bad]], edges, stacked=True, color=["#A6CBE3", "#D55E00"], label=["good", "bad"])
left.set(xlabel="points", ylabel="applicants")
left.legend()
right.semilogy(middle[enough], (good_rows / np.maximum(bad_rows, 1))[enough], "o", color="#0072B2", label="observed")
right.semilogy(middle, 50 * 2 ** ((middle - 600) / 20), color="#8C8C8C", label="by the scorecard")
right.set(xlabel="points", ylabel="good loans per bad loan")
right.legend()
