"""
What would change the decision
==============================

For each refused applicant, an exact search over all combinations of allowed changes finds the smallest change that
leads to approval. Protected and fixed features do not change. Each arrow is one refused applicant: it leads from the
current probability to the one after the change.
"""

from collections import Counter

import matplotlib.pyplot as plt

import plainrisk as pr

german = pr.datasets.load("german", backend="polars")
model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
print(model.what_if(german.frame[1]))

# %%
# The first forty refused applicants: their probability of repayment before and after. This schema's cut-off is 60%.
refused = german.frame.filter(model.decide(german.frame).refused)[:40]
table = model.what_ifs(refused).to_frame().sort("risk")
fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for y, (before, after, reached) in enumerate(zip(table["risk"], table["new_risk"], table["reached"], strict=True)):
    if reached:
        ax.annotate("", (after, y), (before, y), arrowprops={"arrowstyle": "->", "color": "#009E73"})
    ax.plot(before, y, "o" if reached else "x", color="#D55E00", markersize=4)
ax.axvline(0.6, color="#333333", linewidth=0.8, linestyle="--")
ax.annotate("cut-off", (0.6, len(table)), ha="center", va="bottom")
ax.set(xlabel="probability that the loan is repaid", yticks=[], xlim=(0, 0.9), ylabel="applicants who were refused")

# %%
# The features that change most often:
changed = Counter(part.split(":")[0] for changes in table["changes"] if changes for part in changes.split("; "))
for feature, times in changed.most_common():
    print(f"{times:3} {feature}")
