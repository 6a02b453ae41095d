"""The parameters of a one-layer fit, declared once: name, type, default and allowed values.

Estimators inherit them, since scikit-learn reads parameters off a constructor's signature, and a dataclass writes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from plainrisk.bins import Criterion
from plainrisk.checks import FLAG, NOTHING, Allowed, instance, number, parameter, whole, words
from plainrisk.fit.choices import TOLERANCE

__all__ = [
    "CLASS_WEIGHT",
    "RIDGE",
    "RULES",
    "ClassWeight",
    "LayerParameters",
    "LayerSettings",
    "LinkName",
    "Pairs",
    "Ridge",
    "Rules",
    "Shapes",
    "Weights",
]

LinkName = Literal["logistic", "linear"]
Shapes = Literal["steps", "smooth"]
Pairs = Literal["auto"] | int | Sequence[tuple[str, str]] | None
Ridge = float | Literal["auto"]
ClassWeight = Literal["balanced"] | Mapping[Any, float] | None
Rules = Literal["schema", "free"]
Weights = Literal["auto", "relative", "counts"]


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
        for pair in value
    )


RIDGE = words("auto") | number(at_least=0)
CLASS_WEIGHT = NOTHING | words("balanced") | instance("a dict of label to weight", Mapping)
RULES = words(*get_args(Rules))
_PAIRS = NOTHING | words("auto") | whole(1) | Allowed(("a list of pairs of features",), _are_pairs)


@dataclass(kw_only=True, eq=False, repr=False)
class LayerParameters:
    """Parameters of the layers of models with one and with two of them; see `AdditiveRiskModel`."""

    link: Literal["logistic", "bands", "linear"] = parameter("logistic", words("logistic", "bands", "linear"))
    shapes: Shapes = parameter("steps", words(*get_args(Shapes)))
    max_bins: int | None = parameter(None, NOTHING | whole(1))
    ridge: Ridge = parameter("auto", RIDGE)
    pairs: Pairs = parameter(None, _PAIRS)
    class_weight: ClassWeight = parameter(None, CLASS_WEIGHT)
    criterion: Criterion = parameter("gini", words("gini", "entropy", "quantile"))
    min_bin_rows: int | Literal["auto"] = parameter("auto", words("auto") | whole(1))
    tolerance: float = parameter(TOLERANCE, number(at_least=0))
    rules: Rules = parameter("schema", RULES)


@dataclass(kw_only=True, eq=False, repr=False)
class LayerSettings(LayerParameters):
    """How one layer is fitted; an `AdditiveRiskModel` is itself such a set of parameters."""

    weights: Weights = parameter("auto", words(*get_args(Weights)))
    intervals: bool = parameter(False, FLAG)
