"""What the modeller knows of the data: kinds, directions, special values, subscales."""

from plainrisk.schema.schema import Feature, Schema, label_of

__all__ = ["Feature", "Schema", "label_of"]
