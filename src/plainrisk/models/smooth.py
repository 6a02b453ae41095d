"""Smooth shapes: fine bins, as much smoothness as the evidence of each feature asks for, and short tables.

Every continuous feature has up to 64 fine bins. Their scores are sums of steps, and the steps of a feature are shrunk
by a precision of their own, chosen by marginal likelihood (`plainrisk.solve.evidence`): a Gaussian random walk per
feature, a random effect per set of categories, and one for the levels outside the order of all features. Then
neighbouring bins are joined while that costs next to nothing (`plainrisk.bins.joining`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import msgspec
import numpy as np

from plainrisk._native import level_sums, logistic_pass, look_up
from plainrisk._types import Floats, Index
from plainrisk.bins import Anchor, Contrast, GroupKind, best_runs, joined_scores, rows_within, smooth_contrast
from plainrisk.errors import DataError
from plainrisk.form import Bins, GroupEvidence, Levels, Linear, Logistic, PairTable, Part, Shape, Table, held_scores
from plainrisk.models.design import (
    CodedRows,
    Design,
    code_rows,
    learn_levels,
    scores_by_code,
    solve_with_rules,
    table_part,
)
from plainrisk.models.pair_search import PairEvidence, chosen_pairs, rank_pairs
from plainrisk.models.pairs import PairRows, Pairs, coarse_axes, is_ordered
from plainrisk.models.training import TrainingRows
from plainrisk.schema import Schema
from plainrisk.solve import Block, Evidence, Layout, LogisticLoss, Moments, Rows, Solution, maximise_evidence

__all__ = [
    "Chosen",
    "Joiner",
    "SmoothFit",
    "SmoothProblem",
    "fine_bins",
    "fine_rows",
    "fit_smooth",
    "smooth_contrasts",
]

# Bins of a continuous feature, fewer where many features would have more coefficients than this in all.
_FINE_BINS, _LEAST_BINS, _COEFFICIENTS = 64, 8, 2000
# Coefficients whose covariance is written out at most: a matrix of 200 MB.
_MOST_COVARIANCE = 5000


# How nearly the precisions are found, in log marginal likelihood: at first, and in the end.
_ROUGHLY, _EXACTLY = 0.1, 1e-3


# By feature, what holds its levels outside the order.
Held = dict[str, Mapping[int, Anchor]]


@dataclass(frozen=True)
class Chosen:
    """What a fit chose by the data, beside bins and pairs, and a refit keeps.

    Attributes
    ----------
    groups : the groups of coefficients, with their precisions
    scale : phi; see `Evidence`
    held : the levels that a rule holds
    """

    groups: tuple[GroupEvidence, ...]
    scale: float
    held: Held


@dataclass(frozen=True)
class SmoothFit:
    """A fitted layer of smooth shapes.

    Attributes
    ----------
    part : the additive part, tables joined
    solution, chosen : what was found before tables were joined
    ranked : the evidence for all pairs of features, if pairs were asked for
    covariance : of intercept, levels and cells, if intervals were asked for; see `FitRecord`
    """

    part: Part
    solution: Solution
    chosen: Chosen
    ranked: tuple[PairEvidence, ...] | None
    covariance: tuple[float, ...]
    _rows: Rows
    _tables: tuple[Floats, ...]

    def scores(self) -> Iterator[Floats]:
        """Yield the scores of the training rows, batch by batch, from their codes."""
        for block in self._rows:
            yield look_up(self.part.intercept, block.codes, self._tables, len(block))


def fine_bins(n_features: int) -> int:
    """Return the number of fine bins of a continuous feature."""
    return int(np.clip(_COEFFICIENTS // max(n_features, 1), _LEAST_BINS, _FINE_BINS))


def fit_smooth(
    training: TrainingRows,
    link: Logistic | Linear,
    *,
    pairs: Pairs = None,
    max_bins: int | None,
    min_rows: int,
    tolerance: float,
    intervals: bool = False,
) -> SmoothFit:
    """Find fine bins, code the rows, solve for coefficients and precisions, and join bins.

    Parameters
    ----------
    link : the least squares of a Linear need pair counts alone
    pairs : pairs of features to add: "auto", a number or a list
    max_bins : rows of a table in the order at most, or None
    min_rows : training rows of a fine bin at least
    tolerance : what joining bins may cost, in mean log loss (Logistic) or mean squared error (Linear)
    intervals : whether the covariance of the scores is wanted
    """
    schema = training.schema
    coded = fine_rows(training, min_rows)
    # Which levels break their rules, and which pairs are needed, is seen before the precisions are known exactly.
    search = _RuleSearch(coded, schema, link)
    problem, solution, _ = search.run(_ROUGHLY)
    ranked = None
    if pairs is not None:
        scores = problem.design.level_scores(solution)
        axes = coarse_axes(coded, schema)
        ranked = tuple(rank_pairs(coded, axes, link, solution.intercept, scores))
        wanted = chosen_pairs(pairs, ranked, coded.names, axes)
        if wanted:
            search.add(PairRows(coded, axes, wanted, found=pairs == "auto"))
            search.run(_ROUGHLY)
    problem, solution, evidence = search.run(_EXACTLY)
    part = table_part("all", problem.design, solution, link, schema)
    cells = problem.pair_scores(solution)
    joined = Joiner(part, problem, cells, schema).join(tolerance, max_bins)
    groups = tuple(
        GroupEvidence(names, kind, size, float(evidence.precision[u]), float(evidence.edf[u]), bool(evidence.left[u]))
        for u, (names, kind, size) in enumerate(problem.groups)
    )
    tables = (*scores_by_code(coded, joined.level_scores), *cells)
    part = msgspec.structs.replace(joined.part, pairs=problem.pair_tables(cells))
    covariance = _covariance(problem, evidence, joined.means, cells) if intervals else ()
    chosen = Chosen(groups, evidence.scale, problem.held)
    return SmoothFit(part, solution, chosen, ranked, covariance, problem.rows, tables)


def fine_rows(training: TrainingRows, min_rows: int) -> CodedRows:
    """Find fine bins, and code the rows."""
    most = fine_bins(len(training.schema.features))
    return code_rows(training, learn_levels(training, max_bins=most, criterion="fine", min_rows=min_rows))


class _RuleSearch:
    """Finds coefficients and precisions under the schema's rules; every run starts where the last one ended.

    Attributes
    ----------
    held : the levels that a rule holds
    found : the problem that was solved last, its solution and evidence
    """

    def __init__(self, coded: CodedRows, schema: Schema, link: Logistic | Linear) -> None:
        self.coded, self.schema, self.link = coded, schema, link
        self.pairs: PairRows | None = None
        self.held = Held()
        self.found: tuple[SmoothProblem, Solution, Evidence] | None = None

    def add(self, pairs: PairRows) -> None:
        """Fit these pairs, too; a level that only the model without them would hold is free again."""
        self.pairs, self.held = pairs, Held()

    def run(self, tolerance: float) -> tuple[SmoothProblem, Solution, Evidence]:
        """Search until an update of the precisions would raise the log marginal likelihood by less than this."""
        rows = self.coded.rows if self.pairs is None else self.pairs.rows

        def solve(design: Design) -> tuple[Solution, SmoothProblem]:
            problem = SmoothProblem(design, self.link, rows, self.pairs, self.held)
            solution, evidence = problem.solve(self.found, tolerance)
            self.found = (problem, solution, evidence)
            return solution, problem

        solve_with_rules(self.coded, self.schema, smooth_contrasts(self.schema, self.held), solve)
        assert self.found is not None
        return self.found


def smooth_contrasts(schema: Schema, held: Held) -> Callable[[str, Levels, Floats, Mapping[int, Anchor]], Contrast]:
    """Return the function that chooses the coefficients of a feature; levels once `held` stay so, and are noted."""

    def contrast(name: str, levels: Levels, weights: Floats, anchors: Mapping[int, Anchor]) -> Contrast:
        feature = schema.features[name]
        held[name] = own = {**anchors, **held.get(name, {})}
        return smooth_contrast(weights, levels.n_ordered, feature.sign, ordered=is_ordered(feature), anchors=own)

    return contrast


def _covariance(
    problem: SmoothProblem, evidence: Evidence, means: Sequence[Floats], cells: Sequence[Floats]
) -> tuple[float, ...]:
    """Return the covariance of intercept, levels and cells, its lower triangle row by row.

    All of them are sums of coefficients, so their covariance follows from that of the coefficients.

    Parameters
    ----------
    means : per feature, (rows of the joined table, levels): each row's score is a mean of levels
    cells : per pair, the scores; pairs without any are not in the form
    """
    n = len(evidence.free)
    if n > _MOST_COVARIANCE:
        raise DataError(
            f"intervals: the model has {n:,} coefficients; for at most {_MOST_COVARIANCE:,} they are found."
        )
    coded, at = problem.design.coded, 1
    first = np.zeros((1, n))
    first[0, 0] = 1.0
    rows = [first]
    for contrast, weight, mean in zip(problem.design.contrasts, coded.weights, means, strict=True):
        size = contrast.indicators.shape[1]
        own, centre = np.zeros((len(mean), n)), weight @ contrast.matrix / weight.sum()
        seen = weight > 0
        seen |= False if contrast.centred is None else contrast.centred
        own[:, at : at + size] = mean @ (seen[:, None] * (contrast.matrix - centre))
        first[0, at : at + size] = centre
        rows.append(own)
        at += size
    for contrast, expand, scores in zip(problem.pair_contrasts, problem.pair_expansions(), cells, strict=True):
        size = contrast.indicators.shape[1]
        if scores.any():
            own = np.zeros((len(expand), n))
            own[:, at : at + size] = contrast.matrix[expand]
            rows.append(own)
        at += size
    matrix = np.vstack(rows)
    whole = matrix @ evidence.covariance() @ matrix.T
    return tuple(whole[np.tril_indices(len(whole))].tolist())


@dataclass(frozen=True)
class SmoothProblem:
    """What is to be solved: the coefficients of features, and of pairs if there are any.

    Attributes
    ----------
    rows : with one more code for each pair
    held : the levels that a rule holds in the design
    """

    design: Design
    link: Logistic | Linear
    rows: Rows
    pairs: PairRows | None
    held: Held

    @property
    def pair_contrasts(self) -> list[Contrast]:
        """The coefficients of the pairs, which follow those of the features."""
        return [] if self.pairs is None else self.pairs.contrasts

    @cached_property
    def layout(self) -> Layout:
        """How coefficients become row scores."""
        return Layout((*self.design.layout.matrices, *(c.matrix for c in self.pair_contrasts)))

    @cached_property
    def lower(self) -> Floats:
        """The lower bound of every coefficient."""
        return np.concatenate([self.design.lower, *(c.lower for c in self.pair_contrasts)])

    @cached_property
    def group_of(self) -> Index:
        """The group of every coefficient."""
        return np.repeat(np.arange(len(self.groups)), [size for *_, size in self.groups])

    @cached_property
    def groups(self) -> list[tuple[tuple[str, ...], GroupKind, int]]:
        """The groups in which coefficients are shrunk: whose, of which kind, how many."""
        single = [(name,) for name in self.design.coded.names]
        both: list[tuple[str, ...]] = [] if self.pairs is None else list(self.pairs.pairs)
        contrasts = (*self.design.contrasts, *self.pair_contrasts)
        each = zip([*single, *both], contrasts, strict=True)
        return [(names, *group) for names, contrast in each for group in contrast.groups]

    @property
    def _alike(self) -> Floats:
        """By group, the variance over the rows of scores whose coefficients have precision 1.

        Levels outside the order share a precision, so what is usual has no say in it: NaN.
        """
        weights = [*self.design.coded.weights, *([] if self.pairs is None else self.pairs.counts[0])]
        variances = [np.zeros(0)]
        for contrast, weight in zip((*self.design.contrasts, *self.pair_contrasts), weights, strict=True):
            share = weight / weight.sum()
            variances.append(share @ contrast.matrix**2 - (share @ contrast.matrix) ** 2)
        sums = np.bincount(self.group_of, np.concatenate(variances), minlength=len(self.groups))
        return np.where([kind == "outside" for _, kind, _ in self.groups], np.nan, sums)

    def solve(
        self, start: tuple[SmoothProblem, Solution, Evidence] | None, tolerance: float
    ) -> tuple[Solution, Evidence]:
        """Find coefficients and precisions; start from those of a similar problem, whose groups that left stay out."""
        # A level outside the order is one coefficient, too few to tell how far to shrink it: all share a precision.
        outside = np.array([kind == "outside" for _, kind, _ in self.groups])
        shared = np.where(outside, outside.argmax() if outside.any() else 0, np.arange(len(outside)))
        loss = (Moments.of if isinstance(self.link, Linear) else LogisticLoss)(self.layout, self.rows)
        # A pair that was found must be more likely in than out beside the others; one that was asked for stays.
        bar = 0.0 if self.pairs is not None and self.pairs.found else -np.inf
        needed = np.array([bar if kind == "pair" else np.nan for _, kind, _ in self.groups])
        search = partial(
            maximise_evidence,
            loss,
            self.group_of,
            shared=shared,
            alike=self._alike,
            needed=needed,
            lower=self.lower,
            tolerance=tolerance,
        )
        if start is None:
            return search()
        problem, solution, evidence = start
        place = {group[:2]: u for u, group in enumerate(problem.groups)}
        precision, left = np.full(len(self.groups), np.nan), np.zeros(len(self.groups), bool)
        point = np.zeros(1 + len(self.lower))
        point[0] = solution.intercept
        for u, (names, kind, size) in enumerate(self.groups):
            before = place.get((names, kind))
            if before is not None:
                precision[u], left[u] = evidence.precision[before], evidence.left[before]
                # Pairs that are added, and groups that a rule takes coefficients from, begin at 0.
                if problem.groups[before][2] == size:
                    point[1:][self.group_of == u] = solution.coefficients[problem.group_of == before]
        return search(precision=precision, left=left, point=point)

    def pair_scores(self, solution: Solution) -> list[Floats]:
        """Return the score of every cell of every pair."""
        found, at = [], len(self.design.lower)
        for contrast, silent in zip(self.pair_contrasts, [] if self.pairs is None else self.pairs.silent, strict=True):
            size = contrast.indicators.shape[1]
            found.append(np.where(silent, 0.0, contrast.scores(solution.coefficients[at : at + size])))
            at += size
        return found

    def pair_expansions(self) -> list[Index]:
        """Return, for every pair of the form, the coarse cell of each cell of its table."""
        return [] if self.pairs is None else self.pairs.expansions()

    def pair_tables(self, cells: Sequence[Floats]) -> tuple[PairTable, ...]:
        """Return the pairs that have not left, as shapes of the form."""
        return () if self.pairs is None else self.pairs.tables(cells)


@dataclass(frozen=True)
class _Joined:
    """A part with short tables.

    Attributes
    ----------
    level_scores : per feature, the score of every fine level, joined ones alike
    means : per feature, (rows of the table, levels): each row's score is this mean of levels
    """

    part: Part
    level_scores: tuple[Floats, ...]
    means: tuple[Floats, ...]


class Joiner:
    """Joins neighbouring bins of the tables of a part, and measures what that costs on the training rows."""

    def __init__(self, part: Part, problem: SmoothProblem, cells: Sequence[Floats], schema: Schema) -> None:
        self.schema = schema
        self.part, self.coded, self.rows, self.cells = part, problem.design.coded, problem.rows, cells
        self.tables: dict[str, Table] = {n: shape for n, shape in part.shapes.items() if isinstance(shape, Table)}
        self.scores = tuple(np.asarray(table.scores) for table in self.tables.values())
        self.loss, by_code = self._measure(self.scores)
        self.curvature = [c for j, own in zip(self.coded.joints, by_code, strict=False) for c in j.margins(own)]
        # Only bins have neighbours that can be joined, and edges that the schema states stay.
        self.bins = [
            j
            for j, (name, table) in enumerate(self.tables.items())
            if isinstance(table.levels, Bins) and schema.features[name].edges is None
        ]

    def join(self, tolerance: float, most: int | None) -> _Joined:
        """Return the part with tables as short as the tolerance allows."""
        runs = [best_runs(self._ordered(j), self._weights(j)) for j in self.bins]
        budget = tolerance
        while True:
            counts = rows_within(runs, budget, most)
            starts = {j: one.starts(k) for j, one, k in zip(self.bins, runs, counts, strict=True)}
            joined = self.joined(starts)
            # The errors of several tables add up where features go together, so the cost is measured.
            if most is not None or self._measure(joined.level_scores)[0] <= self.loss + tolerance or budget < 1e-12:
                return joined
            budget /= 2.0

    def _ordered(self, j: int) -> Floats:
        return self.scores[j][: self.coded.levels[j].n_ordered]

    def _weights(self, j: int) -> Floats:
        return self.curvature[j][: self.coded.levels[j].n_ordered] / self.rows.totals[1]

    def joined(self, starts: Mapping[int, Sequence[int]]) -> _Joined:
        """Return the part with tables whose rows start at these bins."""
        shapes: dict[str, Shape] = dict(self.part.shapes)
        fine, means = list(self.scores), [np.eye(len(scores)) for scores in self.scores]
        for j, (name, table) in enumerate(self.tables.items()):
            if j in starts and isinstance(table.levels, Bins):
                joined = joined_scores(self._ordered(j), self._weights(j), starts[j])
                n, short = table.levels.n_ordered, _short(table, table.levels, joined, starts[j])
                held = held_scores(
                    np.asarray(short.scores),
                    np.asarray(short.weights),
                    short.levels,
                    self.schema.features[name],
                    self.schema.worse,
                )
                shapes[name] = msgspec.structs.replace(short, scores=tuple(held.tolist()))
                fine[j] = np.concatenate([np.repeat(joined, np.diff([*starts[j], n])), held[len(joined) :]])
                means[j] = _means(self._weights(j), starts[j], len(table.scores))
        return _Joined(msgspec.structs.replace(self.part, shapes=shapes), tuple(fine), tuple(means))

    def _measure(self, level_scores: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the mean loss with these scores, and the curvature of the summed loss by joint code."""
        tables, intercept = [*scores_by_code(self.coded, level_scores), *self.cells], self.part.intercept
        sizes = [len(table) for table in tables]

        def logistic(block: Block) -> tuple[float, list[Floats]]:
            found = logistic_pass(intercept, block.codes, tables, block.positive, block.weight, curvature=True)
            return found.loss, level_sums(found.curvature, block.codes, sizes)

        def squares(block: Block) -> tuple[float, list[Floats]]:
            score = look_up(intercept, block.codes, tables, len(block))
            weight = np.ones(len(block)) if block.weight is None else block.weight
            loss = weight @ score**2 + block.positive @ (1.0 - 2.0 * score)
            return float(loss), level_sums(2.0 * weight, block.codes, sizes)

        loss, by_code = self.rows.sum(squares if isinstance(self.part.link, Linear) else logistic)
        return loss / self.rows.totals[1], by_code


def _means(weights: Floats, starts: Sequence[int], n_levels: int) -> Floats:
    """Return the mean of levels that each row of a short table stands for."""
    n = len(weights)
    run = np.searchsorted(starts, np.arange(n), side="right") - 1
    mass = np.maximum(weights, np.finfo(float).tiny)
    out = np.zeros((len(starts) + n_levels - n, n_levels))
    out[run, np.arange(n)] = mass / np.bincount(run, mass)[run]
    out[np.arange(len(starts), len(out)), np.arange(n, n_levels)] = 1.0
    return out


def _short(table: Table, levels: Bins, joined: Floats, starts: Sequence[int]) -> Table:
    """Return a table with one row for each run of bins."""
    n = levels.n_ordered

    def added(values: tuple[float, ...]) -> tuple[float, ...]:
        return (*np.add.reduceat(np.asarray(values[:n]), starts).tolist(), *values[n:])

    return Table(
        levels=msgspec.structs.replace(levels, edges=tuple(levels.edges[start - 1] for start in starts[1:])),
        scores=(*joined.tolist(), *table.scores[n:]),
        weights=added(table.weights),
        positives=added(table.positives),
    )
