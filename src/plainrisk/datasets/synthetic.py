"""Synthetic credit applications of any size, with a known truth.

Each feature has a trait of real credit data: ties, heavy tails, codes for "no record", missing values, values
below a bound, ordered and unordered categories, a U-shape. Its effect, in log-odds, is a function of the value
in the data, and moves only in the direction that its schema says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from plainrisk._types import Array, Floats, Outcome
from plainrisk.checks import SEED, check_parameters, number, whole
from plainrisk.datasets.loading import Backend, Dataset, to_frame
from plainrisk.datasets.registry import schema_of
from plainrisk.schema import Feature, Schema

__all__ = ["TEMPLATES", "Code", "Template", "make_credit"]

ALLOWED = {"n": whole(1), "seed": SEED, "n_features": whole(1), "base_rate": number(above=0, below=1)}


def make_credit(
    n: int,
    seed: int = 0,
    *,
    n_features: int = 12,
    base_rate: float = 0.15,
    backend: Backend | None = None,
) -> Dataset:
    """Make synthetic credit applications whose true risk is known.

    .. math:: P(y = 1 | x) = 1 / (1 + \\exp(-b - s \\sum_u f_u(x_u)))

    with effects f_u that obey the schema's directions, a strength s of at most 1 that keeps the outcome about equally
    hard to predict for any number of features, and an intercept b that gives the base rate. A hidden factor makes the
    features of a row correlated.

    Parameters
    ----------
    n : how many rows
    seed : the same arguments give the same rows
    n_features : how many features; after the first 12 kinds come fresh draws of the same kinds: income_2, ...
    base_rate : the expected share of bad outcomes
    backend : the library of the frame, "polars", "pandas" or "pyarrow"; by default the first that is installed

    Returns
    -------
    Dataset
        With `truth`, the true probability of each row.

    Examples
    --------
    >>> credit = make_credit(1000, seed=1)
    >>> credit.frame.shape, credit.schema.features["income"].direction
    ((1000, 12), 'decreasing')
    """
    given = {"n": n, "seed": seed, "n_features": n_features, "base_rate": base_rate}
    check_parameters("make_credit", given, ALLOWED)
    plan = _plan(n_features)
    intercept, strength = _calibrated(plan, seed, base_rate)
    columns, truth, target = _draw(plan, n, seed, intercept, strength)
    return Dataset(
        name="make_credit",
        title=f"Synthetic credit applications, {n:,} x {n_features}, seed {seed}",
        frame=to_frame(columns, backend),
        target=target,
        schema=_schema(plan),
        source="plainrisk.datasets.make_credit",
        license="none needed",
        citation="",
        truth=truth,
    )


# ---- templates


@dataclass(frozen=True)
class Code:
    """A value that is not a measurement (NaN: missing): its share of the rows and its effect."""

    value: float
    share: float
    effect: float


@dataclass(frozen=True)
class Template:
    """How one feature of an application is drawn, and its effect.

    Attributes
    ----------
    draw : random generator, hidden financial strain of each row -> values
        A category is its position in the schema's list.
    effect : values -> log-odds
    dtype : the type that holds the values and codes
    codes : values that are not measurements; the missing category is -1
    """

    draw: Callable[[np.random.Generator, Floats], Array]
    effect: Callable[[Array], Floats]
    dtype: npt.DTypeLike = np.float64
    codes: tuple[Code, ...] = ()


# ---- how values are drawn, given the hidden financial strain of each row


def _strained(rng: np.random.Generator, strain: Floats, weight: float) -> Floats:
    """Return standard normal numbers with the given correlation to the strain."""
    return math.sqrt(1 - weight**2) * rng.standard_normal(len(strain)) + weight * strain


def _normal(
    rng: np.random.Generator, strain: Floats, center: float, spread: float, weight: float, low: float, high: float
) -> Floats:
    return np.rint(np.clip(spread * _strained(rng, strain, weight) + center, low, high))


def _lognormal(
    rng: np.random.Generator, strain: Floats, center: float, spread: float, weight: float, step: float = 0.0
) -> Floats:
    values: Floats = np.exp(spread * _strained(rng, strain, weight) + np.log(center))
    return np.rint(values / step) * step if step else values


def _count(rng: np.random.Generator, strain: Floats, scale: float, weight: float, high: int) -> Floats:
    return np.minimum(np.floor(scale * np.exp(_strained(rng, strain, weight))), high)


def _pareto(rng: np.random.Generator, strain: Floats, scale: float, shape: float, weight: float) -> Floats:
    return scale * np.exp(rng.standard_exponential(len(strain)) / shape + 0.3 * weight * strain)


def _months(rng: np.random.Generator, strain: Floats, mean: float, weight: float) -> Floats:
    return np.floor(mean * rng.standard_exponential(len(strain)) * np.exp(0.3 * weight * strain))


def _choice(rng: np.random.Generator, strain: Floats, shares: tuple[float, ...], weight: float = 0.0) -> Array:
    # A category is where a normal number falls between the quantiles of the shares.
    edges = ndtri(np.cumsum(shares)[:-1] / np.sum(shares))
    return np.searchsorted(edges, _strained(rng, strain, weight))


# ---- what values do to the risk


def _lookup(values: Array, effects: tuple[float, ...]) -> Floats:
    return np.array(effects)[np.minimum(values.astype(np.intp), len(effects) - 1)]


def _per_count(top: float, half: float, high: int) -> Callable[[Array], Floats]:
    """Return an effect that rises quickly at first and then ever more slowly, up to `top`."""
    return partial(_lookup, effects=tuple(top * (1 - 0.5 ** (np.arange(high + 1) / half))))


TEMPLATES: dict[str, Template] = {
    "bureau_score": Template(
        partial(_normal, center=680, spread=70, weight=-0.6, low=300, high=850),
        lambda v: 0.7 * np.tanh((680 - v) / 80),
        np.int32,
        (Code(-9, 0.04, 0.6),),
    ),
    "utilization": Template(
        partial(_lognormal, center=0.3, spread=0.9, weight=0.5),
        lambda v: 0.7 * np.tanh(v - 0.3),
        codes=(Code(np.nan, 0.03, 0.15),),
    ),
    "income": Template(
        partial(_lognormal, center=36_000, spread=0.6, weight=-0.3, step=10),
        lambda v: -0.35 * np.log1p(v / 36_000),
        codes=(Code(np.nan, 0.08, 0.1),),
    ),
    "late_payments": Template(
        partial(_count, scale=0.5, weight=0.5, high=24),
        _per_count(top=1.4, half=1.5, high=24),
        np.int32,
        (Code(-9, 0.03, 0.5), Code(-8, 0.05, -0.2)),
    ),
    "age": Template(
        partial(_normal, center=44, spread=14, weight=-0.1, low=18, high=90),
        lambda v: 0.35 * ((v - 48) / 20) ** 2,
        np.int32,
    ),
    "debt_ratio": Template(
        partial(_pareto, scale=0.15, shape=1.5, weight=0.5),
        lambda v: 0.25 * np.log1p(4 * v),
        codes=(Code(-0.5, 0.01, 0.4), Code(-1.5, 0.01, 0.4)),
    ),
    "savings": Template(
        partial(_choice, shares=(0.4, 0.3, 0.2, 0.1), weight=-0.4),
        partial(_lookup, effects=(0.4, 0.1, -0.2, -0.5)),
        np.int8,
    ),
    "purpose": Template(
        partial(_choice, shares=(0.3, 0.25, 0.15, 0.1, 0.08, 0.06, 0.04, 0.02)),
        partial(_lookup, effects=(-0.2, 0.2, -0.1, 0.0, 0.1, 0.5, -0.3, 0.3)),
        np.int8,
        (Code(-1, 0.01, 0.2),),
    ),
    "loan_amount": Template(
        partial(_lognormal, center=8_000, spread=0.8, weight=0.1, step=100), lambda v: 0.3 * np.log1p(v / 8_000)
    ),
    "months_employed": Template(
        partial(_months, mean=60, weight=-0.4),
        lambda v: -0.6 * np.minimum(v, 120) / 120,
        np.int32,
        (Code(-8, 0.06, 0.5),),
    ),
    "housing": Template(
        partial(_choice, shares=(0.45, 0.45, 0.1)), partial(_lookup, effects=(0.15, -0.25, 0.1)), np.int8
    ),
    "inquiries": Template(
        partial(_count, scale=0.9, weight=0.3, high=30),
        _per_count(top=0.9, half=2.5, high=30),
        np.int32,
        (Code(-9, 0.03, 0.3),),
    ),
}


# ---- rows


def _plan(n_features: int) -> dict[str, str]:
    """Return the template of each feature; from the second turn through the templates on, features are numbered."""
    kinds = list(schema_of("synthetic").features)
    turns = [divmod(i, len(kinds)) for i in range(n_features)]
    return {f"{kinds[j]}_{turn + 1}" if turn else kinds[j]: kinds[j] for turn, j in turns}


def _draw(
    plan: dict[str, str], n: int, seed: int, intercept: float, strength: float
) -> tuple[dict[str, Array], Floats, Outcome]:
    """Draw columns, true probabilities and outcomes, a block of rows at a time."""
    rng = np.random.default_rng([seed, 0])
    columns: dict[str, Array] = {name: np.empty(n, TEMPLATES[kind].dtype) for name, kind in plan.items()}
    truth, target = np.empty(n), np.empty(n, np.uint8)
    size = 2**15  # fixed for ever, since the rows of a seed depend on it
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        score = np.zeros(rows.stop - start)
        for name, values, effect in _block(plan, rng, rows.stop - start):
            columns[name][rows] = values
            score += effect
        truth[rows] = expit(intercept + strength * score)
        target[rows] = rng.random(rows.stop - start) < truth[rows]
    return {name: _with_labels(kind, columns.pop(name)) for name, kind in plan.items()}, truth, target


def _block(plan: dict[str, str], rng: np.random.Generator, n: int) -> Iterator[tuple[str, Array, Floats]]:
    """Draw rows: the name, the values and the effects of each feature."""
    strain = rng.standard_normal(n)
    for name, kind in plan.items():
        template = TEMPLATES[kind]
        values = template.draw(rng, strain)
        effect = template.effect(values)
        if template.codes:
            values = values.astype(np.float64, copy=False)
            _set_codes(template, rng, values, effect)
        yield name, values, effect


def _set_codes(template: Template, rng: np.random.Generator, values: Array, effect: Floats) -> None:
    """Replace a share of the rows by each code."""
    dice = rng.random(len(values), dtype=np.float32)
    low = 0.0
    for code in template.codes:
        chosen = np.flatnonzero((dice >= low) & (dice < low + code.share))
        values[chosen] = code.value
        effect[chosen] = code.effect
        low += code.share


def _calibrated(plan: dict[str, str], seed: int, base_rate: float) -> tuple[float, float]:
    """Find intercept and strength on rows drawn for this alone; log-odds spread with a deviation of at most 1.1."""
    rng = np.random.default_rng([seed, 1])
    score = np.zeros(50_000)
    for _, _, effect in _block(plan, rng, len(score)):
        score += effect
    # The strain makes effects add up rather than cancel, so their number alone does not give the spread.
    strength = min(1.0, 1.1 / float(score.std()))
    intercept = brentq(lambda b: expit(b + strength * score).mean() - base_rate, -50, 50)
    return float(intercept), strength


def _with_labels(kind: str, values: Array) -> Array:
    """Write categories as words; numbers stay as they are."""
    categories = schema_of("synthetic").features[kind].categories
    # The last position stands for missing, which is -1.
    return values if categories is None else np.array([*categories, None], dtype=object)[values]


def _schema(plan: dict[str, str]) -> Schema:
    template = schema_of("synthetic")
    subscales = {s: tuple(f for f, kind in plan.items() if kind in kinds) for s, kinds in template.subscales.items()}
    return Schema(
        target=template.target,
        positive=1,
        features={name: _feature(template, name, kind) for name, kind in plan.items()},
        subscales={name: members for name, members in subscales.items() if members},
    )


def _feature(known: Schema, name: str, kind: str) -> Feature:
    """Return a kind's entry of the schema; a repeated kind has its number in its label, too."""
    feature = known.features[kind]
    if feature.label is None:
        return feature
    return msgspec.structs.replace(feature, label=feature.label + name.removeprefix(kind).replace("_", " "))
