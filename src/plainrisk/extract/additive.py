"""Linear and additive models of other libraries.

Linear: scikit-learn, glum (binomial, logit link), statsmodels (Logit, GLM). Additive: interpret's explainable boosting
machine, pyGAM's logistic model, and optbinning's scorecard, a logistic regression on the weight of evidence of bins.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.columns import label_of
from plainrisk.data.frame import Frame
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect, PairEffect, Piece, add_effects
from plainrisk.extract.reading import Additive, Sigmoid, class_pair, input_names, refuse, require_fitted, sklearn_names

__all__ = [
    "read_ebm",
    "read_glum",
    "read_linear",
    "read_logistic_gam",
    "read_optbinning",
    "read_sgd",
    "read_statsmodels",
]

_STATSMODELS_NAMES = r"const|x\d+"  # what statsmodels calls the columns of an array


# ---- scikit-learn


def read_linear(model: Any, frame: Frame | None) -> Additive:
    """Read a binary logistic regression: log odds ``intercept + sum of coefficient * x``."""
    coefficients = require_fitted(model, "coef_")
    classes = class_pair(model)
    if getattr(model, "multi_class", None) == "multinomial":
        raise refuse(model, "multi_class='multinomial' doubles the log odds of two classes. Leave it out.")
    columns = sklearn_names(model, frame)
    if hasattr(coefficients, "toarray"):  # after model.sparsify()
        coefficients = coefficients.toarray()
    slopes = np.asarray(coefficients, dtype=np.float64)
    if slopes.shape != (1, len(columns)):
        raise refuse(model, f"it has {slopes.shape[0]} rows of coefficients, and a binary logistic model has one.")
    intercept = float(np.ravel(model.intercept_)[0])
    return Additive(intercept=intercept, effects=_lines(columns, slopes[0]), columns=columns, classes=classes)


def read_sgd(model: Any, frame: Frame | None) -> Additive:
    """Read a linear model fitted by stochastic gradient descent, if its loss is logistic."""
    if model.loss != "log_loss":
        raise refuse(model, f"its loss is {model.loss!r}, which gives no log odds. Use loss='log_loss'.")
    return read_linear(model, frame)


def _lines(columns: Iterable[str], slopes: Iterable[float]) -> dict[str, Effect]:
    """Return one straight line per column; a linear model has no answer for missing values."""
    return {name: NumberEffect.line(float(slope)) for name, slope in zip(columns, slopes, strict=True)}


# ---- glum


def read_glum(model: Any, frame: Frame | None) -> Additive:
    """Read a GeneralizedLinearRegressor, including one chosen by cross validation."""
    coefficients = np.asarray(require_fitted(model, "coef_"), dtype=np.float64)
    family, link = type(model.family_instance).__name__, type(model.link_instance).__name__
    if family != "BinomialDistribution" or link != "LogitLink":
        raise refuse(model, f"it is {family} with {link}. Use family='binomial', whose link is the logit.")
    if hasattr(model, "X_model_spec_"):
        raise refuse(model, "it was fitted with a formula. Make the columns before, and fit those.")
    terms = [str(name) for name in model.term_names_]  # the input column of every coefficient
    names = list(dict.fromkeys(terms))
    columns = input_names(model, names, len(names), frame, made_up=r"_col_\d+")
    levels = getattr(model, "_categorical_levels_", {})
    effects: dict[str, Effect] = {}
    for name, column in zip(names, columns, strict=True):
        of_column = coefficients[[term == name for term in terms]]
        effects[column] = (
            _table(model, levels[name], of_column) if name in levels else NumberEffect.line(float(of_column[0]))
        )
    return Additive(intercept=float(model.intercept_), effects=effects, columns=columns)


def _table(model: Any, levels: Sequence[Any], coefficients: Floats) -> Effect:
    """One coefficient per category; the first may be left out, and missing may have one at the end."""
    values = [0.0, *coefficients] if model.drop_first else list(coefficients)
    scores = {label_of(level): float(v) for level, v in zip(levels, values, strict=False)}
    missing = None
    if len(values) > len(levels):
        missing = float(values[-1])
    elif model.cat_missing_method == "zero":
        missing = 0.0
    return LabelEffect(scores, missing)


# ---- statsmodels


def read_statsmodels(results: Any, frame: Frame | None) -> Additive:
    """Read the results of a fit; the constant column becomes the intercept and is not a feature."""
    results = getattr(results, "_results", results)  # inside the wrapper that puts names on arrays
    model = results.model
    sigmoid = _sigmoid_of(model)
    names = [str(name) for name in model.exog_names]
    constant = model.data.const_idx
    others = [name for j, name in enumerate(names) if j != constant]
    _require_plain_columns(model, others)
    if constant is not None and not _shows_constant(names, constant, frame):
        columns = features = input_names(model, others, len(others), frame, made_up=_STATSMODELS_NAMES)
    else:
        columns = input_names(model, names, len(names), frame, made_up=_STATSMODELS_NAMES)
        features = tuple(name for j, name in enumerate(columns) if j != constant)
    parameters = np.asarray(results.params, dtype=np.float64)
    slopes = np.delete(parameters, [] if constant is None else constant)
    intercept = 0.0
    if constant is not None:
        # The constant column holds 1, unless the caller made another one.
        level = 1.0 if getattr(model, "exog", None) is None else float(model.exog[0, constant])
        intercept = level * float(parameters[constant])
    return Additive(intercept=intercept, effects=_lines(features, slopes), columns=columns, sigmoid=sigmoid)


_LINKS: dict[str, Sigmoid] = {
    "Logit": "logistic",
    "Probit": "probit",
    "CLogLog": "cloglog",
}


def _sigmoid_of(model: Any) -> Sigmoid:
    """Return the sigmoid of a model of statsmodels, without offsets."""
    kind = type(model).__name__
    link = type(model.family.link).__name__ if kind == "GLM" else kind
    if kind == "GLM" and (type(model.family).__name__ != "Binomial" or link not in _LINKS):
        family = type(model.family).__name__
        raise refuse(model, f"it is {family} with a {link} link. Use Binomial with the logit, probit or cloglog link.")
    if link not in _LINKS:
        raise refuse(model, "it is not a logistic model. Logit, Probit and GLM (Binomial) are read.")
    for extra in ("offset", "exposure"):
        if np.any(getattr(model, extra, None)):
            raise refuse(model, f"it was fitted with an {extra}, which is no feature. Make it a column.")
    return _LINKS[link]


def _require_plain_columns(model: Any, names: list[str]) -> None:
    """Refuse a formula that computes columns; only columns of the data can be read."""
    if getattr(model, "formula", None) is None:
        return
    made = [name for name in names if not re.fullmatch(r"\w+", name)]
    if made:
        raise refuse(model, f"its formula makes the column {made[0]!r}. Make the columns before, and fit those.")


def _shows_constant(names: list[str], constant: int, frame: Frame | None) -> bool:
    """Whether the rows, if there are any, hold the constant column, as the model's training rows do."""
    if frame is None:
        return True
    if frame.named and any(name in frame.columns for j, name in enumerate(names) if j != constant):
        return names[constant] in frame.columns
    return len(frame.names) == len(names)


