"""Bins as fine as the evidence supports: few at the start, finer ones where a feature needs them.

Within a bin let r = sum(y - p) and w = sum(p (1 - p)) by fine level, p being the fitted risk. To second order, steps b
between the fine levels change the log likelihood by g'b - b'Hb/2, where g and H are those of the steps less their mean
over the bin; and so finer steps have a Bayes factor (`plainrisk.solve.log_factors`), averaged over their precision. A
feature as a whole may ask for finer bins, since its shape bends everywhere; or one of its bins, where it wanders from
level to level, jumps once, or has one level that is unlike its neighbors. These three are as likely beforehand, and so
are the places of a jump.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise

import numpy as np

from plainrisk._types import Floats
from plainrisk.bins.edges import Histogram, fine_edges
from plainrisk.fit.choices import BLUR, FEW_BINS, FINE_BINS, POSITIVE, PRECISIONS
from plainrisk.fit.coding import CodedRows, code_rows, learn_levels, scores_by_code, sums_by_code
from plainrisk.fit.plan import Fitted, Plan, link_of
from plainrisk.fit.training import TrainingRows
from plainrisk.form import Bins, Levels
from plainrisk.solve import averaged, log_factors

__all__ = ["asked_cuts", "blurred", "code_fine_rows", "fine_levels", "finer_cuts", "halvings", "some_cuts"]

# The number of categories of a feature with separate effects, so that its levels fit into a byte; rarer ones share one
# effect.
_MOST_LEVELS = 254


def code_fine_rows(training: TrainingRows) -> CodedRows:
    """Find fine bins, and code the rows."""
    return code_rows(training, fine_levels(training))


def fine_levels(training: TrainingRows) -> dict[str, Levels]:
    """Find fine bins, the same for the same rows."""
    return learn_levels(
        training, max_bins=FINE_BINS, criterion="fine", halvings=halvings(FINE_BINS), most_categories=_MOST_LEVELS
    )


def halvings(bins: int) -> int:
    """Return how often the outermost bins are halved toward the ends: the more bins there are, the more often.

    >>> [halvings(bins) for bins in (2, 8, 16, 200)]
    [0, 2, 3, 6]
    """
    return max(0, bins.bit_length() - 2)


def some_cuts(coded: CodedRows, bins: int) -> dict[str, frozenset[int]]:
    """Return the cuts that make about this many bins, finer toward the ends, for every feature with bins."""
    by_feature = {}
    for name, levels, weights in zip(coded.names, coded.levels, coded.weights, strict=True):
        n = levels.n_ordered
        if isinstance(levels, Bins):
            inside = np.maximum(weights[:n], np.finfo(float).tiny)
            h = Histogram(np.arange(n, dtype=float), np.ones(n, np.int64), inside, np.zeros(n))
            by_feature[name] = frozenset(np.ceil(fine_edges(h, min(bins, n), halvings(bins))).astype(int).tolist())
    return by_feature


def asked_cuts(plan: Plan, fitted: Fitted, bins: int, tolerance: float) -> dict[str, set[int]]:
    """Return the cuts that the evidence supports, by feature, without those that merging would undo.

    Features that move the score get twice as many bins as all begin with, since a line or a curve that few bins blur
    shows little of it in any of them.
    """
    basis, coded = fitted.basis, plan.coded
    tables = scores_by_code(coded, basis.level_scores(fitted.point[1:]))
    _, slope, curvature = sums_by_code(basis.rows, link_of(plan.link), float(fitted.point[0]), tables)
    total = basis.rows.totals[1] if plan.total is None else plan.total
    scale = 1.0 if fitted.evidence is None else fitted.evidence.scale
    unit = total / basis.rows.totals[1] / scale / (2.0 if plan.link == "linear" else 1.0)
    residuals, curvatures = (
        [unit * own for joint, sums in zip(coded.joints, by_code, strict=False) for own in joint.margins(sums)]
        for by_code in (slope, curvature)
    )
    by_feature, twice, candidates = {}, some_cuts(coded, 2 * FEW_BINS), some_cuts(coded, 4 * bins)
    for j, (name, scores) in enumerate(zip(coded.names, basis.level_scores(fitted.point[1:]), strict=True)):
        if name in plan.cuts:
            n = coded.levels[j].n_ordered
            by_level = -residuals[j][:n], curvatures[j][:n]
            by_feature[name] = finer_cuts(*by_level, plan.cuts[name], candidates[name], tolerance * total)
            if blurred(scores[:n], curvatures[j][:n], FEW_BINS) > BLUR * total:
                by_feature[name] |= twice[name] - plan.cuts[name]
    return {name: cuts for name, cuts in by_feature.items() if cuts}


def finer_cuts(
    residual: Floats, curvature: Floats, cuts: Collection[int], candidates: Collection[int], least: float = 0.0
) -> set[int]:
    """Return the additional cuts that the evidence supports.

    Parameters
    ----------
    residual, curvature : (levels,) sums over the training rows, at the fit with one score for every bin
    cuts : the levels that bins start at, but for the first
    candidates : the cuts of bins of the next size, taken if the feature as a whole asks for them
    least : what a gain in log likelihood must exceed, beside being evident

    Examples
    --------
    >>> level, wave = np.full(4, 50.0), np.array([20.0, -20.0, 0.0, 0.0])
    >>> sorted(finer_cuts(wave, level, {2}, {1, 2, 3})), finer_cuts(0.1 * wave, level, {2}, {1, 2, 3})
    ([1], set())
    """
    starts = [0, *sorted(cuts), len(residual)]
    bins = [(start, end) for start, end in pairwise(starts) if end - start > 1]
    if not bins:
        return set()
    # The jump may be in any of the bins.
    bar = max(POSITIVE + math.log(len(starts)), least)
    walks = [_walk(residual[start:end], curvature[start:end]) for start, end in bins]
    inside = [_cuts_inside(residual, curvature, *ends, bar, walk) for ends, walk in zip(bins, walks, strict=True)]
    # What is left for the feature as a whole are the bins that do not speak for themselves.
    silent = [walk for walk, cuts_inside in zip(walks, inside, strict=True) if not cuts_inside]
    bends = bool(silent) and averaged(np.sum(silent, axis=0)) > max(POSITIVE, least)
    return set().union(*inside, (cut for cut in candidates if bends and cut not in cuts))


def blurred(scores: Floats, curvature: Floats, n_bins: int) -> float:
    """Return what log likelihood so many bins would lose of a line that moves the score as much as this shape does.

    >>> blurred(np.array([-1.0, 1.0]), np.array([50.0, 50.0]), 10)
    0.5
    """
    mean = float(curvature @ scores) / max(float(curvature.sum()), np.finfo(float).tiny)
    return 0.5 * float(curvature @ (scores - mean) ** 2) / n_bins**2


def _cuts_inside(
    residual: Floats, curvature: Floats, start: int, end: int, bar: float, walk: Floats | None = None
) -> set[int]:
    """Return the cuts that the evidence supports inside a bin and, in turn, inside the resulting bins.

    Parameters
    ----------
    bar : what the evidence must exceed
    walk : the result of `_walk` for the bin, if it is known
    """
    if end - start < 2:
        return set()
    r, w = residual[start:end], curvature[start:end]
    jumps, levels = _singles(np.cumsum(r)[:-1], np.cumsum(w)[:-1], r, w), _singles(r, w, r, w)
    one_jump, one_level = averaged(jumps.ravel()), averaged(levels.ravel())
    wanders = averaged(_walk(r, w) if walk is None else walk)
    if averaged(np.array([one_jump, one_level, wanders])) <= bar:
        return set()
    if max(one_jump, one_level) <= bar:
        return set(range(start + 1, end))
    at = start + int(np.logaddexp.reduce(jumps if one_jump > one_level else levels, axis=1).argmax())
    cuts = {at + 1} if one_jump > one_level else {at, at + 1} - {start, end}
    return cuts.union(
        *(_cuts_inside(residual, curvature, *ends, bar) for ends in pairwise([start, *sorted(cuts), end]))
    )


def _walk(residual: Floats, curvature: Floats) -> Floats:
    """Return the logarithms of the Bayes factors of the steps within a bin, by precision."""
    n = len(residual)
    steps = np.tri(n, k=-1)[:, : n - 1]
    steps = steps - curvature @ steps / max(float(curvature.sum()), np.finfo(float).tiny)
    return log_factors(steps.T @ (curvature[:, None] * steps), steps.T @ residual, np.array(PRECISIONS))


def _singles(score: Floats, weight: Floats, residual: Floats, curvature: Floats) -> Floats:
    """Return those of single coefficients that are 1 on a part of a bin, (coefficients, precisions).

    Parameters
    ----------
    score, weight : (coefficients,) the sums of residuals and curvatures over these parts
    """
    share = weight / max(float(curvature.sum()), np.finfo(float).tiny)
    g, h, precisions = score - share * residual.sum(), np.maximum(weight * (1.0 - share), 0.0), np.array(PRECISIONS)
    return np.asarray(0.5 * (g[:, None] ** 2 / (precisions + h[:, None]) - np.log1p(h[:, None] / precisions)))
