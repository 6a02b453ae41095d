"""Synthetic credit applications of any size, with a known truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit

from plainrisk.datasets.dataset import Backend, Dataset, to_frame
from plainrisk.datasets.templates import TEMPLATES, Floats, Template, Values
from plainrisk.errors import DataError
from plainrisk.schema import Schema

__all__ = ["make_credit", "true_score"]

Plan = dict[str, Template]

_BLOCK = 2**15  # rows at a time: they stay in the processor's cache
_PILOT = 50_000  # rows that set intercept and strength
_SPREAD = 1.1  # the standard deviation of the log-odds that many features are scaled down to


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

    with effects f_u that obey the schema's directions, a strength s of at most 1 that keeps the outcome about
    as hard to tell however many features there are, and an intercept b that gives the base rate. A hidden
    strain makes the features of a row depend on each other.

    Parameters
    ----------
    n : int
        How many rows.
    seed : int
        The same arguments give the same rows.
    n_features : int
        How many features. After the first 12 kinds come fresh draws of the same kinds: income_2, ...
    base_rate : float
        The expected share of bad outcomes.
    backend : "polars", "pandas" or "pyarrow"
        The library of the frame; by default the first of these that is installed.

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
    _check_arguments(n, seed, n_features, base_rate)
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
        licence="none needed",
        citation="",
        expected_rows=n,
        expected_positive_rate=base_rate,
        truth=truth,
    )


def true_score(columns: Mapping[str, Values]) -> Floats:
    """Return the sum of the true effects, from values as they are drawn.

    Categories are given by their place in the schema's list, missing ones as -1.
    """
    effects = [_effect(template, columns[name]) for name, template in _plan(len(columns)).items()]
    return np.asarray(np.sum(effects, axis=0), dtype=np.float64)


def _check_arguments(n: int, seed: int, n_features: int, base_rate: float) -> None:
    for name, value, least in (("n", n, 1), ("seed", seed, 0), ("n_features", n_features, 1)):
        if value < least:
            raise DataError(f"make_credit: {name} must be at least {least}, not {value}.")
    if not 0 < base_rate < 1:
        raise DataError(f"make_credit: base_rate must lie between 0 and 1, not {base_rate}.")


def _plan(n_features: int) -> Plan:
    """Return the features by name, with a number from the second turn through the templates on."""
    plan = {}
    for i in range(n_features):
        turn, kind = divmod(i, len(TEMPLATES))
        template = TEMPLATES[kind]
        plan[f"{template.name}_{turn + 1}" if turn else template.name] = template
    return plan


def _draw(
    plan: Plan, n: int, seed: int, intercept: float, strength: float
) -> tuple[dict[str, Values], Floats, npt.NDArray[np.uint8]]:
    """Draw columns, true probabilities and outcomes, a block of rows at a time."""
    rng = np.random.default_rng([seed, 0])
    columns: dict[str, Values] = {name: np.empty(n, t.dtype) for name, t in plan.items()}
    truth, target = np.empty(n), np.empty(n, np.uint8)
    for start in range(0, n, _BLOCK):
        rows = slice(start, min(start + _BLOCK, n))
        score = np.zeros(rows.stop - start)
        for name, values, effect in _block(plan, rng, rows.stop - start):
            columns[name][rows] = values
            score += effect
        truth[rows] = expit(intercept + strength * score)
        target[rows] = rng.random(rows.stop - start) < truth[rows]
    return {name: _with_names(plan[name], columns.pop(name)) for name in plan}, truth, target


def _block(plan: Plan, rng: np.random.Generator, n: int) -> Iterator[tuple[str, Values, Floats]]:
    """Draw rows: the name, the values and the effects of each feature."""
    strain = rng.standard_normal(n)
    for name, template in plan.items():
        values = template.draw(rng, strain)
        effect = template.effect(values)
        if template.codes:
            values = values.astype(np.float64, copy=False)
            _set_codes(template, rng, values, effect)
        yield name, values, effect


def _set_codes(template: Template, rng: np.random.Generator, values: Values, effect: Floats) -> None:
    """Replace a share of the rows by each code."""
    dice = rng.random(len(values), dtype=np.float32)
    low = 0.0
    for code in template.codes:
        chosen = np.flatnonzero((dice >= low) & (dice < low + code.share))
        values[chosen] = code.value
        effect[chosen] = code.effect
        low += code.share


def _effect(template: Template, values: Values) -> Floats:
    """Return the effect of values that may be codes."""
    coded = [np.isnan(values) if np.isnan(code.value) else values == code.value for code in template.codes]
    regular = ~np.any(coded, axis=0) if coded else np.ones(len(values), dtype=bool)
    effect = np.empty(len(values))
    effect[regular] = template.effect(np.asarray(values)[regular])
    for code, rows in zip(template.codes, coded, strict=True):
        effect[rows] = code.effect
    return effect


def _calibrated(plan: Plan, seed: int, base_rate: float) -> tuple[float, float]:
    """Find intercept and strength on rows drawn for this alone."""
    rng = np.random.default_rng([seed, 1])
    score = np.zeros(_PILOT)
    for _, _, effect in _block(plan, rng, _PILOT):
        score += effect
    # The strain makes effects add up rather than cancel, so their number alone does not give the spread.
    strength = min(1.0, _SPREAD / float(score.std()))
    intercept = brentq(lambda b: expit(b + strength * score).mean() - base_rate, -50, 50)
    return float(intercept), strength


def _with_names(template: Template, values: Values) -> Values:
    """Write categories as words; numbers stay as they are."""
    if template.feature.categories is None:
        return values
    # The last place stands for missing, which is -1.
    return np.array([*template.feature.categories, None], dtype=object)[values]


def _schema(plan: Plan) -> Schema:
    subscales: dict[str, list[str]] = {}
    for name, template in plan.items():
        subscales.setdefault(template.subscale, []).append(name)
    return Schema(
        target="bad",
        positive=1,
        features={name: template.feature for name, template in plan.items()},
        subscales={name: tuple(members) for name, members in subscales.items()},
    )
