"""
Reasons and a letter
====================

Refused applicants get the principal reasons in words, the costliest first. Sex, age and foreign worker are protected in
this schema: the model may read them, but no letter ever names them.
"""

from collections import Counter

import matplotlib.pyplot as plt

import plainrisk as pr

german = pr.datasets.load("german", backend="polars")
model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
decided = model.decide(german.frame)
print(decided.letter(1))

# %%
# How often each reason is given first, and how often at all, in the letters to all refused applicants.
table = decided.to_frame()
refused = table.filter(table["decision"] == "refused")
first = Counter(refused["reason_1"])
named = Counter(word for k in range(1, 5) for word in refused[f"reason_{k}"] if word)
words = [word for word, _ in named.most_common()][::-1]
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.barh(words, [named[word] for word in words], color="#A6CBE3", label="one of the reasons")
ax.barh(words, [first[word] for word in words], color="#0072B2", label="the first reason")
ax.set_xlabel(f"letters, of {len(refused)} to refused applicants")
ax.legend(loc="lower right")
