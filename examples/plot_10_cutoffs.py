"""
Where to put the cut-off
========================

What each cut-off approves, refuses and earns, on rows that the model has not seen. A bad loan costs five times what a
good loan earns.
"""

import matplotlib.pyplot as plt

import plainrisk as pr

credit = pr.datasets.make_credit(6_000, seed=1, backend="polars")
train, test = credit.frame[:4_000], credit.frame[4_000:]
model = pr.make_classifier("SmoothARM1", credit.schema).fit(train, credit.target[:4_000])
cutoffs = pr.cutoffs(model, test, credit.target[4_000:], cost_bad=5, gain_good=1)
cutoffs.plot()

# %%
# With 2,000 rows, the most profitable cut-off is partly luck, as the interval of the profit shows. With calibrated
# probabilities, a loan pays if its probability of default is below gain / (gain + cost), which is one in six here.
few = [cutoffs.at(cutoff=c / 100) for c in range(4, 41)]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
x = [one.cutoff for one in few]
ax.fill_between(
    x, [one.profit.low for one in few], [one.profit.high for one in few], color="#A6CBE3", label="95% interval"
)
ax.plot(x, [one.profit.estimate for one in few], color="#0072B2", label="profit")
ax.axvline(1 / 6, color="#333333", linestyle="--", linewidth=0.8, label="one in six")
ax.set(xlabel="cut-off", ylabel="profit, in gains of one good loan")
ax.xaxis.set_major_formatter("{x:.0%}")
ax.legend(loc="lower center")

# %%
# Or set a target: approve as many as possible, with at most 5% bad loans among the approved.
target = cutoffs.at(bad_rate=0.05)
print(
    f"cut-off {target.cutoff:.1%}: {target.approval.estimate:.1%} approved, {target.bad_rate.estimate:.1%} of them bad"
)
