"""The bootstrap on cells: hundreds of refits, in seconds, of a model whose bins stay as they are.

Rows with equal codes and outcome are one cell. Drawing M rows with replacement is drawing the cells' counts from a
multinomial distribution, and a refit sees the rows through these counts only. Every subscale collapses the cells
further, to its own few; all subscales and their weights are refitted to the same draw.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Codes, Counts, Floats, Index
from plainrisk.checks import SEED, check_parameters, whole
from plainrisk.errors import DataError, PlainriskError, PlainriskWarning
from plainrisk.explain.uncertainty import Refits
from plainrisk.form import Alone, Layer, Link, Mixture, Part, Pool, RiskForm, Table
from plainrisk.models.arm import AdditiveRiskModel, LinkName, Problem, make_design, step_contrasts
from plainrisk.models.design import Design, solve_with_rules, table_part
from plainrisk.models.linearise import Linearised
from plainrisk.models.mixture import RiskSums, SubscaleMixture
from plainrisk.models.training import Training, read_training
from plainrisk.models.two_layer import TwoLayerRiskModel, second_layer
from plainrisk.schema import Schema
from plainrisk.solve import Block, Rows, Solution
from plainrisk.solve.hedge import hedge_weights, learning_rate, summed_losses

__all__ = ["bootstrap"]


def bootstrap(model: Any, X: Any, y: Any = None, n: int = 200, seed: int = 0, *, sample_weight: Any = None) -> Refits:
    """Fit a model again to resampled rows, keeping its bins, links and ridge.

    Parameters
    ----------
    model : fitted AdditiveRiskModel of steps, TwoLayerRiskModel or SubscaleMixture, or one of them Linearised
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
    if model.fit_record_ is not None and model.fit_record_.evidence:
        raise DataError(
            "bootstrap refits models of steps. Smooth shapes have credible intervals of their own: fit with "
            "intervals=True and ask model.posterior()."
        )
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
        return cls(part.name, part.link, model.link, model.ridge_, design, cell, own_codes, start)

    def fit(self, weight: Floats, positive: Floats, schema: Schema) -> tuple[Part, Floats]:
        """Fit the part to joint cells with these weights; return it, and its risk in every joint cell."""
        n = len(self.codes[0])
        total, hits = (np.bincount(self.cell, values, minlength=n) for values in (weight, positive))
        rows = Rows([Block(self.codes, hits.astype(np.float64), total.astype(np.float64))])

        def solve(design: Design) -> tuple[Solution, None]:
            start = self.start if len(design.lower) == len(self.design.lower) else None
            return Problem(self.fitted_link, design.layout, rows, lower=design.lower).solve(self.ridge, start), None

        # A draw may break a rule that the first fit kept by itself.
        design, found, _ = solve_with_rules(self.design.coded, schema, step_contrasts(schema), solve)
        return table_part(self.name, design, found, self.link, schema), self.link.value(next(design.scores(found)))


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
        parts = _additive_parts(model.form_)
        first, count = _joint_cells(parts, training, collapse)
        cells = training.subset(first)
        weight = count.astype(np.float64) * (1.0 if cells.weight is None else cells.weight)
        weighted = replace(cells, weight=weight)
        experts = [_Expert.of(p, m, weighted) for p, m in zip(parts, _one_layers(model), strict=True)]
        return cls(model, cells, count, tuple(experts))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return the weights of the cells in one resample."""
        total = int(self.count.sum())
        drawn = rng.multinomial(total, self.count / total).astype(np.float64)
        return drawn if self.cells.weight is None else drawn * self.cells.weight

    def refit(self, weight: Floats) -> RiskForm:
        """Return the form fitted to cells with these weights."""
        positive = weight * self.cells.target
        parts, risks = zip(*(e.fit(weight, positive, self.cells.schema) for e in self.experts), strict=True)
        form: RiskForm = self.model.form_
        return msgspec.structs.replace(form, parts=parts, pool=self._pool(np.column_stack(risks), weight))

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
