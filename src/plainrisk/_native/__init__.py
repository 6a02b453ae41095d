"""Loops over rows, in C where a compiler was there at installation, else in numpy.

Both give the same numbers to the last bit, since every sum adds its rows in the same order; only the logistic pass,
sums by pairs and steps may differ by rounding, and so may minima: what `minimise_in_box` and `minimise_logistic` leave
undone, `plainrisk.solve` does in its own way. The compiled loops leave the interpreter to others while they run, so
threads can work side by side.
``PLAINRISK_KERNELS=numpy`` in the environment turns them off.
"""

from plainrisk._native.box import BoxMinimum, minimise_in_box
from plainrisk._native.cells import (
    add_places,
    cell_counts,
    cell_sums,
    list_cells,
    occupied_cells,
    pack_seen,
    recode,
    small_codes,
)
from plainrisk._native.choice import COMPILED
from plainrisk._native.codes import Term, add_scores, code_numbers, is_readable
from plainrisk._native.dealing import fold_counts, fold_order, shuffle
from plainrisk._native.fold_trees import fold_cuts
from plainrisk._native.levels import LevelMap
from plainrisk._native.logistic import LogisticSums, curvatures, dense_newton, logistic_sums, look_up_risks
from plainrisk._native.newton import Problem, Settled, minimise_logistic
from plainrisk._native.numbers import Coded, Numbers
from plainrisk._native.pairs import Blocks, add_pair_sums, block_sums, table_room
from plainrisk._native.reading import code_singles, count_codes, read_levels, rule_of
from plainrisk._native.sampling import sample_rows
from plainrisk._native.steps import BlockHessian, block_step
from plainrisk._native.sums import level_sums, look_up
from plainrisk._native.tree import tree_cuts

__all__ = [
    "COMPILED",
    "BlockHessian",
    "Blocks",
    "BoxMinimum",
    "Coded",
    "LevelMap",
    "LogisticSums",
    "Numbers",
    "Problem",
    "Settled",
    "Term",
    "add_pair_sums",
    "add_places",
    "add_scores",
    "block_step",
    "block_sums",
    "cell_counts",
    "cell_sums",
    "code_numbers",
    "code_singles",
    "count_codes",
    "curvatures",
    "dense_newton",
    "fold_counts",
    "fold_cuts",
    "fold_order",
    "is_readable",
    "level_sums",
    "list_cells",
    "logistic_sums",
    "look_up",
    "look_up_risks",
    "minimise_in_box",
    "minimise_logistic",
    "occupied_cells",
    "pack_seen",
    "read_levels",
    "recode",
    "rule_of",
    "sample_rows",
    "shuffle",
    "small_codes",
    "table_room",
    "tree_cuts",
]
