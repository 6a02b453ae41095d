"""
What makes up one probability
=============================

These steps lead from the typical applicant to this one. Every step is a part of the probability, and the parts add up
to it exactly, so nobody has to translate log odds.
"""

import plainrisk as pr

german = pr.datasets.load("german")
model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
explained = model.explain(german.frame)
explained.plot(1)

# %%
# The German credit model predicts repayment, so bars to the left count against this applicant. The contributions sum to
# the probability:
row = 1
print(f"{explained.constant[row]:.6f} + {explained.contributions[row].sum():+.6f} = {explained.risk[row]:.6f}")

# %%
# Which features matter over all applicants: the mean size of their contributions.
model.overview().plot_importance()