# ---- interpret


def read_ebm(model: Any, frame: Frame | None) -> Additive:
    """Read an ExplainableBoostingClassifier: a step function or a table per feature.

    Its scores are numbered: missing, then the bins or categories, then whatever it does not know.
    """
    terms = require_fitted(model, "term_features_")
    classes = class_pair(model)
    if getattr(model, "link_", "logit") != "logit":
        raise refuse(model, f"its link is {model.link_!r}. Use the log loss, whose link is the logit.")
    names = [str(name) for name in model.feature_names_in_]
    larger = [term for term in terms if len(term) > 2]
    if larger:
        words = " x ".join(names[j] for j in larger[0])
        raise refuse(model, f"it has interactions of more than two features (the first is {words}). Use pairs.")
    columns = input_names(model, names, len(names), frame, made_up=r"feature_\d+")
    effects: dict[str, Effect] = {name: _unused(model, j) for j, name in enumerate(columns)}
    pairs = []
    for term, term_scores in zip(terms, model.term_scores_, strict=True):
        scores = np.asarray(term_scores, dtype=np.float64)
        if len(term) == 1:
            effects[columns[term[0]]] = _ebm_effect(model.bins_[term[0]][0], scores)
            continue
        u, v = term
        # Terms of several features may have coarser bins; the last ones apply to all higher orders.
        bins = [model.bins_[j][min(1, len(model.bins_[j]) - 1)] for j in term]
        axes = tuple(_ebm_effect(b, np.arange(n, dtype=np.float64)) for b, n in zip(bins, scores.shape, strict=True))
        pairs.append(PairEffect((columns[u], columns[v]), (axes[0], axes[1]), tuple(map(tuple, scores.tolist()))))
    intercept = float(np.ravel(model.intercept_)[0])
    return Additive(intercept=intercept, effects=effects, columns=columns, classes=classes, pairs=tuple(pairs))


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
    # PPoly has the highest power first, with one column per interval; [order] is the interval that starts at 0.
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


