"""
Bands, the sigmoid and the line
===============================

A sigmoid turns scores into probabilities at a different rate for every applicant. A single line has one rate, but gives
0% to all applicants below its lower end, and at real default rates these are many. Bands have one rate each. They are
almost as accurate as the sigmoid, and give nobody 0%.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

import plainrisk as pr

credit = pr.datasets.make_credit(20_000, seed=1, base_rate=0.06)
fit = {"X": credit.frame, "y": credit.target}
bands = pr.make_classifier("SmoothARM1", credit.schema).fit(**fit)
sigmoid = pr.make_classifier("SmoothARM1", credit.schema, link="logistic").fit(**fit)
line = pr.linearise(sigmoid, credit.frame)

link = bands.form_.last_link
score = np.linspace(-7.5, 3, 500)
fig, ax = plt.subplots(figsize=(7, 4.2))
ax.plot(score, expit(score), color="#8C8C8C", label="sigmoid")
ax.plot(score, np.clip(0.5 + score / (2 * pr.ALPHA_STAR), 0, 1), "--", color="#D55E00", label="best single line")
ax.plot(score, np.interp(score, link.knots, link.values), color="#0072B2", label=f"{len(link.knots) - 1} bands")
ax.plot(link.knots, link.values, "o", color="#0072B2", markersize=4)
ax.set(xlabel="score (log odds)", ylabel="probability of default", xlim=(-7.5, 3))
ax.legend(loc="upper left")

# %%
# For the 20,000 applicants: how many get exactly 0%, and the log loss. A single wrong 0% would make it infinite, so
# probabilities count as at least one in a million here.
for name, model in {"sigmoid": sigmoid, "best single line": line, "bands": bands}.items():
    risk = model.predict_proba(credit.frame)[:, 1]
    kept = np.clip(risk, 1e-6, 1 - 1e-6)
    loss = -np.mean(np.where(credit.target == 1, np.log(kept), np.log1p(-kept)))
    print(f"{name:17} {np.mean(risk == 0):6.1%} at exactly 0%, log loss {loss:.4f}")
