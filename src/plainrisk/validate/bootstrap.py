"""The bootstrap: hundreds of refits of a model with its bins unchanged.

A refit sees the rows as codes, through sums over them. So equal rows are processed once, and a refit is the same sums
with other weights, wherever the rows are (`plainrisk.validate.draws`). All subscales and their weights are refitted to
the same draw.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk.checks import SEED, check_parameters, whole
from plainrisk.data.lockstep import kept_in_step
from plainrisk.data.rows import is_stored
from plainrisk.data.spool import Kept
from plainrisk.errors import DataError, PlainriskError, quiet
from plainrisk.explain.uncertainty import Refits
from plainrisk.fit.basis import table_part
from plainrisk.fit.coding import CodedRows, Encoder, coded_rows, collapsed, rule_anchors, scores_by_code
from plainrisk.fit.finer import fine_levels
from plainrisk.fit.merge import FineTables
from plainrisk.fit.pairs import PairRows
from plainrisk.fit.plan import Fitted, Plan, fit_plan, fitted_link, link_of
from plainrisk.fit.stream import read_stream
from plainrisk.fit.training import TrainingRows, read_training
from plainrisk.form import (
    Alone,
    Bins,
    Layer,
    Levels,
    Mixture,
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
from plainrisk.schema import Schema
from plainrisk.solve import Block, Rows
from plainrisk.solve.hedge import LossName, hedge_weights, learning_rate, loss_sums
from plainrisk.totals import identity
from plainrisk.validate.draws import Cells, Draw, PartTables

__all__ = ["bootstrap"]

# The number of refits that share passes over the rows. Each needs a few megabytes at a time: a Hessian, or the rows
# for it.
_TOGETHER = 16


def bootstrap(model: Any, X: Any, y: Any = None, n: int = 200, seed: int = 0, *, sample_weight: Any = None) -> Refits:
    """Fit a model again to resampled rows, keeping its bins, links and ridge.

    How often a row is drawn has a Poisson distribution of mean 1, and is decided by a hash of what the model reads of
    the row. So the refits are the same in memory, in Parquet and CSV files and on Spark (`pr.rows`).

    Of smooth shapes it keeps the fine bins, the rows of tables, the pairs, how much each group of coefficients is
    shrunk, and the levels that a rule holds. So intervals do not show how uncertain these choices are. All refits are
    shrunk to the same values, so they differ less than draws of `model.posterior()`, but unlike those they keep
    directions.

    Parameters
    ----------
    model : fitted AdditiveRiskModel, TwoLayerRiskModel or SubscaleMixture, or one of them Linearised
        Its subscale models must be AdditiveRiskModel, Linearised or not.
    X, y, sample_weight : the rows it was fitted to, or the same rows in another place
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
    with quiet():  # the first fit said it
        training = _training(base, X, y, sample_weight)
        try:
            refitter = _Refitter.of(base, training)
            refits = refitter.refits([Draw(int(seed), number) for number in range(n)])
        finally:
            training.free()
    return Refits(model.form_, tuple(_with_links(form, model.form_) for form in refits))


def _training(model: Any, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
    read = read_stream if is_stored(X) else read_training
    training: TrainingRows = read(X, y, model.form_.schema, sample_weight, model.class_weight)
    record = model.fit_record_
    if record is not None and training.n_rows != record.rows:
        raise DataError(f"bootstrap needs the rows the model was fitted to: {record.rows:,}, not {training.n_rows:,}.")
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
    """One part, ready to be fitted to any draw.

    Attributes
    ----------
    part, link : of the first fit, and the link it was fitted with
    plan : what is fitted: the first fit's basis, at its ridge or precisions
    start : the first fit
    starts : of smooth shapes, by position of a feature: the fine bins that the rows of its table start at
    """

    part: Part
    plan: Plan
    start: Fitted
    starts: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, part: Part, model: AdditiveRiskModel, coded: CodedRows, schema: Schema) -> _Expert:
        """Prepare one part for its refits."""
        plan = _plan(part, model, coded, schema)
        basis = plan.basis(plan.held)
        if len(model.solution_.coefficients) != basis.layout.n_coefficients:
            raise PlainriskError("bootstrap: the rows do not have the levels the model was fitted with.")
        start = Fitted(basis, model.solution_.point)
        if plan.pairs is not None:
            # A pair that is 0 throughout is not in the form: a direction allows no more.
            inside = [pair.features for pair in part.pairs]
            plan = replace(plan, pairs=PairRows(coded, plan.pairs.axes, inside) if inside else None)
        starts = {}
        if plan.known is not None:
            starts = {j: _starts(coded, j, shape) for j, shape in enumerate(part.shapes.values())}
        return cls(part, plan, start, starts)

    @property
    def with_cells(self) -> Callable[[Block], Block]:
        """What adds the codes of the cells of pairs to those of rows."""
        return identity if self.plan.pairs is None else self.plan.pairs.with_cells

    def fit(self, rows: Rows, codes: slice) -> tuple[Part, PartTables]:
        """Fit the part to drawn rows; return it, and how it scores codes."""
        if self.plan.known is None:
            rows = collapsed(rows, [joint.size for joint in self.plan.coded.joints])
        # A draw may violate a rule that the first fit obeyed by chance.
        fitted = fit_plan(replace(self.plan, weighted=rows.mapped(self.with_cells)), self.start)
        intercept, beta, basis, schema = float(fitted.point[0]), fitted.point[1:], fitted.basis, self.plan.schema
        part = table_part(basis, intercept, beta, link_of(self.plan.link), schema)
        tables = basis.layout.tables(beta)
        if self.plan.known is not None:
            cells = basis.pair_scores(beta)
            merged = FineTables(part, basis, cells, schema).starting_at(self.starts)
            part = msgspec.structs.replace(merged.part, pairs=self._pair_tables(cells))
            intercept, tables = part.intercept, [*scores_by_code(basis.coded, merged.level_scores), *cells]
        named = msgspec.structs.replace(part, name=self.part.name, link=self.part.link)
        return named, PartTables(codes, self.with_cells, intercept, tables, named.link)

    def _pair_tables(self, cells: Sequence[Floats]) -> tuple[PairTable, ...]:
        """Return the pairs with other scores."""
        if self.plan.pairs is None:
            return ()
        each = zip(self.plan.pairs.pairs, cells, self.plan.pairs.expansions(), strict=True)
        scores = {features: own[coarse] for features, own, coarse in each}
        found = [(pair, scores[pair.features].reshape(np.shape(pair.scores))) for pair in self.part.pairs]
        return tuple(msgspec.structs.replace(pair, scores=tuple(map(tuple, own.tolist()))) for pair, own in found)


