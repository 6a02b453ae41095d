"""
The effect of a feature
=======================

The shape of a feature shows what each of its values adds to the probability, compared with the average applicant. The
schema states a direction for the bureau score, so the probability of default can only fall as the score rises. Code -9,
"no record", has its own effect.
"""

import plainrisk as pr

credit = pr.datasets.make_credit(5_000, seed=1)
model = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
model.overview().plot("bureau_score")

# %%
# The purpose of the loan is a category without an order.
model.overview().plot("purpose")

# %%
# The same in numbers: how many percentage points one step adds. With bands, there is one number per band, which is the
# same for every applicant in that band.
for row in model.effects().of("purpose"):
    print(f"{row.change:32}", *(f"{100 * points:+6.2f}" for points in row.by_band))
