"""The moves an applicant can make in one feature: where to, in how many steps, at what cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.places import Places, Value, nearest_value, places_of, value_frame
from plainrisk.form import Bins, Part, RiskForm
from plainrisk.schema import Feature, label_of

__all__ = ["Cost", "FeatureMoves", "Moves", "feature_moves"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Cost = Literal["features", "steps"] | Mapping[str, float] | Callable[[str, str, str, int], float]


@dataclass(frozen=True)
class Moves:
    """The moves from one place; one entry per move.

    Attributes
    ----------
    target : which target of the feature
    steps : how many bins, or values of those given (1 between places without an order)
    price : what it costs by itself
    """

    target: Index
    steps: Index
    price: Floats


@dataclass(frozen=True)
class FeatureMoves:
    """Where the values of one feature can be moved to.

    Attributes
    ----------
    places : of the feature
    labels, values : of the targets
    scores : by part, what each target adds to the part's score
    codes : the place of each target; -1 for a value that was given
    """

    feature: str
    places: Places
    known: Feature
    labels: tuple[str, ...]
    values: tuple[Value, ...]
    scores: dict[int, Floats]
    codes: Index
    price: Callable[[str, str, int], float]
    _known_moves: dict[int, Moves] = field(default_factory=dict, repr=False)

    def from_place(self, place: int, value: float) -> Moves:
        """Return the moves of an applicant who is at a place, with a value (NaN for a category)."""
        if self.codes[0] < 0:
            return self._moves(place, value)  # values that were given are told from the applicant's own
        if place not in self._known_moves:
            self._known_moves[place] = self._moves(place, value)
        return self._known_moves[place]

    def _moves(self, place: int, value: float) -> Moves:
        label = self.places.levels.labels[place]
        measured = place < self.places.measured
        targets, steps = [], []
        for t, code in enumerate(self.codes.tolist()):
            given = code < 0
            if (value == self.values[t]) if given else (code == place):
                continue
            rise = self._rise(t, place, value)
            if self.known.actionable != "free" and not (measured and rise == self.known.actionable):
                continue  # up or down from no measurement means nothing
            targets.append(t)
            steps.append(self._steps(t, place, value) if measured and rise is not None else 1)
        prices = [self.price(label, self.labels[t], n) for t, n in zip(targets, steps, strict=True)]
        return Moves(np.array(targets, np.intp), np.array(steps, np.intp), np.array(prices, dtype=np.float64))

    def _steps(self, target: int, place: int, value: float) -> int:
        """Count the bins on the way; of values that were given, those passed and the last."""
        code = int(self.codes[target])
        if code >= 0:
            return abs(code - place)
        numbers = np.array(self.values, dtype=np.float64)
        low, high = sorted((value, numbers[target]))
        return int(((numbers >= low) & (numbers <= high) & (numbers != value)).sum())

    def _rise(self, target: int, place: int, value: float) -> str | None:
        """Whether a move leads up or down; None where there is no order."""
        code, to = int(self.codes[target]), self.values[target]
        if code < 0:
            return None if isinstance(to, str) or to is None or math.isnan(value) else "up" if to > value else "down"
        if self.known.kind == "categorical" and self.known.sign == 0:
            return None
        return "up" if code > place else "down"

    def concrete(self, target: int, value: float, place: int) -> Value:
        """Return a value to reach: the nearest inside the target's bin, from the applicant's own."""
        code, levels = int(self.codes[target]), self.places.levels
        if code < 0 or not isinstance(levels, Bins):
            return self.values[target]
        return nearest_value(levels, code, value if place < self.places.measured else math.nan)


def feature_moves(
    form: RiskForm,
    frozen: Iterable[str],
    cost: Cost,
    values: Mapping[str, Iterable[Value]] | None,
    min_rows: float = 0.0,
) -> dict[str, FeatureMoves]:
    """Return the moves of every feature that can move.

    A feature stays as it is if it is frozen, if its schema says "fixed", or if it enters as a line or a curve and no
    values to try were given. Targets are bins and categories that training rows had, never special values or missing,
    nor levels with fewer than `min_rows`.
    """
    given = {} if values is None else {name: tuple(v) for name, v in values.items()}
    known = form.schema.features
    for what, names in (("frozen", frozen), ("values", given), ("cost", cost if isinstance(cost, Mapping) else ())):
        for name in names:
            if name not in known:
                raise DataError(f"{what}: there is no feature {name!r}.{did_you_mean(name, known)}")
    held = set(frozen)
    found = {}
    for name, places in places_of(form, min_rows).items():
        if name in held or known[name].actionable == "fixed" or (places.straight and name not in given):
            continue
        price = _price(name, known[name], cost)
        found[name] = _of_values(form, places, given[name], price) if name in given else _of_bins(form, places, price)
    return {name: moves for name, moves in found.items() if len(moves.codes)}


def _price(name: str, feature: Feature, cost: Cost) -> Callable[[str, str, int], float]:
    if callable(cost):
        return lambda before, after, steps: _checked(name, cost(name, before, after, steps))
    step = cost.get(name, feature.step_cost) if isinstance(cost, Mapping) else feature.step_cost
    _checked(name, step)
    return lambda before, after, steps: step * steps


def _checked(name: str, price: float) -> float:
    if not (math.isfinite(price) and price >= 0):
        raise DataError(f"cost: moving {name!r} must cost a finite number not below 0, not {price!r}.")
    return float(price)


def _of_bins(form: RiskForm, places: Places, price: Callable[[str, str, int], float]) -> FeatureMoves:
    codes = np.flatnonzero(places.seen[: places.measured])
    name = places.feature
    return FeatureMoves(
        feature=name,
        places=places,
        known=form.schema.features[name],
        labels=tuple(places.levels.labels[c] for c in codes),
        values=tuple(places.values[c] for c in codes),
        scores={k: places.scores(p.shapes[name], name)[codes] for k, p in _users(form, name)},
        codes=codes,
        price=price,
    )


def _of_values(
    form: RiskForm, places: Places, values: tuple[Value, ...], price: Callable[[str, str, int], float]
) -> FeatureMoves:
    name = places.feature
    categorical = form.schema.features[name].kind == "categorical"
    plain = tuple(label_of(v) if categorical else float(v) for v in values if v is not None)
    frame = value_frame({name: plain})
    return FeatureMoves(
        feature=name,
        places=places,
        known=form.schema.features[name],
        labels=tuple(label_of(v) for v in plain),
        values=plain,
        scores={k: p.shapes[name].values(frame, name) for k, p in _users(form, name)},
        codes=np.full(len(plain), -1, dtype=np.intp),
        price=price,
    )


def _users(form: RiskForm, name: str) -> list[tuple[int, Part]]:
    return [(k, p) for k, p in enumerate(form.parts) if isinstance(p, Part) and name in p.shapes]
