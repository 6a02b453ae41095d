"""Prices of rules: what each direction, each rule for empty or special fields, and having no pairs costs in accuracy.

The model is fitted again without one rule and otherwise unchanged; the price is the difference of the held-out
measures on the same folds and rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from sklearn.base import clone

from plainrisk.checks import FUNCTION, NOTHING, check_parameters, instance
from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.texts import read_texts
from plainrisk.errors import quiet
from plainrisk.form import BOUNDS, Bins, Categories, Levels, outside_rules
from plainrisk.intervals import UNKNOWN, Range
from plainrisk.models.base import RiskClassifier
from plainrisk.schema import Feature, Rule, Schema, label_of
from plainrisk.tables import TableResult, text_table
from plainrisk.validate.challengers import (
    GROUPED,
    Line,
    Progress,
    Validate,
    attempt,
    clear_sign,
    compare_with,
    same_folds,
    with_ends,
)
from plainrisk.validate.crossval import CrossValidation

__all__ = ["Change", "Price", "Prices", "changes_of", "price_changes", "prices"]

Kind = Literal["direction", "rule", "directions", "rules", "pairs"]
RULE_WORDS = {"not_better": "not better", "worst": "counts as the worst", "neutral": "has no effect"}
MANY = 20  # of so many intervals of 95% one is expected to miss


@dataclass(frozen=True)
class Price:
    """The cost of one rule in held-out accuracy.

    Attributes
    ----------
    what : the rule, in words
    kind : "direction", "rule" (for an empty or special field), "directions" or "rules" (all together), or "pairs"
    feature : the feature of the rule; None for all together and for pairs
    log_loss : the log loss with the rule less that without it, with its interval
    auc : the AUC without the rule less that with it
    note : the reason if there are no figures; else empty
    """

    what: str
    kind: Kind
    feature: str | None
    log_loss: Range
    auc: Range
    note: str = ""

    @property
    def sign(self) -> int:
        """1 if the rule adds log loss beyond chance, -1 if it saves some, else 0."""
        return clear_sign(self.log_loss)

    @property
    def clear(self) -> bool:
        """Whether the interval of the log loss excludes 0."""
        return self.sign != 0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {**asdict(self), "clear": self.clear}


@dataclass(frozen=True, eq=False, repr=False)
class Prices(TableResult):
    """The price of every rule of a model, the highest first.

    Attributes
    ----------
    prices : Price of every rule, by log loss
    figures : log loss and AUC of the model as it is, on all held-out rows together
    rows, folds : how many held-out rows and folds there are
    grouped : whether rows of a group were kept together; the intervals treat rows as independent
    """

    _lines: ClassVar = ("prices", Price)
    prices: tuple[Price, ...]
    figures: Mapping[str, float]
    rows: int
    folds: int
    grouped: bool = False

    def __len__(self) -> int:
        return len(self.prices)

    def __iter__(self) -> Iterator[Price]:
        return iter(self.prices)

    def __getitem__(self, what: str) -> Price:
        return next(price for price in self if price.what == what)

    def __repr__(self) -> str:
        shown = {
            "rule": [price.what for price in self],
            "log loss": [price.note or with_ends(price.log_loss) for price in self],
            "AUC": [with_ends(price.auc) for price in self],
            "clear": ["yes" if price.clear else "" for price in self],
        }
        table = [text_table(self._headline(), shown, width=150)] if self.prices else []
        return "\n".join([*table, *self.notes, self.verdict])

    def _headline(self) -> str:
        return f"Prices of rules: {self.rows:,} held-out rows, {self.folds} folds, paired intervals of 95%"

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        columns = super().columns() | {"clear": [price.clear for price in self]}
        ranges = (name + end for name in ("log_loss", "auc") for end in ("", "_low", "_high"))
        return {name: columns[name] for name in ("what", *ranges, "clear", "note")}

    @property
    def notes(self) -> tuple[str, ...]:
        """Cautions about the intervals."""
        chance = f"Of {len(self)} intervals of 95%, about {round(len(self) / 20)} leave out 0 by chance alone."
        return (*([chance] if len(self) >= MANY else []), *([GROUPED] if self.grouped else []))

    @property
    def verdict(self) -> str:
        """The rules that cost accuracy beyond chance, in one sentence."""
        if not self.prices:
            return (
                "There is nothing to price: the model keeps no direction and no rule that an empty or special field "
                "of these rows meets, and takes no pairs of features."
            )
        costly = [price for price in self if price.sign > 0]
        saving = sum(price.sign < 0 for price in self)
        better = f" {saving} of them {'improves' if saving == 1 else 'improve'} it." if saving else ""
        if not costly:
            return f"Nothing costs accuracy beyond chance.{better}"
        named = [f"{price.what} ({price.log_loss.estimate:.4f} of log loss)" for price in costly[:3]]
        more = f" and {len(costly) - 3} more" if len(costly) > 3 else ""
        return f"What costs accuracy beyond chance: {', '.join(named)}{more}.{better}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        lines = [price.to_dict() for price in self]
        return {**super().to_dict(), "prices": lines, "notes": list(self.notes), "verdict": self.verdict}


# ---- the rules of a model


@dataclass(frozen=True)
class Change:
    """An unfitted model that differs from the one to price in one rule; `what`, `kind` and `feature` are as in `Price`.

    With `adds_rule` it has the rule, and the model to price does not: "no pairs", if that model has pairs.
    """

    what: str
    kind: Kind
    feature: str | None
    model: Any
    adds_rule: bool = False


@dataclass(frozen=True)
class _Rule:
    """The rule for missing values, values below the bound or a special value that occurs in some row."""

    feature: str
    field: Literal["missing", "below_bound", "special_rules"]
    level: str  # the special value as text; else empty
    rule: Rule
    place: str  # in words

    @property
    def what(self) -> str:
        return f"{self.place} {RULE_WORDS[self.rule]}"

    def stated(self, feature: Feature) -> Feature:
        """Return the feature with this rule added."""
        value: Any = {**feature.special_rules, self.level: self.rule} if self.level else self.rule
        return msgspec.structs.replace(feature, **{self.field: value})


def changes_of(model: RiskClassifier, X: Any) -> tuple[Change, ...]:
    """Return the model without each of its rules, without all rules of a kind, and with or without pairs.

    Rules for empty or special fields that no row has are left out: they change nothing.
    """
    return (*_without_rules(model, model.schema, as_frame(X)), *_other_pairs(model))


def _without_rules(model: RiskClassifier, schema: Schema | None, frame: Frame) -> Iterator[Change]:
    if schema is None:
        return
    leaves = [part for part in _inside(model) if getattr(part, "estimator", None) is None]
    directed = [name for name, feature in schema.features.items() if feature.sign]
    if not any(isinstance(leaf, RiskClassifier) and getattr(leaf, "monotone", True) for leaf in leaves):
        directed = []
    rules = list(_rules_met(schema, read_texts(frame, schema.readings))) if _keeps_rules(model, leaves) else []

    def changed(kept: Sequence[_Rule], without: Sequence[str] = ()) -> Any:
        return _with(model, schema=_restated(schema, kept, without))

    for name in directed:
        what = f"direction of {name} ({schema.features[name].direction})"
        yield Change(what, "direction", name, changed(rules, [name]))
    if len(directed) > 1:
        yield Change(f"{_all(directed)} directions", "directions", None, changed(rules, directed))
    for rule in rules:
        yield Change(rule.what, "rule", rule.feature, changed([other for other in rules if other is not rule]))
    if len(rules) > 1:
        yield Change(f"{_all(rules)} rules for empty and special fields", "rules", None, changed([]))


def _all(listed: Sequence[Any]) -> str:
    return "both" if len(listed) == 2 else f"all {len(listed)}"


def _other_pairs(model: RiskClassifier) -> Iterator[Change]:
    smooth = [part for part in _inside(model) if getattr(part, "shapes", None) == "smooth"]
    if any(part.pairs is not None for part in smooth):
        yield Change("no pairs (the model has some)", "pairs", None, _with(model, pairs=None), adds_rule=True)
    elif smooth:
        yield Change("no pairs", "pairs", None, _with(model, pairs="auto"))


def _inside(model: Any) -> Iterator[Any]:
    """Yield a model and all models inside it."""
    yield model
    inner = getattr(model, "estimator", None)
    for part in inner.values() if isinstance(inner, Mapping) else () if inner is None else (inner,):
        yield from _inside(part)


def _keeps_rules(model: Any, leaves: Sequence[Any]) -> bool:
    """Whether a model obeys the schema's rules for empty and special fields; trees and foreign models do not."""
    additive = all(isinstance(leaf, RiskClassifier) and not hasattr(leaf, "monotone") for leaf in leaves)
    return additive and all(getattr(part, "rules", "schema") == "schema" for part in _inside(model))


