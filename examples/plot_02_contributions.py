"""
What makes up one probability
=============================

The way from the typical applicant to this one. Every step is a piece of the probability, and the pieces add up to it:
nothing is left over, and nothing has to be turned from log odds into something that people understand.
"""

import plainrisk as pr

german = pr.datasets.load("german")
model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
explained = model.explain(german.frame)
explained.plot(1)

# %%
# German credit predicts the good end, so pieces to the left count against this applicant. The sum, to the last bit:
row = 1
print(f"{explained.constant[row]:.6f} + {explained.contributions[row].sum():+.6f} = {explained.risk[row]:.6f}")

# %%
# Which features matter over all applicants: the mean size of their contributions.
model.overview().plot_importance()
