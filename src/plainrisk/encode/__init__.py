"""From rows to small integers: bins, categories, columns, packs and cells."""

from plainrisk.encode.cells import Cells, collapse
from plainrisk.encode.columns import Columns, feature_columns
from plainrisk.encode.learn import Criterion, learn_levels, line_levels
from plainrisk.encode.packs import Pack, pack_codes, pack_limit

__all__ = [
    "Cells",
    "Columns",
    "Criterion",
    "Pack",
    "collapse",
    "feature_columns",
    "learn_levels",
    "line_levels",
    "pack_codes",
    "pack_limit",
]
