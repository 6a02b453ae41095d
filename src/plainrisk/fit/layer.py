"""The single driver of a one-layer fit: alone, as an expert, in a fold, on a stream, in a bootstrap.

    code the rows
    until no rule is broken:
        choose the coefficients (steps, smooth shapes or lines)
        fit them, shrunk by a fixed ridge or as the evidence asks
        constrain the levels that break their rule
    merge the bins of smooth shapes to short tables

Smooth shapes begin with few bins. Features whose evidence asks for it get finer ones, pairs of features are searched
for in the residuals, and the loop runs again from the last solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.errors import DataError
from plainrisk.fit.basis import table_part
from plainrisk.fit.choices import FEW_BINS, FLOOR_ROWS, FLOOR_SHARE
from plainrisk.fit.coding import code_rows, learn_levels, rows_meant, scores_by_code
from plainrisk.fit.finer import asked_cuts, code_fine_rows, some_cuts
from plainrisk.fit.merge import FineTables, Merged
from plainrisk.fit.pair_search import PairEvidence, search_pairs, with_pairs
from plainrisk.fit.parameters import LayerSettings, Ridge
from plainrisk.fit.plan import Chosen, Fitted, Plan, fit_plan, fitted_link, link_of, polish
from plainrisk.fit.scored import PartScores, coded_scores
from plainrisk.fit.training import TrainingRows
from plainrisk.form import Part
from plainrisk.solve import Rows, Solution
from plainrisk.threads import one_blas_thread

__all__ = ["LayerFit", "find_pairs", "fit_layer", "least_rows", "resolve_ridge"]

# Coefficients whose covariance is written out at most: a matrix of 200 MB.
_MOST_COVARIANCE = 5000


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
    def scores(self) -> PartScores:
        """The training rows with their scores, from their codes."""
        intercept = self.part.intercept if self.chosen is not None else self.solution.intercept
        return coded_scores(self.rows, intercept, self.tables)


def fit_layer(training: TrainingRows, settings: LayerSettings) -> LayerFit:
    """Find the levels, code the rows, fit, and center the shapes."""
    if settings.shapes == "smooth":
        with one_blas_thread():
            return _fit_smooth(training, settings)
    for name, is_given in (("pairs", settings.pairs is not None), ("intervals", settings.intervals)):
        if is_given:
            raise DataError(f"{name} need smooth shapes: AdditiveRiskModel(shapes='smooth', {name}=...).")
    min_rows = least_rows(settings, training.n_rows)
    levels = learn_levels(training, max_bins=settings.max_bins or 5, criterion=settings.criterion, min_rows=min_rows)
    ridge = resolve_ridge(settings.ridge, training.total)
    coded = code_rows(training, levels)
    fitted = fit_plan(Plan(coded, training.schema, fitted_link(settings), "steps", ridge))
    assert fitted.solution is not None
    solution, basis = fitted.solution, fitted.basis
    part = table_part(basis, solution.intercept, solution.coefficients, link_of(fitted_link(settings)), training.schema)
    return LayerFit(part, solution, coded.rows, basis.layout.tables(solution.coefficients), ridge=ridge)


def _fit_smooth(training: TrainingRows, settings: LayerSettings) -> LayerFit:
    plan, fitted = _fit_features(training, settings)
    ranked = None
    if settings.pairs is not None:
        plan, fitted, ranked = with_pairs(plan, fitted, settings.pairs)
    if plan.rough:
        plan = replace(plan, rough=False)
        fitted = fit_plan(plan, fitted)
    fitted = polish(plan, fitted)
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
        chosen=Chosen.of(plan, fitted),
        n_rows=plan.total,
        pair_evidence=ranked,
        covariance=_covariance_of(fitted, merged.means, cells) if settings.intervals else (),
    )


def _fit_features(training: TrainingRows, settings: LayerSettings) -> tuple[Plan, Fitted]:
    """Fit smooth shapes without pairs: start with few bins, and refine them where the evidence supports it."""
    coded, bins = code_fine_rows(training), FEW_BINS
    total = rows_meant(training, coded.rows, settings.weights)
    link, cuts = fitted_link(settings), some_cuts(coded, bins)
    plan = Plan(coded, training.schema, link, "smooth", total=total, cuts=cuts, rough=True)
    fitted = fit_plan(plan)
    while asked := asked_cuts(plan, fitted, bins, settings.tolerance):
        bins *= 4
        plan = replace(plan, cuts={name: cuts | asked.get(name, set()) for name, cuts in plan.cuts.items()})
        fitted = fit_plan(plan, fitted)
    return plan, fitted


def find_pairs(training: TrainingRows, settings: LayerSettings) -> tuple[PairEvidence, ...]:
    """Rank all pairs of features by the residuals of a smooth fit without pairs, as a fit with pairs does."""
    with one_blas_thread():
        return search_pairs(*_fit_features(training, settings))[0]


def _merged(plan: Plan, fitted: Fitted, settings: LayerSettings, floor: float) -> tuple[Merged, list[Floats]]:
    """Return the part with short tables, and the scores of the cells of every pair."""
    intercept, coefficients = float(fitted.point[0]), fitted.point[1:]
    part = table_part(fitted.basis, intercept, coefficients, link_of(plan.link), plan.schema)
    cells = fitted.basis.pair_scores(coefficients)
    tables = FineTables(part, fitted.basis, cells, plan.schema)
    return tables.merged(settings.tolerance, settings.max_bins, floor), cells


def resolve_ridge(ridge: Ridge, total: float) -> float:
    """Return the ridge as a number: "auto" is 1/(2M), M the total weight."""
    return 1.0 / (2.0 * total) if ridge == "auto" else float(ridge)


def least_rows(settings: LayerSettings, n_rows: float) -> int:
    """Return the least number of rows in a bin that people read."""
    if settings.min_bin_rows != "auto":
        return settings.min_bin_rows
    return max(1, min(FLOOR_ROWS, int(FLOOR_SHARE * n_rows)))


def _covariance_of(fitted: Fitted, means: Sequence[Floats], cells: Sequence[Floats]) -> tuple[float, ...]:
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
            f"intervals: the model has {n:,} coefficients; intervals are available for up to {_MOST_COVARIANCE:,}."
        )
    at, first = 1, np.zeros((1, n))
    first[0, 0] = 1.0
    rows = [first]
    for contrast, weight, mean in zip(basis.contrasts, basis.coded.weights, means, strict=True):
        size = len(contrast.keys)
        row, center = np.zeros((len(mean), n)), weight @ contrast.matrix / weight.sum()
        seen = weight > 0
        seen |= False if contrast.centered is None else contrast.centered
        row[:, at : at + size] = mean @ (seen[:, None] * (contrast.matrix - center))
        first[0, at : at + size] = center
        rows.append(row)
        at += size
    expansions = [] if basis.pairs is None else basis.pairs.expansions()
    for contrast, expand, scores in zip(basis.pair_contrasts, expansions, cells, strict=True):
        size = len(contrast.keys)
        if scores.any():
            row = np.zeros((len(expand), n))
            row[:, at : at + size] = contrast.matrix[expand]
            rows.append(row)
        at += size
    matrix = np.vstack(rows)
    whole = matrix @ evidence.covariance() @ matrix.T
    return tuple(whole[np.tril_indices(len(whole))].tolist())
