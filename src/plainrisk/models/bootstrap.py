"""The bootstrap on cells: hundreds of refits, in seconds, of a model whose bins stay as they are.

Rows with equal codes and outcome are one cell. Drawing M rows with replacement is drawing the cells' counts from a
multinomial distribution, and a refit sees the rows through these counts only. Every subscale collapses the cells
further, to its own few; all subscales and their weights are refitted to the same draw.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError, PlainriskError, PlainriskWarning
from plainrisk.explain.uncertainty import Refits
from plainrisk.form import Alone, Layer, Link, Mixture, Part, Pool, RiskForm, Table
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.fitting import Design, Encoded, encode_with, fit_line, table_part
from plainrisk.models.linearised import Linearised
from plainrisk.models.mixture import SubscaleMixture
from plainrisk.models.mixture_weights import RiskSums
from plainrisk.models.training import Training, read_training
from plainrisk.models.two_layer import TwoLayerRiskModel, fit_second_layer
from plainrisk.solve import Block, LogisticLoss, minimise
from plainrisk.solve.hedge import hedge_weights, learning_rate, summed_losses

__all__ = ["bootstrap"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]


def bootstrap(model: Any, X: Any, y: Any = None, n: int = 200, seed: int = 0, *, sample_weight: Any = None) -> Refits:
    """Fit a model again to resampled rows, keeping its bins, links and ridge.

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
    if n < 1:
        raise DataError(f"n must be at least 1, not {n!r}.")
    base = model.estimator_ if isinstance(model, Linearised) else model
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
    packs : codes of the part's own cells
    start : where the solver starts: the first fit
    """

    name: str
    link: Link
    logistic: bool
    ridge: float
    encoded: Encoded
    design: Design
    cell: Index
    packs: tuple[npt.NDArray[Any], ...]
    start: Floats

    def fit(self, weight: Floats, positive: Floats, schema: Any) -> Part:
        """Fit the part to cells with these weights."""
        n = len(self.packs[0])
        block = Block(
            self.packs,
            np.bincount(self.cell, positive, minlength=n).astype(np.float64),
            np.bincount(self.cell, weight, minlength=n).astype(np.float64),
        )
        if self.logistic:
            loss = LogisticLoss(self.design.layout, [block])
            found = minimise(loss, ridge=self.ridge, lower=self.design.lower, start=self.start)
        else:
            found = fit_line(self.design, self.design.pair_counts([block]), self.ridge)
        return table_part(self.name, self.encoded, self.design, found, self.link, schema)  # type: ignore[arg-type]

    def risk(self, part: Part) -> Floats:
        """Return the part's risk in every joint cell."""
        score = np.full(len(self.encoded.codes[0]), part.intercept)
        for shape, codes in zip(part.shapes.values(), self.encoded.codes, strict=True):
            score += np.asarray(shape.scores)[codes]
        return part.link.value(score)


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
    count: Index
    experts: tuple[_Expert, ...]

    @classmethod
    def of(cls, model: Any, training: Training, *, collapse: bool) -> _Refitter:
        """Collapse the rows and lay out every part."""
        parts = _additive_parts(model.form_)
        first, count = _joint_cells(parts, training, collapse)
        cells = training.rows(first)
        weight = count.astype(np.float64) * (1.0 if cells.weight is None else cells.weight)
        weighted = replace(cells, weight=weight)
        experts = [_lay_out(p, m, weighted) for p, m in zip(parts, _one_layers(model), strict=True)]
        return cls(model, cells, count, tuple(experts))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return the weights of the cells in one resample."""
        total = int(self.count.sum())
        drawn = rng.multinomial(total, self.count / total).astype(np.float64)
        return drawn if self.cells.weight is None else drawn * self.cells.weight

    def refit(self, weight: Floats) -> RiskForm:
        """Return the form fitted to cells with these weights."""
        positive = weight * self.cells.target
        parts = [e.fit(weight, positive, self.cells.schema) for e in self.experts]
        form: RiskForm = self.model.form_
        return msgspec.structs.replace(form, parts=tuple(parts), pool=self._pool(parts, weight))

    def _pool(self, parts: Sequence[Part], weight: Floats) -> Pool:
        model = self.model
        pool: Pool = model.form_.pool
        if isinstance(pool, Alone):
            return pool
        risks = np.column_stack([e.risk(p) for e, p in zip(self.experts, parts, strict=True)])
        drawn = np.flatnonzero(weight)
        rows = replace(self.cells, weight=weight).rows(drawn)
        risks = risks[drawn]
        if isinstance(pool, Layer):
            block = Block((), rows.positive, rows.weight, risks)
            found = fit_second_layer([block], risks.shape[1], model.link, model.ridge_)
            return msgspec.structs.replace(pool, intercept=found.intercept, weights=tuple(found.coefficients.tolist()))
        if model.weights == "stacking":
            sums = RiskSums(risks.shape[1])
            sums.add(risks, rows)
            return Mixture(tuple(sums.stacked_weights().tolist()))
        losses = summed_losses(risks, rows.target, rows.weight, model.loss, model.clips_)
        eta = learning_rate(model.learning_rate, len(parts), rows.total)
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


def _joint_cells(parts: Sequence[Part], training: Training, collapse: bool) -> tuple[Index, Index]:
    """Return a row of every cell, and how many rows are in it."""
    n = len(training.target)
    if not collapse:
        return np.arange(n), np.ones(n, dtype=np.intp)
    columns = {(name, id(p)): p.shapes[name].levels.codes(training.frame, name) for p in parts for name in p.shapes}
    key = training.target.astype(np.int64)
    for codes in columns.values():
        # Renumbering after every column keeps the key small.
        _, key = np.unique(key * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    return first, count


def _lay_out(part: Part, model: AdditiveRiskModel, cells: Training) -> _Expert:
    """Prepare one part for its refits."""
    names = part.features
    own = replace(cells, schema=cells.schema.select(names))
    encoded = encode_with(own, names, [part.shapes[name].levels for name in names])
    design = Design.of(encoded, own, model.penalty)
    packs = design.rows.packs
    key = functools.reduce(
        lambda a, p: np.unique(a * (int(p.max(initial=0)) + 1) + p, return_inverse=True)[1],
        packs,
        np.zeros(len(own.target), dtype=np.int64),
    )
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    solution = model.solution_
    if len(solution.coefficients) != len(design.lower):
        raise PlainriskError("bootstrap: the rows do not have the levels the model was fitted with.")
    return _Expert(
        name=part.name,
        link=part.link,
        logistic=model.link == "logistic",
        ridge=model.ridge_,
        encoded=encoded,
        design=design,
        cell=cell,
        packs=tuple(p[first] for p in packs),
        start=np.concatenate([[solution.intercept], solution.coefficients]),
    )
