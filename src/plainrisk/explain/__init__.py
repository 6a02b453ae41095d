"""Everything a person asks of a model, answered from the risk form."""

from plainrisk.explain.certify import Certificate, Check, certify
from plainrisk.explain.contributions import explain
from plainrisk.explain.explanation import Explanation

__all__ = ["Certificate", "Check", "Explanation", "certify", "explain"]
