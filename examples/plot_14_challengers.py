"""
Compare with strong challengers
===============================

Before you defend a model, compare it with what others would have used. ``pr.evaluate`` accepts any classifier, or its
probabilities, as the other model, and compares both on the same held-out rows. ``pr.challengers`` does this in one
call, with folds.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

import plainrisk as pr

credit = pr.datasets.make_credit(6_000, seed=2, backend="pandas")
rows, bad = pd.get_dummies(credit.frame, dtype=float), credit.target  # rivals read numbers alone
train, test = slice(0, 4_000), slice(4_000, None)
ours = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame[train], bad[train])
rivals = {
    "logistic regression": make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=5_000)),
    "xgboost as it comes": XGBClassifier(n_jobs=1, random_state=0),
    "xgboost, slow and shallow": XGBClassifier(
        n_estimators=300, max_depth=2, learning_rate=0.05, n_jobs=1, random_state=0
    ),
}
measured = {}
for name, rival in rivals.items():
    risk = rival.fit(rows[train], bad[train]).predict_proba(rows[test])[:, 1]
    measured[name] = pr.evaluate(ours, credit.frame[test], bad[test], against=risk)
print(measured["xgboost, slow and shallow"])

# %%
# How far each rival is ahead or behind, with paired intervals. To the right of 0, the rival is better. These rows were
# drawn from an additive model, so an additive model has the advantage here. Where many features interact, boosted trees
# have it; the results on real data show both.
fig, axes = plt.subplots(1, 2, figsize=(9, 2.8), sharey=True, layout="constrained")
for ax, (figure, sign) in zip(axes, {"auc": -1, "log_loss": 1}.items(), strict=True):
    for y, found in enumerate(measured.values()):
        less = found.differences[figure]  # ours less the rival's
        ends = sorted((sign * less.low, sign * less.high))
        ax.plot(ends, [y, y], color="#0072B2", linewidth=3, solid_capstyle="round")
        ax.plot(sign * less.estimate, y, "o", color="#0072B2")
    ax.axvline(0, color="#333333", linewidth=0.8)
axes[0].set_yticks(range(len(measured)), list(measured))
axes[0].set_xlabel("AUC gained by the rival")
axes[1].set_xlabel("log loss saved by the rival")
