"""The bootstrap: hundreds of refits of a model whose bins stay as they are.

Rows with equal codes and outcome are one cell. Drawing M rows with replacement is drawing the cells' counts from a
multinomial distribution, and a refit sees the rows through these counts only. Every subscale collapses the cells
further, to its own few; all subscales and their weights are refitted to the same draw.

The fine bins of smooth shapes are hardly ever alike in two rows, so rows stay rows there.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from plainrisk._native import look_up
from plainrisk._types import Codes, Counts, Floats, Index
from plainrisk.checks import SEED, check_parameters, whole
from plainrisk.errors import DataError, PlainriskError, PlainriskWarning
from plainrisk.explain.uncertainty import Refits
from plainrisk.form import (
    Alone,
    Bins,
    Layer,
    Linear,
    Link,
    Logistic,
    Mixture,
    PairTable,
    Part,
    Pool,
    RiskForm,
    Shape,
    Table,
)
from plainrisk.models.arm import AdditiveRiskModel, LinkName, Problem, make_design, step_contrasts
from plainrisk.models.design import CodedRows, Design, scores_by_code, solve_with_rules, table_part
from plainrisk.models.linearise import Linearised
from plainrisk.models.mixture import RiskSums, SubscaleMixture
from plainrisk.models.pairs import PairRows, coarse_axes
from plainrisk.models.smooth import Chosen, Joiner, SmoothProblem, fine_rows, smooth_contrasts
from plainrisk.models.training import Training, read_training
from plainrisk.models.two_layer import TwoLayerRiskModel, second_layer
from plainrisk.schema import Schema
from plainrisk.solve import Block, Rows, Solution
from plainrisk.solve.hedge import hedge_weights, learning_rate, summed_losses

__all__ = ["bootstrap"]


def bootstrap(model: Any, X: Any, y: Any = None, n: int = 200, seed: int = 0, *, sample_weight: Any = None) -> Refits:
    """Fit a model again to resampled rows, keeping its bins, links and ridge.

    Of smooth shapes it keeps the fine bins, the rows of tables, the pairs, how much each group of coefficients is
    shrunk, and the levels that a rule holds; what has left the model stays away. So intervals do not tell how uncertain
    these choices are. All refits are shrunk to the same values, so they differ less than draws of `model.posterior()`,
    but unlike those they keep directions.

    Parameters
    ----------
    model : fitted AdditiveRiskModel, TwoLayerRiskModel or SubscaleMixture, or one of them Linearised
        Its subscale models must be AdditiveRiskModel, Linearised or not.
    X, y, sample_weight : the rows it was fitted to
    n : int, default=200
        How many refits.
    seed : int, default=0

    Returns
    -------
    Refits
        With intervals for shapes, weights, contributions and risks.

    Examples
    --------
    >>> from plainrisk import AdditiveRiskModel, datasets
    >>> credit = datasets.make_credit(500, seed=1)
    >>> model = AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    >>> refits = bootstrap(model, credit.frame, credit.target, n=20)
    >>> risk = refits.risk(credit.frame)
    >>> bool((risk.low <= risk.high).all())
    True
    """
    check_parameters("bootstrap", {"n": n, "seed": seed}, {"n": whole(1), "seed": SEED})
    base = getattr(model, "estimator_", model.estimator) if isinstance(model, Linearised) else model
    if not isinstance(base, AdditiveRiskModel | TwoLayerRiskModel | SubscaleMixture):
        raise DataError(f"bootstrap cannot refit {type(base).__name__}: it has no bins to keep.")
    model._require_form()
    training = _training(base, X, y, sample_weight)
    refitter = _Refitter.of(base, training, collapse=sample_weight is None)
    rng = np.random.default_rng(seed)
    links = model.form_
    forms = tuple(_with_links(refitter.refit(refitter.draw(rng)), links) for _ in range(n))
    return Refits(links, forms)


def _training(model: Any, X: Any, y: Any, sample_weight: Any) -> Training:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)  # the first fit said it
        training = read_training(X, y, model.form_.schema, sample_weight, model.class_weight)
    record = model.fit_record_
    if record is not None and len(training.target) != record.rows:
        raise DataError(
            f"bootstrap needs the rows the model was fitted to: {record.rows:,}, not {len(training.target):,}."
        )
    return training


def _with_links(form: RiskForm, like: RiskForm) -> RiskForm:
    """Return a form with the links of another."""
    swap = msgspec.structs.replace
    parts = tuple(swap(p, link=q.link) for p, q in zip(form.parts, like.parts, strict=True))
    if isinstance(form.pool, Alone | Mixture):
        return swap(form, parts=parts)
    return swap(form, parts=parts, pool=swap(form.pool, link=like.pool.link))  # type: ignore[union-attr]


@dataclass(frozen=True)
class _Expert:
    """One part, ready to be fitted to any weights of the joint cells.

    Attributes
    ----------
    cell : (joint cells,) which of the part's own cells each joint cell is in
    codes : joint codes of the part's own cells
    start : where the solver starts: the first fit
    """

    name: str
    link: Link
    fitted_link: LinkName
    ridge: float
    schema: Schema
    design: Design
    cell: Index
    codes: tuple[Codes, ...]
    start: Floats

    @classmethod
    def of(cls, part: Part, model: AdditiveRiskModel, cells: Training) -> _Expert:
        """Prepare one part for its refits."""
        own = cells.with_schema(cells.schema.part(part.features))
        scores = [np.asarray(shape.scores) for shape in part.shapes.values()]
        design = make_design(own, {name: shape.levels for name, shape in part.shapes.items()}, scores)
        if len(model.solution_.coefficients) != len(design.lower):
            raise PlainriskError("bootstrap: the rows do not have the levels the model was fitted with.")
        codes = next(iter(design.coded.rows)).codes
        first, cell = _distinct(codes)
        own_codes = tuple(code[first] for code in codes)
        start = model.solution_.point
        return cls(part.name, part.link, model._settings.link, model.ridge_, own.schema, design, cell, own_codes, start)

    def fit(self, weight: Floats, positive: Floats) -> tuple[Part, Floats]:
        """Fit the part to joint cells with these weights; return it, and the score of every joint cell."""
        n = len(self.codes[0])
        total, hits = (np.bincount(self.cell, values, minlength=n) for values in (weight, positive))
        rows = Rows([Block(self.codes, hits.astype(np.float64), total.astype(np.float64))])

        def solve(design: Design) -> tuple[Solution, None]:
            start = self.start if len(design.lower) == len(self.design.lower) else None
            return Problem(self.fitted_link, design.layout, rows, lower=design.lower).solve(self.ridge, start), None

        # A draw may break a rule that the first fit kept by itself.
        design, found, _ = solve_with_rules(self.design.coded, self.schema, step_contrasts(self.schema), solve)
        return table_part(self.name, design, found, self.link, self.schema), next(design.scores(found))


@dataclass(frozen=True)
class _SmoothExpert:
    """One part of smooth shapes, ready to be fitted to any weights of the rows.

    Attributes
    ----------
    part, model, chosen : the first fit
    coded, pairs : the rows in fine bins, and in the cells of pairs if there are any
    starts : by position of a feature, the fine bins that the rows of its table start at
    """

    part: Part
    model: AdditiveRiskModel
    chosen: Chosen
    schema: Schema
    coded: CodedRows
    pairs: PairRows | None
    starts: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, part: Part, model: AdditiveRiskModel, chosen: Chosen, rows: Training) -> _SmoothExpert:
        """Find the fine bins again, which are always the same for the same rows."""
        schema = rows.schema.part(tuple(part.shapes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)  # the first fit said it
            coded = fine_rows(rows.with_schema(schema), model._settings.min_rows(rows.n_rows))
        both = [(g.features[0], g.features[1]) for g in chosen.groups if g.kind == "pair"]
        pairs = PairRows(coded, coarse_axes(coded, schema), both) if both else None
        starts = {j: _starts(coded, j, shape) for j, shape in enumerate(part.shapes.values())}
        return cls(part, model, chosen, schema, coded, pairs, starts)

    def fit(self, weight: Floats, positive: Floats) -> tuple[Part, Floats]:
        """Fit the part to rows with these weights; return it, and the score of every row."""
        codes = (self.coded.rows if self.pairs is None else self.pairs.rows).blocks[0].codes
        rows = Rows([Block(codes, positive, weight).take(np.flatnonzero(weight))])
        link = Linear() if self.model._settings.link == "linear" else Logistic()
        held = dict(self.chosen.held)  # and more, where a draw breaks a rule that the first fit kept by itself
        start = self.model.solution_.point

        def solve(design: Design) -> tuple[Solution, SmoothProblem]:
            nonlocal start
            problem = SmoothProblem(design, link, rows, self.pairs, held)
            solution = self._solve(problem, start)
            start = solution.point
            return solution, problem

        design, found, problem = solve_with_rules(self.coded, self.schema, smooth_contrasts(self.schema, held), solve)
        cells = problem.pair_scores(found)
        part = table_part(self.part.name, design, found, link, self.schema)
        joined = Joiner(part, problem, cells, self.schema).joined(self.starts)
        tables = (*scores_by_code(self.coded, joined.level_scores), *cells)
        part = msgspec.structs.replace(joined.part, link=self.part.link, pairs=self._pair_tables(cells))
        return part, look_up(part.intercept, codes, tables, len(weight))

    def _solve(self, problem: SmoothProblem, start: Floats) -> Solution:
        """Find coefficients at the precisions of the first fit."""
        known = {(group.features, group.kind): group for group in self.chosen.groups}
        each = [known[group[:2]] for group in problem.groups]
        # A pair that is 0 throughout is not in the form, whether it has left or a direction allows no more.
        inside = {(name,) for name in self.part.shapes} | {pair.features for pair in self.part.pairs}
        left = np.array([group.left or group.features not in inside for group in each], bool)[problem.group_of]
        lower, upper = np.where(left, 0.0, problem.lower), np.where(left, 0.0, np.inf)
        precision = np.array([group.precision for group in each])[problem.group_of]
        # Half the sum of squared errors is what the evidence sees of a linear model.
        ridge = self.chosen.scale / problem.rows.totals[1] / (1.0 if self.model._settings.link == "linear" else 2.0)
        bounded = Problem(self.model._settings.link, problem.layout, problem.rows, lower, upper, scale=precision)
        return bounded.solve(ridge, start if len(start) == 1 + len(lower) else None)

    def _pair_tables(self, cells: Sequence[Floats]) -> tuple[PairTable, ...]:
        """Return the pairs with other scores."""
        if self.pairs is None:
            return ()
        each = zip(self.pairs.pairs, cells, self.pairs.expansions(), strict=True)
        scores = {features: own[coarse] for features, own, coarse in each}
        found = [(pair, scores[pair.features].reshape(np.shape(pair.scores))) for pair in self.part.pairs]
        return tuple(msgspec.structs.replace(pair, scores=tuple(map(tuple, own.tolist()))) for pair, own in found)


def _starts(coded: CodedRows, j: int, shape: Shape) -> list[int]:
    """Return the fine bins that the rows of a table start at; raise unless the table is of these rows."""
    levels, weights, n = coded.levels[j], coded.weights[j], coded.levels[j].n_ordered
    starts = list(range(n))
    if isinstance(levels, Bins) and isinstance(shape.levels, Bins):
        place = {edge: k for k, edge in enumerate(levels.edges, start=1)}
        starts = [0, *(place[edge] for edge in shape.levels.edges if edge in place)]
    found = np.append(np.add.reduceat(weights[:n], starts) if n else [], weights[n:])
    if len(found) != len(shape.weights) or not np.allclose(found, shape.weights):
        raise DataError(
            f"bootstrap needs the rows and weights the model was fitted to: the levels of feature {coded.names[j]!r}, "
            "or their counts, are others."
        )
    return starts


@dataclass(frozen=True)
class _Refitter:
    """A model's rows as joint cells, and its parts.

    Attributes
    ----------
    cells : one row per cell; `cells.weight` is what one row of it weighs
    count : (cells,) how many rows are in each
    """

    model: Any
    cells: Training
    count: Counts
    experts: tuple[_Expert | _SmoothExpert, ...]

    @classmethod
    def of(cls, model: Any, training: Training, *, collapse: bool) -> _Refitter:
        """Collapse the rows and prepare every part."""
        parts, layers = _additive_parts(model.form_), _one_layers(model)
        first, count = _joint_cells(parts, training, collapse and all(one._chosen is None for one in layers))
        cells = training.subset(first)
        weight = count.astype(np.float64) * (1.0 if cells.weight is None else cells.weight)
        weighted = replace(cells, weight=weight)
        experts = [
            _Expert.of(part, one, weighted) if one._chosen is None else _SmoothExpert.of(part, one, one._chosen, cells)
            for part, one in zip(parts, layers, strict=True)
        ]
        return cls(model, cells, count, tuple(experts))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return the weights of the cells in one resample."""
        total = int(self.count.sum())
        drawn = rng.multinomial(total, self.count / total).astype(np.float64)
        return drawn if self.cells.weight is None else drawn * self.cells.weight

    def refit(self, weight: Floats) -> RiskForm:
        """Return the form fitted to cells with these weights."""
        positive = weight * self.cells.target
        parts, scores = zip(*(expert.fit(weight, positive) for expert in self.experts), strict=True)
        risks = np.column_stack([part.link.value(own) for part, own in zip(parts, scores, strict=True)])
        form: RiskForm = self.model.form_
        return msgspec.structs.replace(form, parts=parts, pool=self._pool(risks, weight))

    def _pool(self, risks: Floats, weight: Floats) -> Pool:
        model = self.model
        pool: Pool = model.form_.pool
        if isinstance(pool, Alone):
            return pool
        drawn = np.flatnonzero(weight)
        rows, risks = replace(self.cells, weight=weight).subset(drawn), risks[drawn]
        if isinstance(pool, Layer):
            block = Block((), rows.positive, rows.weight, risks)
            found = second_layer(model.link, Rows([block]), risks.shape[1]).solve(model.ridge_)
            return msgspec.structs.replace(pool, intercept=found.intercept, weights=tuple(found.coefficients.tolist()))
        if model.weights == "stacking":
            sums = RiskSums(risks.shape[1])
            sums.add(risks, rows)
            return Mixture(tuple(sums.weights().tolist()))
        losses = summed_losses(risks, rows.target, rows.weight, model.loss, model.clips_)
        eta = learning_rate(model.learning_rate, risks.shape[1], rows.total)
        return Mixture(tuple(hedge_weights(losses, eta).tolist()))


