"""
A mixture of experts, and its weights
=====================================

A committee judges by subscale: what the bureau says, what the applicant can pay, how settled he is. A mixture fits
one model to each, and Hedge weighs them by their losses. The probability is the weighted mean of theirs.
"""

import plainrisk as pr

credit = pr.datasets.make_credit(5_000, seed=1, backend="polars")
model = pr.make_classifier("MixARM1", credit.schema).fit(credit.frame, credit.target)
print({name: round(weight, 3) for name, weight in model.weights_.items()})
model.plot_weights(credit.frame, credit.target)

# %%
# Where the weights go as rows are counted: the loss of each expert decides, in any order of the rows. How far the
# mixture fell behind the best expert, and the bound that no order of rows exceeds:
regret = model.fit_record_.regret
print(f"regret {regret.least:.1f} to {regret.greatest:.1f}, bound {regret.bound:.1f}")

# %%
# One applicant: each subscale adds its weight times its expert's probability.
model.explain(credit.frame[:1]).plot(0, kind="bars")
