"""
What would change the decision
==============================

For whoever is refused: the smallest change that leads to approval, found by exact search over all combinations of
what may change. What is protected or fixed stays as it is. Each arrow is one refused applicant, from the probability
now to the one after the change.
"""

from collections import Counter

import matplotlib.pyplot as plt

import plainrisk as pr

german = pr.datasets.load("german", backend="polars")
model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
print(model.what_if(german.frame[1]))

# %%
# The first forty of the refused: the chance of a good end before and after. The cut-off of this schema is 60%.
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
# What would have to change, most often:
changed = Counter(part.split(":")[0] for changes in table["changes"] if changes for part in changes.split("; "))
for feature, times in changed.most_common():
    print(f"{times:3} {feature}")
