"""The search for pairs of features that a model needs, by the residuals it leaves.

In the coarse table of two features let r = sum(y - p) and w = sum(p (1 - p)) by cell, p being the risk by a model
without pairs. To second order, and after what the two features can still say alone, coefficients b of the pair change
the log likelihood by

    g'b - b'Hb/2,    g = C'r,    H = C'WC,

where C has the coefficients' columns less their fit by rows and columns of the table. Under a normal prior of precision
lambda that gives the pair's Bayes factor (`plainrisk.solve.log_factors`), which is averaged over lambda. Beforehand any
pair is as likely to be real as any other: a share of all, the one most likely by their Bayes factors, at least one pair
and at most half of them. So where nothing else is found the best of m pairs needs a Bayes factor of 3m; chance makes
about m at best. If the odds that the best pair is real are at least 3, as many are taken as are expected to be real,
all with a Bayes factor above 1. In the fit, those that are less likely in than out, given the others, are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from plainrisk._native import look_up, pair_sums
from plainrisk._types import Floats
from plainrisk.bins import Axis, pair_contrast
from plainrisk.errors import DataError, did_you_mean
from plainrisk.fit.choices import MOST_PAIRS, POSITIVE, PRECISIONS
from plainrisk.fit.coding import CodedRows, scores_by_code
from plainrisk.fit.pairs import CoarseReader, PairRows, coarse_axes
from plainrisk.fit.parameters import Pairs
from plainrisk.fit.plan import Fitted, Plan, fit_plan, link_of
from plainrisk.form import Link
from plainrisk.solve import Block, averaged, log_factors

__all__ = ["PairEvidence", "chosen_pairs", "rank_pairs", "search_pairs", "with_pairs"]

# Features that pairs are sought among at most.
_MOST_FEATURES = 200


@dataclass(frozen=True)
class PairEvidence:
    """The evidence for one pair in the residuals of a model without pairs.

    Attributes
    ----------
    features : the two
    z : the root of twice the logarithm of its Bayes factor; below 0 if the residuals speak against the pair
    gain : about what the pair would take off the mean log loss, the logarithm of its Bayes factor by row
    threshold : what z must exceed; as many pairs do as are expected to be real, if there is positive evidence for any
    """

    features: tuple[str, str]
    z: float
    gain: float
    threshold: float

    @property
    def is_evident(self) -> bool:
        """Whether this is more than chance."""
        return self.z > self.threshold


def search_pairs(plan: Plan, fitted: Fitted) -> tuple[tuple[PairEvidence, ...], dict[str, Axis]]:
    """Return the evidence for every pair of features, the best first, and the coarse levels it was sought in."""
    scores = fitted.basis.level_scores(fitted.point[1:])
    axes = coarse_axes(plan.coded, plan.schema, scores)
    evidence = rank_pairs(plan.coded, axes, link_of(plan.link), float(fitted.point[0]), scores, plan.total)
    return tuple(evidence), axes


def with_pairs(plan: Plan, fitted: Fitted, pairs: Pairs) -> tuple[Plan, Fitted, tuple[PairEvidence, ...]]:
    """Seek pairs among the residuals and fit them, too; those that were found must be needed given the others."""
    ranked, axes = search_pairs(plan, fitted)
    wanted = chosen_pairs(pairs, ranked, plan.coded.names, axes)
    alone = plan, fitted
    while wanted:
        plan = replace(plan, pairs=PairRows(plan.coded, axes, wanted))
        fitted = fit_plan(plan, fitted)
        weak = _weak_pairs(fitted) if pairs == "auto" else []
        if not weak and not plan.rough:
            return plan, fitted, ranked
        # What a rough fit keeps must be needed at the end, too.
        plan, wanted = replace(plan, rough=False), [pair for pair in wanted if pair not in weak]
    return *alone, ranked


def _weak_pairs(fitted: Fitted) -> list[tuple[str, ...]]:
    """Return the pairs to drop, the weakest first: those that, given the others, are less likely in than out."""
    basis, evidence = fitted.basis, fitted.evidence
    assert evidence is not None
    own = [u for u, group in enumerate(basis.groups) if group.kind == "pair"]
    blocks = [np.flatnonzero(basis.group_of == u) for u in own]
    precisions = evidence.precision[basis.precision_of[own]].tolist()
    weak = evidence.unneeded(blocks, precisions, 0.0)
    return [basis.groups[own[k]].names for k in weak]


def rank_pairs(
    coded: CodedRows,
    axes: Mapping[str, Axis],
    link: Link,
    intercept: float,
    level_scores: Sequence[Floats],
    total: float | None = None,
) -> list[PairEvidence]:
    """Rank all pairs by the residuals of a model, the best first: one pass over the rows.

    Parameters
    ----------
    intercept, level_scores : the model: per feature, the score of every level
    total : how many rows the weights stand for; by default the sum of the weights
    """
    names, tables = _candidates(coded, axes, level_scores), scores_by_code(coded, level_scores)
    if len(names) < 2:
        return []
    sizes = [axes[name].size for name in names]
    sums = _CellSums(CoarseReader.of(coded, axes, names), sizes, link, intercept, tables)
    residuals, variances = coded.rows.sum(sums)
    n_rows = coded.rows.totals[1] if total is None else total
    unit = n_rows / coded.rows.totals[1]
    each = zip(combinations(names, 2), residuals, variances, strict=True)
    found = {pair: _log_factor(axes[pair[0]], axes[pair[1]], unit * r, unit * w) for pair, r, w in each}
    threshold = _threshold(np.array(list(found.values())))
    best = sorted(found.items(), key=lambda one: -one[1])
    return [PairEvidence(pair, _root(factor), factor / n_rows, threshold) for pair, factor in best]


@dataclass(frozen=True)
class _CellSums:
    """Sums of residuals and of their variances by cell of every pair, at a model without pairs."""

    reader: CoarseReader
    sizes: Sequence[int]
    link: Link
    intercept: float
    tables: Sequence[Floats]

    def __call__(self, block: Block) -> tuple[list[Floats], list[Floats]]:
        score = look_up(self.intercept, block.codes, self.tables, len(block))
        risk = np.clip(self.link.value(score), 1e-6, 1.0 - 1e-6)
        weight = np.ones(len(block)) if block.weight is None else block.weight
        residual, variance = block.positive - weight * risk, weight * risk * (1.0 - risk)
        codes, sizes = self.reader.codes(block), self.sizes
        found: tuple[list[Floats], list[Floats]] = [], []
        for k in range(len(codes) - 1):
            rest = (codes[k], codes[k + 1 :], sizes[k], sizes[k + 1 :])
            for into, values in zip(found, (residual, variance), strict=True):
                into += pair_sums(values, *rest)
        return found


def _log_factor(u: Axis, v: Axis, residual: Floats, weight: Floats) -> float:
    """Return the logarithm of a pair's Bayes factor, without regard to directions, given sums by cell."""
    r, w = residual.ravel(), weight.ravel()
    C = pair_contrast(replace(u, sign=0), replace(v, sign=0), w).matrix
    margins = np.hstack([np.repeat(np.eye(u.size), v.size, axis=0), np.tile(np.eye(v.size), (u.size, 1))])
    # Rows and columns of the table have the same sum, and some have no rows: a tiny ridge makes the solution unique.
    among = margins.T @ (w[:, None] * margins) + 1e-9 * max(float(w.sum()), 1e-290) * np.eye(margins.shape[1])
    C = C - margins @ np.linalg.solve(among, margins.T @ (w[:, None] * C))
    return averaged(log_factors(C.T @ (w[:, None] * C), C.T @ r, np.array(PRECISIONS)))


