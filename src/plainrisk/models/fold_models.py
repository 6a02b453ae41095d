"""Whole models for every training fold: which can be fitted from tables, and how their parts are pooled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plainrisk._native import look_up
from plainrisk.form import Alone, FitRecord, Layer, Linear, Logistic, Mixture, Part, Pool, RiskForm
from plainrisk.form.form import pool_score
from plainrisk.model import RiskModel
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.base import _describe, _plain, resolve_ridge
from plainrisk.models.fold_fits import FittedPart, FoldPart
from plainrisk.models.fold_parts import make_parts
from plainrisk.models.fold_tables import Folds
from plainrisk.models.linearised import Linearised, straighten
from plainrisk.models.mixture import SubscaleMixture
from plainrisk.models.mixture_weights import loss_clip
from plainrisk.models.subscales import subscales_of
from plainrisk.models.training import Training
from plainrisk.models.two_layer import TwoLayerRiskModel
from plainrisk.schema import Schema
from plainrisk.solve import BLOCK_ROWS, Block, Layout, LogisticLoss, Solution, minimise, minimise_squares
from plainrisk.solve.hedge import hedge_weights, learning_rate, summed_losses
from plainrisk.solve.threads import one_thread
from plainrisk.threads import side_by_side

__all__ = ["FoldModel", "FoldModels", "subtractable"]

Floats = npt.NDArray[np.float64]
T = TypeVar("T")


def subtractable(estimator: Any, training: Training) -> bool:
    """Whether every training fold's model can be fitted from tables of all rows."""
    schema, columns = training.schema, training.frame.columns.values()
    if estimator.schema is None and any(isinstance(c, np.ndarray) and c.dtype == object for c in columns):
        return False  # whether such a column holds numbers or labels may depend on the fold
    outer = estimator.estimator if _is_line(estimator) else estimator
    if type(outer) is AdditiveRiskModel:
        return _is_plain(outer)
    if type(outer) is SubscaleMixture:
        hedged = outer.weights == "hedge" and outer.cv is None and outer.class_weight is None
        if not hedged or outer is not estimator or outer.loss not in ("log", "brier"):
            return False
        return all(_is_expert(e) for e in _experts(outer, schema).values())
    if type(outer) is TwoLayerRiskModel:
        if outer.class_weight is not None or outer.ridge == "cv" or outer.link not in ("logistic", "linear"):
            return False
        return all(_is_expert(e) for e in _experts(outer, schema).values())
    return False


def _is_line(estimator: Any) -> bool:
    return type(estimator) is Linearised and (estimator.pieces == 1 or estimator.knots == "universal")


def _is_plain(model: Any) -> bool:
    known = model.link in ("logistic", "linear") and model.criterion in ("gini", "entropy", "quantile")
    return known and model.class_weight is None and model.ridge != "cv"


def _is_expert(estimator: Any) -> bool:
    inner = estimator.estimator if _is_line(estimator) else estimator
    return type(inner) is AdditiveRiskModel and _is_plain(inner)


def _experts(estimator: Any, schema: Schema) -> dict[str, Any]:
    """Return the estimator of every subscale; an unknown one where none is given."""
    one = estimator._one_layer() if isinstance(estimator, TwoLayerRiskModel) else estimator.estimator
    one = AdditiveRiskModel() if one is None else one
    return {name: one.get(name) if isinstance(one, Mapping) else one for name in subscales_of(schema)}


@dataclass(frozen=True)
class FoldModel:
    """The model without one fold.

    Attributes
    ----------
    model : form and record of the fit
    risk : (held-out rows,) its risk of the rows inside the fold
    settled : whether every solver reached a finite optimum
    """

    model: RiskModel
    risk: Floats
    settled: bool


