"""The values that a feature can be changed to, and the cost of each change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.checks import NOTHING, check_parameters, number
from plainrisk.errors import DataError
from plainrisk.explain.atoms import Atoms, atoms_of, nearest_value, value_frame
from plainrisk.explain.options import Value, check_features
from plainrisk.form import Bins, Part, RiskForm
from plainrisk.schema import Feature, label_of

__all__ = ["FeatureMoves", "Moves", "feature_moves"]


@dataclass(frozen=True)
class Moves:
    """The moves from one atom: the target of each, how many bins or given values it passes, and its price."""

    target: Index
    steps: Index
    price: Floats


@dataclass(frozen=True)
class FeatureMoves:
    """The possible new values of one feature.

    Attributes
    ----------
    atoms : of the feature
    declared : the feature's entry in the schema
    labels, values : of the targets
    scores : by part, what each target adds to the part's score by itself
    pair_levels : by part and number of a pair, the level of each target in the pair
    codes : the atom of each target; empty where the values were given
    """

    atoms: Atoms
    declared: Feature
    labels: tuple[str, ...]
    values: tuple[Value, ...]
    scores: dict[int, Floats]
    pair_levels: dict[tuple[int, int], Index]
    codes: Index

    def moves(self, atom: int, value: float) -> Moves:
        """Return the moves of an applicant who is in an atom, with a value (NaN for a category)."""
        categorical = self.declared.kind == "categorical"
        if len(self.codes):
            places, here = self.codes.astype(np.float64), float(atom)
            has_order = not categorical or self.declared.sign != 0
        else:
            places = np.full(len(self.values), math.nan) if categorical else np.array(self.values, np.float64)
            here, has_order = value, not categorical
        has_order &= atom < self.atoms.levels.n_ordered  # up or down from a missing or special value means nothing
        possible = places != here
        if self.declared.actionable != "free":
            possible &= has_order & (places > here if self.declared.actionable == "up" else places < here)
        steps = np.ones(len(places), np.intp)
        if has_order and len(self.codes):
            steps = np.abs(self.codes - atom)
        elif has_order:
            passed = [(min(here, to) <= places) & (places <= max(here, to)) & (places != here) for to in places]
            steps = np.sum(passed, axis=1, dtype=np.intp)
        target = np.flatnonzero(possible)
        return Moves(target, steps[target], steps[target] * np.float64(self.declared.step_cost))

    def concrete(self, target: int, value: float, atom: int) -> Value:
        """Return a value to reach: the nearest to the applicant's own in the target's bin."""
        levels = self.atoms.levels
        if not len(self.codes) or not isinstance(levels, Bins):
            return self.values[target]
        return nearest_value(levels, int(self.codes[target]), value if atom < levels.n_ordered else math.nan)


def feature_moves(
    form: RiskForm, frozen: Iterable[str], values: Mapping[str, Iterable[Value]] | None, min_rows: float
) -> dict[str, FeatureMoves]:
    """Return the targets of every feature that can move.

    A feature does not change if it is frozen, if its schema says "fixed", or if it enters as a line or a curve and no
    values to try were given. Targets are bins and categories with training rows, never special values, missing, or
    levels with fewer than `min_rows`.
    """
    given = {} if values is None else {name: tuple(v) for name, v in values.items()}
    features, fixed = form.schema.features, tuple(frozen)
    check_features(features, frozen=fixed, values=given)
    guarded = [name for name in given if features[name].protected]
    if guarded:
        raise DataError(f"what_if: {guarded[0]!r} is protected and cannot change. Leave it out of values.")
    moves_of = {}
    for name, atoms in atoms_of(form, min_rows).items():
        if name in fixed or features[name].actionable == "fixed" or (atoms.straight and name not in given):
            continue
        targets = _targets(form, atoms, given.get(name))
        if targets.values:
            moves_of[name] = targets
    return moves_of


def _targets(form: RiskForm, atoms: Atoms, given: tuple[Value, ...] | None) -> FeatureMoves:
    """Return the bins and categories with training rows, or the given values."""
    name = atoms.feature
    declared, codes = form.schema.features[name], np.empty(0, np.intp)
    if given is None:
        codes = np.flatnonzero(atoms.seen[: atoms.levels.n_ordered])
        labels = tuple(atoms.levels.labels[c] for c in codes)
        values = tuple(atoms.values[c] for c in codes)
    else:
        categorical = declared.kind == "categorical"
        for value in () if categorical else given:
            what = f"every value of {name!r}"
            check_parameters("values", {what: value}, {what: number() | NOTHING})
        values = tuple(label_of(v) if categorical else float(v) for v in given if v is not None)
        labels = tuple(map(label_of, values))
    frame = value_frame({name: values})
    scores, pair_levels = {}, {}
    for k, part in enumerate(form.parts):
        if isinstance(part, Part) and len(values):
            shape = part.shapes.get(name)
            scores[k] = np.zeros(len(values)) if shape is None else shape.values(frame, name)
            for j, axis, pair in part.pairs_with(name):
                pair_levels[k, j] = pair.levels[axis].codes(frame, name).astype(np.intp)
    return FeatureMoves(atoms, declared, labels, values, scores, pair_levels, codes)
