"""The bins and groups of a fitted form, written into its schema."""

from __future__ import annotations

import msgspec

from plainrisk.form.form import Part, RiskForm
from plainrisk.form.levels import Bins, Categories, Levels
from plainrisk.form.shapes import Table
from plainrisk.schema import Feature, Schema

__all__ = ["schema_with_bins"]


def schema_with_bins(form: RiskForm) -> Schema:
    """Return the form's schema with the edges of its bins, and the categories and groups of its levels, as stated.

    Where several parts have tables of one feature, the edges are those of all. Features without a table (lines, curves,
    trees, pairs alone) stay as they are.
    """
    levels_of: dict[str, list[Levels]] = {}
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            if isinstance(shape, Table):
                levels_of.setdefault(name, []).append(shape.levels)
    stated = {name: _stated(form.schema.features[name], levels) for name, levels in levels_of.items()}
    return form.schema.replace(features={**form.schema.features, **stated})


def _stated(feature: Feature, found: list[Levels]) -> Feature:
    first = found[0]
    if isinstance(first, Categories):
        levels = first.categories[: first.n_ordered]
        # Words for a category that is not a level, because no training row had it, keep the list open.
        listed = levels if set(first.labels).issuperset((*feature.reasons, *feature.labels)) else feature.categories
        return msgspec.structs.replace(feature, categories=listed, groups=first.groups, rare=None)
    edges = sorted({edge for levels in found if isinstance(levels, Bins) for edge in levels.edges})
    return msgspec.structs.replace(feature, edges=tuple(edges), max_bins=None)
