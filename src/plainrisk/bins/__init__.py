"""From rows to small integers: bins, categories, columns, packs and cells."""

from plainrisk.bins.accumulate import LevelFinder, find_levels
from plainrisk.bins.cells import Cells, cells_of, collapse, counted_cells
from plainrisk.bins.columns import Columns, feature_columns
from plainrisk.bins.counts import level_counts
from plainrisk.bins.learn import Criterion, given_levels, learn_bins, learn_levels, line_levels
from plainrisk.bins.packs import Pack, pack_codes, pack_limit
from plainrisk.bins.reading import Column, Wanted, code_bins, read_wanted

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
