"""The one driver of a one-layer fit: alone, as an expert, in a fold, on a stream, in a bootstrap.

    code the rows
    until no rule is broken:
        choose the coefficients (steps, smooth shapes or lines)
        fit them, shrunk by a fixed ridge or as the evidence asks
        hold the levels that break their rule
    merge the bins of smooth shapes to short tables

Smooth shapes begin with few bins. Features whose evidence asks for it get finer ones, pairs of features are sought
among the residuals, and the loop is gone through again from where it stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.bins import Axis
from plainrisk.bins.edges import Histogram, fine_edges
from plainrisk.errors import DataError
from plainrisk.fit.basis import Basis, LineBounds, line_basis, smooth_basis, step_basis, table_part
from plainrisk.fit.choices import BLUR, FEW_BINS, FINE_BINS
from plainrisk.fit.coding import CodedRows, Held, code_rows, learn_levels, rule_anchors, scores_by_code, sums_by_code
from plainrisk.fit.finer import blurred, finer_cuts
from plainrisk.fit.merge import FineTables, Merged
from plainrisk.fit.pair_search import PairEvidence, chosen_pairs, rank_pairs
from plainrisk.fit.pairs import PairRows, coarse_axes
from plainrisk.fit.parameters import LayerSettings, LinkName, Pairs, Ridge, Weights, fitted_link, least_rows
from plainrisk.fit.scored import CodedScores, own_weight
from plainrisk.fit.training import TrainingRows
from plainrisk.form import Bins, GroupEvidence, Linear, Logistic, Part
from plainrisk.schema import Schema
from plainrisk.solve import (
    Block,
    Evidence,
    LogisticLoss,
    Moments,
    Rows,
    Solution,
    maximise_evidence,
    minimise,
    minimise_squares,
    polished,
)
from plainrisk.threads import one_blas_thread

__all__ = [
    "Chosen",
    "Fitted",
    "LayerFit",
    "Plan",
    "code_fine_rows",
    "find_pairs",
    "fit_layer",
    "fit_plan",
    "halvings",
    "resolve_ridge",
    "rows_meant",
]

# By feature, the levels that a step leads to.
Cuts = Mapping[str, frozenset[int]]

# Categories of a feature that have an effect of their own, so that its levels fit into a byte; rarer ones share one.
_MOST_LEVELS = 254
# Coefficients whose covariance is written out at most: a matrix of 200 MB.
_MOST_COVARIANCE = 5000
# What another update of the precisions would raise the log marginal likelihood by, where one stops: while the basis may
# change, and at the end.
_ROUGHLY, _EXACTLY = 0.3, 1e-2
# Groups with fewer effective degrees of freedom are said to have no evidence.
_NOTHING = 0.01


@dataclass(frozen=True)
class Chosen:
    """What a smooth fit chose by the data, beside bins and pairs, and a refit keeps.

    Attributes
    ----------
    groups : the groups of coefficients, with their precisions
    scale : phi; see `Evidence`
    held : the levels that a rule holds
    cuts : by feature, the cuts that have a step
    pairs, axes : the pairs that were fitted, and the coarse levels of their features
    """

    groups: tuple[GroupEvidence, ...]
    scale: float
    held: Held
    cuts: Mapping[str, tuple[int, ...]]
    pairs: tuple[tuple[str, str], ...] = ()
    axes: Mapping[str, Axis] | None = None


@dataclass(frozen=True)
class LayerFit:
    """A fitted layer.

    Attributes
    ----------
    part : the additive part
    solution : what the solver found, before tables were merged
    rows, tables : the coded rows, and the score of every code
    ridge : of steps, or None
    chosen : of smooth shapes, or None: the evidence, and what else a refit keeps
    n_rows : of smooth shapes, or None: how many rows the weights stand for
    pair_evidence : of all pairs of features, if pairs were asked for
    covariance : of intercept, levels and cells, if intervals were asked for; see `FitRecord`
    """

    part: Part
    solution: Solution
    rows: Rows
    tables: Sequence[Floats]
    ridge: float | None = None
    chosen: Chosen | None = None
    n_rows: float | None = None
    pair_evidence: tuple[PairEvidence, ...] | None = None
    covariance: tuple[float, ...] = ()

    @property
    def scores(self) -> CodedScores:
        """The training rows with their scores, from their codes."""
        intercept = self.part.intercept if self.chosen is not None else self.solution.intercept
        return CodedScores(self.rows, intercept, self.tables)


@dataclass(frozen=True)
class Plan:
    """What is to be fitted to coded rows.

    Attributes
    ----------
    shapes : which basis
    ridge : what the mean loss is penalised by; None if the evidence decides
    total : how many rows the weights stand for, where the evidence decides; see `rows_meant`
    cuts : of smooth shapes, by feature: the cuts that have a step; all where a feature is not named
    pairs : of smooth shapes, fitted beside the features
    lines : bounds of the slopes of numeric columns
    held : levels that are held from the beginning
    known : the precisions of groups, by names and kind, where they are not to be found; and phi
    weighted : the rows with other weights
    rough : whether precisions need to be found roughly only, since the basis may change
    """

    coded: CodedRows
    schema: Schema
    link: LinkName
    shapes: Literal["steps", "smooth", "lines"]
    ridge: float | None = None
    total: float | None = None
    cuts: Cuts = field(default_factory=dict)
    pairs: PairRows | None = None
    lines: LineBounds | None = None
    held: Held = field(default_factory=dict)
    known: Chosen | None = None
    weighted: Rows | None = None
    rough: bool = False

    def basis(self, held: Held) -> Basis:
        """Return the coefficients, given what holds special levels."""
        if self.shapes == "steps":
            basis = step_basis(self.coded, self.schema, held)
        elif self.lines is not None:
            basis = line_basis(self.coded, self.schema, held, self.lines)
        else:
            basis = smooth_basis(self.coded, self.schema, held, self.cuts, self.pairs)
        return basis if self.weighted is None else replace(basis, weighted=self.weighted)


@dataclass(frozen=True)
class Fitted:
    """Fitted coefficients.

    Attributes
    ----------
    point : the intercept and the coefficients
    evidence : where the evidence decided how much they are shrunk
    solution : the solver's certificate; None before a smooth fit is polished
    """

    basis: Basis
    point: Floats
    evidence: Evidence | None = None
    solution: Solution | None = None

    @property
    def precisions(self) -> dict[tuple[tuple[str, ...], str], tuple[float, int]]:
        """The precision and the size of every group, by names and kind."""
        if self.evidence is None:
            return {}
        each = zip(self.basis.groups, self.evidence.precision[self.basis.precision_of].tolist(), strict=True)
        return {(group.names, group.kind): (precision, group.size) for group, precision in each}


def fit_layer(training: TrainingRows, settings: LayerSettings) -> LayerFit:
    """Find the levels, code the rows, fit, and centre the shapes."""
    if settings.shapes == "smooth":
        with one_blas_thread():
            return _fit_smooth(training, settings)
    for name, wanted in (("pairs", settings.pairs is not None), ("intervals", settings.intervals)):
        if wanted:
            raise DataError(f"{name} need smooth shapes: AdditiveRiskModel(shapes='smooth', {name}=...).")
    min_rows = least_rows(settings, training.n_rows)
    levels = learn_levels(training, max_bins=settings.max_bins or 5, criterion=settings.criterion, min_rows=min_rows)
    ridge = resolve_ridge(settings.ridge, training.total)
    coded = code_rows(training, levels)
    fitted = fit_plan(Plan(coded, training.schema, fitted_link(settings), "steps", ridge))
    assert fitted.solution is not None
    solution, basis = fitted.solution, fitted.basis
    part = table_part(basis, solution.intercept, solution.coefficients, _link(fitted_link(settings)), training.schema)
    return LayerFit(part, solution, coded.rows, basis.layout.tables(solution.coefficients), ridge=ridge)


def _fit_smooth(training: TrainingRows, settings: LayerSettings) -> LayerFit:
    plan, fitted = _fit_features(training, settings)
    ranked = None
    if settings.pairs is not None:
        plan, fitted, ranked = _with_pairs(plan, fitted, settings.pairs)
    if plan.rough:
        plan = replace(plan, rough=False)
        fitted = fit_plan(plan, fitted)
    fitted = _polished(plan, fitted)
    assert plan.total is not None
    floor = least_rows(settings, plan.total) / plan.total
    merged, cells = _merged(plan, fitted, settings, floor)
    part = msgspec.structs.replace(merged.part, pairs=() if plan.pairs is None else plan.pairs.tables(cells))
    assert fitted.solution is not None
    return LayerFit(
        part=part,
        solution=fitted.solution,
        rows=plan.coded.rows if plan.pairs is None else plan.pairs.rows,
        tables=(*scores_by_code(plan.coded, merged.level_scores), *cells),
        chosen=_chosen(plan, fitted),
        n_rows=plan.total,
        pair_evidence=ranked,
        covariance=_covariance(fitted, merged.means, cells) if settings.intervals else (),
    )


def _fit_features(training: TrainingRows, settings: LayerSettings) -> tuple[Plan, Fitted]:
    """Fit smooth shapes without pairs: few bins to begin with, finer ones where the evidence asks for them."""
    coded, bins = code_fine_rows(training), FEW_BINS
    total = rows_meant(training, coded.rows, settings.weights)
    link, cuts = fitted_link(settings), some_cuts(coded, bins)
    plan = Plan(coded, training.schema, link, "smooth", total=total, cuts=cuts, rough=True)
    fitted = fit_plan(plan)
    while asked := _asked_cuts(plan, fitted, bins, settings.tolerance):
        bins *= 4
        plan = replace(plan, cuts={name: cuts | asked.get(name, set()) for name, cuts in plan.cuts.items()})
        fitted = fit_plan(plan, fitted)
    return plan, fitted


def find_pairs(training: TrainingRows, settings: LayerSettings) -> tuple[PairEvidence, ...]:
    """Rank all pairs of features by the residuals of a smooth fit without pairs, as a fit with pairs does."""
    with one_blas_thread():
        return _ranked(*_fit_features(training, settings))[0]


def code_fine_rows(training: TrainingRows) -> CodedRows:
    """Find fine bins, and code the rows."""
    levels = learn_levels(
        training, max_bins=FINE_BINS, criterion="fine", halvings=halvings(FINE_BINS), most_categories=_MOST_LEVELS
    )
    return code_rows(training, levels)


def halvings(bins: int) -> int:
    """Return how often the outermost of so many bins are halved towards the ends: finer bins have finer ends.

    >>> [halvings(bins) for bins in (2, 8, 16, 200)]
    [0, 2, 3, 6]
    """
    return max(0, bins.bit_length() - 2)


def some_cuts(coded: CodedRows, bins: int) -> dict[str, frozenset[int]]:
    """Return the cuts that make about so many bins, finer towards the ends, for every feature with bins."""
    by_feature = {}
    for name, levels, weights in zip(coded.names, coded.levels, coded.weights, strict=True):
        n = levels.n_ordered
        if isinstance(levels, Bins):
            inside = np.maximum(weights[:n], np.finfo(float).tiny)
            h = Histogram(np.arange(n, dtype=float), np.ones(n, np.int64), inside, np.zeros(n))
            by_feature[name] = frozenset(np.ceil(fine_edges(h, min(bins, n), halvings(bins))).astype(int).tolist())
    return by_feature


def fit_plan(plan: Plan, start: Fitted | None = None) -> Fitted:
    """Fit, and as long as a special level breaks its rule, hold it and fit again.

    A level that is held stays held, so this ends.
    """
    known = [plan.held, {} if start is None else start.basis.held]
    held = {name: dict(own) for name, own in rule_anchors(plan.coded, plan.schema).items()}
    for name, own in held.items():
        for before in known:
            own.update(before.get(name, {}))
    while True:
        basis = plan.basis(held)
        fitted = _penalised(plan, basis, start)
        breaking = rule_anchors(plan.coded, plan.schema, basis.level_scores(fitted.point[1:]))
        if all(breaking[name].keys() <= own.keys() for name, own in held.items()):
            return fitted
        held = {name: {**breaking[name], **own} for name, own in held.items()}
        start = fitted


def _penalised(plan: Plan, basis: Basis, start: Fitted | None) -> Fitted:
    """Fit the coefficients: shrunk by a ridge, at known precisions, or as the evidence asks."""
    point = None if start is None else _carried(start, basis)
    if plan.ridge is not None or plan.known is not None:
        solution = _solved(plan, basis, point)
        return Fitted(basis, solution.point, solution=solution)
    precision = np.full(int(basis.precision_of.max(initial=-1)) + 1, np.nan)
    before = {} if start is None else start.precisions
    for at, group in zip(basis.precision_of, basis.groups, strict=True):
        value, size = before.get((group.names, group.kind), (np.nan, 0))
        if size and group.size:
            # A walk of twice as many steps has steps of half the variance.
            precision[at] = value * (group.size / size if group.kind != "outside" else 1.0)
    evidence = maximise_evidence(
        _loss(plan, basis),
        basis.precision_of[basis.group_of],
        hyperprior=basis.hyperprior(),
        total=plan.total,
        lower=basis.lower,
        point=point,
        precision=precision,
        population=None if start is None or start.evidence is None else (start.evidence.mean, start.evidence.variance),
        tolerance=_ROUGHLY if plan.rough else _EXACTLY,
    )
    return Fitted(basis, evidence.point, evidence)


def _carried(start: Fitted, basis: Basis) -> Floats:
    """Return the coefficients of an earlier fit where they are in the new basis, and 0 elsewhere."""
    point = np.zeros(1 + basis.layout.n_coefficients)
    point[0] = start.point[0]
    for key, place in basis.places.items():
        before = start.basis.places.get(key)
        if before is not None:
            point[1 + place] = start.point[1 + before]
    n_lines = basis.layout.n_dense
    if n_lines:
        point[-n_lines:] = start.point[-n_lines:]
    return point


def _loss(plan: Plan, basis: Basis) -> LogisticLoss | Moments:
    return (Moments.of if plan.link == "linear" else LogisticLoss)(basis.layout, basis.rows)


def _solved(plan: Plan, basis: Basis, point: Floats | None) -> Solution:
    """Minimise the mean loss plus a penalty that is known."""
    loss = _loss(plan, basis)
    ridge: float | Floats = 0.0 if plan.ridge is None else plan.ridge * basis.scale
    if plan.known is not None:
        known = {(group.features, group.kind): group.precision for group in plan.known.groups}
        precision = np.array([known[group.names, group.kind] for group in basis.groups])[basis.group_of]
        # Half the sum of squared errors is what the evidence sees of a linear model.
        total = basis.rows.totals[1] if plan.total is None else plan.total
        ridge = plan.known.scale * precision / total / (1.0 if plan.link == "linear" else 2.0)
    lower, upper = basis.lower, basis.upper
    if isinstance(loss, Moments):
        return minimise_squares(loss, ridge=ridge, lower=lower, upper=upper, start=point)
    return minimise(loss, ridge=ridge, lower=lower, upper=upper, box=basis.box, start=point)


def _polished(plan: Plan, fitted: Fitted) -> Fitted:
    """Return the coefficients at the precisions that were found exactly, with the solver's certificate."""
    basis, evidence = fitted.basis, fitted.evidence
    assert evidence is not None
    groups = basis.precision_of[basis.group_of]
    solution = polished(_loss(plan, basis), groups, evidence, basis.lower, plan.total)
    return replace(fitted, point=solution.point, solution=solution)


