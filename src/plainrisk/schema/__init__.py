"""What the modeller knows of the data: kinds, directions, special values, subscales."""

from plainrisk.data.columns import label_of
from plainrisk.schema.findings import Finding
from plainrisk.schema.schema import Feature, Rule, Schema

__all__ = ["Feature", "Finding", "Rule", "Schema", "label_of"]