# ---- optbinning

UNKNOWN = "\x00 a category that no file has"


def read_optbinning(card: Any, frame: Frame | None) -> Additive:
    """Read a Scorecard: the coefficient of every feature times the weight of evidence of its bins."""
    estimator, process = require_fitted(card, "estimator_"), require_fitted(card, "binning_process_")
    if process.binning_transform_params:
        raise refuse(card, "its binning_transform_params change how bins are transformed. Leave them out.")
    read = read_linear(estimator, None)
    effects: dict[str, Effect] = {}
    for name, effect in read.effects.items():
        assert isinstance(effect, NumberEffect)
        slope = float(effect.at(1.0) or 0.0)
        binned = process.get_binned_variable(name)
        effects[name] = _woe_effect(card, binned).scaled(slope)
    columns = tuple(map(str, process.variable_names))
    return Additive(intercept=read.intercept, effects=effects, columns=columns, classes=read.classes)


def _woe_effect(card: Any, binned: Any) -> Effect:
    """Return the weight of evidence that a feature's binning gives each of its values."""
    metrics = {"metric_special": card._metric_special, "metric_missing": card._metric_missing}

    def evidence(values: Sequence[Any], dtype: type) -> list[float]:
        return [float(value) for value in binned.transform(np.array(values, dtype=dtype), metric="woe", **metrics)]

    codes = binned.special_codes or ()
    codes = [c for group in codes.values() for c in np.ravel(group)] if isinstance(codes, Mapping) else list(codes)
    if binned.dtype == "numerical":
        splits = [float(split) for split in binned.splits]
        middles = [(a + b) / 2 for a, b in itertools.pairwise(splits)]
        values = [splits[0] - 1.0, *middles, splits[-1] + 1.0] if splits else [0.0]
        special = {float(c): value for c, value in zip(codes, evidence(codes, float), strict=True)} if codes else {}
        # A value equal to a split is on its right.
        edges = tuple(math.nextafter(split, -math.inf) for split in splits)
        steps = NumberEffect.steps(edges, evidence(values, float), missing=evidence([math.nan], float)[0])
        return NumberEffect(steps.edges, steps.pieces, special, steps.missing)
    categories = [category for group in binned.splits for category in np.ravel(group)]
    scores = {label_of(c): value for c, value in zip(categories, evidence(categories, object), strict=True)}
    if codes:
        scores |= {label_of(c): value for c, value in zip(codes, evidence(codes, object), strict=True)}
    return LabelEffect(scores, evidence([None], object)[0], evidence([UNKNOWN], object)[0])