def _levels(part: Part, model: AdditiveRiskModel, training: TrainingRows) -> Mapping[str, Levels]:
    """Return the levels that a part was fitted with; the fine bins of the same rows are always the same."""
    if model._chosen is not None:
        return fine_levels(training)
    return {name: shape.levels for name, shape in part.shapes.items() if isinstance(shape, Table)}


def _plan(part: Part, model: AdditiveRiskModel, coded: CodedRows, schema: Schema) -> Plan:
    """Return what a refit fits: everything that the first fit chose stays fixed."""
    chosen, link = model._chosen, fitted_link(model)
    if chosen is None:
        scores = [np.asarray(shape.scores) for shape in part.shapes.values() if isinstance(shape, Table)]
        return Plan(coded, schema, link, "steps", model.ridge_, held=rule_anchors(coded, schema, scores))
    pairs = None if chosen.axes is None else PairRows(coded, chosen.axes, chosen.pairs)
    cuts = {name: frozenset(cuts) for name, cuts in chosen.cuts.items()}
    kept = {"cuts": cuts, "pairs": pairs, "held": chosen.held, "known": chosen, "total": chosen.total}
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
    """A model's rows as cells, and its parts."""

    model: Any
    cells: Cells
    experts: tuple[_Expert, ...]

    @classmethod
    def of(cls, model: Any, training: TrainingRows) -> _Refitter:
        """Code the rows and prepare every part."""
        parts, layers = _additive_parts(model.form_), _one_layers(model)
        schemas = [training.schema.part(tuple(part.shapes)) for part in parts]
        each = list(zip(parts, layers, schemas, strict=True))
        encoders = [
            Encoder.of(_levels(part, layer, training.with_schema(schema)), training.n_rows)
            for part, layer, schema in each
        ]
        cells = Cells.of(training, encoders)
        coded = [coded_rows(encoder, cells.rows(k)) for k, encoder in enumerate(encoders)]
        return cls(
            model,
            cells,
            tuple(_Expert.of(part, layer, own, schema) for (part, layer, schema), own in zip(each, coded, strict=True)),
        )

    def refits(self, draws: Sequence[Draw]) -> list[RiskForm]:
        """Return the forms fitted to draws; several at a time in the same passes, where the rows are not in memory."""
        if self.cells.kept.only is not None:
            return list(map(self.refit, draws))
        forms: list[RiskForm] = []
        for start in range(0, len(draws), _TOGETHER):
            works = [functools.partial(self._refit_to, draw) for draw in draws[start : start + _TOGETHER]]
            forms += kept_in_step(self.cells.kept, works)
        return forms

    def _refit_to(self, draw: Draw, kept: Kept) -> RiskForm:
        return replace(self, cells=replace(self.cells, kept=kept)).refit(draw)

    def refit(self, draw: Draw | None) -> RiskForm:
        """Return the form fitted to a draw, or with None to the rows themselves."""
        drawn = replace(self.cells, draw=draw)
        fitted = [expert.fit(drawn.rows(k), drawn.codes[k]) for k, expert in enumerate(self.experts)]
        form: RiskForm = self.model.form_
        refitted = msgspec.structs.replace(form, parts=tuple(part for part, _ in fitted))
        if isinstance(form.pool, Alone):
            return refitted
        risks = drawn.risks([tables for _, tables in fitted])
        return msgspec.structs.replace(refitted, pool=self._pool(form.pool, risks))

    def _pool(self, pool: Layer | Mixture, risks: Rows) -> Pool:
        """Return the pool fitted to the risks of all parts."""
        model, n_parts = self.model, len(self.experts)
        if isinstance(pool, Layer):
            layer = second_layer(model.link, risks, n_parts, model.ridge_)
            return msgspec.structs.replace(pool, intercept=layer.intercept, weights=tuple(layer.coefficients.tolist()))
        if model.weights == "stacking":
            weights = stacked_weights(*risks.sum(_products, whole_blocks=True))
        else:
            (losses,) = risks.sum(_Losses(model.loss, model.clips_), whole_blocks=True)
            weights = hedge_weights(losses, learning_rate(model.learning_rate, n_parts, risks.totals[1]))
        return msgspec.structs.replace(pool, weights=tuple(weights.tolist()))


def _products(block: Block) -> tuple[Floats, Floats]:
    assert block.dense is not None
    return risk_products(block.dense, block.positive > 0, block.weight)


@dataclass(frozen=True)
class _Losses:
    """The summed losses of all parts."""

    loss: LossName
    clips: Floats

    def __call__(self, block: Block) -> tuple[Floats]:
        assert block.dense is not None
        return (loss_sums(block.dense, block.positive > 0, block.weight, self.loss, self.clips)[:-1],)


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
