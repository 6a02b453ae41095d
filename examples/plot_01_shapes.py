"""
What a feature does
===================

The shape of a feature says what each of its values adds to the probability, against the average applicant. The
direction of the bureau score was stated, so the probability of default can only fall along it; code -9, "no record",
stands apart, with an effect of its own.
"""

import plainrisk as pr

credit = pr.datasets.make_credit(5_000, seed=1)
model = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
model.overview().plot("bureau_score")

# %%
# The purpose of the loan is a category without an order.
model.overview().plot("purpose")

# %%
# The same in numbers: how many percentage points one step adds. Behind bands there is one number per band, the same
# for everybody whose probability lies in it; there is no "it depends" inside a band.
for row in model.effects().of("purpose"):
    print(f"{row.change:32}", *(f"{100 * points:+6.2f}" for points in row.by_band))
