"""What the modeler knows of the data and the lender decided: kinds, directions, special values, subscales, policy."""

from plainrisk.data.columns import label_of
from plainrisk.schema.feature import Feature, Rule
from plainrisk.schema.findings import Finding
from plainrisk.schema.policy import REASONS, Letter, Limits, Outcome, Policy
from plainrisk.schema.schema import Schema

__all__ = ["REASONS", "Feature", "Finding", "Letter", "Limits", "Outcome", "Policy", "Rule", "Schema", "label_of"]