def _asked_cuts(plan: Plan, fitted: Fitted, bins: int, tolerance: float) -> dict[str, set[int]]:
    """Return the cuts that the evidence asks for, by feature; not those that merging would undo.

    Features that move the score get twice as many bins as all begin with, since a line or a curve that few bins blur
    shows little of it in any of them.
    """
    basis, coded = fitted.basis, plan.coded
    tables = scores_by_code(coded, basis.level_scores(fitted.point[1:]))
    _, slope, curvature = sums_by_code(basis.rows, _link(plan.link), float(fitted.point[0]), tables)
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


def _ranked(plan: Plan, fitted: Fitted) -> tuple[tuple[PairEvidence, ...], dict[str, Axis]]:
    """Return the evidence for every pair of features, the best first, and the coarse levels it was sought in."""
    scores = fitted.basis.level_scores(fitted.point[1:])
    axes = coarse_axes(plan.coded, plan.schema, scores)
    evidence = rank_pairs(plan.coded, axes, _link(plan.link), float(fitted.point[0]), scores, plan.total)
    return tuple(evidence), axes


def _with_pairs(plan: Plan, fitted: Fitted, pairs: Pairs) -> tuple[Plan, Fitted, tuple[PairEvidence, ...]]:
    """Seek pairs among the residuals and fit them, too; those that were found must be needed beside the others."""
    ranked, axes = _ranked(plan, fitted)
    wanted = chosen_pairs(pairs, ranked, plan.coded.names, axes)
    while wanted:
        plan = replace(plan, pairs=PairRows(plan.coded, axes, wanted))
        fitted = fit_plan(plan, fitted)
        weak = _weak_pairs(fitted) if pairs == "auto" else []
        if not weak and plan.rough:  # what a rough fit keeps must be needed at the end, too
            plan = replace(plan, rough=False)
            continue
        if not weak:
            return plan, fitted, ranked
        wanted = [pair for pair in wanted if pair not in weak]
    return replace(plan, pairs=None, rough=True), fitted, ranked