class FoldModels:
    """An estimator, fitted without each fold in turn."""

    def __init__(self, estimator: Any, folds: Folds) -> None:
        self.estimator, self.folds = estimator, folds
        self.base = estimator.estimator if isinstance(estimator, Linearised) else estimator
        schema = folds.training.schema
        if isinstance(self.base, AdditiveRiskModel):
            self.experts = {"all": self.base}
            features = {"all": tuple(schema.features)}
        else:
            self.experts, features = _experts(self.base, schema), subscales_of(schema)
        models = {n: e.estimator if isinstance(e, Linearised) else e for n, e in self.experts.items()}
        with one_thread():
            self.parts = make_parts(folds, models, features)
        self.second: Solution | None = None
        self.parameters = {n: _describe(v) for n, v in self.base.get_params(deep=False).items() if n != "schema"}

    def fit(self, k: int) -> FoldModel:
        """Fit the model to the rows outside fold k, and score those inside."""
        fitted = [p.fit(k) for p in self.parts]
        parts = [
            self._straight(one, self.experts[p.name]) if isinstance(self.experts[p.name], Linearised) else one.part
            for p, one in zip(self.parts, fitted, strict=True)
        ]
        pool, solutions = self._pool(parts, fitted, k)
        training = self.folds.training
        form = RiskForm(
            schema=training.schema,
            columns=training.frame.names,
            classes=(_plain(training.classes[0]), _plain(training.classes[1])),
            parts=tuple(parts),
            pool=pool,
        )
        if isinstance(self.estimator, Linearised):
            form = _straightened(form, self.estimator)
        risk, clipped = self._evaluate(form, k)
        record = self._record(solutions, clipped, k)
        settled = all(s.converged and not s.at_box.any() for s in solutions)
        return FoldModel(RiskModel(form, record), risk, settled)

    def refuses(self, k: int) -> bool:
        """Whether a row inside the fold has an unseen level of a feature for which the schema makes that an error."""
        features = [f for p in self.parts for f in p.features if f.feature.unseen == "error"]
        return any(f.unseen(k) for f in features)

    def _straight(self, one: FittedPart, expert: Linearised) -> Part:
        schema = self.folds.training.schema.select(one.part.features)
        form = RiskForm(schema=schema, columns=one.part.features, classes=(0, 1), parts=(one.part,), pool=Alone())
        part = _straightened(form, expert).parts[0]
        if not isinstance(part, Part):
            raise TypeError(type(part).__name__)
        return part

    # ---- pools

    def _pool(self, parts: Sequence[Part], fitted: Sequence[FittedPart], k: int) -> tuple[Pool, list[Solution]]:
        solutions = [one.solution for one in fitted]
        if isinstance(self.base, SubscaleMixture):
            return Mixture(tuple(self._mixture_weights(self.base, parts, fitted, k).tolist())), solutions
        if isinstance(self.base, TwoLayerRiskModel):
            found = self._second_layer(self.base, parts, k)
            link = Logistic() if self.base.link == "logistic" else Linear()
            pool = Layer(intercept=found.intercept, weights=tuple(found.coefficients.tolist()), link=link)
            return pool, [*solutions, found]
        return Alone(), solutions

    def _mixture_weights(
        self, mixture: SubscaleMixture, parts: Sequence[Part], fitted: Sequence[FittedPart], k: int
    ) -> Floats:
        experts = zip(self.parts, parts, fitted, strict=True)
        losses = np.array([self._summed_loss(mixture, p, part, one, k) for p, part, one in experts])
        return hedge_weights(losses, learning_rate(mixture.learning_rate, len(parts), self.folds.rows(k)[0]))

    def _summed_loss(self, mixture: SubscaleMixture, fold_part: FoldPart, part: Part, one: FittedPart, k: int) -> float:
        """Return what Hedge charges an expert on the rows outside the fold."""
        clip = loss_clip(part.link) if mixture.clip == "auto" else float(mixture.clip)
        if mixture.loss == "log" and part is one.part and isinstance(part.link, Logistic):
            # Where nothing is clipped the solver has found the loss already.
            low, high = fold_part.range(part, k)
            if max(high, -low) < np.log((1.0 - clip) / clip):
                return one.solution.loss * self.folds.rows(k)[0]
        if len(fold_part.groups) == 1:
            risk = part.link.value(fold_part.tables(part, k)[0])
            risks, weight = np.tile(risk, 2)[:, None], fold_part.training_cells(k).ravel()
            target = np.repeat([0, 1], len(risk))
            return float(summed_losses(risks, target, weight, mixture.loss, np.array([clip]))[0])

        def charged(rows: slice) -> float:
            risks = fold_part.risks(part, k, rows)[:, None]
            return float(summed_losses(risks, self.folds.target[rows], None, mixture.loss, np.array([clip]))[0])

        return sum(self._over_outside(charged, k))

    def _second_layer(self, model: TwoLayerRiskModel, parts: Sequence[Part], k: int) -> Solution:
        risks = np.concatenate(list(self._over_outside(lambda rows: self._risks(parts, k, rows), k)))
        target = np.concatenate([self.folds.target[rows] for rows in self.folds.outside(k)])
        lower = np.zeros(len(parts))
        total = self.folds.rows(k)[0]
        ridge = resolve_ridge(model.ridge, total)
        if model.link == "linear":
            design = np.column_stack([np.ones(len(risks)), risks])
            return minimise_squares(
                design.T @ design, target.astype(np.float64) @ design, total, ridge=ridge, lower=lower
            )
        last = self.second
        # Without a ridge the optimum may not be unique, and then depends on the start.
        start = np.concatenate([[last.intercept], last.coefficients]) if last is not None and ridge > 0 else None
        loss = LogisticLoss(Layout((), len(parts)), [Block((), target, None, risks)])
        self.second = minimise(loss, ridge=ridge, lower=lower, box=np.inf, start=start)
        return self.second

    def _risks(self, parts: Sequence[Part], k: int, rows: slice) -> Floats:
        """Return the risk that every part sees in some rows: (rows, parts)."""
        return np.stack([f.risks(p, k, rows) for f, p in zip(self.parts, parts, strict=True)]).T

    def _mixed(self, parts: Sequence[Part], weights: Sequence[float], k: int, rows: slice) -> Floats:
        """Return the mean of the parts' risks in some rows, where each is a table of cells."""
        experts = zip(self.parts, parts, weights, strict=True)
        tables = [weight * part.link.value(p.tables(part, k)[0]) for p, part, weight in experts]
        mean = look_up(0.0, [p.groups[0].cell[rows] for p in self.parts], tables, rows.stop - rows.start)
        return np.minimum(mean, 1.0, out=mean)  # as in `pool_score`

    def _over_outside(self, function: Callable[[slice], T], k: int) -> Iterator[T]:
        """Return the function's results of the rows outside a fold, a block of rows after the other."""
        blocks = [
            slice(start, min(start + BLOCK_ROWS, rows.stop))
            for rows in self.folds.outside(k)
            for start in range(rows.start, rows.stop, BLOCK_ROWS)
        ]
        return side_by_side(function, blocks, len(self.folds.of))

    # ---- what the form says

    def _evaluate(self, form: RiskForm, k: int) -> tuple[Floats, float]:
        """Return the risk of the rows inside the fold, and the share of the rows outside that are clipped."""
        parts = [p for p in form.parts if isinstance(p, Part)]
        link = form.last_link

        def score_of(rows: slice) -> Floats:
            if isinstance(form.pool, Alone):
                return self.parts[0].scores(parts[0], k, rows)
            if isinstance(form.pool, Mixture) and all(len(p.groups) == 1 for p in self.parts):
                return self._mixed(parts, form.pool.weights, k, rows)
            return pool_score(form.pool, self._risks(parts, k, rows))

        score = score_of(self.folds.inside(k))
        risk = score if link is None else link.value(score)
        if self._never_clipped(form.pool, parts, k):
            return risk, 0.0
        clipped = self._over_outside(lambda rows: np.count_nonzero(_clipped(link, score_of(rows))), k)
        return risk, float(sum(clipped) / self.folds.rows(k)[0])

    def _never_clipped(self, pool: Pool, parts: Sequence[Part], k: int) -> bool:
        """Whether no row can be clipped, as far as can be told without looking at the rows."""
        if isinstance(pool, Layer):
            return isinstance(pool.link, Logistic)
        if all(isinstance(p.link, Logistic) for p in parts):
            return True
        ranges = [np.array(f.range(p, k)) for f, p in zip(self.parts, parts, strict=True)]
        if isinstance(pool, Alone):
            return not _clipped(parts[0].link, ranges[0]).any()
        # A pool is clipped where all its experts are, at the same end; those without weight do not count.
        experts = zip(parts, ranges, pool.weights, strict=True)
        heavy = [p.link.value(ends) for p, ends, weight in experts if weight > 1e-6]
        return any(low > 1e-9 for low, _ in heavy) and any(high < 1 - 1e-9 for _, high in heavy)

    def _record(self, solutions: Sequence[Solution], clipped: float, k: int) -> FitRecord:
        total, positive = self.folds.rows(k)
        name = type(self.base).__name__
        return FitRecord(
            estimator=f"Linearised({name})" if isinstance(self.estimator, Linearised) else name,
            parameters=self.parameters,
            rows=int(total),
            weight=total,
            positive_weight=positive,
            base_rate=positive / total,
            objective=tuple(s.objective for s in solutions),
            kkt=tuple(s.kkt for s in solutions),
            iterations=tuple(s.iterations for s in solutions),
            converged=all(s.converged for s in solutions),
            reason="; ".join(sorted({s.reason for s in solutions})),
            clipped=clipped,
        )


def _straightened(form: RiskForm, line: Linearised) -> RiskForm:
    return straighten(form, None, alpha=line.alpha, epsilon=line.epsilon, pieces=line.pieces, knots=line.knots)


def _clipped(link: Any, score: Floats) -> npt.NDArray[np.bool_]:
    """Return where the line is cut off; a mixture has no link, and is cut off where all its experts are."""
    if link is None:
        return np.asarray((score <= 0.0) | (score >= 1.0))
    line = link.line(score)
    if line is None:
        return np.zeros(len(score), np.bool_)
    straight = line[0] + line[1] * score
    return np.asarray((straight < link.range[0] - 1e-12) | (straight > link.range[1] + 1e-12))
