"""The statistical choices of a fit: every number that decides what a model looks like, with its reason.

They were chosen on synthetic designs (docs/choices.md shows the effect of changing each of them tenfold). Numbers that
steer a solver, such as the longest step, are in the solver's file: they do not affect the optimum.
"""

from __future__ import annotations

from math import log

__all__ = [
    "APART",
    "BANDS",
    "BLUR",
    "CELLS",
    "FEW_BINS",
    "FINE_BINS",
    "FLOOR_ROWS",
    "FLOOR_SHARE",
    "LINK",
    "MOST_PAIRS",
    "POSITIVE",
    "PRECISIONS",
    "SPREAD",
    "TAIL",
    "TOLERANCE",
]

# The number of bins of a continuous feature at the start, and at most if its evidence supports finer ones, four times
# as many at a time.
FEW_BINS, FINE_BINS = 8, 200
# How much a few bins may blur a line, in mean log loss by feature; a feature that moves the score more gets twice as
# many bins.
BLUR = 1e-6
# The share of the rows on either side that is a tail, whose steps have a separate precision.
TAIL = 0.04
# The prior of tau^2, the variance of log precisions between features, and the variance of a tail's log precision about
# that of its feature's body: a factor of four either way is usual.
SPREAD, APART = 0.1, 2.0
# Bayes factors are averaged over these precisions: steps from 3 in log odds down to 0.01. From 3 on, odds are
# positive evidence (Kass and Raftery 1995).
PRECISIONS, POSITIVE = tuple(10.0 ** (power / 2.0) for power in range(-2, 5)), log(3.0)
# Coarse levels of a feature in a pair, and the largest number of pairs if the evidence chooses them.
CELLS, MOST_PAIRS = 8, 30
# The allowed cost of merging table rows, in mean log loss, unless the user states another.
TOLERANCE = 5e-5
# What a line of few pieces may cost compared with the curve it follows, in mean log loss, where the number is not
# given.
BANDS = 1e-4
# The correction of the sigmoid by the outcomes has at least this precision: slopes that differ from 1 by 0.3.
LINK = 10.0
# A row of a merged table has at least this share of the training rows, or this many of them.
FLOOR_SHARE, FLOOR_ROWS = 0.01, 50
