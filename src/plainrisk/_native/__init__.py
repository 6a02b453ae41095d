"""Loops over rows, in C where a compiler was there at installation, else in numpy; each file holds both.

Both give the same numbers to the last bit, since every sum adds its rows in the same order; only the logistic pass may
differ by rounding. The compiled loops leave the interpreter to others while they run, so threads can share the work.
``PLAINRISK_KERNELS=numpy`` in the environment turns them off.
"""

from plainrisk._native.cells import recode
from plainrisk._native.choice import COMPILED
from plainrisk._native.reading import code_singles, count_codes, read_levels, rule_of
from plainrisk._native.scores import Chain, Plan, Ramp, add_chains
from plainrisk._native.sums import LogisticPass, level_sums, logistic_pass, look_up, pair_sums
from plainrisk._native.text import text_codes
from plainrisk._native.tree import tree_cuts

__all__ = [
    "COMPILED",
    "Chain",
    "LogisticPass",
    "Plan",
    "Ramp",
    "add_chains",
    "code_singles",
    "count_codes",
    "level_sums",
    "logistic_pass",
    "look_up",
    "pair_sums",
    "read_levels",
    "recode",
    "rule_of",
    "text_codes",
    "tree_cuts",
]
