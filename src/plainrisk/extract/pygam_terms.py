r"""pyGAM: the logistic additive model of splines, factors and lines.

A spline term of order p is :math:`\sum_i c_i B_i(t)` with :math:`t = (x - a) / (b - a)` for the edge knots
a and b, on evenly spaced knots, and straight beyond the edges. Between two knots it is one polynomial, so the
piecewise polynomial below is the same function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect, Piece, add_effects
from plainrisk.extract.reading import Additive, input_names, refuse

__all__ = ["read_logistic_gam"]

Floats = npt.NDArray[np.float64]


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
        add_effects(effects, columns[term.feature], _effect(model, term, coefficients))
    in_order = {name: effects[name] for name in columns if name in effects}
    return Additive(intercept=intercept, effects=in_order, columns=columns)


def _effect(model: Any, term: Any, coefficients: Floats) -> Effect:
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