def _with(model: Any, **params: Any) -> Any:
    """Return the unfitted model with another schema, or with other pairs if its shapes are smooth."""
    copy = clone(model)
    for part in _inside(copy):
        present = part.get_params(deep=False)
        if present.get("schema") is not None if "schema" in params else present.get("shapes") == "smooth":
            part.set_params(**params)
    return copy


def _restated(schema: Schema, rules: Sequence[_Rule], without: Sequence[str]) -> Schema:
    """Return the schema with only these rules, and without the directions of some features."""
    features = dict(schema.with_rules(free=True).features)
    for rule in rules:
        features[rule.feature] = rule.stated(features[rule.feature])
    for name in without:
        feature = features[name]
        ordered = feature.kind == "categorical" and feature.actionable in ("up", "down")  # by the order that goes
        actionable = "fixed" if ordered else feature.actionable
        features[name] = msgspec.structs.replace(feature, direction="none", actionable=actionable)
    return schema.replace(features=features)


def _rules_met(schema: Schema, frame: Frame) -> Iterator[_Rule]:
    """Yield the rules for missing and special values that occur in some row."""
    for name, feature in schema.with_rules().features.items():
        levels = _levels_outside(feature)
        rules = {level: rule for level, rule in outside_rules(feature, levels).items() if rule in BOUNDS}
        met = set(np.unique(levels.codes(frame, name)).tolist()) if rules else set()
        for level, rule in rules.items():
            if level in met:
                yield _rule_of(name, levels, level, rule)


