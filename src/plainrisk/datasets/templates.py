"""The features of synthetic credit applications: how they are drawn, and what each does to the risk.

Each has a trait of real credit data: ties, heavy tails, codes for "no record", missing values, values below a
bound, ordered and unordered categories, a U-shape. Its effect, in log-odds, is a function of the value that
stands in the data, and moves only the way that its schema says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from plainrisk.schema import Feature

__all__ = ["TEMPLATES", "Code", "Template"]

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[Any]
Draw = Callable[[np.random.Generator, Floats], Values]


@dataclass(frozen=True)
class Code:
    """A value that is not a measurement (NaN: missing): its share of the rows and its effect."""

    value: float
    share: float
    effect: float


@dataclass(frozen=True)
class Template:
    """One feature of an application.

    Attributes
    ----------
    draw : random generator, hidden financial strain of each row -> values
        A category is its place in ``feature.categories``.
    effect : values -> log-odds
    dtype : the type that holds the values and codes
    codes : values that are not measurements; the missing category is -1
    """

    name: str
    subscale: str
    feature: Feature
    draw: Draw
    effect: Callable[[Values], Floats]
    dtype: npt.DTypeLike = np.float64
    codes: tuple[Code, ...] = ()


def _strained(rng: np.random.Generator, strain: Floats, weight: float) -> Floats:
    """Return standard normal numbers with the given correlation to the strain."""
    values = rng.standard_normal(len(strain))
    values *= np.sqrt(1 - weight**2)
    values += weight * strain
    return values


def _lognormal(centre: float, spread: float, weight: float, step: float = 0.0) -> Draw:
    def draw(rng: np.random.Generator, strain: Floats) -> Floats:
        values = _strained(rng, strain, weight)
        values *= spread
        values += np.log(centre)
        np.exp(values, out=values)
        return np.rint(values / step) * step if step else values

    return draw


def _normal(centre: float, spread: float, weight: float, low: float, high: float) -> Draw:
    def draw(rng: np.random.Generator, strain: Floats) -> Floats:
        values = _strained(rng, strain, weight)
        values *= spread
        values += centre
        return np.rint(np.clip(values, low, high, out=values), out=values)

    return draw


def _count(scale: float, weight: float, high: int) -> Draw:
    def draw(rng: np.random.Generator, strain: Floats) -> Floats:
        values = np.exp(_strained(rng, strain, weight))
        values *= scale
        return np.minimum(np.floor(values, out=values), high, out=values)

    return draw


def _pareto(scale: float, shape: float, weight: float) -> Draw:
    def draw(rng: np.random.Generator, strain: Floats) -> Floats:
        values = rng.standard_exponential(len(strain)) / shape
        values += 0.3 * weight * strain
        return scale * np.exp(values, out=values)

    return draw


def _months(mean: float, weight: float) -> Draw:
    def draw(rng: np.random.Generator, strain: Floats) -> Floats:
        return np.floor(mean * rng.standard_exponential(len(strain)) * np.exp(0.3 * weight * strain))

    return draw


def _choice(shares: tuple[float, ...], weight: float = 0.0) -> Draw:
    # A category is where a normal number falls between the quantiles of the shares.
    edges = ndtri(np.cumsum(shares)[:-1] / np.sum(shares))

    def draw(rng: np.random.Generator, strain: Floats) -> Values:
        return np.searchsorted(edges, _strained(rng, strain, weight))

    return draw


def _lookup(*effects: float) -> Callable[[Values], Floats]:
    table = np.array(effects)

    def effect(values: Values) -> Floats:
        return table[np.minimum(values.astype(np.intp), len(table) - 1)]

    return effect


def _per_count(top: float, half: float, high: int) -> Callable[[Values], Floats]:
    """Return an effect that rises quickly at first and then ever more slowly, up to `top`."""
    return _lookup(*(top * (1 - 0.5 ** (np.arange(high + 1) / half))))


TEMPLATES: tuple[Template, ...] = (
    Template(
        "bureau_score",
        "Bureau",
        Feature(direction="decreasing", special_values=(-9,), lower_bound=0, reason="Bureau score is too low"),
        _normal(680, 70, -0.6, 300, 850),
        lambda v: 0.7 * np.tanh((680 - v) / 80),
        np.int32,
        (Code(-9, 0.04, 0.6),),
    ),
    Template(
        "utilisation",
        "Capacity",
        Feature(direction="increasing", reason="Proportion of revolving balances to credit limits is too high"),
        _lognormal(0.3, 0.9, 0.5),
        lambda v: 0.7 * np.tanh(v - 0.3),
        codes=(Code(np.nan, 0.03, 0.15),),
    ),
    Template(
        "income",
        "Capacity",
        Feature(direction="decreasing", reason="Income is too low"),
        _lognormal(36_000, 0.6, -0.3, step=10),
        lambda v: -0.35 * np.log1p(v / 36_000),
        codes=(Code(np.nan, 0.08, 0.1),),
    ),
    Template(
        "late_payments",
        "Bureau",
        Feature(
            direction="increasing",
            special_values=(-9, -8),
            lower_bound=0,
            reason="Too many payments were late",
        ),
        _count(0.5, 0.5, 24),
        _per_count(1.4, 1.5, 24),
        np.int32,
        (Code(-9, 0.03, 0.5), Code(-8, 0.05, -0.2)),
    ),
    Template(
        "age",
        "Profile",
        Feature(reason="Age"),
        _normal(44, 14, -0.1, 18, 90),
        lambda v: 0.35 * ((v - 48) / 20) ** 2,
        np.int32,
    ),
    Template(
        "debt_ratio",
        "Capacity",
        Feature(direction="increasing", lower_bound=0, reason="Debt is too high in relation to income"),
        _pareto(0.15, 1.5, 0.5),
        lambda v: 0.25 * np.log1p(4 * v),
        codes=(Code(-0.5, 0.01, 0.4), Code(-1.5, 0.01, 0.4)),
    ),
    Template(
        "savings",
        "Stability",
        Feature(
            kind="categorical",
            direction="decreasing",
            categories=("none", "small", "medium", "large"),
            reason="Savings are too low",
        ),
        _choice((0.4, 0.3, 0.2, 0.1), -0.4),
        _lookup(0.4, 0.1, -0.2, -0.5),
        np.int8,
    ),
    Template(
        "purpose",
        "Profile",
        Feature(
            kind="categorical",
            categories=("car", "debt", "home", "furniture", "education", "business", "travel", "other"),
            reason="Purpose of the loan",
        ),
        _choice((0.3, 0.25, 0.15, 0.1, 0.08, 0.06, 0.04, 0.02)),
        _lookup(-0.2, 0.2, -0.1, 0.0, 0.1, 0.5, -0.3, 0.3),
        np.int8,
        (Code(-1, 0.01, 0.2),),
    ),
    Template(
        "loan_amount",
        "Capacity",
        Feature(direction="increasing", reason="Amount of the loan is too high"),
        _lognormal(8_000, 0.8, 0.1, step=100),
        lambda v: 0.3 * np.log1p(v / 8_000),
    ),
    Template(
        "months_employed",
        "Stability",
        Feature(
            direction="decreasing",
            special_values=(-8,),
            lower_bound=0,
            reason="Time in present job is too short",
        ),
        _months(60, -0.4),
        lambda v: -0.6 * np.minimum(v, 120) / 120,
        np.int32,
        (Code(-8, 0.06, 0.5),),
    ),
    Template(
        "housing",
        "Stability",
        Feature(kind="categorical", categories=("rent", "own", "family"), reason="Housing"),
        _choice((0.45, 0.45, 0.1)),
        _lookup(0.15, -0.25, 0.1),
        np.int8,
    ),
    Template(
        "inquiries",
        "Bureau",
        Feature(direction="increasing", special_values=(-9,), lower_bound=0, reason="Too many credit inquiries"),
        _count(0.9, 0.3, 30),
        _per_count(0.9, 2.5, 30),
        np.int32,
        (Code(-9, 0.03, 0.3),),
    ),
)
"""The features in the order in which they are used."""
