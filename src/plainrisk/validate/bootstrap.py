"""The bootstrap: hundreds of refits of a model with its bins unchanged.

Rows with equal codes and outcome are one cell. Drawing M rows with replacement is drawing the cells' counts from a
multinomial distribution, and a refit sees the rows through these counts only. Every subscale collapses the cells
further, to its own few; all subscales and their weights are refitted to the same draw.

The fine bins of smooth shapes are hardly ever alike in two rows, so rows stay rows there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from plainrisk._native import look_up
from plainrisk._types import Codes, Counts, Floats, Index
from plainrisk.checks import SEED, check_parameters, whole
from plainrisk.errors import DataError, PlainriskError, quiet
from plainrisk.explain.uncertainty import Refits
from plainrisk.fit.basis import table_part
from plainrisk.fit.coding import CodedRows, code_rows, rule_anchors, scores_by_code
from plainrisk.fit.finer import code_fine_rows
from plainrisk.fit.merge import FineTables
from plainrisk.fit.pairs import PairRows
from plainrisk.fit.parameters import fitted_link
from plainrisk.fit.plan import Fitted, Plan, fit_plan
from plainrisk.fit.training import Training, read_training
from plainrisk.fit.weights import rows_meant
from plainrisk.form import (
    Alone,
    Bins,
    Layer,
    Linear,
    Logistic,
    PairTable,
    Part,
    Pool,
    RiskForm,
    Shape,
    Table,
)
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.linearise import Linearised
from plainrisk.models.mixture import SubscaleMixture, risk_products, stacked_weights
from plainrisk.models.two_layer import TwoLayerRiskModel, second_layer
from plainrisk.solve import Block, Rows
from plainrisk.solve.hedge import hedge_weights, learning_rate, summed_losses

__all__ = ["bootstrap"]


def bootstrap(model: Any, X: Any, y: Any = None, n: int = 200, seed: int = 0, *, sample_weight: Any = None) -> Refits:
    """Fit a model again to resampled rows, keeping its bins, links and ridge.

    Of smooth shapes it keeps the fine bins, the rows of tables, the pairs, how much each group of coefficients is
    shrunk, and the levels that a rule holds. So intervals do not show how uncertain these choices are. All refits are
    shrunk to the same values, so they differ less than draws of `model.posterior()`, but unlike those they keep
    directions.

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
    with quiet():  # the first fit said it
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
    if isinstance(form.pool, Alone):
        return swap(form, parts=parts)
    return swap(form, parts=parts, pool=swap(form.pool, link=like.last_link))


@dataclass(frozen=True)
class _Expert:
    """One part, ready to be fitted to any weights of the joint cells.

    Attributes
    ----------
    part, link : of the first fit, and the link it was fitted with
    plan : what is fitted: the first fit's basis, at its ridge or precisions
    cell : (joint cells,) which of the part's own cells each joint cell is in
    codes : joint codes of the part's own cells, and of the cells of pairs
    start : the first fit
    starts : of smooth shapes, by position of a feature: the fine bins that the rows of its table start at
    """

    part: Part
    plan: Plan
    cell: Index
    codes: tuple[Codes, ...]
    start: Fitted
    starts: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, part: Part, model: AdditiveRiskModel, cells: Training) -> _Expert:
        """Prepare one part for its refits; the fine bins of the same rows are always the same."""
        expert_cells = cells.with_schema(cells.schema.part(tuple(part.shapes)))
        with quiet():  # the first fit said it
            plan = _plan(part, model, expert_cells)
        basis = plan.basis(plan.held)
        if len(model.solution_.coefficients) != basis.layout.n_coefficients:
            raise PlainriskError("bootstrap: the rows do not have the levels the model was fitted with.")
        start = Fitted(basis, model.solution_.point)
        if plan.pairs is not None:
            # A pair that is 0 throughout is not in the form: a direction allows no more.
            inside = [pair.features for pair in part.pairs]
            plan = replace(plan, pairs=PairRows(plan.coded, plan.pairs.axes, inside) if inside else None)
        starts = {}
        if plan.known is not None:
            starts = {j: _starts(plan.coded, j, shape) for j, shape in enumerate(part.shapes.values())}
        codes = next(iter(plan.coded.rows if plan.pairs is None else plan.pairs.rows)).codes
        first, cell = _distinct(codes) if plan.known is None else (np.arange(cells.n_rows),) * 2
        return cls(part, plan, cell, tuple(c[first] for c in codes), start, starts)

    def fit(self, weight: Floats, positive: Floats) -> tuple[Part, Floats]:
        """Fit the part to joint cells with these weights; return it, and the score of every joint cell."""
        n = len(self.codes[0])
        total, hits = (np.bincount(self.cell, values, minlength=n).astype(np.float64) for values in (weight, positive))
        block = Block(self.codes, hits, total)
        # A draw may break a rule that the first fit kept by itself.
        fitted = fit_plan(replace(self.plan, weighted=Rows([block.take(np.flatnonzero(total))])), self.start)
        intercept, beta, basis, schema = float(fitted.point[0]), fitted.point[1:], fitted.basis, self.plan.schema
        link = Linear() if self.plan.link == "linear" else Logistic()
        part, tables = table_part(basis, intercept, beta, link, schema), basis.layout.tables(beta)
        if self.plan.known is not None:
            cells = basis.pair_scores(beta)
            merged = FineTables(part, basis, cells, schema).starting_at(self.starts)
            part = msgspec.structs.replace(merged.part, pairs=self._pair_tables(cells))
            intercept, tables = part.intercept, [*scores_by_code(basis.coded, merged.level_scores), *cells]
        named = msgspec.structs.replace(part, name=self.part.name, link=self.part.link)
        return named, look_up(intercept, self.codes, tables, n)[self.cell]

    def _pair_tables(self, cells: Sequence[Floats]) -> tuple[PairTable, ...]:
        """Return the pairs with other scores."""
        if self.plan.pairs is None:
            return ()
        each = zip(self.plan.pairs.pairs, cells, self.plan.pairs.expansions(), strict=True)
        scores = {features: own[coarse] for features, own, coarse in each}
        found = [(pair, scores[pair.features].reshape(np.shape(pair.scores))) for pair in self.part.pairs]
        return tuple(msgspec.structs.replace(pair, scores=tuple(map(tuple, own.tolist()))) for pair, own in found)


