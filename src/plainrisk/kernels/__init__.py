"""Loops over rows, in C where a compiler was there at installation, else in numpy.

Both give the same numbers to the last bit, since every sum adds its rows in the same order; only the logistic pass may
differ by rounding. The compiled ones leave the
interpreter to others while they run, so threads can work side by side. ``PLAINRISK_KERNELS=numpy`` in the environment
turns them off.
"""

from plainrisk.kernels.choice import COMPILED
from plainrisk.kernels.logistic import curvature, logistic_sums, loss_and_residual
from plainrisk.kernels.sums import level_sums, look_up, pair_sums

__all__ = ["COMPILED", "curvature", "level_sums", "logistic_sums", "look_up", "loss_and_residual", "pair_sums"]
