"""From columns to levels and codes: histograms, bin edges, categories, contrasts, joint codes, joined tables."""

from plainrisk.bins.coding import (
    Contrast,
    GroupKind,
    JointCode,
    code_type,
    joint_codes,
    level_contrast,
    outside_contrast,
    smooth_contrast,
)
from plainrisk.bins.joining import best_runs, joined_scores, rows_within
from plainrisk.bins.learn import Criterion, LevelFinder
from plainrisk.bins.pairs import Axis, chance_level, coarse_axis, pair_contrast, pair_gain

__all__ = [
    "Axis",
    "Contrast",
    "Criterion",
    "GroupKind",
    "JointCode",
    "LevelFinder",
    "best_runs",
    "chance_level",
    "coarse_axis",
    "code_type",
    "joined_scores",
    "joint_codes",
    "level_contrast",
    "outside_contrast",
    "pair_contrast",
    "pair_gain",
    "rows_within",
    "smooth_contrast",
]
