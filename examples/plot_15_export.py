"""
The same numbers in the database
================================

One SELECT returns the probability, every contribution, the decision and the reasons. Here DuckDB runs it on 5,000
applicants, and each number is compared with Python's.
"""

import tempfile
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np

import plainrisk as pr

credit = pr.datasets.make_credit(5_000, seed=1, backend="polars")
model = pr.make_classifier("SmoothARM1", credit.schema).fit(credit.frame, credit.target)
folder = Path(tempfile.mkdtemp())
model.export(folder / "score.sql", dialect="duckdb", table="applicants")
query = (folder / "score.sql").read_text()
print(f"{len(query.splitlines()):,} lines; its last ones:", *query.splitlines()[-3:], sep="\n")

# %%
# Run it, and compare.
applicants = credit.frame
answers = duckdb.sql(query).fetchnumpy()
pieces = [name for name in answers if name.startswith("part_")]
total = answers["typical_risk"] + sum(answers[name] for name in pieces)
risk = model.predict_proba(applicants)[:, 1]
print(f"{len(risk):,} applicants, {len(pieces)} contributions each")
print(f"largest difference between DuckDB and Python: {np.abs(answers['risk'] - risk).max():.0e}")
print(f"largest difference between a probability and the sum of its contributions: {np.abs(total - risk).max():.0e}")

fig, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
ax.plot(risk, answers["risk"], ".", color="#0072B2", markersize=2)
ax.set(xlabel="probability of default by Python", ylabel="probability of default by DuckDB", aspect="equal")

# %%
# Every export includes a test of 100 rows, which you can run wherever you install it.
print(pr.verify_export(folder / "score.sql", model))
