"""What the modeller knows of the data: kinds, directions, special values, subscales."""

from plainrisk.data.columns import label_of
from plainrisk.schema.feature import Feature, Rule
from plainrisk.schema.findings import Finding
from plainrisk.schema.schema import Schema

__all__ = ["Feature", "Finding", "Rule", "Schema", "label_of"]
