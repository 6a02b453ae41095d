"""From columns to levels and codes: histograms, bin edges, categories, contrasts, joint codes, merged tables."""

from plainrisk.bins.anchors import end_levels, level_anchors
from plainrisk.bins.coding import (
    Anchor,
    Contrast,
    GroupKind,
    JointCode,
    code_type,
    joint_codes,
    level_contrast,
    outside_contrast,
    smooth_contrast,
)
from plainrisk.bins.learn import Criterion, LevelFinder
from plainrisk.bins.merging import best_runs, merged_scores, rows_within
from plainrisk.bins.pairs import Axis, coarse_axis, pair_contrast, silent_cells

__all__ = [
    "Anchor",
    "Axis",
    "Contrast",
    "Criterion",
    "GroupKind",
    "JointCode",
    "LevelFinder",
    "best_runs",
    "coarse_axis",
    "code_type",
    "end_levels",
    "joint_codes",
    "level_anchors",
    "level_contrast",
    "merged_scores",
    "outside_contrast",
    "pair_contrast",
    "rows_within",
    "silent_cells",
    "smooth_contrast",
]
