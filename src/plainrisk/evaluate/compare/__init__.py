"""Compare classifiers over data sets: ranks, tests, effect sizes and the critical difference diagram."""

from __future__ import annotations

from plainrisk.evaluate.compare.bayes import BayesianSignedRank, bayesian_signed_rank
from plainrisk.evaluate.compare.diagram import Diagram, critical_difference_diagram
from plainrisk.evaluate.compare.effects import (
    EffectSizes,
    HodgesLehmann,
    effect_sizes,
    hodges_lehmann,
    hodges_lehmann_table,
)
from plainrisk.evaluate.compare.posthoc import WilcoxonHolm, holm, wilcoxon_holm
from plainrisk.evaluate.compare.ranks import Friedman, friedman
from plainrisk.evaluate.compare.results import Results, as_results

__all__ = [
    "BayesianSignedRank",
    "Diagram",
    "EffectSizes",
    "Friedman",
    "HodgesLehmann",
    "Results",
    "WilcoxonHolm",
    "as_results",
    "bayesian_signed_rank",
    "critical_difference_diagram",
    "effect_sizes",
    "friedman",
    "hodges_lehmann",
    "hodges_lehmann_table",
    "holm",
    "wilcoxon_holm",
]