def _threshold(factors: Floats) -> float:
    """Return what the root of twice a log Bayes factor must exceed, given those of all pairs."""
    least, most = 1.0 / max(len(factors), 2), 0.5

    def excess(share: float) -> float:
        return float(expit(logit(share) + factors).mean()) - share

    share = least if excess(least) <= 0 else most if excess(most) >= 0 else brentq(excess, least, most)
    likely = expit(logit(share) + factors)
    if logit(likely.max()) <= POSITIVE:
        return _root(float(logit(1.0 - least)) + POSITIVE)
    worse = np.sort(factors)[::-1][round(float(likely.sum())) :]
    return max(_root(float(worse[0])), 0.0) if len(worse) else 0.0


def _root(factor: float) -> float:
    return math.copysign(math.sqrt(2.0 * abs(factor)), factor)


def _candidates(coded: CodedRows, axes: Mapping[str, Axis], level_scores: Sequence[Floats]) -> list[str]:
    """Return the features that vary; of very many, those that move the model's score most."""
    varying = [j for j, name in enumerate(coded.names) if name in axes and axes[name].size > 1]
    moves = {j: float(coded.weights[j] @ level_scores[j] ** 2) for j in varying}
    most = sorted(varying, key=lambda j: -moves[j])[:_MOST_FEATURES]
    return [coded.names[j] for j in sorted(most)]


def chosen_pairs(
    pairs: Any, ranked: Sequence[PairEvidence], names: Sequence[str], axes: Mapping[str, Axis]
) -> list[tuple[str, str]]:
    """Return the pairs that were asked for: "auto", a number of them, or a list."""
    if pairs == "auto":
        return [one.features for one in ranked if one.is_evident][:MOST_PAIRS]
    if isinstance(pairs, int | np.integer):
        return [one.features for one in ranked[: int(pairs)]]
    place = {name: k for k, name in enumerate(names)}
    found: list[tuple[str, str]] = []
    for pair in pairs:
        for name in pair:
            if name not in place:
                raise DataError(f"pairs: there is no feature {name!r}.{did_you_mean(name, names)}")
            if name not in axes:
                raise DataError(
                    f"pairs: feature {name!r} has a rule 'not_better' or 'worst' but no direction, so the level it is "
                    "held at differs with the other feature. State a direction, another rule, or no such pair."
                )
        u, v = sorted(pair, key=place.__getitem__)
        if u == v or (u, v) in found:
            raise DataError(f"pairs: {u!r} and {v!r} are one feature, or are named twice.")
        found.append((u, v))
    return found
