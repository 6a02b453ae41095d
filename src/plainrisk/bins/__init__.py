"""From columns to levels and codes: histograms, bin edges, categories, contrasts, joint codes."""

from plainrisk.bins.coding import Contrast, JointCode, code_type, joint_codes, level_contrast, outside_contrast
from plainrisk.bins.learn import Criterion, LevelFinder

__all__ = [
    "Contrast",
    "Criterion",
    "JointCode",
    "LevelFinder",
    "code_type",
    "joint_codes",
    "level_contrast",
    "outside_contrast",
]