def _levels_outside(feature: Feature) -> Levels:
    """Return levels that distinguish empty and special fields, with all measurements as one level."""
    if feature.kind == "continuous":
        return Bins((), tuple(map(float, feature.special_values)), feature.lower_bound)
    return Categories(tuple(map(label_of, feature.special_values)), 0)


def _rule_of(name: str, levels: Levels, level: int, rule: Rule) -> _Rule:
    if level == levels.missing:
        return _Rule(name, "missing", "", rule, f"empty {name}")
    if isinstance(levels, Categories):
        return _Rule(name, "special_rules", levels.categories[level], rule, f"{name} = {levels.categories[level]}")
    if level == levels.n_ordered + len(levels.special_values):
        return _Rule(name, "below_bound", "", rule, f"{name} < {levels.lower_bound:g}")
    special = label_of(levels.special_values[level - levels.n_ordered])
    return _Rule(name, "special_rules", special, rule, f"{name} = {special}")


def prices(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    seed: int = 0,
    sample_weight: Any = None,
    groups: Any = None,
    time: Any = None,
    progress: Progress | None = None,
) -> Prices:
    """Measure what every rule of a model costs in held-out accuracy.

    The model is fitted again without each direction, without each rule for empty or special fields that occur in some
    row, without all directions, without all rules, and with pairs of features (without pairs, if it has some). All are
    fitted on the same folds: one fit per line and one for the model itself, times the number of folds.

    Parameters
    ----------
    model : classifier of plainrisk, fitted or not
        It is not changed.
    X, y : as in `fit`
    cv, seed, sample_weight, groups, time : as in `cross_validate`
        The seed is also that of the bootstrap.
    progress : callable, optional
        Called with the name of the model, the number of fits done and the number of all fits.

    Returns
    -------
    Prices
        The highest price first. A price is positive if the rule costs accuracy: the log loss is higher with the rule,
        the AUC lower. Intervals are paired: a bootstrap of the rows for the log loss, DeLong's for the AUC.

    Notes
    -----
    The rule for empty fields that comes with a direction is kept when the direction is removed, and has a line of its
    own. In models with pairs, a feature with such a rule and without a direction is in no pair; the price of its
    direction is then reduced by the gain from its pairs.

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(2000, seed=1)
    >>> wrong = credit.schema.select(["bureau_score", "late_payments"]).edit("late_payments", direction="decreasing")
    >>> found = pr.prices(pr.make_classifier("SmoothARM1", wrong), credit.frame, credit.target)
    >>> sorted(price.what for price in found if price.clear)
    ['both directions', 'direction of late_payments (decreasing)']
    """
    ours = instance("a classifier of plainrisk, which can be fitted again", RiskClassifier)
    allowed = {"model": ours, "progress": NOTHING | FUNCTION}
    check_parameters("prices", {"model": model, "progress": progress}, allowed)
    training, splits, validate = same_folds("prices", model.schema, X, y, cv, seed, sample_weight, groups, time)
    changes = changes_of(model, training.frame)
    total, tell = len(splits) * (1 + len(changes)), progress or (lambda *_: None)

    def tell_change(what: str, done: int, _: int) -> None:
        tell(what, len(splits) + done, total)

    base = validate(model, lambda done, _: tell("the model as it is", done, total))
    return price_changes(base, changes, validate, seed=seed, grouped=groups is not None, progress=tell_change)


