"""From columns to levels and codes: histograms, bin edges, categories, contrasts, joint codes."""

from plainrisk.bins.coding import (
    Anchor,
    Contrast,
    JointCode,
    end_levels,
    joint_codes,
    level_anchors,
    level_contrast,
    outside_contrast,
    smooth_contrast,
)
from plainrisk.bins.learn import Criterion, LevelFinder, Limits
from plainrisk.bins.pairs import Axis, coarse_axis, pair_contrast, silent_cells

__all__ = [
    "Anchor",
    "Axis",
    "Contrast",
    "Criterion",
    "JointCode",
    "LevelFinder",
    "Limits",
    "coarse_axis",
    "end_levels",
    "joint_codes",
    "level_anchors",
    "level_contrast",
    "outside_contrast",
    "pair_contrast",
    "silent_cells",
    "smooth_contrast",
]
