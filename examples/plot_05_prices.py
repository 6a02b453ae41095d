"""
What each direction costs
=========================

A direction is knowledge that the data do not contain, and it may cost accuracy. ``pr.prices`` refits the model without
each direction and compares the predictions for held-out rows. Here, one direction is wrong on purpose: more late
payments, lower risk.
"""

import matplotlib.pyplot as plt

import plainrisk as pr

credit = pr.datasets.make_credit(3_000, seed=1)
schema = credit.schema.select(["bureau_score", "late_payments", "utilization", "income"])
wrong = schema.edit("late_payments", direction="decreasing")
prices = pr.prices(pr.make_classifier("ARM1", wrong), credit.frame, credit.target)

lines = [price for price in prices if price.kind == "direction"]
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for y, line in enumerate(lines):
    loss = line.log_loss
    color = "#D55E00" if line.clear and loss.estimate > 0 else "#0072B2"
    ax.plot([loss.low, loss.high], [y, y], color=color, linewidth=3, solid_capstyle="round")
    ax.plot(loss.estimate, y, "o", color=color)
ax.axvline(0, color="#333333", linewidth=0.8)
ax.set_yticks(range(len(lines)), [line.what for line in lines])
ax.set_xlabel("log loss added on held-out rows (95% intervals)")

# %%
# Only the wrong direction costs more than chance explains; the true ones cost nothing or help.
print(prices)
