"""
What a feature does
===================

The shape of a feature says what each of its values adds to the probability, against the average applicant. The
direction of the bureau score was stated, so the risk can only fall along it; code -9, "no record", stands apart.
"""

import plainrisk as pr

credit = pr.datasets.make_credit(5_000, seed=1)
model = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
model.overview().plot("bureau_score")

# %%
# The purpose of the loan is a category without an order.
model.overview().plot("purpose")
