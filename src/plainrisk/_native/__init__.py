"""Loops over rows, in C if a compiler was available at installation, otherwise in numpy; each file contains both.

Both give the same numbers to the last bit, since every sum adds its rows in the same order; only the logistic pass may
differ by rounding. The compiled loops leave the interpreter to others while they run, so threads can share the work.
``PLAINRISK_KERNELS=numpy`` in the environment turns them off.
"""

from plainrisk._native.choice import COMPILED, kernels
from plainrisk._native.codes import Term, add_scores, code_numbers, code_type, is_readable
from plainrisk._native.sums import LogisticPass, level_sums, logistic_pass, look_up, pair_sums
from plainrisk._native.tree import tree_cuts

__all__ = [
    "COMPILED",
    "LogisticPass",
    "Term",
    "add_scores",
    "code_numbers",
    "code_type",
    "is_readable",
    "kernels",
    "level_sums",
    "logistic_pass",
    "look_up",
    "pair_sums",
    "tree_cuts",
]
