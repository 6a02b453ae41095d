"""Additive models of other libraries: interpret's explainable boosting machine, and pyGAM's logistic model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.frame import Frame
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect, Piece, add_effects
from plainrisk.extract.reading import Additive, class_pair, input_names, refuse, require_fitted

__all__ = ["read_ebm", "read_logistic_gam"]


# ---- interpret


def read_ebm(model: Any, frame: Frame | None) -> Additive:
    """Read an ExplainableBoostingClassifier: a step function or a table per feature.

    Its scores are numbered: missing, then the bins or categories, then whatever it does not know.
    """
    terms = require_fitted(model, "term_features_")
    classes = class_pair(model)
    if getattr(model, "link_", "logit") != "logit":
        raise refuse(model, f"its link is {model.link_!r}. Use the log loss, whose link is the logit.")
    own = [str(name) for name in model.feature_names_in_]
    pairs = [term for term in terms if len(term) > 1]
    if pairs:
        words = " x ".join(own[j] for j in pairs[0])
        raise refuse(model, f"it has {len(pairs)} interactions (the first is {words}). Fit it with interactions=0.")
    columns = input_names(model, own, len(own), frame, made_up=r"feature_\d+")
    effects: dict[str, Effect] = {name: _unused(model, j) for j, name in enumerate(columns)}
    for (j,), scores in zip(terms, model.term_scores_, strict=True):
        effects[columns[j]] = _ebm_effect(model.bins_[j][0], np.asarray(scores, dtype=np.float64))
    intercept = float(np.ravel(model.intercept_)[0])
    return Additive(intercept=intercept, effects=effects, columns=columns, classes=classes)


def _ebm_effect(bins: Any, scores: Floats) -> Effect:
    missing, unknown = float(scores[0]), float(scores[-1])
    if isinstance(bins, dict):
        return LabelEffect({str(label): float(scores[k]) for label, k in bins.items()}, missing, unknown)
    # A value equal to a cut is on its right.
    edges = [math.nextafter(float(cut), -math.inf) for cut in bins]
    return NumberEffect.steps(edges, scores[1:-1].tolist(), missing=missing)


def _unused(model: Any, j: int) -> Effect:
    """A feature that no term uses."""
    if isinstance(model.bins_[j][0], dict):
        return LabelEffect({}, missing=0.0, unseen=0.0)
    return NumberEffect.steps([], [0.0], missing=0.0)


# ---- pyGAM


def read_logistic_gam(model: Any, frame: Frame | None) -> Additive:
    """Read a LogisticGAM, or a GAM with the binomial distribution and the logit link."""
    if not getattr(model, "_is_fitted", False):
        raise refuse(model, "it is not fitted. Fit it first.")
    distribution, link = type(model.distribution).__name__, type(model.link).__name__
    if distribution != "BinomialDist" or link != "LogitLink" or model.distribution.levels != 1:
        raise refuse(model, f"it is {distribution} with {link}. Use LogisticGAM.")
    columns = input_names(model, None, int(model.statistics_["m_features"]), frame)
    intercept = 0.0
    effects: dict[str, Effect] = {}
    for k, term in enumerate(model.terms):
        coefficients = np.asarray(model.coef_, dtype=np.float64)[model.terms.get_coef_indices(k)]
        if term.isintercept:
            intercept += float(coefficients[0])
            continue
        if term.istensor:
            raise refuse(model, "it has a tensor term te(), which joins features. Use s(), l() and f() terms.")
        add_effects(effects, columns[term.feature], _term_effect(model, term, coefficients))
    in_order = {name: effects[name] for name in columns if name in effects}
    return Additive(intercept=intercept, effects=in_order, columns=columns)


def _term_effect(model: Any, term: Any, coefficients: Floats) -> Effect:
    kind = type(term).__name__
    if kind == "LinearTerm":
        return NumberEffect.line(float(coefficients[0]))
    if kind == "FactorTerm":
        return _factor(model, term, coefficients)
    if kind != "SplineTerm":
        raise refuse(model, f"its term {kind} is not known. Use s(), l() and f() terms.")
    if term.by is not None:
        raise refuse(model, "it has a spline term with by=, which joins two features.")
    if term.basis != "ps" or term.spline_order < 1:
        raise refuse(model, f"a spline term has basis {term.basis!r}, order {term.spline_order}. Use 'ps' and 1 up.")
    return _spline(np.sort(np.asarray(term.edge_knots_, dtype=np.float64)), term, coefficients)


def _spline(edges: Floats, term: Any, coefficients: Floats) -> NumberEffect:
    r"""Return a spline term as a piecewise polynomial.

    A spline term of order p is :math:`\sum_i c_i B_i(t)` with :math:`t = (x - a) / (b - a)` for the edge knots
    a and b, on evenly spaced knots, and straight beyond the edges. Between two knots it is one polynomial.
    """
    from scipy.interpolate import BSpline, PPoly

    order = int(term.spline_order)
    low, width = float(edges[0]), float(edges[-1] - edges[0]) or 1.0
    inner = np.linspace(0.0, 1.0, 1 + len(coefficients) - order)
    beyond = np.arange(1, order + 1) * inner[1]
    knots = np.r_[-beyond[::-1], inner, 1.0 + beyond]
    knots[-1] += 1e-9  # as pyGAM has it
    whole = PPoly.from_spline(BSpline(knots, coefficients, order))
    powers = width ** np.arange(order, -1.0, -1.0)
    starts = low + width * inner
    # PPoly has the highest power first, one column per interval; [order] is the one that starts at 0.
    pieces = [
        Piece(tuple((whole.c[:, order + k] / powers)[::-1].tolist()), float(starts[k])) for k in range(len(inner) - 1)
    ]
    ends = _tangent(pieces[0], low), _tangent(pieces[-1], low + width)
    return NumberEffect(tuple(starts.tolist()), (ends[0], *pieces, ends[1]))


def _tangent(piece: Piece, x: float) -> Piece:
    """Return the straight line that touches a piece at x."""
    return Piece(piece.moved(x).coefficients[:2], x)


def _factor(model: Any, term: Any, coefficients: Floats) -> LabelEffect:
    """A factor term splits the range of its codes evenly; the codes inside it are the categories."""
    low, high = float(term.edge_knots_[0]), float(term.edge_knots_[-1])
    first = low + 0.5
    if not first.is_integer():
        raise refuse(model, f"a factor term has codes that are not whole numbers ({first:g}). Recode them.")
    values = np.r_[0.0, coefficients] if term.coding == "dummy" else coefficients
    codes = np.arange(first, high)
    inner = np.linspace(0.0, 1.0, 1 + len(values))[1:-1]
    bins = np.searchsorted(inner, (codes - low) / (high - low), side="right")
    return LabelEffect({str(int(c)): float(values[b]) for c, b in zip(codes, bins, strict=True)})
