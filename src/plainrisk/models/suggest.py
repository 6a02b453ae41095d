"""Which pairs of features a model would gain by."""

from __future__ import annotations

from typing import Any

from plainrisk.errors import DataError
from plainrisk.fit.layer import find_pairs
from plainrisk.fit.pair_search import PairEvidence
from plainrisk.fit.parameters import LayerSettings, LinkName, Weights
from plainrisk.fit.training import read_training
from plainrisk.form import Linear, RiskForm

__all__ = ["suggest_pairs"]


def suggest_pairs(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> list[PairEvidence]:
    """Rank all pairs of features, the best first: the search that a fit with ``pairs="auto"`` makes.

    Parameters
    ----------
    model : a fitted model of one part
        Its schema holds what is known of the features; smooth shapes are fitted to the rows again.
    X, y, sample_weight : the rows it was fitted to

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    >>> pr.suggest_pairs(model, german.frame, german.target)[0].is_evident
    False
    """
    form: RiskForm | None = getattr(model, "form_", None)
    if form is None:
        raise DataError("suggest_pairs: give a fitted model. Call fit first.")
    if len(form.parts) > 1:
        raise DataError("suggest_pairs: the model must be of one part.")
    training = read_training(X, y, form.schema, sample_weight, None)
    link: LinkName = "linear" if isinstance(form.parts[0].link, Linear) else "logistic"
    weights: Weights = getattr(model, "weights", "auto")
    return list(find_pairs(training, LayerSettings(link=link, shapes="smooth", weights=weights)))
