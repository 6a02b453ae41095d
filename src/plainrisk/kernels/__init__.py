"""Loops over rows, in C where a compiler was there at installation, else in numpy.

Both give the same numbers to the last bit, since every sum adds its rows in the same order; only the logistic pass,
sums by pairs and steps may differ by rounding, and so may minima: what `minimise_in_box` and `minimise_logistic` leave
undone, `plainrisk.solve` does in its own way. The compiled loops leave the interpreter to others while they run, so
threads can work side by side.
``PLAINRISK_KERNELS=numpy`` in the environment turns them off.
"""

from plainrisk.kernels.box import BoxMinimum, minimise_in_box
from plainrisk.kernels.cells import (
    add_places,
    cell_counts,
    cell_sums,
    list_cells,
    occupied_cells,
    pack_seen,
    recode,
    small_codes,
)
from plainrisk.kernels.choice import COMPILED
from plainrisk.kernels.dealing import fold_counts, fold_order, shuffle
from plainrisk.kernels.fold_trees import fold_cuts
from plainrisk.kernels.levels import LevelMap
from plainrisk.kernels.logistic import LogisticSums, curvatures, dense_newton, logistic_sums, look_up_risks
from plainrisk.kernels.newton import Problem, Settled, minimise_logistic
from plainrisk.kernels.numbers import Coded, Numbers
from plainrisk.kernels.pairs import Blocks, add_pair_sums, block_sums, table_room
from plainrisk.kernels.reading import code_singles, count_codes, read_levels, rule_of
from plainrisk.kernels.sampling import sample_rows
from plainrisk.kernels.scores import Chain, Plan, Ramp, add_chains
from plainrisk.kernels.steps import BlockHessian, block_step
from plainrisk.kernels.sums import level_sums, look_up
from plainrisk.kernels.text import text_codes
from plainrisk.kernels.tree import tree_cuts

__all__ = [
    "COMPILED",
    "BlockHessian",
    "Blocks",
    "BoxMinimum",
    "Chain",
    "Coded",
    "LevelMap",
    "LogisticSums",
    "Numbers",
    "Plan",
    "Problem",
    "Ramp",
    "Settled",
    "add_chains",
    "add_pair_sums",
    "add_places",
    "block_step",
    "block_sums",
    "cell_counts",
    "cell_sums",
    "code_singles",
    "count_codes",
    "curvatures",
    "dense_newton",
    "fold_counts",
    "fold_cuts",
    "fold_order",
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
    "text_codes",
    "tree_cuts",
]
