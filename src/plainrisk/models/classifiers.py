"""The paper's twelve classifiers by the paper's names, and those that go beyond."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plainrisk.errors import DataError, did_you_mean
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.boosted import BoostedRiskModel
from plainrisk.models.linearised import Linearised
from plainrisk.models.mixture import SubscaleMixture
from plainrisk.models.nnlr import NonnegativeLogisticRegression
from plainrisk.models.two_layer import TwoLayerRiskModel
from plainrisk.schema import Schema

__all__ = ["CLASSIFIERS", "Classifier", "make_classifier"]

# What the paper says (C = 0) and what it does not (balanced classes, and a loss clipped at 1e-15).
PAPER = {"ridge": 0.0, "class_weight": "balanced"}
PAPER_CLIP = 1e-15


@dataclass(frozen=True)
class Classifier:
    """A classifier that can be made by name.

    Attributes
    ----------
    name, description : as in the paper's table
    in_paper : whether it is one of the twelve
    build : from a schema, the inner model's options and the outer model's options
    inner, outer : the options that the model inside takes, and those of what is around it
    """

    name: str
    description: str
    in_paper: bool
    build: Callable[[Schema | None, dict[str, Any], dict[str, Any]], Any]
    inner: tuple[str, ...]
    outer: tuple[str, ...] = ()


_ARM = ("max_bins", "ridge", "class_weight", "criterion", "min_bin_rows", "penalty")
_NNLR = ("ridge", "class_weight")
_XGB = ("max_depth", "n_estimators", "learning_rate", "class_weight", "params")
_LINE = ("alpha", "epsilon", "pieces", "knots")
# The mixture applies the class weights itself, once, to its experts and to Hedge's losses.
_MIX = ("hedge_rate", "loss", "clip", "weights", "cv", "class_weight")


def _mixture(expert: Any, schema: Schema | None, outer: dict[str, Any]) -> SubscaleMixture:
    options = {("learning_rate" if k == "hedge_rate" else k): v for k, v in outer.items()}
    return SubscaleMixture(expert, schema, **options)


def _direct(schema: Schema | None, inner: dict[str, Any]) -> AdditiveRiskModel:
    return AdditiveRiskModel(schema, link="linear", **inner)


def _line(schema: Schema | None, options: dict[str, Any]) -> Linearised:
    """A linearised ARM1; the line's options stand among the model's."""
    line = {k: v for k, v in options.items() if k in _LINE}
    return Linearised(AdditiveRiskModel(schema, **{k: v for k, v in options.items() if k not in line}), **line)


def _without_class_weight(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(n for n in names if n != "class_weight")


_TABLE = (
    Classifier(
        "NNLR",
        "Nonnegative logistic regression on the features as they are.",
        True,
        lambda s, i, o: NonnegativeLogisticRegression(s, **i),
        _NNLR,
    ),
    Classifier(
        "LinNNLR",
        "NNLR, linearised.",
        True,
        lambda s, i, o: Linearised(NonnegativeLogisticRegression(s, **i), **o),
        _NNLR,
        _LINE,
    ),
    Classifier("ARM1", "One-layer additive risk model.", True, lambda s, i, o: AdditiveRiskModel(s, **i), _ARM),
    Classifier(
        "LinARM1", "ARM1, linearised.", True, lambda s, i, o: Linearised(AdditiveRiskModel(s, **i), **o), _ARM, _LINE
    ),
    Classifier("XGB", "XGBoost, 50 trees of depth 2.", True, lambda s, i, o: BoostedRiskModel(s, **i), _XGB),
    Classifier(
        "MonoXGB",
        "XGBoost under the schema's directions.",
        True,
        lambda s, i, o: BoostedRiskModel(s, monotone=True, **i),
        _XGB,
    ),
    Classifier(
        "MixARM1",
        "Mixture of one ARM1 per subscale.",
        True,
        lambda s, i, o: _mixture(AdditiveRiskModel(**i), s, o),
        _without_class_weight(_ARM),
        _MIX,
    ),
    Classifier(
        "MixLinARM1",
        "Mixture of one LinARM1 per subscale.",
        True,
        lambda s, i, o: _mixture(_line(None, i), s, o),
        (*_without_class_weight(_ARM), *_LINE),
        _MIX,
    ),
    Classifier("ARM2", "Two-layer additive risk model.", True, lambda s, i, o: TwoLayerRiskModel(None, s, **i), _ARM),
    Classifier(
        "LinARM2",
        "ARM2, both layers linearised.",
        True,
        lambda s, i, o: Linearised(TwoLayerRiskModel(None, s, **i), **o),
        _ARM,
        _LINE,
    ),
    Classifier(
        "MixXGB",
        "Mixture of one XGB per subscale.",
        True,
        lambda s, i, o: _mixture(BoostedRiskModel(**i), s, o),
        _without_class_weight(_XGB),
        _MIX,
    ),
    Classifier(
        "MixMonoXGB",
        "Mixture of one MonoXGB per subscale.",
        True,
        lambda s, i, o: _mixture(BoostedRiskModel(monotone=True, **i), s, o),
        _without_class_weight(_XGB),
        _MIX,
    ),
    Classifier(
        "BandARM1",
        "ARM1, linearised in three bands.",
        False,
        lambda s, i, o: Linearised(AdditiveRiskModel(s, **i), **{"pieces": 3, **o}),
        _ARM,
        _LINE,
    ),
    Classifier("DirectARM1", "ARM1 fitted directly in probability.", False, lambda s, i, o: _direct(s, i), _ARM),
    Classifier(
        "DirectARM2",
        "ARM2 fitted directly in probability, both layers.",
        False,
        lambda s, i, o: TwoLayerRiskModel(None, s, link="linear", **i),
        _ARM,
    ),
    Classifier(
        "MixDirectARM1",
        "Mixture of one DirectARM1 per subscale.",
        False,
        lambda s, i, o: _mixture(_direct(None, i), s, o),
        _without_class_weight(_ARM),
        _MIX,
    ),
)

CLASSIFIERS: Mapping[str, Classifier] = {c.name: c for c in _TABLE}


def make_classifier(name: str, schema: Schema | None = None, *, paper: bool = False, **options: Any) -> Any:
    """Return a classifier by its name in the paper.

    Parameters
    ----------
    name : one of `CLASSIFIERS`
    schema : Schema, optional
    paper : bool, default=False
        The paper's conventions, as its tables show them: no ridge, both classes given equal weight, and in mixtures
        a loss clipped at 1e-15 only. Options given go before.
    **options : parameters of the model, e.g. ridge=, max_bins=, class_weight=, pieces=; for mixtures also
        hedge_rate=, loss=, clip=, weights=, cv=

    Examples
    --------
    >>> make_classifier("LinARM1", pieces=3)
    Linearised(estimator=AdditiveRiskModel(), pieces=3)
    """
    if name not in CLASSIFIERS:
        raise DataError(f"There is no classifier {name!r}.{did_you_mean(name, CLASSIFIERS)}")
    kind = CLASSIFIERS[name]
    known = (*kind.inner, *kind.outer)
    for option in options:
        if option not in known:
            raise DataError(f"{name} has no option {option!r}.{did_you_mean(option, known)}")
    if paper:
        conventions = {**PAPER, **({"clip": PAPER_CLIP} if "clip" in kind.outer else {})}
        options = {**{k: v for k, v in conventions.items() if k in known}, **options}
    inner = {k: v for k, v in options.items() if k in kind.inner}
    outer = {k: v for k, v in options.items() if k in kind.outer}
    return kind.build(schema, inner, outer)