def _weak_pairs(fitted: Fitted) -> list[tuple[str, ...]]:
    """Return the pairs that must go: those less likely in than out beside the others, the weakest first.

    Each of two pairs that share a feature can make the other look idle, so of such pairs only half go at a time.
    """
    basis, evidence = fitted.basis, fitted.evidence
    assert evidence is not None
    own = [u for u, group in enumerate(basis.groups) if group.kind == "pair"]
    blocks = [np.flatnonzero(basis.group_of == u) for u in own]
    factors = evidence.log_factors(blocks, evidence.precision[basis.precision_of[own]].tolist())
    weak = [basis.groups[own[k]].names for k in np.argsort(factors, kind="stable") if factors[k] < 0]
    gone = weak[: -(-len(weak) // 2)]
    touched = {name for pair in gone for name in pair}
    return [pair for pair in weak if pair in gone or not touched & set(pair)]


def _merged(plan: Plan, fitted: Fitted, settings: LayerSettings, floor: float) -> tuple[Merged, list[Floats]]:
    """Return the part with short tables, and the scores of the cells of every pair."""
    intercept, coefficients = float(fitted.point[0]), fitted.point[1:]
    part = table_part(fitted.basis, intercept, coefficients, _link(plan.link), plan.schema)
    cells = fitted.basis.pair_scores(coefficients)
    tables = FineTables(part, fitted.basis, cells, plan.schema)
    return tables.merged(settings.tolerance, settings.max_bins, floor), cells


def _chosen(plan: Plan, fitted: Fitted) -> Chosen:
    basis, evidence = fitted.basis, fitted.evidence
    assert evidence is not None
    precision, edf = (
        evidence.precision[basis.precision_of],
        np.bincount(basis.group_of, evidence.edf, minlength=len(basis.groups)),
    )
    groups = tuple(
        GroupEvidence(group.names, group.kind, group.size, float(precision[u]), float(edf[u]), bool(edf[u] < _NOTHING))
        for u, group in enumerate(basis.groups)
    )
    pairs = plan.pairs
    kept = ((), None) if pairs is None else (pairs.pairs, pairs.axes)
    cuts = {name: tuple(sorted(cuts)) for name, cuts in plan.cuts.items()}
    return Chosen(groups, evidence.scale, basis.held, cuts, *kept)


def _covariance(fitted: Fitted, means: Sequence[Floats], cells: Sequence[Floats]) -> tuple[float, ...]:
    """Return the covariance of intercept, levels and cells, its lower triangle row by row.

    All of them are sums of coefficients, so their covariance follows from that of the coefficients.

    Parameters
    ----------
    means : per feature, (rows of the merged table, levels): each row's score is a mean of levels
    cells : per pair, the scores; pairs without any are not in the form
    """
    basis, evidence = fitted.basis, fitted.evidence
    assert evidence is not None
    n = len(evidence.free)
    if n > _MOST_COVARIANCE:
        raise DataError(
            f"intervals: the model has {n:,} coefficients; for at most {_MOST_COVARIANCE:,} they are found."
        )
    at, first = 1, np.zeros((1, n))
    first[0, 0] = 1.0
    rows = [first]
    for contrast, weight, mean in zip(basis.contrasts, basis.coded.weights, means, strict=True):
        size = len(contrast.keys)
        own, centre = np.zeros((len(mean), n)), weight @ contrast.matrix / weight.sum()
        seen = weight > 0
        seen |= False if contrast.centred is None else contrast.centred
        own[:, at : at + size] = mean @ (seen[:, None] * (contrast.matrix - centre))
        first[0, at : at + size] = centre
        rows.append(own)
        at += size
    expansions = [] if basis.pairs is None else basis.pairs.expansions()
    for contrast, expand, scores in zip(basis.pair_contrasts, expansions, cells, strict=True):
        size = len(contrast.keys)
        if scores.any():
            own = np.zeros((len(expand), n))
            own[:, at : at + size] = contrast.matrix[expand]
            rows.append(own)
        at += size
    matrix = np.vstack(rows)
    whole = matrix @ evidence.covariance() @ matrix.T
    return tuple(whole[np.tril_indices(len(whole))].tolist())


def _link(name: LinkName) -> Logistic | Linear:
    return Logistic() if name == "logistic" else Linear()


def rows_meant(training: TrainingRows, rows: Rows, weights: Weights) -> float:
    """Return how many rows the weights of rows stand for.

    Their sum, if they are counts; the number of rows, if only their ratios matter. If it is not said, weights that are
    whole multiples of the least one are counts in that unit, as repeated rows would be, and all others ratios.
    """
    if weights == "counts":
        return training.total
    (lowest,) = rows.sum(_LeastWeight(training.factors), whole_blocks=True)
    least = min(lowest, default=0.0)
    if weights == "relative" or not least:
        return float(training.n_rows)
    broken, total = rows.sum(_Multiples(training.factors, least), whole_blocks=True)
    return float(training.n_rows) if broken else total / least


@dataclass(frozen=True)
class _LeastWeight:
    """The least weight of a block; what class weights add is no evidence."""

    factors: Floats | None

    def __call__(self, block: Block) -> tuple[tuple[float, ...]]:
        weight = own_weight(block.weight, block.positive, self.factors)
        return (() if weight is None else (float(weight.min()),),)


@dataclass(frozen=True)
class _Multiples:
    """Whether weights are no whole multiples of a unit, and their sum."""

    factors: Floats | None
    unit: float

    def __call__(self, block: Block) -> tuple[int, float]:
        weight = own_weight(block.weight, block.positive, self.factors)
        if weight is None:
            return 0, 0.0
        return int(np.abs(weight / self.unit - np.rint(weight / self.unit)).max() > 1e-9), float(weight.sum())


def resolve_ridge(ridge: Ridge, total: float) -> float:
    """Return the ridge as a number: "auto" is 1/(2M), M the total weight."""
    return 1.0 / (2.0 * total) if ridge == "auto" else float(ridge)