def price_changes(
    base: CrossValidation,
    changes: Sequence[Change],
    validate: Validate,
    *,
    seed: int = 0,
    grouped: bool = False,
    progress: Progress = lambda *_: None,
) -> Prices:
    """Price the rules of a model that is already cross validated, by its changed versions (`changes_of`).

    `validate` cross validates another model on the same rows and folds.
    """
    folds, prices = len(base.folds), []
    with quiet():  # the changed models are not kept
        for k, change in enumerate(changes):
            tell = partial(_tell, progress, change.what, k * folds, len(changes) * folds)
            held_out = attempt(partial(clone, change.model), validate, tell)
            prices.append(_price(change, compare_with(change.what, "", held_out, first=base, seed=seed)))
    prices.sort(key=lambda price: (math.isnan(price.log_loss.estimate), -price.log_loss.estimate))
    figures = {name: base.pooled[name] for name in ("log_loss", "auc")}
    return Prices(tuple(prices), figures, int((~np.isnan(base.risk)).sum()), folds, grouped)


def _tell(progress: Progress, what: str, before: int, total: int, done: int, _: int) -> None:
    progress(what, before + done, total)


def _price(change: Change, line: Line) -> Price:
    """Turn the differences of a changed model into the cost of the rule: log loss that it adds, AUC that it takes."""
    loss, auc = (line.differences.get(name, UNKNOWN) for name in ("log_loss", "auc"))
    loss, auc = (loss, _negative(auc)) if change.adds_rule else (_negative(loss), auc)
    return Price(change.what, change.kind, change.feature, loss, auc, line.note)


def _negative(gap: Range) -> Range:
    return Range(0.0 - gap.estimate, 0.0 - gap.high, 0.0 - gap.low)  # no -0.0