def _plan(part: Part, model: AdditiveRiskModel, cells: Training) -> Plan:
    """Return what a refit fits: everything that the first fit chose is kept."""
    schema, chosen, link = cells.schema, model._chosen, fitted_link(model)
    if chosen is None:
        coded = code_rows(cells, {name: shape.levels for name, shape in part.shapes.items()})
        held = rule_anchors(coded, schema, [np.asarray(shape.scores) for shape in part.shapes.values()])
        return Plan(coded, schema, link, "steps", model.ridge_, held=held)
    coded = code_fine_rows(cells)
    pairs = None if chosen.axes is None else PairRows(coded, chosen.axes, chosen.pairs)
    total = rows_meant(cells, coded.rows, model.weights)
    cuts = {name: frozenset(cuts) for name, cuts in chosen.cuts.items()}
    kept = {"cuts": cuts, "pairs": pairs, "held": chosen.held, "known": chosen, "total": total}
    return Plan(coded, schema, link, "smooth", **kept)  # type: ignore[arg-type]


def _starts(coded: CodedRows, j: int, shape: Shape) -> list[int]:
    """Return the fine bins that the rows of a table start at; raise unless the table is of these rows."""
    levels, weights, n = coded.levels[j], coded.weights[j], coded.levels[j].n_ordered
    starts = list(range(n))
    if isinstance(levels, Bins) and isinstance(shape.levels, Bins):
        place = {edge: k for k, edge in enumerate(levels.edges, start=1)}
        starts = [0, *(place[edge] for edge in shape.levels.edges if edge in place)]
    summed = np.append(np.add.reduceat(weights[:n], starts) if n else [], weights[n:])
    if len(summed) != len(shape.weights) or not np.allclose(summed, shape.weights):
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
    experts: tuple[_Expert, ...]

    @classmethod
    def of(cls, model: Any, training: Training, *, collapse: bool) -> _Refitter:
        """Collapse the rows and prepare every part."""
        parts, layers = _additive_parts(model.form_), _one_layers(model)
        first, count = _joint_cells(parts, training, collapse and all(one._chosen is None for one in layers))
        cells = training.subset(first)
        weight = count.astype(np.float64) * (1.0 if cells.weight is None else cells.weight)
        weighted = replace(cells, weight=weight)
        experts = [
            _Expert.of(part, one, weighted if one._chosen is None else cells)
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
            layer = second_layer(model.link, Rows([block]), risks.shape[1], model.ridge_)
            return msgspec.structs.replace(pool, intercept=layer.intercept, weights=tuple(layer.coefficients.tolist()))
        if model.weights == "stacking":
            return msgspec.structs.replace(pool, weights=tuple(stacked_weights(*risk_products(risks, rows)).tolist()))
        losses = summed_losses(risks, rows.target, rows.weight, model.loss, model.clips_)
        eta = learning_rate(model.learning_rate, risks.shape[1], rows.total)
        return msgspec.structs.replace(pool, weights=tuple(hedge_weights(losses, eta).tolist()))


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
    layers = []
    for name, one in fitted.items():
        inner = one.estimator_ if isinstance(one, Linearised) else one
        if not isinstance(inner, AdditiveRiskModel):
            raise DataError(
                f"bootstrap cannot refit subscale {name!r}: {type(inner).__name__} is no AdditiveRiskModel."
            )
        layers.append(inner)
    return layers


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
