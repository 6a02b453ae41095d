"""Loops over rows, in C where a compiler was there at installation, else in numpy.

Both give the same numbers to the last bit: every sum adds its rows in the same order. The compiled ones leave the
interpreter to others while they run, so threads can work side by side. ``PLAINRISK_KERNELS=numpy`` in the environment
turns them off.
"""

from plainrisk.kernels.choice import COMPILED
from plainrisk.kernels.sums import level_sums, look_up, pair_sums

__all__ = ["COMPILED", "level_sums", "look_up", "pair_sums"]
