"""Everything a person asks of a model, answered from the risk form."""

from plainrisk.explain.answers import Answer, Change, WhatIf, WhatIfs
from plainrisk.explain.certify import Certificate, Check, Recheck, certify, recheck
from plainrisk.explain.contributions import explain
from plainrisk.explain.explanation import Explanation
from plainrisk.explain.reason_list import Reasons
from plainrisk.explain.reasons import reasons
from plainrisk.explain.what_if import what_if, what_ifs

__all__ = [
    "Answer",
    "Certificate",
    "Change",
    "Check",
    "Explanation",
    "Reasons",
    "Recheck",
    "WhatIf",
    "WhatIfs",
    "certify",
    "explain",
    "reasons",
    "recheck",
    "what_if",
    "what_ifs",
]