def _additive_parts(form: RiskForm) -> list[Part]:
    for part in form.parts:
        if not isinstance(part, Part) or not all(isinstance(s, Table) for s in part.shapes.values()):
            raise DataError(f"bootstrap keeps bins, and part {part.name!r} has none.")
    return [part for part in form.parts if isinstance(part, Part)]


def _one_layers(model: Any) -> list[AdditiveRiskModel]:
    """Return the additive model behind every part."""
    if isinstance(model, AdditiveRiskModel):
        return [model]
    if isinstance(model, SubscaleMixture):
        if model.cv is not None:
            raise DataError("bootstrap judges experts on the rows they were fitted to. Fit the mixture with cv=None.")
        fitted = {name: expert.model for name, expert in model.experts_.items()}
    else:
        fitted = model.estimators_
    found = []
    for name, one in fitted.items():
        inner = one.estimator_ if isinstance(one, Linearised) else one
        if not isinstance(inner, AdditiveRiskModel):
            raise DataError(
                f"bootstrap cannot refit subscale {name!r}: {type(inner).__name__} is no AdditiveRiskModel."
            )
        found.append(inner)
    return found


def _joint_cells(parts: Sequence[Part], training: Training, collapse: bool) -> tuple[Index, Counts]:
    """Return a row of every cell, and how many rows are in it."""
    if not collapse:
        return np.arange(training.n_rows), np.ones(training.n_rows, np.int64)
    codes = [p.shapes[name].levels.codes(training.frame, name) for p in parts for name in p.shapes]
    first, cell = _distinct([training.target, *codes])
    return first, np.bincount(cell).astype(np.int64)


def _distinct(codes: Sequence[Codes]) -> tuple[Index, Index]:
    """Return a row of every distinct combination of codes, and which combination every row is."""
    key = np.zeros(len(codes[0]), dtype=np.intp)
    for code in codes:
        # Renumbering after every column keeps the key small.
        key = np.unique(key * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1]
    _, first = np.unique(key, return_index=True)
    return first, key
