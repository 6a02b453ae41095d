"""
A mixture of experts, and its weights
=====================================

A committee judges by subscale: credit history, ability to pay, stability. A mixture fits one model, an expert, to each
subscale, and Hedge weights the experts by their losses. The probability is the weighted mean of the experts'
probabilities.
"""

import plainrisk as pr

credit = pr.datasets.make_credit(5_000, seed=1, backend="polars")
model = pr.make_classifier("MixARM1", credit.schema).fit(credit.frame, credit.target)
print({name: round(weight, 3) for name, weight in model.weights_.items()})
model.plot_weights(credit.frame, credit.target)

# %%
# How the weights change as rows are added. The final weights depend on the experts' losses and not on the order of the
# rows. The regret is how far the mixture falls behind the best expert; no order of the rows exceeds its bound:
regret = model.fit_record_.regret
print(f"regret {regret.least:.1f} to {regret.greatest:.1f}, bound {regret.bound:.1f}")

# %%
# One applicant: each subscale adds its weight times its expert's probability.
model.explain(credit.frame[:1]).plot(0, kind="bars")
