"""From rows to small integers: bins, categories, columns, packs and cells."""

from plainrisk.encode.accumulate import LevelFinder, find_levels
from plainrisk.encode.cells import Cells, cells_of, collapse
from plainrisk.encode.columns import Columns, feature_columns
from plainrisk.encode.counts import level_counts
from plainrisk.encode.learn import Criterion, learn_levels, line_levels
from plainrisk.encode.packs import Pack, pack_codes, pack_limit

__all__ = [
    "Cells",
    "Columns",
    "Criterion",
    "LevelFinder",
    "Pack",
    "cells_of",
    "collapse",
    "feature_columns",
    "find_levels",
    "learn_levels",
    "level_counts",
    "line_levels",
    "pack_codes",
    "pack_limit",
]
