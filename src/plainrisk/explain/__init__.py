"""Everything a person asks of a model, answered from the risk form."""

from plainrisk.explain.certify import Certificate, Check, Recheck, certify, recheck
from plainrisk.explain.contributions import explain
from plainrisk.explain.drift import Drift, Profile, WeightDrift, drift, weight_drift
from plainrisk.explain.explanation import Explanation
from plainrisk.explain.fairness import GroupReport, group_report
from plainrisk.explain.overview import Overview, overview
from plainrisk.explain.reasons import Reasons, reasons
from plainrisk.explain.stability import StabilityReport, compare_reasons, reason_stability
from plainrisk.explain.uncertainty import Interval, Refits
from plainrisk.explain.what_if import Answer, Change, WhatIf, WhatIfs, what_if, what_ifs

__all__ = [
    "Answer",
    "Certificate",
    "Change",
    "Check",
    "Drift",
    "Explanation",
    "GroupReport",
    "Interval",
    "Overview",
    "Profile",
    "Reasons",
    "Recheck",
    "Refits",
    "StabilityReport",
    "WeightDrift",
    "WhatIf",
    "WhatIfs",
    "certify",
    "compare_reasons",
    "drift",
    "explain",
    "group_report",
    "overview",
    "reason_stability",
    "reasons",
    "recheck",
    "weight_drift",
    "what_if",
    "what_ifs",
]
