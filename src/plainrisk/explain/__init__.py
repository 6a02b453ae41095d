"""Answers to people's questions about a model, from the risk form."""

from plainrisk.explain.certify import Certificate, Check, Recheck, certify, recheck
from plainrisk.explain.contributions import explain
from plainrisk.explain.diff import Diff, diff
from plainrisk.explain.explanation import Explanation
from plainrisk.explain.groups import GroupReport
from plainrisk.explain.monitor import Drift, Performance, Profile, drift
from plainrisk.explain.options import ExplainOptions, ReasonOptions, WhatIfOptions, WhatIfsOptions
from plainrisk.explain.overview import Overview, overview
from plainrisk.explain.points import scorecard
from plainrisk.explain.reasons import Decisions, Reasons, decide, reasons
from plainrisk.explain.scorecard import Scorecard
from plainrisk.explain.seen_rows import SeenRows
from plainrisk.explain.steps import EffectRow, Effects, effects
from plainrisk.explain.uncertainty import Interval, Refits, drawn
from plainrisk.explain.what_if import Answer, Change, WhatIf, WhatIfs, what_if, what_ifs

__all__ = [
    "Answer",
    "Certificate",
    "Change",
    "Check",
    "Decisions",
    "Diff",
    "Drift",
    "EffectRow",
    "Effects",
    "ExplainOptions",
    "Explanation",
    "GroupReport",
    "Interval",
    "Overview",
    "Performance",
    "Profile",
    "ReasonOptions",
    "Reasons",
    "Recheck",
    "Refits",
    "Scorecard",
    "SeenRows",
    "WhatIf",
    "WhatIfOptions",
    "WhatIfs",
    "WhatIfsOptions",
    "certify",
    "decide",
    "diff",
    "drawn",
    "drift",
    "effects",
    "explain",
    "overview",
    "reasons",
    "recheck",
    "scorecard",
    "what_if",
    "what_ifs",
]
