"""The paper's twelve classifiers by the paper's names, and those that go beyond."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from plainrisk.checks import FLAG, check_parameters
from plainrisk.errors import DataError, did_you_mean
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.base import RiskClassifier
from plainrisk.models.boosted import BoostedRiskModel
from plainrisk.models.linearise import Linearised
from plainrisk.models.mixture import SubscaleMixture
from plainrisk.models.nnlr import NonnegativeLogisticRegression
from plainrisk.models.two_layer import TwoLayerRiskModel
from plainrisk.schema import Schema

__all__ = ["CLASSIFIERS", "PAPER", "Classifier", "make_classifier"]

# What the paper states (C = 0) and what it does not (balanced classes, and a loss clipped at 1e-15).
PAPER: Mapping[str, Any] = {
    "ridge": 0.0,
    "class_weight": "balanced",
    "clip": 1e-15,
    "min_bin_rows": 1,
    "rules": "free",
}


@dataclass(frozen=True)
class Classifier:
    """A classifier that can be made by name.

    Attributes
    ----------
    name, description : as in the paper's table
    in_paper : whether it is one of the twelve
    build : makes it, with the defaults of the models it is made of
    """

    name: str
    description: str
    in_paper: bool
    build: Callable[[], RiskClassifier]

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its options: parameters of the model and of those inside it."""
        return tuple(sorted({name for model in _nested(self.build()) for name in _own_options(model)}))


_smooth = partial(AdditiveRiskModel, shapes="smooth")
_mono = partial(BoostedRiskModel, monotone=True)
_ARM, _NNLR, _XGB, _ARM2 = AdditiveRiskModel, NonnegativeLogisticRegression, BoostedRiskModel, TwoLayerRiskModel

# Never "XGBoost": by default, that is 100 trees of depth 6, and often ahead of these.
_TREES = "The paper's boosted trees: 50 trees of depth 2"

_TABLE = (
    Classifier("NNLR", "Nonnegative logistic regression on the features as they are.", True, _NNLR),
    Classifier("LinNNLR", "NNLR, linearised.", True, lambda: Linearised(_NNLR())),
    Classifier("ARM1", "One-layer additive risk model.", True, _ARM),
    Classifier("LinARM1", "ARM1, linearised.", True, lambda: Linearised(_ARM())),
    Classifier("XGB", f"{_TREES}.", True, _XGB),
    Classifier("MonoXGB", f"{_TREES}, under the schema's directions.", True, _mono),
    Classifier("MixARM1", "Mixture of one ARM1 per subscale.", True, lambda: SubscaleMixture(_ARM())),
    Classifier("MixLinARM1", "Mixture of one LinARM1 per subscale.", True, lambda: SubscaleMixture(Linearised(_ARM()))),
    Classifier("ARM2", "Two-layer additive risk model.", True, _ARM2),
    Classifier("LinARM2", "ARM2, both layers linearised.", True, lambda: Linearised(_ARM2())),
    Classifier("MixXGB", f"{_TREES}, a mixture of one XGB per subscale.", True, lambda: SubscaleMixture(_XGB())),
    Classifier(
        "MixMonoXGB", f"{_TREES}, a mixture of one MonoXGB per subscale.", True, lambda: SubscaleMixture(_mono())
    ),
    Classifier("BandARM1", "ARM1, linearised in three bands.", False, partial(_ARM, link="bands", pieces=3)),
    Classifier("DirectARM1", "ARM1 fitted directly in probability.", False, partial(_ARM, link="linear")),
    Classifier(
        "SmoothARM1",
        "ARM1 with smooth shapes, in as few bands as follow the curve.",
        False,
        partial(_smooth, link="bands"),
    ),
    Classifier(
        "CalibratedMixARM1",
        "MixARM1 with its probabilities calibrated by bands on the pool: the mixture to take.",
        False,
        lambda: SubscaleMixture(_ARM(), calibrate=True),
    ),
    Classifier("SmoothDirectARM1", "DirectARM1 with smooth shapes.", False, partial(_smooth, link="linear")),
)

CLASSIFIERS: Mapping[str, Classifier] = {c.name: c for c in _TABLE}


def make_classifier(name: str, schema: Schema | None = None, *, paper: bool = False, **options: Any) -> RiskClassifier:
    """Return a classifier by its name in the paper.

    Take SmoothARM1, or CalibratedMixARM1 where every subscale is to be judged by itself: the paper's mixtures rank
    applicants as well, but their probabilities are too near the mean (expected calibration error on HELOC 0.113 instead
    of 0.014, docs/results/mixtures.md).

    Parameters
    ----------
    name : one of `CLASSIFIERS`
    schema : Schema, optional
    paper : bool, default=False
        The paper's conventions, as its tables show them: no ridge, both classes given equal weight, bins of any size,
        no rules for missing and special values, and in mixtures a loss clipped at 1e-15 only. Options that are given
        take precedence.
    **options : parameters of the model, e.g. ridge=, max_bins=, class_weight=, pieces=
        Each goes to the outermost of nested models that has it: `learning_rate` of a mixture is Hedge's.

    Returns
    -------
    RiskClassifier
        Not fitted yet.

    Examples
    --------
    >>> make_classifier("LinARM1", pieces=3)
    Linearised(estimator=AdditiveRiskModel(), pieces=3)

    Relatives that have no name, fitted directly in probability or with smooth shapes:

    >>> make_classifier("ARM2", link="linear")
    TwoLayerRiskModel(link='linear')
    >>> make_classifier("MixARM1", shapes="smooth", link="bands")
    SubscaleMixture(estimator=AdditiveRiskModel(link='bands', shapes='smooth'))
    """
    check_parameters("make_classifier", {"paper": paper}, {"paper": FLAG})
    if not isinstance(name, str) or name not in CLASSIFIERS:
        raise DataError(f"There is no classifier {name!r}.{did_you_mean(name, CLASSIFIERS)}")
    available = CLASSIFIERS[name].options
    for option in options:
        if option not in available:
            raise DataError(f"{name} has no option {option!r}.{did_you_mean(option, available)}")
    model = CLASSIFIERS[name].build()
    conventions = {k: v for k, v in PAPER.items() if paper and k in available}
    for option, value in {**conventions, **options}.items():
        owner = next(inner for inner in _nested(model) if option in _own_options(inner))
        owner.set_params(**{option: value})
    if schema is not None:
        next(inner for inner in _nested(model) if "schema" in inner.get_params(deep=False)).set_params(schema=schema)
    return model


def _nested(model: Any) -> Iterator[Any]:
    """Yield a model and those inside it, from the outside in."""
    while model is not None:
        yield model
        model = getattr(model, "estimator", None)


def _own_options(model: Any) -> list[str]:
    return [name for name in model.get_params(deep=False) if name not in ("estimator", "schema")]
