"""From rows to small integers: bins, categories, columns, packs and cells."""

from plainrisk.encode.accumulate import LevelFinder, find_levels
from plainrisk.encode.cells import Cells, cells_of, collapse, counted_cells
from plainrisk.encode.columns import Columns, feature_columns
from plainrisk.encode.counts import level_counts
from plainrisk.encode.learn import Criterion, given_levels, learn_bins, learn_levels, line_levels
from plainrisk.encode.packs import Pack, pack_codes, pack_limit
from plainrisk.encode.reading import Column, Wanted, code_bins, read_wanted

__all__ = [
    "Cells",
    "Column",
    "Columns",
    "Criterion",
    "LevelFinder",
    "Pack",
    "Wanted",
    "cells_of",
    "code_bins",
    "collapse",
    "counted_cells",
    "feature_columns",
    "find_levels",
    "given_levels",
    "learn_bins",
    "learn_levels",
    "level_counts",
    "line_levels",
    "pack_codes",
    "pack_limit",
    "read_wanted",
]
